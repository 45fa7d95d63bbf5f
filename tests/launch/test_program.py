"""The user's command line, in the forms that people type."""

from pathlib import Path

import pytest

from torchport.launch.program import Program, ProgramError, parse


@pytest.fixture
def folder(tmp_path):
    for name in ("train.py", "book.ipynb", "pkg/__main__.py", "empty/x.txt", "src/train_gpt.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("train.py --lr 1", Program("script", ("train.py", "--lr", "1"))),
        ("./train.py", Program("script", ("./train.py",))),
        ("book.ipynb", Program("notebook", ("book.ipynb",))),
        ("pkg --x", Program("script", ("pkg", "--x"))),
        ("-m pkg.train -m x", Program("module", ("pkg.train", "-m", "x"))),
        ("python train.py -v", Program("script", ("train.py", "-v"))),
        ("env/bin/python3.12 -u train.py", Program("script", ("train.py",), python="env/bin/python3.12")),
        ("python -m pkg", Program("module", ("pkg",))),
        ("torchrun train.py", Program("script", ("train.py",), processes=1)),
        (
            "torchrun --nproc_per_node=4 train.py --lr 1",
            Program("script", ("train.py", "--lr", "1"), processes=4),
        ),
        (
            "torchrun --nproc-per-node gpu --standalone -m pkg.train",
            Program("module", ("pkg.train",), processes=0),
        ),
        (
            "/usr/bin/torchrun --nnodes=1:1 --rdzv_endpoint localhost:0 -r 3 --nproc-per-node 2 train.py",
            Program("script", ("train.py",), processes=2),
        ),
        (
            "torchrun --master_addr 127.0.0.1 --master_port 29501 --nproc_per_node 2 train.py",
            Program("script", ("train.py",), processes=2, master_port=29501),
        ),
        (
            "python -m torch.distributed.run --nproc_per_node 2 train.py",
            Program("script", ("train.py",), processes=2),
        ),
        (
            "python -m torch.distributed.launch --nproc_per_node=2 train.py --x",
            Program("script", ("train.py", "--x"), processes=2, local_rank_option=True),
        ),
        (
            "python -m torch.distributed.launch --use_env --nproc_per_node=2 train.py",
            Program("script", ("train.py",), processes=2),
        ),
    ],
)
def test_parse(folder, words, expected):
    assert parse(words.split(), folder) == expected


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "nothing to run"),
        ("trian.py", "trian.py: there is no such file. Did you mean train.py"),
        ("train_gtp.py", "Did you mean src/train_gpt.py, train.py?"),
        ("zzz.q", "zzz.q: there is no such file."),
        ("empty", "empty is a folder without a __main__.py"),
        ("-m", "-m needs the name of a module"),
        ("python -c pass", "python -c pass: give python a script"),
        ("torchrun --nnodes 2 train.py", "torchrun --nnodes 2: a rehearsal is one machine"),
        ("torchrun --nproc-per-node two train.py", "torchrun --nproc-per-node two: give a number"),
        ("torchrun --nproc-per-node 2", "torchrun: names no script"),
        ("torchrun --no-python train.sh", "runs Python programs only"),
        ("torchrun --nproc-per-nose 2 train.py", "torchrun: "),
        ("accelerate launch train.py", "accelerate is not followed"),
    ],
)
def test_mistakes_are_named(folder, words, said):
    with pytest.raises(ProgramError) as caught:
        parse(words.split(), folder)
    assert said in str(caught.value)


def test_a_file_named_like_a_launcher_is_a_script(tmp_path):
    (tmp_path / "torchrun").touch()
    assert parse(["torchrun", "x"], tmp_path) == Program("script", ("torchrun", "x"))


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (Program("script", ("src/train.py",)), "train"),
        (Program("module", ("pkg.train",)), "pkg.train"),
        (Program("script", (".",)), ""),
    ],
)
def test_name(program, name):
    assert program.name == name


def test_paths_are_looked_up_from_the_folder_and_kept_as_typed(folder):
    assert parse([str(Path(folder, "train.py"))], Path("/")).argv == (str(folder / "train.py"),)
