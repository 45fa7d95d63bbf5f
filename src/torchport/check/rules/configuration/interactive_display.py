"""Finds windows and questions, which a job in a container cannot show.

``cv2.imshow`` fails without a display; ``plt.show()`` shows nothing and keeps nothing; ``input()`` raises an EOFError.

Bad::

    import matplotlib.pyplot as plt
    import torch

    weight = torch.ones(3, requires_grad=True)
    losses = []
    for step in range(10):
        loss = weight.square().sum()
        loss.backward()
        losses.append(loss.item())
    plt.plot(losses)
    plt.show()

Good::

    import matplotlib.pyplot as plt
    import torch

    weight = torch.ones(3, requires_grad=True)
    losses = []
    for step in range(10):
        loss = weight.square().sum()
        loss.backward()
        losses.append(loss.item())
    plt.plot(losses)
    plt.savefig("curve.png")
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import INFO, WARNING, Hit, Rule
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C908",
    "interactive-display",
    WARNING,
    mark("`{code}()` needs a display or a terminal, and a job has none"),
    mark("Write pictures to files, `plt.savefig(…)`; take answers from arguments"),
)
_SAVES = ("matplotlib.pyplot.savefig", ".savefig")


def look(source: Source) -> Iterator[Hit]:
    """In files that train: elsewhere, a window is what the program is for."""
    if not source.calls(".backward"):
        return
    asked = [each for each in source.nodes(ast.Call) if isinstance(each.func, ast.Name) and each.func.id == "input"]
    asked = [each for each in asked if source.scope_at(each).find("input") is None]
    for call in source.calls("cv2.imshow"):
        yield Hit(call, {"code": source.code(call.func)})
    for call in asked:
        yield Hit(call, {"code": source.code(call.func)}, severity=INFO)
    if not source.calls(*_SAVES, "matplotlib.use", "matplotlib.pyplot.switch_backend"):
        for call in source.calls("matplotlib.pyplot.show"):
            yield Hit(call, {"code": source.code(call.func)}, severity=INFO)
