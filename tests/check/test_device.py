"""Rules about devices that need no flow: what looks like a fault and is none, and faults in other words."""

import pytest

from torchport.check.engine import check_source
from torchport.check.rules import rules
from torchport.check.source import Source

NUMBERS = range(120, 136)


def found(text, torch=(2, 13)):
    """The names of these rules that find something in a text."""
    chosen = [each for each in rules() if int(each.rule.id[1:]) in NUMBERS]
    names = {each.rule.id: each.rule.name for each in chosen}
    return {names[each.id] for each in check_source(Source("train.py", text), torch, chosen)}


TORCH = "import torch\nfrom torch import nn\n"
NET = TORCH + "class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        "
FORWARD = TORCH + "class Net(nn.Module):\n    def forward(self, x):\n        "

CONSTRUCTORS = [
    (TORCH + "x = torch.LongTensor(ids)", {"legacy-tensor-constructor"}),
    ("from torch import FloatTensor as FT\nx = FT([1, 2])", {"legacy-tensor-constructor"}),
    # The type is named and nothing made; the tensor belongs to a module; another class has the name.
    (TORCH + "ok = isinstance(x, torch.FloatTensor)", set()),
    (TORCH + "def f(x: torch.Tensor) -> torch.Tensor:\n    return x", set()),
    (NET + "self.w = nn.Parameter(torch.Tensor(n, n))", set()),
    (NET + "self.register_buffer('w', torch.Tensor(n))", set()),
    ("import torch\nfrom mine import FloatTensor\nx = FloatTensor(3)", set()),
    (TORCH + "kind = torch.cuda.HalfTensor if torch.cuda.is_available() else None", {"cuda-tensor-type-alias"}),
    (TORCH + "kind = torch.LongTensor", set()),
    (TORCH + "fast = isinstance(x, torch.cuda.FloatTensor)", set()),
]

CUDA = [
    (TORCH + "x = torch.zeros(3, device='cuda')", {"hard-coded-cuda"}),
    (TORCH + "x = y.cuda(non_blocking=True)", {"hard-coded-cuda"}),
    (TORCH + "x = y.type('torch.cuda.LongTensor')", {"hard-coded-cuda"}),
    # Somebody asked before.
    (TORCH + "if torch.cuda.is_available():\n    x = y.cuda()", set()),
    (TORCH + "x = y.cuda() if use_cuda else y", set()),
    (TORCH + "use_gpu and y.cuda()", set()),
    (TORCH + "if not torch.cuda.is_available():\n    raise SystemExit\nx = y.cuda()", set()),
    (TORCH + "def f(y):\n    assert torch.cuda.is_available()\n    for i in y:\n        i.cuda()", set()),
    (TORCH + "try:\n    x = y.cuda()\nexcept RuntimeError:\n    x = y", set()),
    (TORCH + "@requires_gpu\ndef test_it(y):\n    y.cuda()", set()),
    (TORCH + "def to_cuda(y):\n    return y.cuda()", set()),
    (NET + "self.n = n\n    def cuda(self):\n        return super().cuda()", set()),
    (
        TORCH + "class Test(Case):\n    def setUp(self):\n        if not torch.cuda.is_available():\n"
        "            self.skipTest('no GPU')\n    def test_it(self):\n        y.cuda()",
        set(),
    ),
    # An argument, a comparison, a key: nothing is moved there.
    (TORCH + "parser.add_argument('--device', default='cuda')", set()),
    (TORCH + "fast = device.type == 'cuda'", set()),
    (TORCH + "def f(device=torch.device('cuda')):\n    pass", set()),
    (TORCH + "fast = x.device == torch.device('cuda')", set()),
    (TORCH + "with torch.autocast('cuda'):\n    pass", set()),
    (TORCH + "x = y.to(device)", set()),
    (TORCH + "loader = Loader(device='cuda')", set()),
    # Code for GPUs alone.
    (TORCH + "import triton\nx = y.cuda()", set()),
    (TORCH + "import torch.distributed as dist\ndist.init_process_group('nccl')\nx = y.cuda()", set()),
]

INDEX = [
    (TORCH + "x = y.to('cuda:3')", {"hard-coded-device-index"}),
    (TORCH + "torch.cuda.set_device(1)", {"hard-coded-device-index"}),
    (TORCH + "state = torch.load(p, map_location='cuda:1')", {"hard-coded-device-index"}),
    (TORCH + "net = nn.DataParallel(net, [0, 1])\nnet = nn.DataParallel(net, device_ids=[0])", set()),
    (TORCH + "net = nn.DataParallel(net, device_ids=[0, 1, 2])", {"hard-coded-device-index"}),
    (TORCH + "device = torch.device('cuda:0' if ok else 'cpu')", set()),
    (TORCH + "torch.cuda.set_device(local_rank)\nx = y.to(f'cuda:{rank}')", set()),
    (TORCH + "parser.add_argument('--device', default='cuda:1')", set()),
    (TORCH + "names = {'cuda:1': 'second'}\nif str(device) == 'cuda:1':\n    pass", set()),
    (TORCH + "torch.load(p, map_location={'cuda:1': 'cuda:0'})", set()),
    (TORCH + "torch.cuda.set_device(True)", set()),
    (TORCH + "if torch.cuda.device_count() > 1:\n    torch.cuda.set_device(1)", set()),
    (TORCH + "if torch.cuda.is_available():\n    torch.cuda.set_device(1)", {"hard-coded-device-index"}),
]

GPU = "import torch\nfrom cli import p\np.add_argument('--gpu-id', type=int)\nargs = p.parse_args()\n"
TRUTH = [
    (
        GPU + "if not args.gpu_id:\n    pass\nelse:\n    torch.cuda.set_device(args.gpu_id)",
        {"device-from-truthy-gpu-id"},
    ),
    (GPU + "if torch.cuda.is_available() and args.gpu_id:\n    y.cuda(args.gpu_id)", {"device-from-truthy-gpu-id"}),
    (GPU + "if args.gpu_id is not None:\n    y.cuda(args.gpu_id)", set()),
    (GPU + "if args.gpu_id >= 0 and args.gpu_id:\n    y.cuda(args.gpu_id)", set()),
    (GPU.replace("int", "str") + "if args.gpu_id:\n    y.to(f'cuda:{args.gpu_id}')", set()),
    (GPU.replace("type=int", "action='store_true'") + "if args.gpu_id:\n    y.cuda(args.gpu_id)", set()),
    (GPU + "if args.gpu_id:\n    print('one')", set()),
    ("import torch\ndef f(gpu: int, y):\n    return y.cuda(gpu) if gpu else y", {"device-from-truthy-gpu-id"}),
    ("import torch\ndef f(gpu: bool, y):\n    return y.cuda(gpu) if gpu else y", set()),
]

FLAGS = (
    "import torch\nfrom config import args\nnet = torch.nn.Linear(2, 2)\nx = torch.ones(2)\n"
    "if {model}:\n    net.cuda()\nif {data}:\n    x = x.cuda()\n"
)
SWITCHES = [
    (FLAGS.format(model="args.use_cuda", data="torch.cuda.is_available()"), {"mixed-device-flags"}),
    (FLAGS.format(model="args.use_cuda", data="args.use_cuda"), set()),
    (FLAGS.format(model="torch.cuda.is_available()", data="torch.cuda.is_available()"), set()),
    (FLAGS.format(model="cuda", data="args.cuda").replace("net =", "cuda = args.cuda\nnet =", 1), set()),
    (FLAGS.format(model="args.cuda", data="args.cuda and args.fast"), set()),
]

REFERENCES = [
    (NET + "self.register_buffer('s', torch.ones(n))\n        self.all = {'s': self.s}", {"stale-buffer-reference"}),
    (NET + "self.register_buffer('s', torch.ones(n))\n        self.all = {'s': 's'}", set()),
    (NET + "self.w = nn.Parameter(torch.ones(n))\n        self.all = [self.w]", set()),
    (NET + "self.register_buffer('s', torch.ones(n))\n    def forward(self, x):\n        self.last = self.s", set()),
]

CONTAINERS = [
    (NET + "self.layers = {'a': nn.Linear(n, n)}", {"module-in-plain-container"}),
    (
        NET + "layers = []\n        layers.append(nn.Linear(n, n))\n        self.layers = layers",
        {"module-in-plain-container"},
    ),
    (
        NET + "self.d = {}\n        for i in range(n):\n            self.d[i] = nn.Linear(n, n)",
        {"module-in-plain-container"},
    ),
    (NET + "self.d = {str(i): nn.Linear(n, n) for i in range(n)}", {"module-in-plain-container"}),
    (NET + "self.l = [nn.Sequential(nn.ReLU(), nn.Linear(n, n))]", {"module-in-plain-container"}),
    (NET + "self.losses = [nn.CrossEntropyLoss(weight=n)]", {"module-in-plain-container"}),
    # Known to the module in another way.
    (NET + "self.layers = nn.ModuleList([nn.Linear(n, n)])", set()),
    (NET + "layers = [nn.Linear(n, n)]\n        self.net = nn.Sequential(*layers)", set()),
    (NET + "layers = [nn.Linear(n, n)]\n        self.all = layers\n        self.net = nn.Sequential(*layers)", set()),
    (NET + "self.l = [nn.Linear(n, n)]\n        self.l = nn.ModuleList(self.l)", set()),
    (
        NET
        + "self.l = [nn.Linear(n, n)]\n        for i, e in enumerate(self.l):\n            self.add_module(str(i), e)",
        set(),
    ),
    (
        NET
        + "self.l = [nn.Linear(n, n)]\n        for i, e in enumerate(self.l):\n            setattr(self, str(i), e)",
        set(),
    ),
    (NET + "self.a = nn.Linear(n, n)\n        self.l = [self.a, self.a]", set()),
    (NET + "a = nn.Linear(n, n)\n        self.a = a\n        self.l = [a]", set()),
    # Nothing in it has weights, or the class is no module.
    (NET + "self.l = [nn.ReLU(), nn.MSELoss()]", set()),
    (TORCH + "class Pool:\n    def __init__(self):\n        self.l = [nn.Linear(2, 2)]", set()),
    (NET + "self.l = [make(n)]", set()),
]

PARAMETERS = [
    (NET + "self.w = nn.Parameter(torch.ones(n) * 2).to('cpu')", {"parameter-then-cuda"}),
    (NET + "self.w = nn.Parameter(torch.ones(n).to(device))", set()),
    (NET + "self.w = nn.Parameter(torch.ones(n)).detach()", set()),
    (NET + "print(nn.Parameter(torch.ones(n)).to('cpu').sum())", set()),
]

FORWARDS = [
    (FORWARD + "layer = nn.LSTM(4, 4)\n        return layer(x)", {"module-built-in-forward"}),
    (
        FORWARD + "return self.go(x)\n    def go(self, x):\n        return nn.BatchNorm1d(4)(x)",
        {"module-built-in-forward"},
    ),
    (FORWARD + "return nn.ReLU()(x) + nn.Dropout(0.1)(x)", set()),
    (FORWARD + "if self.layer is None:\n            self.layer = nn.Linear(x.size(1), 4).to(x.device)", set()),
    (FORWARD + "return self.layer(x)\n    def build(self):\n        self.layer = nn.Linear(4, 4)", set()),
    (FORWARD + "return self.go(x)\n    @once\n    def go(self, x):\n        return nn.Linear(4, 4)", set()),
    (TORCH + "class Trainer:\n    def forward(self, x):\n        return nn.Linear(4, 4)(x)", set()),
    (FORWARD + "return x * next(self.parameters()).mean()", {"parameters-in-forward-under-dp"}),
    (FORWARD + "return x\n    @property\n    def device(self):\n        return next(self.parameters()).device", set()),
    (FORWARD + "return x.to(next(other.parameters()).device)", set()),
    (FORWARD + "return x + torch.ones(3).to(x.get_device())", {"get-device-index"}),
    (FORWARD + "return x if x.get_device() >= 0 else x + 1", set()),
    (TORCH + "y = torch.ones(3).to(trainer.get_device())", set()),
    (TORCH + "from engine import get_device\ny = torch.ones(3).to(get_device())", set()),
    (FORWARD + "y = y.cuda() if x.is_cuda else y\n        return x + y", {"scalar-compare-device"}),
    (FORWARD + "y = y.cuda(x.get_device()) if x.is_cuda else y\n        return x + y", {"get-device-index"}),
    (FORWARD + "if x.is_cuda:\n            return self.fast(x)\n        return self.slow(x)", set()),
    (
        FORWARD + "if torch.cuda.is_available():\n            x = x.cuda()\n        return x",
        {"device-from-availability-not-model"},
    ),
    (FORWARD + "if torch.cuda.is_available():\n            torch.cuda.synchronize()\n        return x", set()),
    (NET + "self.device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')", set()),
]

AVAILABLE = "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')"
HELPERS = [
    (
        f"import torch\ndef f(net, x):\n    {AVAILABLE}\n    return net(x.to(device))",
        {"device-from-availability-not-model"},
    ),
    (f"import torch\ndef f(net, x):\n    {AVAILABLE}\n    net.to(device)\n    return net(x.to(device))", set()),
    (f"import torch\ndef f(net, x):\n    {AVAILABLE}\n    net = net.to(device)\n    return net(x.to(device))", set()),
    (f"import torch\ndef f(loss, x):\n    {AVAILABLE}\n    return loss(x.to(device))", set()),
    (f"import torch\n{AVAILABLE}\ndef f(net, x):\n    return net(x.to(device))", set()),
]

MOVED = TORCH + "def build(make, device):\n    net = make()\n    "
REPLACED = [
    (MOVED + "net = net.to(device)\n    net.head.fc = nn.Linear(2, 2)", {"module-replaced-after-move"}),
    (
        MOVED + "net.cuda()\n    net.fc = nn.Sequential(nn.Linear(2, 2))",
        {"hard-coded-cuda", "module-replaced-after-move"},
    ),
    (MOVED + "net.to(device)\n    net.fc = nn.Linear(2, 2)\n    net.to(device)", set()),
    (MOVED + "net.to(device)\n    net.fc = nn.Linear(2, 2)\n    net.fc.to(device)", set()),
    (MOVED + "net.to(device)\n    net.fc = nn.Linear(2, 2).to(device)", set()),
    (MOVED + "net.fc = nn.Linear(2, 2)\n    net.to(device)", set()),
    (MOVED + "net.to('cpu')\n    net.fc = nn.Linear(2, 2)", set()),
    (MOVED + "net.to(device)\n    net = make()\n    net.fc = nn.Linear(2, 2)", set()),
    (MOVED + "net.to(device)\n    net.act = nn.ReLU()", set()),
    (MOVED + "net.to(torch.float16)\n    net.fc = nn.Linear(2, 2)", set()),
    (MOVED + "net.to(device)\n    net.fc = nn.Linear(2, 2, device=device)", set()),
    (MOVED + "net.to(device)\n    net.fc = nn.Linear(2, 2)\n    return net.cuda()", {"hard-coded-cuda"}),
]

LOADER = "import torch\nfrom torch.utils.data import DataLoader\ntorch.set_default_device({device})\n"
DEFAULTS = [
    (LOADER.format(device="torch.device('cuda:0')") + "DataLoader(rows, shuffle=True)", {"global-default-cuda"}),
    (LOADER.format(device="'cuda'") + "DataLoader(rows, 8, True)", {"global-default-cuda"}),
    (LOADER.format(device="'cpu'") + "DataLoader(rows, shuffle=True)", set()),
    (LOADER.format(device="'cuda'") + "DataLoader(rows, shuffle=False)", set()),
    (LOADER.format(device="'cuda'") + "DataLoader(rows, shuffle=True, generator=g)", set()),
    (LOADER.format(device="'cuda'") + "DataLoader(rows, **options)", set()),
    (LOADER.format(device="'cuda'").replace("torch.utils.data", "mine") + "DataLoader(rows, shuffle=True)", set()),
]

ROWS = [
    *CONSTRUCTORS,
    *CUDA,
    *INDEX,
    *TRUTH,
    *SWITCHES,
    *REFERENCES,
    *CONTAINERS,
    *PARAMETERS,
    *FORWARDS,
    *HELPERS,
    *REPLACED,
    *DEFAULTS,
]


@pytest.mark.parametrize(("text", "names"), ROWS)
def test_only_what_is_meant(text, names):
    assert found(text) == names
