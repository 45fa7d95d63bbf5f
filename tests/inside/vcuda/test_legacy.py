"""Legacy tensor types, and what of torch.cuda needs tensors on the card."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from torchport.hardware.gpus import lookup
from torchport.inside.vcuda import Session, legacy, virtual_cuda
from torchport.inside.vcuda.machine import Machine, Options
from torchport.inside.vcuda.patches import Patches

pytestmark = pytest.mark.filterwarnings(
    "ignore:The torch.cuda.*DtypeTensor constructors", "ignore:.*torch.set_default_tensor_type"
)
cuda: Any = torch.cuda


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with virtual_cuda(gpus=2, strict=True) as session:
        yield session


MADE = [
    ("torch.cuda.FloatTensor(2, 3)", (2, 3), torch.float32, 0),
    ("torch.cuda.FloatTensor()", (0,), torch.float32, 0),
    ("torch.cuda.FloatTensor([1, 2])", (2,), torch.float32, 0),
    ("torch.cuda.LongTensor([[1]])", (1, 1), torch.int64, 0),
    ("torch.cuda.HalfTensor(torch.Size([2, 1]))", (2, 1), torch.float16, 0),
    ("torch.cuda.ByteTensor(2, device='cuda:1')", (2,), torch.uint8, 1),
    ("torch.cuda.BoolTensor(4)", (4,), torch.bool, 0),
    ("torch.cuda.FloatTensor(torch.ones(2, device='cuda:1'))", (2,), torch.float32, 1),
    ("torch.FloatTensor([1])", (1,), torch.float32, -1),
    ("torch.LongTensor(2, 3)", (2, 3), torch.int64, -1),
    ("torch.ones(2).type(torch.cuda.FloatTensor)", (2,), torch.float32, 0),
    ("torch.ones(2).type('torch.cuda.LongTensor')", (2,), torch.int64, 0),
    ("torch.ones(2, device='cuda:1').type(torch.cuda.IntTensor)", (2,), torch.int32, 1),
    ("torch.ones(2, device='cuda:1').type(torch.FloatTensor)", (2,), torch.float32, -1),
    ("torch.ones(2, device='cuda:1').type(torch.float64)", (2,), torch.float64, 1),
    ("torch.nn.Linear(2, 1).type(torch.cuda.DoubleTensor).weight", (1, 2), torch.float64, 0),
]


@pytest.mark.parametrize(("text", "shape", "dtype", "device"), MADE)
def test_made(session: Session, text: str, shape: tuple[int, ...], dtype: torch.dtype, device: int) -> None:
    made = eval(text)
    assert (tuple(made.shape), made.dtype, made.get_device()) == (shape, dtype, device)


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        (
            "torch.cuda.FloatTensor(torch.ones(1))",
            TypeError,
            "expected torch.cuda.FloatTensor (got torch.FloatTensor)",
        ),
        ("torch.ones(1).type('float')", ValueError, "invalid type: 'float'"),
        ("torch.ones(1).cuda().type('torch.FooTensor')", ValueError, "invalid type: 'torch.FooTensor'"),
        (
            "torch.set_default_tensor_type('torch.cuda.LongTensor')",
            TypeError,
            "only floating-point types are supported as the default type",
        ),
    ],
)
def test_refused(session: Session, text: str, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind) as caught:
        eval(text)
    assert str(caught.value) == says


def test_isinstance_goes_by_device_and_dtype(session: Session) -> None:
    host, card = torch.zeros(2), torch.zeros(2, device="cuda:1")
    kinds = (torch.FloatTensor, torch.cuda.FloatTensor, torch.cuda.LongTensor, torch.LongTensor)
    assert [[isinstance(tensor, kind) for kind in kinds] for tensor in (host, card, card.long())] == [
        [True, False, False, False],
        [False, True, False, False],
        [False, False, True, False],
    ]
    assert card.type() == "torch.cuda.FloatTensor"
    assert repr(torch.cuda.FloatTensor) == "<class 'torch.cuda.FloatTensor'>"
    assert cuda.FloatTensor.dtype is torch.float32 and cuda.FloatTensor.is_cuda


def test_the_default_type(session: Session) -> None:
    torch.set_default_tensor_type("torch.cuda.DoubleTensor")
    try:
        made = torch.zeros(2)
        assert (made.device, made.dtype) == (torch.device("cuda", 0), torch.float64)
        assert torch.tensor([1.0]).is_cuda
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    assert not torch.zeros(2).is_cuda


def test_devices_of_tensors(session: Session) -> None:
    card = torch.zeros(2, device="cuda:1")
    with torch.cuda.device_of(card):
        assert torch.cuda.current_device() == 1
    with torch.cuda.device_of(torch.zeros(2)):
        assert torch.cuda.current_device() == 0
    card.record_stream(torch.cuda.current_stream())
    with pytest.raises(NotImplementedError, match="record_stream"):
        torch.zeros(2).record_stream(torch.cuda.current_stream())


def test_default_generators_draw_the_cpu_stream(session: Session) -> None:
    torch.manual_seed(3)
    expected = torch.randn(4)
    torch.manual_seed(3)
    torch.cuda.init()
    (generator, _) = torch.cuda.default_generators
    assert torch.equal(torch.randn(4, device="cuda", generator=generator).cpu(), expected)


def test_everything_is_the_old_when_the_card_is_gone() -> None:
    before = torch.FloatTensor, torch.cuda.FloatTensor, torch.set_default_tensor_type
    machine, patches = Machine(lookup("t4"), Options()), Patches()
    legacy.install(patches, machine)
    assert torch.FloatTensor is not before[0]
    patches.undo()
    assert (torch.FloatTensor, torch.cuda.FloatTensor, torch.set_default_tensor_type) == before
