"""Finds the state of a model saved from inside DistributedDataParallel or DataParallel.

Every key of it begins with ``module.``: a model that is not wrapped, on one GPU or for inference, refuses it.

Bad::

    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP

    model = DDP(nn.Linear(4, 2))
    torch.save(model.state_dict(), "model.pt")

Good::

    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP

    model = DDP(nn.Linear(4, 2))
    torch.save(model.module.state_dict(), "model.pt")
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.saving import WRAPPERS, always, is_kept, state_of, wrapper
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C805",
    "save-wrapped-state-dict",
    WARNING,
    mark("the keys of `{code}` begin with `module.`: a model that is not wrapped cannot load them"),
    mark("Save the model inside: `{name}.module.state_dict()`"),
)


def look(source: Source) -> Iterator[Hit]:
    """Where a wrapped model takes the file back, its keys have to stay."""
    takers = [getattr(call.func, "value", None) for call in source.calls(".load_state_dict")]
    takes_back = any(taker is not None and wrapper(source, taker, WRAPPERS) for taker in takers)
    for call in source.calls(".state_dict"):
        model = state_of(source, call)
        made = wrapper(source, model, WRAPPERS) if model is not None else None
        if model is None or made is None or not is_kept(source, call):
            continue
        name = source.code(model)
        change = replace(source, model, f"{name}.module")
        fits = always(source, made) and not takes_back
        yield Hit(call, {"code": source.code(call), "name": name}, (change,) if fits else ())
