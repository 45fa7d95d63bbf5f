"""Versions and requirements as PEP 440 and PEP 508 have them, asked about one Python on one Linux machine."""

from __future__ import annotations

from functools import lru_cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from torchport.resolved import Asked

_PATCHES = 40  # more than any Python has had


@lru_cache(4096)
def requirement(text: str) -> Requirement:
    """Raises InvalidRequirement."""
    return Requirement(text)


def parsed(text: str) -> Requirement | None:
    """A requirement, None where the text is none."""
    try:
        return requirement(text)
    except InvalidRequirement:
        return None


def normal(name: str) -> str:
    return canonicalize_name(name)


@lru_cache(4096)
def admits(specifiers: str, version: str) -> bool:
    """Whether a version is let in. A local one ("2.0.1+cu118") meets both "==2.0.1" and itself."""
    return SpecifierSet(specifiers).contains(version, prereleases=True)


def is_specifier(text: str) -> bool:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return False
    return True


@lru_cache(1024)
def admits_python(specifiers: str, minor: str) -> bool:
    """Whether any Python X.Y.Z of that X.Y is let in."""
    chosen = SpecifierSet(specifiers)
    return any(chosen.contains(f"{minor}.{patch}") for patch in range(_PATCHES))


def applies(asked: Asked, python: str, processor: str) -> bool:
    """Whether a requirement's marker holds there; one without a marker always does."""
    marker = requirement(asked.text).marker
    return marker is None or marker.evaluate(_environment(python, processor))


@lru_cache(64)
def _environment(python: str, processor: str) -> dict[str, str]:
    """The markers of CPython on that machine; nothing of the machine that we are on."""
    return {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_name": "cpython",
        "implementation_version": f"{python}.0",
        "platform_python_implementation": "CPython",
        "os_name": "posix",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": processor,
        "platform_release": "",
        "platform_version": "",
        "extra": "",
    }


@lru_cache(4096)
def order(version: str) -> Version:
    """A key to sort by; what is no version comes first."""
    try:
        return Version(version)
    except InvalidVersion:
        return Version("0")
