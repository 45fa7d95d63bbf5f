"""Finds ``pretrained=True``, which does not say which weights.

Torchvision deprecated it in 0.13: it warns, takes the oldest ones, and is going to be removed.

Bad::

    from torchvision import models

    model = models.resnet50(pretrained=True)
    other = models.vgg16(pretrained=False)

Good::

    from torchvision import models

    model = models.resnet50(weights="IMAGENET1K_V1")
    other = models.vgg16(weights=None)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import CERTAIN, INFO, Hit, Rule
from torchport.check.source import Source, constant
from torchport.text import mark

META = Rule(
    "C945",
    "torchvision-pretrained",
    INFO,
    mark("`pretrained` is deprecated since torchvision 0.13, of torch 1.12"),
    mark('Name the weights: `weights="IMAGENET1K_V1"` are those it gave, `weights="DEFAULT"` the best'),
    confidence=CERTAIN,
    since=(1, 12),
)
_FAMILIES = ("torchvision.models.resnet.", "torchvision.models.vgg.", "torchvision.models.densenet.")
_CLASSIFIERS = (
    "alexnet convnext densenet efficientnet googlenet inception_v3 mnasnet mobilenet regnet resnet resnext shufflenet "
    "squeezenet vgg wide_resnet"
).split()


def look(source: Source) -> Iterator[Hit]:
    """Builders of torchvision; repaired where the old weights have that name."""
    for call in source.nodes(ast.Call):
        given = next((each for each in call.keywords if each.arg == "pretrained"), None)
        name = source.name(call.func) if given is not None else ""
        if given is None or not name.startswith("torchvision.models."):
            continue
        value = constant(given.value)
        last = name.rsplit(".", 1)[-1]
        known = name.count(".") == 2 or name.startswith(_FAMILIES)
        if value is False:
            yield Hit(given, changes=(replace(source, given, "weights=None"),), safe=True)
        elif value is True and known and last.startswith(tuple(_CLASSIFIERS)):
            yield Hit(given, changes=(replace(source, given, 'weights="IMAGENET1K_V1"'),), safe=True)
        else:
            yield Hit(given)
