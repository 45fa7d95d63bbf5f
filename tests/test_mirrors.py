"""[tool.torchport.mirrors]: presets by name, addresses, folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchport.mirrors import KEYS, PRESETS, MirrorError, Mirrors, chosen

HERE = Path("/project")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, Mirrors()),
        ({"pypi": "https://x.org/simple/"}, Mirrors(pypi="https://x.org/simple")),
        ({"registry": "registry.local"}, Mirrors(registry="registry.local")),
        ({"torch": "https://x.org/whl"}, Mirrors(torch="https://x.org/whl")),
        ({"torch": "flat+https://x.org/wheels"}, Mirrors(torch="https://x.org/wheels", torch_flat=True)),
        ({"torch": "./wheels"}, Mirrors(torch="/project/wheels", torch_flat=True)),
        ({"torch": "/opt/wheels"}, Mirrors(torch="/opt/wheels", torch_flat=True)),
        (
            {"pypi": "tsinghua", "torch": "sjtu"},
            Mirrors(
                pypi="https://pypi.tuna.tsinghua.edu.cn/simple",
                torch="https://mirror.sjtu.edu.cn/pytorch-wheels",
                torch_flat=True,
                untested=("tsinghua", "sjtu"),
            ),
        ),
    ],
)
def test_chosen(settings: dict[str, str], expected: Mirrors) -> None:
    assert chosen(settings, HERE) == expected


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"pypi": "tsingua"}, "tsinghua"),
        ({"torch": "tsinghua"}, "aliyun, nju, sjtu"),
        ({"pypi": "nonsense"}, "known"),
    ],
)
def test_mistakes(settings: dict[str, str], says: str) -> None:
    with pytest.raises(MirrorError) as raised:
        chosen(settings, HERE)
    assert says in str(raised.value)


def test_presets_mirror_what_there_is() -> None:
    assert all(set(row) <= set(KEYS) and row for row in PRESETS.values())
