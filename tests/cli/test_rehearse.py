"""``torchport rehearse`` as a user types it: real processes, real torch, one program a case."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from torchport.record import read

# One optimizer step with a fault in it: the weight stays on the CPU.
TRAIN = """
    import sys, torch
    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Linear(4, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    weight = torch.tensor([1.0, 2.0])
    for step in range(3):
        x, y = torch.randn(8, 4, device=device), torch.zeros(8, dtype=torch.long, device=device)
        loss = torch.nn.functional.cross_entropy(model(x), y, weight=weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("arguments", sys.argv[1:])
"""
CLEAN = TRAIN.replace("torch.tensor([1.0, 2.0])", "torch.tensor([1.0, 2.0], device=device)")
RANKS = """
    import os, sys, time, torch, torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    value = torch.ones(2, device="cuda")
    dist.all_reduce(value)
    {then}
    print("rank", rank, "of", dist.get_world_size(), "has", value.tolist())
    dist.destroy_process_group()
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.torchport]\n")
    return tmp_path


def write(project, text, name="train.py"):
    (project / name).write_text(textwrap.dedent(text))


def command(*words):
    return [sys.executable, "-m", "torchport", "rehearse", "--python", sys.executable, *words]


def rehearse(project, *words, **options):
    environ = {**os.environ, "PYTHONUTF8": "1", "LANG": "C.UTF-8"}
    return subprocess.run(
        command(*words), cwd=project, env=environ, capture_output=True, text=True, check=False, **options
    )


def run_folder(project):
    (folder,) = (project / ".torchport" / "runs").iterdir()
    return folder


def test_a_fault_is_found_and_the_run_is_kept(project):
    write(project, TRAIN)
    done = rehearse(project, "train.py", "--lr", "1")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("arguments ['--lr', '1']\n")
    assert "R101 error  train.py:10" in done.stdout and "train.py:7" in done.stdout
    assert "torchport: rehearsing on 1 × NVIDIA A100" in done.stderr
    folder = run_folder(project)
    names = {path.name for path in folder.iterdir()}
    assert {"plan.json", "facts.json", "record.jsonl", "state.json", "exit.json", "logs"} <= names
    assert json.loads((folder / "exit.json").read_text())["code"] == 1
    record = read(folder / "record.jsonl")
    assert len(record.steps) == len(record.losses) == 3
    assert (project / ".torchport" / ".gitignore").read_text() == "*\n"


def test_a_loss_is_recorded_as_it_was_before_a_scaler(project):
    write(
        project,
        CLEAN.replace("model =", "torch.manual_seed(0)\n    scaler = torch.amp.GradScaler(device)\n    model =")
        .replace("loss.backward()", "scaler.scale(loss).backward()")
        .replace("optimizer.step()", "scaler.step(optimizer)\n        scaler.update()"),
    )
    done = rehearse(project, "train.py")
    assert done.returncode == 0, done.stderr
    assert all(0 < loss.value < 10 for loss in read(run_folder(project) / "record.jsonl").losses)


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "steps"), [("", 3), ("--steps 2", 2), ("--gpu rtx4090 --gpus 2", 3), ("--strict", 3)]
)
def test_a_correct_program(project, options, steps):
    write(project, CLEAN)
    done = rehearse(project, *options.split(), "train.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(read(run_folder(project) / "record.jsonl").steps) == steps


@pytest.mark.full
def test_strict_stops_as_cuda_does(project):
    write(project, TRAIN)
    done = rehearse(project, "--strict", "train.py")
    assert done.returncode == 4
    assert "RuntimeError: Expected all tensors to be on the same device" in done.stderr
    assert "arguments" not in done.stdout
    assert "R101" in done.stdout


@pytest.mark.full
def test_json_is_all_that_is_on_standard_output(project):
    write(project, TRAIN)
    done = rehearse(project, "--format", "json", "--lang", "zh", "train.py")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["schema"].startswith("torchport.rehearsal/")
    assert [finding["id"] for finding in report["findings"] if finding["severity"] == "error"] == ["R101"]
    assert "arguments []" in done.stderr


@pytest.mark.full
def test_the_page_needs_nothing_else(project):
    write(project, TRAIN)
    done = rehearse(project, "--html", "report.html", "train.py")
    assert done.returncode == 1
    page = (project / "report.html").read_text()
    assert "R101" in page and "weight = torch.tensor" in page
    assert "http://" not in page.replace("http://www.w3.org", "") and "https://" not in page


@pytest.mark.full
def test_chinese(project):
    write(project, TRAIN)
    done = rehearse(project, "--lang", "zh", "train.py")
    assert done.returncode == 1
    assert "错误" in done.stdout


@pytest.mark.full
@pytest.mark.parametrize("words", ["-m pkg.train -v", "-- python -m pkg.train -v"])
def test_a_module(project, words):
    (project / "pkg").mkdir()
    program = "import sys, torch\nprint(__name__, sys.argv[1:], torch.cuda.device_count())"
    write(project, program, "pkg/train.py")
    done = rehearse(project, "--gpus", "2", *words.split())
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "__main__ ['-v'] 2"), done.stderr


@pytest.mark.full
def test_a_notebook(project):
    cells = [["import torch\n", "x = torch.ones(2, device='cuda')"], ["print(x.device)"]]
    rows = [{"cell_type": "code", "source": cell, "metadata": {}, "outputs": []} for cell in cells]
    book = {"cells": rows, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    write(project, json.dumps(book), "book.ipynb")
    done = rehearse(project, "book.ipynb")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "cuda:0"), done.stderr


@pytest.mark.full
def test_standard_input_is_the_programs(project):
    write(project, "import torch\nprint(input().upper())")
    done = rehearse(project, "train.py", input="hello\n")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "HELLO"), done.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("import torch\nraise ValueError('mine')", 4, "ValueError: mine"),
        ("import torch\ndef broken(:\n", 4, "SyntaxError"),
        ("import sys, torch\nsys.exit(7)", 4, ""),
        ("import sys, torch\nsys.exit(0)", 0, ""),
        ("import os, signal, torch\nos.kill(os.getpid(), signal.SIGKILL)", 4, ""),
    ],
)
def test_how_the_program_ends(project, program, code, said):
    write(project, program)
    done = rehearse(project, "train.py")
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "inside" not in done.stderr
    assert "rehearsed train.py" in done.stdout


@pytest.mark.full
def test_a_killed_program_leaves_what_it_had_recorded(project):
    write(project, TRAIN + "    import os; os.kill(os.getpid(), 9)\n")
    done = rehearse(project, "train.py")
    assert done.returncode == 4
    assert "R101" in done.stdout


@pytest.mark.full
def test_timeout(project):
    write(project, TRAIN + "    import time; time.sleep(1000)\n")
    done = rehearse(project, "--timeout", "20", "train.py")
    assert done.returncode == 5
    assert "R101" in done.stdout
    assert read(run_folder(project) / "record.jsonl").exit["reason"] == "timeout"


@pytest.mark.full
def test_ctrl_c(project):
    write(project, TRAIN + "    print('waiting', flush=True)\n    import time; time.sleep(1000)\n")
    child = subprocess.Popen(
        command("train.py"), cwd=project, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    for line in child.stdout:
        if line == "waiting\n":
            break
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    rest = child.communicate(timeout=60)[0]
    assert child.returncode == 130
    assert "R101" in rest


@pytest.mark.full
@pytest.mark.parametrize(
    "words",
    [
        ["--gpus", "2", "train.py"],
        ["--", "torchrun", "--standalone", "--nproc_per_node=2", "train.py"],
        ["--gpus", "2", "--", "torchrun", "--nproc-per-node", "gpu", "train.py"],
    ],
    ids=" ".join,
)
def test_ranks(project, words):
    write(project, RANKS.format(then=""))
    done = rehearse(project, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[0] == "rank 0 of 2 has [2.0, 2.0]"
    log = (run_folder(project) / "logs" / "rank1.log").read_text()
    assert log == "rank 1 of 2 has [2.0, 2.0]\n"


@pytest.mark.full
@pytest.mark.parametrize(
    ("then", "options", "code", "id"),
    [
        ("dist.all_reduce(value) if rank else dist.barrier()", ["--timeout", "90"], 5, "R401"),
        ("dist.all_reduce(value) if rank else sys.exit(1)", ["--timeout", "90"], 4, "R402"),
        ("dist.all_reduce(value) if rank == 0 else os.kill(os.getpid(), 9)", ["--timeout", "90"], 4, "R402"),
        ("dist.all_reduce(value) if rank == 0 else time.sleep(1000)", ["--timeout", "60"], 5, "R405"),
    ],
)
def test_ranks_that_wait_for_ever(project, then, options, code, id):
    write(project, RANKS.format(then=then))
    done = rehearse(project, "--gpus", "2", *options, "train.py")
    assert done.returncode == code, done.stdout + done.stderr
    assert id in done.stdout
    # Where it waits, and the last collective that all ranks passed.
    assert "train.py:9" in done.stdout and "train.py:8" in done.stdout


@pytest.mark.full
def test_a_failing_rank_is_shown(project):
    write(project, RANKS.format(then="assert rank == 0, 'bad batch'"))
    done = rehearse(project, "--gpus", "2", "train.py")
    assert done.returncode == 4
    (line,) = (line for line in done.stderr.splitlines() if "AssertionError" in line)
    assert line.startswith("[rank 1] ") and line.endswith("AssertionError: bad batch")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["trian.py"], 2, "trian.py: there is no such file. Did you mean train.py?"),
        (["--gpu", "a1000", "train.py"], 2, "a1000"),
        (["--html", "no/such/page.html", "train.py"], 2, "there is no folder no/such"),
        (["--python", "/no/such/python", "train.py"], 3, "/no/such/python cannot be used as Python"),
        (["--python", "/bin/cat", "train.py"], 3, "/bin/cat does not answer as Python does"),
        (["--", "accelerate", "launch", "train.py"], 2, "accelerate is not followed"),
    ],
)
def test_bad_input(project, words, code, said):
    write(project, "print('ran')")
    done = rehearse(project, *words)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr and "ran" not in done.stdout
    assert not (project / ".torchport").exists()


def test_a_mistake_in_the_configuration(project):
    write(project, "print('ran')")
    (project / "pyproject.toml").write_text("[tool.torchport]\ngpuss = 2\n")
    done = rehearse(project, "train.py")
    assert done.returncode == 2
    assert "did you mean gpus?" in done.stderr


@pytest.mark.full
def test_the_configuration_is_used(project):
    write(project, "import torch\nprint(torch.cuda.device_count(), torch.cuda.get_device_name())")
    (project / "pyproject.toml").write_text('[tool.torchport]\ngpu = "l4"\ngpus = 3\nlang = "zh"\n')
    done = rehearse(project, "train.py")
    assert done.stdout.splitlines()[0] == "3 NVIDIA L4", done.stderr
    assert rehearse(project, "--gpus", "1", "train.py").stdout.startswith("1 NVIDIA L4")


@pytest.mark.full
def test_a_record_that_can_grow_no_further_stops_nothing(project):
    # A limit on the size of files is what a full disk looks like to whoever appends.
    write(project, "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + textwrap.dedent(CLEAN))
    limited = ["bash", "-c", 'ulimit -f 2; exec "$@"', "bash", *command("train.py")]
    done = subprocess.run(limited, cwd=project, capture_output=True, text=True, timeout=120, check=False)
    assert "arguments []" in done.stdout, done.stderr
    assert "the record stops here" in done.stderr
    assert "rehearsed train.py" in done.stdout


@pytest.mark.full
def test_a_rank_ends_as_its_program_does(project):
    write(
        project,
        """
        import atexit, os, sys, torch.distributed as dist
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
        dist.init_process_group("gloo", rank=0, world_size=1)
        atexit.register(print, "said at the end")
        sys.exit(3)
        """,
    )
    done = rehearse(project, "train.py")
    assert done.returncode == 4, done.stderr
    assert "said at the end" in done.stdout
