"""Rules 17-28 once more: what a virtual card says to two devices is what TensorIterator itself says, word for word."""

import json
import subprocess
import sys

import pytest
from iterated_operators import __file__ as program
from iterated_operators import answers, operators
from rule_cases import CUDA

from torchport.inside.vcuda import virtual_cuda

pytestmark = pytest.mark.filterwarnings("ignore")  # of results that are resized, and sizes that differ

NO_SHAPE_IN_CPP = "NotImplementedError"
OTHER_FAULT_FIRST = "output with shape"
GENERATED_CHECK_FIRST = "when checking argument"  # rules 1 and 2: on CUDA it stands in front of TensorIterator


@pytest.fixture(scope="module")
def iterator():
    """TensorIterator's own answers, from a process of its own."""
    done = subprocess.run([sys.executable, "-W", "ignore", program], check=True, text=True, capture_output=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def card():
    """Those of a virtual card."""
    with virtual_cuda(strict=True):
        return {name: answers(name, CUDA) for name in operators()}


@pytest.mark.parametrize("name", operators())
def test_as_tensor_iterator(name, iterator, card):
    compared = 0
    for operands, said in card[name].items():
        expected = iterator[name][operands].replace("meta", CUDA)
        if NO_SHAPE_IN_CPP in expected or OTHER_FAULT_FIRST in expected or GENERATED_CHECK_FIRST in said:
            continue
        assert said == expected, operands
        compared += 1
    assert compared
