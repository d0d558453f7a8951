"""Rules about keys of the state: declared before they are used, of one type, updated with what they can hold."""

from collections.abc import Iterator

from ... import gasl
from ...diagnostic import Diagnostic, Edit, Severity
from ...gasl import Key, StateType
from ...printer.gasl import format_key, format_name
from ...source import Span
from .flow import Step, Use
from .registry import Context, Lint, lint

__all__ = ["LINTS"]


@lint("GASL055")
def undeclared(context: Context) -> Iterator[Diagnostic]:
    """Keys that nobody has declared; each is reported once."""
    known: dict[str, StateType] = dict(context.state or {})
    if context.state is None and not any(True for _ in context.commands(gasl.Declare)):
        return  # nothing is known of the state that this runs on
    for step, command in context.commands(gasl.Declare, gasl.Reset, gasl.Update, gasl.Analyze):
        key: Key = command.key  # type: ignore[union-attr]  # these classes have one
        missing = _missing_parents(key, known)
        if isinstance(command, gasl.Declare):
            if missing:
                yield _undeclared(context, step, Key(missing[-1].parts, span=key.span), missing, [])
        elif key.text not in known:
            kind = _fitting(step)
            yield _undeclared(context, step, key, missing, [(key, kind)])
            known[key.text] = kind
        known.update((parent.text, "DICT") for parent in missing)
        if isinstance(command, gasl.Declare):
            known.setdefault(key.text, command.type)


def _missing_parents(key: Key, known: dict[str, StateType]) -> list[Key]:
    parents = [Key(key.parts[:count]) for count in range(1, min(len(key.parts), 100))]
    return [parent for parent in parents if parent.text not in known]


def _undeclared(
    context: Context, step: Step, key: Key, missing: list[Key], itself: list[tuple[Key, StateType]]
) -> Diagnostic:
    severity: Severity | None = (
        None if context.state is not None else "warning"
    )  # it may be declared by a plan that ran before
    near = _near(context, key) if itself else None
    if near is not None:
        parts = near.split(".")
        written = format_key(Key(tuple(parts)))
        edit = Edit(key.span, written)
        message = f"the key {key.text} is not declared"
        return context.found("GASL055", message, key.span, f"did you mean {written}?", edits=[edit], severity=severity)
    if isinstance(step.command, gasl.Analyze):
        message = f"the key {key.text} is not declared"
        return context.found(
            "GASL055", message, key.span, "UPDATE puts into a key what ANALYZE looks at", severity=severity
        )
    lines = [f"DECLARE {format_key(parent)} AS DICT" for parent in missing]
    lines += [f"DECLARE {format_key(each)} AS {kind}" for each, kind in itself]
    start = step.statement.span.start
    head = context.program.source.text.rfind("\n", 0, start) + 1
    before = context.program.source.text[head:start]
    indent = before if before.isspace() else ""
    what = "the key" if itself else "the parent key"
    message, hints = f"{what} {key.text} is not declared", [f"put {'; '.join(lines)} before it"]
    edits = [Edit(Span(start, start), "".join(f"{line}\n{indent}" for line in lines))]
    elsewhere = _elsewhere(context, key) if itself else None
    if elsewhere is not None:
        hints.insert(0, f"did you mean {format_key(Key(tuple(elsewhere.split('.'))))}?")
    if elsewhere is not None or not context.is_whole:  # what could not be read may declare it
        edits = []
    if itself and (not step.uses or step.uses[0].kind == "unknown"):  # the type is a guess
        edits = []
    return context.found("GASL055", message, key.span, *hints, edits=edits, severity=severity)


def _elsewhere(context: Context, key: Key) -> str | None:
    """Return the one key that ends like this one, where nothing is declared that this one could stand in."""
    if any(".".join(key.parts[:count]) in context.keys for count in range(1, min(len(key.parts), 100))):
        return None
    alike = [name for name in context.keys if name != key.text and name.split(".")[-1] == key.parts[-1]]
    return alike[0] if len(alike) == 1 else None


def _near(context: Context, key: Key) -> str | None:
    """Return the key that was most likely meant: a misspelt name under the same parent, or the same name under another."""
    if context.has_enough:
        return None
    above, last = key.parts[:-1], key.parts[-1]
    parted = [(name.split("."), name) for name in context.keys if name != key.text]
    siblings = {parts[-1]: name for parts, name in parted if tuple(parts[:-1]) == above}
    if len(last) > 2 and (near := context.suggestion(last, sorted(siblings))):
        return siblings[near]
    cousins = {".".join(parts[:-1]): name for parts, name in parted if parts[-1] == last and len(parts) > 1}
    parent = context.suggestion(".".join(above), sorted(cousins)) if above else None
    return cousins[parent] if parent else None


def _fitting(step: Step) -> StateType:
    """Return the type that a key should have for what it is updated with."""
    kind = step.uses[0].kind if step.uses else "unknown"
    if kind == "number" or (step.uses and _is_counts(step.uses[0])):
        return "COUNTER"
    return "DICT" if kind in ("answer", "subgraph", "error") else "LIST"


@lint("GASL056")
def redeclared(context: Context) -> Iterator[Diagnostic]:
    """Keys that have another type already."""
    lines: dict[str, Span] = {}
    known: dict[str, StateType] = dict(context.state or {})
    for _, command in context.commands(gasl.Declare):
        if not isinstance(command, gasl.Declare):
            continue
        key, before = command.key.text, known.get(command.key.text)
        if before is not None and before != command.type:
            where = f"in line {context.line(lines[key])}" if key in lines else "in the state"
            message = f"the key {key} is declared as {before} {where}, and can't be {command.type}"
            at = context.spelled(command.type, command.span, command.key.span.end)
            edits = [Edit(at, before)] if at else []
            yield context.found("GASL056", message, command.key.span, "a key keeps its type", edits=edits)
        known.setdefault(key, command.type)
        lines.setdefault(key, command.span)


@lint("GASL057")
def parent_is_no_dict(context: Context) -> Iterator[Diagnostic]:
    """Keys inside one that holds no keys."""
    known = _all_types(context)
    for _, command in context.commands(gasl.Declare):
        if isinstance(command, gasl.Declare):
            for count in range(1, min(len(command.key.parts), 100)):
                parent = ".".join(command.key.parts[:count])
                if known.get(parent, "DICT") != "DICT":
                    message = f"{parent} is a {known[parent]}, and only a DICT has keys in it"
                    yield context.found("GASL057", message, command.key.span, f"declare {parent} as DICT")
                    break


def _all_types(context: Context) -> dict[str, StateType]:
    """Return the type of every key: what the state says, else its first DECLARE."""
    types: dict[str, StateType] = dict(context.state or {})
    for _, command in context.commands(gasl.Declare):
        if isinstance(command, gasl.Declare):
            types.setdefault(command.key.text, command.type)
    return types


_WHAT = {
    "nodes": "a list of nodes", "edges": "a list of edges", "paths": "a list of paths", "rows": "a list of rows",
    "number": "a number", "answer": "an object", "subgraph": "an object", "error": "an object",
}  # fmt: skip


@lint("GASL058")
def wrong_shape(context: Context) -> Iterator[Diagnostic]:
    """Updates with what a key of this type can't hold."""
    types = _all_types(context)
    for step, command in context.commands(gasl.Update):
        if not isinstance(command, gasl.Update) or not step.uses or command.key.text not in types:
            continue
        use, kind = step.uses[0], types[command.key.text]
        what = _WHAT.get(use.kind)
        if what is None or _fits(kind, use):
            continue
        message = f"{command.key.text} is a {kind}, which takes {_TAKES[kind]}; {use.name} is {what}"
        yield context.found("GASL058", message, use.span, _remedy(kind, use))


_TAKES = {
    "LIST": "a list, or an object as one item",
    "DICT": "an object",
    "COUNTER": "a number, or counts of COUNT ... BY",
}


def _fits(kind: StateType, use: Use) -> bool:
    if kind == "LIST":
        return use.kind != "number"
    if kind == "DICT":
        return use.kind in ("answer", "subgraph", "error")
    return use.kind == "number" or (use.kind == "rows" and (use.columns is None or _is_counts(use)))


def _is_counts(use: Use) -> bool:
    return use.columns is not None and len(use.columns) == 2 and "count" in use.columns


def _remedy(kind: StateType, use: Use) -> str:
    if kind == "COUNTER":
        return f"COUNT {format_name(use.name)} AS n gives a number"
    if kind == "DICT":
        return "a list goes into a LIST" if use.kind != "number" else "a number goes into a COUNTER"
    return "a number goes into a COUNTER"


LINTS: tuple[Lint, ...] = (undeclared, redeclared, parent_is_no_dict, wrong_shape)
