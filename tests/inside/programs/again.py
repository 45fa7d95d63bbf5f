"""Replaces its own process by a second run of itself."""

import os
import sys

print(sys.argv, os.environ.get("AGAIN"), flush=True)
if "AGAIN" not in os.environ:
    os.environ["AGAIN"] = "yes"
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:], "more"])
