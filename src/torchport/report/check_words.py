"""What a check says in sentences, the same in the terminal and on the page."""

from __future__ import annotations

from collections import Counter

from torchport.finding import Finding, Severity
from torchport.survey import Survey, file_of
from torchport.text import _, ngettext


def counted(survey: Survey) -> list[str]:
    """How many findings there are of each severity, the worst first."""
    counts = Counter(finding.severity for finding in survey.findings)
    said = {
        Severity.ERROR: ngettext("{count} error", "{count} errors", counts[Severity.ERROR]),
        Severity.WARNING: ngettext("{count} warning", "{count} warnings", counts[Severity.WARNING]),
        Severity.INFO: ngettext("{count} remark", "{count} remarks", counts[Severity.INFO]),
    }
    return [text.format(count=counts[severity]) for severity, text in said.items() if counts[severity]]


def headline(survey: Survey) -> str:
    """The result in one line."""
    files = ngettext("{count} file", "{count} files", survey.files).format(count=survey.files)
    if not survey.findings:
        return _("nothing found in {files}").format(files=files)
    hit = len({file_of(finding.location.path) for finding in survey.findings if finding.location})
    return _("{counts} in {hit} of {files}").format(counts=_(", ").join(counted(survey)), hit=hit, files=files)


def repairs(survey: Survey) -> list[str]:
    """What was repaired, what could be, and what could not."""
    found = []
    if survey.fixed:
        text = _("{count} repaired") if survey.diff is None else _("{count} would be repaired")
        found.append(text.format(count=len(survey.fixed)))
    if survey.taken_back:
        count = len(survey.taken_back)
        text = ngettext(
            "{count} repair did not hold and was taken back", "{count} repairs did not hold and were taken back", count
        )
        found.append(text.format(count=count))
    # Under --diff the findings still hold those that it repairs.
    left = (
        [] if survey.diff is not None else [finding for finding in survey.findings if not _was_tried(finding, survey)]
    )
    safe = sum(bool(finding.fix and finding.fix.safe) for finding in left)
    unsafe = sum(bool(finding.fix and not finding.fix.safe) for finding in left)
    if safe:
        found.append(_("--fix repairs {count}").format(count=safe))
    if unsafe:
        text = _("--unsafe-fixes repairs {count} more") if safe else _("--unsafe-fixes repairs {count}")
        found.append(text.format(count=unsafe))
    return found


def _was_tried(finding: Finding, survey: Survey) -> bool:
    return any(
        finding.id == other.id and finding.message == other.message and _path(finding) == _path(other)
        for other in survey.taken_back
    )


def _path(finding: Finding) -> str:
    return finding.location.path if finding.location else ""


def remarks(survey: Survey) -> list[str]:
    """What else is to be said: of the baseline, and of the torch that was assumed."""
    found = []
    if survey.known:
        text = ngettext(
            "{count} known finding is left out ({path})", "{count} known findings are left out ({path})", survey.known
        )
        found.append(text.format(count=survey.known, path=survey.baseline))
    if survey.unused:
        text = ngettext(
            "{count} entry of {path} is no longer needed:",
            "{count} entries of {path} are no longer needed:",
            len(survey.unused),
        )
        found.append(text.format(count=len(survey.unused), path=survey.baseline))
    return found
