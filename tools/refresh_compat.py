"""Refreshes src/torchport/stack/data/releases.json from package metadata and opened wheels, and shows what changed.

``python tools/refresh_compat.py`` looks at releases of torch that the table does not have yet; name versions to look
at these again. ``--open`` fetches the wheel too (half a gigabyte and more), reads which machine code is in it, and
deletes it. Nothing is written without ``--write``.

pip and uv are asked as everybody asks them. What cannot be seen from here, builds on other indexes, is copied from
nowhere: a new release gets the one build that was seen, and the others are for a person to add, with their source.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

import tomllib

TABLE = Path(__file__).resolve().parents[1] / "src/torchport/stack/data/releases.json"
PYTHONS = tuple(f"3.{minor}" for minor in range(9, 17))
PROCESSORS = ("x86_64", "aarch64")
# Tables of the file that have one row a line.
_TABLES = ("sources", "releases", "torchvision", "torchaudio", "torchtext", "drivers", "cards")
# The library that says in a text which architectures torch was built for; the same as _cuda_getArchFlags().
_LIBRARY = "torch/lib/libtorch_python.so"
_CODES = re.compile(rb"(?:(?:sm|compute)_\d+[af]? ?){2,}")


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", metavar="VERSION")
    parser.add_argument("--open", action="store_true", help="fetch each wheel and read what it has code for")
    parser.add_argument("--write", action="store_true", help="write the table")
    asked = parser.parse_args(words)
    document = json.loads(TABLE.read_text(encoding="utf-8"))
    have = {processor: available("torch", processor) for processor in PROCESSORS}
    versions = asked.versions or newer(have["x86_64"], document["releases"])
    if not versions:
        print("no release that the table does not have")
    changed = False
    for version in versions:
        before = json.dumps([document["releases"].get(version), builds_of(document, version)])
        release, build = look(version, have, asked.open)
        for line in merge(document, version, release, build):
            print(line)
        changed = changed or before != json.dumps([document["releases"].get(version), builds_of(document, version)])
    if changed and asked.write:
        document["read"] = datetime.date.today().isoformat()
        TABLE.write_text(written(document), encoding="utf-8")
        print(f"written: {TABLE}")
    return int(changed and not asked.write)


def pip(*words: str, may_fail: bool = False) -> str:
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=False)
    if done.returncode and not may_fail:
        raise SystemExit(f"pip {words[0]} {words[-1]}: {done.stderr.strip()}")
    return done.stdout


def platform_words(processor: str) -> list[str]:
    tags = [f"manylinux_2_28_{processor}", f"manylinux2014_{processor}", f"manylinux1_{processor}"]
    return [word for tag in tags for word in ("--platform", tag)] + ["--only-binary", ":all:"]


def available(name: str, processor: str) -> dict[str, list[str]]:
    """The Pythons for which each version has a wheel: by the files, not by what the metadata claims."""
    found: dict[str, list[str]] = {}
    for python in PYTHONS:
        said = pip("index", "versions", name, "--python-version", python, *platform_words(processor), may_fail=True)
        match = re.search(r"Available versions: (.*)", said)
        for version in match[1].split(", ") if match else ():
            found.setdefault(version.strip(), []).append(python)
    return found


def newer(have: Iterable[str], known: Iterable[str]) -> list[str]:
    """Versions after the last one that is known, oldest first."""
    last = max(map(numbers, known))
    return sorted((version for version in have if numbers(version) > last), key=numbers)


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def look(
    version: str, have: Mapping[str, Mapping[str, list[str]]], open_it: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One release as the index has it: the row of the release, and that of its default build."""
    pythons = have["x86_64"].get(version, [])
    if not pythons:
        raise SystemExit(f"torch {version}: no wheel for Linux")
    python = pythons[len(pythons) // 2]
    reports = {each: report(version, python, each) for each in PROCESSORS if version in have[each]}
    libraries = {each: read_requirements(row["metadata"]["requires_dist"], each) for each, row in reports.items()}
    seen = libraries["x86_64"]
    release: dict[str, Any] = {
        "pythons": pythons,
        "requires_python": reports["x86_64"]["metadata"].get("requires_python"),
        "triton": seen["triton"],
        **closure(version, python),
    }
    build = {key: seen[key] for key in ("toolkit", "cudnn", "nccl")}
    release["pypi"] = {each: row["tag"] or "cpu" for each, row in libraries.items()}
    if open_it:
        opened = open_wheel(version, python)
        release["pypi"]["x86_64"] = build["tag"] = opened["tag"]
        build |= {"x86_64": opened["codes"], "ptx": opened["ptx"]}
    return release, build


def report(version: str, python: str, processor: str) -> dict[str, Any]:
    """What pip would install, with its metadata."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "report.json")
        words = ["install", "--dry-run", "--no-deps", "--ignore-installed", "--quiet", "--report", str(path)]
        pip(*words, "--target", place, "--python-version", python, *platform_words(processor), f"torch=={version}")
        row: dict[str, Any] = json.loads(path.read_text())["install"][0]
    return row


def read_requirements(lines: Iterable[str], processor: str) -> dict[str, str | None]:
    """Toolkit, cuDNN, NCCL, triton and the CUDA tag, out of what a wheel requires on that processor."""
    pins: dict[str, str] = {}
    for line in lines:
        need, _, marker = line.partition(";")
        if "extra ==" in marker or ("platform_machine" in marker and processor not in marker):
            continue
        match = re.match(r"\s*([\w.-]+)(?:\[[^\]]*\])?\s*\(?([^)]*)\)?", need)
        if match:
            pins[match[1].lower()] = match[2].strip()

    def pinned(pattern: str) -> str | None:
        return next((pin.removeprefix("==") for name, pin in pins.items() if re.fullmatch(pattern, name)), None)

    toolkit = pinned("cuda-toolkit")
    runtime = toolkit or pinned(r"nvidia-cuda-runtime-cu\d+")
    tag = "cu" + "".join(runtime.split(".")[:2]) if runtime else None
    return {
        "toolkit": toolkit,
        "cudnn": pinned(r"nvidia-cudnn-cu\d+"),
        "nccl": pinned(r"nvidia-nccl-cu\d+"),
        "triton": pins.get("triton"),
        "tag": tag,
    }


def closure(version: str, python: str) -> dict[str, Any]:
    """Date and size of the wheel, and of all that comes with it, as uv resolves it."""
    with tempfile.TemporaryDirectory() as place:
        Path(place, "requirements.in").write_text(f"torch=={version}\n")
        words = ["pip", "compile", "--quiet", "--no-python-downloads", "--python-version", python]
        words += ["--python-platform", "x86_64-manylinux_2_28", "--format", "pylock.toml", "-o", "pylock.toml"]
        subprocess.run([sys.executable, "-m", "uv", *words, "requirements.in"], cwd=place, check=True)
        packages = tomllib.loads(Path(place, "pylock.toml").read_text())["packages"]
    files = {row["name"]: (row.get("wheels") or [row["sdist"]])[0] for row in packages}
    torch = files["torch"]
    return {
        "date": torch["upload-time"].date().isoformat(),
        "wheel_mb": round(torch["size"] / 1e6),
        "download_mb": round(sum(each["size"] for each in files.values()) / 1e6),
    }


def open_wheel(version: str, python: str) -> dict[str, Any]:
    """Fetches a wheel, reads it and deletes it."""
    with tempfile.TemporaryDirectory() as place:
        words = ["download", "--quiet", "--no-deps", "--dest", place, "--python-version", python]
        pip(*words, *platform_words("x86_64"), f"torch=={version}")
        return read_wheel(next(Path(place).glob("torch-*.whl")))


def read_wheel(path: Path) -> dict[str, Any]:
    """The CUDA tag and the architectures that stand in a wheel."""
    with zipfile.ZipFile(path) as archive:
        says: dict[str, Any] = {}
        exec(archive.read("torch/version.py"), says)
        found = _CODES.search(archive.read(_LIBRARY)) if _LIBRARY in archive.namelist() else None
    codes = found[0].decode().split() if found else []
    machine = [dotted(code) for code in codes if code.startswith("sm_")]
    ptx = [dotted(code) for code in codes if code.startswith("compute_")]
    tag = "cu" + says["cuda"].replace(".", "") if says.get("cuda") else "cpu"
    return {"tag": tag, "codes": machine or None, "ptx": ptx[-1] if ptx else None}


def dotted(code: str) -> str:
    """``sm_90a`` is 9.0."""
    digits = re.sub(r"\D", "", code.split("_")[1])
    return f"{digits[:-1]}.{digits[-1]}"


def builds_of(document: Mapping[str, Any], version: str) -> list[dict[str, Any]]:
    return [row for row in document["builds"] if row["torch"] == version]


def merge(document: dict[str, Any], version: str, release: dict[str, Any], build: dict[str, Any]) -> Iterable[str]:
    """Puts what was seen into the table and tells each change; what was not seen stays as it is."""
    row = document["releases"].setdefault(version, new_release(document))
    default = release["pypi"]["x86_64"]
    yield from changes(f"torch {version}", row, release)
    known = next((each for each in builds_of(document, version) if each["tag"] == default), None)
    if known is None:
        known = new_build(version, default, document)
        document["builds"].append(known)
        yield f"torch {version}+{default}: new; add its other builds by hand, each with its source"
    opened = build.get("x86_64") is not None
    yield from changes(f"torch {version}+{default}", known, {**build, "tag": default})
    if opened and "wheel" not in known["source"]["archs"]:
        known["source"]["archs"].append("wheel")
        yield f"torch {version}+{default}: architectures seen in the wheel"


def changes(name: str, row: dict[str, Any], seen: Mapping[str, Any]) -> Iterable[str]:
    for key, value in seen.items():
        if key == "pypi" and isinstance(row.get(key), dict):
            value = {**row[key], **value}
        if value is not None and row.get(key) != value:
            yield f"{name}: {key} {json.dumps(row.get(key))} → {json.dumps(value)}"
            row[key] = value


def new_release(document: Mapping[str, Any]) -> dict[str, Any]:
    """Nothing is known of it but that it is there; the C library is that of the release before."""
    last = list(document["releases"].values())[-1]
    empty: dict[str, Any] = {"date": None, "pythons": [], "free_threaded": [], "requires_python": None}
    empty |= {"glibc": last["glibc"], "pypi": {}, "triton": None, "wheel_mb": None, "download_mb": None}
    return {**empty, "torchvision": [], "torchaudio": [], "source": ["pypi"]}


def new_build(version: str, tag: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """Drivers follow from the CUDA of the tag."""
    digits = tag.removeprefix("cu")
    cuda = f"{digits[:-1]}.{digits[-1]}"
    row: dict[str, Any] = {"torch": version, "tag": tag, "toolkit": None, "cudnn": None, "nccl": None}
    row |= {"x86_64": None, "aarch64": None, "ptx": None, "floor": document["drivers"]["floor"].get(digits[:-1])}
    row |= {"strict": document["drivers"]["toolkit"].get(cuda)}
    return {**row, "source": {"published": ["pypi"], "archs": [], "libs": ["pypi"]}}


def written(document: Mapping[str, Any]) -> str:
    """The file: JSON with one row a line, so that a change shows as the lines that changed."""

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    parts = []
    for key, value in document.items():
        if key in _TABLES:
            rows = ",\n".join(f"  {text(name)}: {text(row)}" for name, row in value.items())
            parts.append(f" {text(key)}: {{\n{rows}\n }}")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            rows = ",\n".join(f"  {text(row)}" for row in value)
            parts.append(f" {text(key)}: [\n{rows}\n ]")
        else:
            parts.append(f" {text(key)}: {text(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main())
