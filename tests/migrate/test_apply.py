"""Applying: all files or none, wherever it is interrupted. Processes are really stopped, at every line they run."""

import errno
import json
import os
import signal
import sys

import pytest

from torchport.migrate import apply as module
from torchport.migrate.apply import MARKER, Busy, Edited, apply, recover

BEFORE = {"train.py": b"a = 1\r\n", "pkg/model.py": b"# -*- coding: latin-1 -*-\nb = '\xe4'\n", "run.py": b"#!/x\n"}
AFTER = {path: data + b"more\n" for path, data in BEFORE.items()}


@pytest.fixture
def project(tmp_path):
    return made(tmp_path / "project")


def made(folder):
    for path, data in BEFORE.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    (folder / "run.py").chmod(0o755)
    return folder


def files(project):
    return {path: (project / path).read_bytes() for path in BEFORE}


def strays(project):
    """What lies around beside the user's files and our folder."""
    found = (path.relative_to(project).as_posix() for path in project.rglob("*") if path.is_file())
    return sorted(path for path in found if path not in BEFORE and not path.startswith(".torchport/"))


def test_all_files_and_what_was_there(project):
    kept = apply(project, BEFORE, AFTER, "now")
    assert files(project) == AFTER
    assert {path: (kept / path).read_bytes() for path in BEFORE} == BEFORE
    assert (project / "run.py").stat().st_mode & 0o777 == 0o755
    assert strays(project) == []
    assert recover(project) is None
    assert apply(project, AFTER, BEFORE, "now").name == "now-2"


def test_a_file_that_was_edited_meanwhile(project):
    (project / "run.py").write_bytes(b"mine")
    with pytest.raises(Edited, match=r"run\.py"):
        apply(project, BEFORE, AFTER, "now")
    assert files(project) == {**BEFORE, "run.py": b"mine"}


def child(project, at, what):
    """Applies in a process of its own, in which ``what`` happens at the line of that number; its exit status."""
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    left = [at]

    def trace(frame, event, value):
        if frame.f_code.co_filename != module.__file__:
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                what()
        return trace

    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        sys.settrace(trace)
        apply(project, BEFORE, AFTER, "now")
        code = 0
    except KeyboardInterrupt:
        code = 130
    except OSError:
        code = 2
    finally:
        sys.settrace(None)
        os._exit(code if left[0] <= 0 else 99)


def every_line(tmp_path, what):
    """(project, exit status) for each line at which it can happen."""
    for at in range(1, 1000):
        project = made(tmp_path / str(at))
        status = child(project, at, what)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 99:
            assert at > 100, "the lines are not followed"
            return
        yield project, status
    raise AssertionError("it never comes to an end")


@pytest.mark.full
def test_killed_at_every_line(tmp_path):
    ended = set()
    for project, status in every_line(tmp_path, lambda: os.kill(os.getpid(), signal.SIGKILL)):
        assert os.WTERMSIG(status) == signal.SIGKILL
        at_once = files(project)
        found = recover(project)
        assert (project / MARKER).exists() is False
        assert files(project) in (BEFORE, AFTER)
        assert found is not None or at_once in (BEFORE, AFTER), "mixed, and nothing tells of it"
        assert found is None or (files(project) == BEFORE and not found.edited)
        assert (project / "run.py").stat().st_mode & 0o777 == 0o755
        assert strays(project) == []
        mixed = at_once not in (BEFORE, AFTER)
        assert not mixed or sorted(found.restored) == sorted(p for p in BEFORE if at_once[p] == AFTER[p])
        ended.add("mixed" if mixed else "before" if files(project) == BEFORE else "after")
    assert ended == {"mixed", "before", "after"}


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_at_every_line(tmp_path, number):
    ended = set()
    for project, status in every_line(tmp_path, lambda: os.kill(os.getpid(), number)):
        assert os.WEXITSTATUS(status) == 130
        assert not (project / MARKER).exists()
        assert files(project) in (BEFORE, AFTER)
        assert strays(project) == []
        ended.add(files(project) == BEFORE)
    assert ended == {True, False}


def disk_full():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.full
def test_a_disk_that_is_full_at_every_line(tmp_path):
    """One line fails and the next ones do not: as it is when a large file has made room by its end."""
    for project, status in every_line(tmp_path, disk_full):
        if os.WEXITSTATUS(status) == 2:
            recover(project)  # where it was the restoring that failed
        assert files(project) in (BEFORE, AFTER)
        assert strays(project) == []


def test_killed_half_way(half_way):
    found = recover(half_way)
    assert len(found.restored) == 1
    assert files(half_way) == BEFORE
    assert strays(half_way) == []
    assert recover(half_way) is None


@pytest.fixture
def half_way(project):
    """A project in which the process was killed when one file had its new content and the others not."""
    pid = os.fork()
    if not pid:
        # Asked between two files, and by then one is in place.
        module.signal.sigpending = lambda: os.kill(os.getpid(), signal.SIGKILL)
        apply(project, BEFORE, AFTER, "now")
        os._exit(0)
    os.waitpid(pid, 0)
    assert sum(files(project)[path] == AFTER[path] for path in BEFORE) == 1
    return project


def test_what_the_user_wrote_since_is_left_alone(half_way):
    project = half_way
    ours = next(path for path in BEFORE if files(project)[path] == AFTER[path])
    (project / ours).write_bytes(b"mine")
    found = recover(project)
    assert (found.restored, found.edited) == ((), (ours,))
    assert files(project) == {**BEFORE, ours: b"mine"}
    assert (found.backup / ours).read_bytes() == BEFORE[ours]


def test_a_process_that_still_applies_is_not_undone(half_way):
    project = half_way
    half = files(project)
    handle = os.open(project / MARKER, os.O_RDONLY)
    module._lock(handle)
    with pytest.raises(Busy):
        recover(project)
    with pytest.raises(Busy):
        apply(project, half, AFTER, "now")
    assert files(project) == half
    os.close(handle)
    assert recover(project).restored


@pytest.mark.parametrize(
    "told",
    [
        "no JSON",
        "[]",
        {"backup": "now"},
        {"backup": "../../elsewhere", "files": {}},
        {"backup": "now", "files": {"../victim": "DIGEST"}},
        {"backup": "now", "files": {"/VICTIM": "DIGEST"}},
        {"backup": "now", "files": {"link": "DIGEST"}},
    ],
)
def test_a_marker_that_came_with_the_project(project, told):
    """A clone may bring any ``.torchport``: nothing outside of the project is written."""
    victim = project.parent / "victim"
    victim.write_bytes(b"x")
    (project / "link").symlink_to(victim)
    text = told if isinstance(told, str) else json.dumps(told)
    text = text.replace("DIGEST", module._digest(b"x")).replace("/VICTIM", str(victim))
    (project / ".torchport/backup/now").mkdir(parents=True)
    for name in ("../victim", "link"):
        (project / ".torchport/backup/now" / name).write_bytes(b"evil")
    (project / MARKER).write_text(text)
    assert recover(project) is None
    assert victim.read_bytes() == b"x"
    assert files(project) == BEFORE
