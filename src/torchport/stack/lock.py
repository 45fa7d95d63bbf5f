"""The closure of a stack, with the hash of every file: uv resolves it for that Python, platform and backend."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from torchport.mirrors import Mirrors
from torchport.plan import Package, Stack
from torchport.resolved import Asked
from torchport.stack.releases import Table, numbers
from torchport.stack.solve import companion_index
from torchport.stack.uv import LockFailed, ask
from torchport.stack.versions import admits, normal, requirement
from torchport.text import _

# Wheels for older systems are let in by it, too.
_PLATFORM = "{processor}-manylinux_2_28"
_GLIBC = re.compile(r"manylinux_(\d+)_(\d+)_")
_OLD_NAMES = {"manylinux1_": (2, 5), "manylinux2010_": (2, 12), "manylinux2014_": (2, 17)}


def lock(
    stack: Stack,
    asked: Sequence[Asked],
    table: Table,
    *,
    uv: Sequence[str],
    mirrors: Mirrors,
    offline: Path | None = None,
) -> Stack:
    """The stack with all its packages. ``asked`` is what the project wants; torch's family is the stack's own.

    With ``offline`` everything comes out of that folder of wheels. Raises UvMissing, NoSolution and LockFailed.
    """
    document = _project(stack, asked, table, mirrors, offline)
    words = ["--python-version", stack.python, "--no-python-downloads", "--quiet"]
    words += ["--python-platform", _PLATFORM.format(processor=stack.platform.rpartition("-")[2])]
    words += ["--format", "pylock.toml", "-o", "pylock.toml"]
    if offline is not None:
        words += ["--offline", "--no-index", "--find-links", str(offline)]
    with tempfile.TemporaryDirectory(prefix="torchport-") as place:
        Path(place, "pyproject.toml").write_text(document, encoding="utf-8")
        ask(uv, ["pip", "compile", "pyproject.toml", *words], place)
        rows = tomllib.loads(Path(place, "pylock.toml").read_text(encoding="utf-8"))["packages"]
    packages = tuple(_package(row) for row in rows)
    versions = {package.name: package.version for package in packages}
    return replace(
        stack,
        packages=packages,
        toolkit=_found(versions, r"cuda-toolkit") or stack.toolkit,
        cudnn=_found(versions, r"nvidia-cudnn-cu\d+") or stack.cudnn,
        nccl=_found(versions, r"nvidia-nccl-cu\d+") or stack.nccl,
        glibc=_glibc(rows, stack),
    )


def disagreements(chosen: Stack, locked: Stack) -> tuple[tuple[str, str, str], ...]:
    """(what, in the table, in the wheels) where the closure has other versions than the table says."""
    pairs = ((name, getattr(chosen, name), getattr(locked, name)) for name in ("toolkit", "cudnn", "nccl"))
    return tuple(
        (name, said, seen)
        for name, said, seen in pairs
        if said and seen and numbers(said) != numbers(seen)[: len(numbers(said))]
    )


def download_bytes(stack: Stack) -> int | None:
    """What installing it fetches; None where a size is not known."""
    sizes = [package.size_bytes for package in stack.packages]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _project(stack: Stack, asked: Sequence[Asked], table: Table, mirrors: Mirrors, offline: Path | None) -> str:
    """A pyproject.toml that asks for the stack, each of torch's family from the index that has it."""
    family = {package.name: package for package in stack.packages}
    extras = {name: _extras(asked, name) for name in family}
    lines = [f"{package.name}{extras[package.name]}=={package.version}" for package in stack.packages]
    lines += [each.text for each in asked if each.name not in family]
    held = [text for torch, text in table.constraints if admits(torch, stack.torch)]
    parts = [
        "[project]",
        'name = "to-be-locked"',
        'version = "0"',
        f"requires-python = {_text(f'>={stack.python}')}",
        f"dependencies = [{', '.join(map(_text, lines))}]",
        "[tool.uv]",
        f"constraint-dependencies = [{', '.join(map(_text, held))}]",
    ]
    if offline is None:
        own = [
            name
            for name, package in family.items()
            if (stack.index if name == "torch" else companion_index(stack, name, package.version, table))
        ]
        parts += _indexes(stack, own, mirrors)
    return "\n".join(parts) + "\n"


def _indexes(stack: Stack, own: Sequence[str], mirrors: Mirrors) -> list[str]:
    parts = []
    if own and stack.index is not None:
        address = stack.index
        if mirrors.torch is not None:
            folder = "://" not in mirrors.torch
            address = mirrors.torch if folder else f"{mirrors.torch}/{stack.backend}"
        parts += ["[tool.uv.sources]", *(f'{name} = {{ index = "torch" }}' for name in own)]
        parts += ["[[tool.uv.index]]", 'name = "torch"', f"url = {_text(address)}", "explicit = true"]
        parts += ['format = "flat"'] if mirrors.torch_flat else []
    if mirrors.pypi is not None:
        parts += ["[[tool.uv.index]]", 'name = "python"', f"url = {_text(mirrors.pypi)}", "default = true"]
    return parts


def _extras(asked: Sequence[Asked], name: str) -> str:
    extras = sorted({extra for each in asked if each.name == name for extra in requirement(each.text).extras})
    return f"[{','.join(extras)}]" if extras else ""


def _text(value: str) -> str:
    return json.dumps(value)


def _package(row: Mapping[str, Any]) -> Package:
    """One package of a pylock: its wheels, else its source, else the repository that it comes from."""
    name = normal(row["name"])
    if "vcs" in row:
        where = row["vcs"]
        return Package(name, where["commit-id"], url=f"{where['type']}+{where['url']}@{where['commit-id']}")
    files = row.get("wheels") or [row[key] for key in ("sdist", "archive") if key in row]
    if not files:
        raise LockFailed(_("{name}: it is found in a folder, which cannot be locked").format(name=name))
    hashes = tuple(f"{kind}:{value}" for each in files for kind, value in each.get("hashes", {}).items())
    if not hashes:
        raise LockFailed(_("{name}: the index gives no hash of its files").format(name=name))
    first = files[0]
    url = first.get("url") or first.get("path")
    local = url is None or url.startswith("file:") or "://" not in url
    return Package(
        name,
        row.get("version", "0"),
        hashes,
        None if local else url,
        _size(first, url),
        "wheels" not in row or not row["wheels"],
    )


def _size(file: Mapping[str, Any], url: str | None) -> int | None:
    if "size" in file or url is None:
        return file.get("size")
    path = Path(unquote(url.removeprefix("file://")))
    return path.stat().st_size if path.is_absolute() and path.is_file() else None


def _found(versions: Mapping[str, str], pattern: str) -> str | None:
    return next((version for name, version in versions.items() if re.fullmatch(pattern, name)), None)


def _glibc(rows: Sequence[Mapping[str, Any]], stack: Stack) -> str | None:
    """The oldest C library with which all wheels run: of each package the wheel that wants least."""
    needed = [numbers(stack.glibc)] if stack.glibc else []
    for row in rows:
        wheels = [str(each.get("name") or each.get("url") or each.get("path")) for each in row.get("wheels", ())]
        wanted = [least for name in wheels if (least := _least(name)) is not None]
        if wanted:
            needed.append(min(wanted))
    return ".".join(map(str, max(needed))) if needed else None


def _least(wheel: str) -> tuple[int, ...] | None:
    tags = [(int(major), int(minor)) for major, minor in _GLIBC.findall(wheel)]
    tags += [glibc for name, glibc in _OLD_NAMES.items() if name in wheel]
    return min(tags, default=None)
