"""Each rule on its own examples: what its docstring calls bad is found, what it calls good is not."""

import pkgutil
import re
import textwrap

import pytest

import torchport.check.rules as folder
from torchport.check.engine import check_source
from torchport.check.repair import repair
from torchport.check.rules import GROUPS, rules
from torchport.check.source import Source

NEWEST = (2, 13)


def examples(text, kind):
    """The indented blocks that follow ``Bad::`` or ``Good::``."""
    found = re.findall(rf"^{kind}::\n\n((?:    .*\n|\n)+)", text, re.MULTILINE)
    return [textwrap.dedent(block).strip("\n") + "\n" for block in found]


def by_name():
    return {loaded.rule.name: loaded for loaded in rules()}


def torch_for(loaded):
    """A torch for which the rule has a meaning, the development one where possible."""
    rule = loaded.rule
    return NEWEST if loaded.holds_for(NEWEST) else rule.since


def check(loaded):
    return lambda source: check_source(source, torch_for(loaded), [loaded])


PYTHON = [loaded.rule.name for loaded in rules() if "python" in loaded.files]


@pytest.mark.parametrize("name", PYTHON)
def test_bad_is_found(name):
    loaded = by_name()[name]
    bad = examples(loaded.text, "Bad")
    assert bad, "a docstring without Bad::"
    for text in bad:
        assert [each.id for each in check(loaded)(Source("train.py", text))], text


@pytest.mark.parametrize("name", PYTHON)
def test_good_is_not(name):
    loaded = by_name()[name]
    good = examples(loaded.text, "Good")
    assert good, "a docstring without Good::"
    for text in good:
        assert check(loaded)(Source("train.py", text)) == [], text


@pytest.mark.parametrize("name", PYTHON)
def test_bad_repaired_is_good(name):
    """Where a rule repairs its first bad example, the first good one is what comes out, letter by letter."""
    loaded = by_name()[name]
    text = examples(loaded.text, "Bad")[0]
    findings = check(loaded)(Source("train.py", text))
    if not any(finding.fix for finding in findings):
        pytest.skip("no repair")
    done = repair(Source("train.py", text), check(loaded), unsafe=True)
    assert done.failed == ()
    assert done.text == examples(loaded.text, "Good")[0]


@pytest.mark.parametrize("name", PYTHON)
def test_other_line_ends_and_letters(name):
    """The same example with CRLF, and behind text whose letters take several bytes."""
    loaded = by_name()[name]
    text = examples(loaded.text, "Bad")[0]
    done = repair(Source("train.py", text), check(loaded), unsafe=True)
    odd = "# 训练 é\n" + text
    if not text.lstrip().startswith(('"""', "from __future__")):
        other = repair(Source("train.py", odd), check(loaded), unsafe=True)
        assert other.text == "# 训练 é\n" + done.text
    other = repair(Source("train.py", text.replace("\n", "\r\n")), check(loaded), unsafe=True)
    assert other.text == done.text.replace("\n", "\r\n")


def test_every_module_is_listed():
    listed = {f"{group}.{name}" for group, names in GROUPS.items() for name in names}
    found = set()
    for group in pkgutil.iter_modules(folder.__path__):
        if group.ispkg:
            package = f"{folder.__path__[0]}/{group.name}"
            found |= {f"{group.name}.{module.name}" for module in pkgutil.iter_modules([package])}
    assert found == listed


def test_ids_and_names():
    loaded = rules()
    assert len({each.rule.id for each in loaded}) == len({each.rule.name for each in loaded}) == len(loaded)
    for each in loaded:
        assert re.fullmatch(r"C[1-9]\d\d", each.rule.id)
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", each.rule.name)


@pytest.mark.parametrize("loaded", rules(), ids=lambda loaded: loaded.rule.name)
def test_the_docstring_says_what_it_finds(loaded):
    assert loaded.text.startswith("Finds ")
