"""The floor: sees every operator that runs, backward and optimizers included.

It compares the devices of the operands by CUDA's rules, runs the operator, and says on which device the results
live. What it costs an operator decides how fast a rehearsal is: the path taken when all operands agree has no
function calls of ours but the walk over the arguments.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from torchport.inside.vcuda import cuda_only, devices, exactsame, handwritten, meta, rules, special, syncs, tags
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.operators import Operator, argument
from torchport.inside.vcuda.tags import HOST, UNBORN, Origin, Tag, storage_of

_Tensor = torch.Tensor
_Parameter = torch.nn.Parameter
_CPU = torch.device("cpu")
_TYPE_NAME = re.compile(r"\btorch\.((?:Float|Double|Half|BFloat16|Long|Int|Short|Char|Byte|Bool)Tensor)\b")
_INTEGERS = frozenset({torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool})
_NONE = -9  # no tensor seen yet


class Floor(TorchDispatchMode):
    """One per process; entered in every thread."""

    supports_higher_order_operators = True

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self.machine = machine
        self.local = machine.local
        self.shapes_only = machine.options.backing == "meta"
        self.checks = exactsame.table()
        self.operators: dict[int, Operator] = {}

    def learn(self, func: Any) -> Operator:
        """Reads an overload's schema at its first use."""
        operator = Operator(func, self.checks)
        operator.special = special.OPERATORS.get(operator.packet)
        kernel = cuda_only.KERNELS.get(operator.packet)
        if kernel is not None:
            operator.func = cuda_only.Kernel(func, kernel)
        if operator.packet.startswith(("c10d::", "_c10d_functional::")):
            operator.special = self.machine.collective
        self.operators[id(func)] = operator
        return operator

    def run(self, operator: Operator, args: Any, kwargs: Any, device: int) -> Any:
        """Runs the operator on operands that agree (or were healed) and tags what it returns."""
        func = operator.func
        if device >= 0:
            if operator.floating_only is not None:
                self._refuse_integers(operator, args)
            if operator.random:
                self._draw(operator, args, kwargs, device)
            if self.shapes_only:
                out = meta.run(self.machine, operator, args, kwargs)
            else:
                out = self.compute(operator, args, kwargs)
            if operator.sync and not self.local.quiet and kwargs.get("output_size") is None:
                syncs.note(self.machine, operator)  # repeat_interleave that knows its size does not ask for it
        else:
            if operator.random:
                self._check_generator(operator, args, kwargs, device)
            out = func(*args, **kwargs)
        if operator.fresh:
            self.tag(operator, out, device)
            several = out.__class__ is tuple  # sort, max …: the first is what was given, in another order
            if args and (device == HOST or several):
                self.inherit(args[0], out[0] if several else out)
        elif operator.writes_out:
            self.resized(out)
        elif out.__class__ is _Tensor and out.layout is not torch.strided:
            self.tag(operator, out, device)  # t() of a sparse tensor is called a view, and copies
        return out

    def compute(self, operator: Operator, args: Any, kwargs: Any) -> Any:
        """Runs an operator of a card; what the CPU's kernel says of it is put in CUDA's words."""
        if self.machine.poisoned is not None:
            raise self.machine.poisoned
        failure: Exception
        try:
            return operator.func(*args, **kwargs)
        except IndexError as error:
            failure = error
        except RuntimeError as error:
            text = _TYPE_NAME.sub(r"torch.cuda.\1", str(error))
            if text == str(error) or type(error) is not RuntimeError:
                raise
            failure = RuntimeError(text)
        if isinstance(failure, IndexError) and "out of" in str(failure):
            self.machine.faults.device_assert(operator, failure)
        raise failure

    def tag(self, operator: Operator, out: Any, device: int) -> None:
        """Gives new storages their device; storages already tagged are views or written operands."""
        cls = out.__class__
        if cls is _Tensor or isinstance(out, _Tensor):
            if cls is FakeTensor:
                return  # from a FakeTensorMode, which sees the call after us: nothing is there
            if cls not in tags.PLAIN and hasattr(out, "__tensor_flatten__"):
                self.tag(operator, tags.parts(out), device)
                return
            try:
                storage = storage_of(out)
            except (NotImplementedError, RuntimeError):
                for part in tags.parts(out):
                    self.tag(operator, part, device)
                return
            if storage._vcuda is None:
                place = self.machine.places.here()
                tag = Tag(device, Origin(place, operator.name))
                if place is not None and place[0].co_name == "__init__":
                    tag.origin.built = self.machine.places.built()
                storage._vcuda = tag
                if device >= 0:
                    size = storage.nbytes()
                    self.machine.admit(device, size)
                    tag.charge(self.machine.gpus[device], size)
        elif cls is tuple or cls is list:
            for index, item in enumerate(out):
                if item is not None:
                    self.tag(operator, item, HOST if index in operator.host_results else device)

    def inherit(self, source: Any, result: Any) -> None:
        """A host result remembers where its first operand came from."""
        if source.__class__ is list and source:  # cat, stack
            source = source[0]
        if (
            source.__class__ is _Tensor
            and result.__class__ is _Tensor
            and result.layout is torch.strided
            and source.layout is torch.strided
        ):
            made, given = storage_of(result)._vcuda, storage_of(source)._vcuda
            if made is not None and given is not None and made is not given:
                tags.descend(made.birth, given.birth)

    def resized(self, out: Any) -> None:
        """An out= tensor may have grown."""
        for tensor in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(tensor, _Tensor) and tensor.layout is torch.strided:
                storage = storage_of(tensor)
                tag = storage._vcuda
                if tag is not None and tag.gpu is not None and tag.bytes != (storage.nbytes() + 511) & ~511:
                    gpu = tag.gpu
                    tag.release()
                    self.machine.admit(gpu.index, storage.nbytes())
                    tag.charge(gpu, storage.nbytes())

    def judge(self, operator: Operator, args: Any, kwargs: Any, always: bool = False) -> Any:
        """Operands that do not agree: adopts the unborn, asks the operator's rule, records or raises, runs."""
        found = rules.operands(operator, args, kwargs)
        target = rules.first_card(found)
        for operand in found:
            if operand.device == UNBORN:
                tags.put(self.machine, operand.tensor, target)
                operand.device = target
        if not always and all(operand.device == target for operand in found):
            return self.run(operator, args, kwargs, target)
        rule = handwritten.rule_for(operator)
        if rule is handwritten.index_put and argument(operator, args, kwargs, "accumulate"):
            rule = handwritten.index_put_accumulate
        verdict = rule(operator, found)
        result = verdict.device
        for position in range(len(found)):  # each clash is recorded and healed, until CUDA would accept the call
            clash = verdict.clash
            if clash is None:
                break
            clash.operands = found
            self.machine.faults.clash(operator, clash, further=position > 0)
            if clash.offender is None or not rules.heal(found, clash.offender):
                break
            verdict = rule(operator, found)
        verdict.device = result
        if verdict.device == handwritten.MIXED:
            return self.run_mixed(operator, args, kwargs)
        return self.run(operator, args, kwargs, verdict.device)

    def run_mixed(self, operator: Operator, args: Any, kwargs: Any) -> Any:
        """A foreach operator over several devices: each result lives where its operand lives."""
        out = operator.func(*args, **kwargs)
        if operator.fresh and isinstance(out, (list, tuple)):
            for source, result in zip(args[0], out, strict=False):
                self.tag(operator, result, tags.device_of(source))
        return out

    def _check_generator(self, operator: Operator, args: Any, kwargs: Any, device: int) -> None:
        generator = argument(operator, args, kwargs, "generator")
        if generator is not None and self.local.pending is None:  # a factory has looked at it already
            self.machine.generator_for(generator, device)

    def _draw(self, operator: Operator, args: Any, kwargs: Any, device: int) -> None:
        """Random numbers of a card: another stream than the CPU's on real hardware, so they are listed."""
        self._check_generator(operator, args, kwargs, device)
        key = (self.machine.places.here(), operator.packet.removeprefix("aten::"))
        self.machine.draws[key] = self.machine.draws.get(key, 0) + 1

    def _refuse_integers(self, operator: Operator, args: Any) -> None:
        if args[0].dtype in _INTEGERS:  # operands of several types are refused by the CPU's kernel, too
            self.machine.faults.not_on_cuda(operator, args[0])


_OURS = object()


def _others(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Tensors of classes with operators of their own (DTensor, say): what those make of a call comes here in turn."""
    for cls in types:
        if cls is FakeTensor:
            return func(*args, **(kwargs or {}))  # nothing is there
        if cls.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl:
            return NotImplemented
    return _OURS


def _dispatch(self: Floor, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    if types and (answer := _others(func, types, args, kwargs)) is not _OURS:
        return answer
    operator = self.operators.get(id(func)) or self.learn(func)
    operator.count += 1
    if kwargs is None:
        kwargs = {}
    if operator.special is not None:
        return operator.special(self, operator, args, kwargs)
    device = _NONE
    agree = True
    try:
        for arg in args:
            cls = arg.__class__
            if cls is _Tensor or cls is _Parameter:
                tag = storage_of(arg)._vcuda
                found = HOST if tag is None else tag.device
            elif cls is list or cls is tuple:
                for item in arg:
                    if isinstance(item, _Tensor):
                        tag = storage_of(item)._vcuda
                        found = HOST if tag is None else tag.device
                        if found != device:
                            agree = agree and device == _NONE
                            device = found
                continue
            elif isinstance(arg, _Tensor):
                found = tags.device_of(arg)
            else:
                continue
            if found != device:
                agree = agree and device == _NONE
                device = found
        if kwargs:
            for arg in kwargs.values():
                if isinstance(arg, _Tensor):
                    found = tags.device_of(arg)
                    if found != device:
                        agree = agree and device == _NONE
                        device = found
    except (NotImplementedError, RuntimeError):
        agree = False  # an operand without a storage of its own: sparse, wrapped
    if not agree:
        return self.judge(operator, args, kwargs)
    if operator.factory:
        pending = self.local.pending
        asked = kwargs.get("device")
        if asked is not None and asked.type == "cuda":  # from TorchScript, or a function bound before us
            pending = devices.index_of(self.machine, asked)
            kwargs = {**kwargs, "device": _CPU}
        elif asked is not None and asked.type == "meta" and not self.shapes_only:
            return self.run(operator, args, kwargs, HOST)
        if pending is not None:
            device = pending
        elif device == _NONE:
            device = UNBORN
        if device >= 0 and "size" in operator.positions:
            _admit_factory(self, operator, args, kwargs, device)
    elif device == _NONE:
        device = UNBORN
    return self.run(operator, args, kwargs, device)


# Assigned after the class is made: torch would wrap a method named so at class creation, and import its compiler.
Floor.__torch_dispatch__ = _dispatch


def _admit_factory(floor: Floor, operator: Operator, args: Any, kwargs: Any, device: int) -> None:
    """Refuses what the card cannot hold before the host tries to hold it."""
    size = argument(operator, args, kwargs, "size")
    dtype = kwargs.get("dtype") or torch.get_default_dtype()
    count = dtype.itemsize
    for length in size if isinstance(size, (list, tuple)) else ():
        count *= int(length)
    if count > 1 << 20:
        floor.machine.admit(device, count)
