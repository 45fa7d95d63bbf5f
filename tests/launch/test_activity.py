"""Whether processes compute or wait, told from outside."""

import os
import subprocess
import sys
import time

import pytest

from torchport.launch.activity import Activity, lives

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="the system does not tell")

COMPUTES = "while True: pass"
WAITS = "import time; time.sleep(1000)"
# As gloo's thread does beside a rank that waits.
LOOKS_AROUND = """
import threading, time

def look_around():
    while True:
        time.sleep(0.01)

threading.Thread(target=look_around, daemon=True).start()
time.sleep(1000)
"""


@pytest.fixture
def process():
    started = []

    def start(text):
        started.append(subprocess.Popen([sys.executable, "-c", f"print(1, flush=True)\n{text}"], stdout=-1))
        started[-1].stdout.readline()
        time.sleep(0.3)
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.communicate()


def looks(pid, count):
    activity = Activity()
    found = []
    for _ in range(count):
        found.append(activity.busy(pid, time.monotonic()))
        time.sleep(0.3)
    return found


def test_a_process_that_computes(process):
    assert looks(process(COMPUTES).pid, 3) == [False, True, True]


@pytest.mark.parametrize("text", [WAITS, LOOKS_AROUND])
def test_a_process_that_waits(text, process):
    assert looks(process(text).pid, 6) == [False] * 6


def test_a_process_that_is_no_more(process):
    child = process(WAITS)
    assert lives(child.pid)
    child.kill()
    deadline = time.monotonic() + 10
    while lives(child.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not lives(child.pid)  # not waited for yet: a zombie
    assert looks(child.pid, 2) == [False, False]
