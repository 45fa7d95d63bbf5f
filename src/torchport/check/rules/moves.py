"""Moves to a GPU: what asks for CUDA, what stands behind a test for it, and the device that a file has chosen."""

from __future__ import annotations

import ast
import re

from torchport.check.source import Source, argument, constant

_ASKS = re.compile(r"cuda|gpu|device|accelerator|is_available|hip|rocm", re.IGNORECASE)
COUNTS = re.compile(r"device_count|world_size|num_gpu|n_gpu|ngpu|gpus|multi_?gpu|x_gpu", re.IGNORECASE)
_PREPARE = ("setUp", "setUpClass", "setup_method", "setup_class")
_TENSOR_TYPE = re.compile(r"torch\.cuda\.\w+Tensor$")


def is_cuda_type(name: str) -> bool:
    """Whether a dotted name, or the text of ``.type(…)``, is ``torch.cuda.FloatTensor`` or one of its kind."""
    return _TENSOR_TYPE.match(name) is not None


def asks_for_cuda(source: Source, test: ast.AST, words: re.Pattern[str] = _ASKS) -> bool:
    """Whether a condition is about GPUs, by the words that it uses."""
    return words.search(source.code(test)) is not None


def is_guarded(source: Source, node: ast.AST, words: re.Pattern[str] = _ASKS) -> bool:
    """Whether something asks for a GPU before a node runs, in these words, or the node stands in a ``try``."""
    child = node
    for above in source.ancestors(node):
        match above:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if child is not test:
                if asks_for_cuda(source, test, words):
                    return True
            case ast.BoolOp(values=values):
                if any(each is not child and asks_for_cuda(source, each, words) for each in values):
                    return True
            case ast.Try(body=body):
                if any(child is each for each in body):
                    return True
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if words.search(above.name) or any(asks_for_cuda(source, each, words) for each in above.decorator_list):
                    return True
                if isinstance(above, ast.ClassDef) and any(_skips(source, each, words) for each in above.body):
                    return True
        for block in (getattr(above, "body", None), getattr(above, "orelse", None)):
            if (
                isinstance(block, list)
                and any(child is each for each in block)
                and _checked(source, block, child, words)
            ):
                return True
        child = above
    return False


def _skips(source: Source, node: ast.stmt, words: re.Pattern[str]) -> bool:
    """Whether the preparation of a test asks: it skips the tests of its class, and its own moves are behind that."""
    if not isinstance(node, ast.FunctionDef) or node.name not in _PREPARE:
        return False
    return any(isinstance(each, ast.If) and asks_for_cuda(source, each.test, words) for each in node.body)


def _checked(source: Source, block: list[ast.stmt], before: ast.AST, words: re.Pattern[str]) -> bool:
    """Whether a block asserts that there is a GPU, or leaves where there is none, ahead of one of its statements."""
    for statement in block:
        if statement is before:
            return False
        if isinstance(statement, ast.Assert) and asks_for_cuda(source, statement.test, words):
            return True
        if isinstance(statement, ast.If) and statement.body and asks_for_cuda(source, statement.test, words):
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
        case ast.Constant():
            return False
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


def is_for_gpus_alone(source: Source) -> bool:
    """Whether a file makes no sense without a GPU: it has kernels, or processes that speak NCCL."""
    kernels = ("triton", "numba.cuda", "cupy", "pycuda", "torch.utils.cpp_extension")
    imports = [way.imported for ways in source.scope.bindings.values() for way in ways if way.imported]
    if any(name == each or name.startswith(f"{each}.") for name in imports for each in kernels):
        return True
    starts = source.calls("torch.distributed.init_process_group")
    return any(constant(argument(call, "backend", 0)) == "nccl" for call in starts)
