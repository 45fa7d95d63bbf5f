"""A check for the terminal: each finding with its line of code, then what can be repaired."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.text import Text

from torchport.finding import Evidence, Finding, Severity
from torchport.report.check_words import headline, remarks, repairs
from torchport.report.printable import printable
from torchport.report.terminal import COLOURS, QUIET, Part, line, paragraph, said, set_in_lines, severity_name
from torchport.survey import Lines, Read, Survey, worst
from torchport.text import _

_ROWS = 8  # entries of a baseline that are named


def render(survey: Survey, *, read: Read, width: int = 100, color: bool = False) -> str:
    """The findings and a summary. ``read`` gives the text of a file by the path of a location."""
    return set_in_lines(_parts(survey, Lines(read), width), width=width, color=color)


def render_summary(survey: Survey, *, width: int = 100, color: bool = False) -> str:
    """The last lines alone."""
    return set_in_lines(_summary(survey), width=width, color=color)


def _parts(survey: Survey, lines: Lines, width: int) -> Iterator[Part]:
    for finding in survey.findings:
        yield from _finding(finding, survey.name(finding), lines, width)
        yield Text()
    yield from _summary(survey)


def _finding(finding: Finding, name: str, lines: Lines, width: int) -> Iterator[Part]:
    colour = COLOURS[finding.severity]
    yield line(
        (f"{finding.id} {severity_name(finding.severity)}  ", colour),
        (str(finding.location or ""), "bold"),
        (f"  {name}", QUIET),
    )
    yield from _excerpt(finding, lines, width)
    yield said(finding.message)
    for evidence in finding.evidence:
        yield _evidence(evidence)
    if finding.remedy:
        yield said(finding.remedy, (_("Fix: "), "green"))


def _excerpt(finding: Finding, lines: Lines, width: int) -> Iterator[Part]:
    """The line of a finding with what it is about underlined."""
    place = finding.location
    code = lines(place.path, place.line) if place else None
    if not place or not code or not code.strip():
        return
    start = min((place.column or 1) - 1, len(code))
    end = place.end_column - 1 if place.end_column and place.end_line == place.line else len(code.rstrip())
    indent = min(len(code) - len(code.lstrip()), start)
    room = max(width - 12 - len(str(place.line)), 30)
    first = indent if end - indent <= room else max(indent, min(start, end - room))
    shown = code[first : first + room].rstrip()
    head = printable(shown[: start - first].expandtabs(4))
    text = printable(shown.expandtabs(4))
    marked = printable(shown[start - first : end - first].expandtabs(4))
    number = str(place.line)
    cut = "…" if first > indent else ""
    yield line((f"    {number} │ ", QUIET), (cut + text + ("…" if len(code.rstrip()) > first + room else ""), ""))
    marker = "^" * max(cell_len(marked), 1)
    yield line((f"    {' ' * len(number)} │ ", QUIET), (" " * cell_len(cut + head) + marker, COLOURS[finding.severity]))


def _evidence(evidence: Evidence) -> Part:
    place = f"{evidence.location}  " if evidence.location else ""
    return said(evidence.text or evidence.quote, (place, "bold"))


def _summary(survey: Survey) -> Iterator[Part]:
    for finding in survey.fixed:
        done = _("would be repaired") if survey.diff is not None else _("repaired")
        yield line(
            (f"{done}  ", "green"),
            (str(finding.location or ""), "bold"),
            (f"  {finding.id} {survey.name(finding)}", QUIET),
        )
    for finding in survey.taken_back:
        yield line(
            (_("not repaired") + "  ", "yellow"),
            (str(finding.location or ""), "bold"),
            (f"  {finding.id} {survey.name(finding)}  ", QUIET),
            (_("the repair did not hold and was taken back"), ""),
        )
    for problem in survey.problems:
        place = f"{problem.path}:{problem.line}" if problem.line else problem.path
        yield line((_("not checked") + "  ", "yellow"), (f"{place}  ", "bold"), (problem.message, ""))
    if survey.fixed or survey.taken_back or survey.problems:
        yield Text()
    most = worst(survey.findings)
    colour = "bold green" if most is None else COLOURS[most] if most > Severity.INFO else "bold"
    yield paragraph(headline(survey), colour)
    told = repairs(survey)
    if told:
        yield paragraph(_("; ").join(told), "")
    for remark in remarks(survey):
        yield paragraph(remark, QUIET)
    for what in survey.unused[:_ROWS]:
        yield line((f"  {what.id}  {what.path}  {what.code}", QUIET))
    if len(survey.unused) > _ROWS:
        yield line(("  " + _("and {count} more").format(count=len(survey.unused) - _ROWS), QUIET))
