"""Prints all that a program can see of the way it was started."""

import gc
import json
import os
import signal
import sys
import threading
import warnings
from types import ModuleType
from typing import Any


def describe(value: Any) -> Any:
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if type(value).__name__ == "ModuleSpec":
        return {key: describe(item) for key, item in vars(value).items()}
    if type(value).__name__.endswith(("Loader", "importer")):
        shown = {key: item for key, item in vars(value).items() if key in ("name", "path", "archive", "prefix")}
        return [type(value).__module__, type(value).__name__, shown]
    return f"function {value.__name__}" if callable(value) else repr(value)


print(
    json.dumps(
        {
            "main": {name: describe(value) for name, value in globals().items()},
            "main is sys.modules'": vars(sys.modules["__main__"]) is globals(),
            "argv": sys.argv,
            "orig_argv": sys.orig_argv,
            "path": sys.path,
            "flags": repr(sys.flags),
            "xoptions": repr(sys._xoptions),
            "executable": sys.executable,
            "prefix": [sys.prefix, sys.exec_prefix, sys.base_prefix],
            "dont_write_bytecode": sys.dont_write_bytecode,
            "buffered": [
                sys.stdout.line_buffering,
                sys.stdout.write_through,
                sys.stdout.encoding,
                sys.stdin.mode,
            ],
            "environ": dict(os.environ),
            "cwd": os.getcwd(),
            "files": sorted(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else [],
            "threads": [thread.name for thread in threading.enumerate()],
            "sigint": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
            "hooks": [sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__],
            "tracing": [sys.gettrace(), sys.getprofile()],
            "handled": repr(sys.exc_info()),
            "last": [name for name in vars(sys) if name.startswith("last_")],
            "gc": [gc.isenabled(), gc.get_threshold()],
            "warnings": repr(warnings.filters),
        },
        indent=1,
    )
)
