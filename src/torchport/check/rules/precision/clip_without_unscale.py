"""Finds gradients that are clipped while they still carry the factor of a GradScaler.

``scaler.scale(loss).backward()`` makes gradients that are some ten thousand times too large. Clipping them to a
norm of 1 before ``scaler.unscale_`` leaves next to nothing of each step.

Bad::

    import torch


    def step(model, loss, optimizer, scaler):
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

Good::

    import torch


    def step(model, loss, optimizer, scaler):
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import CERTAIN, ERROR, Change, Hit, Rule
from torchport.check.rules.ranks import home
from torchport.check.rules.training import comes_before, receiver
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C403",
    "clip-without-unscale",
    ERROR,
    mark("`{code}` clips gradients that `{scaler}` has scaled up"),
    mark("Call `{scaler}.unscale_({optimizer})` before it"),
    confidence=CERTAIN,
)
_CLIPS = tuple(f"torch.nn.utils.{name}" for name in ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"))


def look(source: Source) -> Iterator[Hit]:
    """Clipping between a scaled backward and the scaler's step, with no ``unscale_`` before it in the function."""
    for clip in source.calls(*_CLIPS, *(f"torch.nn.utils.clip_grad.{each.split('.')[-1]}" for each in _CLIPS)):
        here = home(source, clip)
        scaled = [call for call in source.calls(".scale") if home(source, call) is here and _is_backward(source, call)]
        if not scaled or not comes_before(scaled[0], clip):
            continue
        if any(home(source, call) is here and comes_before(call, clip) for call in source.calls(".unscale_")):
            continue
        scaler = source.code(receiver(scaled[0]) or scaled[0])
        steps = [
            call
            for call in source.calls(".step")
            if home(source, call) is here and call.args and source.code(receiver(call) or call) == scaler
        ]
        later = [call for call in steps if comes_before(clip, call)]
        if not later:
            continue
        optimizer = source.code(later[0].args[0])
        statement = source.statement(clip)
        fix: tuple[Change, ...] = ()
        if len({source.code(call.args[0]) for call in steps}) == 1 and source.indent(statement):
            fix = (changes.before(source, statement, f"{scaler}.unscale_({optimizer})"),)
        yield Hit(clip, {"code": source.code(clip), "scaler": scaler, "optimizer": optimizer}, fix)


def _is_backward(source: Source, call: ast.Call) -> bool:
    """Whether a call is the middle of ``scaler.scale(loss).backward()``."""
    above = source.parent(call)
    return isinstance(above, ast.Attribute) and above.attr == "backward"
