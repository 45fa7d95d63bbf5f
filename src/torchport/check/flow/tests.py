"""Which way a condition goes on a machine with a GPU."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchport.check.flow.frame import Frame
from torchport.check.flow.values import GPU, Const, DeviceValue, Module, Tensor

if TYPE_CHECKING:
    from torchport.check.flow.interpret import Interpreter

_YES = re.compile(r"(?:^|_)(?:cuda|gpu|gpus|on_gpu)$|^use_(?:cuda|gpu)|^(?:cuda|gpu)(?:_|$)", re.IGNORECASE)
_NO = re.compile(r"^(?:no|disable|without)_(?:cuda|gpu|accel)$|^(?:use_)?cpu(?:_only)?$", re.IGNORECASE)
_AVAILABLE = frozenset({"torch.cuda.is_available", "torch.accelerator.is_available"})


def truth(node: ast.expr, frame: Frame, interpreter: Interpreter) -> bool | None:
    """True or False where the condition is about the GPU or known otherwise, None where both ways are open."""
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            found = truth(inner, frame, interpreter)
            return None if found is None else not found
        case ast.BoolOp(op=op, values=values):
            each = [truth(value, frame, interpreter) for value in values]
            if isinstance(op, ast.And):
                return False if False in each else True if all(each) else None
            return True if True in each else False if each == [False] * len(each) else None
        case ast.Call() if frame.source.name(node.func) in _AVAILABLE:
            return True
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compared(left, op, right, frame, interpreter)
        case ast.Constant(value=value):
            return bool(value)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            known = interpreter.value(node, frame)
            if isinstance(known, Const) and not (isinstance(known.value, str) and _YES.search(name)):
                return bool(known.value)
            if isinstance(known, (DeviceValue, Module, Tensor)):
                return None if isinstance(known, Tensor) else True
            return False if _NO.search(name) else True if _YES.search(name) else None
    return None


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr, frame: Frame, interpreter: Interpreter) -> bool | None:
    if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(right, ast.Constant) and right.value is None:
        value = interpreter.value(left, frame)
        if isinstance(value, Const):
            return (value.value is None) == isinstance(op, ast.Is)
        if isinstance(value, (Tensor, Module)):
            return isinstance(op, ast.IsNot)
        return None
    if isinstance(op, (ast.Eq, ast.NotEq)) and isinstance(right, ast.Constant) and right.value in ("cuda", "cpu"):
        text = frame.source.code(left)
        if "device" in text or text.endswith(".type"):
            owner = interpreter.value(left.value, frame) if isinstance(left, ast.Attribute) else UNKNOWN_DEVICE
            device = owner.device if isinstance(owner, DeviceValue) and owner.device else GPU
            return (device == right.value) == isinstance(op, ast.Eq)
    if isinstance(op, (ast.Gt, ast.GtE)) and "local_rank" in frame.source.code(left):
        return None
    return None


UNKNOWN_DEVICE = DeviceValue(None)
