"""Graphics cards by name: what ``torch.cuda.get_device_properties`` says of them and what they can do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any

DEFAULT_GPU = "a100-sxm-80"

MIB = 1 << 20

# Where no report of a card's memory is known: the share of the marketed size that cards without ECC show.
_ASSUMED_SHARE = 0.975


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """One card. None means unknown.

    ``memory_bytes`` is what the device reports as its total memory, ``memory_source`` who saw that (an
    assumption says so). ``flops_per_s`` is dense and by dtype (float32, tf32, float16, bfloat16, float8, and
    float16_acc16 for accumulation in half precision). ``pcie_bytes_per_s`` counts one direction,
    ``nvlink_bytes_per_s`` the sum of both. ``context_bytes`` is the range seen of what a process holds beside
    PyTorch's own memory.
    """

    key: str
    name: str
    aliases: tuple[str, ...]
    arch: str
    capability: tuple[int, int]
    multi_processor_count: int
    memory_bytes: int
    memory_source: str
    bandwidth_bytes_per_s: float
    flops_per_s: Mapping[str, float] = field(hash=False)
    boost_clock_hz: float | None
    l2_bytes: int | None
    pcie_generation: int | None
    pcie_lanes: int | None
    pcie_bytes_per_s: float | None
    nvlink_bytes_per_s: float | None
    tdp_w: int | None
    context_bytes: tuple[int, int] | None
    sources: tuple[str, ...]
    note: str = ""

    @property
    def assumed_context_bytes(self) -> int:
        """What a process holds beside PyTorch's memory: the most that was seen, else 3.75 MiB a multiprocessor."""
        if self.context_bytes is not None:
            return self.context_bytes[1]
        return self.multi_processor_count * 15 * MIB // 4


class UnknownGpu(Exception):
    """A name that is in no row of the table; ``nearest`` are the keys that look most like it."""

    def __init__(self, name: str, nearest: tuple[str, ...]) -> None:
        super().__init__(f"no GPU named {name!r} is known; the nearest names are {', '.join(nearest)}")
        self.name = name
        self.nearest = nearest


def names() -> tuple[str, ...]:
    """The keys of all known cards, oldest family first."""
    return tuple(spec.key for spec in _specs())


def lookup(name: str) -> GpuSpec:
    """The card of that key, device name or alias: case, spaces, dashes and the maker's name do not matter.

    Raises UnknownGpu with the nearest keys.
    """
    wanted = _plain(name)
    table = _by_plain_name()
    if wanted in table:
        return table[wanted]
    best: dict[str, float] = {}
    for known, spec in table.items():
        ratio = SequenceMatcher(None, wanted, known).ratio()
        best[spec.key] = max(ratio, best.get(spec.key, 0.0))
    raise UnknownGpu(name, tuple(sorted(best, key=lambda key: -best[key])[:3]))


def _plain(name: str) -> str:
    """``NVIDIA A100-SXM4-80GB`` and ``a100 sxm 80`` become ``a100sxm80``."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    return "".join(
        re.sub(r"^sxm\d$", "sxm", re.sub(r"^(\d+)gb$", r"\1", word))
        for word in words
        if word not in ("nvidia", "tesla", "geforce", "gpu")
    )


@cache
def _specs() -> tuple[GpuSpec, ...]:
    text = Path(__file__).with_name("data").joinpath("gpus.json").read_text(encoding="utf-8")
    return tuple(_spec(row) for row in json.loads(text)["rows"])


@cache
def _by_plain_name() -> dict[str, GpuSpec]:
    table: dict[str, GpuSpec] = {}
    for spec in _specs():
        for name in (spec.key, spec.name, *spec.aliases):
            other = table.setdefault(_plain(name), spec)
            if other is not spec:
                raise ValueError(f"data/gpus.json: {name!r} names both {other.key} and {spec.key}")
    return table


def _spec(row: Mapping[str, Any]) -> GpuSpec:
    memory_bytes, memory_source = _memory(row)
    context = row["ctx_overhead_mib_observed"]
    tflops = {
        "float32": row["fp32_tflops"],
        "tf32": row["tf32_tflops_dense"],
        "float16": row["fp16_tflops_dense"],
        "bfloat16": row["bf16_tflops_dense"],
        "float8": row["fp8_tflops_dense"],
        "float16_acc16": row["fp16_tflops_fp16acc_dense"],
    }
    return GpuSpec(
        key=row["key"],
        name=row["name"],
        aliases=tuple(row["aliases"]),
        arch=row["arch"],
        capability=(row["capability"][0], row["capability"][1]),
        multi_processor_count=row["multi_processor_count"],
        memory_bytes=memory_bytes,
        memory_source=memory_source,
        bandwidth_bytes_per_s=row["mem_bw_gb_s"] * 1e9,
        flops_per_s={dtype: value * 1e12 for dtype, value in tflops.items() if value is not None},
        boost_clock_hz=_scaled(row["boost_mhz"], 1e6),
        l2_bytes=None if row["l2_mb"] is None else int(row["l2_mb"] * MIB),
        pcie_generation=row["pcie_gen"],
        pcie_lanes=row["pcie_lanes"],
        pcie_bytes_per_s=_scaled(row["pcie_gb_s_one_way_theoretical"], 1e9),
        nvlink_bytes_per_s=_scaled(row["nvlink_gb_s_bidir_total"], 1e9),
        tdp_w=row["tdp_w"],
        context_bytes=None if context is None else (context[0] * MIB, context[1] * MIB),
        sources=tuple(row["sources"]),
        note=row["note"],
    )


def _memory(row: Mapping[str, Any]) -> tuple[int, str]:
    seen_mib = row["total_memory_mib"]
    if seen_mib is not None:
        return seen_mib * MIB, row["total_memory_source"]
    marketed = row["memory_gb_marketing"]
    source = f"assumed: {_ASSUMED_SHARE:.1%} of the marketed {marketed} GiB"
    return int(marketed * 1024 * _ASSUMED_SHARE) * MIB, source


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else value * unit
