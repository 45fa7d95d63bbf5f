"""Which operators the CUDA library guards with its generated "all tensors on one device" check.

Every torch wheel ships the file from which its CUDA wrappers are generated. An operator with a CUDA kernel whose
entry lacks ``device_check: NoCheck`` gets the check; it walks the out arguments first, then the positional
arguments in schema order (torchgen/dest/register_dispatch_key.py). Reading the file takes some 40 ms, so a new torch
needs no new table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_ARGUMENT = re.compile(r"^(Tensor(?:\([^)]*\))?\??(?:\[\d*\])?\??)\s+(\w+)")


@dataclass(frozen=True, slots=True)
class Check:
    """How one operator is guarded: wrapper name, checked arguments in order, and whether there is a check at all."""

    wrapper: str
    args: tuple[str, ...]
    exact_same: bool


@cache
def table(path: Path | None = None) -> dict[str, Check]:
    """Operators with a CUDA kernel, by name with overload (``aten::add.out``). Empty if the wheel has no file."""
    path = path or _yaml()
    if path is None:
        return {}
    entries = _entries(path.read_text(encoding="utf-8"))
    result: dict[str, Check] = {}
    for entry in entries.values():
        structured = entry.structured or bool(entry.delegate)
        if not (entry.cuda or (entry.delegate and entries[entry.delegate].cuda)):
            continue
        name, _, overload = entry.name.partition(".")
        positional, out = _arguments(entry.arguments)
        cpp = name + "_out" if out else name
        if structured:
            wrapper = f"wrapper_CUDA_{cpp}" + (f"_{overload}" if overload else "")
        else:
            wrapper = f"wrapper_CUDA_{overload}_{cpp}"
        exact = not entry.no_check and bool(positional or out)
        result["aten::" + entry.name] = Check(wrapper, (*out, *positional) if exact else (), exact)
    return result


@dataclass(slots=True)
class _Entry:
    name: str
    arguments: str
    no_check: bool = False
    structured: bool = False
    delegate: str = ""
    cuda: bool = False


def _yaml() -> Path | None:
    try:
        import torchgen
    except ImportError:
        return None
    path = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native" / "native_functions.yaml"
    return path if path.exists() else None


def _entries(text: str) -> dict[str, _Entry]:
    """A scan by line: the file is regular, and the user's interpreter may have no YAML parser."""
    entries: dict[str, _Entry] = {}
    entry = _Entry("", "")
    in_dispatch = False
    for line in text.splitlines():
        if line.startswith("- func: "):
            name, _, rest = line[8:].partition("(")
            entry = _Entry(name, rest[: rest.rindex(") ->")])
            entries[name] = entry
            in_dispatch = False
        elif line.startswith("    ") and in_dispatch:
            keys = line.split("#")[0].partition(":")[0]
            if any(key.strip() == "CUDA" for key in keys.split(",")):
                entry.cuda = True
        elif line.startswith("  "):
            key, _, value = line.split("#")[0].strip().partition(":")
            value = value.strip()
            in_dispatch = key == "dispatch"
            if key == "device_check" and value == "NoCheck":
                entry.no_check = True
            elif key == "structured" and value == "True":
                entry.structured = True
            elif key == "structured_delegate":
                entry.delegate = value
            elif key == "ufunc_inner_loop":
                entry.cuda = True  # generated kernels for CPU and CUDA
    return entries


def _arguments(text: str) -> tuple[list[str], list[str]]:
    """Names of the tensor arguments that are checked: positional ones, and out (keyword-only and written to)."""
    positional: list[str] = []
    out: list[str] = []
    keyword_only = False
    for part in re.split(r",\s*(?![^\[(]*[\])])", text):
        if part.strip() == "*":
            keyword_only = True
            continue
        match = _ARGUMENT.match(part.strip())
        if not match:
            continue
        kind, name = match.groups()
        if not keyword_only:
            positional.append(name)
        elif "!" in kind:
            out.append(name)
    return positional, out
