"""Real cards are seen without a driver library: in folders that look like the system's."""

import pytest

from torchport.facts import DriverFacts
from torchport.launch.machine import capability, driver, real_gpus


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, ()),
        ({"dev/nvidiactl": "", "dev/nvidia-uvm": ""}, ()),
        ({"dev/nvidia0": "", "dev/nvidia1": "", "dev/nvidiactl": ""}, ("/dev/nvidia0", "/dev/nvidia1")),
        (
            {
                "proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: \t\t NVIDIA H200\nIRQ:   5\n",
                "dev/nvidia0": "",
            },
            ("NVIDIA H200",),
        ),
        ({"dev/kfd": ""}, ("/dev/kfd",)),
        ({"dev/dxg": ""}, ()),
        ({"dev/dxg": "", "usr/lib/wsl/lib/libcuda.so.1": ""}, ("/dev/dxg",)),
    ],
)
def test_real_gpus(tmp_path, files, expected):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert real_gpus(tmp_path) == expected


KERNEL = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\nGCC version: 12.3.0\n"


def program(folder, text):
    """A program that prints that text, as NVIDIA's tool would."""
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\nprintf '{text}'\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("kernel", "tool", "expected"),
    [
        (KERNEL, "", "580.95.05"),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.82.01  Wed\n", "", "470.82.01"),
        (None, "535.104.05\\n535.104.05\\n", "535.104.05"),
        (None, "No devices were found\\n", None),
        ("something else", "", None),
    ],
)
def test_driver(tmp_path, kernel, tool, expected):
    if kernel is not None:
        (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
        (tmp_path / "proc/driver/nvidia/version").write_text(kernel)
    assert driver(tmp_path, program(tmp_path, tool)) == (DriverFacts(expected) if expected else None)


def test_no_driver(tmp_path):
    assert driver(tmp_path, str(tmp_path / "missing")) is None
    assert capability(str(tmp_path / "missing")) is None


@pytest.mark.parametrize(
    ("tool", "expected"), [("8.9\\n8.9\\n", "8.9"), ("12.0\\n", "12.0"), ("[N/A]\\n", None), ("", None)]
)
def test_capability(tmp_path, tool, expected):
    assert capability(program(tmp_path, tool)) == expected
