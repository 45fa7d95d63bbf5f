"""Places in the user's source: the innermost frame that lies in the project, never in torch."""

from __future__ import annotations

import itertools
import os
import sys
import sysconfig
from inspect import CO_OPTIMIZED
from types import CodeType, FrameType
from typing import Any

Place = tuple[CodeType, int]  # code object and line: cheap to take, turned into text only when it is shown

_LIBRARIES = ("site-packages", "dist-packages")


def variables(frame: FrameType) -> dict[str, Any]:
    """A function's or module's variables. Up to Python 3.12 a frame keeps what it gives: tensors would live on."""
    found = frame.f_locals
    values = dict(found)
    if frame.f_code.co_flags & CO_OPTIMIZED and type(found) is dict:
        found.clear()
    return values


class Places:
    """Finds the user's frame. A file is the user's if it lies in the project and in no installed library."""

    def __init__(self, project: str) -> None:
        self.project = os.path.realpath(project)
        self._ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        self._stdlib = os.path.realpath(sysconfig.get_paths()["stdlib"])
        self._kinds: dict[str, int] = {}  # file name -> 2 project, 1 other user code, 0 library

    def here(self, frame: FrameType | None = None) -> Place | None:
        """The user's innermost place on the stack, or None when the program has not started yet."""
        found = self.frame(frame or sys._getframe(2))
        return None if found is None else (found.f_code, found.f_lineno)

    def frame(self, frame: FrameType | None = None) -> FrameType | None:
        """The user's innermost frame; code outside the project counts only when nothing of the project runs."""
        kinds = self._kinds
        current = frame or sys._getframe(1)
        other: FrameType | None = None
        while current is not None:
            name = current.f_code.co_filename
            kind = kinds.get(name)
            if kind is None:
                kind = kinds[name] = self._kind(name)
            if kind == 2:
                return current
            if kind == 1 and other is None:
                other = current
            current = current.f_back  # type: ignore[assignment]
        return other

    def frames(self, frame: FrameType | None = None) -> list[FrameType]:
        """All frames of the project on the stack, innermost first."""
        current, kinds = frame or sys._getframe(1), self._kinds
        result = []
        while current is not None:
            name = current.f_code.co_filename
            kind = kinds.get(name)
            if kind is None:
                kind = kinds[name] = self._kind(name)
            if kind == 2:
                result.append(current)
            current = current.f_back  # type: ignore[assignment]
        return result

    def built(self) -> list[Place]:
        """Where the objects are made whose ``__init__`` run, innermost first; the last is outside of any."""
        found: list[Place] = []
        frames = self.frames(sys._getframe(1))
        for inner, outer in itertools.pairwise(frames):
            if inner.f_code.co_name != "__init__":
                break
            if "self" not in outer.f_locals or outer.f_locals["self"] is not inner.f_locals.get("self"):
                found.append((outer.f_code, outer.f_lineno))  # not what a class asks of its parent
        return found

    def is_project(self, name: str) -> bool:
        """Whether a file belongs to the user's project."""
        return self._kind(name) == 2

    def _kind(self, name: str) -> int:
        if name.startswith("<"):
            return 2 if name.startswith("<cell") else 0
        path = os.path.realpath(name)
        if any(f"{os.sep}{library}{os.sep}" in path for library in _LIBRARIES) or path.startswith(
            (self._ours + os.sep, self._stdlib + os.sep)
        ):
            return 0
        return 2 if path.startswith(self.project.rstrip(os.sep) + os.sep) else 1

    def path(self, place: Place) -> str:
        """File of a place, relative to the project where it lies in it."""
        name = place[0].co_filename
        if name.startswith("<"):
            return name
        path = os.path.realpath(name)
        inside = path.startswith(self.project.rstrip(os.sep) + os.sep)
        return os.path.relpath(path, self.project) if inside else path
