"""Ends by SystemExit, or otherwise, as its argument says."""

import atexit
import os
import sys


class Strange:
    def __str__(self) -> str:
        return "strange"


class Own(SystemExit):
    """Has a code of its own."""

    code = 9


def at_exit() -> None:
    print("atexit sees", __name__, "__file__" in globals(), sys.modules["__main__"].Strange is Strange)
    print("last", [name for name in vars(sys) if name.startswith("last_")])


atexit.register(at_exit)
print("out")
match sys.argv[1]:
    case "end":
        pass
    case "none":
        sys.exit()
    case "zero":
        sys.exit(0)
    case "three":
        sys.exit(3)
    case "minus":
        sys.exit(-1)
    case "large":
        sys.exit(300)
    case "huge":
        sys.exit(10**30)
    case "true":
        sys.exit(True)
    case "text":
        sys.exit("a message")
    case "object":
        sys.exit(Strange())
    case "tuple":
        raise SystemExit(1, 2)
    case "own":
        raise Own()
    case "quit":
        quit(5)
    case "at_once":
        sys.stdout.flush()
        os._exit(6)
    case "while_handling":
        try:
            raise ValueError("handled")
        except ValueError:
            sys.exit(8)
    case "replaced":
        try:
            sys.exit(2)
        finally:
            raise ValueError("instead")
    case "atexit_fails":
        atexit.register(lambda: 1 / 0)
    case "atexit_exits":
        atexit.register(sys.exit, 11)
    case "closed":
        sys.stdout.flush()
        print("lost")
        os.close(1)
    case "no_streams":
        sys.stdout = sys.stderr = None
        raise ValueError("unseen")
    case "deleted":
        del sys.modules["__main__"]
    case "error":
        raise ValueError("seen")
