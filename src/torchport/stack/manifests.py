"""Requirements as Python's own tools write them: pyproject.toml, setup.cfg, setup.py, requirements*.txt, Pipfile."""

from __future__ import annotations

import ast
import configparser
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from torchport.stack.read import Reading

# What a project needs to be worked on, and not to run.
_ASIDE = re.compile(r"dev|test|doc|lint|build|style|ci\b|constraint", re.IGNORECASE)
_INDEX = re.compile(r"/cu(\d{2,3})(?:[/\s]|$)")
_HASH = re.compile(r"\s+--hash[= ]\S+|\s+--(?:config-settings|global-option)\S*")
_CARET = re.compile(r"\^\s*(\d+)(?:\.(\d+))?(?:\.(\d+))?")
_TILDE = re.compile(r"(?<![~=<>!])~\s*(\d+)(?:\.(\d+))?")


def read(reading: Reading) -> None:
    """All of them, in the order in which they are likely to be meant."""
    root = reading.root
    _pyproject(reading, root / "pyproject.toml")
    _setup_cfg(reading, root / "setup.cfg")
    _setup_py(reading, root / "setup.py")
    for path in sorted([*root.glob("requirements*.txt"), *root.glob("requirements/*.txt")]):
        if not _ASIDE.search(path.name.removeprefix("requirements")):
            _requirements(reading, path)
    _pipfile(reading, root / "Pipfile")
    for name in (".python-version", "runtime.txt"):
        text = reading.text(root / name)
        version = re.match(r"(?:python-|cpython-)?(\d+\.\d+(?:\.\d+)?)\s*$", text.strip()) if text else None
        if version:
            reading.add_python(version[1], name)


def cuda_of_index(text: str) -> str | None:
    """The CUDA in the address of an index, ``…/whl/cu121``: "12.1"."""
    match = _INDEX.search(text)
    return f"{match[1][:-1]}.{match[1][-1]}" if match else None


def poetry_range(text: str) -> str:
    """``^1.2`` and ``~1.2`` as specifiers that everybody knows; other texts are as they were."""
    text = "" if text == "*" else text
    text = _CARET.sub(_caret, text)
    return _TILDE.sub(lambda m: f">={m[1]}.{m[2] or 0},<{_next(m)}", text)


def _caret(match: re.Match[str]) -> str:
    major, minor = int(match[1]), int(match[2] or 0)
    above = f"{major + 1}" if major or match[2] is None else f"0.{minor + 1}"
    return f">={match[0][1:].strip()},<{above}"


def _next(match: re.Match[str]) -> str:
    return f"{match[1]}.{int(match[2]) + 1}" if match[2] else str(int(match[1]) + 1)


def _requirements(reading: Reading, path: Path) -> None:
    text = reading.text(path)
    if text is None:
        return
    name = reading.name(path)
    for line in text.replace("\\\n", " ").splitlines():
        line = _HASH.sub("", re.sub(r"(?:^|\s)#.*", "", line)).strip()
        if not line:
            continue
        option, _, value = line.partition(" ") if " " in line else line.partition("=")
        if option in ("-r", "--requirement"):
            _requirements(reading, path.parent / value.strip())
        elif option in ("--index-url", "-i", "--extra-index-url", "--find-links", "-f"):
            cuda = cuda_of_index(value)
            if cuda:
                reading.add_cuda(cuda, name)
        elif (option in ("-e", "--editable") and value.strip() in (".", "./")) or line in (".", "./"):
            continue
        elif line.startswith("-") and option not in ("-e", "--editable"):
            continue  # -c and options of the index: they ask for nothing
        else:
            reading.add(_as_pep508(value.strip() if option in ("-e", "--editable") else line), name)


def _as_pep508(line: str) -> str:
    """``git+https://…#egg=name`` as ``name @ git+https://…``."""
    egg = re.search(r"#egg=([\w.-]+)", line)
    return f"{egg[1]} @ {line.split('#')[0]}" if egg and "+" in line.split(":")[0] else line


def _pyproject(reading: Reading, path: Path) -> None:
    document = _toml(reading, path)
    project, poetry = _table(document.get("project")), _table(_table(document.get("tool")).get("poetry"))
    name = reading.name(path)
    for line in _texts(project.get("dependencies")):
        reading.add(line, name)
    if isinstance(project.get("requires-python"), str):
        reading.add_python(project["requires-python"], name)
    _named(reading, _table(poetry.get("dependencies")), name)
    for index in _indexes(document):
        cuda = cuda_of_index(index)
        if cuda:
            reading.add_cuda(cuda, name)


def _indexes(document: dict[str, Any]) -> Iterator[str]:
    tool = _table(document.get("tool"))
    for rows in (_table(tool.get("uv")).get("index"), _table(tool.get("poetry")).get("source")):
        for row in rows if isinstance(rows, list) else ():
            yield str(_table(row).get("url", ""))


def _pipfile(reading: Reading, path: Path) -> None:
    document = _toml(reading, path)
    _named(reading, _table(document.get("packages")), path.name)
    version = _table(document.get("requires")).get("python_version")
    if isinstance(version, str):
        reading.add_python(version, path.name)


def _named(reading: Reading, rows: dict[str, Any], path: str) -> None:
    """Tables of names and versions, as poetry and pipenv have them."""
    for name, value in rows.items():
        table = _table(value)
        version = value if isinstance(value, str) else table.get("version", "")
        if name == "python":
            reading.add_python(str(version), path)
            continue
        specifiers = poetry_range(str(version))
        if specifiers[:1].isdigit():
            specifiers = f"=={specifiers}"
        extras = ",".join(_texts(table.get("extras")))
        where = table.get("git") or table.get("url")
        if isinstance(where, str):
            specifiers = f" @ {'git+' if 'git' in table else ''}{where}"
        reading.add(f"{name}{f'[{extras}]' if extras else ''}{specifiers}", path)


def _setup_cfg(reading: Reading, path: Path) -> None:
    text = reading.text(path)
    if text is None:
        return
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        reading.skipped.append((path.name, text.splitlines()[0] if text else ""))
        return
    for line in parser.get("options", "install_requires", fallback="").splitlines():
        if line.strip():
            reading.add(line, path.name)
    reading.add_python(parser.get("options", "python_requires", fallback=""), path.name)


def _setup_py(reading: Reading, path: Path) -> None:
    """What stands there as plain texts; a list that is computed says nothing."""
    text = reading.text(path)
    try:
        tree = ast.parse(text or "")
    except (SyntaxError, ValueError, RecursionError):
        return
    lists = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.keyword):
            continue
        value = lists.get(node.value.id, node.value) if isinstance(node.value, ast.Name) else node.value
        if node.arg == "install_requires" and isinstance(value, ast.List | ast.Tuple):
            for each in value.elts:
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    reading.add(each.value, path.name)
        elif node.arg == "python_requires" and isinstance(value, ast.Constant) and isinstance(value.value, str):
            reading.add_python(value.value, path.name)


def _toml(reading: Reading, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(reading.text(path) or "")
    except tomllib.TOMLDecodeError as error:
        reading.skipped.append((path.name, str(error)))
        return {}


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
