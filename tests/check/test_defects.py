"""What existing checkers and fixers get wrong, as tests of ours."""

import ast

import pytest

from torchport.check.engine import check_source
from torchport.check.repair import repair
from torchport.check.source import Source

NEWEST = (2, 13)


def ids(text, torch=NEWEST):
    return {finding.id for finding in check_source(Source("train.py", text), torch)}


def repaired(text, unsafe=False, torch=NEWEST):
    done = repair(Source("train.py", text), lambda source: check_source(source, torch), unsafe)
    ast.parse(done.text)
    return done.text


def test_a_new_name_is_bound():
    """A fix that writes ``torch.amp`` into a file that knows torch as ``th`` makes a NameError."""
    text = (
        "import torch as th\nfrom torch.cuda.amp import GradScaler, autocast\n\n"
        "scaler = GradScaler()\nwith autocast():\n    print(th.ones(3))\n"
    )
    new = repaired(text)
    assert "cuda.amp" not in new
    names = {node.id for node in ast.walk(ast.parse(new)) if isinstance(node, ast.Name)}
    bound = {
        alias.asname or alias.name.split(".")[0]
        for node in ast.walk(ast.parse(new))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    assert names - {"print", "scaler"} <= bound


@pytest.mark.parametrize("unsafe", [False, True])
def test_a_load_gets_no_weights_only(unsafe):
    """It breaks every checkpoint that holds more than tensors."""
    text = (
        "import torch\n\ndevice = torch.device('cuda')\nmodel = torch.nn.Linear(3, 3).to(device)\n"
        "state = torch.load('last.pt')\nmodel.load_state_dict(state['model'])\nprint(state['args'])\n"
    )
    assert "weights_only=True" not in repaired(text, unsafe)


def test_items_of_the_gpu_are_not_pinned():
    """``pin_memory=True`` for a data set that gives CUDA tensors raises."""
    text = (
        "import torch\nfrom torch.utils.data import DataLoader, Dataset\n\n\nclass Data(Dataset):\n"
        "    def __init__(self):\n        self.x = torch.ones(8, 3).cuda()\n\n"
        "    def __len__(self):\n        return 8\n\n"
        "    def __getitem__(self, index):\n        return self.x[index]\n\n\n"
        "model = torch.nn.Linear(3, 3).cuda()\nfor x in DataLoader(Data(), batch_size=4):\n    print(model(x))\n"
    )
    assert "pin_memory=True" not in repaired(text)
    assert "pin_memory=True" not in repaired(text, unsafe=True)


def test_a_loader_by_another_name():
    """Names are what imports say, not what they end in."""
    used = "loader = {name}([1, 2], sampler=torch.utils.data.RandomSampler([1, 2]), shuffle=True)\n"
    alias = "import torch\nfrom torch.utils.data import DataLoader as DL\n\n" + used.format(name="DL")
    other = "import torch\nfrom mine import DataLoader\n\n" + used.format(name="DataLoader")
    assert "C304" in ids(alias)
    assert "C304" not in ids(other)


def test_zero_grad_is_called_on_the_optimizer_by_its_name():
    text = (
        "import torch\n\nmodel = torch.nn.Linear(3, 1)\nadam = torch.optim.Adam(model.parameters())\n"
        "for x in [torch.ones(2, 3)] * 3:\n    loss = model(x).sum()\n    loss.backward()\n    adam.step()\n"
    )
    new = repaired(text, unsafe=True)
    assert "adam.zero_grad()" in new
    assert "optimizer" not in new


def test_an_optimizer_made_before_the_move_is_fine():
    """``Module.to`` keeps its parameters: they are the same objects afterwards."""
    text = (
        "import torch\n\nmodel = torch.nn.Linear(3, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "model.to('cuda')\nmodel(torch.ones(2, 3, device='cuda')).sum().backward()\noptimizer.step()\n"
    )
    assert not {each for each in ids(text) if each.startswith("C1")} - {"C122"}
    assert "C807" not in ids(text)


def test_the_backend_is_found_by_newer_torch():
    text = (
        "import torch\nimport torch.distributed as dist\n\n"
        "dist.init_process_group(rank=0, world_size=1, init_method='env://')\n"
        "x = torch.ones(3).cuda()\ndist.all_reduce(x)\n"
    )
    assert "C305" in ids(text, (2, 5))
    assert "C305" not in ids(text, (2, 6))


def test_what_the_loop_needs_stays():
    """A batch has to be moved in the loop: nothing says otherwise."""
    text = (
        "import torch\nfrom torch.utils.data import DataLoader\n\ndevice = torch.device('cuda')\n"
        "model = torch.nn.Linear(3, 3).to(device)\nloader = DataLoader([1], pin_memory=True, num_workers=2)\n"
        "for x in loader:\n    x = x.to(device, non_blocking=True)\n    print(model(x))\n"
    )
    assert not {each for each in ids(text) if each.startswith("C2")} - {"C212"}


def test_a_module_moved_as_a_statement_is_fine():
    assert "C101" not in ids("import torch\n\nmodel = torch.nn.Linear(3, 3)\nmodel.cuda()\n")
