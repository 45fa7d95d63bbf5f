"""An exception that the program did not catch: peeled of our frames, and shown as Python shows it."""

from __future__ import annotations

import contextlib
import os
import sys
from types import TracebackType

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def peel(trace: TracebackType | None) -> TracebackType | None:
    """``trace`` without the frames of our own, wherever they stand in it; changes it in place."""
    while trace is not None and _is_ours(trace):
        trace = trace.tb_next
    kept = trace
    while kept is not None:
        following = kept.tb_next
        while following is not None and _is_ours(following):
            following = following.tb_next
        kept.tb_next = following
        kept = following
    return trace


def _is_ours(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code.co_filename.startswith(_OURS)


def peel_all(error: BaseException) -> None:
    """Peels the error, those it came from and, in a group, those it holds."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = peel(one.__traceback__)
            waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]


def report(error: BaseException) -> None:
    """Does what the interpreter does with an exception that nobody caught (``PyErr_PrintEx``).

    Call it outside of ``except``: the user's hook must not find an exception being handled.
    Raises SystemExit where the user's hook does.
    """
    kind, trace = type(error), error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, trace
    sys.audit("sys.excepthook", getattr(sys, "excepthook", None), kind, error, trace)
    if not hasattr(sys, "excepthook"):
        sys.stderr.write("sys.excepthook is missing\n")
        sys.__excepthook__(kind, error, trace)
        return
    second: BaseException | None = None
    try:
        sys.excepthook(kind, error, trace)
    except SystemExit:
        raise
    except BaseException as caught:
        second = caught
    if second is not None:
        peel_all(second)
        sys.stderr.write("Error in sys.excepthook:\n")
        sys.__excepthook__(type(second), second, second.__traceback__)
        sys.stderr.write("\nOriginal exception was:\n")
        sys.__excepthook__(kind, error, trace)


def mark_interrupted() -> None:
    """Has the interpreter die of SIGINT at its very end, as it does after a Ctrl-C.

    It decides by a flag, which is set when KeyboardInterrupt leaves code that it was given as text.
    """
    with contextlib.suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt")
