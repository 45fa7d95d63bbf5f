"""Device flow: which two places meet, and what alike is fine. Lines are those of the text."""

import textwrap

import pytest

from torchport.check.flow.analyse import events
from torchport.check.source import Source

HEAD = """
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
"""
FIRST = HEAD.count("\n") + 1


def found(text):
    """(kind, line where it was made, line where it meets), counted from the first line of ``text``."""
    source = Source("train.py", HEAD + textwrap.dedent(text).strip("\n") + "\n")
    return [
        (event.kind, event.origin.node.lineno - FIRST + 1, event.node.lineno - FIRST + 1) for event in events(source)
    ]


MEETS = {
    "factory in forward": (
        """
        class Net(nn.Module):
            def forward(self, x):
                return x + torch.arange(x.size(1))
        """,
        [("factory-without-device", 3, 3)],
    ),
    "the CPU is written down": (
        """
        class Net(nn.Module):
            def forward(self, x):
                y = torch.zeros_like(x, device="cpu")
                z = torch.zeros(3, device=torch.device("cpu"))
                return (x + y) * (x + z)
        """,
        [("factory-without-device", 3, 5), ("factory-without-device", 4, 5)],
    ),
    "alias of torch": (
        """
        import torch as th
        class Net(nn.Module):
            def forward(self, x):
                return x * th.ones(3)
        """,
        [("factory-without-device", 4, 4)],
    ),
    "through a helper function": (
        """
        def steps(n):
            return torch.linspace(0, 1, n)
        class Net(nn.Module):
            def forward(self, x):
                return x * steps(x.size(0))
        """,
        [("factory-without-device", 2, 5)],
    ),
    "hidden state of a method": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.LSTM(4, 8)
            def start(self, n):
                return torch.zeros(1, n, 8), torch.zeros(1, n, 8)
            def forward(self, x):
                return self.rnn(x, self.start(x.size(1)))[0]
        """,
        [("hidden-state-on-cpu", 6, 8), ("hidden-state-on-cpu", 6, 8)],
    ),
    "plain attribute": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = torch.ones(3)
            def forward(self, x):
                return x * self.scale
        """,
        [("tensor-attr-not-buffer", 4, 6)],
    ),
    "list of modules": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = [nn.Linear(3, 3) for _ in range(2)]
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x
        """,
        [("module-not-moved-along", 4, 7)],
    ),
    "batch and label": (
        """
        def train(model, loader):
            criterion = nn.CrossEntropyLoss()
            for x, y in loader:
                out = model(x.to(device))
                loss = criterion(out, y)
        model = nn.Linear(3, 3).to(device)
        train(model, DataLoader([1, 2]))
        """,
        [("untransferred-label", 3, 5)],
    ),
    "enumerate and a dictionary": (
        """
        model = nn.Linear(3, 3).cuda()
        for i, batch in enumerate(DataLoader([1, 2])):
            model(batch["x"])
        """,
        [("untransferred-batch", 2, 3)],
    ),
    "model never moved": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)
            def forward(self, x):
                return self.fc(x)
        model = Net()
        for x in DataLoader([1, 2]):
            model(x.to(device))
        """,
        [("model-not-moved", 7, 9)],
    ),
    "weight of a loss": (
        """
        model = nn.Linear(3, 3).to(device)
        criterion = nn.CrossEntropyLoss(weight=torch.ones(3))
        y = torch.zeros(2, dtype=torch.long, device=device)
        criterion(model(torch.ones(2, 3, device=device)), y)
        """,
        [("loss-weight-device", 2, 4)],
    ),
    "sum kept on the CPU": (
        """
        total = torch.zeros(())
        total += torch.ones(3, device=device).sum()
        """,
        [("factory-without-device", 1, 2)],
    ),
    "numpy": (
        """
        out = nn.Linear(3, 3).to(device)(torch.ones(2, 3, device=device))
        print(out.detach().numpy())
        """,
        [("numpy-on-cuda", 2, 2)],
    ),
    "generator": (
        """
        g = torch.Generator()
        torch.randperm(3, generator=g, device=device)
        """,
        [("generator-device-mismatch", 1, 2)],
    ),
    "custom function": (
        """
        class Sort(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return torch.from_numpy(x.detach().numpy())
        """,
        [("numpy-on-cuda", 4, 4)],
    ),
    "fields of a record": (
        """
        from dataclasses import dataclass
        @dataclass
        class Graph:
            x: torch.Tensor
            y: torch.Tensor
        def load():
            return Graph(x=torch.ones(4, 3), y=torch.zeros(4, dtype=torch.long))
        graph = load()
        model = nn.Linear(3, 3).to(device)
        F.cross_entropy(model(graph.x.to(device)), graph.y)
        """,
        [("factory-without-device", 7, 10)],
    ),
}

FINE = {
    "a tensor without dimensions": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = torch.tensor(0.5)
            def forward(self, x):
                return x * self.scale + torch.tensor(1.0)
        """,
    "optimizer before the move": """
        model = nn.Linear(3, 3)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        model.cuda()
        model(torch.ones(2, 3, device="cuda")).sum().backward()
        opt.step()
        """,
    "buffer": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("scale", torch.ones(3))
            def forward(self, x):
                return x * self.scale
        """,
    "CPU index into a GPU tensor": """
        table = torch.ones(5, 3, device=device)
        print(table[torch.tensor([1, 2])])
        """,
    "like, new and device of another": """
        class Net(nn.Module):
            def forward(self, x):
                a = torch.zeros_like(x) + x.new_zeros(3) + torch.ones(3, device=x.device)
                return a + torch.ones(3).to(x) + torch.arange(3).type_as(x)
        """,
    "data parallel moves its inputs": """
        model = nn.DataParallel(nn.Linear(3, 3)).cuda()
        for x in DataLoader([1]):
            model(x)
        """,
    "all on the CPU": """
        model = nn.Linear(3, 3)
        for x, y in DataLoader([1]):
            F.cross_entropy(model(x), y)
        """,
    "default device": """
        torch.set_default_device(device)
        model = nn.Linear(3, 3)
        model(torch.ones(2, 3))
        """,
    "context of a device": """
        with torch.device("cuda"):
            model = nn.Linear(3, 3)
            model(torch.ones(2, 3))
        """,
    "a size that is a tensor's name alike": """
        class Net(nn.Module):
            def forward(self, x, n):
                return torch.arange(10) * n
        """,
    "back on the CPU": """
        out = nn.Linear(3, 3).to(device)(torch.ones(2, 3, device=device)).cpu()
        print(out.detach().numpy(), out + torch.ones(3))
        """,
    "used before the move": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(3, 3, 3)
                self.n = self.size()
            def size(self):
                return self.conv(torch.zeros(1, 3, 8, 8)).shape[1]
            def forward(self, x):
                return self.conv(x)
        """,
    "copied and moved": """
        model = nn.Linear(3, 3).to(device)
        ema = copy.deepcopy(model)
        ema(torch.ones(2, 3, device=device))
        """,
    "another library's model": """
        from elsewhere import Net
        model = Net().to(device)
        for x, y in DataLoader([1]):
            model(x)
        """,
    "a function with too many calls of itself": """
        def f(x):
            return f(x) + f(x)
        f(torch.ones(3))
        """,
}


@pytest.mark.parametrize("name", MEETS)
def test_two_devices_meet(name):
    text, expected = MEETS[name]
    assert found(text) == expected


@pytest.mark.parametrize("name", FINE)
def test_what_is_alike_and_fine(name):
    assert found(FINE[name]) == []
