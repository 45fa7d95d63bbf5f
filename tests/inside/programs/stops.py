"""Is stopped in the middle of its work, in a thread too."""

import atexit
import threading

from torchport.inside.run import StopRehearsal


def step(number: int) -> None:
    if number == 2:
        raise StopRehearsal


atexit.register(print, "atexit")
thread = threading.Thread(target=step, args=(2,))
thread.start()
thread.join()
try:
    for step_number in range(5):
        print("step", step_number)
        step(step_number)
finally:
    print("finally")
