"""Modules of torch as classes: which layers hold weights, and what runs when a module is called."""

from __future__ import annotations

import ast

from torchport.check.source import Source, argument, is_module_class

WITH_WEIGHTS = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Linear Bilinear Embedding EmbeddingBag Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d "
        "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm LayerNorm GroupNorm RMSNorm RNN LSTM GRU RNNCell LSTMCell "
        "GRUCell MultiheadAttention Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer "
        "TransformerDecoderLayer PReLU LazyLinear LazyConv1d LazyConv2d LazyConv3d"
    ).split()
)
_WEIGHTED_LOSSES = frozenset(f"torch.nn.{name}" for name in ("CrossEntropyLoss", "NLLLoss", "BCELoss"))
_HOLDERS = frozenset(f"torch.nn.{name}" for name in ("Sequential", "ModuleList", "ModuleDict"))
_DEEPEST = 4  # classes in classes


def has_weights(source: Source, node: ast.AST, depth: int = _DEEPEST) -> bool:
    """Whether an expression makes a module that holds parameters or buffers; False where that is unknown."""
    if not isinstance(node, ast.Call) or depth <= 0:
        return False
    name = source.name(node.func)
    if isinstance(node.func, ast.Attribute) and not name:
        return node.func.attr in ("to", "cuda") and has_weights(source, node.func.value, depth - 1)
    if name in WITH_WEIGHTS:
        return True
    if name in _WEIGHTED_LOSSES or name == "torch.nn.BCEWithLogitsLoss":
        return any(argument(node, each) is not None for each in ("weight", "pos_weight"))
    if name in _HOLDERS:
        inner = [each.elts if isinstance(each, (ast.List, ast.Tuple)) else [each] for each in node.args]
        return any(has_weights(source, each, depth - 1) for group in inner for each in group)
    owner = class_named(source, name)
    if owner is None or not source.is_module_class(owner):
        return False
    given = [value for values in source.attributes(owner).values() for value in values]
    return any(
        isinstance(value, ast.Call)
        and (source.name(value.func) == "torch.nn.Parameter" or has_weights(source, value, depth - 1))
        for value in given
    )


def class_named(source: Source, name: str) -> ast.ClassDef | None:
    """The class of this file with that dotted name."""
    for owner in source.nodes(ast.ClassDef):
        if name and name == (f"{source.module}.{owner.name}" if source.module else owner.name):
            return owner
    return None


def methods(owner: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    """The methods that a class defines."""
    return {each.name: each for each in owner.body if isinstance(each, ast.FunctionDef)}


def run_by_forward(source: Source) -> set[ast.AST]:
    """``forward`` of the file's module classes, and the methods that it calls on self, directly or not."""
    found: set[ast.AST] = set()
    for owner in source.nodes(ast.ClassDef):
        own = methods(owner)
        if "forward" not in own or not source.is_module_class(owner):
            continue
        waiting = [own["forward"]]
        while waiting:
            method = waiting.pop()
            if method in found or any(not source.name(each).startswith("torch.") for each in method.decorator_list):
                continue  # what a decorator of the project does is not known: it may call once and keep the result
            found.add(method)
            for node in ast.walk(method):
                match node:
                    case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)) if name in own:
                        waiting.append(own[name])
    return found


def spelled(source: Source, name: str) -> str:
    """How the top of this file can write a dotted name of torch: ``nn.ModuleList``; empty where it cannot."""
    best = ""
    for bound, ways in source.scope.bindings.items():
        full = ways[0].imported if len({way.imported for way in ways}) == 1 else ""
        if full and f"{name}.".startswith(f"{full}."):
            text = bound + name[len(full) :]
            best = text if not best or len(text) < len(best) else best
    return best


def is_layer_class(source: Source, node: ast.AST) -> bool:
    """Whether an expression names a class of modules."""
    name = source.name(node)
    return is_module_class(name) or name in source.module_classes
