"""What is made of uv's answer, and what is said where it has none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from torchport.plan import Package, Stack
from torchport.process import Output
from torchport.stack import lock, uv
from torchport.stack.uv import LockFailed, NoSolution

STACK = Stack("3.12", "linux-x86_64", "2.14.1", "cu126", glibc="2.28", cudnn="9.10.2.21", toolkit="12.6.3")


def wheel(name: str, **more: Any) -> dict[str, Any]:
    return {"url": f"https://x.org/{name}", "hashes": {"sha256": "aa"}, "size": 5, **more}


@pytest.mark.parametrize(
    ("row", "package"),
    [
        (
            {"name": "Typing_Extensions", "version": "4", "wheels": [wheel("t.whl")]},
            Package("typing-extensions", "4", ("sha256:aa",), "https://x.org/t.whl", 5),
        ),
        (
            {"name": "a", "version": "1", "wheels": [wheel("a.whl"), wheel("b.whl", hashes={"sha256": "bb"})]},
            Package("a", "1", ("sha256:aa", "sha256:bb"), "https://x.org/a.whl", 5),
        ),
        (
            {"name": "a", "version": "1", "sdist": wheel("a.tar.gz")},
            Package("a", "1", ("sha256:aa",), "https://x.org/a.tar.gz", 5, True),
        ),
        (
            {"name": "a", "version": "1", "sdist": wheel("a.tar.gz"), "wheels": [wheel("a.whl")]},
            Package("a", "1", ("sha256:aa",), "https://x.org/a.whl", 5),
        ),
        (
            {"name": "clip", "vcs": {"type": "git", "url": "https://x.org/c.git", "commit-id": "12ab"}},
            Package("clip", "12ab", url="git+https://x.org/c.git@12ab"),
        ),
        (
            {"name": "a", "version": "1", "wheels": [{"path": "wheels/a.whl", "hashes": {"sha256": "aa"}}]},
            Package("a", "1", ("sha256:aa",)),
        ),
    ],
)
def test_packages(row: dict[str, Any], package: Package) -> None:
    assert lock._package(row) == package


@pytest.mark.parametrize(
    "row",
    [{"name": "a", "version": "1", "directory": {"path": "."}}, {"name": "a", "wheels": [{"url": "https://x/a"}]}],
)
def test_what_has_no_hash_is_not_locked(row: dict[str, Any]) -> None:
    with pytest.raises(LockFailed, match="a: "):
        lock._package(row)


@pytest.mark.parametrize(
    ("names", "glibc"),
    [
        (["a-1-py3-none-any.whl"], "2.28"),
        (["a-1-cp312-cp312-manylinux_2_34_x86_64.whl"], "2.34"),
        (["a-1-cp312-cp312-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"], "2.28"),
        (["a-1-cp312-cp312-manylinux_2_31_x86_64.whl", "a-1-cp312-cp312-manylinux_2_39_x86_64.whl"], "2.31"),
    ],
)
def test_the_c_library_that_is_needed(names: list[str], glibc: str) -> None:
    assert lock._glibc([{"wheels": [wheel(name) for name in names]}], STACK) == glibc


def test_where_the_wheels_and_the_table_disagree() -> None:
    assert lock.disagreements(STACK, replace(STACK, toolkit="12.6.3.0")) == ()
    assert lock.disagreements(STACK, replace(STACK, cudnn="9.11.0.1")) == (("cudnn", "9.10.2.21", "9.11.0.1"),)


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        (
            "  × No solution found when resolving:\n  ╰─▶ Because a needs b",
            NoSolution,
            "Because a needs b",
        ),
        (
            "error: Request failed\n  cause: fetch: x\n  cause: middle\n  cause: dns",
            LockFailed,
            "fetch: x\ndns",
        ),
        ("error: bad file", LockFailed, "bad file"),
        ("/usr/bin/python: No module named uv", uv.UvMissing, "uv"),
    ],
)
def test_failures_are_told_apart(
    said: str, error: type[Exception], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uv, "run", lambda *_args, **_more: Output(1, "", said))
    with pytest.raises(error) as raised:
        uv.ask(("uv",), ("pip",), ".")
    assert words in str(raised.value)
