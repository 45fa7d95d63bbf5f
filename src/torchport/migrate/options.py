"""The command line that a program reads with argparse, and one more option for it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from torchport.check import changes
from torchport.check.rule import Change
from torchport.check.rules.training import receiver
from torchport.check.source import Source, argument, constant, parameters
from torchport.migrate.passing import Function, callers

_MOST_STEPS = 3


@dataclass(frozen=True, slots=True)
class Options:
    """``given`` are the calls of ``add_argument``; ``parsed`` is the statement that binds ``name`` to what was read."""

    source: Source
    given: tuple[ast.Call, ...]
    parsed: ast.Assign
    name: str

    def known_at(self, node: ast.AST, steps: int = _MOST_STEPS) -> bool:
        """Whether the options are read before a node runs, and known there by their name; given to a function, too."""
        function = self.source.function(node)
        if function is not self.source.function(self.parsed) and self._given(function, steps):
            return True
        found = self.source.scope_at(node).find(self.name)
        if found is None or len(found[1]) != 1 or found[1][0].node is not self.parsed:
            return False
        same = function is self.source.function(self.parsed)
        return not same or getattr(node, "lineno", 0) > self.parsed.lineno

    def _given(self, function: Function | None, steps: int) -> bool:
        """Whether every call of a function gives the options for its parameter of their name."""
        names = [each.arg for each in parameters(function) if each.arg not in ("self", "cls")] if function else []
        calls = callers(self.source, function) if self.name in names and steps else []
        given = [argument(call, self.name, names.index(self.name)) for call in calls]
        return bool(calls) and all(
            isinstance(each, ast.Name) and each.id == self.name and self.known_at(each, steps - 1) for each in given
        )

    def flags(self) -> list[str]:
        return [str(constant(each)) for call in self.given for each in call.args if isinstance(constant(each), str)]

    def add(self, flag: str, rest: str) -> Change:
        """One more option behind the others, with the user's quotes."""
        last = self.given[-1]
        quote = "'" if last.args and self.source.code(last.args[0]).startswith("'") else '"'
        owner = self.source.code(receiver(last) or last)
        line = f"{owner}.add_argument({quote}{flag}{quote}, {rest})"
        return changes.after(self.source, self.source.statement(last), line)


def options(source: Source) -> Options | None:
    """The options of a file, where a plain parser reads them."""
    for statement in source.nodes(ast.Assign):
        call, target = statement.value, statement.targets[0]
        if not isinstance(call, ast.Call) or not isinstance(target, ast.Name):
            continue
        owner = receiver(call)
        if owner is None or not source.code(call.func).endswith(".parse_args"):
            continue
        given = [
            each
            for each in source.calls(".add_argument")
            if source.code(receiver(each) or each) == source.code(owner)
            and source.function(each) is source.function(statement)
            and isinstance(source.parent(each), ast.Expr)
            and each.lineno < statement.lineno
        ]
        if given:
            return Options(source, tuple(given), statement, target.id)
    return None
