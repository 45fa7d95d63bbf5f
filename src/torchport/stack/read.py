"""What a project wants: its requirement files, its environment file, other tools' locks, and its source."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from torchport.resolved import Asked, Wanted
from torchport.stack import conda, manifests, source
from torchport.stack.other_locks import locked
from torchport.stack.releases import COMPANIONS
from torchport.stack.versions import is_specifier, normal, parsed

MOST_BYTES = 2_000_000


@dataclass(slots=True)
class Reading:
    """What has been found so far. ``files`` are those already read."""

    root: Path
    asked: list[Asked] = field(default_factory=list)
    python: list[Asked] = field(default_factory=list)
    cuda: tuple[str, str] | None = None
    skipped: list[tuple[str, str]] = field(default_factory=list)
    files: set[Path] = field(default_factory=set)

    def add(self, text: str, path: str) -> None:
        """A requirement as PEP 508 has it; what is none is skipped and named."""
        text = text.strip()
        found = parsed(text)
        if found is None:
            self.skipped.append((path, text))
            return
        asked = Asked(normal(found.name), text, path)
        if not any(each.name == asked.name and each.text == text for each in self.asked):
            self.asked.append(asked)

    def add_python(self, text: str, path: str) -> None:
        """What is asked of Python: "3.10" is that minor version, "^3.9" as poetry has it."""
        text = manifests.poetry_range(text.strip())
        if text[:1].isdigit():
            text = f"=={text}" if text.count(".") > 1 or text.endswith("*") else f"=={text}.*"
        if text and is_specifier(text):
            self.python.append(Asked("python", text, path))

    def add_cuda(self, cuda: str, path: str) -> None:
        """The CUDA that the files name; the first one counts."""
        self.cuda = self.cuda or (cuda, path)

    def text(self, path: Path) -> str | None:
        """A file's text, None where there is none, or it was read before."""
        try:
            real = path.resolve()
            if real in self.files or not path.is_file() or path.stat().st_size > MOST_BYTES:
                return None
            self.files.add(real)
            return path.read_text(encoding="utf-8-sig", errors="replace")
        except OSError:
            return None

    def name(self, path: Path) -> str:
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return path.as_posix()


def read(root: Path) -> Wanted:
    """Reads the project below ``root``; nothing of it is imported or run."""
    reading = Reading(root)
    manifests.read(reading)
    conda.read(reading)
    found = source.scan(root)
    names = {each.name for each in reading.asked}
    imported = tuple(
        (name, path)
        for name, path in sorted(found.distributions.items())
        if name not in names and (not names or name in ("torch", *COMPANIONS))
    )
    return Wanted(
        asked=tuple(reading.asked),
        python=tuple(reading.python),
        cuda=reading.cuda,
        locked=tuple(locked(root)),
        imported=imported,
        unknown=() if names else tuple(sorted(found.unknown)),
        builds=tuple(sorted(found.builds)),
        skipped=tuple(reading.skipped),
    )
