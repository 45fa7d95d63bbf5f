"""Reference: the losses that a migrated project has to give."""

from __future__ import annotations

from torchport.migrated import Proof, losses
from torchport.plan import Run

# What another order of sums makes of a loss; a fault makes more.
_ROUNDING = 1e-3


def of_rehearsal(plain: Run, works: bool, first: Run) -> bool:
    """Whether the project is to be measured by its own rehearsal and not by its run on the CPU.

    So it is where it cannot run on the CPU, or trains less there, as a program that starts one rank a GPU; and where
    several GPUs add up in another order than the CPU does.
    """
    on_cpu, on_gpus = losses(plain.records), losses(first.records)
    if not works or len(on_cpu) < len(on_gpus):
        return True
    proof = Proof(on_cpu, on_gpus)
    several = first.plan.gpus_per_node > 1 and len(on_cpu) == len(on_gpus)
    return several and not proof.same and proof.furthest < _ROUNDING
