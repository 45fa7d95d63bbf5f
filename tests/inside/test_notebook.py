"""Notebooks: what cells may hold beyond Python, and what a whole notebook prints when it is played."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import torchport
from torchport.inside.magics import shows_result, to_python
from torchport.inside.notebook import Cell, NotebookError, read

START = """\
import os, sys
folder = os.path.dirname(os.path.abspath(__file__))
from torchport.inside.run import run
sys.path.remove(folder)
run("notebook", sys.argv[1:], on_end=lambda end: print("end", end.reason, end.status, flush=True))
"""

SOURCES = [
    ("x = 1\nx", "x = 1\nx"),
    ("%matplotlib inline\nx", "get_ipython().run_line_magic('matplotlib', 'inline')\nx"),
    ("  %cd data", "  get_ipython().run_line_magic('cd', 'data')"),
    ("if a:\n    %cd ..\n    b", "if a:\n    get_ipython().run_line_magic('cd', '..')\n    b"),
    ("here = %pwd", "here = get_ipython().run_line_magic('pwd', '')"),
    ("!pip install -q 'x'", "get_ipython().system(\"pip install -q 'x'\")"),
    ("!!ls", "get_ipython().system('ls')"),
    ("a, b = !ls", "a, b = get_ipython().getoutput('ls')"),
    ("d['k'] = !ls", "d['k'] = get_ipython().getoutput('ls')"),
    ("pip install x", "get_ipython().system('pip install x')"),
    ("conda install x -y", "get_ipython().system('conda install x -y')"),
    ("!pip install \\\n    a \\\n    b\nx", "get_ipython().system('pip install a b')\n\n\nx"),
    ("x?", "pass"),
    ("torch.nn.Linear??", "pass"),
    ("?x", "pass"),
    ("%time y = f(x)", "y = f(x)"),
    ("%timeit -n 10 -r3 f(x)", "f(x)"),
    ("y = %time f(x)", "y = f(x)"),
    ("%time", "pass"),
    ("%%time\ny = 1\n%cd x", "\ny = 1\nget_ipython().run_line_magic('cd', 'x')"),
    ("\n%%timeit -n 1\ny = 1", "\n\ny = 1"),
    ("%%time", ""),
    ("%%bash -e\nls 'a'", "get_ipython().run_cell_magic('bash', '-e', \"ls 'a'\")"),
    ("%%html\n<b>", "get_ipython().run_cell_magic('html', '', '<b>')"),
    ('s = """\n%cd x\n!ls\nwhy?\n"""', 's = """\n%cd x\n!ls\nwhy?\n"""'),
    ("s = f'''\n!{x}\n'''\n!ls", "s = f'''\n!{x}\n'''\nget_ipython().system('ls')"),
    ("y = (a\n%b)", "y = (a\n%b)"),
    ("y = a \\\n% b", "y = a \\\n% b"),
    ("y = a \\\n  % b  # why?", "y = a \\\n  % b  # why?"),
    ("# what?\nx = 'what?'", "# what?\nx = 'what?'"),
    ("x = 7 % 2\nx != 3", "x = 7 % 2\nx != 3"),
    ("pip = 3\npip", "pip = 3\npip"),
]


@pytest.mark.parametrize(("source", "expected"), SOURCES)
def test_to_python(source: str, expected: str) -> None:
    assert to_python(source) == expected


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("x", True),
        ("x;", False),
        ("x ; # note", False),
        ("x # ;", True),
        ("';'", True),
        ("a;b", True),
        ("(", True),
    ],
)
def test_shows_result(source: str, shown: bool) -> None:
    assert shows_result(source) is shown


def notebook(*sources: str | tuple[str, str], **metadata: object) -> str:
    """A notebook file; a pair is a cell and the tag it has."""
    cells = []
    for source in sources:
        text, tag = (source, None) if isinstance(source, str) else source
        lines = text.splitlines(keepends=True)
        cells.append({"cell_type": "code", "metadata": {"tags": [tag] if tag else []}, "outputs": [], "source": lines})
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def test_read(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": "# Title"},
        {"cell_type": "code", "source": "x = 1"},
        {"cell_type": "code", "source": ["\n", " "]},
        {"cell_type": "code", "source": ["x\n", "y"], "metadata": {"tags": ["raises-exception"]}},
        {"cell_type": "code", "source": "z", "metadata": {"tags": ["skip-execution"]}},
        {"cell_type": "code", "input": ["from format 3"]},
    ]
    expected = [Cell(1, "x = 1"), Cell(2, "x\ny", may_fail=True), Cell(3, "from format 3")]
    for content in ({"cells": cells, "metadata": {}}, {"worksheets": [{"cells": cells}]}):
        (tmp_path / "n.ipynb").write_text(json.dumps(content), encoding="utf-8-sig")
        assert read(str(tmp_path / "n.ipynb")) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file or directory"),
        ("", "is not a notebook"),
        ("[1]", "is not a notebook"),
        ('{"metadata": {}}', "is not a notebook"),
        (notebook("1", kernelspec={"language": "julia"}), "its cells are written in julia"),
    ],
)
def test_refuses(content: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    if content is not None:
        path.write_text(content)
    with pytest.raises(NotebookError, match=f"^{re.escape(str(path))}: {message}"):
        read(str(path))


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("importlib_bootstrap")
    package = Path(torchport.__file__).parent
    shutil.copytree(package, folder / "torchport", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "start.py").write_text(START)
    return folder / "start.py"


PLAYED = {
    "values": (
        ["x = 20\nx + 1", "x;", "'text'", "None", "display('shown', x)", "print(_)", "for i in (1, 2): i"],
        "21\n'text'\n'shown'\n20\ntext\nend finished 0\n",
        "",
        0,
    ),
    "context": (
        [
            "import os, sys, __main__\n__name__, hasattr(__main__, '__file__'), vars(__main__) is globals()",
            "print(sys.argv, sys.path[0], os.path.basename(os.getcwd()), sys.orig_argv[2:])",
            "import beside\nbeside.value, get_ipython().user_ns is globals()",
        ],
        "('__main__', False, True)\n"
        "['nested/n.ipynb', 'a', 'b c']  nested ['nested/n.ipynb', 'a', 'b c']\n"
        "(5, True)\nend finished 0\n",
        "",
        0,
    ),
    "magics": (
        [
            "%matplotlib inline\n%load_ext autoreload\n%autoreload 2\n!pip install torch",
            "!pip install torch\nfiles = !ls *.py\nfiles",
            "%%bash\nexit 1",
            "%env SEED = 3\nimport os\nos.environ['SEED']",
            "import os\nname = 'sub'\n%cd -q {name}\nprint(os.path.basename(os.getcwd()))\n%cd -q -",
            "%%writefile made.py\nmade = 6\n",
            "%%time\nimport made\nmade.made",
            "%run script.py one 'two words'\nfrom_script, os.path.basename(os.getcwd())",
            "get_ipython().magic('matplotlib notebook')",
        ],
        "[]\nenv: SEED=3\n'3'\n"
        + "{folder}/nested/sub\nsub\n{folder}/nested\n6\n"
        + "__main__ ['script.py', 'one', 'two words']\n(7, 'nested')\nend finished 0\n",
        "torchport: n.ipynb cell [1]: %matplotlib inline is skipped\n"
        "torchport: n.ipynb cell [1]: %load_ext autoreload is skipped\n"
        "torchport: n.ipynb cell [1]: %autoreload 2 is skipped\n"
        "torchport: n.ipynb cell [1]: !pip install torch is not run\n"
        "torchport: n.ipynb cell [2]: !ls *.py is not run, and its output is taken to be empty\n"
        "torchport: n.ipynb cell [3]: %%bash: this cell is not run\n"
        "torchport: n.ipynb cell [9]: %matplotlib notebook is skipped\n",
        0,
    ),
    "error": (
        ["def divide(x):\n    return 1 / x", "", "%cd -q .\ndivide(0)", "print('not reached')"],
        "{folder}/nested\nend error 1\n",
        "Traceback (most recent call last):\n"
        '  File "n.ipynb cell [2]", line 2, in <module>\n    divide(0)\n'
        '  File "n.ipynb cell [1]", line 2, in divide\n    return 1 / x\n'
        "ZeroDivisionError: division by zero\n",
        1,
    ),
    "syntax error": (
        ["x = 1", "%cd -q .\nx = = 2"],
        "end error 1\n",
        '  File "n.ipynb cell [2]", line 2\n    x = = 2\n        ^\nSyntaxError: invalid syntax\n',
        1,
    ),
    "expected error": (
        [("raise ValueError('expected')", "raises-exception"), "'went on'", ("1 / 0", "skip-execution")],
        "'went on'\nend finished 0\n",
        'Traceback (most recent call last):\n  File "n.ipynb cell [1]", line 1, in <module>\n'
        "    raise ValueError('expected')\nValueError: expected\n",
        0,
    ),
    "stop": (
        [
            "from torchport.inside.run import StopRehearsal",
            ("import atexit\natexit.register(print, 'atexit')\nraise StopRehearsal", "raises-exception"),
            "print('not reached')",
        ],
        "end steps 0\natexit\n",
        "",
        0,
    ),
    "exit": (["import sys\nsys.exit(3)"], "end exited 3\n", "", 3),
    "interrupt": (
        ["raise KeyboardInterrupt"],
        "end interrupted 130\n",
        'Traceback (most recent call last):\n  File "n.ipynb cell [1]", line 1, in <module>\n'
        "    raise KeyboardInterrupt\nKeyboardInterrupt\n",
        -2,
    ),
    "await": (
        [
            "import asyncio\nasync def five():\n    await asyncio.sleep(0)\n    return 5",
            "x = await five()",
            "await five() + x",
        ],
        "10\nend finished 0\n",
        "",
        0,
    ),
    "future": (
        ["from __future__ import annotations", "def f(x: no_such_name): ...\nf.__annotations__"],
        "{{'x': 'no_such_name'}}\nend finished 0\n",
        "",
        0,
    ),
    "source": (
        [
            "import inspect, warnings\ndef f():\n    return 1",
            "print(inspect.getsource(f))\nwarnings.warn('careful')",
        ],
        "def f():\n    return 1\n\nend finished 0\n",
        "n.ipynb cell [2]:2: UserWarning: careful\n  warnings.warn('careful')\n",
        0,
    ),
    "input": (["name = input('name? ')\nname"], "name? 'Ada'\nend finished 0\n", "", 0),
    "workers": (
        [
            "import multiprocessing\ndef double(x):\n    return 2 * x",
            "with multiprocessing.get_context('fork').Pool(1) as pool:\n    print(pool.map(double, [1, 2]))",
        ],
        "[2, 4]\nend finished 0\n",
        "",
        0,
    ),
}


@pytest.mark.parametrize("name", PLAYED)
def test_play(name: str, tmp_path: Path, start: Path) -> None:
    sources, output, errors, status = PLAYED[name]
    tmp_path = tmp_path.resolve()
    nested = tmp_path / "nested"
    (nested / "sub").mkdir(parents=True)
    (nested / "n.ipynb").write_text(notebook(*sources))
    (nested / "beside.py").write_text("value = 5\n")
    (nested / "script.py").write_text("import sys\nprint(__name__, sys.argv)\nfrom_script = 7\n")
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, "-B", str(start), "nested/n.ipynb", "a", "b c"],
        cwd=tmp_path,
        env=env,
        input="Ada\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    shown = re.sub(r"^ +[~^]+\n", "", done.stderr, flags=re.MULTILINE) if name != "syntax error" else done.stderr
    assert (done.stdout, shown, done.returncode) == (output.format(folder=tmp_path), errors, status)


def test_refusal_ends_the_process(tmp_path: Path, start: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(start), "none.ipynb"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert done.stderr == (
        "torchport: none.ipynb: cannot be read: No such file or directory; give the path of a notebook\n"
    )
