"""What the floor knows of one operator, read once from its schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchport.inside.vcuda.builds import TORCH
from torchport.inside.vcuda.exactsame import Check

# Operators that wait for the device. The first group tells torch.cuda.set_sync_debug_mode, mostly by reading a
# number with item() on the way; the second waits without telling it (device_rules: read in the binary of torch 2.13).
SYNCS_REPORTED = frozenset(
    {
        "aten::_local_scalar_dense",
        "aten::nonzero",
        "aten::nonzero_numpy",
        "aten::argwhere",
        "aten::masked_select",
        "aten::_unique",
        "aten::_unique2",
        "aten::unique_consecutive",
        "aten::mode",
        "aten::equal",
        "aten::allclose",
        "aten::bincount",
        "aten::histc",
        "aten::repeat_interleave",
        "aten::_linalg_check_errors",
        # Its checks of the weights are read on the host there, later by ``_assert_async`` on the card.
        *(["aten::multinomial"] if TORCH < (2, 5) else []),
    }
)
SYNCS_SILENT = frozenset({"aten::unique_dim", "aten::unique_dim_consecutive", "aten::_coalesce"})

# Draws random numbers without a generator in its schema.
RANDOM = frozenset(
    f"aten::{name}"
    for name in [
        "rand",
        "randn",
        "randint",
        "randperm",
        "rand_like",
        "randn_like",
        "randint_like",
        "native_dropout",
        "rrelu_with_noise",
    ]
)

# Results that stay on the host whatever the operands are.
HOST_RESULTS = {"aten::_pack_padded_sequence": (1,)}

# CUDA has no integer kernels for these; the name is the one in CUDA's message.
FLOATING_ONLY = {
    "aten::addmm": "addmm_cuda",
    "aten::mm": "addmm_cuda",
    "aten::bmm": "bmm_cuda",
    "aten::baddbmm": "baddbmm_cuda",
    "aten::addmv": "addmv_impl_cuda",
    "aten::mv": "addmv_impl_cuda",
    "aten::dot": "dot",
}


class Operator:
    """Facts of one overload; ``count`` is how often it ran."""

    __slots__ = (
        "check",
        "count",
        "factory",
        "floating_only",
        "fresh",
        "func",
        "host_results",
        "name",
        "out",
        "packet",
        "positions",
        "random",
        "special",
        "sync",
        "writes_out",
    )

    def __init__(self, func: Any, checks: dict[str, Check]) -> None:
        schema = func._schema
        overload = schema.overload_name
        self.func = func
        self.packet = schema.name
        self.name = schema.name + (f".{overload}" if overload else "")
        self.count = 0
        self.check = checks.get(self.name)
        names = [argument.name for argument in schema.arguments]
        self.positions = {name: index for index, name in enumerate(names)}
        self.factory = "device" in names
        self.random = "generator" in names or schema.name in RANDOM
        self.fresh = any(r.alias_info is None or r.alias_info.is_write for r in schema.returns)
        self.out = tuple(a.name for a in schema.arguments if a.is_out)
        self.writes_out = bool(self.out) or schema.name in ("aten::resize_", "aten::resize_as_", "aten::set_")
        in_place = any(r.alias_info is not None and r.alias_info.is_write for r in schema.returns)
        if in_place and not self.out and not self.writes_out:
            self.fresh = False
        self.sync = 2 if schema.name in SYNCS_REPORTED else 1 if schema.name in SYNCS_SILENT else 0
        self.host_results: tuple[int, ...] = HOST_RESULTS.get(self.name, ())
        self.floating_only = FLOATING_ONLY.get(schema.name)
        self.special: Callable[..., Any] | None = None


def argument(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
    """The value of an argument by its schema name; None when it was left at its default."""
    position = operator.positions.get(name)
    if position is not None and position < len(args):
        return args[position]
    return kwargs.get(name)
