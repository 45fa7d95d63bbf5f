"""``torchport check``: read a project's source and print what would fail, crawl or differ on a GPU."""

from __future__ import annotations

import gc
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchport.cli.printing import format_option, layout, refuse
from torchport.cli.words import Command, Option, language_option
from torchport.text import _, language, mark, set_language

if TYPE_CHECKING:
    from torchport.api.check import Request
    from torchport.survey import Survey

FORMATS = ("text", "json", "sarif", "github", "html")


@click.command(
    "check",
    cls=Command,
    short_help=mark("Read the source and tell what would fail on a GPU."),
    help=mark(
        "Read Python files, notebooks, shell scripts, container files and requirements, and tell what would fail, "
        "crawl or differ on a GPU. Nothing of them is imported or run, and no torch is needed. Without a PATH "
        "everything below the working directory is read."
    ),
)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--fix", is_flag=True, cls=Option, help=mark("Make the repairs that cannot change what is computed."))
@click.option("--unsafe-fixes", "unsafe", is_flag=True, cls=Option, help=mark("Make also those that may change it."))
@click.option("--diff", is_flag=True, cls=Option, help=mark("Show the repairs as a patch and write nothing."))
@click.option(
    "--select",
    metavar="IDS",
    multiple=True,
    cls=Option,
    help=mark("Only these rules: ids such as C101, beginnings such as C1, or names, with commas between."),
)
@click.option("--ignore", metavar="IDS", multiple=True, cls=Option, help=mark("Not these rules."))
@click.option(
    "--baseline",
    metavar="FILE",
    cls=Option,
    help=mark("Leave out the findings that this file knows, wherever their lines have moved."),
)
@click.option(
    "--write-baseline",
    is_flag=True,
    cls=Option,
    help=mark("Write what is found now as the baseline. [default file: torchport-baseline.json]"),
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "info"]),
    default="warning",
    cls=Option,
    help=mark("The least severity that makes the exit code 1."),
)
@format_option(mark("How to print the report."), *FORMATS)
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    cls=Option,
    help=mark("Write the report to this file; a summary goes to standard error."),
)
@language_option()
def check(form: str, output: Path | None, fail_on: str, **asked: Any) -> int:
    """Returns the exit code of contract.md."""
    # Here and not above: the help has to come at once.
    from torchport.api.check import PathMissing, Request, check, exit_code
    from torchport.check.baseline import BaselineError
    from torchport.check.select import UnknownRule
    from torchport.config import ConfigError
    from torchport.finding import Severity

    asked["paths"] = tuple(asked["paths"])
    for name in ("select", "ignore"):
        asked[name] = _words(asked[name])
    request = Request(**asked)
    wrong = _contradiction(request, form, output)
    if wrong:
        return refuse(wrong, 2)
    spoken = language()
    gc.set_threshold(200_000)  # syntax trees are many objects and few cycles: looking often takes a tenth of the time
    try:
        if form == "json":
            set_language("en")  # what programs read never changes with the language
        survey = check(request, folder=Path.cwd())
    except UnknownRule as error:
        return refuse(_unknown_rule(error.name, error.nearest), 2)
    except (PathMissing, ConfigError, BaselineError) as error:
        return refuse(str(error), 2)
    finally:
        set_language(spoken)
    code = exit_code(survey, Severity(fail_on))
    if not _print(survey, form, output, code):
        return 2
    return code


def _words(given: tuple[str, ...]) -> tuple[str, ...] | None:
    """Ids and names, given one by one or with commas; None where the option was not given."""
    words = (word.strip() for each in given for word in each.split(","))
    return tuple(filter(None, words)) if given else None


def _contradiction(request: Request, form: str, output: Path | None) -> str | None:
    if request.diff and (form != "text" or output is not None):
        return _("--diff prints a patch: it goes with neither --format nor --output")
    if request.write_baseline and (request.fix or request.unsafe or request.diff):
        return _("--write-baseline goes with no repairs: repair first, then write what is left")
    if output is not None and not output.absolute().parent.is_dir():
        return _("--output {path}: there is no folder {folder}").format(path=output, folder=output.parent)
    return None


def _unknown_rule(name: str, nearest: tuple[str, ...]) -> str:
    if nearest:
        return _("no rule is named {name}; the nearest are {nearest}").format(name=name, nearest=", ".join(nearest))
    return _("no rule is named {name}; ids look like C101, and C1 means all that begin so").format(name=name)


def _print(survey: Survey, form: str, output: Path | None, code: int) -> bool:
    """Prints or writes the report; False where it cannot be written."""
    from torchport.report import check_text

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if survey.diff is not None:
        print(survey.diff, end="")
        print(check_text.render_summary(survey, **layout(sys.stderr)), end="", file=sys.stderr)
    elif output is None:
        print(_report(survey, form, code, layout(sys.stdout)), end="")
    else:
        try:
            output.write_text(_report(survey, form, code, {}), encoding="utf-8")
        except OSError as error:
            refuse(_("--output {path}: {error}").format(path=output, error=error.strerror), 2)
            return False
        print(check_text.render_summary(survey, **layout(sys.stderr)), end="", file=sys.stderr)
    return True


def _report(survey: Survey, form: str, code: int, style: dict[str, Any]) -> str:
    from torchport.api.check import reader

    read = reader(Path.cwd())
    if form == "json":
        from torchport.report import check_json

        return check_json.render(survey, read=read, exit_code=code)
    if form == "sarif":
        from torchport import __version__
        from torchport.report import check_sarif

        return check_sarif.render(survey, read=read, version=__version__)
    if form == "github":
        from torchport.report import check_github

        return check_github.render(survey)
    if form == "html":
        from torchport.report import check_html

        return check_html.render(survey, read=read, language=language(), folder=Path.cwd().name)
    from torchport.report import check_text

    return check_text.render(survey, read=read, **style)
