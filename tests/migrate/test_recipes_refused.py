"""Where recipes have no place, and why; which variants they try, and what of a project they leave alone."""

import textwrap

import pytest

from torchport.migrate import recipes
from torchport.migrate.recipe import Unsuited
from torchport.migrate.tree import copy

LOOP = """
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.rand(8, 2, 4):
        {line}
        optimizer.step()
"""
BCE = """
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
    criterion = nn.BCELoss()
    for x in torch.rand(8, 2, 4):
        loss = criterion(model(x), torch.ones(2, 1))
        loss.backward()
"""
CLOSURE = """
    import torch

    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.LBFGS(model.parameters())

    def closure():
        loss = model(torch.ones(2, 4)).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
"""
PENALTY = """
    import torch

    D = torch.nn.Linear(4, 1)
    optimizer = torch.optim.Adam(D.parameters())
    for x in torch.rand(8, 2, 4):
        score = D(x.requires_grad_())
        (slope,) = torch.autograd.grad(score.sum(), x, create_graph=True)
        loss = score.mean() + slope.norm()
        loss.backward()
        optimizer.step()
"""
REPLICAS = """
    import torch
    model = torch.nn.DataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
"""
ON_GPU = """
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Data(Dataset):
        def __getitem__(self, i):
            return torch.ones(3).to("cuda")

    loader = DataLoader(Data())
"""
UNCOUNTED = """
    import torch
    model = torch.nn.Linear(4, 1)
    while True:
        loss = model(torch.ones(1, 4)).sum()
        print("loss", loss.item())
"""
WORKERS = """
    import torch
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder

    def main():
        for epoch in range(2):
            for images, labels in DataLoader(ImageFolder("cats"), shuffle=True):
                images = images.cuda()

    if __name__ == "__main__":
        main()
"""


def variants(folder, name, text, **others):
    for each in ("project", "copy"):
        (folder / each).mkdir()
    for path, content in {"train": text, **others}.items():
        (folder / "project" / f"{path}.py").write_text(textwrap.dedent(content).lstrip())
    tree = copy(folder / "project", folder / "copy")
    before = tree.state()
    for variant in recipes.chosen([name])[0].variants(tree, "train.py"):
        assert all(tree.change(path, changes) for path, changes in variant.items())
        yield {path: (tree.folder / path).read_text() for path in variant}
        tree.restore(before)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("amp", BCE, "BCEWithLogitsLoss"),
        ("amp", CLOSURE, "closure"),
        ("amp", LOOP.format(line="model(x).sum().backward()"), "train.py:7"),
        ("amp", LOOP.format(line="with torch.autocast('cuda'): loss = model(x).sum()"), "autocast already"),
        ("amp-fp16", PENALTY, "gradients of gradients"),
        ("compile", REPLICAS, "DataParallel"),
        ("compile", LOOP.format(line="model = torch.compile(model)"), "compiles already"),
        ("compile", "import torch\n", "no optimizer"),
        ("loader", "import torch\n", "no DataLoader"),
        ("loader", ON_GPU, "tensors of the GPU"),
        ("paths", "open('/data/cats.csv')\n", "no path"),
        ("tensorboard", UNCOUNTED, "which round"),
        ("tensorboard", "import wandb\n", "already"),
    ],
)
def test_it_says_why_it_has_no_place(tmp_path, name, text, said):
    with pytest.raises(Unsuited, match=said):
        list(variants(tmp_path, name, text))


def test_workers_from_bold_to_careful(tmp_path):
    """Workers that stay draw one number less in each later epoch: the losses decide between the variants."""
    bold, plain, careful = (each["train.py"] for each in variants(tmp_path, "loader", WORKERS))
    assert "persistent_workers=True" in bold and "num_workers=" in bold
    assert "persistent_workers" not in plain and "num_workers=" in plain
    assert "num_workers" not in careful and "pin_memory=torch.cuda.is_available()" in careful


def test_no_workers_without_a_main_guard(tmp_path):
    text = textwrap.dedent(WORKERS).replace('if __name__ == "__main__":\n    main()', "main()")
    assert all("num_workers" not in each["train.py"] for each in variants(tmp_path, "loader", text))


def test_a_number_of_workers_that_is_an_option(tmp_path):
    text = """
        import argparse
        from torch.utils.data import DataLoader
        from torchvision.datasets import ImageFolder

        parser = argparse.ArgumentParser()
        parser.add_argument("--num-workers", type=int, default=4)
        args = parser.parse_args()
        if __name__ == "__main__":
            loader = DataLoader(ImageFolder("cats"), num_workers=0)
    """
    assert "num_workers=args.num_workers," in next(variants(tmp_path, "loader", text))["train.py"]


def test_other_scripts_of_a_project_are_left_alone(tmp_path):
    loop = LOOP.format(line="loss = model(x).sum()\n        loss.backward()")
    found = list(variants(tmp_path, "amp", "import steps\n", steps=loop, other=loop))
    assert found and all(set(each) == {"steps.py"} for each in found)


def test_probabilities_leave_autocast_as_float32(tmp_path):
    text = textwrap.dedent(BCE).replace(
        "    loss = criterion(model(x), torch.ones(2, 1))\n",
        "    given = model(x)\n    loss = criterion(given, torch.ones(2, 1))\n",
    )
    assert "    loss = criterion(given.float(), torch.ones(2, 1))" in next(variants(tmp_path, "amp", text))["train.py"]


@pytest.mark.parametrize(
    ("line", "points"),
    [
        ('print("loss", loss.item())', ['"train/loss", loss.item(), i']),
        ("print('step %d, G loss: %.3f' % (i, g.item()))", ["'train/loss_g', g.item(), i"]),
        ('print(f"val acc {acc:.2%} after {i}")', ['"val/accuracy", acc, i']),
        ('print("acc {}/{} ({:.0f} %)".format(right, n, 9 * right / n))', ['"train/accuracy", 9 * right / n, i']),
        ('print("acc {}/{}".format(right, n))', []),
        ('print(f"time {seconds:.1f}, batch {i}")', []),
        ('logger.info(f"lr {lr:.2g} loss {loss:.2f}")', ['"train/lr", lr, i', '"train/loss", loss, i']),
    ],
)  # fmt: skip
def test_what_is_printed_becomes_points(tmp_path, line, points):
    text = f"for i in range(3):\n    {line}\n"
    try:
        (found,) = variants(tmp_path, "tensorboard", text)
    except Unsuited:
        found = {"train.py": ""}
    lines = [each.strip() for each in found["train.py"].splitlines() if "add_scalar" in each]
    assert lines == [f"writer.add_scalar({each})" for each in points]
