"""Moves to a GPU: what asks for CUDA, what stands behind a test for it, and the device that a file has chosen."""

from __future__ import annotations

import ast
import re

from torchport.check.source import Source, argument, constant

_ASKS = re.compile(r"cuda|gpu|device|accelerator|is_available|hip|rocm", re.IGNORECASE)
_TENSOR_TYPE = re.compile(r"torch\.cuda\.\w+Tensor$")


def is_cuda_type(name: str) -> bool:
    """Whether a dotted name, or the text of ``.type(…)``, is ``torch.cuda.FloatTensor`` or one of its kind."""
    return _TENSOR_TYPE.match(name) is not None


def asks_for_cuda(source: Source, test: ast.AST) -> bool:
    """Whether a condition is about GPUs, by the words that it uses."""
    return _ASKS.search(source.code(test)) is not None


def is_guarded(source: Source, node: ast.AST) -> bool:
    """Whether something has made sure that there is a GPU before a node runs, or the node stands in a ``try``."""
    child = node
    for above in source.ancestors(node):
        match above:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if child is not test:
                if asks_for_cuda(source, test):
                    return True
            case ast.BoolOp(values=values):
                if any(each is not child and asks_for_cuda(source, each) for each in values):
                    return True
            case ast.Try(body=body):
                if any(child is each for each in body):
                    return True
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if _ASKS.search(above.name) or any(asks_for_cuda(source, each) for each in above.decorator_list):
                    return True
        for block in (getattr(above, "body", None), getattr(above, "orelse", None)):
            if isinstance(block, list) and any(child is each for each in block) and _checked(source, block, child):
                return True
        child = above
    return False


def _checked(source: Source, block: list[ast.stmt], before: ast.AST) -> bool:
    """Whether a block asserts that there is a GPU, or leaves where there is none, ahead of one of its statements."""
    for statement in block:
        if statement is before:
            return False
        if isinstance(statement, ast.Assert) and asks_for_cuda(source, statement.test):
            return True
        if isinstance(statement, ast.If) and statement.body and asks_for_cuda(source, statement.test):
            last = statement.body[-1]
            leaves = isinstance(last, ast.Expr) and source.code(last).startswith(("exit(", "sys.exit(", "quit("))
            if leaves or isinstance(last, (ast.Return, ast.Raise, ast.Continue)):
                return True
    return False


def is_device(source: Source, node: ast.AST | None) -> bool:
    """Whether an expression is a device, by what made it or by its name."""
    match node:
        case None:
            return False
        case ast.Constant(value=str(text)):
            return re.fullmatch(r"(cpu|cuda|mps|xpu|meta)(:\d+)?", text) is not None
        case ast.Name(id=name) | ast.Attribute(attr=name) if name.lower().rstrip("_").endswith("device"):
            return True
        case ast.Attribute() if source.name(node).startswith("torch."):
            return False
    values = source.values(node)
    return bool(values) and all(
        (isinstance(each, ast.Call) and source.name(each.func) == "torch.device")
        or (isinstance(each, ast.Constant) and is_device(source, each))
        or (isinstance(each, ast.Attribute) and each.attr == "device")
        for each in values
    )


def is_cpu(source: Source, node: ast.AST) -> bool:
    """Whether a device is certainly the CPU."""
    values = source.values(node)
    return bool(values) and all(
        constant(each) == "cpu"
        or (
            isinstance(each, ast.Call)
            and source.name(each.func) == "torch.device"
            and constant(argument(each, "device", 0) or argument(each, "type")) == "cpu"
        )
        for each in values
    )


def target(source: Source, call: ast.Call) -> ast.expr | None:
    """The device that ``.to(…)`` is given, None where it has none or it is not known to be one."""
    given = argument(call, "device", 0)
    return given if is_device(source, given) else None


def moves(source: Source, call: ast.Call) -> bool:
    """Whether a call is ``x.cuda(…)`` or ``x.to(device)``."""
    if not isinstance(call.func, ast.Attribute) or source.name(call.func):
        return False
    return call.func.attr == "cuda" or (call.func.attr == "to" and target(source, call) is not None)


def chosen_device(source: Source, node: ast.AST) -> str:
    """The name of the device that the file has chosen and that a node can use; empty where there is none."""
    start = source.span(node)[0]
    for name in ("device", "DEVICE", "dev"):
        found = source.scope_at(node).find(name)
        if found is None:
            continue
        scope, ways = found
        ahead = all(_stands_in(source, way.node, scope.node) and source.span(way.node)[0] < start for way in ways)
        if ahead and all(_makes_device(source, way.value) or isinstance(way.node, ast.arg) for way in ways):
            return name
        return ""
    return ""


def _makes_device(source: Source, node: ast.expr | None) -> bool:
    return isinstance(node, ast.Call) and source.name(node.func) == "torch.device"


def _stands_in(source: Source, node: ast.AST, scope: ast.AST) -> bool:
    above = source.parent(node)
    return above is scope or (isinstance(above, ast.arguments) and source.parent(above) is scope)
