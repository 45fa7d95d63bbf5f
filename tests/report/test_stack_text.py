"""How a stack is told: every kind of reason has its words, and the page is as wide as asked."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from torchport.plan import Package, Stack
from torchport.report import stack_json, stack_requirements, stack_text, stack_words
from torchport.resolved import Asked, Compared, Drift, Locked, Reason, Target, Wanted
from torchport.stack.releases import table
from torchport.stack.solve import solve

SOURCE = Path(stack_words.__file__).parents[1]
TARGET = Target("linux-x86_64", "v100", "7.0", "535.54.03")
WANTED = Wanted(
    asked=(Asked("torch", "torch>=2.4", "requirements.txt"),), skipped=(("requirements.txt", "./vendored"),)
)
PACKAGES = (
    Package("torch", "2.14.1+cu126", ("sha256:aa",), "https://x.org/torch.whl", 800_000_000),
    Package("old", "1.0", ("sha256:bb",), "https://x.org/old.tar.gz", 1_000_000, source=True),
)


def locked(**more):
    resolved = solve(WANTED, TARGET, table())
    stack = replace(resolved.stack, packages=PACKAGES)
    return Locked(resolved, stack, "/p/torchport.lock", **more)


def test_a_choice():
    text = stack_text.render(locked(beside=("python3.12-linux-x86_64-cpu",), changed=(("old", "0.9", "1.0"),)))
    assert text == (
        "stack     torch 2.14.1 for CUDA 12.6, Python 3.12, linux-x86_64\n"
        "          on v100 (7.0), driver 535.54.03\n"
        "brings    CUDA 12.6.3, cuDNN 9.10.2.21, NCCL 2.29.3\n"
        "\n"
        "why       torch 2.14.1 is the newest that fits; newer ones that do not: 1\n"
        "          cu126 is its only build that fits\n"
        "          Python 3.12: the project does not say, and most packages have wheels for it\n"
        "not       3 builds: no machine code for a card of capability 7.0  (2.14.1–2.15.0, cu130 cu132)\n"
        "          2 builds: announced, but nobody has seen the wheel  (2.15.0, cu130 cu134)\n"
        "          and 48 older builds\n"
        "note      driver 535.54.03 is older than that of CUDA 12.6 (560.28.03): ready kernels run, code that\n"
        "          compiles PTX may not; --strict keeps such builds out\n"
        "          580 is the last driver branch for this card (7.0)\n"
        "left out  requirements.txt: ./vendored\n"
        "\n"
        "lock      /p/torchport.lock: 2 packages, all with hashes, 801 MB to download\n"
        "          without a wheel, built where it is installed: old\n"
        "          beside python3.12-linux-x86_64-cpu\n"
        "changed   old  0.9 → 1.0\n"
    )


def test_nothing_that_fits():
    wanted = replace(WANTED, asked=(Asked("torch", "torch==2.8.0", "--torch"),))
    text = stack_text.render(Locked(solve(wanted, replace(TARGET, cuda="12.1"), table()), None, "x"))
    assert text.startswith("stack     torch==2.8.0 with CUDA 12.1 was never built\n")
    assert "torch 2.8.0+cu126, Python 3.12: not the CUDA 12.1 of --cuda\n" in text


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_wider_than_the_page(width):
    lines = stack_text.render(locked(), width=width).splitlines()
    assert max(map(len, lines)) <= width


def test_the_same_version_with_other_files_is_told():
    assert "the same version has other files now" in stack_text.render(locked(changed=(("torch", "2.10.0", "2.10.0"),)))


def test_drift():
    stack = locked().stack
    found = (Drift("version", (("name", "numpy"), ("locked", "2.1"), ("have", "1.26"))),)
    text = stack_text.render_compared(Compared("/p/torchport.lock", ((stack, found),), ("other",), "/p/.venv", 1))
    assert "drifted   numpy is 1.26, locked is 2.1\n" in text
    assert text.endswith("1 drift from /p/torchport.lock\n")
    assert "nothing has drifted" in stack_text.render_compared(Compared("x", ((stack, ()),), (), None, 0))
    assert "no stack for this machine" in stack_text.render_compared(Compared("x", (), ("other",), None, 1))


def test_a_requirements_file_has_addresses_and_hashes():
    stack = Stack("3.12", "linux-x86_64", "2.14.1", "cpu", (PACKAGES[0], Package("a", "1", ("sha256:cc",))))
    assert stack_requirements.render(stack) == (
        "# python3.12-linux-x86_64-cpu, torch 2.14.1\n"
        "torch @ https://x.org/torch.whl \\\n    --hash=sha256:aa\n"
        "a==1 \\\n    --hash=sha256:cc\n"
    )


def kinds_made(*files):
    """The kinds that the code makes: the first argument of ``reason``, ``_drift`` and the like."""
    text = "".join((SOURCE / name).read_text() for name in files)
    return set(re.findall(r"\b(?:reason|_drift)\(\s*\"([a-z-]+)\"", text))


def test_every_kind_has_its_words():
    made = kinds_made("stack/judge.py", "stack/solve.py", "stack/drift.py", "api/stack.py")
    known = {*stack_words.REJECTED, *stack_words.WHY, *stack_words.NOTES, *stack_words.DRIFTS}
    assert len(made) > 25
    assert made - known == set()


def test_every_reason_that_the_table_leads_to_can_be_said():
    for capability in ("3.7", "7.0", "8.7", "12.1", "13.0"):
        for platform in ("linux-x86_64", "linux-aarch64"):
            for strict in (False, True):
                target = Target(platform, capability, capability, "550.54.14", strict=strict)
                resolved = solve(WANTED, target, table())
                text = stack_text.render(Locked(resolved, resolved.stack, "x"))
                assert "{" not in text and "None" not in text
                assert stack_json.render(Locked(resolved, resolved.stack, "x")).isascii()


def test_a_companion_that_does_not_fit_is_told_in_full():
    said = stack_words.instead(Reason("torchtext", (("ended", "2.3.1"),)))
    assert said == "torchtext ended with torch 2.3.1"
