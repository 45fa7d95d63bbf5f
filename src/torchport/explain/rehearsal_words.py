"""One observation of a rehearsal → one finding, in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from torchport.explain.rehearsal_ids import REHEARSAL_IDS
from torchport.finding import Evidence, Finding, Location, Severity
from torchport.record import Observation, Site
from torchport.text import _, mark

Fields = Mapping[str, Any]

# What to do, by the kind that the run wrote. One that lacks a part gives way to the general advice of the id.
_REMEDIES = {
    "create-on": mark("Make it on that device: `{maker}(…, device={device})` at {site}"),
    "create-on-far": mark("Make it on the device of {other}: `{maker}(…, device=…)` at {site}"),
    "move": mark("Move it there: `{target}.to({device})` at {here}"),
    "set": mark("Move it to the device of {other} where it is set: {set}"),
    "register-buffer": mark(
        'Register it, so that it moves with its module: `self.register_buffer("{leaf}", …)` at {site}'
    ),
    "module-to": mark("Move the module that holds `{target}` before it is used: `.to({device})`"),
    "to-cpu": mark("Bring it to the host: `{target}.cpu()` at {here}"),
    "to-cpu-or-move-indexed": mark("Bring the index to the host, `{target}.cpu()` at {here}, or move what it indexes"),
    "generator": mark("Make the generator there: `torch.Generator(device={device})` at {site}"),
}

# Their sentence says what the remark says.
_SAYS_ALL = frozenset({"R202", "R501"})

_RANK_STATES = {
    "enter": mark("rank {rank} waits in {op} {shapes}"),
    "leave": mark("rank {rank} is past {op} {shapes}"),
    "died": mark("rank {rank} died, with exit code {code}"),
    "gone": mark("rank {rank} died"),
    "ended": mark("rank {rank} ended before the others"),
}

_DEVICE = re.compile(r"(cpu|cuda|meta)(:\d+)?")
_FUNCTION = re.compile(r"[\w.:]+")


def finding(observation: Observation) -> Finding:
    """The observation as a finding; an id that this version does not know is told by what it brought."""
    row = REHEARSAL_IDS.get(observation.id)
    parts = _parts(observation)
    try:
        message = _(row.statement).format_map(parts) if row else str(parts.get("what", observation.id))
    except (KeyError, IndexError, ValueError):
        message = _(row.title) if row else observation.id
    return Finding(
        id=observation.id,
        message=message,
        severity=_severity(observation),
        location=location(observation.site),
        evidence=tuple(dict.fromkeys(_evidence(observation))),
        remedy=_remedy(observation, parts),
        count=observation.count,
    )


def location(site: object) -> Location | None:
    """A place of a record as a place of a finding; anything else is none."""
    return Location(site.path, site.line, function=site.function) if isinstance(site, Site) else None


def tensors(fields: Fields) -> list[Fields]:
    """The tensors of an observation, as far as it has any."""
    found = fields.get("tensors")
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _severity(observation: Observation) -> Severity:
    try:
        return Severity(observation.severity)
    except ValueError:
        row = REHEARSAL_IDS.get(observation.id)
        return row.severity if row else Severity.WARNING


def _pair(fields: Fields) -> tuple[Fields | None, Fields | None]:
    """The tensor that should be elsewhere, and the first one on another device, whose place it should be."""
    found = tensors(fields)
    index = fields.get("offender")
    offender = found[index] if isinstance(index, int) and 0 <= index < len(found) else None
    if offender is None:
        return None, (found[0] if found else None)
    others = [tensor for tensor in found if tensor is not offender]
    apart = [tensor for tensor in others if tensor.get("device") != offender.get("device")]
    return offender, next(iter(apart or others), None)


def _parts(observation: Observation) -> dict[str, str]:
    """What the sentences of the tables may name; what is unknown is left out."""
    fields = observation.fields
    offender, other = _pair(fields)
    found: dict[str, Any] = {
        **{name: value for name, value in _mapping(fields.get("extra")).items() if isinstance(value, (str, int))},
        "offender": offender and _tensor(offender, unless=observation.site),
        "other": other and _tensor(other, origin=offender is None, unless=observation.site),
        "call": _call(fields),
        "dtype": (offender or other or {}).get("dtype"),
        "what": fields.get("what"),
        "rank": fields.get("rank"),
        "ranks": _ranks(observation.id, fields),
    }
    found.setdefault("device", (other or {}).get("device"))
    return {name: str(value) for name, value in found.items() if value not in (None, "")}


def _call(fields: Fields) -> str:
    """The function as the user knows it, else the operator."""
    api = str(fields.get("api") or "")
    return api if _FUNCTION.fullmatch(api) else _operator(fields.get("op"))


def _operator(name: object) -> str:
    """``aten::add.Tensor`` is ``add``; a function of Python keeps its name."""
    text = str(name or "")
    return text.removeprefix("aten::").partition(".")[0] if text.startswith("aten::") else text


def _tensor(tensor: Fields, *, origin: bool = True, unless: Site | None = None) -> str:
    """``mask`` (cpu, made at model.py:41 by torch.ones); ``unless`` is the place of the finding itself."""
    if tensor.get("name"):
        name = f"`{tensor['name']}`"
    elif tensor.get("parameter"):
        name = _("parameter `{name}`").format(name=tensor["parameter"])
    elif isinstance(tensor.get("shape"), list):
        name = _("a tensor of shape {shape}").format(shape=tensor["shape"])
    elif tensor.get("argument"):
        name = _("argument `{name}`").format(name=tensor["argument"])
    else:
        name = _("a tensor")
    device = str(tensor.get("device") or "?")
    for verb, place, maker in (
        (mark("moved at {place} by {maker}"), tensor.get("moved"), tensor.get("moved_by")),
        (mark("made at {place} by {maker}"), tensor.get("born"), tensor.get("born_by")),
    ):
        if origin and isinstance(place, Site) and maker and place != unless:
            return _("{name} ({device}, {origin})").format(
                name=name, device=device, origin=_(verb).format(place=place, maker=_operator(maker))
            )
    return _("{name} ({device})").format(name=name, device=device)


def _evidence(observation: Observation) -> Iterator[Evidence]:
    fields = observation.fields
    line = str(fields.get("api") or "")
    if line and not _FUNCTION.fullmatch(line):
        yield Evidence("", location(observation.site), quote=line)
    for tensor in _pair(fields):
        if tensor is not None:
            name = _tensor(tensor, origin=False)
            for text, place, maker in (
                (mark("{name} was made by {maker}"), tensor.get("born"), tensor.get("born_by")),
                (mark("{name} was computed from what {maker} made"), tensor.get("root"), tensor.get("root_by")),
                (mark("{name} was moved by {maker}"), tensor.get("moved"), tensor.get("moved_by")),
            ):
                if isinstance(place, Site) and place != observation.site:
                    yield Evidence(_(text).format(name=name, maker=_operator(maker) or "?"), location(place))
            told = (observation.site, tensor.get("born"), tensor.get("moved"))
            if isinstance(tensor.get("set"), Site) and tensor["set"] not in told:
                yield Evidence(_("{name} is set here").format(name=name), location(tensor["set"]))
            for built in tensor.get("built") or ():
                if isinstance(built, Site) and built not in (observation.site, tensor.get("born")):
                    yield Evidence(_("{name} belongs to what is built here").format(name=name), location(built))
    if fields.get("in_backward"):
        yield Evidence(_("in the backward pass of this line"))
    last = _mapping(fields.get("last_common"))
    if last:
        yield Evidence(
            _("the last collective that all ranks passed: {op}").format(op=_collective(last)),
            location(last.get("site")),
        )
    for row in _rows(fields):
        state = _RANK_STATES.get(str(row.get("state")), mark("rank {rank}: {op} {shapes}"))
        words = (
            _(state)
            .format(rank=row.get("rank"), code=row.get("code"), op=row.get("op") or "?", shapes=_shapes(row))
            .strip()
        )
        yield Evidence(words, location(row.get("site")))
    if fields.get("cuda_says"):
        yield Evidence(_("CUDA would say"), quote=str(fields["cuda_says"]))
    if fields.get("text") and observation.id not in _SAYS_ALL:
        yield Evidence(_("in its own words"), quote=str(fields["text"]))


def _remedy(observation: Observation, parts: Mapping[str, str]) -> str:
    row = REHEARSAL_IDS.get(observation.id)
    general = _(row.fix) if row else ""
    remedy = _mapping(observation.fields.get("remedy"))
    kind = str(remedy.get("kind"))
    offender, other = _pair(observation.fields)
    offender, here, site = offender or {}, observation.site, remedy.get("site") or observation.site
    if kind == "create-on" and _elsewhere(site, here):
        kind = "create-on-far"
    given = offender.get("set")
    if kind in ("move", "create-on-far") and _elsewhere(given, here) and (kind == "move" or _elsewhere(given, site)):
        kind = "set"
    if kind not in _REMEDIES:
        return general
    target = str(remedy.get("target") or offender.get("name") or "")
    device = str(remedy.get("device") or "")
    found = {
        "other": other and (f"`{other['name']}`" if other.get("name") else other.get("device")),
        "maker": offender.get("born_by"),
        "target": target,
        "leaf": target.rpartition(".")[2],
        # A device that is an expression of the user's program stands as it is.
        "device": f'"{device}"' if _DEVICE.fullmatch(device) else device,
        "site": site,
        "here": here,
        "set": given,
    }
    try:
        return _(_REMEDIES[kind]).format_map({name: str(value) for name, value in found.items() if value})
    except (KeyError, IndexError, ValueError):
        return general


def _elsewhere(site: object, here: object) -> bool:
    """Whether a place lies in another function than the fault, where its variables mean nothing."""
    return (
        isinstance(site, Site) and isinstance(here, Site) and (site.path, site.function) != (here.path, here.function)
    )


def _ranks(id: str, fields: Fields) -> str:
    if id == "R401":
        return ", ".join(
            _("rank {rank} {op}").format(rank=row.get("rank"), op=_collective(row)) for row in _rows(fields)
        )
    return ", ".join(str(row.get("rank")) for row in _rows(fields))


def _rows(fields: Fields) -> list[Fields]:
    found = fields.get("ranks")
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def _collective(row: Fields) -> str:
    return f"{row.get('op') or '?'} {_shapes(row)}".strip()


def _shapes(row: Fields) -> str:
    shapes = row.get("shapes")
    return " ".join(str(shape) for shape in shapes) if isinstance(shapes, list) else ""


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
