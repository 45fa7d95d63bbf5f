"""The numbers that a program prints of its training: loss, accuracy, learning rate, with the text before each."""

from __future__ import annotations

import ast
import re
import string
from dataclasses import dataclass

from torchport.check.source import Source, constant

# What a text before a number calls it, and what that is called in a curve.
_KINDS = (
    ("loss", r"loss\w*"),
    ("accuracy", r"acc(uracy)?"),
    ("perplexity", r"ppl|perplexity"),
    ("lr", r"lr|learning[ _-]rate"),
    ("reward", r"reward|return"),
    ("dice", r"dice"),
    ("iou", r"m?iou"),
    ("f1", r"f1"),
    ("grad_norm", r"(grad(ient)?[ _-])?norm"),
)
_NAMED = tuple((name, re.compile(rf"(?<![a-z])({pattern})(?![a-z])", re.IGNORECASE)) for name, pattern in _KINDS)
_LOSS_OF = re.compile(r"(?<![a-z])(\w+?)[ _-]?loss|loss[ _-](\w+)", re.IGNORECASE)
_ORDINARY = frozenset(
    "the this a at per set step iter batch epoch mean avg average cur current total final running train "
    "training val valid validation test of".split()
)
_HELD_OUT = re.compile(
    r"(?<![a-z])(test|testing|val|valid|validation|eval|evaluate|evaluation|dev|held.out)(?![a-z])", re.I
)
_PERCENT = re.compile(r"%[-+ #0]*[\d*]*(?:\.\d+)?[hlL]?([diouxXeEfFgGcrsa])")


@dataclass(frozen=True, slots=True)
class Scalar:
    """One number that is printed: ``tag`` is what it is called, ``data`` where it is from: val, test or nothing."""

    tag: str
    value: ast.expr
    data: str


def scalars(source: Source, call: ast.Call) -> list[Scalar]:
    """The numbers of one ``print`` that a curve can show."""
    found: dict[str, Scalar] = {}
    pieces, said = _pieces(source, call), ""
    for index, (before, value) in enumerate(pieces):
        said += before
        tag = _tag(before)
        value = _share(pieces, index) if tag else None
        if value is not None and not isinstance(value, (ast.Constant, ast.List, ast.ListComp, ast.Dict, ast.Tuple)):
            found.setdefault(tag, Scalar(tag, value, held_out(said)))
    return list(found.values())


def held_out(text: str) -> str:
    """Whether words speak of data kept for a try: ``val``, ``test``, or empty."""
    match = _HELD_OUT.search(text)
    return "" if match is None else "test" if match[1].lower().startswith("test") else "val"


def _share(pieces: list[tuple[str, ast.expr | None]], index: int) -> ast.expr | None:
    """The number that is meant: of ``90/100 (90 %)`` the last, and none of ``90/100`` alone."""
    if index + 1 < len(pieces) and pieces[index + 1][0].strip() == "/":
        return pieces[index + 2][1] if index + 2 < len(pieces) and "(" in pieces[index + 2][0] else None
    return pieces[index][1]


def counted(source: Source, call: ast.Call, names: set[str]) -> ast.expr | None:
    """What a ``print`` says of where the training is, where that is made of one of these names."""
    for _before, value in _pieces(source, call):
        if value is not None and not any(isinstance(each, ast.Call) for each in ast.walk(value)):
            used = {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
            if used & names and not isinstance(value, ast.Name):
                return value
    return None


def _tag(before: str) -> str:
    """What the text right before a number calls it; empty for none of what is followed."""
    last = re.split(r"[,;|\n\t()\[\]]|\.\s", before.rstrip())[-1] if before.strip() else ""
    best, where = "", -1
    for name, pattern in _NAMED:
        for match in pattern.finditer(last):
            if match.start() > where:
                best, where = name, match.start()
    if best == "loss":
        of = _LOSS_OF.search(last)
        word = (of[1] or of[2] or "").lower().strip("_") if of else ""
        if word and word not in _ORDINARY and re.fullmatch(r"[a-z]\w{0,11}", word):
            return f"loss_{word}"
    return best


def _pieces(source: Source, call: ast.Call) -> list[tuple[str, ast.expr | None]]:
    """The arguments of a ``print`` as (text before, value); None for the text behind the last value."""
    found: list[tuple[str, ast.expr | None]] = []
    text = ""
    for given in call.args:
        for before, value in _parts(source, given):
            text += before
            if value is not None:
                found.append((text, value))
                text = ""
        text += " "
    return [*found, (text, None)]


def _parts(source: Source, node: ast.expr) -> list[tuple[str, ast.expr | None]]:
    match node:
        case ast.Constant(value=str(text)):
            return [(text, None)]
        case ast.JoinedStr(values=values):
            return [
                (str(each.value), None) if isinstance(each, ast.Constant) else ("", each.value)
                for each in values
                if isinstance(each, (ast.Constant, ast.FormattedValue))
            ]
        case ast.Call(func=ast.Attribute(value=text, attr="format"), args=args, keywords=keywords):
            return _formatted(constant(text), args, keywords)
        case ast.BinOp(left=text, op=ast.Mod(), right=right) if isinstance(constant(text), str):
            given = right.elts if isinstance(right, ast.Tuple) else [right]
            return _percent(str(constant(text)), given)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*_parts(source, left), *_parts(source, right)]
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            return [("", inner)]
    return [("", node)]


def _formatted(text: object, args: list[ast.expr], keywords: list[ast.keyword]) -> list[tuple[str, ast.expr | None]]:
    if not isinstance(text, str) or any(isinstance(each, ast.Starred) for each in args):
        return []
    named = {each.arg: each.value for each in keywords}
    found: list[tuple[str, ast.expr | None]] = []
    try:
        pieces = list(string.Formatter().parse(text))
    except ValueError:
        return []
    following = 0
    for before, field, _form, _conversion in pieces:
        value: ast.expr | None = None
        if field == "":
            value, following = (args[following] if following < len(args) else None), following + 1
        elif field is not None and field.isdigit():
            value = args[int(field)] if int(field) < len(args) else None
        elif field is not None:
            value = named.get(field)
        found.append((before, value))
    return found


def _percent(text: str, given: list[ast.expr]) -> list[tuple[str, ast.expr | None]]:
    found: list[tuple[str, ast.expr | None]] = []
    end = 0
    plain = text.replace("%%", "\0\0")
    for value, match in zip(given, _PERCENT.finditer(plain), strict=False):
        found.append((text[end : match.start()], value))
        end = match.end()
    return found
