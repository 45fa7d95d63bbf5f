"""Seeds random, numpy and torch as each is imported, so that runs of a script without a seed can be compared.

Where LINES_TO names a file, the lines below the current folder that the program comes to are written there.
"""

import atexit
import importlib.abc
import importlib.machinery
import os
import random
import sys
import threading

random.seed(0)
SEEDERS = {
    "numpy": lambda module: module.random.seed(0),
    "torch": lambda module: module.manual_seed(0),
}


class SeedAfterImport(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        seeder = SEEDERS.get(name)
        if seeder is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                seeder(module)

            spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, SeedAfterImport())


def note_lines(target):
    root, seen = os.path.realpath(os.getcwd()) + os.sep, set()

    def trace(frame, event, arg):
        if not frame.f_code.co_filename.startswith(root):
            return None
        seen.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    def write():
        with open(target, "a", encoding="utf-8") as file:  # of all processes that import this
            file.writelines(f"{os.path.relpath(name, root)}:{line}\n" for name, line in sorted(seen))

    atexit.register(write)
    threading.settrace(trace)
    sys.settrace(trace)


if os.environ.get("LINES_TO"):
    note_lines(os.environ["LINES_TO"])
