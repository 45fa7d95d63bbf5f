"""Tree: a working copy of the project, whose sources are changed and read again; the user's own stays as it is."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from torchport.check.decoding import decode, module_name
from torchport.check.files import SKIPPED
from torchport.check.mend import encoding_of, patch
from torchport.check.notebook import Notebook, open_notebook, rewritten
from torchport.check.rule import Change
from torchport.check.siblings import Siblings
from torchport.check.source import Source, Unreadable

# Larger files are data: the copy has a link to them.
_COPIED_BYTES = 64 << 20
_CHECKPOINTS = frozenset((".pt", ".pth", ".ckpt", ".tar", ".safetensors", ".pkl"))


@dataclass(slots=True)
class Tree:
    """``root`` is the user's project, ``folder`` the copy. Paths are relative to both, with slashes.

    ``original`` are the sources as they were: the Python files of the project, and the notebook that is migrated.
    Nothing else is ever read as source or changed, least of all by a path that leads out of the copy.
    """

    root: Path
    folder: Path
    original: dict[str, bytes] = field(default_factory=dict)

    def read(self, path: str) -> Source | None:
        """A source of the copy as it is now; None where it is none of the project's or does not parse."""
        if path not in self.original:
            return None
        try:
            source = _source(path, (self.folder / path).read_bytes())
        except (OSError, Unreadable):
            return None
        if source is not None:
            Siblings(self.folder, self.folder).attach(source)
        return source

    def write(self, path: str, text: str) -> None:
        """Changes a file of the copy, in its own encoding; of a notebook only the lines of cells that differ."""
        place = self.folder / path
        data = place.read_bytes()
        name = encoding_of(path, data)
        source = _source(path, data) if path.endswith(".ipynb") else None
        if isinstance(source, Notebook):
            text = rewritten(decode(data, name), source.written, text)
        place.write_bytes(text.encode(name))

    def change(self, path: str, changes: list[Change]) -> bool:
        """Makes changes in a file; False, and nothing made, where the result would not parse."""
        source = self.read(path)
        if source is None:
            return False
        text, end = source.written, len(source.written) + 1
        for start, stop, new in sorted(set(changes), reverse=True):
            if stop > end:
                return False
            text, end = text[:start] + new + text[stop:], start
        try:
            source.again(text)
        except Unreadable:
            return False
        self.write(path, text)
        return True

    def paths(self) -> list[str]:
        """The sources of the copy."""
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
        """What has changed, as ``git apply -p0`` takes it. Bytes that are no UTF-8 are surrogates, to be written so."""
        return "".join(
            patch(path, _as_is(self.original[path]), _as_is(data)) for path, data in sorted(self.changed().items())
        )


def copy(root: Path, folder: Path, entry: str = "") -> Tree:
    """Copies a project, without what programs and version control keep in it.

    ``entry`` is what will run: a source, too, where it is a notebook or has another name than ``….py``.
    """
    tree = Tree(root, folder)
    real_root = root.resolve()
    for path in _files(root, folder):
        name = path.relative_to(root).as_posix()
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink() and _link(path, target, real_root):
            continue
        _copy(path, target)
        if (path.suffix == ".py" or name == entry) and not path.is_symlink():
            tree.original[name] = path.read_bytes()
    return tree


def _copy(path: Path, target: Path) -> None:
    """What is large, and what cannot be read, is there by a link, and does there what it does here."""
    if path.stat().st_size <= _COPIED_BYTES and os.access(path, os.R_OK):
        shutil.copy2(path, target)
        target.chmod(target.stat().st_mode | stat.S_IWUSR)
    else:
        target.symlink_to(path.absolute())


def _link(path: Path, target: Path, root: Path) -> bool:
    """Makes a link of the project one of the copy; False for a file that lies elsewhere, which is to be copied."""
    real = path.resolve()
    inside = real.is_relative_to(root) and not SKIPPED & set(real.relative_to(root).parts)
    if inside:
        place = path.parent.resolve().relative_to(root)
        target.symlink_to(os.path.relpath(real.relative_to(root), place), real.is_dir())
    elif real.is_dir():
        target.symlink_to(real, True)
    return inside or real.is_dir()


def _is_saved(path: Path) -> bool:
    """Whether a file is a checkpoint, or anything else that was pickled."""
    if path.suffix in _CHECKPOINTS:
        return True
    with open(path, "rb") as file:
        head = file.read(200)
    return (head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05") or (head[:2] == b"PK" and b"data.pkl" in head)


def _files(root: Path, copied: Path | None = None) -> Iterator[Path]:
    """The files, and the links to folders, which are not followed; the copy may lie in the project."""
    for folder, names, files in os.walk(root):
        kept = [name for name in names if name not in SKIPPED and not Path(folder, name, "pyvenv.cfg").exists()]
        names[:] = sorted(name for name in kept if Path(folder, name) != copied)
        yield from (path for name in names if (path := Path(folder, name)).is_symlink())
        for name in sorted(files):
            path = Path(folder, name)
            if path.is_file():
                yield path


def _source(path: str, data: bytes) -> Source | None:
    """The bytes of a file as repairs read them; None for a notebook without Python."""
    text = decode(data, encoding_of(path, data))
    return open_notebook(path, text)[0] if path.endswith(".ipynb") else Source(path, text, module_name(path))


def _as_is(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
