"""The page of a rehearsal: one file, no network, nothing in it that runs."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from torchport import text
from torchport.report.rehearsal_html import MOST_CARDS, render

VOID = {"meta", "path", "rect", "br", "img", "input", "link"}


class Page(HTMLParser):
    """Collects elements, attributes and text, and checks that elements close in order."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.open, self.texts = [], [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def words(self):
        return re.sub(r"\s+", " ", "".join(self.texts))


def check(page):
    """What holds for every page."""
    parsed = Page(page)
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & set(parsed.tags)
    names = {name for _tag, name, _value in parsed.attributes}
    assert not names & {"style", "src", "href", "srcset", "action"}
    assert not {name for name in names if name.startswith("on")}
    style = page[page.index("<style>") + 7 : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = [value for _tag, name, value in parsed.attributes if name == "content" and "default-src" in value]
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    page.encode("utf-8")
    return parsed


@pytest.fixture
def read(events):
    return events.sources.get


def test_faults(faulty, read):
    parsed = check(render(faulty, read=read))
    said = parsed.words
    for part in (
        "train.py · torchport",
        "rehearsed on 1 × A100-SXM4-80GB (virtual)",
        "2 faults",
        "2 warnings",
        "mask (cpu, made at model.py:13 by torch.ones) meets scores (cuda:0) in add",
        "CUDA would sayRuntimeError: Expected all tensors",
        "Fix Bring it to the host: model(x).cpu() at train.py:17",
        "return torch.ones(length, length).tril()",
        "# 每步打印一次损失",
        "of 79.2 GiB, in step 12",
        "Memory at the peak",
        "2.13.0+cpu",
        "1970-01-01 00:00 UTC",
    ):
        assert part in said
    assert parsed.tags.count("article") == 4
    assert parsed.tags.count("svg") == 4


def test_the_line_itself_is_shown_once(faulty, read):
    line = "predictions = model(x).numpy()"
    assert check(render(faulty, read=read)).words.count(line) == 1
    assert check(render(faulty, read=lambda path: None)).words.count(line) == 1


def test_without_sources_the_places_are_told(faulty):
    parsed = check(render(faulty, read=lambda path: None))
    assert "model.py:13 mask (cpu) was made by torch.ones" in parsed.words
    assert "figure" in parsed.tags


def test_nothing_found(clean, read):
    parsed = check(render(clean, read=read))
    assert "no faults" in parsed.words
    assert "article" not in parsed.tags


def test_a_killed_run(ran, events, read):
    parsed = check(render(ran([*events.steps(2)]), read=read))
    assert "the process was killed in step 3" in parsed.words
    assert ("p", "class", "ending bad") in parsed.attributes


@pytest.mark.parametrize("ranks", [0, 1])
def test_nothing_recorded(ran, read, ranks):
    parsed = check(render(ran(*[[]] * ranks), read=read))
    assert "svg" not in parsed.tags


def test_ranks_have_lines_of_their_own(ran, events, read):
    ranks = [[*events.steps(3, gpu=gpu), *events.sums(3, gpu=gpu), events.finished] for gpu in range(3)]
    said = check(render(ran(*ranks), read=read)).words
    assert "cuda:0 rank 0" in said
    assert "cuda:2 rank 2" in said


def test_a_curve_after_the_last_step(ran, events, read):
    after = {"kind": "memory", "gpu": 0, "step": 2, "points": [[0, 1 << 20]]}
    assert "step 12" in check(render(ran([*events.steps(2), after]), read=read)).words
    only = {**after, "step": 0}
    assert "startend" in check(render(ran([only]), read=read)).words


def test_a_long_run_stays_small(ran, events, read):
    page = render(ran([*events.steps(3000), *events.sums(3000)]), read=read)
    check(page)
    assert len(page) < 200_000


def test_many_findings(ran, events, read):
    fault = events.faults[0]
    many = [{**fault, "number": n, "fields": {**fault["fields"], "op": f"op{n}"}} for n in range(MOST_CARDS + 50)]
    parsed = check(render(ran(many), read=read))
    assert parsed.tags.count("article") == MOST_CARDS
    assert "and 50 more, in the record" in parsed.words


HOSTILE = [
    "</style><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'--><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "`</code><b>`",
    "half\udce9",
    "\x00\x1b[31m\u202e",
    "&lt;b&gt;&amp;",
    "a\nb",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(ran, name):
    place = {"site": 1}
    tensors = [
        {"name": name, "device": "cpu", "born": place, "born_by": name, "dtype": name},
        {"name": name, "device": name},
    ]
    fields = {
        "op": name,
        "api": name,
        "tensors": tensors,
        "offender": 0,
        "cuda_says": name,
        "what": name,
        "text": name,
    }
    fault = {
        "kind": "finding",
        "number": 1,
        "id": "R101",
        "severity": "error",
        "site": 1,
        "step": 1,
        "fields": fields,
    }
    run = ran(
        [
            fault,
            {**fault, "number": 2, "id": "R505", "severity": "info"},
            {"kind": "peak", "gpu": 0, "bytes": 1, "step": 1, "holders": [[name, name, 1, 1, 1]]},
            {
                "kind": "totals",
                "operators": [[name, 1]],
                "syncs": [[1, name, 1]],
                "transfers": [[1, name, True, 1, 1]],
                "draws": [[1, name, 1]],
            },
            {"kind": "exit", "code": 1, "reason": "error", "error": name, "seconds": 1},
        ],
        sites={1: (name, 1, name)},
        argv=(name, name),
        gpu=name,
    )
    for source in (name, None):
        page = render(run, read=lambda path, source=source: source, language="en")
        parsed = check(page)
        assert "49" not in parsed.words.replace(name, "")
        assert not re.search("[\x00-\x08\x0b-\x1f\ud800-\udfff\u202a-\u202e]", page)


def test_chinese(faulty, ran, events, read, english):
    text.set_language("zh")
    run = ran(events.faulty)
    page = render(run, read=read, language="zh")
    assert '<html lang="zh-CN">' in page
    assert "Findings" not in check(page).words
