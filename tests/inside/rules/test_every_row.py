"""No row of the table of device rules is without a test or a reason."""

import importlib
import re
from pathlib import Path

from rule_cases import Legal, Refused

# Rows that a virtual device does not show, with the reason.
NOT_SHOWN = {
    67: "a CUDA graph ends at torch.cuda.CUDAGraph() with R508, before anything could be copied during its capture",
    80: "NCCL's watchdog ends the process after its timeout; a hung rank is reported as R405 within seconds",
    83: "CUDA IPC of expandable segments: an older text, and the virtual allocator has none",
}


def rows_with_a_test():
    rows = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for named in re.findall(r"def test_rows?_(\d+(?:_and_\d+)*)", path.read_text()):
            rows.update(map(int, named.split("_and_")))
        module = importlib.import_module(path.stem)
        for table in vars(module).values():
            if isinstance(table, tuple):
                rows.update(case.row for case in table if isinstance(case, (Refused, Legal)))
    return rows


def test_every_row_has_a_test_or_a_reason():
    assert set(range(1, 91)) - rows_with_a_test() == set(NOT_SHOWN)
