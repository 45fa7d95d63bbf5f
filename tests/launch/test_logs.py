"""Logs of several ranks: whole lines as they come, what a terminal shows of them, and the last traceback."""

import pytest

from torchport.launch.job import first_failure, shell_code
from torchport.launch.logs import Growing, first_words, last_traceback, prefix, rank_logs, settled

TORCHRUN = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
sh FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-12-01_03:09:52
  host      : n
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 5)
  error_file: <N/A>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-12-01_03:09:51
  host      : n
  rank      : 1 (local_rank: 1)
  exitcode  : 7 (pid: 6)
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "logs").mkdir()
    return tmp_path


def write(place, rank, text):
    with (place / "logs" / f"rank{rank}.log").open("a", newline="") as log:
        log.write(text)


def test_whole_lines_as_they_come(place):
    growing = Growing(place)
    write(place, 0, "one\ntw")
    write(place, 10, "ten\n")
    write(place, 2, "")
    (place / "logs" / "launcher.log").write_text("no rank\n")
    assert list(growing.look()) == [(0, "one"), (10, "ten")]
    write(place, 0, "o\n")
    write(place, 2, "late")
    assert list(growing.look()) == [(0, "two")]
    assert list(growing.look(last=True)) == [(2, "late")]
    assert list(rank_logs(place)) == [0, 2, 10]


def test_the_last_lines_of_one_rank(place):
    write(place, 0, "a\nb\nc\n")
    write(place, 1, "x\n")
    growing = Growing(place, rank=0, from_end=2)
    assert list(growing.look()) == [(0, "b"), (0, "c")]
    write(place, 0, "d\ne\nf\n")
    assert [line for _, line in growing.look()] == ["d", "e", "f"]


@pytest.mark.parametrize(
    ("line", "shown"), [("a", "a"), ("10%\r20%\r30%", "30%"), ("10%\r20%\r", "20%"), ("\r", ""), ("", "")]
)
def test_a_progress_bar_writes_over_itself(line, shown):
    assert settled(line) == shown


@pytest.mark.parametrize(("rank", "world", "expected"), [(0, 1, ""), (3, 4, "[rank 3] "), (3, 16, "[rank  3] ")])
def test_prefixes_are_as_wide_for_all(rank, world, expected):
    assert prefix(rank, world) == expected


def test_who_failed_first(place):
    assert first_failure(place) is None
    (place / "logs" / "launcher.log").write_text(TORCHRUN)
    assert first_failure(place) == (1, 7)
    write(
        place,
        1,
        "Traceback (most recent call last):\n  old\nstarted again\nTraceback (most recent call last):\n  new\n",
    )
    assert last_traceback(place / "logs" / "rank1.log") == ["Traceback (most recent call last):", "  new"]
    assert first_words(place, 1, rank_logs(place))[-1] == "  new"
    assert "rank      : 1 (local_rank: 1)" in "\n".join(first_words(place, None, {}))


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (7, 7), (-9, 137), (-2, 130)])
def test_exit_codes_as_the_shell_tells_them(code, expected):
    assert shell_code(code) == expected
