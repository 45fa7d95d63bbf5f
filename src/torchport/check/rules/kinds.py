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
_NO_TENSOR = ("torch.nn.", "torch.optim.", "torch.utils.", "torch.cuda.", "torch.distributed.", "torch.jit.")
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
    return _is_tensor(source, node, set()) is True


def _is_tensor(source: Source, node: ast.AST, asked: set[ast.AST]) -> bool | None:
    """None for a value that is made out of itself: ``x = x.to(device)`` is a tensor if its other values are."""
    answers = []
    for value in source.values(node):
        if value in asked:
            answers.append(None)
            continue
        asked.add(value)
        answers.append(_makes_tensor(source, value, asked))
        asked.discard(value)
    if False in answers:
        return False
    return True if True in answers else None


def _makes_tensor(source: Source, node: ast.expr, asked: set[ast.AST]) -> bool | None:
    if isinstance(node, ast.BinOp):
        sides = [_is_tensor(source, node.left, asked), _is_tensor(source, node.right, asked)]
        return True if True in sides else None if None in sides else False
    if not isinstance(node, ast.Call):
        return False
    name = source.name(node.func)
    if name in FACTORIES or name in LEGACY or name in _TENSOR_FUNCTIONS:
        return True
    if name.startswith("torch.nn.functional."):
        return True
    if isinstance(node.func, ast.Attribute) and not name:
        return node.func.attr not in _GIVE_NUMBERS and _is_tensor(source, node.func.value, asked)
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
