"""Streams and events over a virtual card: numbers, currents, waits, times, errors by version."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

from torchport.inside.vcuda.builds import TORCH
from torchport.inside.vcuda.machine import Machine

cuda: Any = torch.cuda


def test_streams_are_numbered_as_c10_does(machine: Machine) -> None:
    assert [torch.cuda.Stream().stream_id for _ in range(3)] == [3, 35, 67]
    assert torch.cuda.Stream(priority=-1).stream_id == 5
    assert torch.cuda.Stream(priority=-99).priority == -3
    assert torch.cuda.Stream(priority=2).priority == 0
    assert cuda.Stream.priority_range() == (0, -3)
    pool = [torch.cuda.Stream(1) for _ in range(33)]
    assert pool[0] == pool[32] and pool[0] != pool[1]


def test_identity(machine: Machine) -> None:
    a = torch.cuda.Stream()
    again = torch.cuda.Stream(stream_id=a.stream_id, device_index=0, device_type=1)
    assert a == again and hash(a) == hash(again) and a is not again
    assert a != torch.cuda.Stream(stream_id=a.stream_id, device_index=1, device_type=1)
    assert isinstance(a, torch.cuda.Stream) and isinstance(a, torch.Stream)
    assert a.device == torch.device("cuda", 0)
    assert torch.cuda.default_stream().cuda_stream == 0 != a.cuda_stream
    assert repr(torch.cuda.current_stream()) == "<torch.cuda.Stream device=cuda:0 cuda_stream=0x0>"
    assert a._as_parameter_.value == a.cuda_stream


def test_external_streams_keep_their_address(machine: Machine) -> None:
    stream = torch.cuda.ExternalStream(0x1230)
    assert stream.cuda_stream == 0x1230
    assert torch.cuda.get_stream_from_external(0x1230, 0) == stream if TORCH >= (2, 7) else True


def test_the_current_stream(machine: Machine) -> None:
    first, second = torch.cuda.Stream(), torch.cuda.Stream(device=1)
    with torch.cuda.stream(first):
        assert torch.cuda.current_stream() == first
        with torch.cuda.stream(second):
            assert torch.cuda.current_device() == 1
            assert torch.cuda.current_stream() == second
        assert (torch.cuda.current_device(), torch.cuda.current_stream()) == (0, first)
        others: list[Any] = []
        thread = threading.Thread(target=lambda: others.append(torch.cuda.current_stream()))
        thread.start()
        thread.join()
        assert others == [torch.cuda.default_stream()]
    with torch.cuda.stream(None):
        assert torch.cuda.current_stream() == torch.cuda.default_stream()
    torch.cuda.set_stream(first)
    assert torch.cuda.current_stream(0) == first
    assert torch.cuda.current_stream("cuda:1") == torch.cuda.default_stream(1)


@pytest.mark.skipif(TORCH < (2, 8), reason="streams are no context managers there")
def test_a_stream_is_a_context_manager(machine: Machine) -> None:
    stream = torch.cuda.Stream(device=1)
    with stream:
        assert torch.cuda.current_device() == 1
        assert torch.cuda.current_stream() == stream
    assert torch.cuda.current_device() == 0
    assert torch.cuda.current_stream(1) == torch.cuda.default_stream(1)


def test_events(machine: Machine) -> None:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    assert repr(start) == "<torch.cuda.Event uninitialized>" and start.query() and start.device is None
    start.record()
    cuda._sleep(int(1.41e9))  # a second of the card's clock
    end.record(torch.cuda.Stream())
    end.synchronize()
    assert 1000 <= start.elapsed_time(end) < 60_000
    assert end.elapsed_time(start) == -start.elapsed_time(end)
    assert end.device == torch.device("cuda", 0) and end.query()
    assert isinstance(end, torch.Event) and isinstance(end, torch.cuda.Event)


def test_streams_and_events_wait_for_each_other(machine: Machine) -> None:
    a, b = torch.cuda.Stream(), torch.cuda.Stream(1)
    event = a.record_event()
    b.wait_event(event)
    b.wait_stream(a)
    event.wait()
    assert a.query() and b.query()
    assert machine.current == 0


def test_errors_of_events(machine: Machine) -> None:
    timed, other, plain = (
        torch.cuda.Event(enable_timing=True),
        torch.cuda.Event(enable_timing=True),
        torch.cuda.Event(),
    )
    kind = ValueError if TORCH >= (2, 8) else RuntimeError
    with pytest.raises(kind, match="Both events must be recorded before calculating elapsed time"):
        timed.elapsed_time(other)
    plain.record()
    timed.record()
    text = "created with argument 'enable_timing=True'" if TORCH >= (2, 8) else "invalid resource handle"
    with pytest.raises(kind, match=text):
        timed.elapsed_time(plain)
    with pytest.raises(RuntimeError) as caught:
        timed.record(torch.cuda.Stream(device=1))
    assert str(caught.value) == "Event device 0 does not match recording stream's device 1."


def test_a_time_read_without_waiting_is_remarked(machine: Machine) -> None:
    def wait(name: str) -> None:
        machine.sync_count += 1

    machine.on_sync = wait
    faults: Any = machine.faults
    for waits in (True, False):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        end.record()
        if waits:
            torch.cuda.synchronize()
        start.elapsed_time(end)
        assert (("R204", "elapsed_time") in faults.seen) is not waits


def test_waits_are_reported(machine: Machine) -> None:
    names: list[str] = []
    machine.on_sync = names.append
    torch.cuda.synchronize()
    torch.cuda.synchronize(1)
    torch.cuda.current_stream().synchronize()
    event = torch.cuda.Event()
    event.record()
    event.synchronize()
    assert names == [
        "torch.cuda.synchronize",
        "torch.cuda.synchronize",
        "torch.cuda.Stream.synchronize",
        "torch.cuda.Event.synchronize",
    ]


@pytest.mark.parametrize(("mode", "number"), [("default", 0), ("warn", 1), ("error", 2), (1, 1)])
def test_sync_debug_mode(machine: Machine, mode: Any, number: int) -> None:
    torch.cuda.set_sync_debug_mode(mode)
    assert torch.cuda.get_sync_debug_mode() == machine.sync_debug_mode == number


@pytest.mark.parametrize("mode", ["loud", 3])
def test_unknown_sync_debug_mode(machine: Machine, mode: Any) -> None:
    with pytest.raises(RuntimeError, match="invalid value of debug_mode, expected one of"):
        torch.cuda.set_sync_debug_mode(mode)


def test_generic_streams_and_events(machine: Machine) -> None:
    stream = torch.Stream("cuda:1")
    assert isinstance(stream, torch.cuda.Stream) and stream.device_index == 1
    assert isinstance(torch.Stream(device="cuda"), torch.Stream)
    event = torch.Event("cuda", enable_timing=True)
    event.record(stream)
    assert isinstance(event, torch.cuda.Event) and event.device == torch.device("cuda", 1)
    assert torch.Event("cpu").device == torch.device("cpu")
    assert torch.Stream(stream_id=3, device_index=1, device_type=1) == torch.cuda.Stream(
        stream_id=3, device_index=1, device_type=1
    )
