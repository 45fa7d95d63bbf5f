"""The other modules of a project, read when a rule follows an import, and remembered as what a result rests on."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from functools import partial
from pathlib import Path

from torchport.check.decoding import decode, module_name
from torchport.check.files import MOST_BYTES
from torchport.check.source import Source, Unreadable

_KEPT = 100  # sources in memory


class Siblings:
    """``folder`` is where the paths of files begin; nothing outside of ``root`` is read."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder
        self.root = root
        self._paths: dict[tuple[str, str], str | None] = {}
        self._sources: OrderedDict[str, Source | None] = OrderedDict()
        self._digests: dict[str, str] = {}
        self.asked: set[str] = set()  # names, since ``attach``

    def attach(self, source: Source) -> None:
        """Lets a source ask for its siblings, and begins to note which."""
        self.asked = set()
        source.sibling = partial(self.source, source.path)

    def source(self, importer: str, name: str) -> Source | None:
        """What a file means by the name of a module, None where that is no module of the project."""
        self.asked.add(name)
        path = self.find(importer, name)
        if path is None or path == importer:
            return None
        if path not in self._sources:
            self._sources[path] = self._read(path)
            if len(self._sources) > _KEPT:
                self._sources.popitem(last=False)
        return self._sources[path]

    def digest(self, importer: str, name: str) -> str:
        """What the module of that name contains now, in short; empty where there is none."""
        path = self.find(importer, name)
        if path is None:
            return ""
        if path not in self._digests:
            data = self._bytes(path)
            self._digests[path] = "" if data is None else hashlib.sha256(data).hexdigest()[:32]
        return self._digests[path]

    def find(self, importer: str, name: str) -> str | None:
        """The path of a module: beside the file that imports it, or below one of the folders above."""
        start = os.path.dirname(importer)
        key = start, name
        if key not in self._paths:
            self._paths[key] = self._search(start, name)
        return self._paths[key]

    def _search(self, start: str, name: str) -> str | None:
        parts = name.split(".")
        if not all(part.isidentifier() for part in parts):
            return None
        folder = start
        while True:
            if not self._is_inside(folder):
                return None
            for tail in ((*parts[:-1], f"{parts[-1]}.py"), (*parts, "__init__.py")):
                path = os.path.join(folder, *tail)
                if os.path.isfile(os.path.join(self.folder, path)):
                    return path.replace(os.sep, "/")
            above = os.path.dirname(folder)
            if not folder or above == folder:
                return None
            folder = above

    def _is_inside(self, folder: str) -> bool:
        place = os.path.normpath(os.path.join(self.folder, folder))
        return place == str(self.root) or place.startswith(str(self.root).rstrip(os.sep) + os.sep)

    def _read(self, path: str) -> Source | None:
        data = self._bytes(path)
        try:
            return None if data is None else Source(path, decode(data), module_name(path))
        except Unreadable:
            return None

    def _bytes(self, path: str) -> bytes | None:
        place = os.path.join(self.folder, path)
        try:
            if os.path.getsize(place) > MOST_BYTES:
                return None
            with open(place, "rb") as file:
                return file.read()
        except OSError:
            return None
