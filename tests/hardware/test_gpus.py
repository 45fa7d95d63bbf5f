"""The table of cards: what names find, what units the figures have."""

from __future__ import annotations

import pytest

from torchport.hardware.gpus import DEFAULT_GPU, MIB, UnknownGpu, lookup, names

FOUND = [
    ("a100", "a100-sxm-80"),
    ("A100-SXM4-80GB", "a100-sxm-80"),
    ("NVIDIA A100-SXM4-80GB", "a100-sxm-80"),
    ("a100-80gb", "a100-sxm-80"),
    ("A100 40GB", "a100-pcie-40"),
    ("nvidia a100 80gb pcie", "a100-pcie-80"),
    ("rtx 4090", "rtx4090"),
    ("RTX4090", "rtx4090"),
    ("4090", "rtx4090"),
    ("NVIDIA GeForce RTX 4090", "rtx4090"),
    ("geforce-rtx_2080-ti", "rtx2080ti"),
    ("Tesla T4", "t4"),
    ("t4", "t4"),
    ("h100", "h100-sxm"),
    ("H100-80GB", "h100-sxm"),
    ("NVIDIA H100 80GB HBM3", "h100-sxm"),
    ("v100 32gb", "v100-sxm2-32"),
    ("V100-SXM2-16GB", "v100-sxm2-16"),
    ("RTX 4070 Ti SUPER", "rtx4070tisuper"),
    ("RTX A6000", "rtx-a6000"),
    ("l40s", "l40s"),
]


@pytest.mark.parametrize(("name", "key"), FOUND)
def test_found(name: str, key: str) -> None:
    assert lookup(name).key == key


@pytest.mark.parametrize("key", names())
def test_each_row(key: str) -> None:
    spec = lookup(key)
    assert lookup(spec.name) is spec
    assert all(lookup(alias) is spec for alias in spec.aliases)
    assert 4 << 30 < spec.memory_bytes < 1 << 40
    assert 1e11 < spec.bandwidth_bytes_per_s < 1e13
    assert all(1e12 < flops < 1e17 for flops in spec.flops_per_s.values())
    assert (3, 0) <= spec.capability <= (20, 9)
    assert spec.memory_source and spec.sources
    assert hash(spec) == hash(lookup(key))


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("a1000", "a100-sxm-80"),
        ("rtx 4090 laptop", "rtx4090"),
        ("h100x", "h100-sxm"),
        ("5090ti", "rtx5090"),
        ("", None),
    ],
)
def test_unknown_names_answer_with_the_nearest(name: str, near: str | None) -> None:
    with pytest.raises(UnknownGpu) as caught:
        lookup(name)
    assert caught.value.name == name
    assert len(caught.value.nearest) == 3 and set(caught.value.nearest) <= set(names())
    assert near is None or near in caught.value.nearest
    assert str(caught.value).startswith(f"no GPU named {name!r} is known; the nearest names are ")


def test_units() -> None:
    spec = lookup("a100")
    assert spec.memory_bytes == 81152 * MIB
    assert spec.capability == (8, 0)
    assert spec.flops_per_s["float32"] == pytest.approx(19.49e12)
    assert spec.l2_bytes == 40 * MIB
    assert spec.nvlink_bytes_per_s == pytest.approx(600e9)
    assert spec.context_bytes == (492 * MIB, 492 * MIB)


def test_an_assumed_figure_says_so() -> None:
    assert lookup("rtx3080").memory_source == "assumed: 97.5% of the marketed 10 GiB"


def test_the_default_is_a_key() -> None:
    assert lookup(DEFAULT_GPU).key == DEFAULT_GPU
