"""Command lines in the user's language: click's parts, with their help looked up when it is shown."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click
from click import core, decorators, exceptions, formatting, parser, types

from torchport import text
from torchport.text import LANGUAGES, _, mark, set_language

# What click says of its own on our command lines. It asks gettext, and is made to ask our catalogue.
CLICK_SAYS = (
    mark("Usage:"),
    mark("Options"),
    mark("Commands"),
    mark("Show this message and exit."),
    mark("Show the version and exit."),
    mark("%(prog)s, version %(version)s"),
    mark("Error: {message}"),
    mark("Try '{command} {option}' for help."),
    mark("No such option {name!r}."),
    mark("No such command {name!r}."),
    mark("Missing command."),
    mark("Missing argument"),
    mark("Invalid value for {param_hint}: {message}"),
    mark("{value!r} is not a valid {number_type}."),
    mark("{value} is not in the range {range}."),
    mark("Option {name!r} does not take a value."),
)


def _click_forms(count: int) -> tuple[str, ...]:
    """The messages of click that have a plural."""
    return (
        text.ngettext("Did you mean {possibility}?", "(Did you mean one of: {possibilities}?)", count),
        text.ngettext("Option {name!r} requires an argument.", "Option {name!r} requires {nargs} arguments.", count),
        text.ngettext("{value!r} is not {choice}.", "{value!r} is not one of {choices}.", count),
    )


for module in (core, decorators, exceptions, formatting, parser, types):
    vars(module).update(_=text._, ngettext=text.ngettext)


class Option(click.Option):
    """An option whose help is English in the code and translated when it is shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        english, self.help = self.help, self.help and _(self.help)
        try:
            return super().get_help_record(ctx)
        finally:
            self.help = english


class Command(click.Command):
    """A command whose help is translated when it is shown; ``--lang`` counts wherever it stands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        asked = list(_languages(self.own_words(args)))
        if asked and asked[-1] in LANGUAGES:
            set_language(asked[-1])
        return super().parse_args(ctx, args)

    def own_words(self, args: Sequence[str]) -> Sequence[str]:
        """The words that are this command's and not for what follows it."""
        return args

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        english, self.help = self.help, self.help and _(self.help)
        try:
            super().format_help_text(ctx, formatter)
        finally:
            self.help = english

    def get_short_help_str(self, limit: int = 45) -> str:
        english = self.short_help or self.help
        return _(english) if english else ""


class Group(Command, click.Group):
    """Commands by name, in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def own_words(self, args: Sequence[str]) -> Sequence[str]:
        return list(itertools.takewhile(lambda word: word not in self.commands, args))


class RunsAProgram(Command):
    """A command that ends in the user's own command line: our options come first, the rest is theirs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        start = self._program_start(args)
        program = args[start:]
        rest = super().parse_args(ctx, args[:start])
        ctx.params["words"] = tuple(program[1:] if program[:1] == ["--"] else program)
        return rest

    def _program_start(self, args: Sequence[str]) -> int:
        takes_value = {
            name: not option.is_flag
            for option in self.params
            if isinstance(option, click.Option)
            for name in option.opts
        }
        index = 0
        while index < len(args):
            word = args[index]
            if word in ("--", "-m") or not word.startswith("-") or word == "-":
                break
            index += 2 if takes_value.get(word, False) else 1
        return min(index, len(args))


def _languages(args: Sequence[str]) -> Iterator[str]:
    for index, word in enumerate(args):
        if word == "--lang":
            yield from args[index + 1 : index + 2]
        elif word.startswith("--lang="):
            yield word.removeprefix("--lang=")


def language_option() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--lang``, which every command takes."""
    return click.option(
        "--lang",
        type=click.Choice(list(LANGUAGES)),
        cls=Option,
        help=mark("Language of all messages."),
        expose_value=False,
    )
