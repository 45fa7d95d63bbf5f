"""Text that may hold anything, made safe to show."""

import pytest

from torchport.report.printable import printable


@pytest.mark.parametrize(
    ("text", "keep", "expected"),
    [
        ("plain", "", "plain"),
        ("模型 é 🙂", "", "模型 é 🙂"),
        ("a\x1b[31mb", "", "a\\x1b[31mb"),
        ("a\nb\tc", "", "a\\nb\\tc"),
        ("a\nb\tc", "\n", "a\nb\\tc"),
        ("\x9b\x00\x7f", "", "\\x9b\\x00\\x7f"),
        ("\u202eabc\u2066", "", "\\u202eabc\\u2066"),
        ("half\udce9", "", "half\\udce9"),
        ("sep\u2028", "", "sep\\u2028"),
        ("می\u200cخواهم", "", "می\u200cخواهم"),
    ],
)
def test_printable(text, keep, expected):
    assert printable(text, keep) == expected
