"""An explanation written out: as an indented text from the output down to the reviews, and as JSON."""

from collections.abc import Sequence
from typing import Any

from ...diagnostic import printable
from ..expr.values import shown
from .explaining import Explanation, Selection, StepExplanation
from .rows import Row

__all__ = ["as_json", "as_text"]

_DEEPEST = 12
"""Levels that are indented; a longer chain goes on at this one."""

_LINE = 1_000
"""Characters of a line; a longer one is cut."""

_PARTS = 3
"""Parts of a long review that are told of."""
_EXCERPT = 90
"""Characters of a review that are shown."""


def as_text(explanation: Explanation, rows: Sequence[Row], *, reviews: int = 5) -> str:
    """Write the explanation for a terminal: each step below the one that needs it, told once, and of each at most ``reviews``.

    ``rows`` are those that were explained; their ``review``, ``id`` and ``excerpt`` are shown where they have them.
    """
    steps = {step.name: step for step in explanation.steps}
    lines: list[str] = []
    told: set[str] = set()
    stack = [(explanation.name, 0)]
    while stack:
        name, depth = stack.pop()
        step, indent = steps[name], "  " * min(depth, _DEEPEST)
        if name in told:
            lines.append(f"{indent}{_head(step)} (told above)")
            continue
        told.add(name)
        lines += [f"{indent}{_head(step)}", *(f"{indent}  {line}" for line in _body(step, explanation, rows, reviews))]
        stack += [(need, depth + 1) for need in reversed(step.needs)]
    return "\n".join(printable(line if len(line) <= _LINE else line[: _LINE - 1] + "…") for line in lines)


def _head(step: StepExplanation) -> str:
    if step.error:
        return f"{step.name} has no value: {step.error}"
    if step.kind == "filter":
        return f"{step.name} holds for {len(step.selections[0].used)} extractions"
    return f"{step.name} = {shown(step.value)}{', a constant' if step.kind == 'constant' else ''}"


def _body(step: StepExplanation, explanation: Explanation, rows: Sequence[Row], reviews: int) -> list[str]:
    operands = "".join(f", {name} = {shown(value)}" for name, value in step.operands)
    equals = f"{shown(step.value)} = " if step.kind == "formula" and not step.error else ""
    if step.kind == "constant":
        return []
    lines = [f"{equals}{step.operation}{operands}"]
    if step.rule:
        lines.append(step.rule)
    if step.matched is not None:
        keys = ", ".join(f"{shown(key)} gives {shown(value)}" for key, value in step.matched[:reviews])
        more = f", and {len(step.matched) - reviews} more" if len(step.matched) > reviews else ""
        lines.append(f"matched: {keys}{more}" if keys else "no key matches: the default")
    several = len(step.selections) > 1
    for selection in step.selections:
        over = f"{selection.words}: " if several else ""
        lines += _evidence(over, selection, explanation.rows, rows, reviews)
    return lines


def _evidence(over: str, selection: Selection, of: int, rows: Sequence[Row], reviews: int) -> list[str]:
    lines = [f"{over}{len(selection.used)} of {of} extractions"]
    for index, given in selection.used[:reviews]:
        lines.append(f"  {_row(index, given, rows[index], selection)}")
    if len(selection.used) > reviews:
        lines.append(f"  and {len(selection.used) - reviews} more")
    return lines


def _row(index: int, given: Any, row: Row, selection: Selection) -> str:
    name = f"review {row['review']}" if "review" in row else f"extraction {index}"
    known = f" {shown(row['id'])}" if row.get("id") not in (None, "") else ""
    fields = ", ".join(_read(row, read) for read in selection.reads)
    gave = f" gave {shown(given)}" if selection.gave else ""
    excerpt = str(row.get("excerpt") or "")
    quoted = f": {shown(excerpt, _EXCERPT)}" if excerpt else ""
    return f"{name}{known}{gave}{f' ({fields})' if fields else ''}{quoted}"


def _read(row: Row, read: str) -> str:
    namespace, _, name = read.partition(".")
    invalid = row.get("invalid" if namespace == "extraction" else "invalid_meta") or {}
    said = f" (invalid: {shown(invalid[name])})" if name in invalid else ""
    spans, parts = row.get("parts") or (), (row.get("decided") or {}).get(name, ()) if namespace == "extraction" else ()
    places = [f"{spans[part][0]:,} to {spans[part][1]:,}" for part in parts if part < len(spans)]
    where = (
        f" at characters {' and '.join(places[:_PARTS])}{' and more' if len(places) > _PARTS else ''}" if places else ""
    )
    return f"{name if namespace == 'extraction' else read} {shown(row.get(namespace, {}).get(name))}{said}{where}"


def as_json(explanation: Explanation) -> dict[str, Any]:
    """Return ``{name, value, rows, steps: [...]}``; a step has the attributes of ``StepExplanation``, empty ones left out."""
    return {
        "name": explanation.name,
        "value": explanation.value,
        "rows": explanation.rows,
        "steps": [_step_json(step) for step in explanation.steps],
    }


def _step_json(step: StepExplanation) -> dict[str, Any]:
    plain: dict[str, Any] = {"name": step.name, "kind": step.kind, "operation": step.operation}
    plain |= {"error": step.error} if step.error else {} if step.kind == "filter" else {"value": step.value}
    if step.operands:
        plain["operands"] = dict(step.operands)
    if step.rule:
        plain["rule"] = step.rule
    if step.matched is not None:
        plain["matched"] = dict(step.matched)
    if step.selections:
        plain["selections"] = [_selection_json(selection) for selection in step.selections]
    if step.needs:
        plain["needs"] = list(step.needs)
    return plain


def _selection_json(selection: Selection) -> dict[str, Any]:
    plain: dict[str, Any] = {"over": selection.words} if selection.words else {}
    plain["used"] = [index for index, _ in selection.used]
    if selection.gave:
        plain["gave"] = [given for _, given in selection.used]
    return {**plain, "reads": list(selection.reads)}
