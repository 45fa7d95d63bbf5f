"""Tries torchport as a new user would: public projects, unmodified, on small fake data.

    python bench/public.py CHECKOUTS [--only TEXT…] [--at NAME=PATH…] [--save before|after] [--json]

CHECKOUTS holds one clone per repository, named owner+name (``--at owner+name=PATH`` names one elsewhere). Each entry
of public_projects.py is copied to a scratch folder, gets its data from fake_data.py and runs up to three times: on
plain CPU torch; under ``torchport rehearse``; and, where the losses of these two differ, on plain torch with CUDA
read as the CPU, which takes the script down the path of the rehearsal without any of its code.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from public_projects import PROJECTS, Project  # noqa: E402

RESULTS = HERE / "public_results.json"


@dataclass(frozen=True, slots=True)
class Run:
    """What one process did: exit code (None: stopped at the limit), seconds, last words, losses as hex text."""

    code: int | None
    seconds: float
    error: str
    losses: tuple[str, ...] = ()
    steps: int = 0
    findings: dict[str, int] | None = None
    first: str = ""

    def __str__(self) -> str:
        if self.code is None:
            return f"stopped after {self.seconds:.0f} s"
        return f"{self.steps} steps" if not self.code else f"exit {self.code}: {self.error}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; only facts, no code of the project."""

    name: str
    repository: str
    commit: str
    plain: str
    plain_s: float
    rehearsal_exit: int | None
    rehearsal: str
    rehearsal_s: float
    steps: int
    findings: dict[str, int]
    first: str
    losses: str


def call(argv: list[str], folder: Path, env: dict[str, str], limit_s: float) -> tuple[int | None, float, str, str]:
    """Exit code, seconds, standard output and error; the whole process group ends after limit_s."""
    start = time.monotonic()
    with subprocess.Popen(
        argv,
        cwd=folder,
        env=env,
        text=True,
        errors="replace",
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        code: int | None
        try:
            out, err = process.communicate(timeout=limit_s)
            code = process.returncode
        except BaseException as stop:
            end(process)
            if not isinstance(stop, subprocess.TimeoutExpired):
                raise
            out, err = process.communicate()
            code = None
    return code, round(time.monotonic() - start, 1), out, err


def end(process: subprocess.Popen[str]) -> None:
    """Asks first, so that a program that started others can end them."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        pass
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def last_words(text: str) -> str:
    """The last line that names an error, else the last line; without colours and places on this machine."""
    plain = re.sub(r"\x1b\[[0-9;]*m|(?<=[ '\"])/\S+/", "", text)
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    errors = [line for line in lines if line.split(":")[0].rstrip().endswith(("Error", "Exception"))]
    return (errors or lines or [""])[-1][:120]


@dataclass(frozen=True, slots=True)
class Bench:
    """Where things are: the interpreter with torch, the clones, the scratch folder."""

    python: str
    checkouts: dict[str, Path]
    scratch: Path
    limit_s: float

    def environment(self, project: Project, home: Path) -> dict[str, str]:
        paths = [str(home / "stand_ins"), os.environ.get("PYTHONPATH") or str(HERE.parent / "src")]
        if project.importable is not None:
            paths.append(str((home / "work" / project.folder / project.importable).resolve()))
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "PATH": f"{HERE / 'stand_ins' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "FAKE_IMAGES": str(project.images),
            "GPUS": str(project.gpus),
            "HOME": str(home),
            "MPLBACKEND": "agg",
            "MPLCONFIGDIR": str(self.scratch / "matplotlib"),
            "PYTHONHASHSEED": "0",
            "OMP_NUM_THREADS": "1",
            "WANDB_MODE": "disabled",
        }

    def prepare(self, project: Project, kind: str) -> tuple[Path, dict[str, str]]:
        """A fresh copy of the checkout with its fake data; returns the folder to start in and the environment."""
        home = self.scratch / f"{project.name} {kind}".replace("/", "-").replace(" ", "-")
        shutil.rmtree(home, ignore_errors=True)
        source = self.checkouts[project.source[0].replace("/", "+")]
        shutil.copytree(
            source / project.part,
            home / "work" / project.part,
            ignore=shutil.ignore_patterns(".git"),
            symlinks=True,
        )
        (home / "stand_ins").mkdir()
        for name in ("sitecustomize", *project.stand_ins):
            for path in (HERE / "stand_ins" / name, HERE / "stand_ins" / f"{name}.py"):
                if path.exists():
                    (home / "stand_ins" / path.name).symlink_to(path)
        folder, env = home / "work" / project.folder, self.environment(project, home)
        for line in project.data:
            code, _, _, err = call(
                [self.python, str(HERE / "fake_data.py"), *shlex.split(line)], folder, env, self.limit_s
            )
            if code:
                raise SystemExit(f"{project.name}: fake data '{line}' failed: {last_words(err)}")
        return folder, env

    def plain(self, project: Project, *options: str) -> Run:
        """K steps on plain CPU torch."""
        folder, env = self.prepare(project, "plain" + "".join(options))
        out = folder / "few_steps.json"
        command = [
            str(HERE / "few_steps.py"),
            *options,
            str(project.steps),
            str(out),
            *shlex.split(project.command),
        ]
        if options and project.ranks > 1:
            ranks = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(project.ranks)]
            command = [*ranks, *command]
        code, seconds, printed, err = call([self.python, *command], folder, env, self.limit_s)
        seen = json.loads(out.read_text()) if out.exists() else {"losses": (), "steps": 0}
        return Run(code, seconds, last_words(err or printed) if code else "", tuple(seen["losses"]), seen["steps"])

    def rehearse(self, project: Project) -> Run:
        """K steps under torchport."""
        folder, env = self.prepare(project, "rehearsal")
        options = ["--steps", str(project.steps), "--gpus", str(project.gpus), "--format", "json"]
        command = ["-m", "torchport", "rehearse", *options, *shlex.split(project.command)]
        code, seconds, out, err = call([self.python, *command], folder, env, self.limit_s)
        try:
            report = json.loads(out)
        except ValueError:
            return Run(code, seconds, last_words(err or out))
        findings, ranks = report["findings"], report["ranks"]
        places = [place(finding) for finding in findings if finding["severity"] != "info"]
        return Run(
            code,
            seconds,
            last_words(err) if code not in (0, 1) else "",
            tuple(loss["hex"] for loss in ranks[0]["losses"]) if ranks else (),
            max((len(rank["steps"]) for rank in ranks), default=0),
            dict(sorted(Counter(finding["id"] for finding in findings).items())),
            places[0] if places else "",
        )

    def row(self, project: Project) -> Row:
        plain, rehearsal = self.plain(project), self.rehearse(project)
        losses = compare(plain, rehearsal)
        if losses != "same" and rehearsal.losses:
            losses = f"{compare(self.plain(project, '--cuda-is-cpu'), rehearsal)} on the CUDA path"
        return Row(
            project.name,
            project.source[0],
            project.source[1][:12],
            str(plain),
            plain.seconds,
            rehearsal.code,
            str(rehearsal) if rehearsal.code not in (0, 1) else "ran",
            rehearsal.seconds,
            rehearsal.steps,
            rehearsal.findings or {},
            rehearsal.first,
            losses,
        )


def place(finding: dict[str, Any]) -> str:
    where = finding["location"]
    return f"{where['path']}:{where['line']}" if where else ""


def compare(plain: Run, rehearsal: Run) -> str:
    """Whether the losses are bit for bit the same, as far as both go."""
    pairs = list(zip(plain.losses, rehearsal.losses, strict=False))
    if not pairs:
        return "none to compare"
    differing = [number for number, (left, right) in enumerate(pairs) if left != right]
    return f"differ from loss {differing[0]} of {len(pairs)}" if differing else "same"


def table(rows: list[Row], saved: dict[str, Any]) -> str:
    lines = ["| project | plain CPU | before | after | findings | first at | losses | seconds plain, rehearsal |"]
    lines.append("|" + "---|" * 8)
    for row in rows:
        was = saved.get(row.name, {})
        findings = " ".join(f"{count}x{number}" for number, count in row.findings.items()) or "none"
        lines.append(
            f"| {row.name} | {row.plain} | {brief(was.get('before'))} | {brief(asdict(row))} | {findings} "
            f"| {row.first or '-'} | {row.losses} | {row.plain_s}, {row.rehearsal_s} |"
        )
    return "\n".join(lines)


def brief(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    done = row["rehearsal"] if row["rehearsal_exit"] not in (0, 1) else f"{row['steps']} steps"
    return f"{done}, {sum(row['findings'].values())} findings, losses {row['losses']}"


def write_results(saved: dict[str, Any]) -> None:
    RESULTS.write_text(json.dumps(saved, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path, nargs="?", default=Path("."))
    parser.add_argument("--at", action="append", default=[], metavar="OWNER+NAME=PATH")
    parser.add_argument("--only", nargs="*", default=[], metavar="TEXT", help="entries whose name contains TEXT")
    parser.add_argument("--python", default=sys.executable, help="the interpreter with torch (default: this one)")
    parser.add_argument("--keep", type=Path, help="scratch folder to use and keep")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="for each run (default: 300)")
    parser.add_argument("--plain", action="store_true", help="only the plain CPU runs")
    parser.add_argument("--save", choices=("before", "after"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    checkouts = {path.name: path for path in options.checkouts.iterdir() if path.is_dir()}
    checkouts |= {name: Path(path) for name, _, path in (text.partition("=") for text in options.at)}
    chosen = [p for p in PROJECTS if not options.only or any(text in p.name for text in options.only)]
    missing = sorted({p.source[0].replace("/", "+") for p in chosen} - checkouts.keys())
    if missing:
        print(f"no clone of {', '.join(missing)} in {options.checkouts}: left out", file=sys.stderr)
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(options.python, checkouts, options.keep or Path(scratch), options.limit)
        rows: list[Row] = []
        saved: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        for project in chosen:
            if project.source[0].replace("/", "+") in missing:
                continue
            print(f"{project.name} …", file=sys.stderr, flush=True)
            if options.plain:
                run = bench.plain(project)
                print(f"{project.name}: {run}, {len(run.losses)} losses, {run.seconds} s", flush=True)
            else:
                rows.append(bench.row(project))
                print(table(rows[-1:], saved).splitlines()[-1], file=sys.stderr, flush=True)
                if options.save:
                    saved.setdefault(project.name, {})[options.save] = asdict(rows[-1])
                    write_results(saved)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1, ensure_ascii=False))
    elif rows:
        print(table(rows, saved))


if __name__ == "__main__":
    main()
