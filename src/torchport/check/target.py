"""The torch for which a project is checked: as configured, else the one that its requirements name."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Version = tuple[int, int]

_LAST_MINOR = 99  # of a major version whose last one nobody knows yet

# Name, perhaps extras, then what is asked of the version.
_ASKED = re.compile(r"(?:torch|pytorch)(?:\[[^\]]*\])?\s*(?P<version>[=<>~!^].*)?", re.IGNORECASE)
_BOUND = re.compile(
    r"(?P<how>===|==|<=|<|~=|(?<![<>=!~])=)\s*v?(?P<major>\d+)(?:\.(?P<minor>\d+|\*))?(?P<patch>\.\d+)?"
)
_PLAIN = re.compile(r"\s*(?:===?|>=|~=|\^|>)?\s*v?(\d+)(?:\.(\d+))?(?:[.+*]\S*)?\s*")
_QUOTED = re.compile(r"""["']((?:torch|pytorch)[^"'\w-][^"']*|torch)["']""", re.IGNORECASE)
_TABLES = ("dependencies", "dev-dependencies")
_FILES = ("requirements*.txt", "requirements/*.txt", "environment*.y*ml", "setup.cfg", "setup.py")
_MOST_BYTES = 200_000


def parse(text: str) -> Version | None:
    """The version that a text such as "2.6", "2.6.0" or ">=2.4" names, None where it names none."""
    match = _PLAIN.fullmatch(text)
    return (int(match[1]), int(match[2] or 0)) if match else None


def of_project(root: Path) -> Version | None:
    """The newest version that the project lets in; the oldest such, where files differ; None where nothing ends it.

    A lower bound pins nothing: with ``torch>=0.4`` the newest is what gets installed.
    """
    found = [version for asked in _requirements(root) if (version := _pin(asked))]
    return min(found, default=None)


def _pin(asked: str) -> Version | None:
    """The newest version that a requirement lets in, None where it sets no end."""
    match = _ASKED.match(asked.split("#")[0].split(";")[0].strip())
    found = [_newest(bound) for bound in _BOUND.finditer(match["version"])] if match and match["version"] else []
    return min((each for each in found if each), default=None)


def _newest(bound: re.Match[str]) -> Version | None:
    major, minor = int(bound["major"]), bound["minor"]
    if bound["how"] == "<" and not bound["patch"]:
        before = int(minor or 0)
        return (major, before - 1) if before else (major - 1, _LAST_MINOR)
    if minor in (None, "*") or (bound["how"] == "~=" and not bound["patch"]):  # any of that major version
        return (major, _LAST_MINOR) if bound["how"] != "<=" else (major, 0)
    return major, int(minor)


def _requirements(root: Path) -> Iterator[str]:
    """What the files of a project ask of torch: one line each."""
    yield from _pyproject(root / "pyproject.toml")
    for pattern in _FILES:
        for path in sorted(root.glob(pattern)):
            text = _read(path)
            if path.name == "setup.py":
                yield from _QUOTED.findall(text)
            else:
                lines = (line.strip().removeprefix("- ").strip("\"'") for line in text.splitlines())
                yield from (line for line in lines if _ASKED.fullmatch(line.split("#")[0].strip()))


def _pyproject(path: Path) -> Iterator[str]:
    try:
        document = _table(tomllib.loads(_read(path)))
    except tomllib.TOMLDecodeError:
        return
    project, poetry = _table(document.get("project")), _table(_table(document.get("tool")).get("poetry"))
    groups = [project.get("dependencies"), *_table(project.get("optional-dependencies")).values()]
    groups += _table(document.get("dependency-groups")).values()
    for group in groups:
        for line in group if isinstance(group, list) else ():
            if isinstance(line, str) and _ASKED.fullmatch(line.strip()):
                yield line
    tables = [poetry.get(name) for name in _TABLES]
    tables += [_table(group).get("dependencies") for group in _table(poetry.get("group")).values()]
    for table in tables:
        asked = _table(table).get("torch")
        asked = asked.get("version") if isinstance(asked, dict) else asked
        if isinstance(asked, str):
            yield "torch" + (asked if asked[:1] in "^~=<>!" else f"=={asked}")


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return ""
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""
