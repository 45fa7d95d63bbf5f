"""Fixes that hold and fixes that do not."""

import re

import pytest

from torchport.check.engine import check_source
from torchport.check.mend import mend
from torchport.check.repair import repair
from torchport.check.rule import ERROR, Hit, LoadedRule, Rule
from torchport.check.source import Source


def rule(pattern, text, safe=True, needs=(), id="C199"):
    """A rule that wants other text wherever a pattern stands."""

    def look(source):
        for match in re.finditer(pattern, source.text):
            yield Hit(match.span(), changes=((*match.span(), text),), safe=safe, needs=needs)

    return LoadedRule(Rule(id, id.lower(), ERROR, "m", "r"), look, "Finds", frozenset({"python"}))


def repaired(text, *chosen, unsafe=False):
    return repair(Source("a.py", text), lambda source: check_source(source, None, chosen), unsafe)


GOOD = rule(r"\bold\b", "new")


def test_all_that_hold_are_applied():
    done = repaired("new = 1\nold = 2\nf(old, old)\n", GOOD)
    assert done.text == "new = 1\nnew = 2\nf(new, new)\n"
    assert (len(done.applied), done.failed) == (3, ())


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (rule(r"bad(?=\))", "(", id="C198"), "does not parse"),
        (rule(r"bad(?=\))", "nobody", id="C198"), "a name that nothing binds"),
        (rule(r"bad(?=\))", "bad", id="C198"), "changes nothing"),
        (rule(r"bad(?=\))", "max(bad), (bad)", id="C198"), "the rule finds more than before"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_hold_is_taken_back_and_the_rest_applied(broken, why):
    text = "new = bad = 1\nprint(bad)\n" + "old = 2\n" * 30
    done = repaired(text, GOOD, broken)
    assert done.text == text.replace("old", "new")
    assert len(done.applied) == 30
    assert [finding.id for finding in done.failed] == ["C198"]


def test_unsafe_ones_are_asked_for():
    unsafe = rule(r"\bold\b", "new", safe=False)
    assert repaired("new = old = 1\n", unsafe).text == "new = old = 1\n"
    assert repaired("new = old = 1\n", unsafe, unsafe=True).text == "new = new = 1\n"


def test_edits_that_touch_wait_for_each_other():
    wide = rule(r"old, old", "new, old", id="C198")
    done = repaired("new = 1\nf(old, old)\n", wide, GOOD)
    assert done.text == "new = 1\nf(new, new)\n"
    assert done.failed == ()


def test_an_import_is_made_once():
    needs = rule(r"\bold\b", "os.sep", needs=("os",))
    assert repaired("import re\nold = re\nold\n", needs).text == "import os\nimport re\nos.sep = re\nos.sep\n"


def test_letters_that_the_encoding_does_not_have():
    data = "# coding: latin-1\nimport torch  # é\nold = 1\n".encode("latin-1")
    chosen = [rule(r"\bold = ", "new = '训' or ")]
    done = mend("a.py", data, lambda source: check_source(source, None, chosen))
    assert done.data == data
    assert (len(done.fixed), len(done.taken_back)) == (0, 1)
