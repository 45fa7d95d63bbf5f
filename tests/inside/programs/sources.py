"""Reads its own source, warns and prints tracebacks of what it caught."""

import inspect
import linecache
import logging
import sys
import traceback
import typing
import warnings


class Model:
    """A class of the main module."""

    width: int = 3


def warn(level: int) -> None:
    warnings.warn(f"level {level}", stacklevel=level)


def outer(level: int) -> None:
    warn(level)


print(inspect.getsource(warn))
print(inspect.getsource(Model), inspect.getsourcefile(Model) == __file__)
print(inspect.getmodule(warn) is sys.modules["__main__"], linecache.getline(__file__, 1))
print(typing.get_type_hints(Model), __annotations__ if "__annotations__" in globals() else None)
for stacklevel in (1, 2, 3, 4, 9):
    outer(stacklevel)
warnings.warn("seen in __main__ only", DeprecationWarning, stacklevel=1)
warnings.warn("above the script", stacklevel=2)
logging.basicConfig(format="%(levelname)s %(module)s:%(lineno)d %(funcName)s %(message)s")
logging.warning("where am I")
try:
    outer("x")  # type: ignore[arg-type]
except TypeError:
    traceback.print_exc()
    logging.exception("caught")
    print([(frame.name, frame.lineno) for frame in traceback.extract_tb(sys.exc_info()[2])])
