"""A device for a program that has none: which file gets it, and what is moved."""

import textwrap

import pytest

from torchport.migrate.device import give_device
from torchport.migrate.program import program
from torchport.migrate.tree import copy

NET = """
    from torch import nn
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 2)
        def forward(self, x):
            return self.fc(x)
"""


def project(tmp_path, **files):
    root, folder = tmp_path / "project", tmp_path / "copy"
    root.mkdir()
    folder.mkdir()
    for name, text in files.items():
        (root / f"{name}.py").write_text(textwrap.dedent(text).lstrip())
    return copy(root, folder)


# name: (the text behind the class, what has to stand there afterwards)
PROGRAMS = {
    "a function": ("def main():\n    net = Net()\nmain()\n", ["    net = Net().to(device)"]),
    "several": ("a, b = Net(), Net()\n", ["a, b = Net().to(device), Net().to(device)"]),
    "a class that trains": (
        "class Agent:\n    def __init__(self):\n        self.q, self.target = Net(), Net()\nagent = Agent()\n",
        ["self.q, self.target = Net().to(device), Net().to(device)"],
    ),
    "handed to a class that trains": (
        "class Trainer:\n    def __init__(self, net):\n        self.net = net\ntrainer = Trainer(Net())\n",
        ["trainer = Trainer(Net().to(device))"],
    ),
    "part of another": (
        "net = nn.Sequential(Net(), nn.ReLU())\n",
        ["net = nn.Sequential(Net(), nn.ReLU()).to(device)"],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_models(name, tmp_path):
    text, expected = PROGRAMS[name]
    tree = project(tmp_path, train=textwrap.dedent(NET) + text)
    assert give_device(tree, "train.py")
    result = tree.read("train.py").text
    assert "device = torch.device(" in result
    assert "import os\nimport torch\n" in result
    for line in expected:
        assert line in result


def test_tensors_that_are_trained(tmp_path):
    text = """
        import torch
        from torch.autograd import Variable
        x = torch.randn(4, 3)
        w = torch.randn(3, 2, requires_grad=True)
        b = torch.zeros(2, requires_grad=True)
        v = Variable(torch.Tensor([1.0]), requires_grad=True)
    """
    tree = project(tmp_path, train=text)
    assert give_device(tree, "train.py")
    result = tree.read("train.py").text
    assert "w = torch.randn(3, 2).to(device).requires_grad_()" in result
    assert "b = torch.zeros(2, requires_grad=True, device=device)" in result
    assert "v = Variable(torch.Tensor([1.0]).to(device), requires_grad=True)" in result
    assert "x = torch.randn(4, 3)\n" in result


def test_a_device_that_is_written_down(tmp_path):
    text = """
        import torch
        device = torch.device('cpu')
        # device = torch.device('cuda')
        x = torch.zeros(3, device=device)
    """
    tree = project(tmp_path, train=text)
    assert give_device(tree, "train.py")
    assert 'device = torch.device(os.environ.get("DEVICE") or (' in tree.read("train.py").text


def test_one_that_is_chosen_stays(tmp_path):
    text = (
        "import torch\ndevice = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\nx = torch.device('cpu')\n"
    )
    assert not give_device(project(tmp_path, train=text), "train.py")


def test_other_programs_of_the_folder_do_not_count(tmp_path):
    tree = project(
        tmp_path, train="from model import Net\nnet = Net()\n", model=NET, other="x = x.cuda()\nimport train\n"
    )
    assert program(tree, "train.py") == ["train.py", "model.py"]
    assert give_device(tree, "train.py")
    assert "net = Net().to(device)" in tree.read("train.py").text
    assert "device" not in tree.read("model.py").text


def test_a_trainer_in_another_file(tmp_path):
    trainer = "from model import Net\nclass Trainer:\n    def __init__(self):\n        self.net = Net()\n"
    tree = project(tmp_path, train="from trainer import Trainer\nTrainer()\n", trainer=trainer, model=NET)
    assert give_device(tree, "train.py")
    assert "self.net = Net().to(device)" in tree.read("trainer.py").text
    assert "device" not in tree.read("train.py").text


def test_imports_behind_the_model(tmp_path):
    tree = project(tmp_path, train=textwrap.dedent(NET) + "net = Net()\nimport json\nprint(json.dumps(1))\n")
    assert give_device(tree, "train.py")
    result = tree.read("train.py").text
    assert result.index("device = torch.device(") < result.index("net = Net().to(device)")
