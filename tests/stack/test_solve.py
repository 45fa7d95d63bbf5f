"""Which stack a card, a driver and a project get, worked out by hand from the release table of torch, and why."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from torchport.resolved import Asked, Gate, Resolved, Target, Wanted
from torchport.stack.cards import card
from torchport.stack.releases import cuda_of, numbers, table
from torchport.stack.solve import solve


def choose(
    gpu: str | None = None,
    driver: str | None = None,
    *asked: str,
    strict: bool = False,
    cuda: str | None = None,
    python: str | None = None,
    now: str | None = None,
    platform: str | None = None,
    wanted: Wanted | None = None,
) -> Resolved:
    found = card(gpu, table()) if gpu else None
    target = Target(
        platform or f"linux-{(found and found.processor) or 'x86_64'}",
        gpu,
        found and found.capability,
        driver,
        cuda,
        strict,
        now,
    )
    lines = tuple(Asked(text.split("=")[0].split("<")[0].split(">")[0], text, "requirements.txt") for text in asked)
    pythons = (Asked("python", python, ".python-version"),) if python else ()
    wish = wanted or Wanted()
    return solve(Wanted((*wish.asked, *lines), pythons, wish.cuda, wish.locked, api=wish.api), target, table())


@dataclass(frozen=True)
class Case:
    """``gets`` is torch+backend and Python; ``out`` builds that would have gone first, with the kind of reason."""

    gpu: str
    driver: str
    asked: str
    gets: str
    out: str = ""
    options: tuple[tuple[str, object], ...] = ()


STRICT = (("strict", True),)
CASES = (
    # The newest torch of all is 2.15.0, whose only build that anybody has seen is cu132: R580 and sm_75 upwards.
    Case("rtx-4090", "595.71", "torch", "2.15.0+cu132 3.12"),
    Case("rtx-5090", "580.65.06", "torch", "2.15.0+cu132 3.12"),
    Case("b300", "580.95.05", "torch", "2.15.0+cu132 3.12"),  # 10.3 runs the code of 10.0
    Case("h200", "580", "torch", "2.15.0+cu132 3.12"),  # a branch alone stands for all of its drivers
    Case("gb10", "580.95.05", "torch", "2.15.0+cu132 3.12"),  # 12.1 runs the code of 12.0; the board is aarch64
    Case("gh200-96", "580.65.06", "torch", "2.15.0+cu132 3.12"),
    Case("t4", "580.65.06", "torch", "2.15.0+cu132 3.12"),
    # CUDA 13 wants R580: older drivers get the last torch with a CUDA 12 build that has the card's code.
    Case("a100", "525.60.13", "torch", "2.14.1+cu126 3.12", "2.15.0+cu132 driver, 2.14.1+cu130 driver"),
    Case("h100", "570.26", "torch", "2.14.1+cu126 3.12", "2.15.0+cu132 driver"),
    Case("rtx-4090", "550.54.14", "torch torchvision", "2.14.1+cu126 3.12", "2.15.0+cu132 driver"),
    # cu126 has nothing for Blackwell; the last cu129 is 2.13.0.
    Case("rtx-5090", "570.26", "torch", "2.13.0+cu129 3.12", "2.14.1+cu126 architecture, 2.14.1+cu130 driver"),
    Case("b200", "575.51.03", "torch", "2.13.0+cu129 3.12", "2.14.1+cu126 architecture"),
    # One second below the floor of CUDA 12: CUDA 11 it is, last built for 2.7.1.
    Case("a100", "525.60.12", "torch", "2.7.1+cu118 3.12", "2.14.1+cu126 driver"),
    Case("rtx-3090", "470.42.01", "torch", "2.7.1+cu118 3.12", "2.8.0+cu126 driver"),
    Case("k80", "470.42.01", "torch", "2.7.1+cu118 3.12", "2.7.1+cu126 driver"),
    Case("k80", "535.54.03", "torch", "2.7.1+cu118 3.12", "2.14.1+cu126 architecture"),
    # Volta and Pascal have left the CUDA 13 builds, not cu126.
    Case("v100", "535.54.03", "torch", "2.14.1+cu126 3.12", "2.15.0+cu132 architecture, 2.14.1+cu130 architecture"),
    Case("v100", "580.65.06", "torch", "2.14.1+cu126 3.12", "2.15.0+cu132 architecture"),
    Case("gtx 1080", "580.65.06", "torch", "2.14.1+cu126 3.12", "2.15.0+cu132 architecture"),
    Case("p100", "535.54.03", "torch==2.8.0", "2.8.0+cu126 3.12", "2.8.0+cu128 architecture"),
    Case("v100", "570.26", "torch==2.8.0", "2.8.0+cu128 3.12"),  # the notes of 2.8 say Volta is gone; the wheel has it
    Case("v100", "570.26", "torch==2.11.0", "2.11.0+cu126 3.12", "2.11.0+cu128 architecture"),
    # The driver of the minor version, as --strict wants it.
    Case("v100", "535.54.03", "torch", "2.7.1+cu118 3.12", "2.14.1+cu126 driver", STRICT),
    Case("a100", "525.60.13", "torch", "2.7.1+cu118 3.12", "2.5.1+cu121 driver", STRICT),
    Case("rtx-5090", "570.26", "torch", "2.11.0+cu128 3.12", "2.13.0+cu129 driver", STRICT),
    Case("rtx-5090", "580.65.06", "torch", "2.14.1+cu130 3.12", "2.15.0+cu132 driver", STRICT),
    Case("rtx-3090", "470.42.01", "torch", "1.12.1+cu113 3.10", "1.12.1+cu116 driver", STRICT),
    # What PyPI has of 1.12 is cu102, without code for Ampere.
    Case("rtx-3090", "580.65.06", "torch==1.12.1", "1.12.1+cu116 3.10", "1.12.1+cu102 architecture"),
    Case("v100", "580.65.06", "torch==1.12.1", "1.12.1+cu102 3.10"),
    Case("rtx-5090", "580.65.06", "torch<2.8", "2.7.1+cu128 3.12", "2.7.1+cu126 architecture"),
    # Boards with a processor of their own: no CUDA wheel on PyPI before 2.11, and code for Orin from CUDA 13.2 on.
    Case("gh200", "550.54.14", "torch<2.11", "2.10.0+cu126 3.12", "2.10.0+cu128 cuda", (("cuda", "12.6"),)),
    Case("gh200", "570.26", "torch==2.10.0", "2.10.0+cu128 3.12", "2.10.0+cu130 driver"),
    Case("jetson orin", "595.45.04", "torch<2.15", "2.14.1+cu132 3.12", "2.14.1+cu130 architecture"),
    Case("jetson thor", "580.65.06", "torch==2.13.0", "2.13.0+cu130 3.12", "2.13.0+cu126 architecture"),
    # Pairings, Python, and pins.
    Case("a100", "535.54.03", "torch torchtext", "2.3.1+cu121 3.12", "2.14.1+cu126 torchtext, 2.4.1+cu121 torchtext"),
    Case("a100", "535.54.03", "torch torchvision<0.20", "2.4.1+cu121 3.12", "2.14.1+cu126 torchvision"),
    Case(
        "t4",
        "550.54.14",
        "torch",
        "2.4.1+cu121 3.8",
        "2.14.1+cu126 python, 2.5.1+cu124 python",
        (("python", "==3.8.*"),),
    ),
    Case("rtx-4090", "595.71", "torch", "2.14.1+cu130 3.10", "2.15.0+cu132 python", (("python", "==3.10.*"),)),
    Case("rtx-4090", "595.71", "torch", "2.15.0+cu132 3.13", "", (("now", "3.13"), ("python", ">=3.9"))),
    Case("rtx-4090", "595.71", "torch", "2.15.0+cu132 3.15", "2.14.1+cu130 python", (("python", ">=3.15"),)),
    Case("a100", "535.54.03", "torch==2.0.1+cu118", "2.0.1+cu118 3.11", "2.0.1+cu117 torch"),
    Case("a100", "580.65.06", "torch", "2.14.1+cu126 3.12", "2.15.0+cu132 cuda", (("cuda", "12.6"),)),
    Case("a100", "580.65.06", "torch==2.6.*", "2.6.0+cu124 3.12"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.gpu}, {case.driver}, {case.asked}")
def test_what_they_get(case: Case) -> None:
    resolved = choose(case.gpu, case.driver, *case.asked.split(), **dict(case.options))
    assert resolved.stack is not None
    if case.gets.startswith("1.12.1+cu113"):
        # The PyPI build of that release runs nothing newer than Volta.
        assert "1.12.1+cu102 architecture" in reasons(resolved)
    assert f"{resolved.stack.torch}+{resolved.stack.backend} {resolved.stack.python}" == case.gets
    for line in filter(None, case.out.split(", ")):
        assert line in reasons(resolved)


def reasons(resolved: Resolved) -> set[str]:
    return {f"{each.torch}+{each.backend} {one.kind}" for each in resolved.rejected for one in each.reasons}


def test_every_build_is_chosen_thrown_out_for_a_reason_or_left_over() -> None:
    for case in CASES:
        resolved = choose(case.gpu, case.driver, *case.asked.split(), **dict(case.options))
        assert all(each.reasons for each in resolved.rejected)
        builds = {(each.torch, each.backend) for each in table().builds if each.backend != "cpu"}
        assert {(each.torch, each.backend) for each in resolved.rejected} < builds


def test_no_choice_breaks_what_the_table_says() -> None:
    """The rules once more, in other words, over many machines: driver, machine code, Python, torchvision."""
    builds = {(each.torch, each.backend): each for each in table().builds}
    for capability in ("3.7", "5.2", "6.1", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "12.0", "12.1"):
        for driver in (
            "450.80.02",
            "470.42.01",
            "525.60.13",
            "535.54.03",
            "550.54.14",
            "570.26",
            "580.65.06",
            "595.71",
        ):
            stack = choose(capability, driver, "torch", "torchvision").stack
            if stack is None:
                continue
            build = builds[stack.torch, stack.backend]
            assert build.floor is not None and numbers(build.floor) <= numbers(driver)
            majors = [numbers(code) for code in build.architectures["x86_64"] or ()]
            runs = any(code[0] == numbers(capability)[0] and code[1] <= numbers(capability)[1] for code in majors)
            assert runs or build.ptx
            assert stack.python in build.release.pythons
            vision = next(each.version for each in stack.packages if each.name == "torchvision")
            assert vision in build.release.companions["torchvision"]


@pytest.mark.parametrize(
    ("asked", "cuda", "offers"),
    [
        (("torch==2.9.*",), "12.1", ["2.9.1+cu126 cuda", "2.5.1+cu121 torch"]),
        (("torch==2.9.*",), "11.8", ["2.9.1+cu126 cuda", "2.7.1+cu118 torch"]),
        (("torch==2.8.0",), "12.1", ["2.8.0+cu126 cuda", "2.5.1+cu121 torch"]),
        (("torch==2.8.0",), "11.8", ["2.8.0+cu126 cuda", "2.7.1+cu118 torch"]),
        (("torch==2.99.0",), None, ["2.14.1+cu126 torch"]),
        (("torch==0.4.1.post2",), None, ["1.12.0+cu116 torch"]),
        (("torch==2.3.9",), None, ["2.4.0+cu121 torch"]),
        (("torch", "torchvision==0.1"), None, ["2.14.1+cu126 torchvision"]),
    ],
)
def test_what_was_never_built_gets_the_nearest(asked: tuple[str, ...], cuda: str | None, offers: list[str]) -> None:
    resolved = choose("a100", "535.54.03", *asked, cuda=cuda)
    assert resolved.stack is None
    assert [
        f"{each.stack.torch}+{each.stack.backend} {' '.join(one.kind for one in each.instead)}"
        for each in resolved.nearest
    ] == offers


def test_a_driver_too_old_for_all_is_told_what_it_would_have_to_be() -> None:
    near = choose("k80", "390.48", "torch").nearest
    assert [(each.stack.torch, each.stack.backend, each.stack.driver) for each in near] == [
        ("2.7.1", "cu118", "450.80.02")
    ]


def test_a_newer_driver_is_offered_where_it_alone_is_missing() -> None:
    upgrade = choose("a100", "535.54.03", "torch").upgrades[0]
    assert (upgrade.stack.torch, upgrade.stack.driver) == ("2.15.0", "580.65.06")
    assert choose("v100", "535.54.03", "torch").upgrades == ()  # no driver gives it Volta's code back


def test_the_torch_of_another_lock_goes_before_the_newest() -> None:
    locked = Wanted(locked=(("torch", "2.6.0", "uv.lock"),))
    resolved = choose("a100", "580.65.06", "torch", wanted=locked)
    assert resolved.stack is not None and resolved.stack.torch == "2.6.0"
    assert resolved.why[0].kind == "locked"


def test_a_name_that_torch_took_away_keeps_newer_ones_out_while_anything_is_left() -> None:
    gone = Wanted(api=(Gate("torch._six.string_classes", "data.py:3", gone="2.0"),))
    held = choose("a100", "535.54.03", "torch", wanted=gone)
    assert held.stack is not None and held.stack.torch == "1.13.1"
    assert "api-holds" in {each.kind for each in held.notes}
    lifted = choose("rtx-5090", "580.65.06", "torch", wanted=gone)
    assert lifted.stack is not None and lifted.stack.torch == "2.15.0"
    assert "api-lifted" in {each.kind for each in lifted.notes}


def test_a_new_name_wants_a_new_torch() -> None:
    new = Wanted(api=(Gate("torch.accelerator.current_accelerator", "train.py:1", since="2.6"),))
    assert choose("rtx-3090", "470.42.01", "torch", wanted=new).stack is not None
    assert choose("rtx-3090", "470.42.01", "torch", wanted=new, strict=True).stack is None


def test_the_cuda_of_the_files_counts_until_the_user_says_another() -> None:
    files = Wanted(cuda=("11.8", "environment.yml"))
    first = choose("a100", "580.65.06", "torch", wanted=files).stack
    second = choose("a100", "580.65.06", "torch", wanted=files, cuda="12.6").stack
    assert first is not None and (first.torch, first.backend) == ("2.7.1", "cu118")
    assert second is not None and second.backend == "cu126"


def test_the_cpu_gets_the_newest_torch_of_its_own_index() -> None:
    stack = choose(None, None, "torch", cuda="cpu").stack
    assert stack is not None and (stack.backend, stack.driver) == ("cpu", None)
    assert stack.packages[0].version == "2.15.0+cpu"
    board = choose(None, None, "torch==2.9.1", cuda="cpu", platform="linux-aarch64").stack
    assert board is not None and board.index is None  # there PyPI has just that


def test_without_a_card_nothing_is_thrown_out_for_it() -> None:
    resolved = choose(None, "580.65.06", "torch")
    assert resolved.stack is not None and resolved.stack.torch == "2.15.0"
    assert "architecture" not in {one.kind for each in resolved.rejected for one in each.reasons}
    assert "gpu-missing" in {each.kind for each in resolved.notes}


def test_ptx_alone_wants_the_driver_of_the_toolkit() -> None:
    """A card newer than all: only builds with PTX are left, and they have to be compiled for it."""
    resolved = choose("13.0", "580.65.06", "torch")
    assert resolved.stack is not None and resolved.stack.ptx == "12.0"
    assert (resolved.stack.torch, resolved.stack.backend) == ("2.11.0", "cu129")
    assert "ptx" in {each.kind for each in resolved.notes}
    assert choose("13.0", "570.26", "torch").stack is not None  # 2.7 for CUDA 12.8, whose driver that is
    assert choose("13.0", "535.54.03", "torch").stack is None
    assert cuda_of("cu102") == (10, 2)
