"""Files and folders, comments that silence, rules that fail, other modules, the cache, several processes."""

import json
from pathlib import Path

import pytest

import torchport.check.parallel as parallel
from torchport.check.cache import Cache
from torchport.check.engine import Checked, check_file, check_source
from torchport.check.files import find
from torchport.check.rule import ERROR, Hit, LoadedRule, Rule
from torchport.check.rules import rules
from torchport.check.select import UnknownRule, choose
from torchport.check.siblings import Siblings
from torchport.check.source import Source

BAD = 'import torch\n\nx = torch.ones(3)\nx.to("cuda")\n'
RULE = choose(rules(), ["C101"])


def fill(folder, *names, text="import torch\n"):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_which_files_are_read(tmp_path):
    fill(tmp_path, "b.py", "a/c.py", "a/x.ipynb", "run.sh", "notes.txt", "requirements.txt", "image.png")
    fill(tmp_path, ".git/x.py", "venv/x.py", "own/pyvenv.cfg", "own/x.py", "a/__pycache__/x.py", ".torchport/x.py")
    (tmp_path / "link.py").symlink_to("b.py")
    (tmp_path / "loop").symlink_to(".")
    found = [path.relative_to(tmp_path).as_posix() for path in find(tmp_path)]
    assert found == ["a/c.py", "a/x.ipynb", "b.py", "requirements.txt", "run.sh"]
    assert [path.name for path in find(tmp_path / "notes.txt")] == ["notes.txt"]


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        ((), ["a/b/c.py", "a/d.py", "e.py"]),
        (("a",), ["e.py"]),
        (("*.py",), []),
        (("a/b",), ["a/d.py", "e.py"]),
        (("a/*.py",), ["a/b/c.py", "e.py"]),
        (("d.py", "e.py"), ["a/b/c.py"]),
    ],
)
def test_exclude(tmp_path, patterns, left):
    fill(tmp_path, "a/b/c.py", "a/d.py", "e.py")
    assert [path.relative_to(tmp_path).as_posix() for path in find(tmp_path, patterns)] == left


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (BAD, [4]),
        (BAD.replace(")\n", ")  # torchport: ignore\n"), []),
        (BAD.replace('cuda")', 'cuda")  # torchport:ignore[C102, discarded-to]'), []),
        (BAD.replace('cuda")', 'cuda")  # torchport: ignore[C102]'), [4]),
        (BAD.replace("x.to", "# torchport: ignore[C101]\nx.to"), []),
        (BAD.replace("x.to", "y = 1  # torchport: ignore[C101]\nx.to"), [5]),
        (BAD.replace("x.to", "# torchport: ignore[C101]\n\nx.to"), [6]),
        (BAD.replace('("cuda")', '(\n    "cuda"\n)  # torchport: ignore'), []),
        (BAD.replace("\n", "\r\n").replace("x.to", "# torchport: ignore\r\nx.to"), []),
        ("# torchport: skip-file\n" + BAD, []),
    ],
)
def test_comments_that_silence(text, lines):
    found = check_source(Source("a.py", text), None, RULE)
    assert [finding.location.line for finding in found] == lines


def test_a_rule_that_fails_is_a_problem():
    def look(source):
        yield Hit((0, 1), {"code": "x"})
        raise ValueError("odd")

    broken = LoadedRule(Rule("C199", "broken", ERROR, "{code}", "{code}"), look, "Finds", frozenset({"python"}))
    with pytest.raises(ValueError, match="odd"):
        check_source(Source("a.py", BAD), None, [broken])
    checked = check_file("a.py", BAD.encode(), None, [broken, *RULE])
    assert [finding.id for finding in checked.findings] == ["C101"]
    assert [problem.message for problem in checked.problems] == ["rule C199 failed: ValueError: odd"]


@pytest.mark.parametrize("word", ["C9999", "D101", "", "C", "discarded"])
def test_rules_by_word(word):
    if word == "C":
        assert choose(rules(), [word]) == rules()
        return
    with pytest.raises(UnknownRule):
        choose(rules(), [word])


# Other modules of the project


@pytest.mark.parametrize(
    ("importer", "name", "expected"),
    [
        ("train.py", "model", "model.py"),
        ("train.py", "pkg", "pkg/__init__.py"),
        ("train.py", "pkg.net", "pkg/net.py"),
        ("pkg/run.py", "net", "pkg/net.py"),
        ("pkg/run.py", "pkg.net", "pkg/net.py"),
        ("pkg/run.py", "model", "model.py"),
        ("train.py", "numpy", None),
        ("train.py", "../x", None),
        ("", "model", "model.py"),
    ],
)
def test_siblings_are_found(tmp_path, importer, name, expected):
    fill(tmp_path, "train.py", "model.py", "pkg/__init__.py", "pkg/net.py", "pkg/run.py")
    siblings = Siblings(tmp_path, tmp_path)
    assert siblings.find(importer, name) == expected
    source = siblings.source(importer, name)
    assert (source.path if source else None) == expected
    assert siblings.source(importer, name) is source


def test_siblings_outside_of_the_project_are_not_read(tmp_path):
    fill(tmp_path, "secret.py", "project/train.py", "project/a/b.py")
    siblings = Siblings(tmp_path / "project" / "a", tmp_path / "project")
    assert siblings.find("../train.py", "secret") is None
    assert siblings.find("b.py", "secret") is None
    assert siblings.find("../train.py", "a.b") == "../a/b.py"


def test_a_sibling_that_does_not_parse_is_none(tmp_path):
    fill(tmp_path, "model.py", text="print 1\n")
    assert Siblings(tmp_path, tmp_path).source("train.py", "model") is None


# The cache


@pytest.fixture
def asking():
    """A rule that looks at the module ``model``."""

    def look(source):
        source.sibling("model")
        yield Hit((0, 1))

    return [LoadedRule(Rule("C199", "asking", ERROR, "x", "y"), look, "Finds", frozenset({"python"}))]


def test_what_has_not_changed_is_known(tmp_path):
    siblings = Siblings(tmp_path, tmp_path)
    checked = check_file("a.py", BAD.encode(), None, RULE)
    cache = Cache(tmp_path, None, "en", siblings)
    assert cache.get("a.py", BAD.encode()) is None
    cache.put("a.py", BAD.encode(), checked)
    cache.save()
    assert (tmp_path / ".torchport" / ".gitignore").read_text() == "*\n"
    again = Cache(tmp_path, None, "en", siblings)
    assert again.get("a.py", BAD.encode()) == checked
    assert again.get("a.py", BAD.encode() + b"\n") is None
    assert again.get("b.py", BAD.encode()) is None
    assert Cache(tmp_path, (2, 6), "en", siblings).get("a.py", BAD.encode()) is None
    assert Cache(tmp_path, None, "zh", siblings).get("a.py", BAD.encode()) is None


def test_a_result_rests_on_the_modules_that_were_looked_at(tmp_path, asking):
    def known():
        return Cache(tmp_path, None, "en", Siblings(tmp_path, tmp_path)).get("a.py", BAD.encode()) is not None

    siblings = Siblings(tmp_path, tmp_path)
    checked = check_file("a.py", BAD.encode(), None, asking, siblings)
    assert checked.asked == ("model",)
    cache = Cache(tmp_path, None, "en", siblings)
    cache.put("a.py", BAD.encode(), checked)
    cache.save()
    assert known()
    fill(tmp_path, "model.py")
    assert not known()


@pytest.mark.parametrize("content", ["", "[]", "3", '{"a.py": 3}', '{"a.py": ["%s", {}]}', '{"a.py": ["%s", []]}'])
def test_a_damaged_cache_is_none(tmp_path, content):
    import hashlib

    siblings = Siblings(tmp_path, tmp_path)
    cache = Cache(tmp_path, None, "en", siblings)
    cache.put("a.py", b"", Checked("a.py", 1))
    cache.save()
    (path,) = (tmp_path / ".torchport" / "cache" / "check").glob("*.json")
    path.write_text(content.replace("%s", hashlib.sha256(b"").hexdigest()[:32]))
    assert Cache(tmp_path, None, "en", siblings).get("a.py", b"") is None


def test_no_place_to_write_is_no_cache(tmp_path):
    (tmp_path / ".torchport").write_text("")
    cache = Cache(tmp_path, None, "en", Siblings(tmp_path, tmp_path))
    cache.put("a.py", b"", Checked("a.py", 1))
    cache.save()
    assert (tmp_path / ".torchport").read_text() == ""


def test_old_states_go(tmp_path):
    siblings = Siblings(tmp_path, tmp_path)
    for minor in range(8):
        cache = Cache(tmp_path, (2, minor), "en", siblings)
        cache.put("a.py", b"", Checked("a.py", 1))
        cache.save()
    assert len(list((tmp_path / ".torchport" / "cache" / "check").iterdir())) == 4


def test_the_cache_is_json(tmp_path):
    cache = Cache(tmp_path, None, "en", Siblings(tmp_path, tmp_path))
    cache.put("a.py", BAD.encode(), check_file("a.py", BAD.encode()))
    cache.save()
    (path,) = (tmp_path / ".torchport" / "cache" / "check").iterdir()
    assert list(json.loads(path.read_text())) == ["a.py"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.full
def test_several_processes_find_the_same(tmp_path, monkeypatch, method):
    monkeypatch.setattr(parallel, "_method", lambda: method)
    jobs = [(f"a{number}.py", BAD.encode()) for number in range(parallel.WORTH_IT)]
    siblings = Siblings(Path(tmp_path), Path(tmp_path))
    assert parallel.check_files(jobs, None, "en", siblings) == [check_file(*job, siblings=siblings) for job in jobs]
