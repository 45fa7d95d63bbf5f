"""Checks that torch makes in C++ before any operator runs: attention, recurrent layers, stft, quantile …

Each is a wrapper around the function that Python calls; it compares the devices of the named arguments and leaves
the rest to torch. One row a function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torchport.inside.vcuda import moves
from torchport.inside.vcuda.faults import operand, where
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches
from torchport.inside.vcuda.rules import same_device_text
from torchport.inside.vcuda.tags import HOST, device_of, put, tag_of

Words = Callable[[dict[str, Any]], tuple[str, str] | None]  # arguments -> (offending argument, CUDA's text)


def install(patches: Patches, machine: Machine) -> None:
    """Wraps the functions of the table."""
    for owner, name, parameters, words in _table():
        original = getattr(owner, name, None)
        if original is not None:
            patches.set(owner, name, _checked(machine, original, name, parameters, words))
    _recurrent(patches, machine)
    _quiet(patches, machine)


def _checked(
    machine: Machine, original: Callable[..., Any], name: str, parameters: tuple[str, ...], words: Words
) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if parameters is _VARIADIC:
            given: dict[str, Any] = {
                "tensors": args[0] if len(args) == 1 and not isinstance(args[0], torch.Tensor) else args
            }
        else:
            given = {**dict(zip(parameters, args, strict=False)), **kwargs}
        said = words(given)
        if said is not None:
            offender, text = said
            here = [operand(key, value) for key, value in given.items() if isinstance(value, torch.Tensor)]
            for key, value in given.items():
                if isinstance(value, (list, tuple)):
                    here += [operand(key, item) for item in value if isinstance(item, torch.Tensor)]
            odd = next((o for o in here if o.name == offender and o.device == HOST), None)
            machine.faults.refuse(
                "R101",
                text,
                RuntimeError,
                here,
                odd or next((o for o in here if o.name == offender), None),
                op=name,
            )
            machine.healed = True
            target = next(o.device for o in here if o.device >= 0)
            args = tuple(_healed(machine, value, target) for value in args)
            kwargs = {key: _healed(machine, value, target) for key, value in kwargs.items()}
        return original(*args, **kwargs)

    return call


def _healed(machine: Machine, value: Any, target: int) -> Any:
    """A copy on the card of what was left on the host, for this one call; parameters move for good."""
    if isinstance(value, (list, tuple)):
        return type(value)(_healed(machine, item, target) for item in value)
    if not isinstance(value, torch.Tensor) or device_of(value) == target:
        return value
    tag = tag_of(value)
    if tag is not None and tag.origin.kind in ("parameter", "buffer"):
        return put(machine, value, target)
    machine.local.quiet += 1
    try:
        return moves.moved(machine, value, target)
    finally:
        machine.local.quiet -= 1


def _attention(given: dict[str, Any]) -> tuple[str, str] | None:
    query, key, value = (given.get(name) for name in ("query", "key", "value"))
    if not all(isinstance(t, torch.Tensor) for t in (query, key, value)):
        return None
    if len({device_of(query), device_of(key), device_of(value)}) == 1:
        return None
    names = ("query", "key", "value")
    odd = next((name for name in names if device_of(given[name]) == HOST), "key")
    return odd, (
        "Expected query, key, and value to have the same device type, but got "
        f"query.device: {where(query)} key.device: {where(key)} and value.device: {where(value)} instead."
    )


def _pair(first: str, second: str, text: str) -> Words:
    """Two arguments that must be on one device; ``{a}`` and ``{b}`` are where they are."""

    def words(given: dict[str, Any]) -> tuple[str, str] | None:
        a, b = given.get(first), given.get(second)
        if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)) or device_of(a) == device_of(b):
            return None
        return (second if device_of(b) == HOST else first), text.format(a=where(a), b=where(b))

    return words


def _sequence(name: str, text: str) -> Words:
    """Tensors on one device; ``{a}``, ``{b}``: where the first and the odd one are, ``{i}``: which that is."""

    def words(given: dict[str, Any]) -> tuple[str, str] | None:
        found = given.get(name)
        tensors = [t for t in found if isinstance(t, torch.Tensor)] if isinstance(found, (list, tuple)) else []
        for position, tensor in enumerate(tensors):
            if device_of(tensor) != device_of(tensors[0]):
                return name, text.format(a=where(tensors[0]), b=where(tensor), i=position)
        return None

    return words


def _gradient(given: dict[str, Any]) -> tuple[str, str] | None:
    spacing = given.get("spacing")
    tensors = [given.get("input"), *(spacing if isinstance(spacing, (list, tuple)) else [])]
    text = "torch.gradient expected each tensor to be on the same device, but got devices {a} and {b}!"
    return _sequence("spacing", text)({"spacing": tensors})


def _lstm_cell(given: dict[str, Any]) -> tuple[str, str] | None:
    """With a card in play the cell is two products without bias and a fused kernel (RNN.cpp)."""
    data, states, cell = given.get("input"), given.get("hx"), None
    if not isinstance(data, torch.Tensor) or not isinstance(states, (list, tuple)):
        return None
    cell = states[1]
    for name, tensor, weight in (("input", data, given.get("w_ih")), ("hx", states[0], given.get("w_hh"))):
        if isinstance(weight, torch.Tensor) and device_of(tensor) != device_of(weight):
            text = same_device_text("mat2", device_of(weight), device_of(tensor), "wrapper_CUDA_mm")
            return (name if device_of(tensor) == HOST else f"w_{name[0]}h"), text
    if device_of(cell) != device_of(data):
        return "hx", same_device_text("cx", device_of(cell), device_of(data), "wrapper_CUDA___thnn_fused_lstm_cell")
    return None


def _split(given: dict[str, Any]) -> tuple[str, str] | None:
    where_to = given.get("indices_or_sections")
    if not isinstance(where_to, torch.Tensor) or device_of(where_to) == HOST:
        return None
    text = f"tensor_split expected tensor_indices_or_sections to be on cpu, but it's on {where(where_to)}"
    return "indices_or_sections", text


def _quantile(given: dict[str, Any]) -> tuple[str, str] | None:
    return _pair("input", "q", "quantile() q tensor must be on the same device as the input tensor")(given)


def _outputs(given: dict[str, Any], first: str, second: str, text: str) -> tuple[str, str] | None:
    """``out=`` must be where the operands are."""
    out, a, b = given.get("out"), given.get(first), given.get(second)
    if not all(isinstance(t, torch.Tensor) for t in (out, a, b)) or device_of(out) == device_of(a):
        return None
    return "out", text.format(out=where(out), a=where(a), b=where(b))


def _dot(given: dict[str, Any]) -> tuple[str, str] | None:
    text = (
        "dot: Expected the output and input tensors to be on the same device, but got the output tensor on {out}, "
        "the 'input' tensor on {a}, and the 'other' tensor on {b}"
    )
    return _outputs(given, "input", "other", text)


def _tensordot(given: dict[str, Any]) -> tuple[str, str] | None:
    text = (
        "tensordot: Expected the output and input tensors to be on the same device, but got the output tensor "
        "on {out}, input tensor a on {a}, and input tensor b on {b}"
    )
    return _outputs(given, "a", "b", text)


_VARIADIC = ("*tensors",)


def _table() -> list[tuple[Any, str, tuple[str, ...], Words]]:
    functional = torch.nn.functional
    stft = "stft input and window must be on the same device but got self on {a} and window on {b}"
    istft = "istft input and window must be on the same device but got self on {a} and window on {b}"
    solve = "Expected b and A to be on the same device, but found b on {a} and A on {b} instead."
    block = (
        "torch.block_diag: input tensors must all be on the same device. Input 0 is on device {a} and "
        "input {i} is on device {b}"
    )
    chain = "multi_dot(): all tensors must be on the same device but tensor 0 is on {a} and tensor {i} on {b}"
    norm = "weight_norm: expected v_in and g_in to be on the same device, but v_in is on {a} and g_in is on {b}"
    along = (
        "Expected tensor to have {a} Device, but got tensor with {b} Device "
        "(while checking arguments for torch.take_along_dim():)"
    )
    return [
        (functional, "scaled_dot_product_attention", ("query", "key", "value", "attn_mask"), _attention),
        (
            torch,
            "stft",
            ("input", "n_fft", "hop_length", "win_length", "window"),
            _pair("input", "window", stft),
        ),
        (
            torch,
            "istft",
            ("input", "n_fft", "hop_length", "win_length", "window"),
            _pair("input", "window", istft),
        ),
        (torch, "quantile", ("input", "q"), _quantile),
        (torch, "nanquantile", ("input", "q"), _quantile),
        (torch.Tensor, "quantile", ("input", "q"), _quantile),
        (torch.Tensor, "nanquantile", ("input", "q"), _quantile),
        (torch._VF, "lstm_cell", ("input", "hx", "w_ih", "w_hh", "b_ih", "b_hh"), _lstm_cell),
        (torch, "cholesky_solve", ("b", "A"), _pair("b", "A", solve)),
        (torch, "meshgrid", _VARIADIC, _sequence("tensors", "meshgrid expects all tensors to have the same device")),
        (torch, "block_diag", _VARIADIC, _sequence("tensors", block)),
        (torch.linalg, "multi_dot", ("tensors",), _sequence("tensors", chain)),
        (torch, "gradient", ("input",), _gradient),
        (torch, "_weight_norm", ("v", "g", "dim"), _pair("v", "g", norm)),
        (torch, "dot", ("input", "other"), _dot),
        (torch, "tensordot", ("a", "b", "dims", "out"), _tensordot),
        (torch, "take_along_dim", ("input", "indices", "dim"), _pair("input", "indices", along)),
        (torch, "tensor_split", ("input", "indices_or_sections"), _split),
    ]


_RNN = {"lstm": True, "gru": False, "rnn_tanh": False, "rnn_relu": False}


def _recurrent(patches: Patches, machine: Machine) -> None:
    """LSTM, GRU and RNN compare the input with the hidden state and with every weight (RNN.cpp)."""
    for name, pair in _RNN.items():
        patches.set(torch._VF, name, _recurrent_call(machine, getattr(torch._VF, name), name, pair))


def _recurrent_call(machine: Machine, original: Any, name: str, pair: bool) -> Any:
    @functools.wraps(original)
    def call(*args: Any) -> Any:
        packed = isinstance(args[1], torch.Tensor) and isinstance(args[3], (list, tuple))
        data, hidden, weights = (args[0], args[2], args[3]) if packed else (args[0], args[1], args[2])
        states = list(hidden) if pair else [hidden]
        odd = [
            (kind, tensor)
            for kind, tensors in (("parameter", list(weights)), ("hidden", states))
            for tensor in tensors
            if device_of(tensor) != device_of(data)
        ]
        if not odd:
            return original(*args)
        # RNN.cpp compares the input with the weights only when the hidden state agrees with the input.
        kind, tensor = next((pair for pair in odd if pair[0] == "hidden"), odd[0])
        _differs(machine, name, data, tensor, kind)
        target = max(device_of(t) for t in (data, *states, *weights))
        return original(*(_healed(machine, value, target) for value in args))

    return call


def _differs(machine: Machine, name: str, data: Any, tensor: Any, kind: str) -> None:
    text = (
        f"Input and {kind} tensors are not at the same device, found input tensor at {where(data)} "
        f"and {kind} tensor at {where(tensor)}"
    )
    here = [operand("input", data), operand("hx" if kind == "hidden" else "weight", tensor)]
    odd = here[1] if here[1].device == HOST else here[0]
    machine.faults.refuse("R101", text, RuntimeError, here, odd, op=name)
    machine.healed = True


def _quiet(patches: Patches, machine: Machine) -> None:
    """Calls that look at numbers on the CPU and would not on a card."""
    functional = torch.nn.functional
    raw = functional.one_hot

    @functools.wraps(raw)
    def one_hot(tensor: Any, num_classes: int = -1) -> Any:
        if num_classes == -1:
            return raw(tensor)
        machine.local.quiet += 1
        try:
            return raw(tensor, num_classes)
        finally:
            machine.local.quiet -= 1

    patches.set(functional, "one_hot", one_hot)
    raw_ctc = torch.ctc_loss

    @functools.wraps(raw_ctc)
    def ctc_loss(log_probs: Any, targets: Any, *lengths: Any, **kwargs: Any) -> Any:
        # CUDA copies lengths that it finds on the host; told as numbers, the CPU does so, too.
        told = [n.tolist() if isinstance(n, torch.Tensor) and device_of(n) == HOST else n for n in lengths[:2]]
        return raw_ctc(log_probs, targets, *told, *lengths[2:], **kwargs)

    patches.set(torch, "ctc_loss", ctc_loss)
