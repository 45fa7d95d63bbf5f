"""Where a file trains: the losses whose gradients it takes, the optimizers that step, the loops around them."""

from __future__ import annotations

import ast
import re

from torchport.check.names import FUNCTIONS
from torchport.check.rules.kinds import is_optimizer
from torchport.check.source import Source, parameters

SCALERS = frozenset({"torch.amp.GradScaler", "torch.cuda.amp.GradScaler", "torch.cpu.amp.GradScaler"})
AUTOCASTS = frozenset({"torch.amp.autocast", "torch.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast"})
NO_GRAD = frozenset(
    {
        "torch.no_grad",
        "torch.inference_mode",
        "torch.set_grad_enabled",
        "torch.autograd.no_grad",
        "torch.autograd.grad_mode.no_grad",
        "torch.autograd.inference_mode",
    }
)
_OPTIMIZER = re.compile(r"(^|_)(opt|optim|optimi[sz]er)([A-Z_]|\d*$)|optimi[sz]er\w*$", re.IGNORECASE)
_LIBRARY = re.compile(
    r"(accelerate|lightning|pytorch_lightning|deepspeed|fastai|ignite|apex|colossalai|transformers\.Trainer)\b"
)

Loop = ast.For | ast.While


def last_name(node: ast.AST) -> str:
    """The last word of a dotted name, ``optimizer`` of ``self.optimizer``."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def receiver(call: ast.Call) -> ast.expr | None:
    """The object whose method is called."""
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def loss_of(call: ast.Call) -> ast.expr | None:
    """What a ``.backward()`` starts at, behind a scaler where there is one."""
    owner = receiver(call)
    match owner:
        case ast.Call(func=ast.Attribute(attr="scale"), args=[inner]):
            return inner
    return owner


def backwards(source: Source) -> list[ast.Call]:
    """The calls of ``.backward()`` on an object; not ``super().backward(…)``, and no function of a module."""
    return [
        call
        for call in source.calls(".backward")
        if "super(" not in source.code(call.func) and not source.name(call.func).endswith("autograd.backward")
    ]


def looks_like_optimizer(source: Source, node: ast.AST) -> bool:
    """An optimizer of torch, or what a function gets under the name of one."""
    if source.makers(node):
        return is_optimizer(source, node)
    return bool(_OPTIMIZER.search(last_name(node)))


def optimizer_steps(source: Source) -> list[ast.Call]:
    """The calls of ``optimizer.step()``, and of ``scaler.step(optimizer)``."""
    return [call for call in source.calls(".step") if stepped(source, call) is not None]


def stepped(source: Source, call: ast.Call) -> ast.expr | None:
    """The optimizer that a ``.step`` is for; None where it is for another object, a scheduler say."""
    owner = call.args[0] if len(call.args) == 1 else receiver(call) if not call.args else None
    return owner if owner is not None and looks_like_optimizer(source, owner) else None


def inner_loop(source: Source, node: ast.AST) -> Loop | None:
    """The innermost loop around a node in its function."""
    loops = source.loops(node)
    return loops[0] if loops else None


def within(source: Source, node: ast.AST, outer: ast.AST) -> bool:
    """Whether a node is part of another one."""
    return any(above is outer for above in source.ancestors(node))


def comes_before(first: ast.AST, second: ast.AST) -> bool:
    """Whether a node begins before another one in the text."""
    one: ast.expr = first  # type: ignore[assignment]
    two: ast.expr = second  # type: ignore[assignment]
    return (one.lineno, one.col_offset) < (two.lineno, two.col_offset)


def conditions(source: Source, node: ast.AST) -> set[tuple[ast.AST, bool]]:
    """The branches around a node in its function: each ``if`` with whether the node is in its first part."""
    found: set[tuple[ast.AST, bool]] = set()
    child = node
    for above in source.ancestors(node):
        if isinstance(above, FUNCTIONS):
            break
        if isinstance(above, (ast.If, ast.Try)):
            found.add((above, any(child is each for each in above.body)))
        child = above
    return found


def always_before(source: Source, first: ast.AST, second: ast.AST) -> bool:
    """Whether a node of the same function runs whenever a later one does, loops that run zero times aside."""
    return (
        source.function(first) is source.function(second)
        and comes_before(first, second)
        and conditions(source, first) <= conditions(source, second)
    )


def autocast_around(source: Source, node: ast.AST) -> ast.With | None:
    """The ``with autocast(…):`` around a node in its function; not one that is switched off."""
    for above in source.ancestors(node):
        if isinstance(above, FUNCTIONS):
            return None
        if isinstance(above, ast.With):
            for item in above.items:
                call = item.context_expr
                if isinstance(call, ast.Call) and source.name(call.func) in AUTOCASTS:
                    off = any(
                        isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                        for keyword in call.keywords
                        if keyword.arg == "enabled"
                    )
                    return None if off else above
    return None


def without_gradients(source: Source, node: ast.AST) -> bool:
    """Whether something around a node switches gradients off: ``with torch.no_grad():`` or a decorator."""
    for above in source.ancestors(node):
        if isinstance(above, (ast.With, ast.AsyncWith)):
            for item in above.items:
                call = item.context_expr
                name = source.name(call.func) if isinstance(call, ast.Call) else source.name(call)
                if name in NO_GRAD or "no_grad" in ast.unparse(call) or "inference_mode" in ast.unparse(call):
                    return True
        if isinstance(above, FUNCTIONS):
            for each in getattr(above, "decorator_list", ()):
                if re.search(r"no_?grad|inference_?mode", ast.unparse(each)):
                    return True
    return False


def called_functions(source: Source, node: ast.AST) -> list[ast.FunctionDef]:
    """The functions of this file that a part of it calls by their plain names."""
    functions = {each.name: each for each in source.nodes(ast.FunctionDef) if source.parent(each) is source.tree}
    return [
        functions[call.func.id]
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in functions
    ]


def parameter_names(function: ast.AST) -> set[str]:
    """The names of a function's parameters."""
    return {each.arg for each in parameters(function)} if isinstance(function, FUNCTIONS) else set()


def uses_cuda(source: Source) -> bool:
    """Whether the code of a file, not only a comment in it, has anything to do with a GPU."""
    if "cuda" not in source.text and "accelerator" not in source.text:
        return False
    if source.calls(".cuda") or any(node.attr in ("cuda", "accelerator") for node in source.nodes(ast.Attribute)):
        return True
    return any(isinstance(node.value, str) and node.value[:4] == "cuda" for node in source.nodes(ast.Constant))


def is_managed(source: Source) -> bool:
    """Whether a library runs the loop for the user, and so devices, precision and gradients."""
    plain = (each.name for node in source.nodes(ast.Import) for each in node.names)
    parts = (f"{node.module}.{each.name}" for node in source.nodes(ast.ImportFrom) for each in node.names)
    return any(_LIBRARY.match(name) for name in (*plain, *parts))
