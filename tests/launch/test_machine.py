"""Real cards are seen without a driver library: in folders that look like the system's."""

import pytest

from torchport.launch.machine import real_gpus


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
