"""Makes the development environment in .venv, step by step, and says how long each step will take.

``python3 tools/set_up.py demo|dev`` makes .venv with what the demo or the tests need; ``… system`` installs
the programs that only the full tests use. Standard library only, so that any Python can say what is missing.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
MINIMUM = (3, 10)

# Command to look for, Debian package that has it, who needs it.
PROGRAMS = (
    ("chromium", "chromium", "tests of the HTML page"),
    ("tmux", "tmux", "tests of the terminal"),
)


def main() -> None:
    """Runs the set-up that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", choices=("demo", "dev", "system"))
    parser.add_argument("--torch", default="torch", help="what to install as torch")
    arguments = parser.parse_args()
    if sys.version_info < MINIMUM:
        have, need = ".".join(map(str, sys.version_info[:3])), ".".join(map(str, MINIMUM))
        sys.exit("{} is Python {}; torchport needs {}: make PYTHON=python3.12 …".format(sys.executable, have, need))
    if arguments.what == "system":
        install_programs()
        return
    make_environment(arguments.what, arguments.torch)


def make_environment(what: str, torch: str) -> None:
    """Makes .venv and installs this package in it, with torch beside it."""
    started = time.monotonic()
    # A virtual environment over a broken or half-made one fails in odd ways; pip keeps its downloads anyway.
    usable = (
        PYTHON.exists() and subprocess.call([str(PYTHON), "-m", "pip", "--version"], stdout=subprocess.DEVNULL) == 0
    )
    package = ".[dev]" if what == "dev" else "."
    say("Setting up .venv, once. It takes about a minute, or as long as it takes to download torch.")
    steps = (
        *(() if usable else (("a virtual environment, about 5 s", make_venv),)),
        ("torch, from 20 s to some minutes", lambda: pip("install", *shlex.split(torch), "numpy")),
        ("torchport and its tools, about 20 s", lambda: pip("install", "--quiet", "--editable", package)),
    )
    for number, (title, step) in enumerate(steps, 1):
        say("[{}/{}] {}".format(number, len(steps), title))
        step()
    (VENV / (what + ".ready")).write_text("")
    say("Ready after {:.0f} s.".format(time.monotonic() - started))


def make_venv() -> None:
    """Makes .venv; on Debian, where the module for it is a package of its own, installs that first."""
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        package = "python{}.{}-venv".format(*sys.version_info)
        if not may_install():
            sys.exit("This Python cannot make virtual environments. Run: sudo apt-get install {}".format(package))
        say("      this Python lacks ensurepip: apt-get install " + package)
        apt(package)
    subprocess.check_call([sys.executable, "-m", "venv", "--clear", str(VENV)])


def pip(*arguments: str) -> None:
    """Runs pip of .venv; its own progress shows what is downloaded and how much is left."""
    command = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", *arguments]
    environ = dict(os.environ, PIP_ROOT_USER_ACTION="ignore")
    code = subprocess.call(command, cwd=str(ROOT), env=environ)
    if code:
        sys.exit(
            "Set-up stopped: {} ended with {}. Fix what it says and run make again.".format(" ".join(command), code)
        )


def install_programs() -> None:
    """Installs programs that only some tests need; without them those tests say so and are skipped."""
    missing = [row for row in PROGRAMS if not shutil.which(row[0])]
    if not missing:
        return
    if not may_install():
        for command, package, purpose in missing:
            say("{} is missing: {} are skipped (apt-get install {})".format(command, purpose, package))
        return
    say("Installing {}: up to two minutes.".format(", ".join(row[1] for row in missing)))
    for _command, package, purpose in missing:
        if not apt(package):
            say("{} could not be installed: {} are skipped".format(package, purpose))


def may_install() -> bool:
    """True for root on Debian or Ubuntu."""
    return hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt(package: str) -> bool:
    """Installs one Debian package, with fresh lists where the old ones lack it; true if that worked."""
    environ = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", package]
    quiet = {"env": environ, "stdout": subprocess.DEVNULL}
    if subprocess.call(install, stderr=subprocess.DEVNULL, **quiet) == 0:
        return True
    subprocess.call(["apt-get", "update", "-q"], **quiet)
    return subprocess.call(install, **quiet) == 0


def say(text: str) -> None:
    """Prints a line at once, in order with what the programs print that we start."""
    print(text, flush=True)


if __name__ == "__main__":
    main()
