"""Has objects that outlive the main program."""

import sys
import threading
import weakref


class Last:
    def __init__(self, name: str) -> None:
        self.name = name

    def __del__(self) -> None:
        print("deleted", self.name, sys.modules is not None, threading.main_thread().name)
        if self.name == "fails":
            raise ValueError("in __del__")


def program() -> None:
    local = Last("local")
    weakref.finalize(local, print, "finalized")
    if sys.argv[1:] == ["exit"]:
        sys.exit(3)
    if sys.argv[1:] == ["error"]:
        raise ValueError("with a local object")


first, failing = Last("global"), Last("fails")
program()
