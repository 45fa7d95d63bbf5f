"""Migrates public projects as a new user would: unmodified, on small fake data.

    python bench/public_migrate.py CHECKOUTS [--only TEXT…] [--at NAME=PATH…] [--save first|last] [--patches FOLDER]

CHECKOUTS holds one clone per repository, named owner+name. Each entry of migrate_projects.py is copied to a scratch
folder, gets its data from fake_data.py, and is migrated: a plain run, rehearsals and repairs, a strict rehearsal, one
more plain run. migrate_results.json keeps the first try and the last: facts, and no code of the projects.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from migrate_projects import ALL, CPU_ONLY  # noqa: E402
from public import Bench, call, last_words  # noqa: E402
from public_projects import Project  # noqa: E402

RESULTS = HERE / "migrate_results.json"
CLEAN, REPAIRED, NONE, LEFT = "clean at once", "clean", "needs no change", "not clean"
ON_CPU, BROKEN = "stays on the CPU", "does not run"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. ``why`` says in one line what is left, or why the program does not run at all."""

    name: str
    repository: str
    commit: str
    written_for: str
    outcome: str
    repairs: dict[str, int]
    lines: int
    why: str
    losses: str
    seconds: float


def migrated(bench: Bench, project: Project, patches: Path | None) -> Row:
    """Migrates one entry in a folder of its own."""
    folder, env = bench.prepare(project, "migration")
    top = Path(env["HOME"]) / "work"
    (top / ".git").mkdir(exist_ok=True)  # as a clone has it: the root of the project
    out, patch = folder / "migration.json", folder / "migration.patch"
    words = [str(HERE / "migrate_once.py"), str(project.steps), str(out), str(patch), *shlex.split(project.command)]
    code, seconds, _printed, err = call([bench.python, *words], folder, env, bench.limit_s)
    facts: dict[str, Any] | None = json.loads(out.read_text()) if out.exists() else None
    if patches is not None and patch.exists():
        (patches / f"{project.name.replace('/', '-').replace(' ', '-')}.patch").write_text(patch.read_text())
    ending = f"stopped after {seconds:.0f} s" if code is None else last_words(err)
    return Row(
        project.name,
        project.source[0],
        project.source[1][:12],
        "the CPU" if project in CPU_ONLY else "a GPU or an old torch",
        outcome(facts),
        facts["repairs"] if facts else {},
        facts["lines"] if facts else 0,
        why(facts) if facts else ending,
        losses(facts) if facts else "-",
        seconds,
    )


def outcome(facts: dict[str, Any] | None) -> str:
    if facts is None or (facts["failure"] and not facts["works_on_cpu"] and not facts["left"]):
        return BROKEN
    if not facts["used_gpu"] and not facts["failure"]:
        return ON_CPU
    if not facts["clean"]:
        return LEFT
    if not facts["lines"]:
        return NONE
    return REPAIRED if facts["rounds"] else CLEAN


def why(facts: dict[str, Any]) -> str:
    """The first thing that is left, in one line; empty where the project is clean."""
    if facts["clean"]:
        return ""
    if not facts["used_gpu"] and not facts["failure"]:
        return "nothing is ever on the GPU"
    words = facts["left"][:1] or [facts["failure"]]
    more = len(facts["left"]) - 1
    refused = f"; refused: {', '.join(facts['refused'])}" if facts["refused"] else ""
    return f"{words[0][:160]}{f' +{more}' if more > 0 else ''}{refused}"


def losses(facts: dict[str, Any]) -> str:
    """Whether the losses of the result are bit for bit those before, on the GPU and on the CPU."""
    parts = []
    for name, proof in (("GPU", facts["on_gpu"]), ("CPU", facts["on_cpu"])):
        if proof is None or not (proof["before"] or proof["after"]):
            parts.append(f"{name}: none")
        elif proof["first"] is None:
            parts.append(f"{name}: {proof['before']} same")
        else:
            parts.append(f"{name}: differ from {proof['first'] + 1} of {proof['before']} and {proof['after']}")
    return ", ".join(parts)


def table(saved: dict[str, Any]) -> str:
    lines = ["| project | first try | last | repairs | lines | losses | what is left, and why | seconds |"]
    lines.append("|" + "---|" * 8)
    for name, tries in saved.items():
        row = tries.get("last") or tries.get("first")
        made = " ".join(f"{count}x {kind}" for kind, count in row["repairs"].items()) or "-"
        first = tries["first"]["outcome"] if "first" in tries else "-"
        lines.append(
            f"| {name} | {first} | {row['outcome']} | {made} | {row['lines']} | {row['losses']} "
            f"| {row['why'] or '-'} | {row['seconds']} |"
        )
    for which in ("first", "last"):
        counts = Counter(tries[which]["outcome"] for tries in saved.values() if which in tries)
        lines.append(f"\n{which}: {', '.join(f'{count} {name}' for name, count in counts.most_common())}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path, nargs="?", default=Path("."))
    parser.add_argument("--at", action="append", default=[], metavar="OWNER+NAME=PATH")
    parser.add_argument("--only", nargs="*", default=[], metavar="TEXT", help="entries whose name contains TEXT")
    parser.add_argument("--python", default=sys.executable, help="the interpreter with torch (default: this one)")
    parser.add_argument("--limit", type=float, default=400, metavar="SECONDS", help="for each entry (default: 400)")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--patches", type=Path, help="folder for the patches")
    parser.add_argument("--save", choices=("first", "last"))
    parser.add_argument("--table", action="store_true", help="only print what was saved")
    options = parser.parse_args()
    saved: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if options.table:
        print(table(saved))
        return
    checkouts = {path.name: path for path in options.checkouts.iterdir() if path.is_dir()}
    checkouts |= {name: Path(path) for name, _, path in (text.partition("=") for text in options.at)}
    chosen = [p for p in ALL if not options.only or any(text in p.name for text in options.only)]
    missing = sorted({p.source[0].replace("/", "+") for p in chosen} - checkouts.keys())
    if missing:
        print(f"no clone of {', '.join(missing)} in {options.checkouts}: left out", file=sys.stderr)
    if options.patches:
        options.patches.mkdir(parents=True, exist_ok=True)
    lock, done = Lock(), dict[str, Any]()
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.jobs) as pool:
        bench = Bench(options.python, checkouts, Path(scratch), options.limit)

        def one(project: Project) -> None:
            try:
                row = asdict(migrated(bench, project, options.patches))
            except SystemExit as stop:  # its fake data cannot be made here
                print(stop, file=sys.stderr)
                return
            with lock:
                done[project.name] = {**saved.get(project.name, {}), options.save or "last": row}
                print(table({project.name: done[project.name]}).splitlines()[2], file=sys.stderr, flush=True)
                if options.save:
                    saved[project.name] = done[project.name]
                    order = {each.name: number for number, each in enumerate(ALL)}
                    kept = dict(sorted(saved.items(), key=lambda item: order.get(item[0], len(order))))
                    RESULTS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

        list(pool.map(one, [p for p in chosen if p.source[0].replace("/", "+") not in missing]))
    print(table(done))


if __name__ == "__main__":
    main()
