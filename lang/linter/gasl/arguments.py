"""Rules about the arguments of commands: lists of items, lists of nodes, fields of rows."""

from collections.abc import Iterator, Mapping, Sequence

from ...catalogue.commands import BY_NODE, SETTINGS, fault_of
from ...diagnostic import Diagnostic, Edit, Severity
from ...printer.gasl_printer import format_key, format_text
from ...source import Span
from ...trees import gasl
from ...trees.conditions import Field, NullTest
from ...trees.gasl import Command, Name, Path
from .conditions import leaves, tested
from .context import Context, Use, lint

_OFFERED = 30
"""Maximum number of fields that a hint lists."""


@lint("GASL059")
def wrong_kind(context: Context) -> Iterator[Diagnostic]:
    """Report commands whose arguments have an unsupported kind."""
    for step in context.steps:
        spec = BY_NODE.get(type(step.command))
        if spec is None or not spec.takes:
            continue
        word = step.command.kind if isinstance(step.command, gasl.SetOperation) else spec.form.split()[0]
        for use in step.uses:
            if use.role != "source":
                continue
            if use.kind == "number":
                message = f"{word} takes a list of items, but {use.name} is a number"
                yield context.diagnostic("GASL059", message, use.span, "COUNT ... BY field returns rows")
            elif spec.takes == "nodes" and not _has_nodes(use):
                is_object = use.kind in ("answer", "error")
                what = (
                    "an answer" if is_object else f"a list of rows with the fields {', '.join(use.columns or ())[:80]}"
                )
                message = f"{word} takes nodes, but {use.name} is {what}"
                yield context.diagnostic("GASL059", message, use.span, "rows with an id are accepted as nodes")


def _has_nodes(use: Use) -> bool:
    if use.kind in ("answer", "error"):
        return False
    if use.kind != "rows" or use.columns is None:
        return True
    return "id" in use.columns or "nodes" in use.columns or {"source", "target"} <= set(use.columns)


def fields_of(command: Command) -> Iterator[tuple[Name, Path]]:
    """Yield each field of items that a command names, after the variable that holds the items."""
    if isinstance(source := getattr(command, "source", None), Name):
        paths = [*getattr(command, "fields", ()), getattr(command, "by", None)]
        paths += [each.field for each in getattr(command, "computations", ())]
        yield from ((source, path) for path in paths if path is not None)
    for side in ("left", "right"):
        path = getattr(command, f"{side}_field", None)
        if path is not None:
            yield getattr(command, side), path


@lint("GASL073")
def unknown_column(context: Context) -> Iterator[Diagnostic]:
    """Report fields that the rows do not have."""
    for step in context.steps:
        for name, path in fields_of(step.command):
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
    hints.append(f"the fields are {', '.join(columns[:_OFFERED])}{more}" if columns else "the rows have no fields")
    message = f"the rows of {use.name} have no field {path.text}"
    return context.diagnostic("GASL073", message, span, *hints, edits=edits, severity=severity)


def _is_in(path: Path, columns: Sequence[str]) -> bool:
    return any(".".join(path.parts[:count]) in columns for count in range(1, min(len(path.parts), 100) + 1))


@lint("GASL060")
def repeated_field(context: Context) -> Iterator[Diagnostic]:
    """Report fields that are listed twice."""
    for _, command in context.commands(gasl.SelectFields, gasl.Find, gasl.Aggregate):
        for this, before, what in _repeated(command):
            edit = Edit(type(this.span)(before.span.end, this.span.end), "")
            yield context.diagnostic(
                "GASL060", f"{what} is listed twice", this.span, "remove one of them", edits=[edit]
            )


_Listed = gasl.Path | gasl.Order | gasl.Computation


def _repeated(command: Command) -> Iterator[tuple[_Listed, _Listed, str]]:
    """Yield each repeated element, the element before it in the list, and its text."""
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


# Rules about settings and numbers: settings of SET, the host's limits, searches that find nothing.

MEASURES = (
    "pagerank", "degree", "in_degree", "out_degree", "betweenness", "closeness", "eigenvector", "clustering", "triangles",
    "core_number", "components", "strong_components", "communities",
)  # fmt: skip
"""The known algorithms, for a check without a graph. A test compares them with the engine's algorithms."""

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
        hint = f"did you mean {near}?" if near else f"the settings are {', '.join(SETTINGS)}"
        yield context.diagnostic("GASL061", f"unknown setting {command.key.text}", command.key.span, hint, edits=edits)


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
    """Return the integer that a string or a float stands for: ``"2"`` and ``2.0`` are 2. None if it is not an integer."""
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
    """Report numbers above the host's limits. Such a SET is refused; such a search finds no more than the limit."""
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


def _long_searches(context: Context, ceiling: Mapping[str, float]) -> Iterator[Diagnostic]:
    for _, command in context.commands(gasl.Find, gasl.FindPaths, gasl.Walk, gasl.Subgraph):
        for word, number, cap in _numbers(command):
            most = ceiling.get(cap)
            if most is None or number <= most:
                continue
            span = _number_span(context, command, word, number)
            message = f"{word} {number:,} is above the limit {cap}, which is {int(most):,}"
            hint = "the search stops at the limit; if results are missing, its status is partial"
            edits = [Edit(span, str(int(most)))] if span != command.span else []
            yield context.diagnostic("GASL063", message, span, hint, edits=edits)


def _numbers(command: gasl.Command) -> Iterator[tuple[str, int, str]]:
    """Yield, for each number of a search, the keyword before it, the number, and the cap that limits it ("" if none does)."""
    if isinstance(command, gasl.Find) and command.limit is not None:
        yield "LIMIT", command.limit, "max_results"
    elif isinstance(command, gasl.FindPaths):
        if command.limit is not None:
            yield "LIMIT", command.limit, "max_paths"
        if command.max_length is not None:  # no cap limits the length of shortest paths
            yield "MAXLEN", command.max_length, "" if command.shortest else "max_path_length"
    elif isinstance(command, gasl.Walk) and command.depth is not None:
        yield "DEPTH", command.depth, "max_path_length"
    elif isinstance(command, gasl.Subgraph):
        yield "RADIUS", command.radius, "max_path_length"
    elif isinstance(command, gasl.Rank) and command.limit is not None:
        yield "LIMIT", command.limit, ""


def _number_span(context: Context, command: gasl.Command, word: str, number: int) -> Span:
    """Return the span of a number: after the last ``word`` in the command, because a string before may contain the keyword too."""
    import re

    pattern = re.compile(rf"\b{word}\s*(0*{number})\b", re.IGNORECASE)
    found = list(pattern.finditer(context.program.source.text, command.span.start, command.span.end))
    return Span(*found[-1].span(1)) if found else command.span


@lint("GASL075")
def finds_nothing(context: Context) -> Iterator[Diagnostic]:
    """Report searches in which a number excludes every result, such as LIMIT 0."""
    for _, command in context.commands(gasl.Find, gasl.FindPaths, gasl.Walk, gasl.Rank):
        for word, number, _cap in _numbers(command):
            if number == 0 and word != "RADIUS":
                what = "excludes every result" if word == "LIMIT" else "reaches no other node"
                yield context.diagnostic("GASL075", f"{word} 0 {what}", _number_span(context, command, word, 0),
                                    "remove it, or write a number above 0")  # fmt: skip


@lint("GASL064")
def unknown_algorithm(context: Context) -> Iterator[Diagnostic]:
    """Report MEASURE commands with an unknown algorithm."""
    known = MEASURES if context.measures is None else tuple(context.measures)
    for _, command in context.commands(gasl.Measure):
        if not isinstance(command, gasl.Measure) or command.algorithm in known:
            continue
        span = context.spelled(command.algorithm, command.span, _algorithm_begins(context, command)) or command.span
        near = context.suggestion(command.algorithm, known)
        edits = [Edit(span, near)] if near and span != command.span else []
        hint = f"did you mean {near}?" if near else f"the algorithms are {', '.join(known)}"
        yield context.diagnostic("GASL064", f"unknown algorithm {command.algorithm}", span, hint, edits=edits)


def _algorithm_begins(context: Context, command: gasl.Measure) -> int:
    text = context.text(command.span).upper()
    start = command.source.span.end if command.source is not None else command.span.start
    at = text.find("USING", max(0, start - command.span.start))
    return command.span.start + at + len("USING") if at >= 0 else command.span.start
