"""``torchport explain``: what an id of a finding means, and what to do about it."""

from __future__ import annotations

import io
import sys

import click

from torchport.cli.printing import format_option, layout
from torchport.cli.words import Command, language_option
from torchport.text import _, language, mark, set_language


@click.command(
    "explain",
    cls=Command,
    short_help=mark("Tell what a finding means and what to do about it."),
    help=mark(
        "Tell what a finding means, why it hurts and what to do about it. TARGET is the id of a finding, such as "
        "C101 or R101, or the name of a rule, such as discarded-to."
    ),
)
@click.argument("target", metavar="TARGET")
@format_option(mark("How to print the report."))
@language_option()
def explain(target: str, form: str) -> int:
    """Returns the exit code of contract.md."""
    # Here and not above: the help has to come at once.
    from torchport.api.explain import NotKnown, explain
    from torchport.report import explanation_text

    spoken = language()
    try:
        if form == "json":
            set_language("en")
        explanation = explain(target)
    except NotKnown as error:
        message = _("{target}: only ids of findings, such as C101 or R101, and names of rules are known here")
        print("torchport: " + message.format(target=error.target), file=sys.stderr)
        if error.nearest:
            print(
                "torchport: " + _("the nearest are {nearest}").format(nearest=", ".join(error.nearest)), file=sys.stderr
            )
        return 2
    finally:
        set_language(spoken)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    if form == "json":
        print(explanation_text.render_json(explanation), end="")
        return 0
    print(explanation_text.render(explanation, **layout(sys.stdout)), end="")
    return 0
