"""Local: the program on this machine, by itself or as the ranks of one torchrun."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from torchport.launch.processes import Process
from torchport.launch.tree import MARK
from torchport.plan import Plan

TORCHRUN = ("-m", "torch.distributed.run")
# Each rank writes to its own log, whoever watches it lives or not; torchrun's own redirection would make two files
# a rank and attempt, and names them as it likes. After exec the rank is what torchrun started: signals reach it.
INTO_ITS_LOG = f'exec "$@" >>"${MARK}/logs/rank$RANK.log" 2>&1'
# Ranks that are started again in torchrun's own store find the addresses of those before them, and fail or hang:
# pytorch issue 135712, still so in 2.13. With this they get a store of their own each time.
_STORE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"


@dataclass(frozen=True, slots=True)
class Local:
    """Renders a plan as one process. ``attached``: a program that is alone has the terminal.

    ``options`` are those that the torchrun of the project's torch takes.
    """

    attached: bool
    options: tuple[str, ...] = ()

    def processes(self, plan: Plan, folder: Path, environ: Mapping[str, str]) -> tuple[Process, ...]:
        """The program, or the torchrun that starts its ranks; ``folder`` is the run folder."""
        log = None if self.attached else str(folder / "logs" / "rank0.log")
        if plan.launcher:
            log = str(folder / "logs" / "launcher.log")
        return (
            Process(
                rank=0,
                argv=self.argv(plan),
                env=self.variables(plan, folder, environ),
                record_path=str(folder / plan.record_path),
                log_path=log,
            ),
        )

    def argv(self, plan: Plan) -> tuple[str, ...]:
        """The command line of the first process."""
        program = _program(plan)
        return (plan.python, *TORCHRUN, "sh", "-c", INTO_ITS_LOG, "rank", *program) if plan.launcher else program

    def variables(self, plan: Plan, folder: Path, environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """What is set beside the inherited environment. PET_… is how torchrun takes its options from there."""
        variables = {**dict(plan.env), MARK: str(folder)}
        if "PYTHONUNBUFFERED" not in environ:
            variables["PYTHONUNBUFFERED"] = "1"
        if plan.launcher:
            # A free port is found by torchrun itself: two jobs of one machine never share one.
            variables["PET_STANDALONE"] = "1"
            variables["PET_NNODES"] = str(plan.nodes)
            variables["PET_NPROC_PER_NODE"] = str(plan.processes)
            variables["PET_MAX_RESTARTS"] = str(plan.max_restarts)
            variables["PET_NO_PYTHON"] = "1"
            if plan.max_restarts and _STORE not in environ:
                variables[_STORE] = "1"
            if "shutdown-timeout" in self.options:
                variables["PET_SHUTDOWN_TIMEOUT"] = str(max(1, round(plan.grace_s)))
            if "signals-to-handle" in self.options:
                variables["PET_SIGNALS_TO_HANDLE"] = "SIGTERM,SIGINT,SIGQUIT"
            if plan.processes > 1 and "OMP_NUM_THREADS" not in environ:
                variables.setdefault("OMP_NUM_THREADS", "1")
        return tuple(variables.items())


def _program(plan: Plan) -> tuple[str, ...]:
    if plan.kind == "module":
        return (plan.python, "-m", *plan.argv)
    if plan.kind != "command":
        return (plan.python, *plan.argv)
    name = PurePath(plan.argv[0]).name
    # The scripts of an environment name their Python by a path that need not hold in a container or after a move.
    if plan.argv[0] == "torchrun":
        return (plan.python, *TORCHRUN, *plan.argv[1:])
    return (plan.python, *plan.argv[1:]) if plan.argv[0] == name in ("python", "python3") else plan.argv
