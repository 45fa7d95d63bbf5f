"""Reasons and drifts of a stack in words: one sentence for each kind."""

from __future__ import annotations

from collections.abc import Mapping

from torchport.resolved import Drift, Reason
from torchport.text import _, mark

# Why builds were thrown out, said of several at once: {values} of the first of them.
REJECTED: dict[str, str] = {
    "unseen": mark("announced, but nobody has seen the wheel"),
    "platform": mark("no build for {processor} is known"),
    "platform-cpu": mark("for {processor} there is only a CPU build"),
    "architecture": mark("no machine code for a card of capability {capability}"),
    "driver": mark("driver {have} is too old for CUDA {cuda}, which wants {need}"),
    "drivers": mark("driver {have} is too old; the least that one of them wants is {oldest}"),
    "driver-ptx": mark("only PTX fits, and compiling it wants the driver of CUDA {cuda}, {need}"),
    "driver-unknown": mark("the driver of CUDA {cuda} is not known, and --strict asks for it"),
    "torch": mark("{path} asks for {asked}"),
    "cuda": mark("{path} asks for CUDA {asked}"),
    "python": mark("{path} asks for Python {asked}, and there are wheels for {have}"),
    "api": mark("{place} uses {name}"),
    "torchvision": mark("no torchvision for it"),
    "torchaudio": mark("no torchaudio for it"),
    "torchtext": mark("no torchtext for it"),
}

# What an offer gives up, or needs.
INSTEAD: dict[str, str] = {
    "torch": mark("not the {asked} of {path}"),
    "cuda": mark("not the CUDA {asked} of {path}"),
    "python": mark("not the Python {asked} of {path}"),
    "driver": mark("with driver {need} or newer"),
    "driver-ptx": mark("with driver {need} or newer"),
}

WHY: dict[str, str] = {
    "newest": mark("torch {torch} is the newest there is"),
    "newest-left": mark("torch {torch} is the newest that fits; newer ones that do not: {newer}"),
    "locked": mark("torch {torch} is what {path} has"),
    "default-build": mark("{backend} is the build that a plain installation gets, and it fits"),
    "newest-build": mark("{backend} has the newest CUDA of its builds that fit; others: {others}"),
    "only-build": mark("{backend} is its only build that fits"),
    "python-now": mark("Python {python} is what the project has now"),
    "python-asked": mark("Python {python} is within {asked} of {path}"),
    "python-usual": mark("Python {python}: the project does not say, and most packages have wheels for it"),
    "python-newest": mark("Python {python} is the nearest to the usual one that has wheels"),
}

NOTES: dict[str, str] = {
    "gpu-missing": mark("no card is known: --gpu NAME lets builds without code for it be thrown out"),
    "cpu-default": mark("no card here and none named, so this is for the CPU; --gpu NAME locks for a card beside it"),
    "driver-missing": mark("no driver is known: --driver VERSION lets it be compared"),
    "driver-needed": mark("the driver has to be {need} or newer; --driver VERSION compares it"),
    "driver-minor": mark(
        "driver {have} is older than that of CUDA {cuda} ({own}): ready kernels run, code that compiles PTX may not; "
        "--strict keeps such builds out"
    ),
    "driver-own-unknown": mark("the driver of CUDA {cuda} is not known; the floor of its major version is met"),
    "ptx": mark(
        "no machine code for {capability}: PTX for {ptx} is compiled when torch first starts, which takes minutes"
    ),
    "last-branch": mark("{branch} is the last driver branch for this card ({capability})"),
    "evidence": mark("what {backend} has code for comes from build scripts; nobody has opened this wheel"),
    "uploaded": mark("torch {torch} was uploaded again under the same version ({dates}): only the hash tells which"),
    "constraint": mark("torch {torch} was compiled against NumPy 1, so {requirement} is asked for, too"),
    "builds": mark('{folders} has to be compiled: TORCH_CUDA_ARCH_LIST="{codes}", with a toolkit of the same CUDA'),
    "api-holds": mark(
        "{place} uses {name}, {bound}: newer torches were left out for it. `torchport check --fix` may replace it"
    ),
    "api-lifted": mark(
        "{place} uses {name}, {bound}: no torch that fits has it. `torchport check --fix` may replace it"
    ),
    "torch-not-asked": mark("no file of the project asks for torch"),
    "torch-imported": mark("torch is imported, and no file asks for it: the newest that fits was taken"),
    "from-imports": mark("no file says what the project needs; by its imports: {names}"),
    "mirror-untested": mark("the addresses of the mirror {name} have not been tested yet"),
    "held": mark("torch {before} contradicts another requirement of the project; {torch} goes with all of them"),
}

DRIFTS: dict[str, str] = {
    "asked-since": mark("{path} asks for {asked}, which was not asked for when this was locked"),
    "asked-no-more": mark("{asked} was asked for when this was locked, and is no more"),
    "python": mark("locked for Python {locked}; the project's is {have}"),
    "missing": mark("{name} {locked} is not installed"),
    "version": mark("{name} is {have}, locked is {locked}"),
    "driver": mark("the driver is {have}; this stack wants {need} or newer"),
    "card": mark("the card {card} ({capability}) is not among what torch has code for: {codes}"),
}


def rejected(kind: str, values: Mapping[str, str]) -> str:
    return _(REJECTED[kind]).format(**values)


def instead(reason: Reason) -> str:
    """What would have to be given up, or to be had, for a build that misses it."""
    values = dict(reason.values)
    if reason.kind == "api":
        return f"{rejected('api', values)}, {_bound(values)}"
    if reason.kind in INSTEAD:
        return _(INSTEAD[reason.kind]).format(**values)
    return _companion(reason.kind, values)


def why(reason: Reason) -> str:
    return _(WHY[reason.kind]).format(**dict(reason.values))


def note(reason: Reason) -> str:
    values = dict(reason.values)
    kind = reason.kind
    if kind == "driver-missing" and "need" in values:
        kind = "driver-needed"
    if kind == "driver-minor" and values["own"] == "None":
        kind = "driver-own-unknown"
    text = _(NOTES[kind]).format(**values, bound=_bound(values))
    unknown = values.get("unknown")
    return text + _("; not known to us: {names}").format(names=unknown) if unknown else text


def drift(found: Drift) -> str:
    return _(DRIFTS[found.kind]).format(**dict(found.values))


def _bound(values: Mapping[str, str]) -> str:
    if "gone" in values:
        return _("gone since torch {version}").format(version=values["gone"])
    return _("there since torch {version}").format(version=values.get("since", ""))


def _companion(name: str, values: Mapping[str, str]) -> str:
    if "ended" in values:
        return _("{name} ended with torch {torch}").format(name=name, torch=values["ended"])
    if "python" in values:
        return _("{name} {have}, which goes with it, has no wheel for Python {python}").format(name=name, **values)
    return _("{path} asks for {asked}; with it goes {name} {have}").format(name=name, **values)
