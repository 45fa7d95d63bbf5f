"""What of torch's interface a file uses that was not always there, or is there no more: the torch that it needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from torchport.check.rules.apis import uses
from torchport.check.rules.dated import REMOVED
from torchport.check.source import Source

# The first torch that has them, as its release notes say. "." at the end: a module with all that is in it.
SINCE = {
    "torch.compile": "2.0",
    "torch._dynamo.": "2.0",
    "torch.func.": "2.0",
    "torch.set_default_device": "2.0",
    "torch.nn.functional.scaled_dot_product_attention": "2.0",
    "torch.distributed.device_mesh.": "2.2",
    "torch.distributed.checkpoint.state_dict.": "2.2",
    "torch.export.": "2.1",
    "torch.nn.attention.": "2.3",
    "torch.amp.GradScaler": "2.3",
    "torch.library.custom_op": "2.4",
    "torch.nn.RMSNorm": "2.4",
    "torch.serialization.add_safe_globals": "2.4",
    "torch.nn.attention.flex_attention.": "2.5",
    "torch.distributed.tensor.": "2.5",
    "torch.accelerator.": "2.6",
    "torch.distributed.fsdp.fully_shard": "2.6",
    "torch.library.triton_op": "2.6",
    "torch.optim.Muon": "2.9",
}


@dataclass(frozen=True, slots=True)
class Use:
    """A name at a line, with the torch that brought it or took it away."""

    name: str
    line: int
    since: str | None = None
    gone: str | None = None


def versions_needed(source: Source) -> Iterator[Use]:
    """The uses in a file, each name once. What stands behind a test of the version, or in a try, needs nothing."""
    seen = set()
    for hit in uses(source, REMOVED):
        name = str(hit.words["name"])
        if name not in seen and isinstance(hit.at, ast.AST):
            seen.add(name)
            yield Use(name, getattr(hit.at, "lineno", 1), gone=str(hit.words["gone"]))
    for name, node in _named(source):
        since = _since(name)
        if since and name not in seen and not _guarded(source, node):
            seen.add(name)
            yield Use(name, getattr(node, "lineno", 1), since=since)


def _named(source: Source) -> Iterator[tuple[str, ast.AST]]:
    for statement in source.nodes(ast.ImportFrom):
        for alias in statement.names if not statement.level and statement.module else ():
            yield f"{statement.module}.{alias.name}", statement
    for node in source.nodes(ast.Attribute):
        above = source.parent(node)
        name = None if isinstance(above, ast.Attribute) else source.name(node)
        if name:
            yield name, node


def _since(name: str) -> str | None:
    """The latest of the rows that the name is, or is in."""
    if not name.startswith("torch."):
        return None
    fitting = [row for row in SINCE if name == row.removesuffix(".") or (row[-1] == "." and name.startswith(row))]
    return SINCE[max(fitting, key=len)] if fitting else None


def _guarded(source: Source, node: ast.AST) -> bool:
    for above in source.ancestors(node):
        if isinstance(above, ast.Try):
            return True
        if isinstance(above, ast.If | ast.IfExp):
            test = source.code(above.test).lower()
            if any(word in test for word in ("hasattr", "version", "major", "minor", "compile")):
                return True
    return False
