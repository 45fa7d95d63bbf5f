"""What is derived from the wheel's own torchgen tables is what CUDA's library was generated from."""

import json
import mmap
import re
from pathlib import Path

import pytest
import torch

from torchport.inside.vcuda.exactsame import table

DATA = Path(__file__).parents[2] / "data" / "cuda_device_checks_2.13.json"

LIBRARIES = [*Path(torch.__file__).parent.glob("lib/libtorch_cuda*.so")]

of_2_13 = pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the table is that of torch 2.13")


def expected():
    """(class, wrapper, arguments) by operator."""
    result = {}
    for kind, operators in json.loads(DATA.read_text()).items():
        for name, wrapper in operators.items():
            method, arguments = re.fullmatch(r"(\w+)(?:\((.*)\))?", wrapper).groups()
            names = tuple(arguments.split(", ")) if arguments else ()
            result[f"aten::{name}"] = (kind == "ExactSame", f"wrapper_CUDA_{method}", names)
    return result


@of_2_13
def test_all_operators_with_a_cuda_kernel_are_there():
    assert len(expected()) == 1268
    assert sorted(table()) == sorted(expected())


@of_2_13
def test_class_wrapper_and_checked_arguments():
    derived = {name: (check.exact_same, check.wrapper, tuple(check.args)) for name, check in table().items()}
    wrong = {name: (derived.get(name), row) for name, row in expected().items() if derived.get(name) != row}
    assert wrong == {}


@of_2_13
def test_as_many_checks_as_the_cuda_library_has():
    assert sum(check.exact_same for check in table().values()) == 698


@pytest.mark.skipif(not LIBRARIES, reason="a wheel without CUDA")
def test_the_library_of_this_wheel_has_these_checks():
    found = set()
    for library in LIBRARIES:
        with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            found.update(re.findall(rb"\0(wrapper_CUDA_\w+)(?=\0)", content))
    found = {name.decode() for name in found}
    exact = [check for check in table().values() if check.exact_same]
    # Where there is but one tensor, nothing can differ: some compilers drop the check with its text.
    assert {check.wrapper for check in exact if len(check.args) > 1} <= found
    assert found <= {check.wrapper for check in exact}
