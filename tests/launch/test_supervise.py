"""Supervision of real processes: small Python programs in the place of ranks."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from torchport.launch.processes import Process
from torchport.launch.supervise import Manner, supervise

# What a rank writes when it enters and leaves a collective.
PRELUDE = """
import json, os, signal, sys, time
def say(**event):
    with open(os.environ["RECORD"], "a") as file:
        file.write(json.dumps(event) + "\\n")
def enter(op, sequence, line, state="enter"):
    say(kind="site", id=line, path="train.py", line=line, function="step")
    say(kind="collective", op=op, sequence=sequence, shapes=["[8]"], dtype="float32", site=line, state=state)
def leave(op, sequence, line):
    enter(op, sequence, line, "leave")
"""


@pytest.fixture
def start(tmp_path):
    def start(*programs, **options):
        processes = []
        for rank, program in enumerate(programs):
            record = str(tmp_path / f"record-rank{rank}.jsonl")
            processes.append(
                Process(
                    rank=rank,
                    argv=(sys.executable, "-c", PRELUDE + textwrap.dedent(program)),
                    env=(("RECORD", record),),
                    record_path=record,
                    log_path=str(tmp_path / f"rank{rank}.log") if rank else None,
                    spec_path=str(tmp_path / f"spec{rank}.json"),
                    spec="{}",
                )
            )
        return supervise(processes, folder=str(tmp_path), environ=os.environ, **options)

    return start


@pytest.mark.parametrize(
    ("program", "code", "reason"),
    [
        ("pass", 0, "ended"),
        ("sys.exit(3)", 3, "failed"),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9, "failed"),
    ],
)
def test_one_process(start, program, code, reason):
    ending = start(program)
    assert (ending.codes, ending.reason, ending.verdict) == ((code,), reason, None)


def test_output_of_rank_0_is_ours_and_of_others_in_their_log(start, tmp_path, capfd):
    ending = start("print('zero')", "print('one'); print('bad', file=sys.stderr)")
    assert ending.codes == (0, 0)
    assert capfd.readouterr().out == "zero\n"
    assert sorted((tmp_path / "rank1.log").read_text().split()) == ["bad", "one"]


def test_output_can_go_elsewhere(start, capfd):
    start("print('zero')", manner=Manner(output=2))
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "zero\n")


def test_timeout(start):
    ending = start("time.sleep(60)", timeout_s=0.3)
    assert (ending.codes, ending.reason) == ((-signal.SIGTERM,), "timeout")
    assert ending.seconds < 30


def test_ranks_in_different_collectives_do_not_hang(start):
    ending = start(
        "enter('all_reduce', 1, 10); leave('all_reduce', 1, 10); enter('all_reduce', 2, 20); time.sleep(60)",
        "enter('all_reduce', 1, 10); leave('all_reduce', 1, 10); enter('barrier', 2, 30); time.sleep(60)",
    )
    assert ending.reason == "hung"
    assert ending.verdict.id == "R401"
    assert ending.verdict.fields["last_common"]["site"].line == 10
    assert [row["site"].line for row in ending.verdict.fields["ranks"]] == [20, 30]
    assert ending.seconds < 30


def test_a_rank_that_dies_takes_the_others_along(start):
    ending = start(
        "enter('all_reduce', 1, 10); time.sleep(60)",
        "time.sleep(0.2); os.kill(os.getpid(), signal.SIGKILL)",
    )
    assert (ending.reason, ending.verdict.id, ending.verdict.fields["rank"]) == ("failed", "R402", 1)
    assert ending.codes == (-signal.SIGTERM, -signal.SIGKILL)


def test_ranks_that_fail_together_are_not_blamed_on_one_another(start):
    ending = start("sys.exit(1)", "sys.exit(1)")
    assert (ending.codes, ending.reason, ending.verdict) == ((1, 1), "failed", None)


def test_a_rank_that_fails_ends_the_others_soon(start):
    ending = start("time.sleep(60)", "sys.exit(1)")
    assert (ending.codes, ending.reason, ending.verdict) == ((-signal.SIGTERM, 1), "failed", None)


def test_ctrl_c_is_handed_on_once(tmp_path):
    ready, caught = tmp_path / "ready", tmp_path / "caught"
    child = f"""
        import pathlib, time
        pathlib.Path({str(ready)!r}).touch()
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            time.sleep(0.5)
            pathlib.Path({str(caught)!r}).write_text("once")
    """
    driver = f"""
        import os, sys
        from torchport.launch.processes import Process
        from torchport.launch.supervise import supervise
        argv = (sys.executable, "-c", {textwrap.dedent(child)!r})
        process = Process(0, argv, (), "r", None, {str(tmp_path / "spec")!r}, "")
        print(supervise([process], folder={str(tmp_path)!r}, environ=os.environ).reason)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(driver)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not ready.exists():
        assert parent.poll() is None
        time.sleep(0.05)
    parent.send_signal(signal.SIGINT)
    assert parent.communicate(timeout=60)[0] == "interrupted\n"
    assert caught.read_text() == "once"
