"""Imports a module beside it and shows which byte code was written."""

import os

import shapeless

print(shapeless.__cached__, sorted(os.listdir(os.path.dirname(shapeless.__cached__))))
