"""Runs a script on plain CPU torch for K optimizer steps and writes its losses: what a rehearsal is compared with.

    python few_steps.py [--cuda-is-cpu] STEPS OUT.json SCRIPT [ARGUMENT…]

It shares no code with torchport, so that an error there cannot hide here. ``--cuda-is-cpu`` sends the script down
the path that it takes on a machine with a GPU, with every CUDA device read as the CPU: the same arithmetic, no
device rules.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

losses: list[str] = []
steps = 0


def watch(limit: int, out: str) -> None:
    """Notes every loss, and ends the process after ``limit`` optimizer steps or at its own end."""
    backward = torch.Tensor.backward
    owner = os.getpid()
    inside = False

    def noted(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        if inside:  # a function mode sends the call round once more
            return backward(self, *args, **kwargs)
        if self.numel() == 1:
            losses.append(float(self.detach()).hex())
        inside = True
        try:
            return backward(self, *args, **kwargs)
        finally:
            inside = False

    def stepped(*_: Any) -> None:
        global steps
        steps += 1
        if steps >= limit and os.getpid() == owner:
            finish(out, "steps")

    torch.Tensor.backward = noted  # type: ignore[method-assign]
    register_optimizer_step_post_hook(stepped)


def finish(out: str, reason: str) -> None:
    if os.environ.get("RANK", "0") == "0":
        with open(out, "w", encoding="utf-8") as file:
            json.dump({"reason": reason, "steps": steps, "losses": losses}, file)
    if reason == "steps":
        sys.stdout.flush()
        os._exit(0)


def host(value: Any) -> Any:
    """The same value with any CUDA device read as the CPU."""
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    if isinstance(value, str) and (value == "cuda" or value.startswith(("cuda:", "torch.cuda."))):
        return value.replace("torch.cuda.", "torch.") if value.startswith("torch.cuda.") else "cpu"
    return value


def number(value: Any) -> Any:
    """The same for an argument that may also be the number of a card."""
    return torch.device("cpu") if type(value) is int else host(value)


class CudaIsCpu(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.device:
            return func(*args, **(kwargs or {}))
        if func in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        if func == torch.Tensor.is_cuda.__get__:  # type: ignore[attr-defined]
            return True
        args, kwargs = tree_map(host, (args, kwargs or {}))
        if func is torch.Tensor.to and len(args) > 1:
            args = (args[0], number(args[1]), *args[2:])
        if "device" in kwargs:
            kwargs["device"] = number(kwargs["device"])
        return func(*args, **kwargs)


def pretend_nccl() -> None:
    """Process groups and DistributedDataParallel over gloo, whatever backend and cards the script names."""
    start, wrap = torch.distributed.init_process_group, torch.nn.parallel.DistributedDataParallel.__init__
    torch.distributed.init_process_group = lambda backend=None, *args, **kwargs: start(
        "gloo", *args, **{name: value for name, value in kwargs.items() if name != "device_id"}
    )
    torch.nn.parallel.DistributedDataParallel.__init__ = lambda self, module, *_, **kwargs: wrap(  # type: ignore[method-assign]
        self,
        module,
        **{name: value for name, value in kwargs.items() if name not in ("device_ids", "output_device")},
    )


def data_parallel(module: Any, inputs: Any, device_ids: Any = None, *_: Any, **__: Any) -> Any:
    """What nn.DataParallel computes, one replica after the other; only the first keeps its buffers."""
    count = len(device_ids or range(torch.cuda.device_count()))
    outputs = []
    for number, chunk in enumerate((inputs if isinstance(inputs, torch.Tensor) else inputs[0]).chunk(count)):
        copies = {name: buffer.clone() for name, buffer in module.named_buffers()} if number else {}
        outputs.append(torch.func.functional_call(module, copies, (chunk,)))
    return torch.cat(outputs)


def pretend_cuda(gpus: int) -> None:
    """Makes torch answer as with that many GPUs, so that the script takes that path."""
    one = {"is_available": True, "device_count": gpus, "current_device": 0, "is_bf16_supported": True}
    for name, answer in one.items():
        setattr(torch.cuda, name, lambda *_, _answer=answer, **__: _answer)
    for name in (
        "set_device",
        "synchronize",
        "empty_cache",
        "manual_seed",
        "manual_seed_all",
        "reset_peak_memory_stats",
    ):
        setattr(torch.cuda, name, lambda *_, **__: None)
    for name in ("Float", "Double", "Half", "Long", "Int", "Byte", "Bool"):
        setattr(torch.cuda, f"{name}Tensor", getattr(torch, f"{name}Tensor"))
    torch.cuda.device = lambda *_: torch.inference_mode(False)  # any context that changes nothing
    for name, answer in {
        "is_available": True,
        "device_count": gpus,
        "current_accelerator": torch.device("cuda"),
        "current_device_index": 0,
    }.items():
        setattr(torch.accelerator, name, lambda *_, _answer=answer, **__: _answer)
    for name in ("set_device_index", "synchronize"):
        setattr(torch.accelerator, name, lambda *_, **__: None)
    for name in ("_accelerator_graph_capture_health_check", "_cuda_graph_capture_health_check"):
        setattr(torch.optim.Optimizer, name, lambda *_: None)
    torch.compile = lambda model=None, **_: model if model is not None else lambda function: function
    loader = torch.utils.data.DataLoader.__init__
    torch.utils.data.DataLoader.__init__ = lambda self, *args, **kwargs: loader(  # type: ignore[method-assign]
        self, *args, **{**kwargs, "pin_memory": False}
    )
    torch.nn.parallel.data_parallel = data_parallel
    sys.modules["torch.nn.parallel.data_parallel"]._get_available_device_type = lambda: None
    torch.nn.DataParallel.forward = lambda self, *inputs: data_parallel(self.module, inputs)  # type: ignore[method-assign]
    autocast = torch.amp.autocast_mode.autocast.__init__

    def on_host(self: Any, device_type: str, dtype: Any = None, *args: Any, **kwargs: Any) -> None:
        if device_type == "cuda":
            dtype = dtype or torch.get_autocast_dtype("cuda")
        autocast(self, host(device_type), dtype, *args, **kwargs)

    torch.amp.autocast_mode.autocast.__init__ = on_host  # type: ignore[method-assign]
    parse_to = torch._C._nn._parse_to
    torch._C._nn._parse_to = lambda *args, **kwargs: parse_to(*map(number, args), **tree_map(number, kwargs))
    pretend_nccl()
    CudaIsCpu().__enter__()


def run(argv: list[str]) -> None:
    """Runs a script, ``-m module`` or notebook as __main__."""
    sys.argv = argv[1:] if argv[0] == "-m" else argv
    sys.path[0] = os.getcwd() if argv[0] == "-m" else os.path.dirname(os.path.abspath(argv[0]))
    if argv[0] == "-m":
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    elif argv[0].endswith(".ipynb"):
        with open(argv[0], encoding="utf-8") as file:
            cells = [cell for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
        space: dict[str, Any] = {"__name__": "__main__"}
        for cell in cells:
            lines = "".join(cell["source"]).splitlines()
            exec("\n".join(line for line in lines if not line.lstrip().startswith(("%", "!"))), space)
    else:
        runpy.run_path(argv[0], run_name="__main__")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[0] == "--cuda-is-cpu":
        pretend_cuda(int(os.environ.get("GPUS", "1")))
        arguments = arguments[1:]
    watch(int(arguments[0]), arguments[1])
    try:
        run(arguments[2:])
    finally:
        finish(arguments[1], "ended")
