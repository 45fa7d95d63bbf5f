"""Finds a checkpoint to go on from that lacks the optimizer, or the loss scaler.

It holds the epoch, so training is meant to resume; but without its momentum the optimizer starts anew, the loss jumps,
and a scaler that starts at 65536 skips its first steps.

Bad::

    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(3):
        torch.save({"epoch": epoch, "model": model.state_dict()}, f"epoch-{epoch}.pt")

Good::

    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(3):
        state = {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, f"epoch-{epoch}.pt")
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import INFO, Hit, Rule
from torchport.check.rules.saving import saved, saves, state_of
from torchport.check.source import Source, constant
from torchport.text import mark

META = Rule(
    "C811",
    "checkpoint-misses-state",
    INFO,
    mark("this checkpoint has an epoch to go on from, but not the state of the {what}"),
    mark("Add `{key}: {what}.state_dict()`, and load it where training resumes"),
)
_SCALERS = ("torch.amp.GradScaler", "torch.cuda.amp.GradScaler")


def look(source: Source) -> Iterator[Hit]:
    """Dictionaries with plain keys that nothing is added to."""
    for call in saves(source):
        given = saved(call)
        values = source.values(given) if given is not None else []
        state = values[0] if len(values) == 1 else None
        if not isinstance(state, ast.Dict) or (isinstance(given, ast.Name) and _grows(source, given.id)):
            continue
        keys = [key.lower() if isinstance(key := constant(each), str) else "?" for each in state.keys]
        if "?" in keys or "epoch" not in keys or not any(state_of(source, value) for value in state.values):
            continue
        holds = " ".join(keys) + " " + source.code(state).lower()
        if "opt" not in holds and any(name.startswith("torch.optim.") for name in _made(source)):
            yield Hit(call, {"what": "optimizer", "key": '"optimizer"'})
        elif source.calls(*_SCALERS) and "scal" not in holds and "amp" not in holds:
            yield Hit(call, {"what": "scaler", "key": '"scaler"'})


def _grows(source: Source, name: str) -> bool:
    """Whether something is put into the dictionary of a name, or it is handed to something else."""
    for node in source.nodes(ast.Name):
        if node.id == name and isinstance(node.ctx, ast.Load):
            above = source.parent(node)
            if isinstance(above, (ast.Attribute, ast.Return)):
                return True
            if isinstance(above, ast.Subscript) and isinstance(above.ctx, ast.Store):
                return True
            if isinstance(above, ast.Call) and source.name(above.func) not in ("torch.save", "print"):
                return True
    return False


def _made(source: Source) -> Iterator[str]:
    for call in source.nodes(ast.Call):
        name = source.name(call.func)
        if name.startswith("torch.optim.") and "lr_scheduler" not in name:
            yield name
