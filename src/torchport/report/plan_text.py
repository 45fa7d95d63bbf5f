"""A plan as a dry run shows it: commands that a shell runs as they stand, or JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from torchport.plan import Plan
from torchport.text import _

SCHEMA = "torchport.plan/1"


def render(plan: Plan, argv: Sequence[str], env: Mapping[str, str], folder: str) -> str:
    """Every line that is not a command is a comment: the whole can be pasted into a shell."""
    words = " ".join(map(shlex.quote, argv))
    lines = [
        "# " + _("run folder {folder}").format(folder=shlex.quote(folder)),
        f"mkdir -p {shlex.quote(folder + '/logs')}",
        f"cd {shlex.quote(plan.folder)}",
        *(f"export {name}={shlex.quote(value)}" for name, value in env.items()),
        words,
    ]
    return "\n".join(lines) + "\n"


def render_json(plan: Plan, argv: Sequence[str], env: Mapping[str, str], folder: str) -> str:
    """One JSON object: what is started, where, with what, and the plan that it comes from."""
    document = {"schema": SCHEMA, "argv": list(argv), "env": dict(env), "cwd": plan.folder, "folder": folder}
    return json.dumps({**document, "plan": asdict(plan)}, indent=2) + "\n"
