"""Finds ``torch.hub.load`` of a repository without an answer to whether it is trusted.

Since torch 2.0 it asks at the terminal. A job in a container has none: it ends with an EOFError.

Bad::

    import torch

    model = torch.hub.load("someone/models", "resnet50x2")

Good::

    import torch

    model = torch.hub.load("someone/models:v1.2", "resnet50x2", trust_repo=True)
    other = torch.hub.load("pytorch/vision", "resnet50")
    local = torch.hub.load("models", "resnet50x2", source="local")
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.source import Source, argument, constant, is_open
from torchport.text import mark

META = Rule(
    "C833",
    "hub-load-trust-repo",
    WARNING,
    mark("this asks at the terminal whether `{repository}` is trusted, and a job has no terminal"),
    mark("Read its code; then `trust_repo=True`, with a commit behind the name"),
    since=(2, 0),
)
_TRUSTED = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")  # as torch.hub has it


def look(source: Source) -> Iterator[Hit]:
    """Literal names of repositories that torch does not trust by itself."""
    for call in source.calls("torch.hub.load"):
        repository = constant(argument(call, "repo_or_dir", 0))
        if not isinstance(repository, str) or is_open(call) or argument(call, "trust_repo") is not None:
            continue
        if constant(argument(call, "source")) != "local" and repository.split("/")[0] not in _TRUSTED:
            yield Hit(call, {"repository": repository})
