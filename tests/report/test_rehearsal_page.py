"""The page in a browser: it shows without an error and asks the network for nothing."""

import re
import shutil
import socket
import subprocess
import threading
from contextlib import contextmanager

import pytest

from torchport.report.rehearsal_html import render

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]

QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

FAULTY_PAGE = '<!doctype html><title>x</title><img src="http://example.test/x.png"><script>console.error("no")</script>'


@contextmanager
def proxy():
    """A proxy that answers nobody, and the first lines of what it was asked."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked = []

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                    with connection:
                        asked.append(connection.recv(4096).split(b"\r\n")[0].decode("ascii", "replace"))
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1], asked


def visit(folder, page):
    """Hosts that were asked while a page was shown, what the console said, the page as it was understood."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    with proxy() as (port, asked):
        shown = subprocess.run(
            [
                CHROMIUM,
                *QUIET,
                f"--user-data-dir={folder / 'profile'}",
                f"--proxy-server=http://127.0.0.1:{port}",
                "--proxy-bypass-list=<-loopback>",
                "--enable-logging=stderr",
                "--virtual-time-budget=2000",
                "--dump-dom",
                path.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    hosts = {re.sub(r"^\w+ (?:https?://)?([^/:]+).*", r"\1", line) for line in asked}
    said = [line for line in shown.stderr.splitlines() if "CONSOLE" in line]
    return hosts, said, shown.stdout


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """What chromium asks by itself, with nothing to show; also proves that the test can see a request."""
    hosts, said, _ = visit(tmp_path_factory.mktemp("faulty"), FAULTY_PAGE)
    assert "example.test" in hosts
    assert said
    return hosts - {"example.test"} | visit(tmp_path_factory.mktemp("blank"), "<!doctype html><title>x</title>")[0]


def test_the_page_needs_nothing(tmp_path, own, faulty, events):
    hosts, said, shown = visit(tmp_path, render(faulty, read=events.sources.get))
    assert hosts <= own
    assert said == []
    assert "2 faults" in shown


def test_a_hostile_page_runs_nothing(tmp_path, own, ran):
    name = '</style><script>console.error("x")</script><img src="http://example.test/y.png" onerror=alert(1)>'
    fields = {"op": name, "tensors": [{"name": name, "device": "cpu"}], "offender": 0, "cuda_says": name}
    fault = {
        "kind": "finding",
        "number": 1,
        "id": "R101",
        "severity": "error",
        "site": 1,
        "step": 1,
        "fields": fields,
    }
    page = render(ran([fault], sites={1: (name, 1, name)}, argv=(name,)), read=lambda path: name)
    hosts, said, _ = visit(tmp_path, page)
    assert hosts <= own
    assert said == []
