"""Runs the tests of what enters the user's process on several torch versions, and prints a table.

``python tools/torch_matrix.py`` makes a virtual environment for each version where one is missing, runs
``tests/inside`` and ``tests/hardware`` in it without the slow ones, and tells how many passed. A CUDA wheel on a
machine without a GPU counts. Standard library only, and no part of ``make test``: torch alone is some gigabytes a
version.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "how-it-works" / "torch-versions.md"
BEGIN = "<!-- tools/torch_matrix.py writes this table -->"
END = "<!-- end of the table -->"
TESTS = ("tests/inside", "tests/hardware")
# What pip is asked for, oldest first: the oldest version we support, the middle one, the one we develop with, and
# whatever is newest today. The oldest goes with NumPy 1, as in most projects of its time.
VERSIONS: Mapping[str, Sequence[str]] = {
    "2.4.1": ("torch==2.4.1", "numpy<2"),
    "2.8.0": ("torch==2.8.0", "numpy"),
    "2.13.0": ("torch==2.13.0", "numpy"),
    "newest": ("torch", "numpy"),
}
HEAD = ("torch", "CUDA build", "Python", "passed", "failed", "skipped", "seconds")
# Of the wheel, asked in the environment itself.
ASK = (
    "import platform, torch; print(torch.__version__.split('+')[0], torch.version.cuda or '-', "
    "platform.python_version())"
)


@dataclass(frozen=True)
class Row:
    """What one version did. ``failed`` counts errors, too."""

    torch: str
    cuda: str
    python: str
    passed: int
    failed: int
    skipped: int
    duration_s: float

    def cells(self) -> tuple[str, ...]:
        numbers = (self.passed, self.failed, self.skipped, round(self.duration_s))
        return (self.torch, self.cuda, self.python, *map(str, numbers))


def main() -> None:
    """Runs what the command line names; exit code 1 if any test failed."""
    options = parsed()
    rows = []
    for version in options.only or VERSIONS:
        python = options.torch.get(version) or environment(options.venvs / version, version, options.python)
        print(f"torch {version}: {' '.join(TESTS)} with {python}", flush=True)
        rows.append(tested(python))
    table = "\n".join(markdown(rows))
    print(table)
    if options.write:
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), table), encoding="utf-8")
        print(f"written to {PAGE.relative_to(ROOT)}")
    sys.exit(any(row.failed for row in rows))


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--venvs",
        type=Path,
        default=Path.home() / ".cache" / "torchport" / "torch-matrix",
        metavar="FOLDER",
        help="where the virtual environments are, or will be made (%(default)s)",
    )
    parser.add_argument(
        "--torch",
        action="append",
        default=[],
        metavar="VERSION=PYTHON",
        help=f"use this interpreter for one of {', '.join(VERSIONS)}",
    )
    parser.add_argument("--only", action="append", choices=VERSIONS, help="this version only; may be repeated")
    parser.add_argument("--python", default=sys.executable, help="what new environments are made with")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    if options.write and options.only:
        parser.error("--write needs all versions: leave out --only")
    given = dict(text.partition("=")[::2] for text in options.torch)
    unknown = [version for version, python in given.items() if version not in VERSIONS or not python]
    if unknown:
        parser.error(f"--torch {unknown[0]}: write one of {', '.join(VERSIONS)}, then =PYTHON")
    options.torch = given
    return options


def environment(folder: Path, version: str, base: str) -> str:
    """The interpreter of a virtual environment with that torch, which is made if it is missing."""
    python = str(folder / "bin" / "python")
    ready = folder / "ready"
    if ready.exists():
        return python
    print(f"torch {version}: making {folder}; torch and its libraries are some gigabytes", flush=True)
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off", "-q"]
    for command in ([base, "-m", "venv", "--clear", str(folder)], [*pip, *VERSIONS[version], "pytest"]):
        if subprocess.call(command):
            sys.exit(
                f"Could not make {folder}: {' '.join(command)} failed. If this Python is too new for torch "
                f"{version}, name another one: --python python3.12, or --torch {version}=PYTHON"
            )
    ready.touch()
    return python


def tested(python: str) -> Row:
    """Runs the tests with one interpreter."""
    try:
        said = subprocess.run([python, "-c", ASK], check=True, text=True, stdout=subprocess.PIPE).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"{python} cannot import torch: {error}. Name an interpreter that can: --torch VERSION=PYTHON")
    torch, cuda, release = said.split()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not full"]
        environ = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        started = time.monotonic()
        subprocess.call([*command, "--tb=short", f"--junitxml={report}", *TESTS], cwd=ROOT, env=environ)
        duration_s = time.monotonic() - started
        if not report.exists():
            sys.exit(f"{' '.join(command)} ended without a report; what it says stands above.")
        suite = ElementTree.parse(report).getroot()[0]
    total, failures, errors, skipped = (
        int(suite.get(name) or 0) for name in ("tests", "failures", "errors", "skipped")
    )
    failed = failures + errors
    return Row(torch, cuda, release, total - failed - skipped, failed, skipped, duration_s)


def markdown(rows: Iterable[Row]) -> Iterable[str]:
    """The lines of the table."""
    for cells in (HEAD, ("---",) * len(HEAD), *(row.cells() for row in rows)):
        yield f"| {' | '.join(cells)} |"


def replaced(page: str, table: str) -> str:
    """The page with ``table`` between its markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        sys.exit(f"{PAGE} lacks the lines {BEGIN!r} and {END!r}, between which the table stands.")
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"


if __name__ == "__main__":
    main()
