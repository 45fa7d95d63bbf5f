"""Operators that only CUDA has a kernel for: the parts of SyncBatchNorm, computed from ordinary operators.

Channels are dimension 1; statistics are kept in float for the short floating types, as CUDA keeps them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class Kernel:
    """Stands in for an overload of torch: the same schema, another body."""

    __slots__ = ("_schema", "call")

    def __init__(self, func: Any, call: Callable[..., Any]) -> None:
        self._schema = func._schema
        self.call = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)


def _wide(tensor: Any) -> Any:
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _over(tensor: Any) -> list[int]:
    return [dim for dim in range(tensor.dim()) if dim != 1]


def _shaped(value: Any, like: Any) -> Any:
    """One number a channel, ready to meet a batch."""
    return value.view(1, -1, *[1] * (like.dim() - 2))


def _stats(input: Any, eps: float) -> tuple[Any, Any]:
    wide = _wide(input)
    variance, mean = torch.var_mean(wide, _over(input), correction=0)
    return mean, (variance + eps).rsqrt()


def _gather_stats_with_counts(
    input: Any,
    mean: Any,
    invstd: Any,
    running_mean: Any,
    running_var: Any,
    momentum: float,
    eps: float,
    counts: Any,
) -> tuple[Any, Any]:
    weights = counts.view(-1, 1).to(mean.dtype)
    total = weights.sum()
    overall = (mean * weights).sum(0) / total
    within = invstd.pow(-2) - eps
    spread = ((within + (mean - overall).pow(2)) * weights).sum(0)
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_(overall, alpha=momentum)
    if running_var is not None:
        running_var.mul_(1 - momentum).add_(spread / (total - 1), alpha=momentum)
    return overall, (spread / total + eps).rsqrt()


def _gather_stats(
    input: Any,
    mean: Any,
    invstd: Any,
    running_mean: Any,
    running_var: Any,
    momentum: float,
    eps: float,
    count: int,
) -> tuple[Any, Any]:
    counts = mean.new_full((mean.size(0),), count)
    return _gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps, counts)


def _elemt(input: Any, weight: Any, bias: Any, mean: Any, invstd: Any, eps: float) -> Any:
    result = (_wide(input) - _shaped(mean, input)) * _shaped(invstd, input)
    if weight is not None:
        result = result * _shaped(weight, input)
    if bias is not None:
        result = result + _shaped(bias, input)
    return result.to(input.dtype)


def _backward_reduce(
    grad_out: Any,
    input: Any,
    mean: Any,
    invstd: Any,
    weight: Any,
    input_g: bool,
    weight_g: bool,
    bias_g: bool,
) -> tuple[Any, Any, Any, Any]:
    gradient = _wide(grad_out)
    sum_dy = gradient.sum(_over(input))
    sum_dy_xmu = (gradient * (_wide(input) - _shaped(mean, input))).sum(_over(input))
    kind = weight.dtype if weight is not None else sum_dy.dtype
    grad_weight = (sum_dy_xmu * invstd).to(kind) if weight_g else None
    return sum_dy, sum_dy_xmu, grad_weight, sum_dy.to(kind, copy=True) if bias_g else None


def _backward_elemt(
    grad_out: Any, input: Any, mean: Any, invstd: Any, weight: Any, sum_dy: Any, sum_dy_xmu: Any, count: Any
) -> Any:
    total = count.sum()
    centred = _wide(input) - _shaped(mean, input)
    slope = _shaped(invstd.pow(2) * sum_dy_xmu / total, input)
    gradient = (_wide(grad_out) - _shaped(sum_dy / total, input) - centred * slope) * _shaped(invstd, input)
    if weight is not None:
        gradient = gradient * _shaped(weight, input)
    return gradient.to(input.dtype)


KERNELS: dict[str, Callable[..., Any]] = {
    "aten::batch_norm_stats": _stats,
    "aten::batch_norm_gather_stats": _gather_stats,
    "aten::batch_norm_gather_stats_with_counts": _gather_stats_with_counts,
    "aten::batch_norm_elemt": _elemt,
    "aten::batch_norm_backward_reduce": _backward_reduce,
    "aten::batch_norm_backward_elemt": _backward_elemt,
}
