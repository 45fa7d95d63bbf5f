"""The language of messages: chosen by the user, by the locale, else English."""

import subprocess
import sys

import pytest

from torchport import text


@pytest.fixture(autouse=True)
def english_again():
    yield
    text.set_language("en")


@pytest.mark.parametrize(
    ("asked", "environ", "expected"),
    [
        ("zh", {}, "zh"),
        ("en", {"LANG": "zh_CN.UTF-8"}, "en"),
        (None, {"LANG": "zh_CN.UTF-8"}, "zh"),
        (None, {"LANG": "zh_TW.UTF-8"}, "zh"),
        (None, {"LC_ALL": "C.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        (None, {"LANGUAGE": "zh:en", "LANG": "en_GB.UTF-8"}, "zh"),
        (None, {"LC_ALL": "", "LANG": "de_DE.UTF-8"}, "en"),
        (None, {}, "en"),
        ("fr", {}, "en"),
    ],
)
def test_language(asked, environ, expected):
    assert text.set_language(asked, environ) == expected == text.language()


def test_messages_follow_the_language():
    english = "Stop the program after that time."
    text.set_language("zh")
    chinese = text._(english)
    assert chinese != english
    text.set_language("en")
    assert text._(english) == english


def test_a_message_without_translation_stays_english():
    text.set_language("zh")
    assert text._("no such message") == "no such message"
    assert text.ngettext("one", "many", 2) == "many"


def test_importing_the_package_loads_no_submodule():
    code = "import sys, torchport; print([m for m in sys.modules if m.startswith('torchport.')])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
