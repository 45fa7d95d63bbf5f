"""Finds a graph that is kept after each backward pass of a loop.

``retain_graph=True`` is often added against "Trying to backward through the graph a second time". What causes that
is a tensor of the step before that still hangs on its graph, a hidden state say; the graph then grows with each step.

Bad::

    import torch
    from torch import nn


    def train(model, loader, optimizer):
        hidden = torch.zeros(1, 8, 16)
        for x, y in loader:
            optimizer.zero_grad()
            out, hidden = model(x, hidden)
            nn.functional.mse_loss(out, y).backward(retain_graph=True)
            optimizer.step()

Good::

    import torch
    from torch import nn


    def train(model, loader, optimizer):
        hidden = torch.zeros(1, 8, 16)
        for x, y in loader:
            optimizer.zero_grad()
            out, hidden = model(x, hidden.detach())
            nn.functional.mse_loss(out, y).backward()
            optimizer.step()
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.ranks import home
from torchport.check.rules.training import backwards
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C607",
    "retain-graph",
    WARNING,
    mark("`{code}` keeps the graph after each step, and nothing else in the loop needs it"),
    mark("Leave out `retain_graph=True`, and detach what a step takes over from the one before"),
)


def look(source: Source) -> Iterator[Hit]:
    """``backward(retain_graph=True)`` that is the one use of gradients in its function, in a loop."""
    calls = backwards(source)
    others = [*source.calls("torch.autograd.grad", "torch.autograd.backward")]
    for call in calls:
        if constant(argument(call, "retain_graph", 1)) is not True or len(source.loops(call)) == 0:
            continue
        here = home(source, call)
        if not any(each is not call and home(source, each) is here for each in [*calls, *others]):
            yield Hit(call, {"code": source.code(call)})
