"""Small fake data for public projects: ``python fake_data.py MAKER [ARGUMENT…]`` writes into the current folder."""

from __future__ import annotations

import json
import pickle
import random
import sys
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np

WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ("", "n", "r", "st")]


def sentences(count: int, seed: int = 0, low: int = 4, high: int = 12) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(low, high))) for _ in range(count)]


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


def corpus(folder: str, lines: str = "600") -> None:
    """train.txt, valid.txt and test.txt like the Penn Treebank."""
    for seed, name in enumerate(("train", "valid", "test")):
        write(f"{folder}/{name}.txt", "".join(f" {line} \n" for line in sentences(int(lines) >> seed, seed)))


def text(path: str, lines: str = "600") -> None:
    """One text file of made-up sentences."""
    write(path, "\n".join(sentences(int(lines))) + "\n")


def launcher(path: str, module: str, function: str) -> None:
    """A script that does what a console entry point of the project does."""
    write(path, f"from {module} import {function}\n\nif __name__ == '__main__':\n    {function}()\n")


def pictures(folder: str, count: str = "8", side: str = "96", ending: str = "jpg") -> None:
    """Random RGB images."""
    from PIL import Image

    Path(folder).mkdir(parents=True, exist_ok=True)
    for number in range(int(count)):
        pixels = np.random.RandomState(number).randint(0, 256, (int(side), int(side), 3)).astype(np.uint8)
        Image.fromarray(pixels).save(f"{folder}/{number:03d}.{ending}")


def masks(folder: str, count: str = "8", side: str = "96") -> None:
    """Carvana-like masks 000_mask.gif …: a square of ones on zeros."""
    from PIL import Image

    Path(folder).mkdir(parents=True, exist_ok=True)
    for number in range(int(count)):
        pixels = np.zeros((int(side), int(side)), np.uint8)
        pixels[8 + number : 48 + number, 16:64] = 1
        Image.fromarray(pixels).save(f"{folder}/{number:03d}_mask.gif")


def cora(folder: str, nodes: str = "1700", features: str = "64") -> None:
    """cora.content (id, 0/1 features, label) and cora.cites (pairs of ids)."""
    draw = np.random.RandomState(0)
    count, width = int(nodes), int(features)
    rows = draw.randint(0, 2, (count, width))
    labels = draw.randint(0, 7, count)
    content = ("\t".join([str(n + 100), *map(str, rows[n]), f"Class_{labels[n]}"]) for n in range(count))
    write(f"{folder}/cora.content", "\n".join(content) + "\n")
    pairs = [(n, other) for n in range(count) for other in draw.randint(0, count, 3) if n != other]
    write(f"{folder}/cora.cites", "".join(f"{a + 100}\t{b + 100}\n" for a, b in pairs))


def cora_archive() -> None:
    """cora.tgz, as the site hands it out."""
    cora("cora")
    with tarfile.open("cora.tgz", "w:gz") as archive:
        archive.add("cora")


def bert_corpus(path: str, lines: str = "200") -> None:
    """Two sentences a line with a tab between, and the project's own vocabulary file beside it."""
    sys.path.insert(0, ".")
    from bert_pytorch.dataset import WordVocab

    pairs = list(zip(sentences(int(lines), 1), sentences(int(lines), 2), strict=True))
    write(path, "".join(f"{a}\t{b}\n" for a, b in pairs))
    with open(path, encoding="utf-8") as file:
        WordVocab(file).save_vocab(f"{path}.vocab")


def translation(path: str, count: str = "64") -> None:
    """The pickle of preprocess.py of attention-is-all-you-need: fields and example pairs."""
    from torchtext.data import Field

    source, target = sentences(int(count), 1), sentences(int(count), 2)
    examples = [SimpleNamespace(src=a.split(), trg=b.split()) for a, b in zip(source, target, strict=True)]
    data = {
        "settings": SimpleNamespace(max_len=50),
        "vocab": {"src": Field(WORDS), "trg": Field(WORDS)},
        "train": examples[8:],
        "valid": examples[:8],
    }
    Path(path).write_bytes(pickle.dumps(data))


def characters(folder: str, count: str = "20000") -> None:
    """train.bin, val.bin (uint16) and meta.pkl, as nanoGPT's prepare.py writes them."""
    letters = "\n abcdefghijklmnopqrstuvwxyz"
    table = {letter: number for number, letter in enumerate(letters)}
    ids = [table[letter] for letter in "\n".join(sentences(int(count) // 20))][: int(count)]
    Path(folder).mkdir(parents=True, exist_ok=True)
    np.array(ids, np.uint16).tofile(f"{folder}/train.bin")
    np.array(ids[: len(ids) // 4], np.uint16).tofile(f"{folder}/val.bin")
    meta = {"vocab_size": len(letters), "stoi": table, "itos": dict(enumerate(letters))}
    Path(folder, "meta.pkl").write_bytes(pickle.dumps(meta))


def shapenet(folder: str, count: str = "12", points: str = "300") -> None:
    """Point clouds with a label a point, in ShapeNet's layout."""
    draw = np.random.RandomState(0)
    kinds = {"Chair": "03001627", "Table": "04379243"}
    write(
        f"{folder}/synsetoffset2category.txt",
        "".join(f"{name}\t{number}\n" for name, number in kinds.items()),
    )
    names = []
    for number in range(int(count)):
        kind = list(kinds.values())[number % 2]
        cloud = draw.randn(int(points), 3)
        write(f"{folder}/{kind}/points/{number}.pts", "\n".join(" ".join(f"{x:.4f}" for x in p) for p in cloud))
        write(f"{folder}/{kind}/points_label/{number}.seg", "\n".join(map(str, draw.randint(1, 4, int(points)))))
        names.append(f"shape_data/{kind}/{number}")
    for split in ("train", "test", "val"):
        write(f"{folder}/train_test_split/shuffled_{split}_file_list.json", json.dumps(names))


def pascal_voc(images: str = "8") -> None:
    """~/data/VOCdevkit with one box an image, and a weights file for the base network of ssd.pytorch."""
    import torch

    sys.path.insert(0, ".")
    home = Path("~/data").expanduser()
    write(f"{home}/coco/coco_labels.txt", Path("data/coco_labels.txt").read_text(encoding="utf-8"))
    box = "<bndbox><xmin>20</xmin><ymin>20</ymin><xmax>80</xmax><ymax>80</ymax></bndbox>"
    note = f"<annotation><object><name>cat</name><difficult>0</difficult>{box}</object></annotation>"
    for year in ("2007", "2012"):
        folder = f"{home}/VOCdevkit/VOC{year}"
        pictures(f"{folder}/JPEGImages", images)
        names = [path.stem for path in sorted(Path(folder, "JPEGImages").iterdir())]
        write(f"{folder}/ImageSets/Main/trainval.txt", "\n".join(names) + "\n")
        for name in names:
            write(f"{folder}/Annotations/{name}.xml", note)
    from ssd import base, vgg

    Path("weights").mkdir(exist_ok=True)
    torch.save(torch.nn.ModuleList(vgg(base["300"], 3)).state_dict(), "weights/vgg16_reducedfc.pth")


def sine(path: str, count: str = "8", length: str = "60") -> None:
    """Shifted sine waves, as time_sequence_prediction's generate_sine_wave.py writes them."""
    import torch

    shifts = np.random.RandomState(2).randint(-80, 80, int(count)).reshape(int(count), 1)
    torch.save(np.sin((np.arange(int(length)) + shifts) / 20.0).astype("float64"), path)


def enwik8(folder: str, count: str = "20000") -> None:
    """train.txt, valid.txt and test.txt of numbers, one a character."""
    letters = Counter("\n".join(sentences(int(count) // 20)))
    table = {letter: str(ord(letter)) for letter in letters}
    line = " ".join(table[letter] for letter in "\n".join(sentences(int(count) // 20)))
    for name in ("train", "valid", "test"):
        write(f"{folder}/{name}.txt", line + "\n")


MAKERS: dict[str, Callable[..., None]] = {
    make.__name__: make
    for make in (
        bert_corpus,
        characters,
        cora,
        cora_archive,
        corpus,
        enwik8,
        launcher,
        masks,
        pascal_voc,
        pictures,
        shapenet,
        sine,
        text,
        translation,
    )
}

if __name__ == "__main__":
    MAKERS[sys.argv[1]](*sys.argv[2:])
