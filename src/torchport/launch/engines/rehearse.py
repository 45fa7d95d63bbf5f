"""Rehearse: the program on virtual GPUs, one process a rank, on this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchport.launch.processes import Process
from torchport.plan import Plan


@dataclass(frozen=True, slots=True)
class Rehearse:
    """Renders a plan as processes. ``private`` is the folder with start.py, ``port`` one for rank 0."""

    private: str
    port: int
    run_id: str

    def processes(self, plan: Plan, folder: Path, environ: Mapping[str, str]) -> tuple[Process, ...]:
        """One process a rank; rank 0 shares the terminal, the others write ``logs/rank<k>.log``."""
        return tuple(self._process(plan, folder, environ, rank) for rank in range(plan.processes))

    def _process(self, plan: Plan, folder: Path, environ: Mapping[str, str], rank: int) -> Process:
        spec_path = folder / f"spec-rank{rank}.json"
        record = folder / (plan.record_path if rank == 0 else f"record-rank{rank}.jsonl")
        return Process(
            rank=rank,
            argv=(plan.python, str(Path(self.private) / "start.py"), str(spec_path)),
            env=(*plan.env, *(self._launcher_variables(plan, rank, environ) if plan.launcher else ())),
            record_path=str(record),
            log_path=str(folder / "logs" / f"rank{rank}.log") if rank else None,
            spec_path=str(spec_path),
            spec=json.dumps(self._spec(plan, rank, str(record)), indent=1),
        )

    def _spec(self, plan: Plan, rank: int, record: str) -> dict[str, Any]:
        virtual = plan.virtual
        if virtual is None:
            raise ValueError("a rehearsal needs plan.virtual")
        argv = list(plan.argv)
        if plan.local_rank_option:
            argv.insert(1, f"--local-rank={rank}")
        return {
            "argv": argv,
            "kind": plan.kind,
            "record": record,
            "gpus": plan.gpus_per_node,
            "gpu": virtual.gpu,
            "strict": virtual.strict,
            "backing": virtual.backing,
            "plain": virtual.plain,
            "seed": virtual.seed,
            "steps": virtual.steps,
            "project": plan.project,
            "rank": rank,
            "world": plan.processes,
        }

    def _launcher_variables(self, plan: Plan, rank: int, environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """What torchrun sets for a worker on one machine (torch/distributed/elastic/agent/server)."""
        world = str(plan.processes)
        variables = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "ROLE_RANK": str(rank),
            "GROUP_RANK": "0",
            "ROLE_NAME": "default",
            "WORLD_SIZE": world,
            "LOCAL_WORLD_SIZE": world,
            "ROLE_WORLD_SIZE": world,
            "GROUP_WORLD_SIZE": "1",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(plan.master_port or self.port),
            "TORCHELASTIC_RESTART_COUNT": "0",
            "TORCHELASTIC_MAX_RESTARTS": "0",
            "TORCHELASTIC_RUN_ID": self.run_id,
            # torchrun keeps the store itself and says True; here rank 0 has to open it.
            "TORCHELASTIC_USE_AGENT_STORE": "False",
            "TORCH_NCCL_ASYNC_ERROR_HANDLING": environ.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
        }
        if plan.processes > 1 and "OMP_NUM_THREADS" not in environ:
            variables["OMP_NUM_THREADS"] = "1"
        return tuple(variables.items())
