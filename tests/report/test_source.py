"""Excerpts of source, highlighted and told."""

import pytest
from markupsafe import Markup

from torchport.report.source import MOST_CHARACTERS, Note, Sources, highlight

LINES = "\n".join(f"line_{number} = {number}" for number in range(1, 41)) + "\n"


def notes(*lines, path="a.py"):
    return tuple(Note(path, line, "", f"note {line}", main=not index) for index, line in enumerate(lines))


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ((20,), [(17, 23)]),
        ((1,), [(1, 4)]),
        ((40,), [(37, 40)]),
        ((20, 22), [(17, 25)]),
        ((20, 14), [(11, 23)]),
        ((20, 26, 32), [(17, 35)]),
        ((20, 30), [(17, 23), (27, 33)]),
        ((20, 20), [(17, 23)]),
        ((41,), []),
        ((0,), []),
    ],
)
def test_which_lines_are_shown(at, expected):
    found = Sources(lambda path: LINES).excerpts(notes(*at))
    assert [(excerpt.lines[0].number, excerpt.lines[-1].number) for excerpt in found] == expected
    if expected:
        told = [(line.number, note.text) for excerpt in found for line in excerpt.lines for note in line.notes]
        assert sorted(told) == sorted((line, f"note {line}") for line in at)


def test_empty_lines_at_the_ends_are_left_out():
    (found,) = Sources(lambda path: "\n\n\nx = 1\n\n  \n\ny = 2\n").excerpts(notes(4))
    assert [line.number for line in found.lines] == [4]


def test_files_apart_and_missing():
    files = {"a.py": LINES, "b.py": LINES}
    mixed = (*notes(3), *notes(5, path="b.py"), *notes(7, path="gone.py"))
    assert [excerpt.path for excerpt in Sources(files.get).excerpts(mixed)] == ["a.py", "b.py"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", []),
        ("x = 1", ['x = <span class="m">1</span>']),
        (
            's = """a\nb"""\n',
            ['s = <span class="s">&#34;&#34;&#34;a</span>', '<span class="s">b&#34;&#34;&#34;</span>'],
        ),
        (
            "def f(): # <b>",
            ['<span class="k">def</span> <span class="f">f</span>(): <span class="c"># &lt;b&gt;</span>'],
        ),
        ("a\r\nb\r\n", ["a", "b"]),
        ("\n\na\n", ["", "", "a"]),
        ("x = '\x1b[2J\u202e'", ['x = <span class="s">&#39;\\x1b[2J\\u202e&#39;</span>']),
        ("# 每步", ['<span class="c"># 每步</span>']),
        ("def (:\n  ?!", None),
    ],
)
def test_highlighting(source, expected):
    found = highlight(source)
    if expected is not None:
        assert found == expected
    assert all(isinstance(line, Markup) for line in found)


def test_long_lines_are_cut():
    (line,) = highlight("x" * 10_000)
    assert line == "x" * MOST_CHARACTERS + "…"
    first, second = highlight("a = [" + "1, " * 5000 + "]\nb")
    assert len(first.striptags()) == MOST_CHARACTERS + 1
    assert second == "b"
