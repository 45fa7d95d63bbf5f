"""The exit code of a rehearsal follows from how it ended and from what was found."""

import pytest

from torchport.api.rehearse import exit_code
from torchport.finding import Finding, Severity
from torchport.launch.supervise import Ending
from torchport.record import Record


def ending(reason, *codes):
    return Ending(codes, reason, None, 1.0)


def record(reason="finished", error=None):
    return Record("record.jsonl", {"rank": 0}, exit={"code": 0, "reason": reason, "error": error})


FOUND = {severity: [Finding("R101", "…", severity)] for severity in Severity}


@pytest.mark.parametrize(
    ("end", "records", "findings", "expected"),
    [
        (ending("ended", 0), [record()], [], 0),
        (ending("ended", 0), [record("steps")], FOUND[Severity.INFO], 0),
        (ending("ended", 0), [record()], FOUND[Severity.WARNING], 1),
        (ending("ended", 0), [record()], FOUND[Severity.ERROR], 1),
        (ending("failed", 1), [record("error", {"type": "ValueError"})], FOUND[Severity.ERROR], 4),
        (ending("failed", -9), [Record("record.jsonl", {})], [], 4),
        (ending("failed", 0, 1), [record(), record("error")], [], 4),
        (ending("failed", 1), [record("error", {"type": "OutOfMemoryError"})], [], 5),
        (ending("hung", -15, -15), [record("hung")], FOUND[Severity.ERROR], 5),
        (ending("timeout", -15), [record("timeout")], [], 5),
        (ending("interrupted", -2), [record("interrupted")], FOUND[Severity.ERROR], 130),
    ],
)
def test_exit_code(end, records, findings, expected):
    assert exit_code(end, records, findings) == expected
