"""Finds a layer that a DDP model has and never uses.

DDP waits for the gradient of every parameter. One that no forward pass touches gets none: "Expected to have finished
reduction in the prior iteration before starting a new one".

Bad::

    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.used = nn.Linear(8, 2)
            self.spare = nn.Linear(8, 2)

        def forward(self, x):
            return self.used(x)


    def build(rank):
        return DDP(Net().to(rank), device_ids=[rank])

Good::

    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.used = nn.Linear(8, 2)

        def forward(self, x):
            return self.used(x)


    def build(rank):
        return DDP(Net().to(rank), device_ids=[rank])
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.rules.layers import class_named, has_weights
from torchport.check.rules.ranks import DDP
from torchport.check.rules.words import plain
from torchport.check.source import Source, argument, is_open
from torchport.text import mark

META = Rule(
    "C317",
    "ddp-unused-submodule",
    ERROR,
    mark("`self.{name}` gets no gradient, because nothing uses it: DDP stops in the second step"),
    mark("Remove the layer, or give DDP `find_unused_parameters=True`"),
)
_INDIRECT = re.compile(r"getattr|children\(|modules\(|_modules|named_|__dict__|requires_grad|weight_norm")


def look(source: Source) -> Iterator[Hit]:
    """Layers with weights that a class of this file makes and nothing in the file reads, where DDP wraps the class."""
    read = {node.attr for node in source.nodes(ast.Attribute) if isinstance(node.ctx, ast.Load)}
    for call in source.calls(DDP):
        unused = argument(call, "find_unused_parameters")
        if unused is not None or is_open(call) or not call.args:
            continue
        for made in sorted(source.makers(call.args[0])):
            owner = class_named(source, made)
            if owner is None or not _is_plain(source, owner):
                continue
            for name, values in source.attributes(owner).items():
                if name not in read and len(values) == 1 and has_weights(source, values[0]):
                    yield Hit(values[0], {"name": name}, seen=((source.span(call)[0], mark("DDP wraps it here")),))


def _is_plain(source: Source, owner: ast.ClassDef) -> bool:
    """A class right below ``nn.Module`` that reaches its layers by their names alone."""
    bases = [source.name(base) for base in owner.bases]
    return bases == ["torch.nn.Module"] and not _INDIRECT.search(plain(source.code(owner)))
