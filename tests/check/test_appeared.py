"""Which torch a file needs, by the names that it uses."""

import pytest

from torchport.check.appeared import versions_needed
from torchport.check.engine import read_source


def needed(text):
    source, _problems = read_source("a.py", text.encode())
    return [(use.name, use.line, use.since, use.gone) for use in versions_needed(source)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torch\nmodel = torch.compile(model)\n", [("torch.compile", 2, "2.0", None)]),
        (
            "import torch\ntorch.accelerator.device_count()\n",
            [("torch.accelerator.device_count", 2, "2.6", None)],
        ),
        (
            "from torch.nn.attention.flex_attention import flex_attention\n",
            [("torch.nn.attention.flex_attention.flex_attention", 1, "2.5", None)],
        ),
        ("from torch.nn.attention import sdpa_kernel\n", [("torch.nn.attention.sdpa_kernel", 1, "2.3", None)]),
        ("import torch\nx = torch.ones(2)\ntorch.compiler.reset()\n", []),
        ("import torch\nif hasattr(torch, 'compile'):\n    f = torch.compile(f)\n", []),
        ("try:\n    from torch.amp import GradScaler\nexcept ImportError:\n    import torch\n", []),
        ("from torch._six import string_classes\n", [("torch._six.string_classes", 1, None, "2.0")]),
        ("import torch\ntorch.symeig(a)\ntorch.symeig(b)\n", [("torch.symeig", 2, None, "2.0")]),
    ],
)
def test_names(text, expected):
    assert needed(text) == expected
