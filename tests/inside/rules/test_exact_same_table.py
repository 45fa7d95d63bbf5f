"""What is derived from the wheel's own torchgen tables is what CUDA's library was generated from."""

import json
import re
from pathlib import Path

import pytest
import torch

from torchport.inside.vcuda.exactsame import table

DATA = Path(__file__).parents[2] / "data" / "cuda_device_checks_2.13.json"

pytestmark = pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the table is that of torch 2.13")


def expected():
    """(class, wrapper, arguments) by operator."""
    result = {}
    for kind, operators in json.loads(DATA.read_text()).items():
        for name, wrapper in operators.items():
            method, arguments = re.fullmatch(r"(\w+)(?:\((.*)\))?", wrapper).groups()
            names = tuple(arguments.split(", ")) if arguments else ()
            result[f"aten::{name}"] = (kind == "ExactSame", f"wrapper_CUDA_{method}", names)
    return result


def test_all_operators_with_a_cuda_kernel_are_there():
    assert len(expected()) == 1268
    assert sorted(table()) == sorted(expected())


def test_class_wrapper_and_checked_arguments():
    derived = {name: (check.exact_same, check.wrapper, tuple(check.args)) for name, check in table().items()}
    wrong = {name: (derived.get(name), row) for name, row in expected().items() if derived.get(name) != row}
    assert wrong == {}


def test_as_many_checks_as_the_cuda_library_has():
    assert sum(check.exact_same for check in table().values()) == 698
