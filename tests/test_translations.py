"""Everything that users read is translated, and the compiled catalogue is the written one."""

import gettext
import importlib.util
from pathlib import Path

import click
import pytest

from torchport.cli import torchport

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("translations", ROOT / "tools" / "translations.py")
translations = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(translations)


def texts(catalogue):
    return {message.id: message.string for message in catalogue if message.id}


def test_every_message_of_the_source_is_in_the_catalogue():
    assert set(texts(translations.extracted())) == set(texts(translations.translated())), "run make fix"


def test_every_message_is_translated():
    assert translations.untranslated(translations.translated()) == []


def test_translations_keep_what_is_filled_in():
    import string

    def names(text):
        return {field for _, field, _, _ in string.Formatter().parse(text) if field}

    wrong = []
    for message in translations.translated():
        if (
            message.id
            and isinstance(message.id, str)
            and names(message.id) - {"name!r"} != names(message.string) - {"name!r"}
        ):
            wrong.append(message.id)
        elif message.id and not isinstance(message.id, str):
            wrong += [message.id for form in message.string if not names(form) <= names(message.id[1])]
    assert wrong == []


def test_the_compiled_catalogue_is_fresh():
    with (translations.FOLDER / "torchport.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    for message in translations.translated():
        if message.id and isinstance(message.id, str):
            assert compiled.gettext(message.id) == message.string, "run make fix"
        elif message.id:
            assert compiled.ngettext(*message.id, 1) == message.string[0], "run make fix"


def helps():
    for name, command in torchport.commands.items():
        yield name, command.help
        yield name, command.short_help
        yield from ((name, option.help) for option in command.params if isinstance(option, click.Option))
    yield from (("torchport", option.help) for option in torchport.params if isinstance(option, click.Option))


@pytest.mark.parametrize(("command", "text"), [row for row in helps() if row[1]])
def test_every_help_text_is_a_message(command, text):
    assert text in texts(translations.extracted())
