"""A check in every format: for people, for programs, and with all that a file can hold."""

import json
import re
from dataclasses import replace

import pytest

from torchport import text
from torchport.finding import Confidence, Edit, Evidence, Finding, Fix, Location, Severity
from torchport.report import check_github, check_html, check_json, check_sarif, check_text
from torchport.survey import Kind, Known, Problem, Survey, fingerprints

TRAIN = """\
import torch

model = torch.nn.Linear(4, 2)
def step(batch):
\tx = torch.zeros(4)   # 训练
\treturn model(batch) + x
"""
NAME = "very_long_name_" * 20
FILES = {
    "train.py": TRAIN,
    "demo.ipynb cell [2]": "import torch\nx.cuda()\n",
    "long.py": f"    {NAME} = {NAME}.to(device)\n",
    "a b,c:d%.py": "x\n",
}


def finding(id="C102", path="train.py", line=5, column=6, end=(5, 20), severity=Severity.ERROR, **more):
    place = Location(path, line, column, end_line=end[0], end_column=end[1])
    return Finding(id, "`torch.zeros(4)` is made on the CPU", severity, Confidence.LIKELY, place, **more)


FIX = Fix("made-on-cpu", (Edit("train.py", 78, 78, ", device=batch.device"),), safe=True)
FIRST = finding(
    evidence=(Evidence("it meets `model(batch)` here", Location("train.py", 6, 9)),),
    remedy="Make it where it is used: `device=batch.device`",
    fix=FIX,
)
SECOND = finding("C602", line=3, column=1, end=(3, 30), severity=Severity.WARNING)
CELL = finding(
    "C101", "demo.ipynb cell [2]", 2, 1, (2, 9), fix=Fix("x", (Edit("demo.ipynb cell [2]", 13, 13, "x = "),), False)
)
KINDS = {
    id: Kind(id, name, severity, Confidence.LIKELY, f"Finds {name}.", "It hurts.")
    for id, name, severity in (
        ("C101", "discarded-to", Severity.ERROR),
        ("C102", "made-on-cpu", Severity.ERROR),
        ("C602", "some-memory", Severity.WARNING),
        ("C701", "never-found", Severity.INFO),
    )
}
SURVEY = Survey(
    files=3,
    lines=40,
    findings=(CELL, FIRST, SECOND),
    problems=(Problem("old.py", "invalid syntax", 2), Problem("demo.ipynb cell [3]", "invalid syntax", 1)),
    kinds=KINDS,
    torch=(2, 6),
    seconds=0.123,
)


def read(path):
    return FILES.get(path)


def shown(survey, **more):
    return check_text.render(survey, read=read, **more)


def test_text(golden):
    golden("check.txt", shown(SURVEY))


def test_text_in_colour(golden):
    golden("check-colour.txt", shown(SURVEY, color=True))


@pytest.mark.parametrize(
    ("survey", "said"),
    [
        (Survey(files=1, lines=1), ["nothing found in 1 file"]),
        (Survey(files=0, lines=0), ["nothing found in 0 files"]),
        (replace(SURVEY, findings=(FIRST,)), ["1 error in 1 of 3 files", "--fix repairs 1"]),
        (replace(SURVEY, findings=(CELL,)), ["1 error in 1 of 3 files", "--unsafe-fixes repairs 1"]),
        (SURVEY, ["2 errors, 1 warning in 2 of 3 files", "--fix repairs 1; --unsafe-fixes repairs 1 more"]),
        (
            replace(SURVEY, findings=(), fixed=(FIRST, CELL)),
            ["repaired  train.py:5:6  C102 made-on-cpu", "repaired  demo.ipynb cell [2]:2:1  C101", "2 repaired"],
        ),
        (
            replace(SURVEY, findings=(FIRST,), taken_back=(FIRST,)),
            ["not repaired  train.py:5:6  C102 made-on-cpu  the repair did not hold", "1 repair did not hold"],
        ),
        (
            replace(SURVEY, fixed=(FIRST,), diff="---"),
            ["would be repaired  train.py:5:6", "1 would be repaired"],
        ),
        (
            replace(SURVEY, findings=(), known=2, baseline="known.json", unused=(Known("C101", "a.py", "x.to(y)"),)),
            ["2 known findings are left out (known.json)", "1 entry of known.json", "  C101  a.py  x.to(y)"],
        ),
        (
            replace(SURVEY, unused=tuple(Known("C101", f"{n}.py", "x") for n in range(20)), baseline="k.json"),
            ["20 entries of k.json", "  C101  7.py  x", "and 12 more"],
        ),
    ],
)
def test_the_last_lines(survey, said):
    text = check_text.render_summary(survey)
    for words in said:
        assert words in text


def test_a_repair_that_was_taken_back_is_not_offered_again():
    text = check_text.render_summary(replace(SURVEY, findings=(FIRST,), taken_back=(FIRST,)))
    assert "--fix repairs" not in text


@pytest.mark.parametrize(
    ("place", "lines"),
    [
        ((5, 6, (5, 20)), ["    5 │ x = torch.zeros(4)   # 训练", "      │     ^^^^^^^^^^^^^^"]),
        ((5, 23, (5, 27)), ["    5 │ x = torch.zeros(4)   # 训练", "      │                      ^^^^^^"]),
        ((4, 1, (6, 25)), ["    4 │ def step(batch):", "      │ ^^^^^^^^^^^^^^^^"]),
        ((6, 9, (6, 9)), ["    6 │ return model(batch) + x", "      │        ^"]),
        ((2, 1, (2, 1)), []),
        ((99, 1, (99, 2)), []),
    ],
)
def test_what_is_underlined(place, lines):
    line, column, end = place
    text = shown(replace(SURVEY, findings=(finding(line=line, column=column, end=end),), problems=()))
    assert [each for each in text.splitlines() if "│" in each] == lines


def test_a_long_line_is_cut_around_its_place():
    at = len(NAME) + 8
    text = shown(replace(SURVEY, findings=(finding(path="long.py", line=1, column=at, end=(1, at + 10)),)), width=80)
    code, marker = [line for line in text.splitlines() if "│" in line]
    assert len(code) <= 80
    assert "…" in code
    assert code[marker.index("^") :].startswith(f"{NAME}.to(device)"[: marker.count("^")])


def test_nothing_hostile_reaches_the_terminal():
    odd = finding(path="a\x1b[31m.py", line=1)
    files = {"a\x1b[31m.py": "x = '\x1b]0;title\x07 \u202e'\n"}
    out = check_text.render(replace(SURVEY, findings=(odd,)), read=files.get)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", out)


def test_json():
    document = json.loads(check_json.render(SURVEY, read=read, exit_code=1))
    assert document["schema"] == "torchport.check/1"
    assert (document["torch"], document["files"], document["exit_code"]) == ("2.6", 3, 1)
    assert [each["id"] for each in document["findings"]] == ["C101", "C102", "C602"]
    found = document["findings"][1]
    assert found["name"] == "made-on-cpu"
    assert (found["line"], found["column"], found["end_line"], found["end_column"]) == (5, 6, 5, 20)
    assert found["evidence"] == [{"path": "train.py", "line": 6, "text": "it meets `model(batch)` here"}]
    assert found["fix"]["edits"] == [{"path": "train.py", "start": 78, "end": 78, "text": ", device=batch.device"}]
    assert document["problems"][0] == {"path": "old.py", "message": "invalid syntax", "line": 2}
    assert document["baseline"] is None


def test_fingerprints_stay_while_lines_move():
    def prints(text, line):
        return fingerprints([finding(line=line), finding("C602", line=line)], {"train.py": text}.get)

    assert prints(TRAIN, 5) == prints("# new\n" + TRAIN, 6) == prints(TRAIN.replace("\tx", "        x"), 5)
    assert prints(TRAIN, 5) != prints(TRAIN.replace("zeros", "ones"), 5)
    assert len(set(prints(TRAIN, 5))) == 2
    twice = [finding(), finding()]
    assert len(set(fingerprints(twice, read))) == 2


# SARIF


def sarif(survey=SURVEY):
    return json.loads(check_sarif.render(survey, read=read, version="1.2.3"))


def test_sarif_has_what_readers_need():
    document = sarif()
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["C101", "C102", "C602", "C701"]
    assert rules[1]["name"] == "MadeOnCpu"
    assert rules[3]["defaultConfiguration"]["level"] == "note"
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        assert result["partialFingerprints"]["torchport/v1"]


def test_sarif_places_and_repairs():
    _cell, first, _second = sarif()["runs"][0]["results"]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "train.py"}
    assert place["region"] == {"startLine": 5, "startColumn": 6, "endLine": 5, "endColumn": 20}
    assert first["relatedLocations"][0]["message"]["text"] == "it meets `model(batch)` here"
    (change,) = first["fixes"][0]["artifactChanges"]
    (replacement,) = change["replacements"]
    assert replacement["insertedContent"]["text"] == ", device=batch.device"
    at = replacement["deletedRegion"]
    assert at["startLine"] == at["endLine"]
    start = sum(len(line) + 1 for line in TRAIN.split("\n")[: at["startLine"] - 1]) + at["startColumn"] - 1
    assert start == 78


def test_sarif_of_a_notebook_names_the_file_and_the_cell():
    cell = sarif()["runs"][0]["results"][0]
    (place,) = cell["locations"]
    assert place["physicalLocation"] == {"artifactLocation": {"uri": "demo.ipynb"}}
    assert place["logicalLocations"][0]["name"] == "demo.ipynb cell [2]:2:1"
    assert "fixes" not in cell


def test_sarif_escapes_paths_and_tells_problems():
    run = sarif(replace(SURVEY, findings=(finding(path="a b,c:d%.py", line=1), finding(path="/x/y.py"))))["runs"][0]
    uris = [each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in run["results"]]
    assert uris == ["a%20b%2Cc%3Ad%25.py", "file:///x/y.py"]
    told = run["invocations"][0]["toolExecutionNotifications"]
    assert [each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in told] == [
        "old.py",
        "demo.ipynb",
    ]


# GitHub


def test_github():
    lines = check_github.render(SURVEY).splitlines()
    assert lines == [
        "::error file=demo.ipynb,title=torchport C101::demo.ipynb cell [2]:2:1: `torch.zeros(4)` is made on the CPU",
        "::error file=train.py,line=5,endLine=5,col=6,endColumn=20,title=torchport C102::"
        "`torch.zeros(4)` is made on the CPU%0AMake it where it is used: `device=batch.device`",
        "::warning file=train.py,line=3,endLine=3,col=1,endColumn=30,title=torchport C602::"
        "`torch.zeros(4)` is made on the CPU",
        "::warning file=old.py,line=2::old.py: invalid syntax",
        "::warning file=demo.ipynb::demo.ipynb cell [3]: invalid syntax",
    ]


def test_github_escapes():
    odd = replace(finding(path="a b,c:d%.py", severity=Severity.INFO), message="50%\r\n::error::no")
    (line,) = check_github.render(replace(SURVEY, findings=(odd,), problems=())).splitlines()
    assert line == (
        "::notice file=a b%2Cc%3Ad%25.py,line=5,endLine=5,col=6,endColumn=20,title=torchport C102::"
        "50%25%0D%0A::error::no"
    )


# The page


def page(survey=SURVEY, **more):
    return check_html.render(survey, read=read, folder="project", **more)


def test_page():
    html = page()
    assert html.startswith("<!doctype html>")
    for words in ("2 errors", "1 warning", "C102", "made-on-cpu", "demo.ipynb cell [2]:2:1", "Not checked", "old.py:2"):
        assert words in html
    assert "<script" not in html and "http" not in html.replace("http-equiv", "")
    assert "default-src &#39;none&#39;" in html


def test_a_clean_page():
    html = page(Survey(files=2, lines=9))
    assert '<span class="verdict clean">nothing found</span>' in html
    assert "<article" not in html


def test_a_hostile_page():
    odd = finding(path="<script>alert(1)</script>.py")
    files = {odd.location.path: "</style><script>alert(2)</script>\n" * 9}
    survey = replace(
        SURVEY,
        findings=(replace(odd, message="<img src=x onerror=alert(3)>"),),
        problems=(Problem("<b>.py", "<i>"),),
    )
    html = check_html.render(survey, read=files.get, folder="<u>")
    assert not re.search(r"<(script|img|b|i|u)\b", html)


def test_a_page_of_many_findings_is_cut():
    html = page(replace(SURVEY, findings=(FIRST,) * (check_html.MOST_CARDS + 7)))
    assert "and 7 more" in html
    assert html.count("<article") == check_html.MOST_CARDS


@pytest.mark.usefixtures("english")
def test_languages():
    text.set_language("zh")
    assert '<html lang="zh-CN">' in page(language="zh")
    assert json.loads(check_json.render(SURVEY, read=read, exit_code=1))["findings"][0]["id"] == "C101"
