"""How the device is called at a place, where a repair needs a name for it."""

import ast

import pytest

from torchport.check.rules.meetings import device_name
from torchport.check.source import Source


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("device = 1\ndef f(x):\n    HERE", "device"),
        ("def f(x, dev):\n    HERE", "dev"),
        ("def f(args, x):\n    x = x.to(args.device)\n    HERE", "args.device"),
        ("cfg = load()\nmodel.to(cfg.device)\ndef f(x):\n    HERE", "cfg.device"),
        ("def f(x, y):\n    x = x.to(y.device)\n    HERE", ""),  # of a tensor, not of the program
        ("def f(x):\n    HERE\n    cfg = load()\n    x.to(cfg.device)", ""),  # not known yet
        ("def g(args):\n    x.to(args.device)\ndef f(x):\n    HERE", ""),  # not known there
    ],
)
def test_device_name(text, name):
    source = Source("train.py", text)
    here = next(each for each in source.nodes(ast.Name) if each.id == "HERE")
    assert device_name(source, here) == name
