"""Rules about what commands are given: lists where items are needed, nodes where nodes are, fields that rows have."""

from collections.abc import Iterator, Sequence

from ... import gasl
from ...conditions import Field, NullTest
from ...diagnostic import Diagnostic, Edit, Severity
from ...gasl import Command, Name, Path
from ...printer.gasl import format_key
from ...source import Span
from .flow import Use
from .registry import Context, Lint, lint
from .tests_of import leaves, tested

__all__ = ["LINTS", "fields_of"]

_OF_NODES = (gasl.Walk, gasl.Subgraph, gasl.Connect, gasl.Measure, gasl.FindPaths)
_OF_ITEMS = (gasl.SelectFields, gasl.SelectWhere, gasl.Count, gasl.Aggregate, gasl.Rank, gasl.Join, gasl.SetOperation,
             gasl.Process, gasl.Classify)  # fmt: skip
_WORDS: dict[type, str] = {
    gasl.Walk: "WALK", gasl.Subgraph: "SUBGRAPH", gasl.Connect: "CONNECT", gasl.Measure: "MEASURE",
    gasl.FindPaths: "FIND paths", gasl.SelectFields: "SELECT", gasl.SelectWhere: "SELECT", gasl.Count: "COUNT",
    gasl.Aggregate: "AGGREGATE", gasl.Rank: "RANK", gasl.Join: "JOIN", gasl.Process: "PROCESS", gasl.Classify: "CLASSIFY",
}  # fmt: skip


_OFFERED = 30
"""Fields that a hint lists at most."""


@lint("GASL059")
def wrong_kind(context: Context) -> Iterator[Diagnostic]:
    """Commands given what they can't work on."""
    for step, command in context.commands(*_OF_NODES, *_OF_ITEMS):
        word = command.kind if isinstance(command, gasl.SetOperation) else _WORDS[type(command)]
        for use in step.uses:
            if use.role != "source":
                continue
            if use.kind == "number":
                message = f"{word} takes a list of items, and {use.name} is a number"
                yield context.found("GASL059", message, use.span, "COUNT ... BY a field gives rows")
            elif isinstance(command, _OF_NODES) and not _has_nodes(use):
                what = (
                    "an answer" if use.kind in ("answer", "error") else f"rows of {', '.join(use.columns or ())[:80]}"
                )
                message = f"{word} takes nodes, and {use.name} is {what}"
                yield context.found("GASL059", message, use.span, "rows that have an id stand for nodes")


def _has_nodes(use: Use) -> bool:
    if use.kind in ("answer", "error"):
        return False
    if use.kind != "rows" or use.columns is None:
        return True
    return "id" in use.columns or "nodes" in use.columns or {"source", "target"} <= set(use.columns)


def fields_of(command: Command) -> Iterator[tuple[Name, Path]]:
    """Yield the fields of items that a command names, each with the variable whose items these are."""
    if isinstance(command, gasl.SelectFields):
        yield from ((command.source, path) for path in command.fields)
    elif isinstance(command, gasl.Count) and command.by is not None:
        yield command.source, command.by
    elif isinstance(command, gasl.Aggregate):
        yield command.source, command.by
        yield from ((command.source, made.field) for made in command.computations if made.field is not None)
    elif isinstance(command, gasl.Rank):
        yield command.source, command.by
    elif isinstance(command, gasl.Join | gasl.SetOperation):
        if command.left_field is not None:
            yield command.left, command.left_field
        if command.right_field is not None:
            yield command.right, command.right_field


@lint("GASL073")
def unknown_column(context: Context) -> Iterator[Diagnostic]:
    """Fields that rows surely don't have."""
    for step, command in context.commands(*_OF_ITEMS):
        for name, path in fields_of(command):
            use = step.use_of(name)
            if use is None or use.kind != "rows" or use.columns is None or _is_in(path, use.columns):
                continue
            yield _unknown(context, use, path, path.span, "error")
    for step, _ in context.commands(gasl.SelectWhere):
        for condition, on in tested(step):
            use = step.uses[0] if step.uses else None
            if on != "rows" or use is None or use.columns is None:
                continue
            for leaf in leaves(condition):
                field = leaf.test.left
                if (
                    not isinstance(field, Field)
                    or field.quantifier is not None
                    or _is_in(Path(field.path), use.columns)
                ):
                    continue
                decides = leaf.must and not isinstance(leaf.test, NullTest)
                yield _unknown(context, use, Path(field.path), field.span, "error" if decides else "warning")


def _unknown(context: Context, use: Use, path: Path, span: Span, severity: Severity) -> Diagnostic:
    columns = use.columns or ()
    near = context.suggestion(path.text, columns)
    edits = [Edit(span, format_key(Path(tuple(near.split(".")))))] if near and all(near.split(".")) else []
    more = f" and {len(columns) - _OFFERED} more" if len(columns) > _OFFERED else ""
    hints = [f"did you mean {near}?"] if near else []
    hints.append(f"there are: {', '.join(columns[:_OFFERED])}{more}" if columns else "they have no fields")
    message = f"the rows of {use.name} have no field {path.text}"
    return context.found("GASL073", message, span, *hints, edits=edits, severity=severity)


def _is_in(path: Path, columns: Sequence[str]) -> bool:
    return any(".".join(path.parts[:count]) in columns for count in range(1, min(len(path.parts), 100) + 1))


@lint("GASL060")
def repeated_field(context: Context) -> Iterator[Diagnostic]:
    """Fields that are listed twice."""
    for _, command in context.commands(gasl.SelectFields, gasl.Find, gasl.Aggregate):
        for this, before, what in _repeated(command):
            edit = Edit(type(this.span)(before.span.end, this.span.end), "")
            yield context.found("GASL060", f"{what} stands twice", this.span, "leave one out", edits=[edit])


_Listed = gasl.Path | gasl.Order | gasl.Computation


def _repeated(command: Command) -> Iterator[tuple[_Listed, _Listed, str]]:
    """Yield what is listed again, with what stands before it in the list, and its text."""
    listed: Sequence[_Listed] = ()
    if isinstance(command, gasl.SelectFields):
        listed = command.fields
    elif isinstance(command, gasl.Find):
        listed = command.order
    elif isinstance(command, gasl.Aggregate):
        listed = command.computations
    seen: set[str] = set()
    for place, item in enumerate(listed):
        path = item if isinstance(item, gasl.Path) else item.field
        text = path.text if path is not None else ""
        if isinstance(item, gasl.Computation):
            text = f"{item.function}({text})"
        if text in seen:
            yield item, listed[place - 1], text
        seen.add(text)


LINTS: tuple[Lint, ...] = (wrong_kind, repeated_field, unknown_column)
