"""Facts of the table that are told otherwise elsewhere, or that changed under a version."""

from __future__ import annotations

import json

import pytest

from torchport.hardware.gpus import UnknownGpu, names
from torchport.stack.architectures import Code, code_for
from torchport.stack.cards import card
from torchport.stack.releases import FILE, Build, cuda_of, numbers, table

BUILDS = {f"{each.torch}+{each.backend}": each for each in table().builds}


def runs(build: Build, capability: str, processor: str = "x86_64") -> Code:
    codes = build.architectures[processor]
    assert codes is not None
    return code_for(capability, codes, build.ptx, cuda_of(build.backend), table().rule)


@pytest.mark.parametrize(
    ("build", "capability", "expected"),
    [
        ("1.12.1+cu102", "8.0", Code.NONE),  # what PyPI has of 1.12 runs on no Ampere, and has no PTX
        ("1.12.1+cu102", "8.6", Code.NONE),
        ("1.12.1+cu102", "7.5", Code.NATIVE),  # by the code of 7.0
        ("2.8.0+cu128", "7.0", Code.NATIVE),  # whatever the notes of 2.8 say of Volta
        ("2.10.0+cu128", "7.0", Code.NATIVE),
        ("2.11.0+cu128", "7.0", Code.NONE),  # though its own PYTORCH_RELEASES_CODE_CC lists it
        ("2.11.0+cu130", "11.0", Code.NONE),  # and that, for x86_64
        ("2.7.0+cu128", "12.0", Code.NATIVE),
        ("2.7.0+cu126", "12.0", Code.NONE),
        ("2.15.0+cu132", "10.3", Code.NATIVE),  # B300
        ("2.15.0+cu132", "12.1", Code.NATIVE),  # GB10
        ("2.15.0+cu132", "8.9", Code.NATIVE),
        ("2.7.0+cu128", "13.0", Code.PTX),
        ("2.12.0+cu130", "13.0", Code.NONE),  # nothing has PTX any more
    ],
)
def test_what_runs_where(build: str, capability: str, expected: Code) -> None:
    assert runs(BUILDS[build], capability) is expected


@pytest.mark.parametrize(
    ("build", "capability", "expected"),
    [
        ("2.14.1+cu130", "8.7", Code.NONE),  # Orin does not run the code of 8.0
        ("2.14.1+cu132", "8.7", Code.NATIVE),  # until CUDA 13.2
        ("2.14.1+cu130", "11.0", Code.NATIVE),
        ("2.14.1+cu130", "10.1", Code.NATIVE),  # Thor's name before CUDA 13
        ("2.14.1+cu126", "9.0", Code.NATIVE),
    ],
)
def test_what_runs_on_boards(build: str, capability: str, expected: Code) -> None:
    assert runs(BUILDS[build], capability, "aarch64") is expected


def test_boards_get_cuda_from_pypi_since_2_11() -> None:
    for version, release in table().releases.items():
        expected = "cpu" if numbers(version) < (2, 11) else release.pypi["x86_64"]
        assert release.pypi["aarch64"] == expected


def test_2_10_0_was_uploaded_twice() -> None:
    assert [version for version, release in table().releases.items() if release.uploaded] == ["2.10.0"]


def test_files_count_and_not_what_the_metadata_says_of_python() -> None:
    assert "3.8" not in table().releases["2.5.1"].pythons


@pytest.mark.parametrize("claim", ["2.8.0+cu118", "2.8.0+cu121", "2.9.0+cu118", "2.9.0+cu121", "2.9.1+cu121"])
def test_builds_that_pages_speak_of_and_nobody_made(claim: str) -> None:
    assert claim not in BUILDS


def test_the_last_torch_of_each_cuda() -> None:
    last: dict[str, str] = {}
    for each in table().builds:
        if each.seen:
            last[each.backend] = each.torch
    assert {tag: last[tag] for tag in ("cu102", "cu118", "cu121", "cu124", "cu126", "cu128", "cu129")} == {
        "cu102": "1.12.1",
        "cu118": "2.7.1",
        "cu121": "2.5.1",
        "cu124": "2.6.0",
        "cu126": "2.14.1",
        "cu128": "2.11.0",
        "cu129": "2.13.0",
    }


def test_what_pypi_gives_needs_r580_since_2_11() -> None:
    floors = {
        version: BUILDS[f"{version}+{release.pypi['x86_64']}"].floor for version, release in table().releases.items()
    }
    assert {version: floor for version, floor in floors.items() if floor == "580.65.06"}.keys() == {
        version for version in floors if numbers(version) >= (2, 11)
    }


def test_torchtext_ended_and_torchaudio_goes_on_unchanged() -> None:
    releases = table().releases
    assert [v for v, release in releases.items() if release.companions["torchtext"]][-1] == "2.3.1"
    assert releases["2.14.1"].companions["torchaudio"] == ("2.11.1",)


def test_every_fact_has_a_source_and_every_source_a_level() -> None:
    document = json.loads(FILE.read_text(encoding="utf-8"))
    levels, sources = document["evidence"], document["sources"]
    assert all(row["evidence"] in levels and row["what"] for row in sources.values())
    for row in document["builds"]:
        assert row["source"]["published"] and row["source"]["archs"]
        assert {name for part in row["source"].values() for name in part} <= set(sources)
    for name in ("releases", "torchvision", "torchaudio", "torchtext"):
        assert all(row["source"] and set(row["source"]) <= set(sources) for row in document[name].values())


@pytest.mark.parametrize(
    ("name", "capability", "processor"),
    [
        ("GTX 1080", "6.1", None),
        ("NVIDIA GeForce RTX 3050", "8.6", None),
        ("Quadro RTX 6000", "7.5", None),
        ("RTX 2000 Ada Generation", "8.9", None),
        ("RTX A2000", "8.6", None),
        ("DGX Spark", "12.1", "aarch64"),
        ("jetson agx orin", "8.7", "aarch64"),
        ("GH200 480GB", "9.0", "aarch64"),
        ("a10g", "8.6", None),
        ("sm_86", "8.6", None),
        ("8.9", "8.9", None),
    ],
)
def test_cards_by_name(name: str, capability: str, processor: str | None) -> None:
    found = card(name, table())
    assert (found.capability, found.processor) == (capability, processor)


def test_the_families_agree_with_the_table_of_cards() -> None:
    for name in names():
        known = card(name, table())
        assert card(known.capability, table()).capability == known.capability


@pytest.mark.parametrize("name", ["rtx 9999x", "120", "RTX 4000", "", "voodoo2"])
def test_a_name_that_says_nothing_is_refused(name: str) -> None:
    with pytest.raises(UnknownGpu):
        card(name, table())
