"""What looks like a fault and is none, and faults in other words, for the rules that one file decides."""

import pytest

from torchport.check.engine import check_source
from torchport.check.repair import repair
from torchport.check.rules import rules
from torchport.check.source import Source

NEWEST = (2, 13)


def found(group, text, torch=NEWEST):
    """The names of a group's rules that find something in a text."""
    chosen = [each for each in rules() if each.look.__module__.split(".")[-2] == group]
    names = {each.rule.id: each.rule.name for each in chosen}
    return {names[each.id] for each in check_source(Source("train.py", text), torch, chosen)}


def repaired(group, text):
    """A text with all repairs of a group."""
    chosen = [each for each in rules() if each.look.__module__.split(".")[-2] == group]
    done = repair(Source("train.py", text), lambda source: check_source(source, NEWEST, chosen), unsafe=True)
    assert done.failed == ()
    return done.text


DATA = """
import torch
from torch.utils.data import DataLoader as DL, Dataset, TensorDataset

class Points(Dataset):
    def __getitem__(self, index):
        return torch.tensor([float(index)])

    def __len__(self):
        return 100

class Rows(Dataset):
    def __init__(self, path):
        self.rows = torch.load(path, map_location="cpu"){move}

    def __getitem__(self, index):
        return self.rows[index]
"""
ON_CPU, ON_GPU = DATA.replace("{move}", ""), DATA.replace("{move}", ".cuda()")
MOVES = "x = torch.ones(3).cuda()\n"

DATA_ROWS = [
    # An alias of the class is the class; another class of that name is not.
    (ON_CPU + MOVES + "train = DL(Points())", {"num-workers-zero", "pin-memory-missing"}),
    (ON_CPU + MOVES + "class DataLoader:\n    pass\ntrain = DataLoader(Points())", set()),
    # Nothing says GPU, or somebody else knows.
    (ON_CPU + "train = DL(Points())", set()),
    (ON_CPU + MOVES + "train = DL(Points(), **options)", set()),
    (ON_CPU + MOVES + "train = DL(Points(), 8, False, None, None, 4)", {"pin-memory-missing"}),
    (ON_CPU + MOVES + "train = DL(TensorDataset(torch.ones(3)), pin_memory=pin)", set()),
    # Items on the GPU: neither workers nor pinned memory are advised.
    (ON_GPU + "train = DL(Rows('rows.pt'))", {"cuda-in-dataset"}),
    # A loop without workers, under the guard, in a function that the guard calls; and one that is called at once.
    (ON_CPU + "for batch in DL(Points()):\n    print(batch)", set()),
    (ON_CPU + "if __name__ == '__main__':\n    for batch in DL(Points(), num_workers=2):\n        print(batch)", set()),
    (ON_CPU + "def main():\n    for batch in DL(Points(), num_workers=2):\n        print(batch)", set()),
    (
        ON_CPU + "def main():\n    for batch in DL(Points(), num_workers=2):\n        print(batch)\nmain()",
        {"no-main-guard"},
    ),
    # What is kept is no batch, but a number or a result.
    (ON_CPU + "def f(k):\n    for i, x in enumerate(DL(Points(), num_workers=2)):\n        k.append(i)", set()),
    (ON_CPU + "def f(k):\n    for x in DL(Points(), num_workers=2):\n        x = x.mean()\n        k.append(x)", set()),
    (ON_CPU + "def f(k):\n    for x in DL(Points(), num_workers=2):\n        k.append(x)", {"keep-worker-tensors"}),
    # A next() of the user's own.
    (ON_CPU + "class Tape:\n    def next(self):\n        return 1\ntape = Tape()\ntape.next()", set()),
    (ON_CPU + "it = iter(DL(Points()))\nit.next()", {"iter-next-method"}),
    (ON_CPU + "it = iter(DL(Points()))\nit = Tape()\nit.next()", set()),
    (ON_CPU + "train = DL(Points(), num_workers=n, persistent_workers=True)", set()),
    (ON_CPU + "train = DL(Points(), prefetch_factor=None)", set()),
    (ON_CPU + "train = DL(Points(), batch_sampler=None, shuffle=True)", set()),
]

STREAM = """
from torch.utils.data import DataLoader, IterableDataset

class Lines(IterableDataset):
    def __iter__(self):
        yield from {items}
"""

DATA_ROWS += [
    (STREAM.replace("{items}", "range(9)") + "DataLoader(Lines(), num_workers=2)", {"iterable-dataset-repeated"}),
    (STREAM.replace("{items}", "range(9)") + "DataLoader(Lines(), num_workers=1)", set()),
    (STREAM.replace("{items}", "range(9)") + "DataLoader(Lines(), num_workers=2, worker_init_fn=share)", set()),
    (STREAM.replace("{items}", "share(get_worker_info())") + "DataLoader(Lines(), num_workers=2)", set()),
    (STREAM.replace("{items}", "range(9)") + "DataLoader(Lines(), shuffle=False)", set()),
    (STREAM.replace("{items}", "range(9)") + "DataLoader(Lines(), shuffle=True)", {"iterable-dataset-shuffle"}),
]

MODEL = """
import io
import torch
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP

model = nn.Linear(4, 2)
opt = optim.Adam(model.parameters())
"""
RESUME = "opt.load_state_dict(torch.load('o.pt', map_location='cpu'))\n"

CHECKPOINT_ROWS = [
    (MODEL + "state = torch.load('a.pt', 'cpu')", set()),
    (MODEL + "state = torch.load('a.pt', **options)", set()),
    (MODEL + "state = torch.load(io.BytesIO(data))", set()),
    (MODEL + "state = torch.load('a.pt')", {"load-without-map-location"}),
    # The optimizer is made before the move: the parameters stay the same objects.
    (MODEL + "model.cuda()", set()),
    (MODEL + "model.cuda()\n" + RESUME + "model.to('cuda')", set()),
    (MODEL + RESUME + "model.to('cpu')", set()),
    (MODEL + "if resume:\n    " + RESUME + "else:\n    model.cuda()", set()),
    (MODEL + "def resume():\n    " + RESUME + "model.cuda()", set()),
    (MODEL + RESUME + "model.cuda()", {"optimizer-state-before-move"}),
    # What is saved is inside, or taken out again.
    (MODEL + "model = DDP(model)\ntorch.save(model.module.state_dict(), 'a.pt')", set()),
    (MODEL + "model = DDP(model)\nmodel = model.module\ntorch.save(model.state_dict(), 'a.pt')", set()),
    (MODEL + "fast = DDP(model)\ntorch.save(model.state_dict(), 'a.pt')", set()),
    (MODEL + "model = DDP(model)\nraw = model.module if ddp else model\ntorch.save(raw.state_dict(), 'a.pt')", set()),
    (MODEL + "model = DDP(model)\nother.load_state_dict(model.state_dict())\ntorch.save(1, 'a.pt')", set()),
    (
        MODEL + "model = DDP(model)\nstate = {'m': model.state_dict()}\ntorch.save(state, 'a')",
        {"save-wrapped-state-dict"},
    ),
    (MODEL + "torch.save({'model': 1}, 'a.pt')\ntorch.save(opt, 'b.pt')", set()),
    (MODEL + "torch.save(model, io.BytesIO())", set()),
    (MODEL + "answer = model.load_state_dict(state, strict=False)", set()),
    (MODEL + "for i in range(3):\n    torch.save(1, f'{i}.pt')", set()),
    (MODEL + "state = {'epoch': 1, 'm': model.state_dict()}\nstate['opt'] = 1\ntorch.save(state, 'a.pt')", set()),
    (MODEL + "torch.save({'epoch': 1, **more, 'm': model.state_dict()}, 'a.pt')", set()),
    (MODEL + "net = torch.load('a.pt', 'cpu')\nnet.update({})", set()),
    (MODEL + "net = torch.load('a.pt', 'cpu', weights_only=False)\nnet.eval()", set()),
    (MODEL + "with torch.serialization.safe_globals([C]):\n    torch.load('a.pt', 'cpu').eval()", set()),
    (MODEL + "torch.load('a.pt', 'cpu').eval()", {"load-needs-pickle"}),
    (MODEL + "import pickle\npickle.dump({'a': 1}, file)\npickle.dump(opt, file)", set()),
    (MODEL + "import pickle\npickle.dump(model, file)", {"pickle-tensors"}),
]

HERE = "import os\nimport re\nimport torch\nimport argparse\nparser = argparse.ArgumentParser()\n"
CONFIGURATION_ROWS = [
    (HERE + "'''/home/alice/notes'''", set()),
    (HERE + "root = os.environ.get('DATA', '/home/alice/data')", set()),
    (HERE + "url = 'https://host/home/alice/x'\nword = 'C:'\nslot = 'a:/b'", set()),
    (HERE + "part = re.compile('/home/[a-z]+/x')\nsame = name == '/home/alice/x'", set()),
    (HERE + "parser.add_argument('--x', help='/home/alice/x')", set()),
    (HERE + "parser.add_argument('--x', default='/Users/alice/x')", {"absolute-local-path"}),
    (HERE + "f = f'/home/alice/{name}'", {"absolute-local-path"}),
    (HERE + "f = f'{root}/home/alice'\ndata = '/data/train'\ntmp = '/tmp/x'", set()),
    (HERE + "torch.load(re.escape('a\\\\d'), 'cpu')", set()),
    (HERE + "open('a\\\\b.txt')", {"windows-separator"}),
    # Set in a function, by a variable, or for another program.
    (HERE + "def main(gpu):\n    os.environ['CUDA_VISIBLE_DEVICES'] = gpu", set()),
    (HERE + "os.environ['OMP_NUM_THREADS'] = '1'", set()),
    (
        HERE + "def main(gpu):\n    torch.cuda.init()\n    os.environ['CUDA_VISIBLE_DEVICES'] = gpu",
        {"cuda-visible-devices-late"},
    ),
    (HERE + "parser.add_argument('--gpus', default=2)\nparser.add_argument('--gpu', default=0)", set()),
    (HERE + "parser.add_argument('--gpu', type=int, default=1, help='number of GPUs')", set()),
    (HERE + "parser.add_argument('--gpu-id', type=int, default=3)", {"gpu-number-in-argparse"}),
    (HERE + "try:\n    from google.colab import drive\nexcept ImportError:\n    pass", set()),
    (HERE + "from IPython import get_ipython\nget_ipython()", set()),
]

API = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\nfrom torch.autograd import Variable\n"
API_ROWS = [
    # Names of others, and the new names.
    ("import scipy.linalg as torch\ntorch.solve(a, b)", set()),
    (API + "from mine import sigmoid\nsigmoid(x)\ntorch.fft.rfft(x)\ntorch.linalg.solve(a, b)", set()),
    (API + "known = [F.sigmoid, F.tanh, torch.norm]", set()),
    (API + "try:\n    from torch._six import inf\nexcept ImportError:\n    from math import inf", set()),
    (API + "if hasattr(torch, 'symeig'):\n    torch.symeig(x)", set()),
    (API + "y = torch.fft(x, 1)", {"api-removed"}),
    (API + "fft = torch.fft", set()),
    (API + "from torch._six import inf", {"api-removed"}),
    (API + "layer.register_backward_hook(f)", {"api-deprecated"}),
    # An index of what has dimensions.
    (API + "first = rows.data[0]", set()),
    (API + "loss = torch.zeros(1)\nloss.backward()\nprint(loss[0])", set()),
    (API + "loss = nn.MSELoss(reduction='none')(a, b)\nprint(loss[0])", set()),
    (API + "def f(criterion):\n    loss = criterion(a, b)\n    return loss.data[0]", {"zero-dim-index"}),
    (API + "loss = 0\nfor x in xs:\n    loss += F.mse_loss(x, x)\nprint(loss.data[0])", {"zero-dim-index"}),
    (API + "step = StepLR(verbose=True)\nprint(verbose=True)", set()),
    (API + "x.masked_fill(mask, 0)\nx.masked_fill(mask.bool(), 0)", set()),
    (API + "mask = torch.zeros(3, dtype=torch.uint8)\nx.masked_fill(mask, 0)", {"byte-mask"}),
    (API + "F.softmax(x, 1)\nnn.Softmax(1)\nx.softmax(-1)\nF.softmax(x, **k)", set()),
    (API + "nn.MSELoss(size_average=flag)\nmine(size_average=True)", set()),
    (API + "w.add_(1)\nw.add_(g, alpha=-1)\nseen.add(a, b)", set()),
    (API + "rest = 1 - (x > 0)", set()),
    (API + "import pandas\nrest = 1 - frame.eq(0)", set()),
    (API + "import numpy as np\nnp.float32(1)\nnp.bool_(1)\nnp.inf", set()),
    (API + "import pandas as np\nnp.Inf", set()),
    (
        API + "class Sign(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x",
        set(),
    ),
    (API + "class Variable:\n    pass\nVariable()", set()),
]

SEED = "import torch\nimport random\n"
REPRODUCIBILITY_ROWS = [
    (SEED + "torch.manual_seed(1)\ntorch.cuda.manual_seed(2)", set()),
    (SEED + "torch.manual_seed(1)\nx = torch.rand(3)\ntorch.cuda.manual_seed(1)", set()),
    (SEED + "torch.manual_seed(1)\nrandom.seed(1)\ntorch.cuda.manual_seed(1)", {"seed-cuda-explicit"}),
    (SEED + "torch.use_deterministic_algorithms(True, warn_only=True)", set()),
    (SEED + "torch.use_deterministic_algorithms(flag)", set()),
    (SEED + "torch.backends.cudnn.benchmark = True", set()),
]

LOGGING_ROWS = [
    ("import torch\nloss = f(x)\nprint(loss)", set()),
    ("import torch\nloss = f(x)\nloss.backward()\nprint(f'{loss:.3f}', loss.item())", set()),
    ("import torch\nloss = f(x)\nloss.backward()\nprint(f'{loss}')", {"loss-printed-as-tensor"}),
    ("import torch\nfrom tqdm import tqdm\nfor i in tqdm(range(3)):\n    pass", set()),
]

SECURITY_ROWS = [
    ("import torch\nimport yaml\nyaml.load(f, yaml.SafeLoader)\nyaml.load(f, Loader=L)", set()),
    ("import torch\ntorch.hub.load('a/b', 'c', source='local')\ntorch.hub.load(name, 'c')", set()),
    ("import torch\ntorch.load('mine.pt', weights_only=False)", set()),
]

ROWS = {
    "data": DATA_ROWS,
    "checkpoint": CHECKPOINT_ROWS,
    "configuration": CONFIGURATION_ROWS,
    "api": API_ROWS,
    "reproducibility": REPRODUCIBILITY_ROWS,
    "logging": LOGGING_ROWS,
    "security": SECURITY_ROWS,
}


@pytest.mark.parametrize(
    ("group", "text", "names"), [(group, text, names) for group, rows in ROWS.items() for text, names in rows]
)
def test_only_what_is_meant(group, text, names):
    assert found(group, text) == names


def test_repairs_keep_the_layout():
    text = "from torch.autograd import Variable\nx = Variable(a +\n             b)\n"
    assert repaired("api", text) == "from torch.autograd import Variable\nx = (a +\n             b)\n"
    text = "from torch.autograd import Variable\nif a:\n    x, y = Variable(x), Variable(y)\n"
    assert repaired("api", text) == "from torch.autograd import Variable\nif a:\n    pass\n"
    text = "import torch\ngrid = torch.meshgrid(torch.arange(n) for n in sizes)\n"
    assert repaired("api", text) == (
        'import torch\ngrid = torch.meshgrid((torch.arange(n) for n in sizes), indexing="ij")\n'
    )
    text = "import torch as th\nfrom torch import nn\nth.set_deterministic(True)\nnn.utils.clip_grad_norm(p, 1)\n"
    assert repaired("api", text) == (
        "import torch as th\nfrom torch import nn\n"
        "th.use_deterministic_algorithms(True)\nnn.utils.clip_grad_norm_(p, 1)\n"
    )


def test_versions():
    text = "import torch\nstate = torch.load('a.pt', 'cpu')\n"
    assert found("security", text, (2, 5)) == {"load-weights-only-missing"}
    assert found("security", text, (2, 6)) == set()
    assert found("checkpoint", text + "state.eval()", (2, 5)) == set()
