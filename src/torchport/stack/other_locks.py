"""Lock files of other tools: which torch a project had when it last worked."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from torchport.stack.releases import COMPANIONS

_FAMILY = ("torch", *COMPANIONS)
_TOML = {"uv.lock": "package", "poetry.lock": "package", "pdm.lock": "package", "pylock.toml": "packages"}
_MOST_BYTES = 20_000_000


def locked(root: Path) -> Iterator[tuple[str, str, str]]:
    """(name, version, file) of torch and its companions, from the first lock that names torch."""
    for name in (*_TOML, "Pipfile.lock", "conda-lock.yml"):
        path = root / name
        try:
            if not path.is_file() or path.stat().st_size > _MOST_BYTES:
                continue
            found = sorted(set(_versions(name, path.read_text(encoding="utf-8", errors="replace"))))
        except (OSError, ValueError, TypeError, AttributeError, KeyError):
            continue  # somebody else's file, and no lock as we know it
        if any(each == "torch" for each, _ in found):
            yield from ((each, version, name) for each, version in found)
            return


def _versions(name: str, text: str) -> Iterator[tuple[str, str]]:
    if name in _TOML:
        for row in tomllib.loads(text).get(_TOML[name], ()):
            if row.get("name") in _FAMILY and "version" in row:
                yield row["name"], row["version"]
    elif name == "Pipfile.lock":
        for each, row in json.loads(text).get("default", {}).items():
            if each in _FAMILY and "version" in row:
                yield each, row["version"].removeprefix("==")
    else:
        for match in re.finditer(r"^- name: (pytorch|torchvision|torchaudio)\n  version: (\S+)", text, re.MULTILINE):
            yield match[1].replace("pytorch", "torch"), match[2].strip("\"'")
