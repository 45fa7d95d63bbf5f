"""Which device an expression names."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchport.check.flow.frame import Frame
from torchport.check.flow.values import (
    CPU,
    GPU,
    Const,
    Device,
    DeviceValue,
    Tensor,
    Tree,
    Value,
)
from torchport.check.source import argument

if TYPE_CHECKING:
    from torchport.check.flow.interpret import Interpreter


_DEVICE_WORD = re.compile(r"dev|gpu|cuda|accel|local_rank|^rank$", re.IGNORECASE)


def target_device(
    run: Interpreter, node: ast.Call, given: list[Value], named: dict[str, Value], frame: Frame
) -> Device:
    """Where ``.to(…)`` goes: "keep" where it only changes the type, None where that is not known."""
    value = named.get("device", named.get("other", given[0] if given else None))
    if value is None:
        return "keep" if "dtype" in named or "memory_format" in named else None
    expression = node.args[0] if given and "device" not in named else argument(node, "device")
    return read_device(value, expression, frame)


def read_device(value: Value, node: ast.expr | None, frame: Frame) -> Device:
    """The device that an expression names; one that is not known but called so is the GPU."""
    if isinstance(value, (DeviceValue, Tensor, Tree)):
        device = value.device
        return device if device is not None or not isinstance(value, DeviceValue) else GPU
    if isinstance(value, Const):
        if value.value is None:
            return CPU
        if isinstance(value.value, str):
            return CPU if value.value.startswith("cpu") else GPU if value.value[:4] in ("cuda", "mps", "xpu:") else None
        return GPU if isinstance(value.value, int) and not isinstance(value.value, bool) else None
    text = frame.source.code(node) if node is not None else ""
    if text.startswith("torch.") and "device" not in text:
        return "keep"  # a type
    if text.endswith("dtype") or "dtype" in text:
        return "keep"
    last = text.rsplit(".", 1)[-1]
    return GPU if _DEVICE_WORD.search(last) else None
