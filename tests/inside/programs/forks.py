"""Forks; the child ends as its argument says."""

import os
import sys

print("before", flush=True)
child = os.fork()
if child:
    print("child ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
elif sys.argv[1] == "error":
    raise ValueError("in the child")
elif sys.argv[1] == "exit":
    sys.exit(5)
elif sys.argv[1] == "interrupt":
    raise KeyboardInterrupt
print("after in", "parent" if child else "child")
