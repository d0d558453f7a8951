"""Builds the prompt of a step within a character limit, for any size of graph, state and model answers."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from attrs import asdict, frozen

from ....adapters.graph import Caps
from ....adapters.state import StateStore
from ....lang.catalogue.commands import described
from ....lang.catalogue.schema import Attribute, Schema
from ...excerpts import clipped, cut, excerpt, fenced, fill, read_prompt
from .traversal_results import Step

# The views of the graph, the state and the earlier steps in a prompt: JSON lines, each view with its own character limit.
# The time to build a view depends on the length of the shown text, not on the size of the data.

_NAME = 80
_VALUE = 60
_VALUES = 8
_ATTRIBUTES = 60
_KEYS = 40
_HEAD = 240
"""Maximum characters of name, type, size and description in a key's line, before the sample."""
_SAMPLE, _ITEMS = 4_000, 40
"""Maximum number of characters and of items in the sample of a key."""
_OUTPUTS, _OUTPUT = 3, 2_000
_MENDED = 5
_COMMAND = 400
_MESSAGE = 400


def fitted(lines: Iterable[str], most: int) -> str:
    """Return the lines that fit into ``most`` characters; if lines are left out, the last line says so."""
    kept: list[str] = []
    room, left_out = most - 30, False
    for line in lines:
        if len(line) + 1 > room:
            left_out = True
            continue
        kept.append(line)
        room -= len(line) + 1
    return "\n".join([*kept, "… [more is left out]"] if left_out else kept)


def graph_view(schema: Schema, caps: Caps, most: int) -> str:
    """Show a graph's schema: sizes, labels and relations with counts, attributes with types and frequent values, the caps."""
    return fitted(_graph_lines(schema, caps), most)


def _graph_lines(schema: Schema, caps: Caps) -> Iterator[str]:
    kind = f"{'directed' if schema.directed else 'undirected'}{' multigraph' if schema.multi else ' graph'}"
    yield f"{kind}: {schema.nodes:,} nodes, {schema.edges:,} edges"
    yield "caps: " + ", ".join(f"{name} {value:g}" for name, value in asdict(caps).items())
    for what, attribute, counts in (
        ("labels of nodes", schema.label_attribute, schema.labels),
        ("relations of edges", schema.relation_attribute, schema.relations),
    ):
        if attribute is not None and counts:
            shown = ", ".join(f"{_quoted(value)} ({count:,})" for value, count in islice(counts.items(), _VALUES))
            more = f", … {len(counts) - _VALUES:,} more" if len(counts) > _VALUES else ""
            yield f"{what}, attribute {_short_name(attribute)}: {shown}{more}"
    for what, total, attributes in (
        ("node", schema.nodes, schema.node_attributes), ("edge", schema.edges, schema.edge_attributes)
    ):  # fmt: skip
        yield f"attributes of {what}s:{'' if attributes else ' none'}"
        for each in islice(attributes.values(), _ATTRIBUTES):
            yield _attribute(each, total)
        if len(attributes) > _ATTRIBUTES:
            yield f"- … {len(attributes) - _ATTRIBUTES:,} more"


def _attribute(attribute: Attribute, total: int) -> str:
    types = ", ".join(attribute.types)
    on = "" if attribute.count >= total else f", on {attribute.count:,} of {total:,}"
    line = f"- {_short_name(attribute.name)}: {types}{on}"
    if attribute.values:
        shown = ", ".join(f"{_quoted(value)} ({count:,})" for value, count in attribute.values[:_VALUES])
        different = "more than were counted" if attribute.distinct is None else f"{attribute.distinct:,} different"
        line += f"; {different}, such as {shown}"
    return line


def _short_name(name: str) -> str:
    return clipped(str(name), _NAME)


def _quoted(value: Any) -> str:
    return json.dumps(clipped(value, _VALUE) if isinstance(value, str) else value, ensure_ascii=False, default=str)


def state_view(state: StateStore, most: int) -> str:
    """Show the declared keys with type, size, description and a few items; the samples of items share the remaining space."""
    snapshot = state.snapshot()
    declared = snapshot.declared()
    if not declared:
        return "nothing is declared yet"
    lines = []
    room = max(60, min(_SAMPLE, (most - 60) // min(len(declared), _KEYS) - _HEAD))
    for each in declared[:_KEYS]:
        about = f" — {clipped(each.description, 120)}" if each.description else ""
        line = f"{_short_name(each.key)} {each.type}, {each.size:,}{about}"
        if each.incomplete:
            line += f" — incomplete: {clipped('; '.join(each.incomplete), 200)}"
        if each.size and (shown := snapshot.sample(each.key, max(3, min(_ITEMS, room // 40)))[1]):
            line += f"; such as {excerpt(shown, room, _ITEMS)}"
        lines.append(line)
    if len(declared) > _KEYS:
        lines.append(f"… {len(declared) - _KEYS:,} more keys")
    return fitted(lines, most)


def outcome_view(step: Step, most: int) -> str:
    """Show the result of each command of a step: status, count and message, and the beginning of the last outputs."""
    given = sum(_gives(entry) for entry in step.entries)
    values = max(80, min(_OUTPUT, most * 3 // 4 // max(1, min(_OUTPUTS, given))))
    lines, shown = [], 0
    for entry in reversed(step.entries):
        extra = []
        if shown < _OUTPUTS and _gives(entry):
            shown += 1
            extra.append(f"  {_short_name(str(entry.get('variable')))} = {excerpt(entry['output'], values)}")
        lines.append("\n".join([_entry_line(entry), *extra]))
    mended = fitted((f"mended before it ran: {clipped(each, 200)}" for each in step.mended[:_MENDED]), most // 4)
    room = most - len(mended) - 1
    done = fitted(reversed(_last(lines, room - 60)), room)
    return f"{mended}\n{done}" if mended else done


def _gives(entry: Mapping[str, Any]) -> bool:
    return entry.get("output") not in (None, [], {})


def _last(lines: Sequence[str], most: int) -> list[str]:
    """Return the lines that fit, in the given order, which is the latest first; a line that is too long is skipped."""
    kept: list[str] = []
    left_out = False
    for line in lines:
        if len(line) + 1 > most:
            left_out = True
            continue
        kept.append(line)
        most -= len(line) + 1
    return [*kept, "… [some are left out]"] if left_out else kept


def _entry_line(entry: Mapping[str, Any]) -> str:
    count = (entry.get("summary") or {}).get("count")
    told = f"{clipped(str(entry.get('command', '')), _COMMAND)} -> {entry.get('status')}"
    if isinstance(count, int | float):
        told += f" {count:,}"
    if caps := (entry.get("metrics") or {}).get("caps_hit"):
        told += f", cut short by {excerpt(caps, 120)}"
    if found := (entry.get("metrics") or {}).get("incomplete_from"):
        told += f", from incomplete {excerpt(found, 120)}"
    error = entry.get("error")
    if isinstance(error, Mapping):
        told += f": {clipped(str(error.get('message', '')), _MESSAGE)}"
        if error.get("hint"):
            told += f" ({clipped(str(error['hint']), _MESSAGE)})"
    return told


def trail_view(steps: Sequence[Step], most: int) -> str:
    """Show hypothesis and result of each step before the last one, a line per step; if not all lines fit, show the latest steps."""
    lines = []
    for step in reversed(steps):
        supposed = clipped(step.supposed.hypothesis or step.supposed.why, 200)
        done = "; ".join(_entry_summary(entry) for entry in step.entries[:4])
        faults = clipped(step.faults, 200) if step.status == "refused" else ""
        lines.append(
            f"step {step.number}, {step.supposed.decision}: {supposed} -> {step.status}: {clipped(faults or done, 400)}"
        )
    return "\n".join(reversed(_last(lines, most)))


def _entry_summary(entry: Mapping[str, Any]) -> str:
    count = (entry.get("summary") or {}).get("count")
    return f"{clipped(str(entry.get('command', '')), 90)} -> {entry.get('status')}" + (
        f" {count:,}" if isinstance(count, int | float) else ""
    )


_SHARES = {"refused": 0.25, "outcome": 0.3, "trail": 0.15, "state": 0.45, "schema": 1.0}
"""Share of the remaining space that each view may use; the views are built in this order."""
_FENCES = 60
"""Maximum characters of the fences and the text around a view."""


@frozen
class Refused:
    """A rejected answer and its faults."""

    answer: str
    faults: str


def build_prompt(
    question: str,
    schema: Schema,
    caps: Caps,
    state: StateStore,
    steps: Sequence[Step],
    refused: Refused | None,
    most: int,
    branches: int = 1,
) -> str:
    """Return the prompt for the step after ``steps``, of at most ``most`` characters. Data is placed between fences.

    ``branches``: number of requested plans, which are tried in parallel.
    """
    room = most
    while True:
        prompt = _built(question, schema, caps, state, steps, refused, room, branches)
        if len(prompt) <= most:
            return prompt
        room -= max(200, len(prompt) - most)  # a fence grows with the backticks in its content


def _built(
    question: str,
    schema: Schema,
    caps: Caps,
    state: StateStore,
    steps: Sequence[Step],
    refused: Refused | None,
    most: int,
    branches: int,
) -> str:
    package = __package__ or ""
    values = {
        "question": fenced(cut(question, max(500, most // 6))),
        "language": fill(read_prompt(package, "language"), {"commands": described(for_planner=True)}),
        "task": _task(package, bool(steps), branches),
        **dict.fromkeys(_SHARES, ""),
    }
    template = read_prompt(package, "step")
    left = max(800, most - len(template) - sum(map(len, values.values())) - _FENCES * len(_SHARES))

    def share(name: str) -> int:
        return int(left * _SHARES[name])

    if refused is not None:
        part = share("refused")
        values["refused"] = fill(
            read_prompt(package, "refused"),
            {"answer": fenced(clipped(refused.answer, part // 3)), "faults": fenced(cut(refused.faults, part // 2))},
        )
        left -= len(values["refused"])
    if steps:
        last, head = steps[-1], f"THE LAST STEP ({steps[-1].status})"
        told = cut(last.faults, share("outcome")) if last.status == "refused" else outcome_view(last, share("outcome"))
        supposed = clipped(last.supposed.hypothesis, 300)
        values["outcome"] = f"{head}\n{fenced(f'supposed: {supposed}' + chr(10) + told)}"
        left -= len(values["outcome"])
        if steps[:-1]:
            values["trail"] = f"EARLIER STEPS\n{fenced(trail_view(steps[:-1], share('trail')))}"
            left -= len(values["trail"])
    values["state"] = fenced(state_view(state, share("state")))
    left -= len(values["state"])
    values["schema"] = fenced(graph_view(schema, caps, share("schema")))
    return fill(template, values)


def _task(package: str, later: bool, branches: int) -> str:
    task = read_prompt(package, "next" if later else "first")
    if branches == 1:
        return task
    return f"{task.rstrip()}\n{fill(read_prompt(package, 'several'), {'branches': str(branches)})}"
