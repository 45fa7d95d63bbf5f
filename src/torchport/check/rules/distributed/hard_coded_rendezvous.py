"""Finds an address or a port of the rendezvous that is written into the program.

A launcher sets ``MASTER_ADDR`` and ``MASTER_PORT`` for the machines that it uses; a program that overwrites them
finds no partner there, and two runs on one machine fight for the port: "Address already in use".

Bad::

    import os

    import torch.distributed as dist


    def setup(rank, world_size):
        os.environ["MASTER_ADDR"] = "localhost"
        os.environ["MASTER_PORT"] = "12355"
        dist.init_process_group("nccl", rank=rank, world_size=world_size)

Good::

    import os

    import torch.distributed as dist


    def setup(rank, world_size):
        os.environ.setdefault("MASTER_ADDR", "localhost")
        os.environ.setdefault("MASTER_PORT", "12355")
        dist.init_process_group("nccl", rank=rank, world_size=world_size)

Bad::

    import torch.distributed as dist

    dist.init_process_group("nccl", init_method="tcp://10.0.0.1:23456", rank=0, world_size=2)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.ranks import INIT
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C322",
    "hard-coded-rendezvous",
    WARNING,
    mark("`{code}` overrides the rendezvous that a launcher chooses"),
    mark("Keep what the environment says: `os.environ.setdefault(…)`, or `init_method='env://'`"),
)
_KEYS = ("MASTER_ADDR", "MASTER_PORT")


def look(source: Source) -> Iterator[Hit]:
    """Texts assigned to ``os.environ["MASTER_…"]`` without a test of it, and addresses as ``init_method``."""
    for node in source.nodes(ast.Assign):
        match node.targets:
            case [ast.Subscript(value=holder, slice=ast.Constant(value=key) as slot)] if key in _KEYS:
                if source.name(holder) != "os.environ" or not isinstance(constant(node.value), str):
                    continue
            case _:
                continue
        tests = [ast.unparse(each.test) for each in source.ancestors(node) if isinstance(each, ast.If)]
        if any("MASTER_" in test or "environ" in test for test in tests):
            continue
        text = f"{source.code(holder)}.setdefault({source.code(slot)}, {source.code(node.value)})"
        yield Hit(node, {"code": source.code(node)}, (changes.replace(source, node, text),), safe=True)
    for call in source.calls(INIT):
        method = constant(argument(call, "init_method", 1))
        if isinstance(method, str) and method.startswith("tcp://"):
            yield Hit(call, {"code": f"init_method={method}"})
