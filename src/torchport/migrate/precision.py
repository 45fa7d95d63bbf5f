"""Mixed precision in a program: what belongs under autocast in training and in evaluation, and the changes for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from torchport.check import changes
from torchport.check.names import FUNCTIONS
from torchport.check.rule import Change
from torchport.check.rules.nesting import below
from torchport.check.rules.training import (
    AUTOCASTS,
    NO_GRAD,
    backwards,
    called_functions,
    is_managed,
    loss_of,
    stepped,
)
from torchport.check.source import Source
from torchport.migrate.imports import named, quote
from torchport.migrate.models import calls_model
from torchport.migrate.recipe import Unsuited
from torchport.migrate.training import read_program
from torchport.migrate.tree import Tree
from torchport.text import _

_GENERATES = re.compile(r"sampl|generat|decod|inference|predict", re.IGNORECASE)
_DEEPEST = 3


@dataclass(frozen=True, slots=True)
class Region:
    """What leads to one ``backward``: ``forward`` are the statements from the first to the last that calls a model,
    ``loss`` those behind them that make the loss of it; ``between`` and after stands nothing else.
    """

    source: Source
    backward: ast.Call
    forward: tuple[ast.stmt, ...]
    loss: tuple[ast.stmt, ...]


@dataclass(frozen=True, slots=True)
class Mixed:
    """The changes of each file, and the regions that they put under autocast."""

    variant: dict[str, list[Change]]
    regions: tuple[Region, ...]


def mixed(tree: Tree, entry: str, dtype: str) -> Iterator[Mixed]:
    """Training and evaluation under autocast; then training alone; then the same with the loss in float32.

    Raises Unsuited.
    """
    sources = read_program(tree, entry)
    regions = [region for source in sources for region in _regions(source)]
    tried: list[dict[str, list[Change]]] = []
    for whole in (True, False):
        for evaluate in (True, False):
            variant = _variant(sources, regions, dtype, whole, evaluate)
            if variant and variant not in tried:
                tried.append(variant)
                yield Mixed(variant, tuple(regions))
    if not tried and any(_needs_float32(each.source, part) for each in regions for part in (*each.forward, *each.loss)):
        raise Unsuited(_("autocast refuses the cross entropy of probabilities; BCEWithLogitsLoss goes with it"))


def _variant(
    sources: list[Source], regions: list[Region], dtype: str, whole: bool, evaluate: bool
) -> dict[str, list[Change]]:
    found: dict[str, list[Change]] = {}
    for source in sources:
        torch, missing = named(source, "torch")
        q = quote(source)
        context = f"{torch}.autocast({q}cuda{q}, dtype={torch}.{dtype}, enabled={torch}.cuda.is_available())"
        edits: list[Change] = []
        for region in regions:
            if region.source is source:
                made = _under(region, f"with {context}:", whole)
                if not made:
                    return {}
                edits += made
        if evaluate:
            edits += _evaluation(source, context)
        if edits:
            found[source.path] = [*edits, *missing]
    return found


def _under(region: Region, head: str, whole: bool) -> list[Change]:
    """Forward and loss below a head; where the loss does not bear it, the forward alone, its outputs as float32."""
    source = region.source
    everything = [*region.forward, *region.loss]
    if whole and not any(_needs_float32(source, each) for each in everything):
        return list(below(source, everything, head))
    if not region.loss or any(_needs_float32(source, each) for each in region.forward):
        return []
    outputs = {name for each in region.forward for name in _bound(each)}
    edits = list(below(source, region.forward, head))
    for each in (*region.loss, source.statement(region.backward)):
        for node in ast.walk(each):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in outputs:
                end = source.span(node)[1]
                edits.append((end, end, ".float()"))
        outputs -= _bound(each)
    return edits if len(edits) > 1 else []


def _regions(source: Source) -> list[Region]:
    """The regions of a file. Raises Unsuited where they are not plain, or precision is mixed already."""
    calls = backwards(source)
    if source.calls(*AUTOCASTS):
        raise Unsuited(_("the project uses autocast already"))
    if calls and is_managed(source):
        raise Unsuited(_("a library runs the training: it has a setting of its own for this"))
    if any(call.args and stepped(source, call) is None and _is_closure(source, call) for call in source.calls(".step")):
        raise Unsuited(_("the optimizer takes its steps with a closure, which mixed precision does not go with"))
    found = []
    for call in calls:
        region = _region(source, call)
        if region is None:
            line = f"{source.path}:{call.lineno}"
            raise Unsuited(_("{line}: what leads to this loss is not a plain row of statements").format(line=line))
        found.append(region)
    if not found and not source.calls(".backward"):
        return []
    return found


def _is_closure(source: Source, call: ast.Call) -> bool:
    """Whether ``step`` gets a function that calls ``backward``."""
    given = call.args[0]
    functions = [
        each for each in source.nodes(ast.FunctionDef) if isinstance(given, ast.Name) and each.name == given.id
    ]
    return isinstance(given, ast.Lambda) or any(".backward" in source.code(each) for each in functions)


def _region(source: Source, call: ast.Call) -> Region | None:
    """The statements that lead to a ``backward``, in the innermost block that has a call of a model before it."""
    loss = loss_of(call)
    anchor: ast.AST | None = source.statement(call)
    if loss is None or calls_model(source, loss):
        return None
    while isinstance(anchor, ast.stmt) and not isinstance(anchor, (*FUNCTIONS, ast.ClassDef)):
        block = changes.block(source, anchor)
        chosen = _leading(source, block[: block.index(anchor)], loss) if anchor in block else []
        models = [each for each in chosen if calls_model(source, each)]
        if models:
            first, middle, last = (block.index(each) for each in (models[0], models[-1], chosen[-1]))
            return Region(source, call, tuple(block[first : middle + 1]), tuple(block[middle + 1 : last + 1]))
        anchor = source.parent(anchor)
    return None


def _leading(source: Source, before: list[ast.stmt], loss: ast.expr) -> list[ast.stmt]:
    """Of the statements since the last step, those on which a loss rests, in their order."""
    wanted = _read(loss)
    found: list[ast.stmt] = []
    for statement in reversed(before):
        if any(isinstance(each, ast.Call) and _trains(source, each) for each in ast.walk(statement)):
            break
        if _bound(statement) & wanted:
            found.append(statement)
            wanted |= _read(statement)
    return found[::-1]


def _trains(source: Source, call: ast.Call) -> bool:
    return call in source.calls(".backward") or (stepped(source, call) is not None and _is_step(call))


def _is_step(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "step"


def _bound(statement: ast.stmt) -> set[str]:
    return {each.id for each in ast.walk(statement) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def _read(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _needs_float32(source: Source, node: ast.AST, depth: int = _DEEPEST) -> bool:
    """Whether autocast refuses something: the cross entropy of probabilities, here or in a function called here."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and (
            source.name(call.func) == "torch.nn.functional.binary_cross_entropy"
            or "torch.nn.BCELoss" in source.makers(call.func)
        ):
            return True
    return depth > 0 and any(_needs_float32(source, each, depth - 1) for each in called_functions(source, node))


def _evaluation(source: Source, context: str) -> list[Change]:
    """Autocast beside ``no_grad``, where a loop below it calls a model and draws nothing from what it gives."""
    found: list[Change] = []
    for block in source.nodes(ast.With):
        if any(_no_grad(source, item.context_expr) for item in block.items) and _evaluates(source, block):
            end = source.span(block.items[-1].context_expr)[1]
            found.append((end, end, f", {context}"))
    for function in source.nodes(ast.FunctionDef):
        marked = [each for each in function.decorator_list if _no_grad(source, each)]
        if marked and _evaluates(source, function):
            end = source.span(marked[-1])[1]
            found.append((end, end, f"{source.newline}{source.indent(function) or ''}@{context}"))
    return found


def _no_grad(source: Source, node: ast.expr) -> bool:
    name = source.name(node.func) if isinstance(node, ast.Call) else source.name(node)
    return name in NO_GRAD and not name.endswith("set_grad_enabled")


def _evaluates(source: Source, node: ast.With | ast.FunctionDef) -> bool:
    loops = [each for each in ast.walk(node) if isinstance(each, (ast.For, ast.While))]
    if not any(calls_model(source, loop) for loop in loops):
        return False
    function = node if isinstance(node, ast.FunctionDef) else source.function(node)
    draws = any(isinstance(each, ast.Attribute) and each.attr == "multinomial" for each in ast.walk(node))
    return not draws and not (function is not None and _GENERATES.search(function.name))
