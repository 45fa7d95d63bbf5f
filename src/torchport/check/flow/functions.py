"""What the functions of torch give."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from torchport.check.flow import torch_facts as facts
from torchport.check.flow.devices import read_device
from torchport.check.flow.events import Event
from torchport.check.flow.frame import Frame
from torchport.check.flow.values import (
    CPU,
    GPU,
    UNKNOWN,
    Array,
    Device,
    DeviceValue,
    Generator,
    Loader,
    Mapping,
    Module,
    Optimizer,
    Origin,
    Sequence,
    Tensor,
    Tree,
    Value,
    flat,
)
from torchport.check.source import argument, constant

if TYPE_CHECKING:
    from torchport.check.flow.interpret import Interpreter

_MASK_WORD = re.compile(r"mask", re.IGNORECASE)


def torch_call(
    run: Interpreter, name: str, node: ast.Call, given: list[Value], named: dict[str, Value], frame: Frame
) -> Value:
    last = name.rsplit(".", 1)[-1]
    if name == "torch.device":
        return DeviceValue(read_device(given[0], node.args[0], frame) if given else None)
    if name in ("torch.set_default_device", "torch.set_default_tensor_type"):
        run.default = (
            GPU
            if "cuda" in frame.source.code(node)
            else read_device(given[0], node.args[0], frame)
            if given
            else (None)
        )
        return UNKNOWN
    if name == "torch.Generator":
        place = named.get("device", given[0] if given else None)
        device = CPU if place is None else read_device(place, argument(node, "device", 0), frame)
        return Generator(device, Origin(frame.source, node, "made"))
    if name in facts.HOST_MAKERS:
        return _factory(run, name, node, given, named, frame)
    if last.endswith("_like") and name.count(".") == 1:
        return _like(given, named, node, frame)
    if name in ("torch.nn.Parameter", "torch.nn.Buffer"):
        first = given[0] if given else UNKNOWN
        return replace(first, follows=True, numbers=False) if isinstance(first, Tensor) else UNKNOWN
    if name in facts.LENGTHS:
        lengths = given[1] if len(given) > 1 else named.get("lengths", UNKNOWN)
        if isinstance(lengths, (Tensor, Tree)) and lengths.device == GPU and not getattr(lengths, "assumed", False):
            at = argument(node, "lengths", 1)
            run.log.add(
                Event("lengths-must-be-cpu", frame.source, at or node, Origin(frame.source, at or node, "made"))
            )
        return given[0] if given and isinstance(given[0], Tensor) else UNKNOWN
    if name == "torch.load":
        return _load(node, named, given, frame)
    if name.startswith("torch.cuda.") and last.endswith("Tensor"):
        return Tensor(GPU)
    if name == "torch.utils.data.TensorDataset":
        return Sequence(tuple(given))
    if name == "torch.utils.data.DataLoader":
        held = list(flat(given[:1]))
        away = run.default != CPU or any(isinstance(each, Tensor) and each.device != CPU for each in held)
        return Loader(Tree(None if away else CPU))
    if name in ("torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel"):
        return _wrapped(given, name == "torch.nn.DataParallel" or "device_ids" in named)
    if name in (
        "torch.compile",
        "torch.jit.script",
        "torch.jit.trace",
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
    ):
        return given[0] if given else UNKNOWN
    if name.startswith("torch.optim.") and name.count(".") == 2:
        return Optimizer()
    if name.startswith("torch.nn.") and name.count(".") == 2 and last[:1].isupper():
        return _layer(run, name, node, given, named, frame)
    if name.startswith("torch.nn.functional.") or (name.count(".") == 1 and name not in facts.SEPARATE):
        return _function(run, name, node, given, named, frame)
    return UNKNOWN


def _function(
    run: Interpreter, name: str, node: ast.Call, given: list[Value], named: dict[str, Value], frame: Frame
) -> Value:
    last = name.rsplit(".", 1)[-1]
    role = ""
    if name == "torch.where" and given and isinstance(given[0], Tensor) and given[0].device == CPU:
        role = "mask"
    if last.endswith("_loss") or last in ("cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits"):
        weights = [value for word, value in named.items() if word in facts.LOSS_WEIGHTS]
        rest = [value for word, value in named.items() if word not in facts.LOSS_WEIGHTS]
        result = run.combine(node, [*given, *rest], frame, "label")
        run.combine(node, [*given[:1], *weights], frame, "weight")
        return replace(result, numbers=True) if isinstance(result, Tensor) else result
    masks = [value for word, value in named.items() if _MASK_WORD.search(word)]
    if masks:
        run.combine(node, [*given, *masks], frame, "mask")
        named = {word: value for word, value in named.items() if not _MASK_WORD.search(word)}
    if given and isinstance(given[0], Tensor):
        drawn(run, node, named, given[0].device, frame)
    result = run.combine(node, [*given, *named.values()], frame, role, excuses=last in facts.ELEMENTWISE)
    if last in facts.REDUCTIONS and isinstance(result, Tensor) and len(given) == 1 and not named:
        return replace(result, numbers=True)
    if last in ("max", "min", "sort", "topk", "split", "chunk", "unbind") and isinstance(result, Tensor):
        return Sequence(None, replace(result, numbers=None))
    return result


def _factory(
    run: Interpreter, name: str, node: ast.Call, given: list[Value], named: dict[str, Value], frame: Frame
) -> Value:
    last = name.rsplit(".", 1)[-1]
    device: Device = run.default
    if "device" in named:
        device = read_device(named["device"], argument(node, "device"), frame)
    elif last in ("tensor", "as_tensor") and given and isinstance(given[0], Tensor):
        device = given[0].device
    elif any(each.arg is None for each in node.keywords):
        device = None
    elif "out" in named:
        return named["out"]
    elif last == "sparse_coo_tensor":
        parts = [each for each in given[:2] if isinstance(each, Tensor)]
        device = parts[0].device if parts else None
    numbers: bool | None = False
    if last in ("tensor", "as_tensor", "scalar_tensor"):
        content = node.args[0] if node.args else None
        number = isinstance(content, (ast.Constant, ast.UnaryOp))
        held = given[0] if given else UNKNOWN
        sized = isinstance(content, (ast.List, ast.Tuple, ast.ListComp)) or isinstance(held, (Sequence, Array))
        sized = sized or (isinstance(content, ast.BinOp) and not _is_number(content))
        sized = sized or (isinstance(held, Tensor) and held.numbers is False)
        numbers = True if number else False if sized else None
    elif last in ("zeros", "ones", "rand", "randn", "empty", "full") and node.args:
        first = node.args[0]
        numbers = isinstance(first, (ast.Tuple, ast.List)) and not first.elts
    elif last in ("arange", "linspace", "eye", "randperm"):
        numbers = False
    elif last == "normal":
        tensors = [each for each in given if isinstance(each, Tensor)]
        device = tensors[0].device if tensors and "device" not in named else device
    drawn(run, node, named, device, frame)
    said = "device" in named and not _says_cpu(frame, argument(node, "device"))
    origin = Origin(frame.source, node, "factory") if device == CPU and not said else None
    dims = 0 if numbers else None if numbers is None else _dims(last, node)
    return Tensor(device, origin, numbers, dims=dims)


def drawn(run: Interpreter, node: ast.Call, named: dict[str, Value], device: Device, frame: Frame) -> None:
    """A generator draws for its own device only."""
    generator = named.get("generator")
    if isinstance(generator, Generator) and generator.device == CPU and device == GPU:
        run.log.add(Event("generator-device-mismatch", frame.source, node, generator.origin))


def _dims(last: str, node: ast.Call) -> int | None:
    """How many dimensions a factory gives, where its sizes are written out."""
    if last in ("arange", "linspace", "randperm", "range", "logspace"):
        return 1
    if last == "eye":
        return 2
    sizes = argument(node, "size")
    if sizes is None and last == "randint":
        sizes = next((each for each in node.args if isinstance(each, (ast.Tuple, ast.List))), None)
        return len(sizes.elts) if isinstance(sizes, (ast.Tuple, ast.List)) else None
    if last == "full":
        sizes = sizes or (node.args[0] if node.args else None)
    if isinstance(sizes, (ast.Tuple, ast.List)):
        return len(sizes.elts)
    if last in ("zeros", "ones", "rand", "randn", "empty") and sizes is None:
        if len(node.args) == 1 and isinstance(node.args[0], (ast.Tuple, ast.List)):
            return len(node.args[0].elts)
        if len(node.args) > 1 and not any(isinstance(each, ast.Starred) for each in node.args):
            return len(node.args)
    return None


def _says_cpu(frame: Frame, node: ast.expr | None) -> bool:
    """Whether the CPU is written down: not a name, which may hold another device elsewhere."""
    if isinstance(node, ast.Call) and frame.source.name(node.func) == "torch.device" and node.args:
        node = node.args[0]
    return bool(constant(node) == "cpu")


def _is_number(node: ast.expr | None) -> bool:
    """An expression of numbers, as far as its form tells: ``1.0 / math.sqrt(d)``."""
    if isinstance(node, ast.BinOp):
        return not (isinstance(node.left, (ast.List, ast.Tuple)) or isinstance(node.right, (ast.List, ast.Tuple)))
    return False


def _like(given: list[Value], named: dict[str, Value], node: ast.Call, frame: Frame) -> Value:
    if "device" in named:
        place = argument(node, "device")
        origin = Origin(frame.source, node, "factory") if _says_cpu(frame, place) else None
        return Tensor(read_device(named["device"], place, frame), origin)
    first = given[0] if given else UNKNOWN
    if isinstance(first, (Tensor, Tree)):
        numbers = first.numbers if isinstance(first, Tensor) else None
        return Tensor(first.device, first.origin if first.device == CPU else None, numbers)
    return UNKNOWN


def _load(node: ast.Call, named: dict[str, Value], given: list[Value], frame: Frame) -> Value:
    where = named.get("map_location", given[1] if len(given) > 1 else None)
    if where is None:
        return UNKNOWN
    device = read_device(where, argument(node, "map_location", 1), frame)
    return Tree(device, Origin(frame.source, node, "factory")) if device == GPU else UNKNOWN


def _wrapped(given: list[Value], scatters: bool) -> Value:
    inner = given[0] if given else UNKNOWN
    if not isinstance(inner, Module):
        return UNKNOWN
    return Module(
        "torch.nn.DataParallel", device=inner.device, attributes={"module": inner}, items=[inner], scatters=True
    )


def _layer(
    run: Interpreter, name: str, node: ast.Call, given: list[Value], named: dict[str, Value], frame: Frame
) -> Value:
    last = name.rsplit(".", 1)[-1]
    made = Module(name, device=run.default, node=node, source=frame.source)
    run.made.append(made)
    if "device" in named:
        made.device = read_device(named["device"], argument(node, "device"), frame)
    if last in facts.CONTAINERS:
        for value in given:
            if isinstance(value, Sequence):
                made.items += list(value.items) if value.items is not None else [value.element]
            elif isinstance(value, Mapping):
                made.items += list(value.items.values())
            else:
                made.items.append(value)
        for item in made.items:
            if isinstance(item, Module):
                item.contained = None
    if facts.is_loss(name):
        for word in facts.LOSS_WEIGHTS:
            weight = named.get(word, given[0] if word == "weight" and given else UNKNOWN)
            if isinstance(weight, (Tensor, Tree)):
                tensor = Tensor(weight.device, Origin(frame.source, argument(node, word, 0) or node, "weight"))
                made.plain.append((word, tensor))
    if last in ("TransformerEncoder", "TransformerDecoder") and given and isinstance(given[0], Module):
        made.items.append(given[0])
    return made
