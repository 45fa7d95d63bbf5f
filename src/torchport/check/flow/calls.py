"""What a call gives, and which tensors meet in it."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from torchport.check.flow import torch_facts as facts
from torchport.check.flow.events import Event
from torchport.check.flow.values import (
    CPU,
    GPU,
    UNKNOWN,
    Array,
    Class,
    Const,
    Device,
    DeviceValue,
    Function,
    Generator,
    Loader,
    Mapping,
    Module,
    Object,
    Optimizer,
    Origin,
    Sequence,
    Tensor,
    Tree,
    Value,
    flat,
    join,
)
from torchport.check.source import argument

if TYPE_CHECKING:
    from torchport.check.flow.interpret import Frame, Interpreter

# Words for a device whose value is not known: it is the GPU that the user means.
_DEVICE_WORD = re.compile(r"dev|gpu|cuda|accel|local_rank|^rank$", re.IGNORECASE)
_PASS_THROUGH = frozenset({"tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.trange", "rich.progress.track"})
_MASK_WORD = re.compile(r"mask", re.IGNORECASE)
_LOADER_WORD = re.compile(r"load(?:er)?s?$|^(?:train|val|valid|test|eval)_?(?:dl|data_?loader|iter)$", re.IGNORECASE)


def call(run: Interpreter, node: ast.Call, frame: Frame) -> Value:
    """The value of a call; what it does to the devices of its object has happened then."""
    given: list[Value] = []
    for each in node.args:
        value = run.value(each, frame)
        if isinstance(each, ast.Starred):
            inner = run.value(each.value, frame)
            value = inner if isinstance(inner, (Tree, Sequence)) else UNKNOWN
        given.append(value)
    named = {each.arg: run.value(each.value, frame) for each in node.keywords if each.arg}
    name = frame.source.name(node.func)
    if _is_super_init(node):
        own = frame.look_up("self")
        if isinstance(own, Module) and own.owner is not None:
            own.items += [each for value in given for each in ([value] if isinstance(value, Module) else [])]
        return UNKNOWN
    if isinstance(node.func, ast.Attribute) and not name.startswith(("torch.", "numpy.")):
        owner = run.value(node.func.value, frame)
        found = _method(run, owner, node, node.func, given, named, frame)
        if found is not None:
            return found
    if name.startswith("torch."):
        return _torch(run, name, node, given, named, frame)
    if name.startswith("numpy.") or name in ("matplotlib.pyplot.plot", "matplotlib.pyplot.imshow"):
        return _numpy(run, node, given, frame)
    target = run.value(node.func, frame)
    if isinstance(target, Function):
        return run.call_function(target, given, named, frame)
    if isinstance(target, Class):
        return run.instance(target, given, named, frame, node)
    if isinstance(target, (Module, Object)):
        return forward(run, target, node, given, named, frame)
    return _builtin(run, name, node, given, named, frame)


def _is_super_init(node: ast.Call) -> bool:
    match node.func:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__"):
            return True
    return False


def _builtin(
    run: Interpreter, name: str, node: ast.Call, given: list[Value], named: dict[str, Value], frame: Frame
) -> Value:
    word = name or (node.func.id if isinstance(node.func, ast.Name) else "")
    first = given[0] if given else UNKNOWN
    if word in _PASS_THROUGH or word in ("tqdm", "iter", "reversed", "list", "tuple", "sorted"):
        return first if isinstance(first, (Loader, Sequence, Tree)) else UNKNOWN
    if word == "enumerate":
        return Sequence(None, Sequence((UNKNOWN, run.element(first, node.args[0], frame)))) if node.args else UNKNOWN
    if word == "zip":
        return Sequence(
            None, Sequence(tuple(run.element(value, at, frame) for value, at in zip(given, node.args, strict=True)))
        )
    if word == "next":
        return run.element(first, node.args[0], frame) if node.args else UNKNOWN
    if word in ("copy.deepcopy", "copy.copy"):
        return _copied(first)
    if word in ("sum", "max", "min") and isinstance(first, Sequence):
        return first.each()
    if word in ("getattr", "vars", "locals", "globals", "setattr"):
        return UNKNOWN
    if word.rsplit(".", 1)[-1] == "prepare" and "accelerat" in frame.source.text:
        return UNKNOWN
    return UNKNOWN


def _copied(value: Value) -> Value:
    if isinstance(value, Module):
        copied = replace(value, attributes=dict(value.attributes), items=[_copied(item) for item in value.items])
        copied.attributes = {name: _copied(each) for name, each in value.attributes.items()}
        return copied
    return value


# Methods


def _method(
    run: Interpreter,
    owner: Value,
    node: ast.Call,
    func: ast.Attribute,
    given: list[Value],
    named: dict[str, Value],
    frame: Frame,
) -> Value | None:
    if isinstance(owner, Tensor):
        return _tensor_method(run, owner, node, func, given, named, frame)
    if isinstance(owner, Tree):
        return _tree_method(run, owner, node, func, given, named, frame)
    if isinstance(owner, Module):
        return _module_method(run, owner, node, func, given, named, frame)
    if isinstance(owner, Object):
        method = run.method(owner, func.attr)
        if method is not None:
            return run.call_function(method, given, named, frame)
        held = owner.attributes.get(func.attr)
        return forward(run, held, node, given, named, frame) if isinstance(held, (Module, Object)) else UNKNOWN
    if isinstance(owner, Sequence):
        if func.attr in ("append", "insert", "extend") and given and isinstance(func.value, ast.Name):
            new = given[-1].each() if func.attr == "extend" and isinstance(given[-1], Sequence) else given[-1]
            empty = owner.items == () or (owner.items is None and owner.element == UNKNOWN)
            grown = Sequence(None, new if empty else join(owner.each(), new))
            run.assign(func.value, grown, frame, node)
        return UNKNOWN
    if isinstance(owner, Mapping):
        if func.attr == "values":
            return Sequence(tuple(owner.items.values()))
        if func.attr == "items":
            return Sequence(tuple(Sequence((UNKNOWN, each)) for each in owner.items.values()))
        if func.attr == "get" and given and isinstance(given[0], Const):
            return owner.items.get(given[0].value, UNKNOWN)
        return UNKNOWN
    if isinstance(owner, Class):
        function = run.method(Object(owner), "forward" if func.attr == "apply" else func.attr)
        if function is None:
            return UNKNOWN
        first = [UNKNOWN] if func.attr == "apply" else []
        return run.call_function(replace(function, bound=None), [*first, *given], named, frame)
    if isinstance(owner, Generator):
        return owner if func.attr == "manual_seed" else UNKNOWN
    if isinstance(owner, (Loader, Optimizer, Array, Const, DeviceValue)):
        return _optimizer_method(run, owner, node, func, frame) if isinstance(owner, Optimizer) else UNKNOWN
    return None


def target_device(
    run: Interpreter, node: ast.Call, given: list[Value], named: dict[str, Value], frame: Frame
) -> Device:
    """Where ``.to(…)`` goes: "keep" where it only changes the type, None where that is not known."""
    value = named.get("device", named.get("other", given[0] if given else None))
    if value is None:
        return "keep" if "dtype" in named or "memory_format" in named else None
    expression = node.args[0] if given and "device" not in named else argument(node, "device")
    return read_device(value, expression, frame)


def read_device(value: Value, node: ast.expr | None, frame: Frame) -> Device:
    """The device that an expression names; one that is not known but called so is the GPU."""
    if isinstance(value, (DeviceValue, Tensor, Tree)):
        device = value.device
        return device if device is not None or not isinstance(value, DeviceValue) else GPU
    if isinstance(value, Const):
        if value.value is None:
            return CPU
        if isinstance(value.value, str):
            return CPU if value.value.startswith("cpu") else GPU if value.value[:4] in ("cuda", "mps", "xpu:") else None
        return GPU if isinstance(value.value, int) and not isinstance(value.value, bool) else None
    text = frame.source.code(node) if node is not None else ""
    if text.startswith("torch.") and "device" not in text:
        return "keep"  # a type
    if text.endswith("dtype") or "dtype" in text:
        return "keep"
    last = text.rsplit(".", 1)[-1]
    return GPU if _DEVICE_WORD.search(last) else None


def _tensor_method(
    run: Interpreter,
    owner: Tensor,
    node: ast.Call,
    func: ast.Attribute,
    given: list[Value],
    named: dict[str, Value],
    frame: Frame,
) -> Value:
    method = func.attr
    if method == "to":
        device = target_device(run, node, given, named, frame)
        return replace(owner, follows=False) if device == "keep" else _moved(owner, device)
    if method in ("cuda", "xpu"):
        return _moved(owner, GPU)
    if method == "cpu":
        return _moved(owner, CPU)
    if method == "type_as" and given:
        other = given[0]
        return _moved(owner, other.device if isinstance(other, (Tensor, Tree)) else None)
    if method == "type":
        text = frame.source.code(node.args[0]) if node.args else ""
        return (
            _moved(owner, GPU)
            if "cuda" in text
            else replace(owner, follows=False)
            if text.startswith("torch.")
            else (_moved(owner, None))
        )
    if method in ("numpy", "__array__"):
        if (owner.device == GPU and not owner.assumed) or owner.device == GPU:
            _numpy_event(run, node, func.value, owner, frame)
        return Array()
    if method.startswith("new_"):
        device = read_device(named["device"], argument(node, "device"), frame) if "device" in named else owner.device
        return Tensor(device, Origin(frame.source, node, "factory") if device == CPU else None)
    if method in facts.NUMBERS:
        return UNKNOWN
    if method in ("view", "reshape") and node.args and not any(isinstance(each, ast.Starred) for each in node.args):
        shape = node.args[0].elts if isinstance(node.args[0], (ast.Tuple, ast.List)) else node.args
        known = len(node.args) > 1 or isinstance(node.args[0], (ast.Tuple, ast.List, ast.Constant, ast.UnaryOp))
        return replace(owner, follows=False, dims=len(shape) if known else None)
    if method in facts.TAKES_BOTH:
        return replace(owner, follows=False, dims=owner.dims if method in ("to", "type_as", "requires_grad_") else None)
    generator = named.pop("generator", None)
    if generator is not None:
        _drawn(run, node, {"generator": generator}, owner.device, frame)
    role = "mask" if method.startswith("masked_") else ""
    in_place = method.endswith("_") and not method.endswith("__")
    result = run.combine(node, [owner, *given, *named.values()], frame, role, in_place=in_place)
    if not isinstance(result, Tensor):
        return UNKNOWN
    if method in facts.REDUCTIONS and not given and not {"dim", "axis"} & named.keys():
        return replace(result, numbers=True)
    if method in ("split", "chunk", "tensor_split"):
        return Sequence(None, replace(result, dims=owner.dims, numbers=owner.numbers))
    if method == "unbind":
        return Sequence(None, run.indexed(owner, node))
    if method in ("max", "min", "sort", "topk", "median", "mode"):
        return Sequence(None, replace(result, numbers=None)) if given or named else result
    return replace(result, origin=result.origin or owner.origin) if result.device == CPU else result


def _moved(owner: Tensor, device: Device) -> Tensor:
    return replace(owner, device=device, follows=False, origin=owner.origin if device == CPU else None, assumed=False)


def _numpy_event(run: Interpreter, node: ast.AST, read: ast.expr, owner: Tensor | Tree, frame: Frame) -> None:
    if not run.quiet:
        origin = Origin(frame.source, node, "made")
        run.log.add(Event("numpy-on-cuda", frame.source, node, origin, "", frame.source.code(read)))


def _tree_method(
    run: Interpreter,
    owner: Tree,
    node: ast.Call,
    func: ast.Attribute,
    given: list[Value],
    named: dict[str, Value],
    frame: Frame,
) -> Value:
    method = func.attr
    if method in ("to", "cuda", "cpu"):
        device = GPU if method == "cuda" else CPU if method == "cpu" else target_device(run, node, given, named, frame)
        if device == "keep":
            return owner
        moved = Tree(device, owner.origin if device == CPU else None)
        if isinstance(frame.source.parent(node), ast.Expr):
            # A batch of transformers or of a graph library moves in place; a tensor would not.
            run.assign(func.value, Tree(None), frame, node) if isinstance(func.value, ast.Name) else None
        return moved
    if method == "numpy":
        if owner.device == GPU:
            _numpy_event(run, node, func.value, owner, frame)
        return Array()
    if method in ("items", "values"):
        return Sequence(None, Sequence((UNKNOWN, owner)) if method == "items" else owner)
    if method in ("keys", *facts.NUMBERS):
        return UNKNOWN
    if method in facts.TAKES_BOTH or method in ("get", "pop"):
        return owner
    return run.combine(node, [owner, *given, *named.values()], frame)


def _module_method(
    run: Interpreter,
    owner: Module,
    node: ast.Call,
    func: ast.Attribute,
    given: list[Value],
    named: dict[str, Value],
    frame: Frame,
) -> Value:
    method = func.attr
    own = run.method(owner, method) if owner.owner is not None else None
    if own is not None and method not in ("to", "cuda", "cpu", "to_empty"):
        return run.call_function(own, given, named, frame)
    if method in ("to", "cuda", "cpu", "xpu"):
        device = (
            GPU
            if method in ("cuda", "xpu")
            else CPU
            if method == "cpu"
            else (target_device(run, node, given, named, frame))
        )
        if device != "keep":
            owner.move(device)
        return owner
    if method == "register_buffer" and given and isinstance(given[0], Const):
        value = given[1] if len(given) > 1 else named.get("tensor", UNKNOWN)
        if isinstance(value, Tensor):
            owner.attributes[given[0].value] = replace(value, device=owner.device, follows=True, origin=None)
        return UNKNOWN
    if method == "add_module" and len(given) > 1 and isinstance(given[0], Const):
        owner.attributes[str(given[0].value)] = given[1]
        return UNKNOWN
    if method == "append" and given:
        owner.items.append(given[0])
        return owner
    if method in ("train", "eval", "requires_grad_", "float", "half", "double", "bfloat16", "apply", "share_memory"):
        return owner
    if method in ("parameters", "named_parameters", "buffers", "state_dict"):
        return Sequence(None, Tensor(owner.device, follows=True)) if method == "parameters" else UNKNOWN
    if method == "forward":
        return forward(run, owner, node, given, named, frame)
    held = owner.attributes.get(method)
    if isinstance(held, (Module, Object)):
        return forward(run, held, node, given, named, frame)
    if isinstance(held, Function):
        return run.call_function(held, given, named, frame)
    return UNKNOWN


def _optimizer_method(run: Interpreter, owner: Optimizer, node: ast.Call, func: ast.Attribute, frame: Frame) -> Value:
    return UNKNOWN


# Functions of torch


def _torch(
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
        _drawn(run, node, named, given[0].device, frame)
    result = run.combine(node, [*given, *named.values()], frame, role)
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
    _drawn(run, node, named, device, frame)
    origin = Origin(frame.source, node, "factory") if device == CPU and "device" not in named else None
    dims = 0 if numbers else None if numbers is None else _dims(last, node)
    return Tensor(device, origin, numbers, dims=dims)


def _drawn(run: Interpreter, node: ast.Call, named: dict[str, Value], device: Device, frame: Frame) -> None:
    """A generator draws for its own device only."""
    generator = named.get("generator")
    if isinstance(generator, Generator) and generator.device == CPU and device == GPU and not run.quiet:
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


def _is_number(node: ast.expr | None) -> bool:
    """An expression of numbers, as far as its form tells: ``1.0 / math.sqrt(d)``."""
    if isinstance(node, ast.BinOp):
        return not (isinstance(node.left, (ast.List, ast.Tuple)) or isinstance(node.right, (ast.List, ast.Tuple)))
    return False


def _like(given: list[Value], named: dict[str, Value], node: ast.Call, frame: Frame) -> Value:
    if "device" in named:
        return Tensor(read_device(named["device"], argument(node, "device"), frame))
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


# Calls of modules


def forward(
    run: Interpreter, owner: Value, node: ast.Call, given: list[Value], named: dict[str, Value], frame: Frame
) -> Value:
    """``module(…)``."""
    if isinstance(owner, Object):
        method = run.method(owner, "__call__")
        return run.call_function(method, given, named, frame) if method is not None else UNKNOWN
    if not isinstance(owner, Module):
        return UNKNOWN
    if owner.name == "torch.nn.DataParallel" and owner.items:
        if owner.scatters:
            given = [_given_to(value, owner.device) for value in given]
            named = {word: _given_to(value, owner.device) for word, value in named.items()}
        return forward(run, owner.items[0], node, given, named, frame)
    if owner.owner is not None:
        _meets_input(run, owner, node, [*given, *named.values()], frame)
        method = run.method(owner, "forward") or run.method(owner, "__call__")
        if method is not None:
            return run.call_function(method, given, named, frame)
        if not owner.items:
            return UNKNOWN
    last = owner.name.rsplit(".", 1)[-1] if owner.owner is None else "Sequential"
    if facts.is_loss(owner.name):
        result = run.combine(node, [*given, *named.values()], frame, "label")
        run.combine(node, [*given[:1], *(tensor for _, tensor in owner.plain)], frame, "weight")
        return replace(result, numbers=True) if isinstance(result, Tensor) else UNKNOWN
    if last == "Sequential":
        value: Value = given[0] if given else UNKNOWN
        for layer in owner.items:
            value = forward(run, layer, node, [value], {}, frame)
        return value
    if last in facts.NO_PARAMETERS:
        return run.combine(node, [*given[:1]], frame)
    return _parametrised(run, owner, last, node, given, named, frame)


def _meets_input(run: Interpreter, owner: Module, node: ast.Call, given: list[Value], frame: Frame) -> None:
    """A model of the project that was never moved, given a tensor of the GPU: said once, for the whole model."""
    on_gpu = any(isinstance(value, (Tensor, Tree)) and value.device == GPU for value in given)
    if owner.device != CPU or not on_gpu or owner.node is None or owner.source is None or not has_parameters(owner):
        return
    if owner.contained is not None or _built_on_the_way(owner) or run.quiet:
        return
    origin = Origin(owner.source, owner.node, "made")
    run.log.add(Event("model-not-moved", frame.source, node, origin, frame.source.code(node.func)))
    owner.move(GPU)


def has_parameters(module: Module) -> bool:
    """Whether a module has anything that could be on a device."""
    if module.owner is None and not module.items:
        last = module.name.rsplit(".", 1)[-1]
        return last not in facts.NO_PARAMETERS and not facts.is_loss(module.name)
    held = [*module.attributes.values(), *module.items]
    return any(
        has_parameters(each) if isinstance(each, Module) else isinstance(each, Tensor) and each.follows for each in held
    )


def _given_to(value: Value, device: Device) -> Value:
    """What a wrapper that moves its inputs hands on."""
    if isinstance(value, (Tensor, Tree)):
        return replace(value, device=device)
    if isinstance(value, Sequence) and value.items is not None:
        return Sequence(tuple(_given_to(item, device) for item in value.items))
    return value


def _parametrised(
    run: Interpreter,
    owner: Module,
    last: str,
    node: ast.Call,
    given: list[Value],
    named: dict[str, Value],
    frame: Frame,
) -> Value:
    """A layer with parameters meets its input."""
    first = given[0] if given else next(iter(named.values()), UNKNOWN)
    if owner.device == CPU and isinstance(first, (Tensor, Tree)) and first.device == GPU and not run.quiet:
        if owner.contained is not None:
            run.log.add(Event("module-not-moved-along", frame.source, node, owner.contained, "", owner.contained.name))
        elif owner.node is not None and owner.source is not None and not _built_on_the_way(owner):
            origin = Origin(owner.source, owner.node, "made")
            run.log.add(Event("model-not-moved", frame.source, node, origin, frame.source.code(node.func)))
        owner.move(GPU)
    if owner.device == GPU:
        own = Tensor(GPU)
        masks = [value for word, value in named.items() if _MASK_WORD.search(word)]
        rest = [value for word, value in named.items() if not _MASK_WORD.search(word)]
        if last in facts.RECURRENT:
            run.combine(node, [own, *given[:1]], frame, excuses=False)
            run.combine(node, [own, *given[1:], *rest], frame, "hidden", excuses=False)
        else:
            run.combine(node, [own, *given, *rest], frame, excuses=False)
        run.combine(node, [own, *masks], frame, "mask", excuses=False)
    device = owner.device if owner.device is not None else None
    result = Tensor(device, None)
    if last in ("LSTM", "GRU", "RNN", "MultiheadAttention"):
        state: Value = Sequence((result, result)) if last == "LSTM" else result
        return Sequence((result, state))
    return Sequence((result, result)) if last == "LSTMCell" else result


def _built_on_the_way(module: Module) -> bool:
    """A layer made where it is called, which is another fault: it is never trained."""
    if module.source is None or module.node is None:
        return False
    function = module.source.function(module.node)
    return function is not None and function.name == "forward"


def _numpy(run: Interpreter, node: ast.Call, given: list[Value], frame: Frame) -> Value:
    for value, at in zip(given, node.args, strict=False):
        if isinstance(value, Tensor) and value.device == GPU:
            _numpy_event(run, at, at, value, frame)
    return Array()


__all__ = ["call", "forward", "has_parameters", "read_device"]
