"""What names mean: imports, aliases and scopes of one file, so that ``th.zeros`` is known as ``torch.zeros``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SCOPES = (ast.Module, ast.ClassDef, *FUNCTIONS, *COMPREHENSIONS)

# Where torch keeps what it shows elsewhere: both names are one.
_SHOWN_AS = {
    "torch.utils.data.dataloader.": "torch.utils.data.",
    "torch.utils.data.dataset.": "torch.utils.data.",
    "torch.utils.data.distributed.": "torch.utils.data.",
    "torch.utils.data.sampler.": "torch.utils.data.",
    "torch.nn.parallel.distributed.": "torch.nn.parallel.",
    "torch.nn.parallel.data_parallel.": "torch.nn.parallel.",
    "torch.nn.modules.": "torch.nn.",
    "torch.nn.parameter.": "torch.nn.",
    "torch.autograd.variable.": "torch.autograd.",
    "torch.distributed.distributed_c10d.": "torch.distributed.",
    "torch.amp.autocast_mode.": "torch.amp.",
    "torch.amp.grad_scaler.": "torch.amp.",
    "torch.cuda.amp.autocast_mode.": "torch.cuda.amp.",
    "torch.cuda.amp.grad_scaler.": "torch.cuda.amp.",
}


@lru_cache(4096)
def canonical(name: str) -> str:
    """The one name by which rules know a thing of torch."""
    for private, public in _SHOWN_AS.items():
        if name.startswith(private):
            name = public + name.rsplit(".", 1)[1]
            break
    if name.startswith("torch.optim.") and not name.startswith("torch.optim.lr_scheduler") and name.count(".") == 3:
        name = "torch.optim." + name.rsplit(".", 1)[1]  # torch.optim.adam.Adam
    return "torch.nn.DataParallel" if name == "torch.nn.parallel.DataParallel" else name


@dataclass(slots=True)
class Binding:
    """One way in which a name gets a value. ``value`` is the expression of a plain assignment, else None;
    ``imported`` the dotted name of an import.
    """

    node: ast.AST
    value: ast.expr | None = None
    imported: str = ""


@dataclass(slots=True)
class Scope:
    """A module, class, function or comprehension, with what is bound in it."""

    node: ast.AST
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    elsewhere: set[str] = field(default_factory=set)  # global and nonlocal

    def bind(self, name: str, binding: Binding) -> None:
        self.bindings.setdefault(name, []).append(binding)

    def find(self, name: str) -> tuple[Scope, list[Binding]] | None:
        """The bindings that a name has here: from the innermost scope, as Python looks; not through classes."""
        scope: Scope | None = self
        while scope is not None:
            if (
                name in scope.bindings
                and name not in scope.elsewhere
                and (scope is self or not isinstance(scope.node, ast.ClassDef))
            ):
                return scope, scope.bindings[name]
            scope = scope.parent
        return None


# The nodes for which ``bindings`` has something to say.
BINDERS = frozenset(
    {ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor, ast.comprehension}
    | {ast.NamedExpr, ast.withitem, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler}
)


def bindings(node: ast.AST, module: str) -> Iterator[tuple[str, Binding]]:
    """The names that one node binds in the scope in which it stands."""
    match node:
        case ast.Import():
            for alias in node.names:
                bound = alias.asname or alias.name.split(".")[0]
                yield bound, Binding(node, imported=alias.name if alias.asname else bound)
        case ast.ImportFrom():
            base = _absolute(node, module)
            for alias in node.names:
                if alias.name != "*":
                    yield alias.asname or alias.name, Binding(node, imported=f"{base}.{alias.name}")
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _targets(target, node, value)
        case ast.AnnAssign(target=target, value=value) if value is not None:
            yield from _targets(target, node, value)
        case ast.AugAssign(target=target) | ast.For(target=target) | ast.AsyncFor(target=target):
            yield from _targets(target, node, None)
        case ast.comprehension(target=target):
            yield from _targets(target, node, None)
        case ast.NamedExpr(target=target, value=value):
            yield from _targets(target, node, value)
        case ast.withitem(context_expr=value, optional_vars=target) if target is not None:
            yield from _targets(target, node, None)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, Binding(node)
        case ast.ExceptHandler(name=name) if name:
            yield name, Binding(node)


def _absolute(node: ast.ImportFrom, module: str) -> str:
    """The module that ``from … import`` names; ``module`` is the name of the file that says so."""
    if not node.level:
        return node.module or ""
    parents = module.split(".")[: -node.level] if module else []
    return ".".join([*parents, *([node.module] if node.module else [])])


def _targets(target: ast.expr, node: ast.AST, value: ast.expr | None) -> Iterator[tuple[str, Binding]]:
    match target:
        case ast.Name(id=name):
            yield name, Binding(node, value)
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            values = (
                value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(targets) else None
            )
            for index, each in enumerate(targets):
                yield from _targets(each, node, values[index] if values else None)
        case ast.Starred(value=each):
            yield from _targets(each, node, None)


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below one, but for the words load, store and delete, which all names share."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [each for each in value if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            found.append(value)
    return found


def in_body(function: ast.AST, child: ast.AST) -> bool:
    """Whether a child of a function belongs to its body: defaults, decorators and annotations are read outside."""
    if isinstance(function, ast.Lambda):
        return child is function.body
    return isinstance(child, ast.stmt) and child not in getattr(function, "decorator_list", ())
