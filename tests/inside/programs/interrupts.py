"""Is interrupted as its argument says."""

import asyncio
import atexit
import os
import signal
import sys
import time


class Own(KeyboardInterrupt):
    """Is not the one that makes the interpreter die of SIGINT."""


atexit.register(print, "atexit")
print("out")
match sys.argv[1]:
    case "raised":
        raise KeyboardInterrupt
    case "subclass":
        raise Own("own")
    case "signal":
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(30)
    case "caught":
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(30)
        except KeyboardInterrupt:
            print("caught")
    case "ignored":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.kill(os.getpid(), signal.SIGINT)
    case "asyncio":

        async def wait() -> None:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(30)

        asyncio.run(wait())
    case "hooked":
        sys.excepthook = lambda kind, value, trace: print("hook", kind.__name__, trace.tb_frame.f_code.co_name)
        raise KeyboardInterrupt
    case "terminated":
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(30)
