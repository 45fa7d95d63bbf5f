"""A check as one HTML page that needs nothing but itself: no network, no scripts."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

from torchport.finding import Finding, Severity
from torchport.report.check_words import counted, headline, remarks, repairs
from torchport.report.page import card_of, environment, policy, style
from torchport.report.source import Sources
from torchport.survey import Read, Survey, file_of
from torchport.text import _, ngettext

MOST_CARDS = 500


def render(survey: Survey, *, read: Read, language: str = "en", folder: str = "") -> str:
    """The page. ``read`` gives the text of a file by the path of a location, ``folder`` is what was checked."""
    sources = Sources(read)
    shown = survey.findings[:MOST_CARDS]
    look = style()
    return (
        environment()
        .get_template("check.html")
        .render(
            language={"zh": "zh-CN"}.get(language, language),
            style=look,
            policy=policy(look),
            program=folder or "torchport check",
            place=headline(survey),
            verdicts=_verdicts(survey),
            told=[*repairs(survey), *remarks(survey)],
            table=_table(survey),
            files=[
                (path, [card_of(finding, sources, survey.name(finding)) for finding in findings])
                for path, findings in groupby(shown, key=_file)
            ],
            left_out=len(survey.findings) - len(shown),
            lists=[(title, rows) for title, rows in _lists(survey) if rows],
            facts=_facts(survey),
        )
    )


def _file(finding: Finding) -> str:
    return file_of(finding.location.path) if finding.location else ""


def _verdicts(survey: Survey) -> list[tuple[str, str]]:
    """Colour and words of each verdict, the worst first."""
    if not survey.findings:
        return [("clean", _("nothing found"))]
    present = {finding.severity for finding in survey.findings}
    colours = [severity.value for severity in reversed(Severity) if severity in present]
    return list(zip(colours, counted(survey), strict=True))


def _table(survey: Survey) -> list[tuple[str, str, str]]:
    """How often each rule found something, the worst and most frequent first."""
    counts = Counter(finding.id for finding in survey.findings)
    kinds = [survey.kinds[id] for id in counts if id in survey.kinds]
    kinds.sort(key=lambda kind: kind.id)
    kinds.sort(key=lambda kind: (kind.severity, counts[kind.id]), reverse=True)
    return [(str(counts[kind.id]), f"{kind.id} {kind.name}", kind.title.removeprefix("Finds ")) for kind in kinds]


def _lists(survey: Survey) -> list[tuple[str, list[tuple[str, str, str]]]]:
    return [
        (_("Repaired"), [_row(finding, survey.name(finding)) for finding in survey.fixed]),
        (
            _("Not repaired: the repair did not hold and was taken back"),
            [_row(finding, survey.name(finding)) for finding in survey.taken_back],
        ),
        (
            _("Not checked"),
            [("", f"{each.path}:{each.line}" if each.line else each.path, each.message) for each in survey.problems],
        ),
    ]


def _row(finding: Finding, name: str) -> tuple[str, str, str]:
    return finding.id, str(finding.location or ""), name


def _facts(survey: Survey) -> list[tuple[str, str]]:
    version = ".".join(map(str, survey.torch)) if survey.torch else _("the newest")
    lines = ngettext("{count} line", "{count} lines", survey.lines).format(count=survey.lines)
    files = ngettext("{count} file", "{count} files", survey.files).format(count=survey.files)
    rows = [("torch", version), (_("read"), f"{files}, {lines}")]
    if survey.baseline:
        rows.append((_("baseline"), survey.baseline))
    rows.append((_("took"), _("{seconds} s").format(seconds=f"{survey.seconds:.3g}")))
    return rows
