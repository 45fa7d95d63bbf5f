"""Which of several processes runs a piece of code: tests of a rank, and the functions that every rank runs."""

from __future__ import annotations

import ast

from torchport.check.names import FUNCTIONS
from torchport.check.source import Source

DDP = "torch.nn.parallel.DistributedDataParallel"
INIT = "torch.distributed.init_process_group"
SAMPLER = "torch.utils.data.DistributedSampler"

# What all ranks of a group have to call together, and which argument the group is.
COLLECTIVES = {
    f"torch.distributed.{name}": place
    for place, names in {
        0: "barrier monitored_barrier",
        2: "all_gather all_gather_into_tensor all_gather_object all_reduce all_reduce_coalesced all_to_all broadcast "
        "broadcast_object_list",
        3: "gather gather_object reduce reduce_scatter reduce_scatter_tensor scatter scatter_object_list",
        4: "all_to_all_single",
    }.items()
    for name in names.split()
}
_RANKS = frozenset(
    "rank local_rank global_rank world_rank node_rank my_rank gpu_id gpu proc_id process_index process_id".split()
)
_RANK_CALLS = frozenset("get_rank get_local_rank get_node_local_rank get_global_rank comm_rank".split())
_FIRST = frozenset(
    "is_main_process is_local_main_process is_master is_main is_rank_zero is_rank0 is_primary is_first_rank is_chief "
    "is_global_zero is_world_process_zero is_local_process_zero is_master_process master_process main_process "
    "is_root is_logger is_dist_avail_and_main".split()
)


def is_rank(node: ast.AST) -> bool:
    """Whether an expression is the number of this process, as far as its name says so."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            name = name.lower().lstrip("_")
            return name in _RANKS or name.endswith("_rank")
        case ast.Call(func=ast.Name(id="int"), args=[inner]):
            return is_rank(inner)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args):
            if name in _RANK_CALLS:
                return True
            return name in ("get", "getenv") and bool(args) and _is_rank_key(args[0])
        case ast.Subscript(slice=key):
            return _is_rank_key(key)
    return False


def _is_rank_key(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.upper().endswith("RANK")


def mentions_rank(node: ast.AST) -> bool:
    """Whether an expression has anything to do with the rank."""
    return any(is_rank(each) or _says_first(each) for each in ast.walk(node))


def _says_first(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.lower().lstrip("_") in _FIRST
        case ast.Call(func=function):
            return _says_first(function)
    return False


def holds_for_first(test: ast.expr) -> bool:
    """Whether a test of several ranks lets only the first one pass: ``rank == 0`` say."""
    match test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return (is_rank(left) and _is_zero(right)) or (is_rank(right) and _is_zero(left))
        case ast.Compare(left=left, ops=[ast.In()], comparators=[ast.Tuple(elts=given) | ast.List(elts=given)]):
            return is_rank(left) and any(_is_zero(each) for each in given) and all(_is_small(each) for each in given)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return is_rank(inner)
        case ast.BoolOp(op=ast.And(), values=given):
            return any(holds_for_first(each) for each in given)
        case ast.BoolOp(op=ast.Or(), values=given):
            return any(holds_for_first(each) for each in given) and all(
                holds_for_first(each) or _is_alone(each) for each in given
            )
    return _says_first(test)


def holds_for_others(test: ast.expr) -> bool:
    """Whether a test keeps out the first rank, and it alone: ``rank != 0`` say."""
    match test:
        case ast.Compare(left=left, ops=[ast.NotEq() | ast.Gt()], comparators=[right]):
            return is_rank(left) and _is_zero(right)
        case ast.Compare(left=left, ops=[ast.NotIn()], comparators=[ast.Tuple(elts=given) | ast.List(elts=given)]):
            return is_rank(left) and any(_is_zero(each) for each in given) and all(_is_small(each) for each in given)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return holds_for_first(inner)
    return False


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0 and node.value is not False


def _is_small(node: ast.expr) -> bool:
    return ast.unparse(node) in ("0", "-1", "None")


def _is_alone(test: ast.expr) -> bool:
    """What people test for a run of one process: ``local_rank == -1``, ``not distributed``."""
    match test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return is_rank(left) and ast.unparse(right) == "-1"
        case ast.UnaryOp(op=ast.Not()):
            return True
    return False


def first_rank_branch(source: Source, node: ast.AST) -> ast.If | None:
    """The branch around a node, in its own function, that only the first rank enters."""
    child = node
    for above in source.ancestors(node):
        if isinstance(above, (*FUNCTIONS, ast.ClassDef)):
            return None
        if isinstance(above, ast.If):
            inside = any(child is each for each in above.body)
            if (inside and holds_for_first(above.test)) or (
                not inside and child is not above.test and holds_for_others(above.test)
            ):
                return above
        child = above
    return None


def is_guarded(source: Source, node: ast.AST) -> bool:
    """Whether it depends on the rank, in any way, if a node is reached in its function."""
    child = node
    for above in source.ancestors(node):
        if isinstance(above, (ast.If, ast.IfExp)) and mentions_rank(above.test):
            return True
        if isinstance(above, ast.BoolOp) and any(mentions_rank(each) for each in above.values):
            return True
        for block in (getattr(above, "body", None), getattr(above, "orelse", None)):
            if isinstance(block, list) and any(child is each for each in block):
                before = block[: next(i for i, each in enumerate(block) if each is child)]
                if any(_leaves(each) for each in before):
                    return True
        if isinstance(above, FUNCTIONS):
            return any(mentions_rank(each) or "rank_zero" in ast.unparse(each) for each in decorators(above))
        child = above
    return False


def decorators(function: ast.AST) -> list[ast.expr]:
    """What decorates a function."""
    return list(getattr(function, "decorator_list", ()))


def _leaves(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.If)
        and mentions_rank(statement.test)
        and isinstance(statement.body[-1], (ast.Return, ast.Continue, ast.Raise, ast.Break))
    )


def is_distributed(source: Source) -> bool:
    """Whether a file joins a process group or wraps a model for several processes."""
    return bool(source.calls(INIT, DDP))


def home(source: Source, node: ast.AST) -> ast.AST:
    """The function in which a node stands, or the module."""
    return source.function(node) or source.tree


def run_by_every_rank(source: Source) -> list[ast.AST]:
    """The functions that join a process group or wrap a model, and those of this file that they call unguarded."""
    found = list(dict.fromkeys(home(source, call) for call in source.calls(INIT, DDP)))
    functions = {each.name: each for each in source.nodes(ast.FunctionDef) if source.parent(each) is source.tree}
    callers: dict[ast.AST, list[ast.Call]] = {}
    for call in source.nodes(ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id in functions:
            callers.setdefault(functions[call.func.id], []).append(call)
    changed = True
    while changed and found:
        changed = False
        for function, calls in callers.items():
            if function in found or any(is_guarded(source, call) for call in calls):
                continue
            if any(home(source, call) in found for call in calls if home(source, call) is not source.tree):
                found.append(function)
                changed = True
    return found
