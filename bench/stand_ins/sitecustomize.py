"""Seeds random, numpy and torch as each is imported, so that runs of a script without a seed can be compared."""

import importlib.abc
import importlib.machinery
import random
import sys

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
