"""Notebooks as one source, and repaired cells back in the file."""

import json

import pytest

from torchport.check.engine import check_file, check_source
from torchport.check.mend import mend
from torchport.check.notebook import open_notebook, read_cells, rewritten
from torchport.check.rules import rules
from torchport.check.select import choose
from torchport.check.source import Unreadable

RULE = choose(rules(), ["C101"])


def notebook(*cells, indent=1, **more):
    found = [
        cell
        if isinstance(cell, dict)
        else {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": cell}
        for cell in cells
    ]
    return json.dumps({"cells": found, "metadata": {}, "nbformat": 4, **more}, indent=indent, ensure_ascii=False) + "\n"


def source_of(*cells):
    return open_notebook("demo.ipynb", notebook(*cells))[0]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("x = 1", "x = 1"),
        ("%matplotlib inline\nx = 1", "#matplotlib inline\nx = 1"),
        ("!pip install torch", "#pip install torch"),
        ("!pip install a \\\n  b\nx = 1", "#pip install a \\\n   \nx = 1"),
        ("if x:\n    !ls -l\n", "if x:\n    0#s -l\n"),
        ("if x:\n    !\n", "if x:\n    0\n"),
        ("files = !ls\n", "files = 0#s\n"),
        ("t = %timeit f(x)\n", "t = 0#imeit f(x)\n"),
        ("x.to?", "#.to?"),
        ("?x\nx??", "#x\n#??"),
        ("%%time\nx = 1", "#%time\nx = 1"),
        ("%%bash\npython x.py\n", "      \n           \n"),
        ("%%writefile a.py\nprint 1", "                \n       "),
        ("x = (a\n     % b)", "x = (a\n     % b)"),
        ("print('''\n%d\n''')", "print('''\n%d\n''')"),
        ("print 1", "       "),
        ("await f()", "await f()"),
    ],
)
def test_magics_are_harmless_at_equal_length(cell, expected):
    source = source_of(cell)
    assert source.text == expected
    assert source.written == (cell if expected.strip() or cell.startswith("%%") else expected)


def test_cells_are_numbered_as_a_rehearsal_does():
    file = notebook(
        {"cell_type": "markdown", "metadata": {}, "source": ["# torch"]},
        "a = 1",
        "  \n",
        {"cell_type": "code", "metadata": {"tags": ["skip-execution"]}, "source": "b = 1", "outputs": []},
        ["c = 1\n", "d = 1"],
        {"cell_type": "raw", "metadata": {}, "source": "e"},
    )
    assert [(cell.number, cell.text) for cell in read_cells(file)] == [(1, "a = 1"), (2, "c = 1\nd = 1")]
    for cell in read_cells(file):
        assert "".join(json.loads(file[cell.start : cell.end])) == cell.text


def test_an_older_notebook():
    cells = [{"cell_type": "code", "input": ["import torch\n", "x = 1"], "language": "python", "outputs": []}]
    file = json.dumps({"worksheets": [{"cells": cells}], "metadata": {}, "nbformat": 3})
    (cell,) = read_cells(file)
    assert cell.text == "import torch\nx = 1"


@pytest.mark.parametrize("metadata", [{"language_info": {"name": "R"}}, {"kernelspec": {"language": "julia"}}])
def test_another_language_is_not_read(metadata):
    assert list(read_cells(notebook("x <- 1", metadata=metadata))) == []


@pytest.mark.parametrize(
    "file",
    ["", "torch", "[]", "{}", '{"cells": 3}', '{"cells": [{}]}', '{"cells": [{"cell_type": "code", "source": [1]}]}'],
)
def test_what_is_no_notebook_is_told(file):
    with pytest.raises(Unreadable, match="not a notebook"):
        list(read_cells(file))
    assert check_file("a.ipynb", file.encode()).findings == ()


def test_findings_are_placed_in_cells():
    file = notebook("import torch\nx = torch.ones(3)", "print 1", "# é\n\nx.to(\n  'cuda')")
    checked = check_file("a/demo.ipynb", file.encode(), (2, 13), RULE)
    (finding,) = checked.findings
    assert str(finding.location) == "a/demo.ipynb cell [3]:3:1"
    assert (finding.location.end_line, finding.location.end_column) == (4, 10)
    (edit,) = finding.fix.edits
    assert (edit.path, edit.start, edit.end, edit.text) == ("a/demo.ipynb cell [3]", 5, 5, "x = ")
    (problem,) = checked.problems
    assert (problem.path, problem.line) == ("a/demo.ipynb cell [2]", 1)


LAYOUTS = [
    notebook(["import torch\n", "x = torch.ones(3)\n", 'x.to("cuda")']),
    notebook(["import torch\n", "x = torch.ones(3)\n", 'x.to("cuda")'], indent=4),
    notebook(["import torch\n", "x = torch.ones(3)\n", 'x.to("cuda")'], indent=None),
    notebook('import torch\nx = torch.ones(3)\nx.to("cuda")'),
    notebook("import torch", "x = torch.ones(3)", "  ", "%time x\n", 'x.to("cuda")\n'),
    notebook(["import torch  # é\n", "x = torch.ones(3)\n", 'x.to("cuda")  # ü \t"']),
    notebook("import torch\nx = torch.ones(3)", 'x.to("cuda")').rstrip("\n"),
    notebook("import torch\nx = torch.ones(3)", 'x.to("cuda")').replace("\n", "\r\n"),
    notebook("import torch  # \\u00e9\nx = torch.ones(3)", 'x.to("cuda")').replace("\\\\u", "\\u"),
]


@pytest.mark.parametrize("file", LAYOUTS)
def test_nothing_but_the_cell_changes(file):
    done = mend("demo.ipynb", file.encode(), lambda source: check_source(source, (2, 13), RULE))
    assert done.data.decode() == file.replace("x.to", "x = x.to")
    assert [str(each.location).split(":")[0][:-2] for each in done.fixed] == ["demo.ipynb cell ["]


def test_a_new_line_is_spelled_as_the_others_are():
    file = notebook(["import torch\n", "x = 1"])
    before = "import torch\nx = 1"
    after = "import torch\ny = 'ü'\nx = 1"
    assert (
        rewritten(file, before, after)
        == notebook(["import torch\n", "y = 'ü'\n", "x = 1"])[:-1].replace("ü", "\\u00fc") + "\n"
    )


def test_a_cell_that_does_not_parse_stays_as_it_is():
    file = notebook("print 1", "import torch\nx = torch.ones(3)\nx.cuda()")
    done = mend("demo.ipynb", file.encode(), lambda source: check_source(source, (2, 13), RULE))
    assert done.data.decode() == file.replace("x.cuda", "x = x.cuda")


def test_a_notebook_needs_no_main_guard():
    cell = [
        "from torch.utils.data import DataLoader\n",
        "for x in DataLoader([1, 2], num_workers=2):\n",
        "    print(x)\n",
    ]
    text = json.dumps({"cells": [{"cell_type": "code", "source": cell, "metadata": {}, "outputs": []}]})
    found = {each.id for each in check_file("demo.ipynb", text.encode()).findings}
    assert "C507" not in found
    assert "C507" in {each.id for each in check_file("demo.py", "".join(cell).encode()).findings}
