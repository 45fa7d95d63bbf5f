"""Finds a training loop that writes its one checkpoint over the last one.

A job that is stopped in the middle of the write, as preempted containers are, leaves half a file and no other.

Bad::

    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    for epoch in range(100):
        torch.save(model.state_dict(), "last.pt")

Good::

    import os

    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    for epoch in range(100):
        torch.save(model.state_dict(), "last.pt.part")
        os.replace("last.pt.part", "last.pt")
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import INFO, Hit, Rule
from torchport.check.rules.saving import saves
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C810",
    "save-over-the-last",
    INFO,
    mark("each round writes over `{path}`: a job stopped during the write keeps no checkpoint"),
    mark("Write to another name and rename it: `os.replace(part, path)`"),
)
_RENAMES = ("os.replace", "os.rename", "shutil.move", ".rename", ".replace")


def look(source: Source) -> Iterator[Hit]:
    """Saves to a fixed name in a loop, in a file that renames nothing."""
    if source.calls(*_RENAMES):
        return
    for call in saves(source):
        path = constant(argument(call, "f", 1))
        if isinstance(path, str) and source.loops(call):
            yield Hit(call, {"path": path})
