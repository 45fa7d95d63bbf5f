"""Which programs have their loop run by a library: those that import one, wherever, and not those that speak of it."""

import pytest

from torchport.check.rules.training import is_managed
from torchport.check.source import Source


@pytest.mark.parametrize(
    ("text", "managed"),
    [
        ("from accelerate import Accelerator", True),
        ("def main():\n    import pytorch_lightning as pl", True),
        ("from transformers import AutoModel, Trainer", True),
        ("from transformers import AutoModel", False),
        ("import torch\nparser.add_argument('--fast', help='accelerated, as with lightning')", False),
        ("import torch\napex = torch.zeros(3)", False),
        ("import accelerated_scan", False),
    ],
)
def test_is_managed(text, managed):
    assert is_managed(Source("train.py", text)) is managed
