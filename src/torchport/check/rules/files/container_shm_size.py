"""Finds containers that get a GPU and only 64 MB of shared memory.

The workers of a DataLoader hand their batches over in ``/dev/shm``, and so do the ranks of NCCL. A container has
64 MB of it unless told otherwise, and a worker that needs more is killed with a bus error.

Bad::

    docker run --gpus all -v "$PWD:/work" trainer python train.py --workers 8

Good::

    docker run --shm-size=8g --gpus all -v "$PWD:/work" trainer python train.py --workers 8

Good::

    docker run --gpus all --ipc=host trainer python train.py

Good::

    docker run --rm trainer python -m pytest
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchport.check.rule import LIKELY, WARNING, Hit, Rule
from torchport.check.texts import Text
from torchport.text import mark

META = Rule(
    "C960",
    "container-shm-size",
    WARNING,
    mark("The container has 64 MB of shared memory, and workers of a DataLoader that need more die with a bus error"),
    mark("Give it what the batches of all workers need: `{what}`"),
    confidence=LIKELY,
)
FILES = ("shell", "makefile", "markdown", "compose")

_RUN = re.compile(r"\b(?:docker|podman|nerdctl)(?:[ \t]+container)?[ \t]+(?P<run>run|create)\b(?P<rest>[^\r\n;|]*)")
_GPU = re.compile(r"--gpus\b|--runtime[= ]nvidia\b|nvidia\.com/gpu|/dev/nvidia")
_SHARED = re.compile(r"--shm-size\b|--ipc\b|/dev/shm\b")
_VARIABLE = re.compile(r"\$\(?\{?\w*(?:OPT|ARG|FLAG)\w*", re.IGNORECASE)
_SERVICES = re.compile(r"^services:[ \t]*$", re.MULTILINE)
_GPU_SERVICE = re.compile(
    r"^[ \t]+runtime:[ \t]*[\"']?nvidia|^[ \t]+gpus:|capabilities:[^\n]*\bgpu\b|^[ \t]+- gpu\b", re.MULTILINE
)
_SHARED_SERVICE = re.compile(r"^[ \t]+(?:shm_size|ipc|extends|<<):|/dev/shm\b", re.MULTILINE)


def look(text: Text) -> Iterator[Hit]:
    """Command lines with a GPU, and services of a compose file that reserve one."""
    if text.kind == "compose":
        yield from _services(text)
        return
    for match in _RUN.finditer(text.commands):
        rest = match["rest"]
        if _GPU.search(rest) and not _SHARED.search(rest) and not _VARIABLE.search(rest):
            at = match.end("run")
            yield Hit((match.start(), at), {"what": "--shm-size=8g"}, ((at, at, " --shm-size=8g"),))


def _services(text: Text) -> Iterator[Hit]:
    start = _SERVICES.search(text.commands)
    if start is None:
        return
    body = text.commands[start.end() :]
    ends = re.search(r"^\S", body, re.MULTILINE)
    body = body[: ends.start()] if ends else body
    first = re.search(r"^(?P<indent>[ \t]+)[\w.-]+:[ \t]*$", body, re.MULTILINE)
    if first is None:
        return
    names = list(re.finditer(rf"^{first['indent']}[\w.-]+:[ \t]*$", body, re.MULTILINE))
    for name, following in zip(names, [*names[1:], None], strict=True):
        service = body[name.end() : following.start() if following else None]
        key = re.search(r"^(?P<indent>[ \t]+)(?=[\w<])", service, re.MULTILINE)
        if key and _GPU_SERVICE.search(service) and not _SHARED_SERVICE.search(service):
            offset = start.end() + name.end()
            at = offset + key.start()
            newline = "\r\n" if "\r\n" in text.text else "\n"
            span = (start.end() + name.start() + len(first["indent"]), offset)
            yield Hit(span, {"what": "shm_size: 8gb"}, ((at, at, f"{key['indent']}shm_size: 8gb{newline}"),))
