"""Installs the excepthook that its argument names, and fails."""

import atexit
import sys
import traceback


def shows(kind, value, trace):
    print("hook", kind.__name__, value, [frame.name for frame in traceback.extract_tb(trace)], sys.exc_info())
    print(sys.last_value is value, sys.last_traceback is trace, getattr(sys, "last_exc", value) is value)
    print(sorted(name for name in globals() if name in ("__file__", "__cached__")))


def fails(kind, value, trace):
    raise RuntimeError("in the hook")


def exits(kind, value, trace):
    sys.exit(13)


def audit(event, arguments):
    if event == "sys.excepthook":
        print("audit", [getattr(argument, "__name__", str(argument)) for argument in arguments[:3]])


atexit.register(print, "atexit")
match sys.argv[1]:
    case "missing":
        del sys.excepthook
    case "none":
        sys.excepthook = None
    case "audited":
        sys.addaudithook(audit)
    case name:
        sys.excepthook = globals()[name]
print("out")
raise ValueError("for the hook")
