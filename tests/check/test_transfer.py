"""Rules about transfers that need no flow: what looks like a fault and is none, and faults in other words."""

import pytest

from torchport.check.engine import check_source
from torchport.check.rules import rules
from torchport.check.source import Source

NUMBERS = range(210, 223)


def found(text, torch=(2, 13)):
    """The names of these rules that find something in a text."""
    chosen = [each for each in rules() if int(each.rule.id[1:]) in NUMBERS]
    names = {each.rule.id: each.rule.name for each in chosen}
    return {names[each.id] for each in check_source(Source("train.py", text), torch, chosen)}


TORCH = "import torch\nimport numpy as np\nfrom torch import nn\nimport matplotlib.pyplot as plt\n"
NET = TORCH + "net = nn.Linear(4, 2)\nout = net(torch.randn(8, 4))\n"
FORWARD = TORCH + "class Net(nn.Module):\n    def forward(self, x):\n        "
STEP = (
    "import torch\nfrom torch import nn\ndef train(net, loader, optimizer, criterion):\n"
    "    for i, (x, y) in enumerate(loader):\n        out = net(x)\n        loss = criterion(out, y)\n"
    "        loss.backward()\n        optimizer.step()\n        "
)

NUMPY = [
    (NET + "np.exp(out)", {"numpy-func-on-tensor"}),
    (NET + "plt.plot(out)", {"numpy-func-on-tensor"}),
    (NET + "np.mean([net(out).sum() for i in range(3)])", {"numpy-func-on-tensor"}),
    (NET + "losses = []\nlosses.append(out.sum())\nnp.mean(losses)", {"numpy-func-on-tensor"}),
    (NET + "np.exp(out * 2)", {"numpy-func-on-tensor"}),
    # Fetched, a number, a tensor that is made on the CPU, or nobody knows.
    (NET + "np.exp(out.detach().cpu())", set()),
    (NET + "np.exp(out.cpu().detach().numpy())", set()),
    (NET + "np.exp(out.item())", set()),
    (NET + "np.prod(out.shape)", set()),
    (NET + "np.random.normal(0, 1, out.size(0))", set()),
    (NET + "losses = []\nlosses.append(out.sum().item())\nnp.mean(losses)", set()),
    (NET + "loss = out.sum()\nloss.backward()\nlosses = [loss.item()]\nnp.mean(losses)", set()),
    (TORCH + "np.exp(torch.zeros(3))", set()),
    (TORCH + "def f(x):\n    return np.exp(x)", set()),
    (TORCH + "def f(x):\n    x = np.asarray(x)\n    return np.exp(x)", set()),
    (FORWARD + "low = x.detach().cpu().numpy()\n        return low", {"numpy-in-forward"}),
    (FORWARD + "lengths = x.lengths.cpu().numpy()\n        return lengths", set()),
    (FORWARD + "if self.debug:\n            print(x.numpy())\n        return x", set()),
    (FORWARD + "return x\n    def show(self, x):\n        return x.numpy()", set()),
    (TORCH + "class Cut:\n    def forward(self, x):\n        return x.numpy()", set()),
    (
        FORWARD + "return nn.utils.rnn.pack_padded_sequence(x, self.lengths(x).cpu().numpy())",
        set(),
    ),
]

STEPS = [
    (STEP + "print(loss.item(), out.tolist())", {"item-every-step"}),
    (STEP + "print(loss.item())", set()),
    (STEP + "if i % 50 == 0:\n            print(loss.item(), out.sum().item())", set()),
    (STEP + "def report():\n            return loss.item(), out.item()", set()),
    ("def f(rows):\n    for row in rows:\n        print(row.a.item(), row.b.item())", set()),
    (STEP + "for j in range(4):\n            print(out[j].item())", {"sync-in-inner-loop"}),
    (STEP + "for j in range(4):\n            print(out[j].cpu())", {"sync-in-inner-loop"}),
    (STEP + "low = out.cpu()\n        for j in range(4):\n            print(low[j].item())", set()),
    (STEP + "for row in out.cpu():\n            print(row.item())", set()),
    (STEP + "if i % 50 == 0:\n            print([row.item() for row in out])", set()),
    (STEP + "for p in net.parameters():\n            print(p.norm().item())", set()),
    (STEP + "for j in range(4):\n            env.step(out[j].item())", set()),
    (STEP + "for a in test_loader:\n            print(a.sum().item())", set()),
    (STEP + "assert not torch.isnan(loss)", {"tensor-bool-control-flow"}),
    (STEP + "if (loss > 3).any():\n            break", {"tensor-bool-control-flow"}),
    (STEP + "if table.isnull().any():\n            break", set()),
    (FORWARD + "if (x == 0).all():\n            return x\n        return x + 1", {"tensor-bool-control-flow"}),
    (STEP + "if i % 100 == 0:\n            assert not torch.isnan(loss)", set()),
    (STEP + "if any(names):\n            break", set()),
    (FORWARD + "if not self.training:\n            assert torch.isfinite(x).all()\n        return x", set()),
    (FORWARD + "y = torch.isnan(x).any()\n        return x", set()),
    ("import numpy as np\nimport torch\n" + STEP + "if np.isnan(3).any():\n            break", set()),
    (STEP + "torch.cuda.empty_cache()", {"empty-cache-in-loop"}),
    (STEP + "try:\n            pass\n        except RuntimeError:\n            torch.cuda.empty_cache()", set()),
    (STEP + "if i % 9 == 0:\n            torch.cuda.empty_cache()", set()),
    ("import torch\nfor name in names:\n    torch.cuda.empty_cache()\n    bench(name)", set()),
]

PINNED = (
    "import torch\nfrom torch.utils.data import DataLoader\nfrom tqdm import tqdm\n"
    "def f(rows, device):\n    loader = DataLoader(rows, pin_memory={pin})\n    for x, y in {over}:\n        "
)
WAITING = [
    (PINNED.format(pin=True, over="tqdm(loader)") + "x = x.cuda()", {"transfer-without-non-blocking"}),
    (PINNED.format(pin="use_cuda", over="loader") + "x = x.to(device)", {"transfer-without-non-blocking"}),
    (PINNED.format(pin=False, over="loader") + "x = x.to(device)", set()),
    (PINNED.format(pin=True, over="loader") + "x = x.to(device, non_blocking=True)", set()),
    (PINNED.format(pin=True, over="loader") + "x = x.cuda(device, True)", set()),
    (PINNED.format(pin=True, over="loader") + "x = x.to(torch.float16)", set()),
    (PINNED.format(pin=True, over="loader") + "z = other.to(device)", set()),
    (PINNED.format(pin=True, over="others") + "x = x.to(device)", set()),
    ("import torch\nprint(x.to(device='cpu', non_blocking=True))", {"non-blocking-to-cpu"}),
    ("import torch\ny = x.to('cpu', non_blocking=True)\nkept.append(y)", set()),
    ("import torch\ny = x.to('cpu', non_blocking=True)\nz = y.to('cuda')", set()),
    ("import torch\ny = x.to('cuda', non_blocking=True)", set()),
    ("import torch\ny = x.to(device, non_blocking=True)", set()),
    ("import torch\ny = x.to('cpu', non_blocking=False)", set()),
    ("import torch\ny = x.to('cpu', non_blocking=True)\nstream.synchronize()", set()),
]

CONSTANT = "import torch\ndef f(rows, device):\n    w = torch.ones(3)\n    for x in rows:\n        "
COPIES = [
    (CONSTANT + "g(x, w.to(device))", {"repeated-constant-transfer"}),
    (CONSTANT + "g(x, w.cuda())\n        w = w + 1", set()),
    (CONSTANT + "g(x, w.cuda())\n        w[0] = 1", set()),
    (CONSTANT + "g(x, w.cuda())\n        w.add_(1)", set()),
    (CONSTANT + "w = w.to(device)\n        g(x, w)", set()),
    (CONSTANT + "g(x, w.to(x.device))", set()),
    (CONSTANT + "g(x, w.to(torch.float16))", set()),
    (CONSTANT + "if x is None:\n            g(w.to(device))", set()),
    (CONSTANT.replace("torch.ones(3)", "torch.ones(3).cuda()") + "g(x, w.cuda())", {"create-then-move"}),
    ("import torch\ndef f(w, rows, device):\n    for x in rows:\n        g(x, w.to(device))", set()),
    ("import torch\nx = torch.zeros(3).to('cuda', torch.float16)", {"create-then-move"}),
    ("import torch\nx = torch.zeros(3).cuda()", {"create-then-move"}),
    ("import torch\nx = torch.zeros(3).to(y.device)", {"create-then-move"}),
    ("import torch\nx = torch.zeros(3).to(torch.float16)", set()),
    ("import torch\nx = torch.zeros(3).to(y)", set()),
    ("import torch\nx = torch.zeros(3).to(1)\ny = torch.zeros(3).to(None)", set()),
    ("import torch\nx = torch.zeros(3).to('cpu')", set()),
    ("import torch\nx = torch.zeros(3, device=a).to(b)", set()),
    ("import torch\nx = torch.randn(3, generator=g).to(device)", set()),
    ("import torch\nx = torch.tensor(rows).to(device)", set()),
    ("import torch\nx = torch.ones(3, pin_memory=True).cuda()", set()),
    ("import torch\ny = torch.tensor(torch.ones(3), dtype=torch.int64)", {"torch-tensor-of-tensor"}),
    ("import torch\ndef f(x):\n    x = torch.tensor(x)\n    return x", set()),
    ("import torch\nx = torch.ones(3)\ny = torch.tensor(x.tolist())", set()),
    ("import torch\nx = torch.ones(3)\ny = torch.tensor([x.item(), x.size(0), 3])", set()),
    ("import torch\ny = torch.tensor([1.0, 2.0])", set()),
    ("import torch\ny = torch.as_tensor(torch.ones(3))", set()),
]

TIME = "import time\nimport torch\nnet = torch.nn.Linear(4, 4).cuda()\nstart = time.time()\n"
TIMES = [
    (TIME + "for i in range(9):\n    net(x)\nprint(time.time() - start)", {"timing-without-synchronize"}),
    (TIME + "net(x)\ntorch.cuda.synchronize()\nprint(time.time() - start)", set()),
    (TIME + "y = net(x).cpu()\nprint(time.time() - start)", set()),
    (TIME + "y = net(x).sum().item()\nend = time.time()", set()),
    (TIME + "show(net(x))\nprint(time.time() - start)", set()),
    (TIME + "net(x)\nprint('done')\nprint(time.time() - start)", set()),
    (TIME + "rows = read(path)\nprint(time.time() - start)", set()),
    (TIME.replace(".cuda()", "") + "net(x)\nprint(time.time() - start)", set()),
    (TIME + "def f(x):\n    return net(x)\nprint(time.time() - start)", set()),
]

PAIRS = "import torch\nm = torch.zeros(9, 9)\nfor i in range(9):\n    for j in range(9):\n        "
LOOPS = [
    (PAIRS + "m[i][j] = i + j", {"python-loop-over-tensor"}),
    (PAIRS + "print(m[i, j])", {"python-loop-over-tensor"}),
    (PAIRS + "m[i] = j", set()),
    (PAIRS.replace("(9, 9)", "(9, 9, 64)") + "show(m[i, j])", set()),
    (PAIRS.replace("(9, 9)", "(sizes)") + "show(m[i, j])", set()),
    (PAIRS.replace("(9, 9)", "((9, 9)).cuda()") + "m[i, j] = 1", {"python-loop-over-tensor", "create-then-move"}),
    (PAIRS + "m[i, 0] = j", set()),
    (PAIRS.replace("torch.zeros(9, 9)", "make(9, 9)") + "m[i, j] = 1", set()),
    (PAIRS.replace("torch.zeros(9, 9)", "[[0] * 9] * 9") + "m[i][j] = 1", set()),
    ("import torch\nx = torch.ones(9, 4)\nfor t in range(9):\n    h = cell(x[t], h)", set()),
    ("import torch\nx = torch.ones(9, 4)\nfor row in x:\n    h = cell(row, h)", set()),
]

ROWS = [*NUMPY, *STEPS, *WAITING, *COPIES, *TIMES, *LOOPS]


@pytest.mark.parametrize(("text", "names"), ROWS)
def test_only_what_is_meant(text, names):
    assert found(text) == names
