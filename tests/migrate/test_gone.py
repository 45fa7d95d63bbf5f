"""What ended the program itself: the message of torch, the line, and what becomes of it."""

import pytest

from torchport.check.source import Source
from torchport.migrate import gone
from torchport.migrate.revive import make_readable
from torchport.migrate.tree import copy

INDEX = "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++"
TARGET = "Expected input batch_size (1) to match target batch_size (0)."
MASK = "masked_fill_ only supports boolean masks, but got mask with dtype unsigned char"
MINUS = "Subtraction, the `-` operator, with a bool tensor is not supported."
VIEW = "view size is not compatible with input tensor's size and stride (at least one dimension spans)"


@pytest.mark.parametrize(
    ("line", "message", "expected"),
    [
        ("total += loss.data[0]", INDEX, "total += loss.item()"),
        ("print(i, x[0] / loss.data[0])", INDEX, "print(i, x[0] / loss.item())"),
        ("n = count[0]", INDEX, "n = count.item()"),
        ("loss += criterion(output, target[c])", TARGET, "loss += criterion(output, target[c].unsqueeze(0))"),
        ("loss += criterion(output, label)", TARGET, "loss += criterion(output, label.unsqueeze(0))"),
        ("a.masked_fill_(mask[:, None], 0)", MASK, "a.masked_fill_(mask[:, None].bool(), 0)"),
        ("a.masked_fill_(m == 0 | n, 0)", MASK, "a.masked_fill_((m == 0 | n).bool(), 0)"),
        ("rest = (1 - done) * 2", MINUS, "rest = (~done) * 2"),
        ("x = x.transpose(0, 1).view(3, -1)", VIEW, "x = x.transpose(0, 1).reshape(3, -1)"),
    ],
)
def test_line(line, message, expected):
    source = Source("train.py", f"import torch\n{line}\n")
    text = source.text
    for start, end, new in sorted(gone.changes(source, 2, message), reverse=True):
        text = text[:start] + new + text[end:]
    assert text == f"import torch\n{expected}\n"


def test_what_is_not_known_stays():
    assert gone.changes(Source("train.py", "x = y[0]\n"), 1, "index 4 is out of bounds") == []


def test_async_is_no_python(tmp_path):
    root, folder = tmp_path / "project", tmp_path / "copy"
    root.mkdir()
    folder.mkdir()
    (root / "train.py").write_text("x = x.cuda(async=True)\ny = y.cuda(0, async = False)\n")
    (root / "print.py").write_text("print 'async=True'\n")
    tree = copy(root, folder)
    assert make_readable(tree) == ["gone at train.py"]
    assert (folder / "train.py").read_text() == "x = x.cuda(non_blocking=True)\ny = y.cuda(0, non_blocking = False)\n"
