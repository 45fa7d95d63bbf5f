"""A stack as a requirements file that pip and uv install: every file by its address and its hash."""

from __future__ import annotations

from torchport.plan import Stack


def render(stack: Stack) -> str:
    """Addresses leave no index to be asked; what is in a folder of wheels is named by its version.

    For ``uv pip install --no-deps --require-hashes -r FILE``; with a folder, add ``--find-links FOLDER``.
    """
    lines = [f"# {stack.name}, torch {stack.torch}"]
    for package in stack.packages:
        where = f" @ {package.url}" if package.url else f"=={package.version}"
        hashes = "".join(f" \\\n    --hash={digest}" for digest in package.hashes)
        lines.append(f"{package.name}{where}{hashes}")
    return "\n".join(lines) + "\n"
