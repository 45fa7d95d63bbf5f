"""Finds a script that takes its rank from ``--local_rank`` alone.

``torchrun`` sets the environment variable ``LOCAL_RANK`` and passes no argument, so all ranks read the default and
use the same GPU. ``python -m torch.distributed.launch`` writes ``--local-rank`` since torch 2.0, with a dash:
"error: unrecognized arguments: --local-rank=0".

Bad::

    import argparse

    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=0)
    args = parser.parse_args()
    torch.cuda.set_device(args.local_rank)

Good::

    import os
    import argparse

    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", "--local-rank", type=int, default=int(os.environ.get("LOCAL_RANK", 0)))
    args = parser.parse_args()
    torch.cuda.set_device(args.local_rank)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, WARNING, Change, Hit, Rule
from torchport.check.rules.words import code_of
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C321",
    "launch-local-rank-arg",
    ERROR,
    mark("The rank comes from `{flag}` alone: torchrun passes no such argument, the launcher of torch 2 another one"),
    mark("Take the default from the environment variable LOCAL_RANK, and accept --local-rank as well"),
    confidence=CERTAIN,
    since=(2, 0),
)


def look(source: Source) -> Iterator[Hit]:
    """``add_argument("--local_rank")`` in a file that does not know ``LOCAL_RANK``."""
    if not source.calls(".add_argument") or "LOCAL_RANK" in code_of(source):
        return
    uses = [node for node in source.nodes(ast.Attribute) if node.attr == "local_rank"]
    if any(isinstance(node.ctx, ast.Store) for node in uses):
        return  # the program says itself what its rank is
    for call in source.calls(".add_argument"):
        flags = [each for each in call.args if isinstance(constant(each), str)]
        names = [constant(each) for each in flags]
        if not flags or not {"--local_rank", "--local-rank"} & set(names):
            continue
        missing = next((each for each in ("--local_rank", "--local-rank") if each not in names), "")
        end = source.span(flags[-1])[1]
        quote = source.code(flags[-1])[-1]
        fix: list[Change] = [(end, end, f", {quote}{missing}{quote}")] if missing else []
        default = argument(call, "default")
        if isinstance(default, (ast.Constant, ast.UnaryOp)):
            text = f'int(os.environ.get("LOCAL_RANK", {source.code(default)}))'
            fix.append((*source.span(default), text))
        needs = ("os",) if "os.environ" in "".join(text for _start, _end, text in fix) else ()
        if not uses and (not missing or "--local-rank" in names):
            continue  # it takes what a launcher passes, and another file asks the environment
        yield Hit(call, {"flag": names[0]}, tuple(fix), needs=needs, severity=None if uses else WARNING)
