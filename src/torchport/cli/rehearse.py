"""``torchport rehearse``: run a program on virtual GPUs and print what was found."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchport.cli.printing import format_option, layout, refuse
from torchport.cli.running import gpu_option, gpus_option, python_option, refuse_gpu, steps_option, timeout_option
from torchport.cli.words import Option, RunsAProgram, language_option
from torchport.text import _, language, mark, ngettext

if TYPE_CHECKING:
    from torchport.facts import Facts
    from torchport.plan import Plan, Run

_SHOWN_LOG_LINES = 20


@click.command(
    "rehearse",
    cls=RunsAProgram,
    options_metavar="[OPTIONS] SCRIPT|-m MODULE|NOTEBOOK [ARGS]...",
    short_help=mark("Run a program on virtual GPUs and tell what would fail."),
    help=mark(
        "Run an unmodified PyTorch program on virtual GPUs: every device fault in one run, with the line "
        "that caused it, and the transfers, waits and memory of each step. The program is a script, "
        "-m MODULE, a notebook, or a whole command line after --, such as: "
        "-- torchrun --nproc-per-node 4 train.py"
    ),
)
@gpu_option()
@gpus_option()
@steps_option()
@timeout_option(mark("Stop the program after that time."))
@click.option("--strict", is_flag=True, cls=Option, help=mark("Stop at the first fault, as CUDA does."))
@click.option(
    "--shapes-only",
    is_flag=True,
    cls=Option,
    help=mark("Keep no numbers, only shapes: for models larger than this machine."),
)
@python_option()
@click.option(
    "--html",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    cls=Option,
    help=mark("Also write the report as a page."),
)
@format_option(mark("How to print the report. With json the program's own output goes to standard error."))
@language_option()
def rehearse(html: Path | None, form: str, **asked: Any) -> int:
    """Returns the exit code of contract.md."""
    # Here and not above: the help has to come at once.
    from torchport.api.rehearse import Request, rehearse
    from torchport.config import ConfigError
    from torchport.hardware.gpus import UnknownGpu
    from torchport.launch.interpreter import InterpreterError
    from torchport.launch.program import ProgramError
    from torchport.process import ProgramMissing

    if html is not None and not html.resolve().parent.is_dir():
        return refuse(_("--html {path}: there is no folder {folder}").format(path=html, folder=html.parent), 2)
    try:
        run = rehearse(
            Request(**asked),
            folder=Path.cwd(),
            environ=os.environ,
            announce=_announce,
            output=sys.stderr.fileno() if form == "json" else None,
        )
    except (ProgramError, ConfigError) as error:
        return refuse(str(error), 2)
    except UnknownGpu as error:
        return refuse_gpu(error)
    except (InterpreterError, ProgramMissing) as error:
        return refuse(str(error), 3)
    _show_logs(run)
    if html is not None:
        _write_page(html, run)
    _print_report(run, form, html)
    return run.exit_code


def _announce(plan: Plan, facts: Facts) -> None:
    """One line before the program starts: what runs where, and with which Python."""
    from torchport.hardware.gpus import lookup

    torch = facts.torch
    if torch is None or plan.virtual is None:
        return
    line = _("rehearsing on {count} × {gpu}, with {python} (Python {version}, torch {torch})").format(
        count=plan.gpus_per_node,
        gpu=lookup(plan.virtual.gpu).name,
        python=_near(torch.python),
        version=".".join(map(str, torch.python_version)),
        torch=torch.version,
    )
    print(f"torchport: {line}", file=sys.stderr, flush=True)
    if plan.processes > 1:
        line = ngettext("{count} process", "{count} processes", plan.processes).format(count=plan.processes)
        print(
            "torchport: " + _("{processes}; the output is that of rank 0").format(processes=line),
            file=sys.stderr,
        )


def _near(path: str) -> str:
    """The path as seen from here, where it lies below."""
    folder = os.getcwd() + os.sep
    return path.removeprefix(folder)


def _show_logs(run: Run) -> None:
    """The last lines of ranks that failed and whose output was not on the screen."""
    for record in run.records:
        log = Path(run.folder, "logs", f"rank{record.rank}.log")
        if record.rank == 0 or (record.exit and not record.exit.get("code")) or not log.is_file():
            continue
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        for line in lines[-_SHOWN_LOG_LINES:]:
            print(f"[rank {record.rank}] {line}", file=sys.stderr)


def _write_page(path: Path, run: Run) -> None:
    from torchport.project import source_reader
    from torchport.report import rehearsal_html

    read = source_reader(Path(run.plan.project))
    try:
        page = rehearsal_html.render(run, read=read, language=language())
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        refuse(_("--html {path}: {error}").format(path=path, error=error.strerror), 2)


def _print_report(run: Run, form: str, html: Path | None) -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    if form == "json":
        from torchport.report import rehearsal_json

        print(rehearsal_json.render(run), end="")
        return
    from torchport.report import rehearsal_text

    print()
    print(
        rehearsal_text.render(run, **layout(sys.stdout), page=str(html.resolve()) if html else None),
        end="",
    )
