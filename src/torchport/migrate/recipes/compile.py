"""Compiles the models that are trained, where they are on a card that the compiler knows.

``model.compile()`` changes the model in place, so that checkpoints keep their names.

Bad::

    import torch
    from torch import nn

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Linear(4, 3).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

Good::

    import torch
    from torch import nn

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Linear(4, 3).to(device)
    if device.type == "cuda" and torch.cuda.get_device_capability() >= (7, 0):
        model.compile()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

Bad::

    import torch
    from torch import nn


    def main(device):
        net = nn.Linear(4, 3)
        net.to(device)  # before the optimizer
        critic = nn.Linear(3, 1).to(device)
        optimizer = torch.optim.Adam([*net.parameters(), *critic.parameters()])
        return optimizer

Good::

    import torch
    from torch import nn


    def main(device):
        net = nn.Linear(4, 3)
        net.to(device)  # before the optimizer
        critic = nn.Linear(3, 1).to(device)
        if torch.cuda.is_available() and torch.cuda.get_device_capability() >= (7, 0):
            net.compile()
            critic.compile()
        optimizer = torch.optim.Adam([*net.parameters(), *critic.parameters()])
        return optimizer
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchport.check.rules.words import code_of
from torchport.migrate.imports import named
from torchport.migrate.models import on_cuda, on_gpu_only, trained
from torchport.migrate.recipe import Recipe, Unsuited, Variant
from torchport.migrate.training import read_program
from torchport.migrate.tree import Tree
from torchport.text import _, mark

_COMPILED = re.compile(r"(?<!\bre)\.compile\(|jit\.(script|trace)\(")
_REPLICAS = re.compile(r"\bDataParallel\(")


def variants(tree: Tree, entry: str) -> Iterator[Variant]:
    """One ``if`` behind the last model of each optimizer."""
    sources = read_program(tree, entry)
    if any(_COMPILED.search(code_of(each)) for each in sources):
        raise Unsuited(_("the project compiles already"))
    if any(_REPLICAS.search(code_of(each)) for each in sources):
        raise Unsuited(_("nn.DataParallel does not go with the compiler: DistributedDataParallel does"))
    found: Variant = {}
    for source in sources:
        models = trained(source)
        if models:
            torch, missing = named(source, "torch")
            condition = f"{on_cuda(source, models[0], torch)} and {torch}.cuda.get_device_capability() >= (7, 0)"
            found = {**found, source.path: [*missing, *on_gpu_only(source, models, condition, "compile()")]}
    if not found:
        raise Unsuited(_("no optimizer is made where its model is"))
    yield found


META = Recipe(
    "compile",
    mark("models compiled by torch.compile"),
    variants,
    note=mark("a rehearsal runs compiled models as they are: neither their speed nor their rounding is shown here"),
)
