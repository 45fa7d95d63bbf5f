"""One migration, its facts as JSON: ``python migrate_once.py STEPS OUT.json PATCH SCRIPT [ARGUMENT…]``."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from torchport.api.migrate import Request, migrate
from torchport.migrated import Proof


def losses(proof: Proof | None) -> dict[str, Any] | None:
    if proof is None:
        return None
    return {"before": len(proof.before), "after": len(proof.after), "first": proof.first, "furthest": proof.furthest}


def main() -> None:
    steps, out, patch, *entry = sys.argv[1:]
    done = migrate(
        Request(entry=shlex.join(entry), steps=int(steps), timeout_s=120),
        folder=Path.cwd(),
        environ=os.environ,
        tell=lambda step: print(step, file=sys.stderr, flush=True),
    )
    facts = {
        "clean": done.clean,
        "works_on_cpu": done.works_on_cpu,
        "gave_device": done.gave_device,
        "used_gpu": done.used_gpu,
        "repairs": dict(sorted(Counter(each.partition(" at ")[0] for each in done.repaired).items())),
        "rounds": done.rounds,
        "lines": sum(line.startswith("+") and not line.startswith("+++") for line in done.patch.splitlines()),
        "left": [f"{each.id} {each.location or ''} {each.message}" for each in done.left],
        "refused": list(done.refused),
        "failure": done.failure,
        "on_gpu": losses(done.on_gpu),
        "on_cpu": losses(done.on_cpu),
    }
    Path(out).write_text(json.dumps(facts), encoding="utf-8")
    Path(patch).write_text(done.patch, encoding="utf-8")


if __name__ == "__main__":
    main()
