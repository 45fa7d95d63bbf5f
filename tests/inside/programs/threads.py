"""Leaves threads behind, one of which fails."""

import atexit
import sys
import threading
import time


def late(seconds: float, failing: bool) -> None:
    threading.main_thread().join()
    time.sleep(seconds)
    print("late", seconds, sys.modules["__main__"].late is late, "__file__" in globals())
    if failing:
        raise ValueError("in a thread")


def exits() -> None:
    threading.main_thread().join()
    time.sleep(0.1)
    sys.exit(4)


atexit.register(print, "atexit")
for target, arguments in ((late, (0.0, False)), (late, (0.3, True)), (exits, ()), (time.sleep, (60,))):
    threading.Thread(target=target, args=arguments, name="t", daemon=target is time.sleep).start()
print("main is done")
if sys.argv[1:] == ["error"]:
    raise ValueError("in the main thread")
