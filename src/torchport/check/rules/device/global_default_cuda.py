"""Finds CUDA as the default device of the whole program beside a data loader that shuffles.

The sampler then draws its indices on the GPU with a generator of the CPU: ``Expected a 'cuda' device type for
generator``. Workers that make tensors open CUDA in a forked process as well.

Bad::

    import torch
    from torch.utils.data import DataLoader

    torch.set_default_device("cuda")
    loader = DataLoader(list(range(100)), batch_size=8, shuffle=True)

Good::

    import torch
    from torch.utils.data import DataLoader

    device = torch.device("cuda")
    loader = DataLoader(list(range(100)), batch_size=8, shuffle=True)
    model = torch.nn.Linear(1, 1).to(device)

Bad::

    import torch
    from torch.utils.data import DataLoader

    if torch.cuda.is_available():
        torch.set_default_tensor_type("torch.cuda.FloatTensor")
    loader = DataLoader(list(range(100)), shuffle=True, num_workers=2)

Good::

    import torch
    from torch.utils.data import DataLoader

    torch.set_default_device("cuda")
    generator = torch.Generator(device="cuda")
    loader = DataLoader(list(range(100)), shuffle=True, generator=generator)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.rules.moves import is_cuda_type
from torchport.check.source import Source, argument, constant, is_open
from torchport.text import mark

META = Rule(
    "C131",
    "global-default-cuda",
    ERROR,
    mark("With `{code}` the shuffling of a data loader fails: its random numbers are drawn on the CPU"),
    mark("Leave the default as it is, and move the model and each batch with `.to(device)`"),
    since=(1, 9),
)


def look(source: Source) -> Iterator[Hit]:
    """The calls that make CUDA the default, in a file with a loader that shuffles and has no generator."""
    loader = next((each for each in source.calls("torch.utils.data.DataLoader") if _shuffles(each)), None)
    if loader is None:
        return
    for call in source.calls("torch.set_default_device", "torch.set_default_tensor_type"):
        given = call.args[0] if call.args else next((each.value for each in call.keywords), None)
        if given is not None and any(_is_cuda(source, each) for each in source.values(given)):
            yield Hit(call, {"code": source.code(call)}, seen=((source.span(loader)[0], mark("this loader shuffles")),))


def _shuffles(call: ast.Call) -> bool:
    shuffle = argument(call, "shuffle", 2)
    return (
        shuffle is not None and constant(shuffle) is not False and not is_open(call) and not argument(call, "generator")
    )


def _is_cuda(source: Source, node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and source.name(node.func) == "torch.device" and node.args:
        return any(_is_cuda(source, each) for each in source.values(node.args[0]))
    text = constant(node)
    if isinstance(text, str):
        return text.split(":")[0] == "cuda" or is_cuda_type(text)
    return is_cuda_type(source.name(node))
