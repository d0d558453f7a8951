"""Rules about settings and numbers: what SET may change, what the host allows, what finds nothing at all."""

from collections.abc import Iterator, Mapping

from ... import gasl
from ...diagnostic import Diagnostic, Edit
from ...printer.gasl import format_text
from ...settings import SETTINGS, fault_of
from ...source import Span
from .registry import Context, Lint, lint

__all__ = ["LINTS", "MEASURES"]

MEASURES = (
    "pagerank", "degree", "in_degree", "out_degree", "betweenness", "closeness", "eigenvector", "clustering", "triangles",
    "core_number", "components", "strong_components", "communities",
)  # fmt: skip
"""The algorithms that there are, for a check without a graph. A test holds this equal to what the engine has."""

_CAPS = "adapter.caps."


@lint("GASL061")
def unknown_setting(context: Context) -> Iterator[Diagnostic]:
    """SET of what is no setting."""
    for _, command in context.commands(gasl.SetCommand):
        if not isinstance(command, gasl.SetCommand) or command.key.text in SETTINGS:
            continue
        last = {key.rsplit(".", 1)[-1]: key for key in SETTINGS}
        near = last.get(command.key.text.rsplit(".", 1)[-1]) or context.suggestion(command.key.text, tuple(SETTINGS))
        edits = [Edit(command.key.span, near)] if near else []
        hint = f"did you mean {near}?" if near else f"there are: {', '.join(SETTINGS)}"
        yield context.found("GASL061", f"there is no setting {command.key.text}", command.key.span, hint, edits=edits)


@lint("GASL062")
def setting_value(context: Context) -> Iterator[Diagnostic]:
    """SET to what the setting doesn't take."""
    for _, command in context.commands(gasl.SetCommand):
        if not isinstance(command, gasl.SetCommand) or (setting := SETTINGS.get(command.key.text)) is None:
            continue
        span, value = _value_span(context, command), command.value
        if fault := fault_of(setting, value):
            meant = _number_in(value) if setting.kind != "text" else None
            fits = meant is not None and fault_of(setting, meant) is None
            edits = [Edit(span, str(meant))] if fits else []
            yield context.found("GASL062", f"{setting.key} {fault}", span, setting.doc.rstrip(".").lower(), edits=edits)
        elif setting.key == "llm.model" and context.models is not None and value not in context.models:
            near = context.suggestion(str(value), tuple(context.models))
            edits = [Edit(span, format_text(near))] if near else []
            hint = f"did you mean {near}?" if near else f"there are: {', '.join(sorted(context.models)) or 'none'}"
            yield context.found("GASL062", f"the model {value} is not offered here", span, hint, edits=edits)


def _value_span(context: Context, command: gasl.SetCommand) -> Span:
    """Return where the value of a SET stands."""
    equals = context.spelled("=", command.span, command.key.span.end)
    if equals is None:
        return command.key.span
    rest = context.text(Span(equals.end, command.span.end))
    return Span(command.span.end - len(rest.lstrip()), command.span.end)


def _number_in(value: object) -> int | float | None:
    """Return the number that a text or a float surely means: ``"2"`` and ``2.0`` are 2."""
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
    """Numbers above what the host allows: SET is refused, the others find no more than the ceiling."""
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
        message = f"{command.key.text} can be {text} at most here, not {value}"
        hint = "the ceiling is set by who runs the plan"
        yield context.found("GASL063", message, span, hint, edits=[Edit(span, text)], severity="error")
    yield from _long_searches(context, ceiling)


def _long_searches(context: Context, ceiling: Mapping[str, float]) -> Iterator[Diagnostic]:
    for _, command in context.commands(gasl.Find, gasl.FindPaths, gasl.Walk, gasl.Subgraph):
        for word, number, cap in _numbers(command):
            most = ceiling.get(cap)
            if most is None or number <= most:
                continue
            span = _number_span(context, command, word, number)
            message = f"{word} {number:,} is above the ceiling of {cap}, {int(most):,}"
            hint = "the search goes no further than the ceiling, and its status is partial when that cuts it short"
            edits = [Edit(span, str(int(most)))] if span != command.span else []
            yield context.found("GASL063", message, span, hint, edits=edits)


def _numbers(command: gasl.Command) -> Iterator[tuple[str, int, str]]:
    """Yield the numbers of a search: the word before, the number, and the cap that bounds it."""
    if isinstance(command, gasl.Find) and command.limit is not None:
        yield "LIMIT", command.limit, "max_results"
    elif isinstance(command, gasl.FindPaths):
        if command.limit is not None:
            yield "LIMIT", command.limit, "max_paths"
        if command.max_length is not None:  # the shortest paths are found whatever their length
            yield "MAXLEN", command.max_length, "" if command.shortest else "max_path_length"
    elif isinstance(command, gasl.Walk) and command.depth is not None:
        yield "DEPTH", command.depth, "max_path_length"
    elif isinstance(command, gasl.Subgraph):
        yield "RADIUS", command.radius, "max_path_length"
    elif isinstance(command, gasl.Rank) and command.limit is not None:
        yield "LIMIT", command.limit, ""


def _number_span(context: Context, command: gasl.Command, word: str, number: int) -> Span:
    """Return where the number stands: behind its word, the last one in the command (a text before may have the word too)."""
    import re

    pattern = re.compile(rf"\b{word}\s*(0*{number})\b", re.IGNORECASE)
    found = list(pattern.finditer(context.program.source.text, command.span.start, command.span.end))
    return Span(*found[-1].span(1)) if found else command.span


@lint("GASL075")
def finds_nothing(context: Context) -> Iterator[Diagnostic]:
    """Searches whose own numbers let nothing through."""
    for _, command in context.commands(gasl.Find, gasl.FindPaths, gasl.Walk, gasl.Rank):
        for word, number, _cap in _numbers(command):
            if number == 0 and word != "RADIUS":
                what = "keeps nothing" if word == "LIMIT" else "reaches nothing"
                yield context.found("GASL075", f"{word} 0 {what}", _number_span(context, command, word, 0),
                                    "leave it out, or give a number above 0")  # fmt: skip


@lint("GASL064")
def unknown_algorithm(context: Context) -> Iterator[Diagnostic]:
    """MEASURE by an algorithm that there isn't."""
    known = MEASURES if context.measures is None else tuple(context.measures)
    for _, command in context.commands(gasl.Measure):
        if not isinstance(command, gasl.Measure) or command.algorithm in known:
            continue
        span = context.spelled(command.algorithm, command.span, _algorithm_begins(context, command)) or command.span
        near = context.suggestion(command.algorithm, known)
        edits = [Edit(span, near)] if near and span != command.span else []
        hint = f"did you mean {near}?" if near else f"there are: {', '.join(known)}"
        yield context.found("GASL064", f"there is no algorithm {command.algorithm}", span, hint, edits=edits)


def _algorithm_begins(context: Context, command: gasl.Measure) -> int:
    text = context.text(command.span).upper()
    start = command.source.span.end if command.source is not None else command.span.start
    at = text.find("USING", max(0, start - command.span.start))
    return command.span.start + at + len("USING") if at >= 0 else command.span.start


LINTS: tuple[Lint, ...] = (
    unknown_setting, setting_value, above_ceiling, unknown_algorithm, finds_nothing,
)  # fmt: skip
