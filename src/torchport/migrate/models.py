"""Models: which objects of a program are trained, where they are made, and what calls them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from torchport.check import changes
from torchport.check.names import FUNCTIONS
from torchport.check.rule import Change
from torchport.check.rules.kinds import is_module
from torchport.check.rules.training import called_functions, looks_like_optimizer, receiver
from torchport.check.source import Source, constant
from torchport.migrate.imports import quote

_ASKED = (".parameters", ".named_parameters", ".train", ".eval")
# Methods of a model that do not compute with it.
_KEEPING = frozenset(
    "parameters named_parameters modules children state_dict load_state_dict train eval zero_grad to cuda cpu apply "
    "requires_grad_ init_hidden init_weights compile".split()
)
_DEEPEST = 3


@dataclass(frozen=True, slots=True)
class Model:
    """A model whose parameters an optimizer gets. ``made`` is the last statement that gives it its value."""

    source: Source
    name: str
    made: ast.stmt


def trained(source: Source) -> list[Model]:
    """The models of a file that are trained, where they are made in the function that makes their optimizer."""
    found: dict[tuple[str, ast.stmt], Model] = {}
    for call in source.nodes(ast.Call):
        name = source.name(call.func)
        if not name.startswith("torch.optim.") or name.count(".") != 2 or not call.args:
            continue
        for value in (call.args[0], *source.values(call.args[0])):
            for asked in ast.walk(value):
                if isinstance(asked, ast.Call) and f".{_method(asked)}" in _ASKED[:2]:
                    owner = receiver(asked)
                    made = _made(source, owner, call) if owner is not None else None
                    if owner is not None and made is not None:
                        found.setdefault((source.code(owner), made), Model(source, source.code(owner), made))
    return list(found.values())


def on_gpu_only(source: Source, models: list[Model], condition: str, call: str) -> list[Change]:
    """``if condition:`` with ``call`` for each model, behind the last of them; one for each function."""
    step = changes.step(source)
    found: list[Change] = []
    for home in dict.fromkeys(source.function(each.made) for each in models):
        here = [each for each in models if source.function(each.made) is home]
        last = max(here, key=lambda each: each.made.lineno).made
        lines = [f"{step}{name}.{call}" for name in dict.fromkeys(each.name for each in here)]
        found.append(changes.after(source, last, f"if {condition}:", *lines))
    return found


def calls_model(source: Source, node: ast.AST, depth: int = _DEEPEST) -> bool:
    """Whether something calls a model: itself, one of its methods, or a function that gets it or knows it."""
    for call in ast.walk(node):
        if not isinstance(call, ast.Call):
            continue
        if is_model(source, call.func):
            return True
        owner = receiver(call)
        if owner is not None and is_model(source, owner) and _method(call) not in _KEEPING:
            return True
        if source.name(call.func).split(".")[0] not in ("torch", "print") and any(
            is_model(source, each) for each in call.args
        ):
            return True
    return depth > 0 and any(
        calls_model(source, each, depth - 1)
        for each in called_functions(source, node)
        if each is not source.function(node)
    )


def is_model(source: Source, node: ast.AST) -> bool:
    """Whether an object is a model: its parameters are asked for, or its mode is set, or it is made as one."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    if source.code(node) in _asked(source):
        return True
    return is_module(source, node) and not any(each.endswith("Loss") for each in source.makers(node))


def _asked(source: Source) -> frozenset[str]:
    """The objects of a file whose parameters are asked for, or whose mode is set."""
    known: frozenset[str] | None = source.remembered.get("asked")
    if known is None:
        owners = [owner for call in source.calls(*_ASKED) if (owner := receiver(call)) is not None]
        known = frozenset(
            source.code(owner)
            for owner in owners
            if isinstance(owner, (ast.Name, ast.Attribute))
            and source.code(owner) != "self"
            and not looks_like_optimizer(source, owner)
        )
        source.remembered["asked"] = known
    return known


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _made(source: Source, owner: ast.expr, optimizer: ast.Call) -> ast.stmt | None:
    """The statement behind which a model is complete and not yet used, in the block of its optimizer or above it."""
    code = source.code(owner)
    function = source.function(optimizer)
    given = [
        each
        for each in _statements(source)
        if source.function(each) is function and each.lineno < optimizer.lineno and _gives(source, each, code)
    ]
    around = list(_up(source, optimizer))
    for statement in reversed(given):
        for each in _up(source, statement):  # out of the branches that the optimizer is not in
            if any(source.parent(each) is source.parent(other) for other in around) and each not in around:
                return each
    return None


def _gives(source: Source, statement: ast.stmt, code: str) -> bool:
    """Whether a statement makes an object, moves it or changes it in place."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return any(source.code(each) == code for each in targets)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        owner = receiver(statement.value)
        return owner is not None and source.code(owner) == code and _method(statement.value) in ("to", "cuda", "apply")
    return False


def _statements(source: Source) -> list[ast.stmt]:
    found: list[ast.stmt] = [*source.nodes(ast.Assign), *source.nodes(ast.AnnAssign), *source.nodes(ast.Expr)]
    return sorted(found, key=lambda each: each.lineno)


def _up(source: Source, node: ast.AST) -> Iterator[ast.stmt]:
    """The statements around a node in its function, innermost first."""
    if isinstance(node, ast.stmt):
        yield node
    for above in source.ancestors(node):
        if isinstance(above, FUNCTIONS):
            return
        if isinstance(above, ast.stmt):
            yield above


def on_cuda(source: Source, model: Model, torch: str) -> str:
    """A condition that holds where a model is on CUDA, in the words of what it is moved to."""
    for call in source.calls(".to"):
        given = call.args[0] if call.args else None
        if not isinstance(given, ast.Name) or not _gives(source, source.statement(call), model.name):
            continue
        values = source.values(given)
        if values and all(_is_device(source, each) for each in values):
            return f"{given.id}.type == {quote(source)}cuda{quote(source)}"
        cuda = {constant(each): source.code(each) for each in values if constant(each) != "cpu"}
        if list(cuda) == ["cuda"]:
            return f"{given.id} == {cuda['cuda']}"
        if cuda and all(isinstance(each, str) and each.startswith("cuda") for each in cuda):
            return f"{given.id} != {quote(source)}cpu{quote(source)}"
    return f"{torch}.cuda.is_available()"


def _is_device(source: Source, node: ast.expr) -> bool:
    name = source.name(node.func) if isinstance(node, ast.Call) else ""
    return name in ("torch.device", "torch.accelerator.current_accelerator")
