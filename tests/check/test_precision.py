"""What the rules for precision find in code that looks alike, and what they leave alone."""

import textwrap

import pytest

from torchport.check.engine import check_source
from torchport.check.repair import repair
from torchport.check.rules import rules
from torchport.check.source import Source

IMPORTS = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
OURS = [loaded for loaded in rules() if "C401" <= loaded.rule.id <= "C412"]

CASES = [
    ("def f(m):\n    with torch.autocast('cuda'):\n        return m()", "amp-deprecated-cuda-namespace", 0),
    ("from apex.amp import autocast\nautocast()", "amp-deprecated-cuda-namespace", 0),
    ("x = torch.cuda.is_available()", "amp-deprecated-cuda-namespace", 0),
    (
        """
        def f(model, loss, optimizer, scaler):
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
        """,
        "clip-without-unscale",
        0,
    ),
    (
        """
        def f(model, loss, optimizer):
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        """,
        "clip-without-unscale",
        0,
    ),
    (
        """
        def f(self, loss, a, b):
            self.scaler.scale(loss).backward()
            if self.clip:
                nn.utils.clip_grad_value_(self.parameters(), 1.0)
            self.scaler.step(a)
            self.scaler.step(b)
        """,
        "clip-without-unscale",
        1,
    ),
    (
        "def f(model, c, x):\n    x = c.scale(x).backward()\n    nn.utils.clip_grad_norm_(x, 1)",
        "clip-without-unscale",
        0,
    ),
    (
        """
        def f(loader, step):
            scaler = torch.amp.GradScaler("cuda")
            for x in loader:
                scaler.scale(x).backward()
                step(scaler)
        """,
        "scaler-incomplete",
        0,
    ),
    ("def f(loss, scaler):\n    scaler.scale(loss).backward()", "scaler-incomplete", 0),
    (
        """
        def f(m, half):
            scaler = torch.amp.GradScaler("cuda")
            with torch.autocast("cuda", dtype=torch.bfloat16 if not half else torch.float16):
                m()
        """,
        "scaler-with-bf16",
        0,
    ),
    (
        "def f(m):\n    s = torch.amp.GradScaler('cuda')\n    with torch.autocast('cuda'):\n        m()",
        "scaler-with-bf16",
        0,
    ),
    (
        """
        def f(m, loss):
            with torch.autocast("cuda", enabled=False):
                loss.backward()
        """,
        "backward-inside-autocast",
        0,
    ),
    (
        "def f(m, x):\n    with torch.autocast('cuda'):\n        loss = m(x)\n    loss.backward()",
        "backward-inside-autocast",
        0,
    ),
    ("def f(x, mask):\n    return x.masked_fill(mask, float('-inf'))", "half-overflow-constant", 0),
    ("def f(x, mask):\n    return x.masked_fill(mask, -1e4)", "half-overflow-constant", 0),
    ("def f(x, mask):\n    return x.masked_fill(mask, 100000)", "half-overflow-constant", 0),
    ("def f(x, mask):\n    return x.float().masked_fill(mask, -1e9)", "half-overflow-constant", 0),
    ("BIG = -1e9\ndef f(x, mask):\n    return x.masked_fill(mask, BIG)", "half-overflow-constant", 1),
    ("def f(m, x, y):\n    return F.binary_cross_entropy(m(x), y)", "bce-under-autocast", 0),
    (
        """
        def f(m, x, y):
            with torch.autocast("cuda"):
                p = m(x)
                with torch.autocast("cuda", enabled=False):
                    return F.binary_cross_entropy(p.float(), y)
        """,
        "bce-under-autocast",
        0,
    ),
    (
        "def f(m, x, y):\n    with torch.autocast('cpu'):\n        return F.binary_cross_entropy(m(x), y)",
        "bce-under-autocast",
        0,
    ),
    ("def f(x):\n    y = x.half()\n    y.backward()", "manual-half", 0),
    ("def f(x):\n    return x.double()", "float64-in-hot-path", 0),
    (
        """
        def f(m, loader, optimizer):
            m.cuda()
            for x in loader:
                with torch.autocast("cuda"):
                    loss = m(x)
                loss.backward()
                optimizer.step()
        """,
        "no-autocast",
        0,
    ),
    ("def f(m, x):\n    m.cuda()\n    m(x).backward()", "no-autocast", 0),
]


@pytest.mark.parametrize(("text", "name", "count"), CASES)
def test_looks_alike(text, name, count):
    loaded = [each for each in OURS if each.rule.name == name]
    assert len(loaded) == 1
    source = Source("train.py", IMPORTS + textwrap.dedent(text) + "\n")
    assert len(check_source(source, (2, 13), loaded)) == count


REPAIRS = [
    (
        "import torch as th\nfrom torch.cuda.amp import autocast\n\nwith autocast():\n    pass\n",
        'import torch as th\nfrom torch.amp import autocast\n\nwith autocast("cuda"):\n    pass\n',
    ),
    (
        "from torch.cuda import amp\n\ns = amp.GradScaler(init_scale=2.0)\nwith amp.autocast(True):\n    pass\n",
        'from torch import amp\n\ns = amp.GradScaler("cuda", init_scale=2.0)\n'
        'with amp.autocast("cuda", enabled=True):\n    pass\n',
    ),
    (
        "import torch.cuda.amp as amp\n\n\n@amp.autocast()\ndef f():\n    pass\n",
        'import torch.amp as amp\n\n\n@amp.autocast("cuda")\ndef f():\n    pass\n',
    ),
    (
        "import torch\n\n\nclass F(torch.autograd.Function):\n    @staticmethod\n"
        "    @torch.cuda.amp.custom_fwd(cast_inputs=torch.float32)\n    def forward(ctx, x):\n        return x\n\n"
        "    @staticmethod\n    @torch.cuda.amp.custom_bwd\n    def backward(ctx, g):\n        return g\n",
        "import torch\n\n\nclass F(torch.autograd.Function):\n    @staticmethod\n"
        '    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)\n    def forward(ctx, x):\n'
        "        return x\n\n"
        '    @staticmethod\n    @torch.amp.custom_bwd(device_type="cuda")\n    def backward(ctx, g):\n'
        "        return g\n",
    ),
    (  # what is more than a call stays
        "from torch.cuda.amp import autocast\n\nkinds = [autocast]\nwith autocast():\n    pass\n",
        "from torch.cuda.amp import autocast\n\nkinds = [autocast]\nwith autocast():\n    pass\n",
    ),
    (
        "import torch.cuda.amp\n\nwith torch.cuda.amp.autocast(False, torch.bfloat16):\n    pass\n",
        "import torch.cuda.amp\n\nwith torch.cuda.amp.autocast(False, torch.bfloat16):\n    pass\n",
    ),
]


@pytest.mark.parametrize(("text", "wanted"), REPAIRS)
def test_amp_repaired(text, wanted):
    loaded = [each for each in OURS if each.rule.id == "C401"]
    done = repair(Source("train.py", text), lambda source: check_source(source, (2, 13), loaded))
    assert done.failed == ()
    assert done.text == wanted
