"""Finds the state of a model saved from inside ``torch.compile``.

Every key of it begins with ``_orig_mod.``: a model that is not compiled refuses it.

Bad::

    import torch
    from torch import nn

    model = torch.compile(nn.Linear(4, 2))
    torch.save(model.state_dict(), "model.pt")

Good::

    import torch
    from torch import nn

    model = torch.compile(nn.Linear(4, 2))
    torch.save(model._orig_mod.state_dict(), "model.pt")

Good::

    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    fast = torch.compile(model)
    torch.save(model.state_dict(), "model.pt")
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.saving import always, is_kept, state_of, wrapper
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C806",
    "save-compiled-state-dict",
    WARNING,
    mark("the keys of `{code}` begin with `_orig_mod.`: a model that is not compiled cannot load them"),
    mark("Keep the model that was compiled under its own name, and save its state"),
    since=(2, 0),
)
_COMPILED = frozenset({"torch.compile"})


def look(source: Source) -> Iterator[Hit]:
    """Where a compiled model takes the file back, its keys have to stay."""
    takers = [getattr(call.func, "value", None) for call in source.calls(".load_state_dict")]
    takes_back = any(taker is not None and wrapper(source, taker, _COMPILED) for taker in takers)
    for call in source.calls(".state_dict"):
        model = state_of(source, call)
        made = wrapper(source, model, _COMPILED) if model is not None else None
        if model is None or made is None or not is_kept(source, call):
            continue
        change = replace(source, model, f"{source.code(model)}._orig_mod")
        fits = always(source, made) and not takes_back
        yield Hit(call, {"code": source.code(call)}, (change,) if fits else ())
