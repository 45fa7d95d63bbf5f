"""What the rules for loops and memory find in code that looks alike, and what they leave alone."""

import textwrap

import pytest

from torchport.check.engine import check_source
from torchport.check.repair import repair
from torchport.check.rules import rules
from torchport.check.source import Source

IMPORTS = (
    "import torch\nimport torch.nn.functional as F\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n"
)
OURS = [loaded for loaded in rules() if "C601" <= loaded.rule.id <= "C615"]


def loop(*lines, head="", after=""):
    """A training loop with some lines of its own."""
    body = "".join(f"        {line}\n" for line in lines)
    return f"def train(model, loader, optimizer):\n{head}    for x, y in loader:\n{body}{after}"


CASES = [
    (loop("loss = model(x)", "loss.backward()", "s = s + loss", head="    s = 0\n"), "accumulate-graph", 1),
    (loop("loss = model(x)", "loss = loss + y", "loss.backward()"), "accumulate-graph", 0),
    (loop("a = model(x)", "b = model(y)", "c = a + b", "a.backward()", "c.backward()"), "accumulate-graph", 0),
    (loop("loss = model(x)", "loss.backward()", "total += loss", head="    total = 0\n"), "accumulate-graph", 1),
    (loop("loss = model(x)", "loss.backward()", "total += loss.item()", head="    total = 0\n"), "accumulate-graph", 0),
    (loop("loss = model(x)", "loss.backward()", "total += loss.data", head="    total = 0\n"), "accumulate-graph", 0),
    (loop("loss = model(x)", "loss.backward()", "total += float(loss)", head="    total = 0\n"), "accumulate-graph", 0),
    (
        loop("loss = model(x)", "loss.backward()", "loss = loss.item()", "s += loss", head="    s = 0\n"),
        "accumulate-graph",
        0,
    ),
    (loop("loss = model(x)", "loss.backward()", "s += loss * len(x)", head="    s = 0\n"), "accumulate-graph", 1),
    (loop("s = 0", "loss = model(x)", "loss.backward()", "s += loss"), "accumulate-graph", 0),
    (
        loop("loss = model(x)", "total += loss", head="    total = 0\n", after="    total.backward()\n"),
        "accumulate-graph",
        0,
    ),
    (
        loop(
            "loss = model(x)",
            "loss.backward(retain_graph=True)",
            "s += loss",
            head="    s = 0\n",
            after="    s.backward()\n",
        ),
        "accumulate-graph",
        0,
    ),
    (
        """
        def train(model, parts):
            losses = []
            for x in parts:
                loss = model(x)
                loss.backward(retain_graph=True)
                losses.append(loss)
            final = torch.stack(losses).mean()
            final.backward()
        """,
        "accumulate-graph",
        0,
    ),
    # trying out
    (
        """
        def validate(model, loader):
            model.eval()
            with torch.no_grad():
                for x in loader:
                    model(x)
        """,
        "eval-without-no-grad",
        0,
    ),
    (
        "@torch.no_grad()\ndef v(model, loader):\n    model.eval()\n    for x in loader:\n        model(x)",
        "eval-without-no-grad",
        0,
    ),
    (
        """
        def validate(model, loader):
            model.eval()
            for x in loader:
                model(x)

        def main(model, loader):
            with torch.inference_mode():
                validate(model, loader)
        """,
        "eval-without-no-grad",
        0,
    ),
    (
        """
        def attack(model, loader):
            model.eval()
            for x in loader:
                x.requires_grad_(True)
                model(x).sum().backward()
                yield x.grad
        """,
        "eval-without-no-grad",
        0,
    ),
    (
        """
        def tune(model, loader, optimizer):
            model.eval()  # keeps BatchNorm still
            for x in loader:
                loss = 0
                for part in x:
                    loss = loss + model(part).mean()
                loss.backward()
                optimizer.step()
        """,
        "eval-without-no-grad",
        0,
    ),
    ("def f(model, test_loader):\n    for x in test_loader:\n        print(x)", "eval-without-no-grad", 0),
    (
        "def f(model, test_loader):\n    model.train()\n    for x in test_loader:\n        model(x)",
        "eval-without-no-grad",
        0,
    ),
    (
        "def f(criterion, loader):\n    c = nn.MSELoss()\n    for x in loader:\n        c(x, x)",
        "eval-without-no-grad",
        0,
    ),
    (
        """
        def fit(model, train_loader, val_loader, optimizer):
            drop = nn.Dropout()
            for epoch in range(3):
                model.train()
                for x in train_loader:
                    model(x).backward()
                model.eval()
                for x in val_loader:
                    model(x)
        """,
        "eval-mode-missing",
        0,
    ),
    # modes
    (
        """
        def fit(model, loader):
            for epoch in range(3):
                model.train()
                for x in loader:
                    model(x).backward()
                model.eval()
        """,
        "train-mode-missing",
        0,
    ),
    (
        """
        def fit(model, teacher, loader):
            teacher.eval()
            for epoch in range(3):
                for x in loader:
                    (model(x) - teacher(x)).mean().backward()
        """,
        "train-mode-missing",
        0,
    ),
    (
        """
        def train(model, loader):
            for x in loader:
                model(x).mean().backward()

        def validate(model, loader):
            model.eval()
            for x in loader:
                model(x)

        def main(model, loader):
            for epoch in range(3):
                train(model, loader)
                validate(model, loader)
        """,
        "train-mode-missing",
        1,
    ),
    # gradients
    (
        "def train(model, loader):\n    opt = torch.optim.SGD(model.parameters())\n    for x in loader:\n"
        "        model.zero_grad()\n        model(x).backward()\n        opt.step()",
        "missing-zero-grad",
        0,
    ),
    (loop("model(x).backward()", "optimizer.step()"), "missing-zero-grad", 0),
    (
        "def train(model, loader, scaler):\n    opt = torch.optim.SGD(model.parameters())\n    for x in loader:\n"
        "        scaler.scale(model(x)).backward()\n        scaler.step(opt)  # no zero_grad",
        "missing-zero-grad",
        1,
    ),
    ("def f(optimizer):\n    optimizer.zero_grad(set_to_none=True)", "set-to-none-false", 0),
    (loop("a = model(x)", "a.backward(retain_graph=True)", "b = model(y)", "b.backward()"), "retain-graph", 0),
    ("def f(loss):\n    loss.backward(retain_graph=True)", "retain-graph", 0),
    (
        loop(
            "loss = model(x) / 4",
            "loss.backward()",
            "if n % 4 == 0:",
            "    optimizer.step()",
            "    optimizer.zero_grad()",
        ),
        "accumulation-unscaled",
        0,
    ),
    (
        loop(
            "loss = model(x)",
            "loss.backward()",
            "optimizer.step()",
            "optimizer.zero_grad()",
            "if n % 4 == 0:",
            "    print(n)",
        ),
        "accumulation-unscaled",
        0,
    ),
    (
        loop("optimizer.zero_grad()", "model(x).backward()", "if n % 4 == 0:", "    optimizer.step()"),
        "accumulation-unscaled",
        0,
    ),
    (
        """
        def train(model, loader, opt):
            sched = torch.optim.lr_scheduler.StepLR(opt, 3)
            for epoch in range(3):
                for x in loader:
                    opt.step()
                sched.step()
        """,
        "scheduler-before-optimizer",
        0,
    ),
    (
        """
        def train(model, loader, opt):
            sched = torch.optim.lr_scheduler.StepLR(opt, 3)
            for epoch in range(3):
                sched.step(epoch)
                for x in loader:
                    opt.step()
        """,
        "scheduler-before-optimizer",
        0,
    ),
]


@pytest.mark.parametrize(("text", "name", "count"), CASES)
def test_looks_alike(text, name, count):
    loaded = [each for each in OURS if each.rule.name == name]
    assert len(loaded) == 1
    source = Source("train.py", IMPORTS + textwrap.dedent(text) + "\n")
    assert len(check_source(source, (2, 13), loaded)) == count


def test_a_loop_with_a_long_text_is_not_moved():
    """Lines of a text would get another indentation, and the text another meaning."""
    text = IMPORTS + textwrap.dedent('''
        def f(train_loader, val_loader):
            model = nn.Linear(2, 2)
            for x in train_loader:
                model(x).mean().backward()
            for x in val_loader:
                print("""
                    long""", model(x))
    ''')
    loaded = [each for each in OURS if each.rule.id == "C602"]
    findings = check_source(Source("train.py", text), (2, 13), loaded)
    assert [finding.fix for finding in findings] == [None]


def test_a_loop_is_moved_below_no_grad():
    text = IMPORTS + textwrap.dedent("""
        def f(train_loader, val_loader):
            model = nn.Linear(2, 2)
            for x in train_loader:
                model(x).mean().backward()
            for x in val_loader:  # held out

                y = model(
                    x)
            return y
    """)
    wanted = IMPORTS + textwrap.dedent("""
        def f(train_loader, val_loader):
            model = nn.Linear(2, 2)
            for x in train_loader:
                model(x).mean().backward()
            with torch.no_grad():
                for x in val_loader:  # held out

                    y = model(
                        x)
            return y
    """)
    loaded = [each for each in OURS if each.rule.id == "C602"]
    done = repair(Source("train.py", text), lambda source: check_source(source, (2, 13), loaded))
    assert done.text == wanted
