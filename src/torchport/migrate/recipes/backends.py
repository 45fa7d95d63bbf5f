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
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rules.words import code_of
from torchport.check.source import Source
from torchport.migrate.recipe import Recipe, Unsuited, Variant
from torchport.migrate.tree import Tree
from torchport.text import _, mark

_CONVOLUTION = re.compile(r"Conv[123]d|ConvTranspose|torchvision\.models|timm\.|resnet|conv2d", re.IGNORECASE)
_REPRODUCIBLE = re.compile(r"cudnn\.deterministic\s*=\s*True|use_deterministic_algorithms|cudnn\.benchmark\s*=")
_PRECISION = re.compile(r"set_float32_matmul_precision|matmul\.allow_tf32|fp32_precision")


def variants(tree: Tree, entry: str) -> Iterator[Variant]:
    """The switches that the project does not set itself, behind the imports of its entry."""
    source = tree.read(entry)
    if source is None:
        raise Unsuited(_("{entry} cannot be read").format(entry=entry))
    texts = [code_of(each) for path in tree.paths() if (each := tree.read(path)) is not None]
    lines: list[str] = []
    if any(map(_CONVOLUTION.search, texts)) and not any(map(_REPRODUCIBLE.search, texts)):
        lines.append("torch.backends.cudnn.benchmark = True")
    if not any(map(_PRECISION.search, texts)):
        lines.append('torch.set_float32_matmul_precision("high")')
    if not lines:
        raise Unsuited(_("the project sets these itself"))
    yield {entry: [*_imported(source), behind_imports(source, *lines)]}


def behind_imports(source: Source, *lines: str) -> tuple[int, int, str]:
    """Lines behind the imports at the beginning of a file, with an empty line between where it has one."""
    imports = [each for each in source.tree.body if isinstance(each, (ast.Import, ast.ImportFrom))]
    following = source.tree.body[source.tree.body.index(imports[-1]) + 1 :]
    if following and following[0].lineno > (imports[-1].end_lineno or 0) + 1 and not hasattr(following[0], "body"):
        return changes.before(source, following[0], *lines)
    return changes.after(source, imports[-1], "", *lines)


def _imported(source: Source) -> list[tuple[int, int, str]]:
    known = any(way.imported == "torch" for way in source.scope.bindings.get("torch", ()))
    return [] if known else [changes.import_line(source, "torch")]


META = Recipe("backends", mark("cuDNN benchmark and TF32"), variants)
