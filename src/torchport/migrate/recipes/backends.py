"""Lets cuDNN search for the fastest convolution, and matrix products use TF32.

Bad::

    import torch
    from torch import nn

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Conv2d(3, 8, 3).to(device)

Good::

    import torch
    from torch import nn

    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Conv2d(3, 8, 3).to(device)

Where autocast is in use, convolutions want their channels last: tensor cores compute in that order.

Bad::

    import torch
    from torch import nn

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Conv2d(3, 8, 3).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.autocast("cuda", enabled=torch.cuda.is_available()):
        loss = model(torch.rand(2, 3, 8, 8, device=device)).mean()

Good::

    import torch
    from torch import nn

    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Conv2d(3, 8, 3).to(device)
    if device.type == "cuda":
        model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.autocast("cuda", enabled=torch.cuda.is_available()):
        loss = model(torch.rand(2, 3, 8, 8, device=device)).mean()
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchport.check.rule import Change
from torchport.check.rules.words import code_of
from torchport.check.source import Source
from torchport.migrate.imports import behind_imports, named, quote
from torchport.migrate.models import on_cuda, on_gpu_only, trained
from torchport.migrate.recipe import Recipe, Unsuited, Variant
from torchport.migrate.recipes import amp
from torchport.migrate.training import read_program
from torchport.migrate.tree import Tree
from torchport.text import _, mark

_CONVOLUTION = re.compile(r"Conv[123]d|ConvTranspose|torchvision\.models|timm\.|resnet|conv2d", re.IGNORECASE)
_PICTURES = re.compile(r"Conv2d|ConvTranspose2d|torchvision\.models|timm\.|resnet|conv2d", re.IGNORECASE)
_REPRODUCIBLE = re.compile(r"cudnn\.deterministic\s*=\s*True|use_deterministic_algorithms|cudnn\.benchmark\s*=")
_PRECISION = re.compile(r"set_float32_matmul_precision|matmul\.allow_tf32|fp32_precision")


def variants(tree: Tree, entry: str) -> Iterator[Variant]:
    """The switches that the project does not set itself, behind the imports of its entry, and the channels last."""
    sources = read_program(tree, entry)
    source, texts = sources[0], [code_of(each) for each in sources]
    torch, missing = named(source, "torch")
    lines: list[str] = []
    if any(map(_CONVOLUTION.search, texts)) and not any(map(_REPRODUCIBLE.search, texts)):
        lines.append(f"{torch}.backends.cudnn.benchmark = True")
    if not any(map(_PRECISION.search, texts)):
        lines.append(f"{torch}.set_float32_matmul_precision({quote(source)}high{quote(source)})")
    switches = {entry: [*missing, behind_imports(source, *lines)]} if lines else {}
    ordered = _channels_last(sources, texts)
    if not switches and not ordered:
        raise Unsuited(_("the project sets these itself"))
    if ordered:
        yield {path: [*switches.get(path, []), *ordered.get(path, [])] for path in {**switches, **ordered}}
    if switches:
        yield switches


def _channels_last(sources: list[Source], texts: list[str]) -> dict[str, list[Change]]:
    """The models of a program with autocast and convolutions of pictures, in the order of tensor cores."""
    mixed = any("autocast(" in each for each in texts) and any(map(_PICTURES.search, texts))
    if not mixed or any("channels_last" in each for each in texts):
        return {}
    found: dict[str, list[Change]] = {}
    for source in sources:
        models = trained(source)
        if models:
            torch, missing = named(source, "torch")
            condition = on_cuda(source, models[0], torch)
            call = f"to(memory_format={torch}.channels_last)"
            found[source.path] = [*missing, *on_gpu_only(source, models, condition, call)]
    return found


# Another order of summation in each convolution, under autocast rounded to 8 bits.
META = Recipe(
    "backends", mark("cuDNN benchmark and TF32, channels last under autocast"), variants, tolerance=amp.TOLERANCE
)
