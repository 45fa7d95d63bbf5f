"""Uses worker processes, started as its argument says, with functions and classes of its own."""

import multiprocessing
import os
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

print("imported as", __name__, os.path.basename(__file__), sys.argv[1:], flush=True)


@dataclass
class Pair:
    left: int
    right: int


def add(pair: Pair) -> tuple[int, str]:
    return pair.left + pair.right, type(pair).__module__


def fail(pair: Pair) -> None:
    raise ValueError(pair.left)


def leave(code: int) -> None:
    sys.exit(code)


if __name__ == "__main__":
    again = pickle.loads(pickle.dumps(Pair(1, 2)))
    print(again, type(again) is Pair, sys.modules["__main__"].Pair is Pair)
    sys.stdout.flush()
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(1) as pool:
        print(pool.map(add, [Pair(1, 2), Pair(3, 4)]))
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        print(executor.submit(add, Pair(5, 6)).result())
    sys.stdout.flush()
    for target, argument in ((fail, Pair(1, 1)), (leave, 3)):
        process = context.Process(target=target, args=(argument,), name="worker")
        process.start()
        process.join()
        print(process.exitcode)
