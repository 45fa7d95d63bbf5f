"""Computes forward pass and loss in float16 on the GPU, with gradients that a GradScaler scales.

For cards before Ampere, which have no units for bfloat16. Gradients are scaled up so that small ones do not become
zero, and scaled back before they are clipped; a step whose gradients overflow is left out.

Bad::

    import torch
    from torch import nn


    def train(model, optimizer, criterion, loader, device):
        for x, y in loader:
            output = model(x.to(device))
            loss = criterion(output, y.to(device))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()


    def main(loader, device):
        model = nn.Linear(4, 3).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            train(model, optimizer, nn.CrossEntropyLoss(), loader, device)

Good::

    import torch
    from torch import nn


    def train(model, optimizer, criterion, loader, device, scaler):
        for x, y in loader:
            with torch.autocast("cuda", dtype=torch.float16, enabled=torch.cuda.is_available()):
                output = model(x.to(device))
                loss = criterion(output, y.to(device))
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()


    def main(loader, device):
        model = nn.Linear(4, 3).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cuda", enabled=torch.cuda.is_available())
        for epoch in range(3):
            train(model, optimizer, nn.CrossEntropyLoss(), loader, device, scaler)

Bad::

    import torch
    from torch import nn

    D, G = nn.Linear(2, 1), nn.Linear(4, 2)
    opt_d, opt_g = torch.optim.Adam(D.parameters()), torch.optim.Adam(G.parameters())

    for real in torch.rand(8, 4, 2):
        fake = G(torch.randn(4, 4))
        loss_d = D(fake.detach()).mean() - D(real).mean()
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()

        loss_g = -D(fake).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()

Good::

    import torch
    from torch import nn

    D, G = nn.Linear(2, 1), nn.Linear(4, 2)
    opt_d, opt_g = torch.optim.Adam(D.parameters()), torch.optim.Adam(G.parameters())
    scaler = torch.amp.GradScaler("cuda", enabled=torch.cuda.is_available())

    for real in torch.rand(8, 4, 2):
        with torch.autocast("cuda", dtype=torch.float16, enabled=torch.cuda.is_available()):
            fake = G(torch.randn(4, 4))
            loss_d = D(fake.detach()).mean() - D(real).mean()
        opt_d.zero_grad()
        scaler.scale(loss_d).backward()
        scaler.step(opt_d)

        with torch.autocast("cuda", dtype=torch.float16, enabled=torch.cuda.is_available()):
            loss_g = -D(fake).mean()
        opt_g.zero_grad()
        scaler.scale(loss_g).backward()
        scaler.step(opt_g)
        scaler.update()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import Change
from torchport.check.rules.training import loss_of, optimizer_steps, stepped
from torchport.check.source import Source
from torchport.migrate.imports import behind_imports, named, quote
from torchport.migrate.passing import passed
from torchport.migrate.precision import Region, mixed
from torchport.migrate.recipe import Recipe, Unsuited, Variant
from torchport.migrate.recipes import checkpoint
from torchport.migrate.tree import Tree
from torchport.text import _, mark

_CLIPS = tuple(
    f"torch.nn.utils{part}.{name}"
    for part in ("", ".clip_grad")
    for name in ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm")
)


def variants(tree: Tree, entry: str) -> Iterator[Variant]:
    """As for ``amp``, with gradients scaled in every file that trains."""
    for found in mixed(tree, entry, "float16"):
        files = {region.source.path: region.source for region in found.regions}
        scaled = {path: _scaled(each, found.regions) for path, each in files.items()}
        yield {path: [*edits, *scaled.get(path, [])] for path, edits in found.variant.items()}


def _scaled(source: Source, regions: tuple[Region, ...]) -> list[Change]:
    """The scaler where the optimizer is made, and its use in each step of one file."""
    if source.calls("torch.autograd.grad"):
        raise Unsuited(_("it takes gradients of gradients, which would have to be scaled by hand"))
    steps = optimizer_steps(source)
    if not steps:
        raise Unsuited(_("{path} takes no optimizer steps").format(path=source.path))
    name, edits, made = _made(source, steps)
    edits += _saved(source, name, made)
    for region in regions:
        loss = loss_of(region.backward)
        if region.source is source and loss is not None:
            start, end = _with_parentheses(source, loss)
            text = source.code(loss)
            edits.append((start, end, f"{name}.scale({text})"))
    for step in steps:
        optimizer = stepped(source, step)
        assert optimizer is not None
        edits.append(changes.replace(source, step, f"{name}.step({source.code(optimizer)})"))
        if _is_last(source, step, steps):
            edits.append(changes.after(source, source.statement(step), f"{name}.update()"))
    return [*edits, *_unscaled(source, steps, name)]


def _made(source: Source, steps: list[ast.Call]) -> tuple[str, list[Change], ast.stmt | None]:
    """The name of the scaler, the statement that makes it and what that stands behind: the last optimizer, else the
    imports.
    """
    torch, _missing = named(source, "torch")
    q = quote(source)
    scaler = f"{torch}.amp.GradScaler({q}cuda{q}, enabled={torch}.cuda.is_available())"
    built = [
        each
        for each in source.nodes(ast.Assign)
        if any(source.name(call.func).startswith("torch.optim.") for call in _calls(each.value))
        and any(source.code(target) in _stepped_names(source, steps) for target in _targets(each))
    ]
    if built:
        last = max(built, key=lambda each: each.lineno)
        if source.code(_targets(last)[0]).startswith("self."):
            return "self.scaler", [changes.after(source, last, f"self.scaler = {scaler}")], last
        ways = [passed(source, "scaler", step, last) for step in steps]
        if None not in ways and source.enclosing(last, ast.If, ast.Try) is None:
            known = {change for way in ways for change in way or ()}
            return "scaler", [changes.after(source, last, f"scaler = {scaler}"), *known], last
    return "scaler", [behind_imports(source, f"scaler = {scaler}")], None


def _saved(source: Source, name: str, made: ast.stmt | None) -> list[Change]:
    """The scaler among what the checkpoint recipe saves and loads."""
    return [
        changes.add_argument(source, call, f"scaler={name}")
        for call in source.nodes(ast.Call)
        if isinstance(call.func, ast.Name)
        and call.func.id in checkpoint.FUNCTIONS
        and (made is None or (passed(source, name, call, made) == [] and call.lineno > made.lineno))
    ]


def _stepped_names(source: Source, steps: list[ast.Call]) -> set[str]:
    return {source.code(each) for step in steps if (each := stepped(source, step)) is not None}


def _targets(statement: ast.Assign) -> list[ast.expr]:
    found: list[ast.expr] = []
    for each in statement.targets:
        found += each.elts if isinstance(each, (ast.Tuple, ast.List)) else [each]
    return found


def _calls(node: ast.AST) -> list[ast.Call]:
    return [each for each in ast.walk(node) if isinstance(each, ast.Call)]


def _is_last(source: Source, step: ast.Call, steps: list[ast.Call]) -> bool:
    """Whether no other step follows in the same block: ``update`` comes once a round."""
    block = source.parent(source.statement(step))
    later = [each for each in steps if source.parent(source.statement(each)) is block and each.lineno > step.lineno]
    return not later


def _unscaled(source: Source, steps: list[ast.Call], name: str) -> list[Change]:
    """``unscale_`` before gradients are clipped, for the optimizer that steps next."""
    found: list[Change] = []
    for clip in source.calls(*_CLIPS):
        later = [
            each for each in steps if each.lineno >= clip.lineno and source.function(each) is source.function(clip)
        ]
        optimizer = stepped(source, later[0]) if later else None
        if optimizer is not None:
            text = f"{name}.unscale_({source.code(optimizer)})"
            found.append(changes.before(source, source.statement(clip), text))
    return list(dict.fromkeys(found))


def _with_parentheses(source: Source, node: ast.expr) -> tuple[int, int]:
    """A node with the parentheses around it: ``(loss / 2).backward()``."""
    start, end = source.span(node)
    while source.text[start - 1 : start] == "(" and source.text[end : end + 1] == ")":
        start, end = start - 1, end + 1
    return start, end


# float16 keeps 11 bits, but its first steps may overflow and be left out, and all later losses lag behind.
TOLERANCE = 0.05
META = Recipe("amp-fp16", mark("forward pass and loss in float16, with a GradScaler"), variants, tolerance=TOLERANCE)
