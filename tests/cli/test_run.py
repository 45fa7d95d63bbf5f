"""``torchport run`` and the verbs of its runs as a user types them: real processes, signals, terminals and torchrun."""

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import textwrap
import time
from pathlib import Path

import pytest

from torchport.launch.cards import LOCKS
from torchport.record import read

pytestmark = pytest.mark.full

# Counts up in a file a second at a time and says at its end why it ends.
COUNT = """
    import os, signal, sys, time
    rank = os.environ.get("RANK", "0")
    def note(text):
        print(text, flush=True)
        with open(f"notes-{rank}", "a") as file:
            file.write(text + "\\n")
    def save(number, frame):
        note(f"saved on {number}")
        sys.exit(0)
    signal.signal(signal.SIGTERM, save)
    signal.signal(signal.SIGUSR1, lambda number, frame: note(f"heard {number}"))
    note("begins")
    for step in range(int(sys.argv[1]) * 20):
        time.sleep(0.05)
    note("ends")
"""
# Trains with two gloo ranks, saves each step, and dies once by kill -9 where the file "die" tells it to.
RANKS = """
    import os, signal, sys, torch, torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    first = 0
    if os.path.exists("checkpoint.pt"):
        state = torch.load("checkpoint.pt", weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"]
        print("resumes at", first)
    ddp = DistributedDataParallel(model)
    for step in range(first, 6):
        if step == 3 and rank == 1 and os.path.exists("die"):
            os.remove("die")
            os.kill(os.getpid(), signal.SIGKILL)
        x = torch.randn(8, 4, generator=torch.Generator().manual_seed(100 * step + rank))
        loss = ddp(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}, "new.pt")
            os.replace("new.pt", "checkpoint.pt")
            with open("losses", "a") as file:
                file.write(f"{step} {loss.item().hex()}\\n")
        dist.barrier()
    del ddp, loss  # gloo's threads may end the process with an error where something of the group is left
    dist.destroy_process_group()
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.torchport]\n")
    yield tmp_path
    for place in (tmp_path / ".torchport" / "runs").glob("*"):
        if not (place / "exit.json").exists():
            torchport(tmp_path, "stop", "--now", place.name)


def command(*words):
    return [str(Path(sys.executable).with_name("torchport")), *words]


def environ(**more):
    return {**os.environ, "COLUMNS": "100", **more}


def torchport(project, *words, env=None, **options):
    options = {"capture_output": True, "text": True, "timeout": 120, **options}
    return subprocess.run(command(*words), cwd=project, env=env or environ(), **options)


def run(project, *words, **options):
    return torchport(project, "run", "--python", sys.executable, *words, **options)


def write(project, text, name="train.py"):
    (project / name).write_text(textwrap.dedent(text))


def detach(project, *words, **options):
    done = run(project, "--detach", "--format", "json", *words, **options)
    assert done.returncode == 0, done.stderr
    return Path(json.loads(done.stdout)["run"]["folder"])


def until(condition, within_s=60.0):
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError("it did not come true")


def content(path):
    try:
        return Path(path).read_text()
    except FileNotFoundError:
        return ""


def ended(place, within_s=60.0):
    until((place / "exit.json").exists, within_s)
    return json.loads((place / "exit.json").read_text())


def told(place):
    return json.loads((place / "state.json").read_text())


def listed(project, *words):
    return json.loads(torchport(project, "ps", "--format", "json", *words).stdout)


def lives(pid):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def workers(project):
    """The pids of the two ranks, once both have begun."""
    until(lambda: all("begins" in content(project / f"notes-{rank}") for rank in (0, 1)))
    (place,) = (project / ".torchport" / "runs").glob("*")
    marks = {f"TORCHPORT_RUN={place}".encode(), b"LOCAL_RANK=0", b"LOCAL_RANK=1"}
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if len(marks & set((entry / "environ").read_bytes().split(b"\0"))) == 2:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_the_script_is_run_as_it_would_be(project):
    write(project, "import sys, os\nprint(sys.argv[1:])\nprint('oh', file=sys.stderr)\nsys.exit(7)")
    done = run(project, "train.py", "a b", "it's", "--gpus", "$HOME")
    assert (done.returncode, done.stdout) == (7, """['a b', "it's", '--gpus', '$HOME']\n""")
    assert done.stderr.endswith("\noh\n")
    (place,) = (project / ".torchport" / "runs").glob("*")
    assert ended(place)["code"] == 7
    assert "it's" in content(place / "logs" / "rank0.log") and "oh" in content(place / "logs" / "rank0.log")
    record = read(place / "record.jsonl")
    assert record.exit["code"] == 7 and record.header["facts"]["torch"]["python"] == sys.executable
    assert json.loads(content(place / "plan.json"))["argv"][1:] == ["a b", "it's", "--gpus", "$HOME"]


def test_files_of_the_project_are_not_taken_for_ours(project):
    for name in ("json.py", "torchport.py", "ctypes.py", "click.py"):
        (project / name).write_text("raise SystemExit('a file of the project was taken')\n")
    write(project, "print('ran')")
    assert ended(detach(project, "train.py"))["code"] == 0
    assert torchport(project, "logs").stdout == "ran\n"


def test_a_reader_that_leaves_is_noticed(project):
    write(project, "import itertools\nfor number in itertools.count():\n    print(number)")
    shell = f"{' '.join(command('run', '--python', sys.executable, 'train.py'))} | head -n 3"
    done = subprocess.run(shell, shell=True, cwd=project, env=environ(), capture_output=True, text=True, timeout=60)
    assert done.stdout == "0\n1\n2\n"
    assert "BrokenPipeError" in done.stderr


def test_a_dry_run_shows_what_runs(project):
    write(project, "import os, sys\nprint(sys.argv, os.environ['RANK'], os.environ['WORLD_SIZE'], os.getcwd())")
    words = ("--processes", "2", "train.py", "a b", "it's")
    shown = run(project, "--dry-run", *words).stdout
    assert not (project / ".torchport").exists()
    subprocess.run(["sh", "-e"], input=shown, text=True, cwd="/", env=environ(), check=True, timeout=120)
    (pasted,) = (project / ".torchport" / "runs").glob("*")
    assert run(project, "--name", "real", *words).returncode == 0
    (real,) = (project / ".torchport" / "runs").glob("*-real")
    for rank in (0, 1):
        line = content(pasted / "logs" / f"rank{rank}.log")
        assert line == content(real / "logs" / f"rank{rank}.log")
        assert line == f"""['train.py', 'a b', "it's"] {rank} 2 {project}\n"""
    plan = json.loads(run(project, "--dry-run", "--format", "json", *words).stdout)
    assert plan["argv"][-3:] == ["train.py", "a b", "it's"] and plan["env"]["PET_NPROC_PER_NODE"] == "2"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--nodes", "2", "train.py"], 2, "--on local is one machine"),
        (["--gpus", "1", "--wait", "--share", "train.py"], 2, "give one of them"),
        (["--wait", "train.py"], 2, "--wait needs --gpus"),
        (["--gpus", "3", "--processes", "2", "train.py"], 2, "evenly"),
        (["--processes", "2", "--", "python", "train.py"], 2, "behind --"),
        (["--processes", "2", "torchrun", "train.py"], 2, "behind --"),
        (["trian.py"], 2, "Did you mean train.py?"),
        (["note.ipynb"], 2, "jupyter nbconvert"),
        (["--", "no-such-command"], 3, "no such command"),
        (["--format", "json", "train.py"], 2, "--dry-run or --detach"),
        (["train.py", "--data", "/no/such/data"], 1, "/no/such/data is not there"),
    ],
)
def test_refusals(project, words, code, message):
    write(project, "print('ran')")
    write(project, "{}", "note.ipynb")
    done = run(project, *words)
    assert (done.returncode, done.stdout) == (code, "") and message in done.stderr
    assert not (project / ".torchport").exists()


def test_what_the_environment_says_of_torchrun_is_no_surprise(project):
    write(project, "")
    done = run(project, "--processes", "2", "train.py", env=environ(PET_NPROC_PER_NODE="4"))
    assert done.returncode == 2 and "PET_NPROC_PER_NODE=4" in done.stderr


def test_a_command_runs_in_the_projects_environment(project):
    done = run(project, "--", "sh", "-c", 'command -v python; echo "$0 $1"; exit 9', "a b", "--help")
    assert done.returncode == 9
    assert done.stdout == f"{Path(sys.executable).with_name('python')}\na b --help\n"


def on_a_terminal(project, *words):
    """(process, master) of a command that leads a session of its own on a terminal of 30 lines of 90 cells."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 90, 0, 0))

    def own_terminal():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    child = subprocess.Popen(
        command("run", "--python", sys.executable, *words),
        cwd=project,
        env=environ(),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        preexec_fn=own_terminal,
    )
    os.close(slave)
    return child, master


def read_all(master, until_seen=None):
    data = b""
    try:
        while chunk := os.read(master, 4096):
            data += chunk
            if until_seen and until_seen in data:
                break
    except OSError:
        pass
    return data


def test_the_terminal_stays_the_programs(project):
    write(
        project,
        """
        import os, sys, time
        print(sys.stdin.isatty(), sys.stdout.isatty(), sys.stderr.isatty(), os.get_terminal_size(), flush=True)
        name = input("name? ")
        try:
            print("asked", name, flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            print("tidies up")
            sys.exit(3)
        """,
    )
    child, master = on_a_terminal(project, "train.py")
    shown = read_all(master, b"name? ")
    os.write(master, b"ann\n")
    shown += read_all(master, b"asked ann\r\n")
    os.write(master, b"\x03")
    shown += read_all(master)
    assert child.wait(30) == 3
    assert b"True True True os.terminal_size(columns=90, lines=30)" in shown
    assert b"asked ann\r\n" in shown and b"tidies up\r\n" in shown
    (place,) = (project / ".torchport" / "runs").glob("*")
    assert content(place / "logs" / "rank0.log").endswith("name? asked ann\ntidies up\n")
    assert ended(place)["reason"] == "interrupted"


def test_a_closed_terminal_ends_what_is_in_the_foreground(project):
    write(project, COUNT)
    child, master = on_a_terminal(project, "train.py", "60")
    read_all(master, b"begins")
    os.close(master)
    child.wait(30)
    (place,) = (project / ".torchport" / "runs").glob("*")
    assert ended(place)["reason"] == "hangup"


def test_a_closed_terminal_and_sighup_do_not_end_a_detached_run(project):
    write(project, COUNT)
    child, master = on_a_terminal(project, "--detach", "train.py", "3")
    read_all(master)
    os.close(master)
    child.wait(30)
    (place,) = (project / ".torchport" / "runs").glob("*")
    os.kill(told(place)["supervisor"], signal.SIGHUP)
    assert listed(project)["runs"][0]["phase"] == "running"
    assert ended(place)["code"] == 0
    assert content(project / "notes-0") == "begins\nends\n"
    assert torchport(project, "logs").stdout == "begins\nends\n"


def test_kill_9_of_an_attached_client_leaves_the_run(project):
    write(project, COUNT)
    place = detach(project, "train.py", "4")
    client = subprocess.Popen(command("attach"), cwd=project, env=environ(), stdout=subprocess.PIPE)
    assert client.stdout.readline() == b"begins\n"
    client.kill()
    client.wait()
    client.stdout.close()
    again = torchport(project, "attach")
    assert (again.returncode, again.stdout) == (0, "begins\nends\n")
    assert ended(place)["reason"] == "finished"


def test_ctrl_c_detaches_from_a_run(project):
    write(project, COUNT)
    place = detach(project, "train.py", "60")
    with subprocess.Popen(
        command("attach"), cwd=project, env=environ(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as client:
        client.stdout.readline()
        client.send_signal(signal.SIGINT)
        assert client.wait(30) == 0
        assert f"{place.name} goes on" in client.stderr.read().decode()
    assert listed(project)["runs"][0]["phase"] == "running"
    assert torchport(project, "stop").returncode == 0


def test_stop_lets_the_script_save(project):
    write(project, COUNT)
    place = detach(project, "train.py", "60")
    until(lambda: content(project / "notes-0"))
    done = torchport(project, "stop")
    assert done.returncode == 0 and "was stopped, exit code 0" in done.stderr
    left = ended(place)
    assert (left["code"], left["reason"]) == (0, "stopped") and left["by"]
    assert content(project / "notes-0") == f"begins\nsaved on {signal.SIGTERM.value}\n"
    assert torchport(project, "stop").returncode == 2  # nothing runs


def test_stop_does_not_take_the_scripts_helpers_away_while_it_saves(project):
    write(
        project,
        """
        import signal, subprocess, sys, time
        helper = subprocess.Popen(["sleep", "100"])
        def save(number, frame):
            time.sleep(1)
            print("helper", helper.poll(), flush=True)
            sys.exit(0)
        signal.signal(signal.SIGTERM, save)
        print("begins", helper.pid, flush=True)
        time.sleep(60)
        """,
    )
    place = detach(project, "train.py")
    log = place / "logs" / "rank0.log"
    helper = int(until(lambda: content(log)).split()[1])
    assert torchport(project, "stop").returncode == 0
    assert content(log).endswith("helper None\n")
    assert not lives(helper)


@pytest.mark.parametrize(("grace", "words"), [("1", []), ("100", ["--now"])])
def test_a_script_that_will_not_end_is_killed(project, grace, words):
    write(project, "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(1)\ntime.sleep(100)")
    place = detach(project, "--grace", grace, "train.py")
    until(lambda: content(place / "logs" / "rank0.log"))
    begin = time.monotonic()
    assert torchport(project, "stop", *words).returncode == 0
    assert time.monotonic() - begin < 20
    left = ended(place)
    assert (left["code"], left["reason"]) == (137, "stopped")
    assert not lives(told(place)["pid"])


def test_all_ranks_hear_signals_and_save(project):
    write(project, COUNT)
    place = detach(project, "--processes", "2", "train.py", "60")
    assert len(workers(project)) == 2
    os.kill(told(place)["supervisor"], signal.SIGUSR1)
    usr1, term = signal.SIGUSR1.value, signal.SIGTERM.value
    for rank in (0, 1):
        until(lambda rank=rank: f"heard {usr1}" in content(project / f"notes-{rank}"))
    os.kill(told(place)["supervisor"], signal.SIGTERM)  # as a scheduler does that wants the machine back
    left = ended(place)
    assert (left["code"], left["reason"], left["by"]) == (0, "terminated", None)
    for rank in (0, 1):
        assert content(project / f"notes-{rank}") == f"begins\nheard {usr1}\nsaved on {term}\n"
    assert torchport(project, "logs", "--rank", "1", "-n", "1").stdout == f"saved on {term}\n"


def test_kill_9_of_the_supervisor_is_told_and_cleaned_up(project):
    write(project, COUNT)
    place = detach(project, "--processes", "2", "train.py", "600")
    ranks = workers(project)
    os.kill(told(place)["supervisor"], signal.SIGKILL)
    (lost,) = until(lambda: [run for run in listed(project)["runs"] if run["phase"] == "lost"])
    assert set(ranks) < set(lost["living"])
    assert "its processes go on" in torchport(project, "ps").stdout
    assert torchport(project, "attach").returncode == 1
    assert torchport(project, "stop").returncode == 0
    assert not any(map(lives, ranks))
    assert ended(place)["reason"] == "stopped"
    assert content(project / "notes-1").startswith("begins\nsaved on")


def test_kill_9_of_torchrun_leaves_no_rank_behind(project):
    write(project, COUNT)
    place = detach(project, "--processes", "2", "train.py", "600")
    ranks = workers(project)
    os.kill(told(place)["pid"], signal.SIGKILL)
    assert ended(place)["code"] == 137
    assert not any(map(lives, ranks))


def test_the_rank_that_failed_first_has_the_last_word(project):
    write(
        project,
        """
        import os, sys, time
        print("rank", os.environ["RANK"])
        if os.environ["RANK"] == "1":
            try:
                raise ValueError("bad batch")
            finally:
                sys.stdout.flush()
        time.sleep(60)
        """,
    )
    done = run(project, "--processes", "2", "train.py")
    assert done.returncode == 1
    assert "[rank 0] rank 0\n" in done.stdout and "[rank 1] ValueError: bad batch\n" in done.stdout
    last = done.stderr.strip().splitlines()
    assert last[-1] == "    ValueError: bad batch" and "torchport: rank 1 failed first:" in last


def test_the_exit_code_is_the_ranks_own(project):
    write(project, "import os, sys\nsys.exit(7 if os.environ['RANK'] == '1' else 0)")
    assert run(project, "--processes", "2", "train.py").returncode == 7


def test_a_rank_killed_once_and_the_right_losses(project):
    write(project, RANKS)
    assert run(project, "--processes", "2", "train.py").returncode == 0
    expected = (project / "losses").read_text()
    for name in ("losses", "checkpoint.pt"):
        (project / name).unlink()
    (project / "die").touch()
    done = run(project, "--processes", "2", "--max-restarts", "1", "train.py")
    assert done.returncode == 0, done.stderr
    assert "resumes at 3" in done.stdout and not (project / "die").exists()
    assert (project / "losses").read_text() == expected and len(expected.splitlines()) == 6


@pytest.fixture
def driver(project, tmp_path_factory):
    """Compiles a driver library of two cards, of which this process computes on the first."""
    folder = tmp_path_factory.mktemp("driver")
    name = f"test{os.getpid()}"

    def build(*defines):
        source = Path(__file__).with_name("fake_nvml.c")
        values = ("-DCARDS=2", f'-DNAME="{name}"', f"-DHOLDER={os.getpid()}", *defines)
        target = folder / "libnvidia-ml.so.1"
        try:
            subprocess.run(["gcc", "-shared", "-fPIC", *values, "-o", str(target), str(source)], check=True)
        except FileNotFoundError:
            pytest.skip("needs gcc")
        return environ(LD_LIBRARY_PATH=str(folder))

    yield build
    for lock in LOCKS.glob(f"GPU-{name}-*.lock"):
        lock.unlink()


# The project's torch is a CPU build, which preflight rightly refuses on a card.
CARDS = ("--no-preflight", "--gpus")


def test_only_cards_that_are_free(project, driver):
    env = driver()
    write(project, "import os, time\nprint(os.environ['CUDA_VISIBLE_DEVICES'], flush=True)\ntime.sleep(60)")
    assert "built without CUDA" in run(project, "--gpus", "1", "train.py", env=env).stderr
    first = detach(project, *CARDS, "1", "train.py", env=env)
    until(lambda: content(first / "logs" / "rank0.log") == "1\n")
    # Nothing computes on card 1 yet: it is the lock that keeps it.
    done = run(project, *CARDS, "1", "train.py", env=env)
    assert done.returncode == 1
    assert "0 of 2 cards are free" in done.stderr and f"pid {os.getpid()}" in done.stderr
    assert str(first) in done.stderr and "--wait waits" in done.stderr
    waiting = detach(project, *CARDS, "1", "--wait", "train.py", env=env)
    assert [run["phase"] for run in listed(project)["runs"]] == ["running", "waiting"]
    shared = detach(project, *CARDS, "2", "--processes", "1", "--share", "train.py", env=env)
    until(lambda: content(shared / "logs" / "rank0.log") == "0,1\n")
    everything = json.loads(torchport(project, "ps", "--all", "--format", "json", env=env).stdout)
    assert {str(first), str(waiting), str(shared)} <= {run["folder"] for run in everything["runs"]}
    assert [card["name"] for card in everything["cards"]] == ["Fake H200", "Fake H200"]
    assert torchport(project, "stop", shared.name).returncode == 0
    assert torchport(project, "stop", first.name).returncode == 0
    until(lambda: content(waiting / "logs" / "rank0.log") == "1\n")
    given_up = detach(project, *CARDS, "1", "--wait", "train.py", env=env)
    assert torchport(project, "stop", given_up.name).returncode == 0
    assert ended(given_up)["reason"] == "stopped" and not content(given_up / "logs" / "rank0.log")
    assert torchport(project, "stop").returncode == 0


def test_a_driver_that_hangs_is_told(project, driver, monkeypatch):
    env = driver("-DHANGS")
    write(project, "")
    done = run(project, "--gpus", "1", "train.py", env=env)
    assert done.returncode == 1 and "does not answer" in done.stderr


def test_no_card(project):
    write(project, "")
    done = run(project, "--gpus", "1", "train.py")
    if "built without CUDA" not in done.stderr:  # a machine with a card
        assert done.returncode == 1 and "no NVIDIA GPU" in done.stderr
