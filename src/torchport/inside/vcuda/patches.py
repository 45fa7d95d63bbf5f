"""Every change made to a foreign object goes through here, so that it can be taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_ABSENT = object()


class Patches:
    """A stack of changes, undone in the opposite order."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def set(self, target: Any, name: str, value: Any) -> Any:
        """Sets ``target.name`` and returns what stood there (None if nothing did)."""
        own = vars(target) if hasattr(target, "__dict__") else {}
        if name in own:
            # The raw descriptor, not what attribute look-up makes of it (staticmethod, property).
            before = own[name]
        elif isinstance(target, type) or not hasattr(target, name):
            before = _ABSENT
        else:
            before = getattr(target, name)
        seen = getattr(target, name, None)
        setattr(target, name, value)
        if before is _ABSENT:
            self._undo.append(lambda: delattr(target, name))
        else:
            self._undo.append(lambda: setattr(target, name, before))
        return seen

    def set_item(self, mapping: Any, key: Any, value: Any) -> None:
        """Sets ``mapping[key]``."""
        before = mapping.get(key, _ABSENT)
        mapping[key] = value
        if before is _ABSENT:
            self._undo.append(lambda: mapping.pop(key, None))
        else:
            self._undo.append(lambda: mapping.__setitem__(key, before))

    def on_undo(self, call: Callable[[], None]) -> None:
        """Has ``call`` run when the patches are undone."""
        self._undo.append(call)

    def undo(self) -> None:
        """Takes every change back, the newest first."""
        while self._undo:
            self._undo.pop()()
