"""Brings the Chinese catalogue up to date with the code, and compiles it.

``python tools/translations.py`` extracts every message, keeps the translations there are, adds what is new
with an empty translation, drops what is gone, and writes ``torchport.po`` and ``torchport.mo``.
"""

import io
import sys
from datetime import datetime, timezone
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "torchport"
FOLDER = SOURCE / "locale" / "zh_CN" / "LC_MESSAGES"
# A message is the first argument of these; ``mark`` stands in tables of messages that are looked up later.
KEYWORDS = {"_": None, "mark": None, "ngettext": (1, 2)}
# A catalogue that says when it was made would change without a change.
BLANK = {
    "locale": "zh_CN",
    "project": "torchport",
    "version": "0",
    "fuzzy": False,
    "header_comment": "# Chinese for torchport: python tools/translations.py, then fill in what is empty.",
    "creation_date": datetime(2026, 1, 1, tzinfo=timezone.utc),
    "revision_date": datetime(2026, 1, 1, tzinfo=timezone.utc),
    "last_translator": "torchport",
    "language_team": "zh_CN",
    "msgid_bugs_address": "torchport",
}
METHODS = [("inside/**", "ignore"), ("**.py", "python"), ("**.html", "jinja2.ext:babel_extract")]


def extracted() -> Catalog:
    """All messages of the source, without places: these would change the file with every edit."""
    catalogue = Catalog(**BLANK)
    rows = extract_from_dir(SOURCE, METHODS, {"**.html": {"silent": "false"}}, KEYWORDS, comment_tags=())
    for name, _line, message, _comments, context in sorted(rows, key=lambda row: row[:2]):
        catalogue.add(message, locations=[(name, 1)], context=context)
    return catalogue


def translated() -> Catalog:
    """The catalogue as translators left it."""
    path = FOLDER / "torchport.po"
    if not path.exists():
        return Catalog(**BLANK)
    with path.open("rb") as file:
        return read_po(file, locale="zh_CN")


def compiled(catalogue: Catalog) -> bytes:
    """The catalogue as gettext reads it."""
    data = io.BytesIO()
    write_mo(data, catalogue)
    return data.getvalue()


def untranslated(catalogue: Catalog) -> list[str]:
    """The messages without a translation, or with one that is only a guess."""
    return [
        message.id if isinstance(message.id, str) else message.id[0]
        for message in catalogue
        if message.id
        and (message.fuzzy or not all([message.string] if isinstance(message.id, str) else message.string))
    ]


def main() -> None:
    """Writes both files and says what is left to translate."""
    fresh = extracted()
    known = translated()
    for message in fresh:
        before = known.get(message.id, message.context) if message.id else None
        if before is not None and not before.fuzzy:
            message.string = before.string
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "torchport.po").open("wb") as file:
        write_po(file, fresh, width=110, include_lineno=False, sort_output=False)
    (FOLDER / "torchport.mo").write_bytes(compiled(fresh))
    missing = untranslated(fresh)
    for text in missing:
        print("untranslated:", text, file=sys.stderr)
    print(f"{len(fresh)} messages, {len(missing)} to translate")


if __name__ == "__main__":
    main()
