"""Builds the prompt of a step within a character limit, for any size of graph, state and model answers."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from attrs import asdict, frozen

from ....adapters.graph import Caps
from ....adapters.state import StateStore
from ....lang.catalogue.language_card import language_card
from ....lang.catalogue.schema import Attribute, Schema
from ...excerpts import PromptError, clipped, cut, excerpt, fenced, fill, read_prompt
from ...gasl.records import coverage
from .traversal_results import Step

# The views of the graph, the state and the earlier steps in a prompt: JSON lines, each view with its own character limit.
# The time to build a view depends on the length of the shown text, not on the size of the data.

_NAME = 80
_VALUE = 60
_VALUES = 8
_ATTRIBUTES = 60
_KEYS = 40
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_HEAD = 240
"""Maximum characters of name, type, size and description in a key's line, before the sample."""
_SAMPLE, _ITEMS = 4_000, 40
"""Maximum number of characters and of items in the sample of a key."""
_OUTPUTS, _OUTPUT = 3, 2_000
_MENDED = 5
_COMMAND = 400
_MESSAGE = 400


def fitted(lines: Iterable[str], most: int) -> str:
    """Return the lines that fit into ``most`` characters; if lines are omitted, the last line says so."""
    kept: list[str] = []
    room, left_out = most - 30, False
    for line in lines:
        if len(line) + 1 > room:
            left_out = True
            continue
        kept.append(line)
        room -= len(line) + 1
    return "\n".join([*kept, "… [more is left out]"] if left_out else kept)


def graph_view(schema: Schema, caps: Caps, ceiling: Caps, most: int) -> str:
    """Show a graph's schema: sizes, ids, caps and ceilings, labels and relations, attributes with types, ranges and frequent values."""
    return fitted(_graph_lines(schema, caps, ceiling), most)


def _graph_lines(schema: Schema, caps: Caps, ceiling: Caps) -> Iterator[str]:
    kind = f"{'directed' if schema.directed else 'undirected'}{' multigraph' if schema.multi else ' graph'}"
    yield f"{kind}: {schema.nodes:,} nodes, {schema.edges:,} edges"
    if schema.ids:
        yield f"ids of nodes: {', '.join(schema.id_types)}, such as {', '.join(map(_quoted, schema.ids))}"
    most = asdict(ceiling)
    limits = (
        f"{name} {value:,}{f' (at most {most[name]:,})' if most[name] != value else ''}"
        for name, value in asdict(caps).items()
    )
    yield f"caps, which SET adapter.caps.NAME = value changes: {', '.join(limits)}"
    for what, attribute, counts, form in (
        ("labels of nodes", schema.label_attribute, schema.labels, "(p:{})"),
        ("relations of edges", schema.relation_attribute, schema.relations, "-[r:{}]-"),
    ):
        if attribute is not None and counts:
            shown = ", ".join(f"{_quoted(value)} ({count:,})" for value, count in islice(counts.items(), _VALUES))
            more = f", … {len(counts) - _VALUES:,} more" if len(counts) > _VALUES else ""
            name = _short_name(attribute)
            example = next((value for value in counts if _IDENTIFIER.fullmatch(value)), None)
            means = "" if example is None else f"; {form.format(example)} means {name} = {_quoted(example)}"
            yield f"{what}, attribute {name}: {shown}{more}{means}"
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
    if attribute.lowest is not None and attribute.lowest != attribute.highest:
        line += f", from {_quoted(attribute.lowest)} to {_quoted(attribute.highest)}"
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
        if each.size and (shown := snapshot.sample(each.key, max(3, min(_ITEMS, room // 30)))[1]):
            columns = _columns_of(shown)
            named = f"; columns: {_listed_columns(columns)}" if columns else ""
            line += f"{named}; such as {excerpt(shown, max(80, room - len(named)), _ITEMS, marked=not columns)}"
        lines.append(line)
    if len(declared) > _KEYS:
        lines.append(f"… {len(declared) - _KEYS:,} more keys")
    return fitted(lines, most)


_COLUMNS = 60
"""Maximum number of columns that are listed."""


def _columns_of(items: Any) -> tuple[str, ...]:
    """Return the names of the columns of a list of objects; empty for any other value."""
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        return ()
    return tuple(dict.fromkeys(str(name) for item in items for name in item))


def _listed_columns(names: Sequence[str]) -> str:
    more = f" and {len(names) - _COLUMNS:,} more" if len(names) > _COLUMNS else ""
    return f"{', '.join(map(_short_name, names[:_COLUMNS]))}{more}"


def _output_lines(entry: Mapping[str, Any], most: int) -> list[str]:
    """Show the names of all columns of a command's output, and the beginning of the output."""
    name, output = _short_name(str(entry.get("variable"))), entry["output"]
    fields = ((entry.get("metrics") or {}).get("shape") or {}).get("fields")
    columns = (
        [str(each) for each in fields] if isinstance(fields, list) and isinstance(output, list) else _columns_of(output)
    )
    if not columns:
        return [f"  {name} = {excerpt(output, most)}"]
    # An item of the history says how many of its fields it lacks; the list of columns says which.
    items = [
        {key: value for key, value in item.items() if key != "…"} if isinstance(item, Mapping) else item
        for item in output
    ]
    line = f"  columns of {name}: {clipped(_listed_columns(columns), max(80, most // 2))}"
    return [line, f"  {name} = {excerpt(items, max(80, most - len(line)), marked=False)}"]


def outcome_view(step: Step, most: int) -> str:
    """Show the result of each command of a step: status, count and message, and columns and beginning of the last outputs."""
    given = sum(_gives(entry) for entry in step.entries)
    values = max(80, min(_OUTPUT, most * 3 // 4 // max(1, min(_OUTPUTS, given))))
    lines, shown = [], 0
    for entry in reversed(step.entries):
        extra = []
        if shown < _OUTPUTS and _gives(entry):
            shown += 1
            extra = _output_lines(entry, values)
        lines.append("\n".join([_entry_line(entry), *extra]))
    mended = fitted((f"mended before it ran: {clipped(each, 200)}" for each in step.mended[:_MENDED]), most // 4)
    room = most - len(mended) - 1
    done = fitted(reversed(_last(lines, room - 60)), room)
    return f"{mended}\n{done}" if mended else done


def _gives(entry: Mapping[str, Any]) -> bool:
    return entry.get("output") not in (None, [], {})


def _last(lines: Sequence[str], most: int) -> list[str]:
    """Return the lines that fit, in the given order (latest first); a line that is too long is skipped."""
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
    for note in coverage(entry.get("metrics") or {}):
        told += f"; note: {clipped(note, _MESSAGE)}"
    return told


def trail_view(steps: Sequence[Step], most: int) -> str:
    """Show hypothesis and result of each step before the last one, a line per step; if not all lines fit, show the latest steps."""
    lines = []
    for step in reversed(steps):
        supposed = clipped(step.rationale or step.supposed.hypothesis or step.supposed.why, 200)
        done = "; ".join(entry_summary(entry) for entry in step.entries[:4])
        faults = clipped(step.faults, 200) if step.status == "refused" else ""
        lines.append(
            f"step {step.number}, {step.supposed.decision}: {supposed} -> {step.status}: {clipped(faults or done, 400)}"
        )
    return "\n".join(reversed(_last(lines, most)))


def entry_summary(entry: Mapping[str, Any]) -> str:
    """Return a command with its status and count, in one line."""
    count = (entry.get("summary") or {}).get("count")
    return f"{clipped(str(entry.get('command', '')), 90)} -> {entry.get('status')}" + (
        f" {count:,}" if isinstance(count, int | float) else ""
    )


_SHARES = {"refused": 0.25, "search": 0.15, "outcome": 0.3, "trail": 0.15, "state": 0.45, "schema": 1.0}
"""Share of the remaining space that each view may use; the views are built in this order."""
_FENCES = 60
"""Maximum characters of the fences and the text around a view."""


@frozen
class Refused:
    """A rejected answer and its faults. ``written`` is the text to which the spans of its diagnostics refer."""

    answer: str
    faults: str
    written: str = ""


def build_prompt(
    question: str,
    schema: Schema,
    caps: Caps,
    ceiling: Caps,
    state: StateStore,
    steps: Sequence[Step],
    refused: Refused | None,
    most: int,
    branches: int = 1,
    tree: Sequence[str] = (),
) -> str:
    """Return the prompt for the step after ``steps``, of at most ``most`` characters. Data is placed between fences.

    ``branches`` is the number of requested plans, which are tried in parallel. ``tree`` are lines about the branch of a search that led
    here and about its siblings. The prompt allows an answer only if ``may_end`` is true.
    """
    room = most
    while room > 0:
        prompt = _built(question, schema, (caps, ceiling), state, steps, refused, room, branches, tree)
        if len(prompt) <= most:
            return prompt
        room -= max(200, len(prompt) - most)  # a fence grows with the backticks in its content
    raise PromptError(f"the prompt does not fit into {most:,} characters")


def _built(
    question: str,
    schema: Schema,
    limits: tuple[Caps, Caps],
    state: StateStore,
    steps: Sequence[Step],
    refused: Refused | None,
    most: int,
    branches: int,
    tree: Sequence[str],
) -> str:
    package = __package__ or ""
    values = {
        "question": fenced(cut(question, max(500, most // 6))),
        "language": language_card(),
        "task": _task(package, state, bool(steps), branches),
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
    if tree:
        values["search"] = f"THE SEARCH (this branch and its siblings)\n{fenced(fitted(tree, share('search')))}"
        left -= len(values["search"])
    if steps:
        last, head = steps[-1], f"THE LAST STEP ({steps[-1].status})"
        told = cut(last.faults, share("outcome")) if last.status == "refused" else outcome_view(last, share("outcome"))
        supposed = f"hypothesis: {clipped(last.supposed.hypothesis, 300)}"
        if last.rationale:
            supposed += f"\nrationale of the plan: {clipped(last.rationale, 300)}"
        values["outcome"] = f"{head}\n{fenced(supposed + chr(10) + told)}"
        left -= len(values["outcome"])
        if steps[:-1]:
            values["trail"] = f"EARLIER STEPS\n{fenced(trail_view(steps[:-1], share('trail')))}"
            left -= len(values["trail"])
    values["state"] = fenced(state_view(state, share("state")))
    left -= len(values["state"])
    values["schema"] = fenced(graph_view(schema, *limits, share("schema")))
    return fill(template, values)


def may_end(state: StateStore, later: bool) -> bool:
    """Return whether the planner may answer: the state has findings or, in a ``later`` step, at least one declared key."""
    declared = state.snapshot().declared()
    return bool(declared) and (later or any(each.size for each in declared))


def _task(package: str, state: StateStore, later: bool, branches: int) -> str:
    ending = read_prompt(package, "ending" if may_end(state, later) else "no_ending")
    task = fill(read_prompt(package, "next" if later else "first"), {"ending": ending})
    if branches == 1:
        return task
    return f"{task.rstrip()}\n{fill(read_prompt(package, 'several'), {'branches': str(branches)})}"
