"""The documentation: generated pages are fresh, links lead somewhere, and what a tutorial shows is what happens.

In docs/tutorial a ``console`` block is run, command by command. A ``diff`` block edits the file that it names,
and a ``python`` block whose first line is a comment with a file's name writes that file. In expected output
"…" stands for anything. Measured numbers are not compared: fractions, shares, versions, times of day.
"""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
SPEC = importlib.util.spec_from_file_location("gen_docs", ROOT / "tools" / "gen_docs.py")
gen_docs = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(gen_docs)

RUNS_IN = re.compile(r"<!-- runs in (\S+) -->")
FENCE = re.compile(r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]*))?\)")

# What is measured, or depends on the machine → what stands for it in a comparison.
MEASURED = (
    (r"^(torchport: .*?)[,，].*Python.*", r"\1"),
    (r"\d{8}-\d{6}", "TIME"),
    (r"\d+(?:\.\d+)?(?:e[+-]\d+)?(?= ?(?:s|秒)\b)", "#"),
    (r"\d+\.\d+", "#"),
    (r"\d+%", "#%"),
    (r" +", " "),
    (r" $", ""),
)


@dataclass(frozen=True)
class Step:
    """One command with the output that the page shows, or a change to a file. ``kind`` is that of its block."""

    kind: str
    text: str
    output: str = ""


def steps(page):
    for block in FENCE.finditer(page):
        kind, text = block["kind"], block["text"]
        if kind == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                yield Step(kind, command, output)
        elif kind == "diff" or (kind == "python" and re.match(r"# [\w.]+\.py\n", text)):
            yield Step(kind, text)


def edit(folder, diff):
    """Each run of lines with a minus becomes the run of lines with a plus after it."""
    path = folder / re.match(r"--- (\S+)\n", diff)[1]
    source = path.read_text()
    for old, new in re.findall(r"((?:^-(?!--).*\n)+)((?:^\+.*\n)*)", diff, re.MULTILINE):
        before, after = (re.sub(r"^[-+]", "", lines, flags=re.MULTILINE) for lines in (old, new))
        assert source.count(before) == 1, f"{path.name} has {source.count(before)} × {before!r}"
        source = source.replace(before, after)
    path.write_text(source)


def stable(text):
    for pattern, stands_for in MEASURED:
        text = re.sub(pattern, stands_for, text, flags=re.MULTILINE)
    return text.strip("\n") + "\n"


def same(expected, output):
    lines = [
        r"(?:.*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
        for line in stable(expected).splitlines()
    ]
    return re.fullmatch("".join(lines), stable(output)) is not None


@pytest.fixture
def shell(tmp_path):
    """Runs a command as the reader of a page does, in ``folder``; returns its exit code and what it printed."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, words in (("torchport", " -m torchport"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n')
        (programs / name).chmod(0o755)
    left_out = ("PYTEST", "COLUMNS", "LC_", "LANG")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    environ |= {"PATH": f"{programs}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}

    def run(command, folder, code):
        done = subprocess.run(
            ["bash", "-c", f"(exit {code}); {command}"],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        return done.returncode, done.stdout

    return run


@pytest.mark.full
@pytest.mark.skipif(
    tuple(map(int, metadata.version("torch").split(".")[:2])) < (2, 8),
    reason="the pages show the words of CUDA since torch 2.8",
)
@pytest.mark.parametrize("page", sorted(DOCS.glob("tutorial/*.md")), ids=lambda page: page.name)
def test_what_a_tutorial_shows_is_what_happens(page, shell, tmp_path):
    text = page.read_text(encoding="utf-8")
    folder, code = tmp_path / "work", 0
    started = RUNS_IN.search(text)
    if started:
        shutil.copytree(ROOT / started[1], folder, ignore=shutil.ignore_patterns(".torchport"))
    else:
        folder.mkdir()
    for step in steps(text):
        if step.kind == "diff":
            edit(folder, step.text)
        elif step.kind == "python":
            name = step.text.removeprefix("# ").partition("\n")[0]
            (folder / name).write_text(step.text)
        else:
            code, output = shell(step.text, folder, code)
            assert same(step.output, output), f"$ {step.text}\n{stable(output)}\nand not\n{stable(step.output)}"


def test_generated_pages_are_fresh():
    for name, text in gen_docs.pages().items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"docs/{name}: run make fix"


def test_checks_has_generated_pages_only():
    assert {f"checks/{path.name}" for path in DOCS.glob("checks/*")} == {
        name for name in gen_docs.pages() if name.startswith("checks/")
    }


def anchors(path):
    """The anchors of a page's headings, as GitHub makes them."""
    prose = FENCE.sub("", path.read_text(encoding="utf-8"))
    for heading in re.findall(r"^#+ (.*)$", prose, re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_lead_somewhere(page):
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.finditer(prose):
        target = page.parent / link["path"] if link["path"] else page
        assert target.exists(), link[0]
        if link["anchor"]:
            assert link["anchor"] in anchors(target), link[0]


def test_every_folder_has_its_page():
    source = ROOT / "src" / "torchport"
    folders = {path.name for path in source.iterdir() if (path / "__init__.py").exists()}
    told = {page.stem for page in DOCS.glob("how-it-works/*.md")}
    index = (DOCS / "how-it-works" / "README.md").read_text(encoding="utf-8")
    assert {name for name in folders if name not in told and f"`{name}/`" not in index} == set()


def test_rules_that_are_not_shown_are_told():
    tree = ast.parse((ROOT / "tests" / "inside" / "rules" / "test_every_row.py").read_bytes())
    assigned = {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign)}
    page = (DOCS / "how-it-works" / "rules.md").read_text(encoding="utf-8")
    for row in ast.literal_eval(assigned["NOT_SHOWN"]):
        assert f"| {row} |" in page
