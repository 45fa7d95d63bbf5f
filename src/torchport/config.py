"""Config: the table [tool.torchport] of the project's pyproject.toml."""

from __future__ import annotations

import difflib
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from torchport.text import LANGUAGES, _, mark

# Every key that any command reads, with its type; a table lists its own keys.
KEYS: dict[str, type | dict[str, type]] = {
    "entry": str,
    "python": str,
    "gpu": str,
    "gpus": int,
    "torch": str,
    "select": list,
    "ignore": list,
    "exclude": list,
    "baseline": str,
    "lang": str,
    "mirrors": {"registry": str, "apt": str, "pypi": str, "torch": str},
    "image": {"base": str, "user": str, "services": list, "packages": list},
    "run": {"data": str, "outputs": str, "env": dict, "shm": str, "ports": list},
    "report": {"metrics": list, "gates": dict},
}

TYPES = {str: mark("a text"), int: mark("a whole number"), list: mark("a list"), dict: mark("a table")}


class ConfigError(Exception):
    """A pyproject.toml that cannot be used: not TOML, an unknown key or a value of the wrong type."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """[tool.torchport.run]: what a run finds and needs where it runs."""

    data: str | None = None
    outputs: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    shm: str | None = None
    ports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """What the project sets for all commands; None where it does not say."""

    python: str | None = None
    gpu: str | None = None
    gpus: int | None = None
    torch: str | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    baseline: str | None = None
    lang: str | None = None
    mirrors: dict[str, str] | None = None
    run: RunConfig = RunConfig()


def load(project: Path) -> Config:
    """Reads the project's configuration; a project without one has the defaults.

    Raises ConfigError, which names the file, the key, the value seen and the nearest known key.
    """
    path = project / "pyproject.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Config()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}") from error
    tool = document.get("tool", {})
    table = tool.get("torchport", {}) if isinstance(tool, dict) else {}
    where = f"{path}: [tool.torchport]"
    _check(table, KEYS, where)
    if table.get("gpus", 1) < 1:
        raise ConfigError(
            _("{where} gpus = {value}: at least one GPU is needed").format(where=where, value=table["gpus"])
        )
    if table.get("lang", "en") not in LANGUAGES:
        raise ConfigError(
            _("{where} lang = {value!r}: known are {known}").format(
                where=where, value=table["lang"], known=", ".join(LANGUAGES)
            )
        )
    table = {**table, **{name: _words(table, name, where) for name in ("select", "ignore", "exclude")}}
    plain = {field.name: table.get(field.name) for field in fields(Config) if field.name != "run"}
    return Config(**plain, run=_run(table.get("run", {}), f"{path}: [tool.torchport.run]"))


def _run(table: dict[str, Any], where: str) -> RunConfig:
    """The table for runs: env holds texts and numbers, ports are numbers of ports."""
    env, ports = table.get("env", {}), table.get("ports", [])
    for name, value in env.items():
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise ConfigError(
                _("{where} {key} = {value!r} should be {wanted}").format(
                    where=where, key=f"env.{name}", value=value, wanted=_("a text")
                )
            )
    for port in ports:
        if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
            raise ConfigError(
                _("{where} {key} = {value!r} should be {wanted}").format(
                    where=where, key="ports", value=ports, wanted=_("a list of ports, from 1 to 65535")
                )
            )
    return RunConfig(
        data=table.get("data"),
        outputs=table.get("outputs"),
        env=tuple((name, str(value)) for name, value in env.items()),
        shm=table.get("shm"),
        ports=tuple(ports),
    )


def _words(table: dict[str, Any], key: str, where: str) -> tuple[str, ...] | None:
    """A list of texts, None where the key is not there."""
    if key not in table:
        return None
    for value in table[key]:
        if not isinstance(value, str):
            raise ConfigError(
                _("{where} {key} = {value!r} should be {wanted}").format(
                    where=where, key=key, value=table[key], wanted=_("a list of texts")
                )
            )
    return tuple(table[key])


def _check(table: Any, known: dict[str, Any], where: str) -> None:
    if not isinstance(table, dict):
        raise ConfigError(_("{where} is {value!r}, not a table").format(where=where, value=table))
    for key, value in table.items():
        if key not in known:
            nearest = difflib.get_close_matches(key, known, 1, 0.5)
            hint = (
                _("did you mean {key}?").format(key=nearest[0])
                if nearest
                else _("known are {known}").format(known=", ".join(known))
            )
            raise ConfigError(_("{where} has an unknown key {key!r}: {hint}").format(where=where, key=key, hint=hint))
        wanted = known[key]
        if isinstance(wanted, dict):
            _check(value, wanted, f"{where[:-1]}.{key}]")
        elif not isinstance(value, wanted) or isinstance(value, bool):
            raise ConfigError(
                _("{where} {key} = {value!r} should be {wanted}").format(
                    where=where, key=key, value=value, wanted=_(TYPES[wanted])
                )
            )
