"""The Python that runs the user's program: which one, and what is installed in it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from torchport.facts import TorchFacts
from torchport.process import ProgramMissing, ProgramTimeout, run
from torchport.text import _

OLDEST_PYTHON = (3, 10)
OLDEST_TORCH = (2, 4)

# Runs in any Python from 3.5 on. It reads versions without importing torch, which would take seconds; which options
# torchrun has is read from its source.
PROBE = """
import os, sys
sys.path[:] = [p for p in sys.path if p not in ("", os.getcwd())]
import json, re
facts = {"python_version": list(sys.version_info[:3]), "version": None, "cuda": None, "numpy_version": None}
facts["torchrun"] = []
try:
    from importlib import metadata, util
    found = util.find_spec("torch")
    if found is not None and found.origin:
        names = {}
        with open(os.path.join(os.path.dirname(found.origin), "version.py")) as file:
            exec(file.read(), names)
        facts["version"] = str(names["__version__"])
        facts["cuda"] = names.get("cuda")
        with open(os.path.join(os.path.dirname(found.origin), "distributed", "run.py")) as file:
            facts["torchrun"] = sorted(set(re.findall('^ +"--([a-z-]+)",', file.read(), re.M)))
        facts["numpy_version"] = metadata.version("numpy")
except Exception:
    pass
print(json.dumps(facts))
"""


class InterpreterError(Exception):
    """No Python that can run the project: missing, too old, or without a torch that is new enough."""


def executable(name: str, folder: Path) -> str:
    """A path as given, the Python of a folder that is a venv, a bare name as the shell finds it."""
    path = folder / name
    if path.is_dir():
        path = path / "bin" / "python"
    if path.exists() or "/" in name:
        return str(path)
    return shutil.which(name) or name


def named(asked: str | None, folder: Path, configured: str | None, project: Path) -> str | None:
    """The interpreter that the user names: asked for in a folder, else in the project's configuration."""
    if asked:
        return executable(asked, folder)
    return executable(configured, project) if configured else None


def choose(explicit: str | None, project: Path, folder: Path, environ: Mapping[str, str], own: str) -> TorchFacts:
    """The interpreter for this project, with what is in it.

    ``explicit`` (from the command line or the configuration) is taken or refused. Otherwise the first that
    will do of the active environment, the project's own .venv or venv, and the Python that runs torchport.
    Raises InterpreterError, which names what is wrong with each one.
    """
    if explicit is not None:
        return usable(explicit)
    refusals = []
    for candidate in dict.fromkeys(_candidates(project, folder, environ, own)):
        try:
            return usable(candidate)
        except InterpreterError as error:
            refusals.append(str(error))
    raise InterpreterError("\n".join(refusals))


def environment(explicit: str | None, project: Path, folder: Path, environ: Mapping[str, str], own: str) -> TorchFacts:
    """The interpreter whose environment a command runs in: the first there is, whatever is installed in it.

    Raises InterpreterError for one that is named and does not answer.
    """
    candidates = [explicit] if explicit is not None else _candidates(project, folder, environ, own)
    return probe(next(python for python in candidates if explicit is not None or Path(python).exists()))


def usable(python: str) -> TorchFacts:
    """What is in an interpreter that can run a rehearsal. Raises InterpreterError where it cannot."""
    facts = probe(python)
    if facts.python_version[:2] < OLDEST_PYTHON:
        raise InterpreterError(
            _("{python} is Python {have}; torchport needs {need} or newer. Choose another with --python.").format(
                python=python, have=_dotted(facts.python_version), need=_dotted(OLDEST_PYTHON)
            )
        )
    if facts.version is None:
        raise InterpreterError(
            _(
                "{python} has no torch. Install it there with: {python} -m pip install torch\n"
                "or choose the project's Python with --python."
            ).format(python=python)
        )
    if release(facts.version) < OLDEST_TORCH:
        raise InterpreterError(
            _(
                "{python} has torch {have}; torchport needs {need} or newer. "
                "Upgrade it with: {python} -m pip install --upgrade torch"
            ).format(python=python, have=facts.version, need=_dotted(OLDEST_TORCH))
        )
    return facts


def probe(python: str) -> TorchFacts:
    """Asks an interpreter for its versions. Raises InterpreterError where it does not answer."""
    try:
        output = run([python, "-c", PROBE])
    except (ProgramMissing, ProgramTimeout) as error:
        raise InterpreterError(
            _("{python} cannot be used as Python: {error}").format(python=python, error=error)
        ) from error
    try:
        answer = json.loads(output.stdout)
        version = answer["python_version"]
        return TorchFacts(
            python,
            (version[0], version[1], version[2]),
            answer["version"],
            answer["cuda"],
            answer["numpy_version"],
            tuple(answer.get("torchrun", ())),
        )
    except (ValueError, LookupError, TypeError) as error:
        words = (output.stderr or output.stdout).strip().splitlines()[-1:] or [f"exit code {output.code}"]
        raise InterpreterError(
            _("{python} does not answer as Python does: {words}").format(python=python, words=words[0])
        ) from error


INSTALLED = """
import json
from importlib import metadata
print(json.dumps({each.metadata["Name"]: each.version for each in metadata.distributions() if each.metadata["Name"]}))
"""


def installed(python: str) -> dict[str, str] | None:
    """The distributions in an interpreter with their versions, None where it does not answer."""
    try:
        answer = json.loads(run([python, "-I", "-c", INSTALLED]).stdout)
    except (ProgramMissing, ProgramTimeout, ValueError):
        return None
    return {str(name): str(version) for name, version in answer.items()} if isinstance(answer, dict) else None


def release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: "2.13.0+cpu" and "2.13.0a0" are (2, 13)."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def _candidates(project: Path, folder: Path, environ: Mapping[str, str], own: str) -> Iterator[str]:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if environ.get(variable):
            yield str(Path(environ[variable], "bin", "python"))
    for place in (project, folder):
        for name in (".venv", "venv"):
            python = place / name / "bin" / "python"
            if python.exists():
                yield str(python)
    yield own
