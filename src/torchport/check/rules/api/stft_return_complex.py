"""Finds ``stft`` of a real signal that does not say what it gives back.

Since torch 2.0 it raises a RuntimeError. Complex numbers are what it should give; ``torch.view_as_real`` makes of them
what it gave before.

Bad::

    import torch

    window = torch.hann_window(400)
    spectrum = torch.stft(torch.randn(16000), 400, window=window)

Good::

    import torch

    window = torch.hann_window(400)
    spectrum = torch.view_as_real(torch.stft(torch.randn(16000), 400, window=window, return_complex=True))
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.changes import add_argument
from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.rules.layers import spelled
from torchport.check.source import Source, argument, is_open
from torchport.text import mark

META = Rule(
    "C944",
    "stft-return-complex",
    ERROR,
    mark("`stft` without `return_complex` raises a RuntimeError for a real signal"),
    mark("Add `return_complex=True`; `torch.view_as_real(…)` of it is what `stft` gave before"),
    since=(2, 0),
)


def look(source: Source) -> Iterator[Hit]:
    """The function of torch; a method of that name belongs to other libraries as well."""
    for call in source.calls("torch.stft"):
        if argument(call, "return_complex", 9) is None and not is_open(call):
            start, end = source.span(call)
            view = spelled(source, "torch.view_as_real") or "torch.view_as_real"
            edits = ((start, start, f"{view}("), add_argument(source, call, "return_complex=True"), (end, end, ")"))
            yield Hit(call, changes=edits, needs=() if view != "torch.view_as_real" else ("torch",))
