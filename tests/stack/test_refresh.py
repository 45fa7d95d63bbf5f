"""The tool that keeps the release table: what it reads from metadata and wheels, and what it tells."""

import importlib.util
import json
import zipfile
from pathlib import Path

import pytest

from torchport.stack.releases import FILE, parse

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("refresh_compat", ROOT / "tools" / "refresh_compat.py")
tool = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tool)

NEW = [
    "filelock",
    'cuda-toolkit[cublas,cudart]==13.0.3; platform_system == "Linux"',
    'nvidia-cudnn-cu13==9.24.0.43; platform_system == "Linux"',
    'nvidia-nccl-cu13==2.30.7; platform_system == "Linux"',
    'triton~=3.8.0; platform_system == "Linux" and python_version < "3.15"',
    'pyyaml; extra == "pyyaml"',
]
OLD = [
    'nvidia-cuda-runtime-cu12 (==12.1.105) ; platform_system == "Linux" and platform_machine == "x86_64"',
    'nvidia-cudnn-cu12 (==8.9.2.26) ; platform_system == "Linux" and platform_machine == "x86_64"',
]


@pytest.fixture
def document():
    return json.loads(FILE.read_text(encoding="utf-8"))


def test_the_file_is_as_the_tool_writes_it(document):
    assert tool.written(document) == FILE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("lines", "processor", "expected"),
    [
        (NEW, "x86_64", ["13.0.3", "9.24.0.43", "2.30.7", "~=3.8.0", "cu130"]),
        (NEW, "aarch64", ["13.0.3", "9.24.0.43", "2.30.7", "~=3.8.0", "cu130"]),
        (OLD, "x86_64", [None, "8.9.2.26", None, None, "cu121"]),
        (OLD, "aarch64", [None, None, None, None, None]),
        (["filelock"], "x86_64", [None, None, None, None, None]),
    ],
)
def test_requirements(lines, processor, expected):
    assert list(tool.read_requirements(lines, processor).values()) == expected


@pytest.mark.parametrize(
    ("cuda", "library", "expected"),
    [
        ("'13.0'", b"\0junk sm_75 sm_80 sm_90a compute_120\0", ("cu130", ["7.5", "8.0", "9.0"], "12.0")),
        ("'12.6'", b"..sm_50 sm_60..", ("cu126", ["5.0", "6.0"], None)),
        ("None", b"no codes, one sm_70 alone", ("cpu", None, None)),
    ],
)
def test_an_opened_wheel(tmp_path, cuda, library, expected):
    path = tmp_path / "torch-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("torch/version.py", f"__version__ = '1'\ncuda = {cuda}\n")
        archive.writestr("torch/lib/libtorch_python.so", library)
    assert tuple(tool.read_wheel(path).values()) == expected


def test_what_is_as_the_table_says_tells_nothing(document):
    build = {"toolkit": "13.0.3", "cudnn": "9.24.0.43", "nccl": "2.30.7"}
    release = {"pypi": {"x86_64": "cu130", "aarch64": "cu130"}, "wheel_mb": 555, "triton": "~=3.8.0"}
    assert list(tool.merge(document, "2.14.1", release, build)) == []


def test_a_change_is_told_and_the_rest_stays(document):
    release = {"pypi": {"x86_64": "cu130"}, "wheel_mb": None}
    told = list(tool.merge(document, "2.14.1", release, {"cudnn": "9.25.0.1", "toolkit": None}))
    assert told == ['torch 2.14.1+cu130: cudnn "9.24.0.43" → "9.25.0.1"']
    assert document["releases"]["2.14.1"]["wheel_mb"] == 555


def test_a_new_release_makes_a_table_that_loads(document):
    release = {"date": "2027-01-01", "pythons": ["3.12"], "pypi": {"x86_64": "cu132", "aarch64": "cu132"}}
    told = list(tool.merge(document, "2.16.0", release, {"cudnn": "9.30", "x86_64": ["8.0"], "ptx": None}))
    assert any("by hand" in line for line in told)
    build = parse(document).builds[-1]
    assert (build.torch, build.backend, build.floor, build.strict) == ("2.16.0", "cu132", "580.65.06", "595.45.04")
    assert (build.architectures["x86_64"], build.evidence) == (("8.0",), "binary")


def test_only_what_is_newer_is_looked_at():
    assert tool.newer(["2.9.0", "2.16.1", "2.16.0"], ["2.14.1", "2.15.0"]) == ["2.16.0", "2.16.1"]


@pytest.mark.full
def test_the_index_says_what_the_table_has(capsys):
    """The real index, for the release before the newest: nothing has changed under its version."""
    assert tool.main(["2.14.1"]) == 0
    assert capsys.readouterr().out == ""
