"""Finds a file from the network that is unpickled.

``weights_only=False`` runs whatever code the file holds, as this user, on this machine.

Bad::

    import torch
    from huggingface_hub import hf_hub_download

    path = hf_hub_download("someone/model", "model.pt")
    state = torch.load(path, map_location="cpu", weights_only=False)

Good::

    import torch
    from huggingface_hub import hf_hub_download

    path = hf_hub_download("someone/model", "model.pt")
    state = torch.load(path, map_location="cpu", weights_only=True)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.saving import loads
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C831",
    "load-from-download",
    WARNING,
    mark("this runs whatever code a file from the network holds"),
    mark("Use `weights_only=True`, or files of the safetensors format"),
    since=(1, 13),
)
_DOWNLOADS = frozenset(
    "huggingface_hub.hf_hub_download huggingface_hub.snapshot_download requests.get urllib.request.urlopen "
    "urllib.request.urlretrieve gdown.download wget.download torch.hub.download_url_to_file".split()
)


def look(source: Source) -> Iterator[Hit]:
    """Loads without the guard of what a known download gave."""
    for call in loads(source):
        path = argument(call, "f", 0)
        if path is not None and constant(argument(call, "weights_only")) is False and _is_from_net(source, path):
            yield Hit(call)
    for call in source.calls("torch.hub.load_state_dict_from_url", "torch.utils.model_zoo.load_url"):
        if constant(argument(call, "weights_only")) is False:
            yield Hit(call)


def _is_from_net(source: Source, node: ast.expr) -> bool:
    """Whether an expression is a download, or its bytes: ``io.BytesIO(requests.get(url).content)``."""
    for value in source.values(node):
        if isinstance(value, ast.Attribute) and _is_from_net(source, value.value):
            return True
        if isinstance(value, ast.Call):
            name = source.name(value.func)
            if name in _DOWNLOADS or (name == "io.BytesIO" and any(_is_from_net(source, each) for each in value.args)):
                return True
    return False
