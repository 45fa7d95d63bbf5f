"""Finds a model or its state written with ``pickle`` itself.

``pickle`` knows no ``map_location``: tensors come back on the device that they were on, so what a GPU wrote cannot be
read where there is none.

Bad::

    import pickle

    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    with open("model.pkl", "wb") as file:
        pickle.dump(model.state_dict(), file)

Good::

    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    torch.save(model.state_dict(), "model.pt")

Good::

    import pickle

    import torch

    with open("words.pkl", "wb") as file:
        pickle.dump({"the": 0, "cat": 1}, file)
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.kinds import is_tensor
from torchport.check.rules.saving import is_model, state_of
from torchport.check.source import Source, argument
from torchport.text import mark

META = Rule(
    "C808",
    "pickle-tensors",
    WARNING,
    mark("`{code}` keeps the device of the tensors: from a GPU, it cannot be read where there is none"),
    mark("Use `torch.save()` and `torch.load(…, map_location=…)`, or move the tensors to the CPU first"),
)
_DUMPS = {"pickle.dump": "obj", "pickle.dumps": "obj", "joblib.dump": "value", "dill.dump": "obj"}


def look(source: Source) -> Iterator[Hit]:
    """Modules, their states and tensors that are known as such."""
    for call in source.calls(*_DUMPS):
        given = argument(call, _DUMPS[source.name(call.func)], 0)
        model = state_of(source, given) or given
        if given is None or model is None:
            continue
        if is_tensor(source, given) or is_model(source, model):
            yield Hit(call, {"code": source.code(call)})
