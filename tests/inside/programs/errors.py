"""Ends by the exception that its argument names."""

import sys
from collections.abc import Callable


class Noted(Exception):
    """Has a str of several lines."""

    def __str__(self) -> str:
        return "first line\nsecond line"


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def plain() -> None:
    numbers = {"a": 1}
    print(numbers["a"] + numbers["b"])


def chained() -> None:
    try:
        plain()
    except KeyError as error:
        raise ValueError("chained") from error


def during() -> None:
    try:
        chained()
    finally:
        raise Noted


def hidden() -> None:
    try:
        plain()
    except KeyError:
        raise ValueError("hidden") from None


def group() -> None:
    errors = []
    for call in (plain, chained):
        try:
            call()
        except Exception as error:
            errors.append(error)
    if sys.version_info < (3, 11):
        raise ValueError(errors)
    raise ExceptionGroup("several", errors)  # noqa: F821


def unprintable() -> None:
    raise Unprintable


def recursion() -> None:
    recursion()


def imported() -> None:
    import shapeless

    shapeless.reshape([1, 2, 3])


def bad_import() -> None:
    import no_such_module_anywhere  # noqa: F401


def bad_syntax() -> None:
    import broken  # noqa: F401


def own_exit() -> None:
    class Exit(SystemExit):
        pass

    raise Exit(7)


def stop_iteration() -> None:
    next(iter(()))


def assertion() -> None:
    values = [1, 2]
    assert len(values) == 3, f"{values} should be three"


CALLS: tuple[Callable[[], None], ...] = (
    plain, chained, during, hidden, group, unprintable, recursion, imported, bad_import, bad_syntax,
    own_exit, stop_iteration, assertion,
)  # fmt: skip
print("this was buffered when the error came")
sys.stderr.write("and this was not\n")
{call.__name__: call for call in CALLS}[sys.argv[1]]()
