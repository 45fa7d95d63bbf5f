"""Who may import whom, beside what the import-linter contract says of the layers."""

import ast
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "torchport"
INSIDE = sorted(SOURCE.joinpath("inside").rglob("*.py"))
# What may be seen in the user's process, where nothing of the tool's own environment is.
LENT = (
    "torch",
    "torchgen",
    "numpy",
    "torchport",
    "torchport.inside",
    "torchport.record",
    "torchport.hardware",
)


def imported(path):
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            yield node.module


def allowed(name):
    if name.split(".")[0] == "torchport":
        return name == "torchport" or name.startswith(LENT[4:])
    return name.split(".")[0] in {*sys.stdlib_module_names, *LENT}


@pytest.mark.parametrize("path", INSIDE, ids=lambda path: str(path.relative_to(SOURCE)))
def test_inside_needs_torch_and_the_standard_library(path):
    assert [name for name in imported(path) if not allowed(name)] == []


@pytest.mark.parametrize(
    "part", ["record.py", "hardware", "finding.py", "facts.py", "plan.py", "resolved.py", "project.py", "survey.py"]
)
def test_nouns_need_the_standard_library(part):
    root = SOURCE / part
    for path in root.rglob("*.py") if root.is_dir() else [root]:
        names = [name for name in imported(path) if name.split(".")[0] not in {*sys.stdlib_module_names, "torchport"}]
        assert names == []


def test_every_file_is_small():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCE.rglob("*.py")}
    assert {str(path): length for path, length in lengths.items() if length > 400} == {}
