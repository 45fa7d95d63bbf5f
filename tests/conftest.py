"""What tests of several folders need."""

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
