"""The words that users read: English stands in the code, translations in ``locale/``."""

from __future__ import annotations

import gettext
import locale
import os
from collections.abc import Mapping
from pathlib import Path

LANGUAGES = {"en": "en", "zh": "zh_CN"}

_catalogue: gettext.NullTranslations = gettext.NullTranslations()
_language = "en"


def set_language(language: str | None = None, environ: Mapping[str, str] = os.environ) -> str:
    """Chooses the language of all later messages and returns its short name, "en" or "zh".

    None takes the language of the locale; one that has no translation is English.
    """
    global _catalogue, _language
    chosen = language or locale_language(environ)
    if chosen not in LANGUAGES:
        chosen = "en"
    if chosen == "en":
        _catalogue = gettext.NullTranslations()
    else:
        folder = Path(__file__).with_name("locale")
        _catalogue = gettext.translation("torchport", str(folder), [LANGUAGES[chosen]], fallback=True)
    _language = chosen
    return chosen


def language() -> str:
    """The short name of the chosen language."""
    return _language


def locale_language(environ: Mapping[str, str]) -> str:
    """The language that the environment asks for, in the order in which gettext looks."""
    for name in ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = environ.get(name, "")
        if value:
            return (locale.normalize(value.split(":")[0]).split("_")[0]).lower()
    return "en"


def _(message: str) -> str:
    """The message in the chosen language."""
    # Under "" gettext keeps the description of the catalogue.
    return message and _catalogue.gettext(message)


def ngettext(one: str, many: str, count: int) -> str:
    """The form of the message that goes with ``count``, in the chosen language."""
    return _catalogue.ngettext(one, many, count)


def mark(message: str) -> str:
    """Marks a message that stands in a table: it is translated later, by ``_(message)`` where it is shown."""
    return message


def binary_size(size_bytes: float) -> str:
    """A number of bytes to three figures: "512 B", "1.50 MiB", "80.0 GiB"."""
    size, units = float(size_bytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while abs(size) >= 999.5 and len(units) > 1:
        size /= 1024
        units.pop(0)
    figures = f"{size:.0f}" if units[0] == "B" or abs(size) >= 99.95 else f"{size:#.3g}"
    return f"{figures} {units[0]}"
