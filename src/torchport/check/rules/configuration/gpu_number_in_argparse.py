"""Finds a default GPU that most machines do not have.

Bad::

    import argparse

    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda:1")

Good::

    import argparse

    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C907",
    "gpu-number-in-argparse",
    WARNING,
    mark("by default this asks for GPU {number}, which a machine with fewer does not have"),
    mark('Let the default be `"cuda"`, or GPU 0'),
)
_NAMES = re.compile(r"--?(gpu|gpu[-_]?ids?|gpu[-_]?index|cuda[-_]?(id|index|device)?|device|device[-_]?id)s?")


def look(source: Source) -> Iterator[Hit]:
    """``cuda:1`` and beyond for any option; a number of 1 and more for those with the name of one GPU."""
    for call in source.calls(".add_argument", "click.option"):
        given = argument(call, "default")
        value = constant(given)
        if given is None or isinstance(value, bool):
            continue
        match = re.fullmatch(r"cuda:(\d+)", value) if isinstance(value, str) else None
        if match and int(match[1]) > 0:
            yield Hit(given, {"number": match[1]}, (replace(source, given, '"cuda"'),))
        elif isinstance(value, int) and 0 < value < 64 and _names_one(call):
            yield Hit(given, {"number": value}, (replace(source, given, "0"),))


def _names_one(call: ast.Call) -> bool:
    """Whether an option means the number of a GPU, not how many there are."""
    names = [name for each in call.args if isinstance(name := constant(each), str)]
    text = constant(argument(call, "help"))
    counts = isinstance(text, str) and re.search(r"number of|how many|num|use |whether|enable", text.lower())
    return any(_NAMES.fullmatch(name) and not name.endswith("s") for name in names) and not counts
