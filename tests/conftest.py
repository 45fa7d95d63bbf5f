"""What tests of several folders need."""

import hashlib
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest

from torchport import text
from torchport.record import RecordWriter, read


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write what is printed now as what is expected")


@pytest.fixture
def recorded(tmp_path):
    """Makes a record of a list of events, as a process writes it; sites are {id: (path, line, function)}."""

    def make(events, sites=(), **header):
        path = tmp_path / f"record-{len(list(tmp_path.iterdir()))}.jsonl"
        writer = RecordWriter(path, {"rank": 0, "world": 1, "started": 0, **header})
        for number, (name, line, function) in dict(sites).items():
            writer.write({"kind": "site", "id": number, "path": name, "line": line, "function": function})
        for event in events:
            writer.write(event)
        writer.close()
        return read(path)

    return make


@pytest.fixture
def english():
    """Puts the language back after a test that changes it."""
    text.set_language("en")
    yield
    text.set_language("en")


def write_wheel(folder, name, version, *needs, tag="py3-none-any"):
    """A small wheel with a true name; ``tag`` is as in that name."""
    folder.mkdir(parents=True, exist_ok=True)
    plain = name.replace("-", "_")
    info = f"{plain}-{version}.dist-info"
    requires = "".join(f"Requires-Dist: {each}\n" for each in needs)
    with zipfile.ZipFile(folder / f"{plain}-{version}-{tag}.whl", "w") as archive:
        archive.writestr(f"{plain}/__init__.py", "")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}")
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        archive.writestr(f"{info}/RECORD", "")


def write_index(folder):
    """A simple index of the wheels in a folder: a page for each name, with hashes."""
    pages = {}
    for path in sorted(folder.glob("*.whl")):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        name = path.name.split("-")[0].replace("_", "-")
        pages.setdefault(name, []).append(f'<a href="../{quote(path.name)}#sha256={digest}">{path.name}</a>')
    for name, links in pages.items():
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "index.html").write_text(f"<!DOCTYPE html><html><body>{'<br>'.join(links)}</body></html>")


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


@pytest.fixture(scope="session")
def wheels(tmp_path_factory):
    """Small wheels that stand for torch's, of several releases and CUDA tags, and for what goes with them."""
    place = tmp_path_factory.mktemp("mirror")
    rest = place / "simple"
    for name, version in (("filelock", "3.1"), ("numpy", "1.26.0"), ("numpy", "2.1.0")):
        write_wheel(rest, name, version)
    write_wheel(rest, "nvidia-cudnn-cu12", "9.10.2.21")
    write_wheel(rest, "needs-old-torch", "1.0", "torch==2.6.0")
    tags = {minor: f"cp3{minor}-cp3{minor}-manylinux_2_28_x86_64" for minor in (11, 12)}
    write_wheel(rest, "torch", "2.6.0", tag=tags[12])
    write_index(rest)
    for backend in ("cpu", "cu118", "cu124", "cu126"):
        needs = () if backend == "cpu" else ("nvidia-cudnn-cu12==9.10.2.21",)
        for version, minor in (("2.1.0", 11), ("2.6.0", 12), ("2.14.1", 12), ("2.15.0", 12)):
            write_wheel(place / "whl" / backend, "torch", f"{version}+{backend}", "filelock", *needs, tag=tags[minor])
        vision = ("torchvision", f"0.21.0+{backend}", f"torch==2.6.0+{backend}")
        write_wheel(place / "whl" / backend, *vision, tag=tags[12])
        write_index(place / "whl" / backend)
    return place


@pytest.fixture(scope="session")
def mirror(wheels):
    """The address of a server of these wheels, on the loopback interface."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(wheels))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
