"""What an object is, as far as the file that uses it tells: a tensor, a module, an optimizer, a loader."""

from __future__ import annotations

import ast

from torchport.check.source import Source

# Functions of torch that make a tensor out of none.
FACTORIES = frozenset(
    f"torch.{name}"
    for name in (
        "arange as_tensor bartlett_window blackman_window complex empty empty_strided eye from_numpy full "
        "hamming_window hann_window kaiser_window linspace logspace normal ones rand randint randn randperm range "
        "scalar_tensor sparse_coo_tensor tensor tril_indices triu_indices zeros"
    ).split()
)
LEGACY = frozenset(
    f"torch.{name}"
    for name in (
        "Tensor FloatTensor DoubleTensor HalfTensor BFloat16Tensor LongTensor IntTensor ShortTensor CharTensor "
        "ByteTensor BoolTensor"
    ).split()
)
_TENSOR_FUNCTIONS = frozenset(
    f"torch.{name}"
    for name in (
        "abs add cat chunk clamp concat cos cumsum diag einsum exp flatten log matmul max mean min mm mul "
        "ones_like zeros_like rand_like randn_like full_like empty_like softmax sigmoid sin sqrt stack sum tanh tril "
        "triu where stack squeeze unsqueeze"
    ).split()
)
# Methods of a tensor that give back something else.
_GIVE_NUMBERS = frozenset(
    "item tolist numpy size dim numel nelement stride get_device data_ptr element_size ndimension backward".split()
)


def is_tensor(source: Source, node: ast.AST) -> bool:
    """True only where every value that the object may have is known to be a tensor."""
    return _is_tensor(source, node, {}) is True


def _is_tensor(source: Source, node: ast.AST, known: dict[ast.AST, bool | None]) -> bool | None:
    """None for a value that is made out of itself: ``x = x.to(device)`` is a tensor if its other values are."""
    if node not in known:
        known[node] = None
        given = given_to(source, node)
        if given == [node]:
            known[node] = _makes_tensor(source, node, known)
        else:
            answers = {value is not None and _is_tensor(source, value, known) for value in given}
            known[node] = False if False in answers else True if True in answers else None
    return known[node]


def given_to(source: Source, node: ast.AST) -> list[ast.expr | None]:
    """What an expression may stand for, one step on: None is a value that the file does not show, an argument say."""
    if isinstance(node, ast.Name):
        found = source.scope_at(node).find(node.id)
        ways = found[1] if found is not None else []
        return [way.value for way in ways if not isinstance(way.node, ast.AugAssign)] or [None]
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        owner = source.method_class(node)
        return list(source.attributes(owner).get(node.attr, ())) if owner is not None else []
    return [node] if isinstance(node, ast.expr) else []


def _makes_tensor(source: Source, node: ast.AST, known: dict[ast.AST, bool | None]) -> bool | None:
    if isinstance(node, ast.BinOp):
        sides = [_is_tensor(source, node.left, known), _is_tensor(source, node.right, known)]
        return True if True in sides else None if None in sides else False
    if not isinstance(node, ast.Call):
        return False
    name = source.name(node.func)
    if name in FACTORIES or name in LEGACY or name in _TENSOR_FUNCTIONS:
        return True
    if name.startswith("torch.nn.functional."):
        return True
    if isinstance(node.func, ast.Attribute) and not name:
        return node.func.attr not in _GIVE_NUMBERS and _is_tensor(source, node.func.value, known)
    return False


def is_module(source: Source, node: ast.AST) -> bool:
    """Whether an object is a module of torch."""
    return "torch.nn.Module" in source.makers(node)


def is_optimizer(source: Source, node: ast.AST) -> bool:
    """Whether an object is an optimizer of torch."""
    return any(name.startswith("torch.optim.") and name.count(".") == 2 for name in source.makers(node))


def is_loader(source: Source, node: ast.AST) -> bool:
    """Whether an object is a data loader of torch."""
    return "torch.utils.data.DataLoader" in source.makers(node)
