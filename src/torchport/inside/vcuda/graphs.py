"""CUDA graphs, green contexts and kernels compiled at run time: what a virtual card does not have."""

from __future__ import annotations

from typing import Any

import torch

from torchport.inside.vcuda.cuda_errors import not_simulated, remark
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches

_EAGER = "run the step eagerly in a rehearsal; its numbers are the same"


def install(patches: Patches, machine: Machine) -> None:
    """One clear error for what cannot run; functions that have an eager meaning keep it."""
    _graphs(patches, machine)
    _kernels(patches, machine)


def _refused(machine: Machine, id: str, what: str, instead: str) -> type:
    class Refused:
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            not_simulated(machine, id, what, instead)

        @staticmethod
        def create(*args: Any, **kwargs: Any) -> Any:
            not_simulated(machine, id, what, instead)

    return Refused


def _graphs(patches: Patches, machine: Machine) -> None:
    def make_graphed_callables(callables: Any, *args: Any, **kwargs: Any) -> Any:
        remark(machine, "R508", "torch.cuda.make_graphed_callables", "not captured: the callables run eagerly")
        return callables

    cuda: Any = torch.cuda
    graph = _refused(machine, "R508", "a CUDA graph", _EAGER)
    for module in (cuda, cuda.graphs):
        patches.set(module, "CUDAGraph", graph)
        patches.set(module, "graph", graph)
        patches.set(module, "make_graphed_callables", make_graphed_callables)
        if hasattr(module, "GreenContext"):
            patches.set(module, "GreenContext", _refused(machine, "R508", "a green context", "use a stream"))
    for module in (torch._C, cuda.graphs):
        patches.set(module, "_CUDAGraph", graph)
        patches.set(module, "_cuda_isCurrentStreamCapturing", lambda: False)
        patches.set(module, "_graph_pool_handle", lambda: (0, 1))
    if hasattr(torch, "accelerator") and hasattr(torch.accelerator, "Graph"):
        patches.set(torch.accelerator, "Graph", graph)


def _kernels(patches: Patches, machine: Machine) -> None:
    instead = "rehearse with a path in plain PyTorch"

    def no_kernel(*args: Any, **kwargs: Any) -> Any:
        not_simulated(machine, "R502", "a CUDA kernel compiled at run time", instead)

    patches.set(torch._C, "_cuda_jiterator_compile_and_launch_kernel", no_kernel)
    for module, name in ((torch.cuda, "_compile_kernel"), (torch.cuda._utils, "_cuda_load_module")):
        if hasattr(module, name):
            patches.set(module, name, no_kernel)
