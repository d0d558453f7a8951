"""Rules about the arguments of commands: lists of items, lists of nodes, fields of rows."""

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve

from ...catalogue.commands import BY_NODE, SETTINGS, fault_of
from ...catalogue.measures import MEASURES, meant_algorithm, other_result, weight_fault
from ...catalogue.schema import Schema
from ...diagnostic import Diagnostic, Edit, Severity
from ...printer.gasl_printer import format_condition, format_field, format_key, format_text
from ...row_columns import computed_name
from ...source import Span
from ...trees import Node, gasl, walk
from ...trees.conditions import Field, Variable
from ...trees.gasl import Command, Name, Path
from .context import Context, Step, Use, lint
from .fields import FieldRead, fields_read

_OFFERED = 30
"""Maximum number of fields that a hint lists."""


@lint("GASL059")
def wrong_kind(context: Context) -> Iterator[Diagnostic]:
    """Report commands whose arguments have an unsupported kind."""
    for step in context.steps:
        spec = BY_NODE.get(type(step.command))
        if spec is None or not spec.takes:
            continue
        word = step.command.kind if isinstance(step.command, gasl.SetOperation) else spec.word
        for use in step.uses:
            if use.role != "source":
                continue
            if isinstance(step.command, gasl.Measure) and use.span is getattr(step.command.edges, "span", None):
                yield from _no_edges(context, use)
            elif use.kind == "number":
                message = f"{word} takes a list of items, but {use.name} is a number"
                yield context.diagnostic("GASL059", message, use.span, "COUNT ... BY field returns rows")
            elif spec.takes == "nodes" and not _has_nodes(use):
                is_object = use.kind in ("answer", "error")
                what = (
                    "an answer" if is_object else f"a list of rows with the fields {', '.join(use.columns or ())[:80]}"
                )
                message = f"{word} takes nodes, but {use.name} is {what}"
                yield context.diagnostic("GASL059", message, use.span, "rows with an id are accepted as nodes")
    for step in context.steps:
        yield from _no_numbers(context, step)


def _no_edges(context: Context, use: Use) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the items after ON in MEASURE cannot be edges."""
    columns = use.columns
    lacks_ends = use.kind == "rows" and columns is not None and not {"source", "target"} <= set(columns)
    if use.kind not in ("number", "nodes", "answer", "error") and not lacks_ends:
        return
    what = {"number": "a number", "nodes": "a list of nodes", "rows": "a list of rows without source and target"}.get(
        use.kind, "an object"
    )
    hint = f"CONNECT {use.name} TO {use.name} AS inner finds the edges between nodes" if use.kind == "nodes" else ""
    message = f"MEASURE ... ON takes edges, paths or rows with source and target, but {use.name} is {what}"
    yield context.diagnostic(
        "GASL059", message, use.span, hint or "rows with the fields source and target are accepted as edges"
    )


_COUNTED = {"limit": "LIMIT", "max_length": "MAXLEN", "depth": "DEPTH", "sample": "SAMPLE", "count": "SHORTEST"}
_WHAT = {
    "nodes": "a list of nodes", "edges": "a list of edges", "paths": "a list of paths", "rows": "a list of rows",
    "subgraph": "an object", "answer": "an object", "error": "an object",
}  # fmt: skip


def _no_numbers(context: Context, step: Step) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each variable after LIMIT, MAXLEN, DEPTH, SAMPLE or SHORTEST that cannot hold a whole number."""
    for attribute, word in _COUNTED.items():
        number = getattr(step.command, attribute, None)
        use = next((use for use in step.uses if isinstance(number, Variable) and use.span is number.span), None)
        if use is None or not isinstance(number, Variable) or number.path:
            continue
        what, hint = _WHAT.get(use.kind, ""), f"COUNT {use.name} AS n returns a number: {word} ${{n}}"
        params = [binding.command for binding in use.bindings if isinstance(binding.command, gasl.Param)]
        if len(params) == len(use.bindings) == 1 and params[0].type != "INT":
            what, hint = f"a parameter of the type {params[0].type}", f"write PARAM {use.name} INT"
        if what:
            message = f"{word} takes a whole number, but {use.name} is {what}"
            yield context.diagnostic("GASL059", message, number.span, hint)


def _has_nodes(use: Use) -> bool:
    if use.kind in ("answer", "error"):
        return False
    if use.kind != "rows" or use.columns is None:
        return True
    return "id" in use.columns or "nodes" in use.columns or {"source", "target"} <= set(use.columns)


def fields_of(command: Command) -> Iterator[tuple[Name, Path]]:
    """Yield a pair for each field that a command uses: the variable that holds the items, and the field."""
    if isinstance(command, gasl.Join | gasl.SetOperation):
        for pair in command.on:
            yield from ((command.left, field) for field in _fields_in(pair.left))
            yield from ((command.right, field) for field in _fields_in(pair.other))
    elif isinstance(source := getattr(command, "source", None), Name):
        for part in ("columns", "by", "computations", "per"):
            for root in _roots(getattr(command, part, ())):
                yield from ((source, field) for field in _fields_in(root))


def _roots(part: Node | tuple[Node, ...]) -> tuple[Node, ...]:
    return (part,) if isinstance(part, Node) else part


def _fields_in(value: Node) -> Iterator[Field]:
    return (node for node in walk(value) if isinstance(node, Field))


def unknown_columns(context: Context) -> Iterator[Diagnostic]:
    """Report unknown fields of rows, and unknown names in conditions on patterns."""
    for step in context.steps:
        for read in fields_read(context, step):
            columns = read.scope.contents.columns
            if read.scope.on not in ("rows", "patterns") or columns is None or read.field.quantifier is not None:
                continue
            if not is_in(read.field, columns) and not is_bare_name(read):
                yield _unknown(context, read, columns)


def is_bare_name(read: FieldRead) -> bool:
    """Return whether a field may be an unquoted string.

    It may be a string if it is the right side of a test, and its path does not show that it is a field.
    """
    path = read.field.path
    if read.side != "right" or read.field.quantifier is not None:
        return False
    return len(path) == 1 or path[0] not in {"source", "target", "node", "edge", *read.scope.contents.parts}


def _unknown(context: Context, read: FieldRead, columns: Sequence[str]) -> Diagnostic:
    path, span, scope = read.field, read.field.span, read.scope
    near = context.suggestion(path.text, columns)
    edits = [context.replaced(span, format_key(Path(tuple(near.split(".")))))] if near and all(near.split(".")) else []
    more = f" and {len(columns) - _OFFERED} more" if len(columns) > _OFFERED else ""
    hints = [f"did you mean {format_field(near)}?"] if near else []
    listed = ", ".join(map(format_field, columns[:_OFFERED]))
    if scope.on == "patterns":
        message = f"the patterns have no name {path.path[0]}"
        holders = [name for name, part in scope.contents.parts.items() if _has(context.schema, part, path)]
        if holders and not near:
            hints.append(f"write {holders[0]}.{format_key(path)} for the field of {holders[0]}")
        hints.append(f"the names are {listed}{more}" if columns else "name the nodes: (p)-[r]->(q)")
    elif len(path.path) > 1 and path.path[0] == scope.name and is_in(Field(path.path[1:]), columns):
        message, written = f"the rows of {scope.name} have no field {path.text}", format_key(Path(path.path[1:]))
        edits, hints = [context.replaced(span, written)], []
        hints.append(f"write {written}: a field is written without the name of the variable")
    else:
        message = f"the rows of {scope.name} have no field {path.text}"
        hints.append(f"the fields are {listed}{more}" if columns else "the rows have no fields")
        if path.path[0] in _COMPUTED and not near:
            hints.insert(0, f"add it before the items become rows: SELECT name FIELDS id, {path.text} AS rows")
    severity: Severity = "error" if read.must else "warning"
    return context.diagnostic("GASL073", message, span, *hints, edits=edits, severity=severity)


_COMPUTED = frozenset({"degree", "in_degree", "out_degree"})


def _has(schema: Schema | None, part: str, path: Path) -> bool:
    """Return whether the nodes or edges of the graph have the attribute ``path``."""
    if schema is None:
        return part == "nodes"
    known = schema.node_attributes if part == "nodes" else schema.edge_attributes if part == "edges" else {}
    return path.path[0] in known or path.text in known


def is_in(path: Path, columns: Sequence[str]) -> bool:
    """Return whether a field is one of the columns, or part of a column."""
    return any(".".join(path.parts[:count]) in columns for count in range(1, min(len(path.parts), 100) + 1))


@lint("GASL060")
def repeated_field(context: Context) -> Iterator[Diagnostic]:
    """Report fields that are listed twice."""
    for _, command in context.commands(
        gasl.Select, gasl.Find, gasl.FindPatterns, gasl.Count, gasl.Rank, gasl.Aggregate
    ):
        for part in ("columns", "by", "order", "computations"):
            if isinstance(listed := getattr(command, part, ()), tuple):
                yield from _repeated(context, listed, one_each=part in ("columns", "computations"))


_Listed = gasl.NamedValue | gasl.Order | gasl.Computation


def _repeated(context: Context, listed: Sequence[_Listed], *, one_each: bool) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each repetition in a list.

    If ``one_each`` is true, two columns with the same name and different values are an error.
    """
    seen: dict[str, _Listed] = {}
    for place, item in enumerate(listed):
        if isinstance(item, gasl.Computation):
            text = computed_name(item)
        elif isinstance(item, gasl.NamedValue):
            text = item.column
        else:
            text = format_condition(item.value)
        first = seen.setdefault(text, item)
        if first is item:
            continue
        if isinstance(item, gasl.Order) or _is_same(first, item):
            edit = Edit(Span(listed[place - 1].span.end, item.span.end), "")
            message, hint = f"{text} is listed twice", "remove one of them"
            yield context.diagnostic("GASL060", message, item.span, hint, edits=[edit])
        elif one_each:
            message, hint = f"two columns have the name {text}", "give one of them another name with AS"
            yield context.diagnostic("GASL060", message, item.span, hint, severity="error")


def _is_same(one: _Listed, other: _Listed) -> bool:
    """Return whether two columns with the same name have the same value."""
    if isinstance(one, gasl.Computation) and isinstance(other, gasl.Computation):
        return evolve(one, name=None) == evolve(other, name=None)
    return one.value == other.value


# Rules about settings and numbers: settings of SET, the host's limits, searches that find nothing.

_CAPS = "adapter.caps."


@lint("GASL061")
def unknown_setting(context: Context) -> Iterator[Diagnostic]:
    """Report SET commands for an unknown setting."""
    for _, command in context.commands(gasl.SetCommand):
        if not isinstance(command, gasl.SetCommand) or command.key.text in SETTINGS:
            continue
        last = {key.rsplit(".", 1)[-1]: key for key in SETTINGS}
        near = last.get(command.key.text.rsplit(".", 1)[-1]) or context.suggestion(command.key.text, tuple(SETTINGS))
        edits = [Edit(command.key.span, near)] if near else []
        message, hints = f"unknown setting {command.key.text}", [f"did you mean {near}?"]
        if not near:
            hints = [f"the settings are {', '.join(SETTINGS)}"]
            if len(command.key.parts) == 2 and command.key.parts[0] not in (
                "adapter",
                "llm",
            ):  # Cypher's `SET n.age = 3`
                message = f"GASL does not change the graph, and {command.key.text} is not a setting"
                hints.insert(0, "store results with UPDATE; MEASURE ... ON rows measures a derived graph")
        yield context.diagnostic("GASL061", message, command.key.span, *hints, edits=edits)


@lint("GASL062")
def setting_value(context: Context) -> Iterator[Diagnostic]:
    """Report SET commands with a value that the setting does not accept."""
    for _, command in context.commands(gasl.SetCommand):
        if not isinstance(command, gasl.SetCommand) or (setting := SETTINGS.get(command.key.text)) is None:
            continue
        span, value = _value_span(context, command), command.value
        if fault := fault_of(setting, value):
            meant = _number_in(value) if setting.kind != "text" else None
            fits = meant is not None and fault_of(setting, meant) is None
            edits = [Edit(span, str(meant))] if fits else []
            yield context.diagnostic(
                "GASL062", f"{setting.key} {fault}", span, setting.doc.rstrip(".").lower(), edits=edits
            )
        elif setting.key == "llm.model" and context.models is not None and value not in context.models:
            near = context.suggestion(str(value), tuple(context.models))
            edits = [Edit(span, format_text(near))] if near else []
            hint = (
                f"did you mean {near}?"
                if near
                else f"the host offers {', '.join(sorted(context.models)) or 'no models'}"
            )
            yield context.diagnostic("GASL062", f"the host does not offer the model {value}", span, hint, edits=edits)


def _value_span(context: Context, command: gasl.SetCommand) -> Span:
    """Return the span of the value in a SET command."""
    equals = context.spelled("=", command.span, command.key.span.end)
    if equals is None:
        return command.key.span
    rest = context.text(Span(equals.end, command.span.end))
    return Span(command.span.end - len(rest.lstrip()), command.span.end)


def _number_in(value: object) -> int | float | None:
    """Return the integer that is written as a string or a float.

    For example, the result is 2 for ``"2"`` and for ``2.0``. Return None if the value is not an integer.
    """
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else None
    if not isinstance(value, str) or len(value) > 20:
        return None
    try:
        return int(value)
    except ValueError:
        return None


@lint("GASL063")
def above_ceiling(context: Context) -> Iterator[Diagnostic]:
    """Report numbers above the host's limits.

    A SET with such a number is refused. For searches, the hints in ``_ABOVE`` explain the effect.
    """
    ceiling = {key.removeprefix(_CAPS): value for key, value in (context.ceiling or {}).items()}
    if not ceiling:
        return
    for _, command in context.commands(gasl.SetCommand):
        if not isinstance(command, gasl.SetCommand):
            continue
        most = ceiling.get(command.key.text.removeprefix(_CAPS))
        value = command.value
        if most is None or isinstance(value, bool) or not isinstance(value, int | float) or value <= most:
            continue
        setting = SETTINGS.get(command.key.text)
        if setting is None or fault_of(setting, value):
            continue
        span, text = _value_span(context, command), f"{most:g}" if most % 1 else str(int(most))
        message = f"{command.key.text} may be at most {text} here, not {value}"
        hint = "the host of the plan sets this limit"
        yield context.diagnostic("GASL063", message, span, hint, edits=[Edit(span, text)], severity="error")
    yield from _long_searches(context, ceiling)


_ABOVE = {
    "MAXLEN": "the search finds {what} of at most {most} edges; if longer ones may exist, its status is partial",
    "LIMIT": "the search stops after {most} {what}; if more may exist, its status is partial",
}
_ABOVE_SHOWN = "the variable may hold more items, but at most {most} of them are shown, stored or sent to a model"


def _long_searches(context: Context, ceiling: Mapping[str, float]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each number that exceeds a limit of its search.

    DEPTH, RADIUS and the length of shortest paths have no limit.
    """
    for _, command in context.commands(gasl.Find, gasl.FindPatterns, gasl.FindPaths, gasl.FindCycles):
        for word, number, cap in _numbers(command):
            most = ceiling.get(cap)
            if most is None or number <= most:
                continue
            span = _number_span(context, command, word, number)
            message = f"{word} {number:,} is above the limit {cap}, which is {int(most):,}"
            what = {gasl.FindPaths: "paths", gasl.FindCycles: "cycles"}.get(type(command), "rows")
            is_shown = isinstance(command, gasl.Find)
            hint = (_ABOVE_SHOWN if is_shown else _ABOVE[word]).format(what=what, most=f"{int(most):,}")
            # A smaller LIMIT would remove items from the variable of FIND nodes; in other searches, it changes no result.
            edits = [Edit(span, str(int(most)))] if span != command.span and not is_shown else []
            yield context.diagnostic("GASL063", message, span, hint, edits=edits)


def _numbers(command: gasl.Command) -> Iterator[tuple[str, int, str]]:
    """For each number of a search, yield the keyword before it, the number, and the cap that limits it ("" if none does)."""
    given: list[tuple[str, int | Variable | None, str]] = []
    if isinstance(command, gasl.Find):
        given = [("LIMIT", command.limit, "max_results")]
    elif isinstance(command, gasl.FindPaths | gasl.FindCycles):
        # No cap limits the length of shortest paths.
        shortest = isinstance(command, gasl.FindPaths) and command.shortest
        given = [("LIMIT", command.limit, "max_paths")]
        given.append(("MAXLEN", command.max_length, "" if shortest else "max_path_length"))
    elif isinstance(command, gasl.Walk):
        given = [("DEPTH", command.depth, "")]
    elif isinstance(command, gasl.Subgraph):
        given = [("RADIUS", command.radius, "")]
    elif isinstance(command, gasl.FindPatterns):
        given = [("LIMIT", command.limit, "max_results")]
    elif isinstance(command, gasl.Rank):
        given = [("LIMIT", command.limit, "")]
    elif isinstance(command, gasl.Select):
        given = [("SAMPLE", command.sample, "")]
    yield from ((word, number, cap) for word, number, cap in given if isinstance(number, int))


def _number_span(context: Context, command: gasl.Command, word: str, number: int) -> Span:
    """Return the span of a number.

    The search for the number begins after the last ``word`` in the command, because an earlier string may contain the keyword
    too.
    """
    import re

    pattern = re.compile(rf"\b{word}\s*(0*{number})\b", re.IGNORECASE)
    found = list(pattern.finditer(context.program.source.text, command.span.start, command.span.end))
    return Span(*found[-1].span(1)) if found else command.span


@lint("GASL075")
def finds_nothing(context: Context) -> Iterator[Diagnostic]:
    """Report searches whose result is always empty because of a number, such as LIMIT 0."""
    for _, command in context.commands(
        gasl.Find, gasl.FindPatterns, gasl.FindPaths, gasl.FindCycles, gasl.Walk, gasl.Rank, gasl.Select
    ):
        for word, number, _cap in _numbers(command):
            if number == 0 and word != "RADIUS":
                what = {"LIMIT": "excludes every result", "SAMPLE": "takes no items"}.get(word, "reaches no other node")
                yield context.diagnostic("GASL075", f"{word} 0 {what}", _number_span(context, command, word, 0),
                                    "remove it, or write a number above 0")  # fmt: skip


@lint("GASL064")
def unknown_algorithm(context: Context) -> Iterator[Diagnostic]:
    """Report MEASURE commands with an unknown algorithm, or with a weight that the algorithm does not use."""
    known = MEASURES if context.measures is None else tuple(context.measures)
    for _, command in context.commands(gasl.Measure):
        if not isinstance(command, gasl.Measure):
            continue
        span = context.spelled(command.algorithm, command.span, _algorithm_begins(context, command)) or command.span
        if command.algorithm in known:
            fault = weight_fault(command.algorithm) if command.algorithm in MEASURES else None
            if fault is not None and command.weight is not None:
                yield context.diagnostic("GASL064", fault[0], command.weight.span, fault[1])
            continue
        if set(known) >= set(MEASURES) and (other := other_result(command.algorithm)):
            yield context.diagnostic("GASL064", f"unknown algorithm {command.algorithm}", span, other)
            continue
        near = meant_algorithm(command.algorithm) if set(known) >= set(MEASURES) else ""
        near = near or context.suggestion(command.algorithm, tuple(known)) or ""
        edits = (
            [Edit(span, near)] if near and span != command.span and ("(" not in near or not command.settings) else []
        )
        hint = f"did you mean {near}?" if near else f"the algorithms are {', '.join(known)}"
        yield context.diagnostic("GASL064", f"unknown algorithm {command.algorithm}", span, hint, edits=edits)


def _algorithm_begins(context: Context, command: gasl.Measure) -> int:
    text = context.text(command.span).upper()
    start = command.source.span.end if command.source is not None else command.span.start
    at = text.find("USING", max(0, start - command.span.start))
    return command.span.start + at + len("USING") if at >= 0 else command.span.start
