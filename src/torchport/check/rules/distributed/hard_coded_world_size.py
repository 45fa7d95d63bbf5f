"""Finds a number of processes that is written into the program.

On a machine with fewer GPUs the last ranks have none and fail; on one with more, the others stay idle.

Bad::

    import torch
    import torch.multiprocessing as mp


    def worker(rank):
        print(torch.cuda.get_device_name(rank))


    if __name__ == "__main__":
        mp.spawn(worker, nprocs=4)

Good::

    import torch
    import torch.multiprocessing as mp


    def worker(rank):
        print(torch.cuda.get_device_name(rank))


    if __name__ == "__main__":
        mp.spawn(worker, nprocs=torch.cuda.device_count())
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import INFO, POSSIBLE, WARNING, Change, Hit, Rule
from torchport.check.rules.ranks import INIT
from torchport.check.rules.words import code_of
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C323",
    "hard-coded-world-size",
    WARNING,
    mark("`{code}` processes, whatever number of GPUs the machine has"),
    mark("Take `torch.cuda.device_count()`, or the WORLD_SIZE that the launcher sets"),
)
_SPAWN = "torch.multiprocessing.spawn"
_OPTIONS = frozenset("--world_size --world-size --nprocs --ngpus --num_gpus --num-gpus --n_gpus".split())


def look(source: Source) -> Iterator[Hit]:
    """Numbers above one as ``nprocs`` or ``world_size``, by themselves, by a name or as the default of an option."""
    calls = source.calls(_SPAWN, INIT, ".add_argument")
    if not calls or "cuda" not in source.text or "distributed.rpc" in code_of(source):
        return
    for call in source.calls(_SPAWN, INIT):
        spawn = source.name(call.func) == _SPAWN
        given = argument(call, "nprocs", 2) if spawn else argument(call, "world_size", 3)
        if given is None or constant(argument(call, "backend", 0)) == "gloo":
            continue
        values = source.values(given)
        if len(values) == 1 and _is_several(values[0]):
            fix: tuple[Change, ...] = ()
            if spawn:
                fix = (changes.replace(source, values[0], "torch.cuda.device_count()"),)
            yield Hit(values[0], {"code": source.code(values[0])}, fix, needs=("torch",) if fix else ())
    for call in source.calls(".add_argument"):
        default = argument(call, "default")
        names = {constant(each) for each in call.args}
        if names & _OPTIONS and default is not None and _is_several(default):
            yield Hit(default, {"code": source.code(default)}, severity=INFO, confidence=POSSIBLE)


def _is_several(node: ast.expr) -> bool:
    value = constant(node)
    return isinstance(value, int) and not isinstance(value, bool) and value > 1
