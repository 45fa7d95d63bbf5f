"""Each repair on one fault: what a rehearsal would say of it, and what becomes of the source."""

import textwrap

import pytest

from torchport.migrate.repairs import propose
from torchport.migrate.tree import copy
from torchport.record import Observation, Site

HEAD = """
import torch
from torch import nn
device = torch.device("cuda")
"""
FIRST = HEAD.count("\n") + 1


def cpu(name, line, by="torch.zeros", **more):
    return {"name": name, "device": "cpu", "born": line, "born_by": by, "kind": "activation", **more}


def gpu(name=None):
    return {"name": name, "device": "cuda:0", "born": None, "born_by": None, "kind": "activation"}


# name: (text, id, line of the fault, the tensors with the offender first, the repair, what is added)
FAULTS = {
    "factory": (
        """
        def f(x):
            y = torch.zeros(3)
            return x.view(3) + y
        """,
        ("R101", 3, [cpu("y", 2), gpu("x")]),
        "factory",
        "y = torch.zeros(3, device=device)",
    ),
    "what it was computed from": (
        """
        def f(x):
            y = torch.arange(3)
            z = torch.cat([y, y])
            return x + z
        """,
        ("R101", 4, [cpu("z", 3, by="cat", root=2, root_by="torch.arange"), gpu("x")]),
        "factory at its root",
        "y = torch.arange(3, device=device)",
    ),
    "random numbers are moved": (
        """
        def f(x):
            return x.view(3) + torch.randn(3)
        """,
        ("R101", 2, [cpu(None, 2, "torch.randn"), gpu("x")]),
        "factory",
        "return x.view(3) + torch.randn(3).to(device)",
    ),
    "buffer": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.shift = torch.zeros(3)
            def forward(self, x):
                return x + self.shift
        """,
        ("R101", 6, [cpu("self.shift", 4), gpu("x")]),
        "factory",
        'self.register_buffer("shift", torch.zeros(3), persistent=False)',
    ),
    "batch": (
        """
        for x, y in loader:
            loss = f(model(x.to(device)), y)
        """,
        ("R101", 2, [cpu("y", 1, "DataLoader"), gpu()]),
        "batch",
        "y = y.to(device)",
    ),
    "batch under another name": (
        """
        for step, (x, y) in enumerate(loader):
            loss = f(model(x), y)
        """,
        ("R101", 2, [cpu("images", 1, "DataLoader"), gpu("self.fc.bias")]),
        "batch unpacked",
        "x, y = x.to(device), y.to(device)",
    ),
    "batch that is taken apart": (
        """
        for step, data in enumerate(loader):
            x, y = data
            loss = f(model(x), y)
        """,
        ("R101", 3, [cpu("images", 1, "DataLoader"), gpu("self.fc.bias")]),
        "batch unpacked",
        "x, y = x.to(device), y.to(device)",
    ),
    "batch of which one is moved": (
        """
        for x, y in loader:
            y = y.to(device)
            loss = f(model(x), y)
        """,
        ("R101", 3, [cpu("x", 1, "DataLoader"), gpu()]),
        "batch",
        "x, y = x.to(device), y.to(device)",
    ),
    "batch that is one object": (
        """
        for batch in loader:
            model(batch.x)
        """,
        ("R101", 2, [cpu("x", 1, "DataLoader"), gpu()]),
        "batch moved",
        "batch = batch.to(device)",
    ),
    "module": (
        """
        model = nn.Linear(3, 3)
        model(torch.ones(3, device=device))
        """,
        ("R101", 2, [cpu("model.weight", 1, "torch.empty", kind="parameter"), gpu()]),
        "module",
        "model = nn.Linear(3, 3).to(device)",
    ),
    "list of modules": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = [nn.Linear(3, 3) for _ in range(2)]
            def forward(self, x):
                return self.layers[0](x)
        """,
        ("R101", 6, [cpu(None, 4, "torch.empty"), gpu("x")]),
        "list registered",
        "self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])",
    ),
    "loss": (
        """
        criterion = nn.CrossEntropyLoss(weight=w)
        criterion(out, y)
        """,
        ("R101", 2, [cpu("criterion.weight", 1, "div", kind="buffer"), gpu("out")]),
        "loss",
        "criterion = nn.CrossEntropyLoss(weight=w).to(device)",
    ),
    "numpy": (
        """
        print(out.detach().numpy())
        """,
        ("R102", 1, [gpu("out")]),
        "host",
        "print(out.detach().cpu().numpy())",
    ),
    "numpy of a sum": (
        """
        delta = (target - value).numpy()
        """,
        ("R102", 1, [gpu(None)]),
        "host",
        "delta = (target - value).cpu().numpy()",
    ),
    "a sum with an array": (
        """
        advantage = r + gamma * v - w.cpu().numpy()
        """,
        ("R102", 1, [gpu(None)]),
        "host",
        "advantage = (r + gamma * v).cpu() - w.cpu().numpy()",
    ),
    "fetched": (
        """
        def act(q):
            action = q.max(1)[1].data[0]
            return action
        def keep(s, action):
            return np.hstack((s, [action, 1.0]))
        """,
        ("R102", 5, [{**gpu(None), "born": 2}]),
        "fetched",
        "action = q.max(1)[1].data[0].cpu()",
    ),
    "one factory in another": (
        """
        def f(x):
            y = torch.normal(torch.zeros(3), torch.ones(3))
            return x.view(3) + y
        """,
        ("R101", 3, [cpu("y", 2, "torch.normal"), gpu("x")]),
        "factory",
        "y = torch.normal(torch.zeros(3), torch.ones(3)).to(device)",
    ),
    "behind what shapes it": (
        """
        prob = net(torch.from_numpy(s).float().unsqueeze(0))
        """,
        ("R101", 1, [cpu(None, 1, "torch.from_numpy"), gpu()]),
        "factory",
        "prob = net(torch.from_numpy(s).float().unsqueeze(0).to(device))",
    ),
    "device of the file": (
        """
        class Net(nn.Module):
            def learn(self):
                y = torch.zeros(3)
                return self.fc.weight + y
        """,
        ("R101", 4, [cpu("y", 3), gpu("self.fc.weight")]),
        "factory",
        "y = torch.zeros(3, device=device)",
    ),
    "lengths": (
        """
        nn.utils.rnn.pack_padded_sequence(x, lengths)
        """,
        ("R104", 1, [gpu(None)]),
        "host",
        "nn.utils.rnn.pack_padded_sequence(x, lengths.cpu())",
    ),
    "generator": (
        """
        noise = torch.randn(3, generator=g, device=device)
        """,
        ("R105", 1, []),
        "generator",
        "noise = torch.randn(3, generator=g).to(device)",
    ),
    "table by an index of the GPU": (
        """
        picked = torch.eye(3)[target]
        """,
        ("R103", 1, [gpu("target"), cpu(None, 1, "torch.eye")]),
        "factory",
        "picked = torch.eye(3, device=target.device)[target]",
    ),
    "layer in a call": (
        """
        def f(x):
            return nn.Linear(3, 3)(x)
        """,
        ("R101", 2, [cpu(None, None), gpu("x")]),
        "layer",
        "return nn.Linear(3, 3).to(x.device)(x)",
    ),
    "assigned": (
        """
        a, b = map(torch.LongTensor, pairs)
        model(a)
        """,
        ("R101", 2, [cpu("x", 1, "torch.LongTensor"), gpu()]),
        "assigned",
        "a, b = a.to(device), b.to(device)",
    ),
    "kept by a module as it was given": (
        """
        class Net(nn.Module):
            def __init__(self, mean):
                super().__init__()
                self.mean = mean

            def forward(self, x):
                return x - self.mean
        """,
        ("R101", 7, [cpu("self.mean", None, "div", set=4), gpu("x")]),
        "buffer where it is set",
        'self.register_buffer("mean", mean, persistent=False)',
    ),
    "a module that is brought to the CPU": (
        """
        model = nn.Linear(3, 3).to("cpu")
        model(torch.ones(3, device=device))
        """,
        ("R101", 2, [cpu("model.weight", 1, "torch.empty", kind="parameter"), gpu()]),
        "module",
        "model = nn.Linear(3, 3).to(device)",
    ),
    "a module that an object of the program holds": (
        """
        class Trainer:
            def __init__(self):
                self.net = nn.Linear(3, 3)

            def fit(self, x):
                self.net(x)

        trainer = Trainer()
        """,
        ("R101", 6, [cpu("self.net.weight", 3, "torch.empty", kind="parameter", built=[3, 8]), gpu("x")]),
        "module",
        "self.net = nn.Linear(3, 3).to(device)",
    ),
    "handed on": (
        """
        def mix(x, other):
            return x * other
        def g(x, y):
            return mix(x, y.float())
        """,
        ("R101", 2, [cpu("other", None, "aten::_to_copy", handed=4, function="mix"), gpu("x")]),
        "handed on",
        "return mix(x, y.float().to(device))",
    ),
    "handed on, and brought to the CPU": (
        """
        def g(model, x):
            return model(x.to("cpu"))
        class Net(nn.Module):
            def forward(self, x):
                return x + self.other
        """,
        ("R101", 5, [cpu("x", None, None, handed=2, function="forward"), gpu("self.other")]),
        "handed on",
        "return model(x.to(device))",
    ),
    "an index without a name": (
        """
        def f(table, owner, chosen):
            return table[owner[chosen]]
        """,
        ("R103", 2, [gpu(), cpu("table", None)]),
        "host",
        "return table[owner[chosen].cpu()]",
    ),
    "a generator of the GPU for draws on the CPU": (
        """
        g = torch.Generator(device=device).manual_seed(1)
        for x in loader:
            pass
        """,
        ("R105", 2, [{**gpu("g"), "born": 1}]),
        "generator on the host",
        "g = torch.Generator().manual_seed(1)",
    ),
    "set in another place than made": (
        """
        def f(model, graph):
            x = graph.x
            model(x)
        """,
        ("R101", 3, [cpu("x", None, "from_numpy", set=2), gpu()]),
        "set",
        "x = graph.x.to(device)",
    ),
    "ranks that share a GPU": (
        """
        import torch.distributed as dist
        dist.init_process_group("nccl")
        """,
        ("R404", 2, []),
        "ranks",
        'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))',
    ),
    "ranks that know their number": (
        """
        import torch.distributed as dist
        def work(rank):
            dist.init_process_group("nccl", rank=rank, world_size=2)
        """,
        ("R404", 3, []),
        "ranks",
        "torch.cuda.set_device(rank)",
    ),
    "ranks that may have no GPU": (
        """
        import torch.distributed as dist
        dist.init_process_group()
        """,
        ("R404", 2, []),
        "ranks",
        "if torch.cuda.is_available():",
    ),
    "tensor that a replica keeps": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.curve = torch.ones(3).to(device)
            def forward(self, x):
                return x * self.curve
        """,
        ("R101", 6, [{**gpu("self.curve"), "born": 4, "born_by": ".to('cuda:0')"}, {**gpu("x"), "device": "cuda:1"}]),
        "buffer",
        'self.register_buffer("curve", torch.ones(3).to(device), persistent=False)',
    ),
    "where it is used": (
        """
        y = x * state["mean"]
        """,
        ("R101", 1, [cpu("state['mean']", None), gpu("x")]),
        "use",
        'y = x * state["mean"].to(x.device)',
    ),
}


@pytest.fixture
def tree(tmp_path):
    def make(text):
        root, folder = tmp_path / "project", tmp_path / "copy"
        root.mkdir()
        folder.mkdir()
        (root / "train.py").write_text(HEAD + textwrap.dedent(text).strip("\n") + "\n")
        return copy(root, folder)

    return make


def observation(id, line, tensors):
    function = tensors[0].get("function", "f") if tensors else "f"

    def site(number):
        return Site("train.py", number + FIRST - 1, function) if number else None

    places = ("born", "root", "set", "handed")
    told = [{**each, **{name: site(each.get(name)) for name in places}, "argument": "self"} for each in tensors]
    for each in told:
        each["built"] = [site(number) for number in each.get("built", ())]
    return Observation(1, id, "error", site(line), {"tensors": told, "offender": 0 if told else None}, 0)


@pytest.mark.parametrize("name", FAULTS)
def test_repair(name, tree):
    text, fault, kind, expected = FAULTS[name]
    project = tree(text)
    tried = set()
    proposal = propose(observation(*fault), project, tried)
    assert proposal is not None
    assert proposal.kind == kind
    assert project.change(proposal.path, list(proposal.changes))
    added = [line[1:].strip() for line in project.patch().splitlines() if line.startswith("+") and line[1:2] != "+"]
    assert expected in added


def test_another_repair_gets_its_turn(tree):
    text, fault, kind, _expected = FAULTS["list of modules"]
    project = tree(text)
    first = propose(observation(*fault), project, set())
    second = propose(observation(*fault), project, {(first.kind, first.identity)})
    assert (first.kind, second.kind) == (kind, "list moved")


def test_changes_that_do_not_parse_are_not_made(tree):
    project = tree("x = 1")
    before = project.state()
    assert not project.change("train.py", [(0, 0, "(")])
    assert not project.change("train.py", [(0, 3, "a"), (1, 2, "b")])
    assert project.state() == before
    assert project.patch() == ""


def test_the_copy_leaves_out_what_programs_keep(tmp_path):
    root, folder = tmp_path / "project", tmp_path / "copy"
    for name in (".git/HEAD", ".torchport/runs/x", "env/pyvenv.cfg", "env/lib/a.py", "pkg/a.py", "data/x.bin"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    folder.mkdir()
    project = copy(root, folder)
    assert project.paths() == ["pkg/a.py"]
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()) == [
        "data/x.bin",
        "pkg/a.py",
    ]
