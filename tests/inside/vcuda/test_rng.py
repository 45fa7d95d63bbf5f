"""Random numbers of torch.cuda: seeds are remembered, the stream is the CPU's."""

from __future__ import annotations

import pytest
import torch

from torchport.inside.vcuda import virtual_cuda
from torchport.inside.vcuda.machine import Machine


def test_seeding_the_card_does_not_reseed_the_stream(machine: Machine) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    torch.cuda.manual_seed(1)
    torch.cuda.manual_seed_all(2)
    torch.cuda.seed()
    torch.cuda.seed_all()
    torch.cuda.init()
    assert torch.equal(torch.rand(3), expected)


def test_seeds(machine: Machine) -> None:
    assert torch.cuda.initial_seed() == 67280421310721
    torch.manual_seed(7)
    assert torch.cuda.initial_seed() == 7
    torch.cuda.manual_seed(-1)
    assert torch.cuda.initial_seed() == 2**64 - 1
    with torch.cuda.device(1):
        assert torch.cuda.initial_seed() == 7
    torch.cuda.seed_all()
    generators = torch.cuda.default_generators
    assert generators[0].initial_seed() == generators[1].initial_seed() != 7
    assert [generator.device for generator in generators] == [
        torch.device("cuda", 0),
        torch.device("cuda", 1),
    ]
    assert all(isinstance(generator, torch.Generator) for generator in generators)


def test_a_seed_given_early_counts(machine: Machine) -> None:
    torch.cuda.manual_seed_all(11)
    assert not torch.cuda.is_initialized()
    assert torch.cuda.initial_seed() == 11


def test_states(machine: Machine) -> None:
    state = torch.cuda.get_rng_state("cuda:1")
    assert torch.equal(state, torch.get_rng_state())
    first = torch.rand(2)
    torch.cuda.set_rng_state(state, 0)
    assert torch.equal(torch.rand(2), first)
    states = torch.cuda.get_rng_state_all()
    assert len(states) == 2
    torch.rand(5)
    torch.cuda.set_rng_state_all(states)
    assert torch.equal(torch.get_rng_state(), states[0])


def test_a_state_saved_on_a_real_card(machine: Machine) -> None:
    before = torch.get_rng_state()
    torch.cuda.set_rng_state(torch.tensor([9, *[0] * 7, 4, *[0] * 7], dtype=torch.uint8))
    torch.cuda.init()
    assert torch.cuda.initial_seed() == 9
    assert torch.cuda.default_generators[0].get_offset() == 4
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("devices", [None, [0], [0, 1], []])
def test_fork_rng(machine: Machine, monkeypatch: pytest.MonkeyPatch, devices: list[int] | None) -> None:
    monkeypatch.setattr(torch.random, "_fork_rng_warned_already", True)
    before = torch.get_rng_state()
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(1)
        torch.rand(4)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_state_must_be_bytes(machine: Machine) -> None:
    torch.cuda.init()
    for call in (torch.set_rng_state, torch.cuda.set_rng_state):
        with pytest.raises(TypeError, match=r"RNG state must be a torch\.ByteTensor"):
            call(torch.zeros(16))


@pytest.mark.parametrize("name", ["torch", "torch.cuda"])
def test_a_state_that_was_moved_to_the_card(name: str) -> None:
    with virtual_cuda() as session:
        set_state = eval(name).set_rng_state
        state = torch.get_rng_state()
        first = torch.rand(3)
        set_state(state.cuda())
        assert torch.equal(torch.rand(3), first)
        assert [(seen.id, seen.fields["cuda_says"]) for seen in session.findings] == [
            ("R104", "TypeError: RNG state must be a torch.ByteTensor")
        ]
    with virtual_cuda(strict=True), pytest.raises(TypeError, match=r"RNG state must be a torch\.ByteTensor"):
        eval(name).set_rng_state(torch.get_rng_state().cuda())
