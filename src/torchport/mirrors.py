"""Mirrors: where images, system packages, Python packages and torch's wheels are fetched, in place of their homes."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchport.text import _

# What mirrors call themselves. "flat+" is a page that lists all wheels of a CUDA tag, not an index with a page for
# each package. None of them has answered from where this table was written: each is untested.
PRESETS: dict[str, dict[str, str]] = {
    "aliyun": {
        "registry": "registry.cn-hangzhou.aliyuncs.com",
        "apt": "https://mirrors.aliyun.com",
        "pypi": "https://mirrors.aliyun.com/pypi/simple",
        "torch": "flat+https://mirrors.aliyun.com/pytorch-wheels",
    },
    "huawei": {
        "registry": "swr.cn-north-4.myhuaweicloud.com",
        "apt": "https://repo.huaweicloud.com",
        "pypi": "https://repo.huaweicloud.com/repository/pypi/simple",
    },
    "nju": {
        "registry": "docker.nju.edu.cn",
        "apt": "https://mirror.nju.edu.cn",
        "pypi": "https://mirror.nju.edu.cn/pypi/web/simple",
        "torch": "https://mirror.nju.edu.cn/pytorch/whl",
    },
    "sjtu": {
        "registry": "docker.mirrors.sjtug.sjtu.edu.cn",
        "apt": "https://mirror.sjtu.edu.cn",
        "pypi": "https://mirror.sjtu.edu.cn/pypi/web/simple",
        "torch": "flat+https://mirror.sjtu.edu.cn/pytorch-wheels",
    },
    "tencent": {
        "registry": "ccr.ccs.tencentyun.com",
        "apt": "https://mirrors.cloud.tencent.com",
        "pypi": "https://mirrors.cloud.tencent.com/pypi/simple",
    },
    "tsinghua": {
        "apt": "https://mirrors.tuna.tsinghua.edu.cn",
        "pypi": "https://pypi.tuna.tsinghua.edu.cn/simple",
    },
    "ustc": {
        "registry": "docker.mirrors.ustc.edu.cn",
        "apt": "https://mirrors.ustc.edu.cn",
        "pypi": "https://mirrors.ustc.edu.cn/pypi/simple",
    },
}
KEYS = ("registry", "apt", "pypi", "torch")


class MirrorError(Exception):
    """A mirror that nobody knows, or that has no such thing."""


@dataclass(frozen=True, slots=True)
class Mirrors:
    """Addresses without a slash at the end; None is the home of each. ``registry`` is what stands before an image's
    name. ``torch_flat``: a page, or a folder, that lists wheels. ``untested`` are the names of presets in use.
    """

    registry: str | None = None
    apt: str | None = None
    pypi: str | None = None
    torch: str | None = None
    torch_flat: bool = False
    untested: tuple[str, ...] = field(default=())


def chosen(settings: Mapping[str, str], folder: Path) -> Mirrors:
    """The table [tool.torchport.mirrors]: each value is a preset's name, an address, or a folder seen from ``folder``.

    Raises MirrorError, which names the nearest preset.
    """
    found: dict[str, str] = {}
    untested = []
    for key, value in settings.items():
        if value in PRESETS:
            if key not in PRESETS[value]:
                have = ", ".join(name for name, row in PRESETS.items() if key in row)
                raise MirrorError(
                    _("[tool.torchport.mirrors] {key}: {name} mirrors no {key}; these do: {have}").format(
                        key=key, name=value, have=have
                    )
                )
            untested.append(value)
            found[key] = PRESETS[value][key]
        elif "/" in value or (key == "registry" and "." in value):
            found[key] = value
        else:
            near = difflib.get_close_matches(value, PRESETS, 1, 0.4) or list(PRESETS)
            raise MirrorError(
                _(
                    "[tool.torchport.mirrors] {key} = {value!r}: no address and no known mirror; known are {near}"
                ).format(key=key, value=value, near=", ".join(near))
            )
    torch = found.get("torch")
    flat = torch is not None and (torch.startswith("flat+") or "://" not in torch)
    if torch is not None:
        torch = torch.removeprefix("flat+")
        found["torch"] = torch if "://" in torch else str(folder / torch)
    plain = {key: value.rstrip("/") for key, value in found.items()}
    return Mirrors(**plain, torch_flat=flat, untested=tuple(dict.fromkeys(untested)))
