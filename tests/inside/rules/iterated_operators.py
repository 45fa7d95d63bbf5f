"""Operators that TensorIterator runs, called with operands on two devices in every way.

As a program this asks torch's own C++: with torch's Python shape functions left out, ``meta`` tensors reach the very
code that checks devices in front of a CUDA kernel, and it says "meta" where it would say "cuda:0".
"""

from __future__ import annotations

import itertools
import json
import sys
import types
from collections.abc import Callable

WITHOUT_SHAPE_FUNCTIONS = "torch._meta_registrations"

if __name__ == "__main__":
    stub = types.ModuleType(WITHOUT_SHAPE_FUNCTIONS)
    stub.activate_meta = stub.register_meta = lambda *args, **kwargs: None
    sys.modules[WITHOUT_SHAPE_FUNCTIONS] = stub

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

# fmt: off
BINARY = [
    "add", "sub", "mul", "div", "floor_divide", "pow", "atan2", "fmod", "remainder", "minimum",
    "maximum", "fmax", "fmin", "eq", "ne", "lt", "le", "gt", "ge", "xlogy", "ldexp", "heaviside",
    "copysign", "hypot", "logical_and", "logical_or", "logical_xor", "logaddexp", "nextafter", "igamma",
    "rsub", "float_power", "polar", "complex", "dist",
]
OF_INTEGERS = ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "gcd", "lcm"]
LOSSES = ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "kl_div"]
TERNARY = ["lerp", "addcmul", "addcdiv", "clamp"]
WITH_OUT = ["add", "mul", "div", "pow", "atan2", "maximum"]
REDUCED = ["sum", "mean", "amax", "cumsum", "prod", "var", "std", "nansum"]
UNARY = ["exp", "neg", "abs", "sigmoid", "round"]
# fmt: on


def operators() -> dict[str, tuple[int, torch.dtype, Callable[..., object]]]:
    """Number and type of the operands, and the call, by name. The last operand of ``x(out=)`` is written to."""
    real = torch.float32
    table: dict[str, tuple[int, torch.dtype, Callable[..., object]]] = {
        **{name: (2, real, getattr(torch, name)) for name in BINARY},
        **{name: (2, torch.int64, getattr(torch, name)) for name in OF_INTEGERS},
        **{name: (2, real, getattr(F, name)) for name in LOSSES},
        **{name: (3, real, getattr(torch, name)) for name in TERNARY},
        "cross": (2, real, lambda a, b: torch.linalg.cross(a, b)),
        "where": (3, real, lambda a, b, c: torch.where(a > 0, b, c)),
        "add_": (2, real, lambda a, b: a.add_(b)),
        "div_": (2, real, lambda a, b: a.div_(b, rounding_mode="floor")),
        "lerp_": (3, real, lambda a, b, c: a.lerp_(b, c)),
        "addcmul_": (3, real, lambda a, b, c: a.addcmul_(b, c)),
        "addcdiv_": (3, real, lambda a, b, c: a.addcdiv_(b, c)),
    }
    for name in (*WITH_OUT, *UNARY, *REDUCED):
        table[f"{name}(out=)"] = (3 if name in WITH_OUT else 2, real, written(name))
    return table


def written(name: str) -> Callable[..., object]:
    """The operator with its last operand as ``out``; a reduction along the first dimension."""
    call = getattr(torch, name)
    dimension = (0,) if name in REDUCED else ()
    return lambda *operands: call(*operands[:-1], *dimension, out=operands[-1])


def answers(name: str, device: str) -> dict[str, str]:
    """What an operator says to operands that are vectors (V) or numbers (N), on ``device`` or the CPU (v, n)."""
    count, dtype, call = operators()[name]
    kinds = {"V": (device, (3,)), "N": (device, ()), "v": ("cpu", (3,)), "n": ("cpu", ())}
    said = {}
    for combination in map("".join, itertools.product(kinds, repeat=count)):
        if "out=" in name and ("v" not in combination[:-1].lower() or combination[-1] in "Nn"):
            continue  # the result has another shape than what it is written to
        operands = [torch.ones(kinds[k][1], dtype=dtype, device=kinds[k][0]) for k in combination]
        try:
            result = call(*operands)
            said[combination] = f"on {result.device}" if isinstance(result, torch.Tensor) else "done"
        except Exception as error:
            said[combination] = f"{type(error).__name__}: {error}".partition("\n")[0]
    return said


if __name__ == "__main__":
    print(json.dumps({name: answers(name, "meta") for name in operators()}))
