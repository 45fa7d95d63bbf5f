"""What a loop over epochs keeps: what has a state, and the values that one round leaves to the next."""

import ast
import textwrap

import pytest

from torchport.check.source import Source
from torchport.migrate.kept import kept


def told(text):
    source = Source("train.py", "import time\nimport torch\n" + textwrap.dedent(text))
    loop = next(each for each in source.nodes(ast.For) if getattr(each.target, "id", "") == "epoch")
    return kept(source, loop)


@pytest.mark.parametrize(
    ("before", "inside", "after", "values"),
    [
        ("best = 0", "acc = run()\n    best = max(best, acc)", "", ("best",)),
        ("best = 0", "acc = run()\n    if acc > best:\n        best = acc", "", ("best",)),
        ("step = 0", "for x in batches:\n        step += 1", "", ("step",)),
        ("losses = []", "losses.append(run())", "", ("losses",)),
        ("told = {}", "told[epoch] = run()", "", ("told",)),
        ("last = None", "last = run()", "print(last)", ()),
        ("last = None", "if epoch % 2:\n        last = run()", "print(last)", ("last",)),
        ("last = None", "if epoch % 2:\n        last = run()", "", ()),
        # begun anew in each round
        ("total = 0", "total = 0\n    for x in batches:\n        total += x", "print(total)", ()),
        ("losses = []", "losses = []\n    losses.append(run())", "", ()),
        ("x, y = next(iter(batches))", "for x, y in batches:\n        run(x, y)", "", ()),
        # what is only read
        ("rate = 0.1\nnames = []", "run(rate, names)", "", ()),
        # the time of another run says nothing in this one
        ("start = time.time()", "print(time.time() - start)\n    start = time.time()", "", ()),
    ],
)
def test_values_that_are_carried(before, inside, after, values):
    assert told(f"{before}\nfor epoch in range(3):\n    {inside}\n{after}\n").values == values


def test_a_global_that_a_function_changes():
    text = """
        best = 0
        def test():
            global best
            best = max(best, run())
        for epoch in range(3):
            test()
    """
    assert told(text).values == ("best",)


def test_what_is_given():
    text = """
        def fit(net, opt, sched, drawn, batches):
            for epoch in range(3):
                for x in batches:
                    net(x + torch.rand(2, generator=drawn)).sum().backward()
                    opt.step()
                sched.step()
        net = torch.nn.Linear(2, 2)
        opt = torch.optim.SGD(net.parameters())
        fit(net, opt, torch.optim.lr_scheduler.StepLR(opt, 1), torch.Generator().manual_seed(0), [])
    """
    found = told(text)
    assert (found.models, found.others, found.generators) == (("net",), ("opt", "sched"), ("drawn",))


def test_what_belongs_to_self():
    text = """
        class Trainer:
            def __init__(self):
                self.net = torch.nn.Linear(2, 2)
                self.opt = torch.optim.SGD(self.net.parameters())
                self.drawn = torch.Generator()
                self.name = "one"
            def fit(self):
                for epoch in range(3):
                    self.net(torch.rand(2, generator=self.drawn)).sum().backward()
                    self.opt.step()
    """
    found = told(text)
    assert (found.models, found.others, found.generators) == (("self.net",), ("self.opt",), ("self.drawn",))
