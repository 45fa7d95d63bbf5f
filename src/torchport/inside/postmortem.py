"""What ended a program, where that is something a rehearsal does not have: custom CUDA kernels and Triton."""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any

from torchport.inside.places import Place
from torchport.inside.vcuda.faults import Faults

_OPERATOR = re.compile(
    r"Could not run '((?!aten|prim|quantized)\w+::\w+)[^']*' with arguments from the 'C(?:PU|UDA)' backend"
)
_BUILD = re.compile(r"Error building extension '([^']+)'|CUDA_HOME environment variable is not set")


def note(faults: Faults, error: BaseException, place: Place | None) -> None:
    """Records R502 or R503 if ``error`` came from a kernel that only a card can run; ``place`` is the user's line."""
    files = _files(error.__traceback__)
    text = str(error)
    if any("/triton/" in file for file in files) or type(error).__module__.partition(".")[0] == "triton":
        faults.remark("R503", what=_kernel(error), text=text[:300], severity="error", place=place)
        return
    operator, build = _OPERATOR.search(text), _BUILD.search(text)
    if operator or build or any(file.endswith("cpp_extension.py") for file in files):
        name = operator.group(1) if operator else (build.group(1) if build else None) or "a CUDA extension"
        faults.remark("R502", what=name, text=text[:300], severity="error", place=place)


def _files(trace: TracebackType | None) -> list[str]:
    files = []
    while trace is not None:
        files.append(trace.tb_frame.f_code.co_filename.replace("\\", "/"))
        trace = trace.tb_next
    return files


def _kernel(error: BaseException) -> str:
    """Name of the Triton kernel that was being launched, read off Triton's own frame."""
    trace = error.__traceback__
    while trace is not None:
        launched: Any = trace.tb_frame.f_locals.get("self")
        if type(launched).__module__.startswith("triton.") and hasattr(launched, "__name__"):
            return str(launched.__name__)
        trace = trace.tb_next
    return "a Triton kernel"
