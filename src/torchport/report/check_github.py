"""A check as workflow commands, which GitHub shows beside the lines of a pull request."""

from __future__ import annotations

from torchport.finding import Finding, Severity
from torchport.survey import Survey, file_of

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(survey: Survey) -> str:
    """One command a finding, and one for each file that could not be checked."""
    found = [_command(_LEVELS[finding.severity], _place(finding), _words(finding)) for finding in survey.findings]
    for problem in survey.problems:
        # A line of a cell is no line of the file.
        inside = {"line": problem.line} if problem.line and file_of(problem.path) == problem.path else {}
        found.append(
            _command("warning", {"file": file_of(problem.path), **inside}, f"{problem.path}: {problem.message}")
        )
    return "".join(f"{line}\n" for line in found)


def _place(finding: Finding) -> dict[str, object]:
    place = finding.location
    title: dict[str, object] = {"title": f"torchport {finding.id}"}
    if place is None:
        return title
    if file_of(place.path) != place.path:
        return {"file": file_of(place.path), **title}
    end = {"endLine": place.end_line} if place.end_line else {}
    # GitHub takes an endColumn in one line only.
    within = {"endColumn": place.end_column} if place.end_column and place.end_line == place.line else {}
    column = {"col": place.column} if place.column else {}
    return {"file": place.path, "line": place.line, **end, **column, **within, **title}


def _words(finding: Finding) -> str:
    place = finding.location
    cell = f"{place}: " if place and file_of(place.path) != place.path else ""
    return "\n".join(filter(None, (cell + finding.message, finding.remedy)))


def _command(level: str, properties: dict[str, object], message: str) -> str:
    said = ",".join(f"{key}={_escaped(str(value), of_property=True)}" for key, value in properties.items())
    return f"::{level} {said}::{_escaped(message)}"


def _escaped(text: str, of_property: bool = False) -> str:
    """As the runner reads it back; ``%`` first."""
    for character, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
        text = text.replace(character, code)
    return text.replace(":", "%3A").replace(",", "%2C") if of_property else text
