"""The table of what a rehearsal can find."""

import re
import string

import pytest

from torchport.explain.rehearsal_ids import _ROWS, REHEARSAL_IDS

ROWS = list(REHEARSAL_IDS.values())


def test_ids_and_slugs_are_unique_and_in_order():
    assert list(REHEARSAL_IDS) == sorted(REHEARSAL_IDS)
    assert len({row.slug for row in ROWS}) == len(ROWS) == len(_ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_rows_are_whole(row):
    assert re.fullmatch(r"R[1-5]\d\d", row.id)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", row.slug)
    for text in (row.title, row.why, row.cuda, row.fix):
        assert text
        assert text[0].isupper() or text[0] in "`_" or text.startswith(("torch", "non_")), text
    assert not row.title.endswith(".")
    assert all(text.endswith(".") for text in (row.why, row.cuda, row.fix))
    assert not row.statement.endswith(".")
    assert row.statement.count("`") % 2 == 0


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_statements_name_only_what_findings_know(row):
    known = {
        *("offender", "other", "call", "device", "dtype", "what", "rank", "ranks"),
        *("gpus", "op", "count", "steps", "amount", "first", "last"),
    }
    named = {name for _text, name, _format, _conversion in string.Formatter().parse(row.statement) if name}
    assert named <= known
