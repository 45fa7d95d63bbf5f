"""Tree: a working copy of the project, whose sources are changed and read again; the user's own stays as it is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from torchport.check.decoding import decode, encoding, module_name
from torchport.check.files import SKIPPED
from torchport.check.mend import patch
from torchport.check.rule import Change
from torchport.check.siblings import Siblings
from torchport.check.source import Source, Unreadable

# Larger files are data: the copy has a link to them.
_COPIED_BYTES = 64 << 20
_CHECKPOINTS = frozenset((".pt", ".pth", ".ckpt", ".tar", ".safetensors", ".pkl"))


@dataclass(slots=True)
class Tree:
    """``root`` is the user's project, ``folder`` the copy. Paths are relative to both, with slashes."""

    root: Path
    folder: Path
    original: dict[str, bytes] = field(default_factory=dict)

    def read(self, path: str) -> Source | None:
        """A Python file of the copy as it is now; None where it is not there or does not parse."""
        try:
            data = (self.folder / path).read_bytes()
            source = Source(path, decode(data), module_name(path))
        except (OSError, Unreadable):
            return None
        Siblings(self.folder, self.folder).attach(source)
        return source

    def write(self, path: str, text: str) -> None:
        """Changes a file of the copy, in its own encoding."""
        place = self.folder / path
        place.write_bytes(text.encode(encoding(place.read_bytes())))

    def change(self, path: str, changes: list[Change]) -> bool:
        """Makes changes in a file; False, and nothing made, where the result would not parse."""
        source = self.read(path)
        if source is None:
            return False
        text, end = source.text, len(source.text) + 1
        for start, stop, new in sorted(set(changes), reverse=True):
            if stop > end:
                return False
            text, end = text[:start] + new + text[stop:], start
        try:
            Source(path, text, source.module)
        except Unreadable:
            return False
        self.write(path, text)
        return True

    def paths(self) -> list[str]:
        """The Python files of the copy."""
        return sorted(self.original)

    def changed(self) -> dict[str, bytes]:
        """The files that are no longer what they were."""
        now = {path: (self.folder / path).read_bytes() for path in self.original}
        return {path: data for path, data in now.items() if data != self.original[path]}

    def state(self) -> dict[str, bytes]:
        """All sources as they are, to come back to."""
        return {path: (self.folder / path).read_bytes() for path in self.original}

    def restore(self, state: dict[str, bytes]) -> None:
        for path, data in state.items():
            (self.folder / path).write_bytes(data)

    def forget(self) -> None:
        """Removes what runs have saved, checkpoints and caches: a program that finds one goes on there."""
        for path in _files(self.folder):
            if not (self.root / path.relative_to(self.folder)).exists() and _is_saved(path):
                path.unlink()

    def patch(self) -> str:
        """What has changed, as ``patch -p0`` and ``git apply -p0`` take it."""
        return "".join(
            patch(path, decode(self.original[path]), decode(data)) for path, data in sorted(self.changed().items())
        )


def copy(root: Path, folder: Path) -> Tree:
    """Copies a project, without what programs and version control keep in it."""
    tree = Tree(root, folder)
    if (root / ".git").exists():
        (folder / ".git").mkdir()  # by which the folder of the project is known; a program below it is named from there
    for path in _files(root):
        name = path.relative_to(root).as_posix()
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.stat().st_size > _COPIED_BYTES:
            target.symlink_to(path)
        else:
            shutil.copy2(path, target)
        if path.suffix == ".py":
            tree.original[name] = path.read_bytes()
    return tree


def _is_saved(path: Path) -> bool:
    """Whether a file is a checkpoint, or anything else that was pickled."""
    if path.suffix in _CHECKPOINTS:
        return True
    with open(path, "rb") as file:
        head = file.read(200)
    return (head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05") or (head[:2] == b"PK" and b"data.pkl" in head)


def _files(root: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(root):
        kept = [name for name in names if name not in SKIPPED and not Path(folder, name, "pyvenv.cfg").exists()]
        names[:] = sorted(kept)
        for name in sorted(files):
            path = Path(folder, name)
            if path.is_file():
                yield path
