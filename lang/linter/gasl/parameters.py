"""Rules about parameters, and about numbers and settings of searches and measures."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ...catalogue.measures import MEASURES
from ...diagnostic import Diagnostic, Edit
from ...evaluate.conditions import ConditionError
from ...evaluate.conditions.values import compute
from ...literals import kind_of, short
from ...printer.gasl_printer import format_condition, format_name, format_text
from ...source import Span
from ...trees import gasl
from ...trees.conditions import Constant
from ...trees.gasl import Param, Statement
from .constants import unquoted
from .context import Context, Step, lint
from .fields import is_constant, values_of


@lint("GASL087")
def misplaced_parameter(context: Context) -> Iterator[Diagnostic]:
    """Report parameters after a command."""
    first = next(
        (item for item in context.program.items if isinstance(item, Statement) and not isinstance(item.command, Param)),
        None,
    )
    if first is None:
        return
    for step, command in context.commands(Param):
        if command.span.start < first.span.start and step.statement.command is command:
            continue
        message, hint = "parameters must come before the first command", "move it to the beginning"
        yield context.diagnostic("GASL087", message, command.span, hint, edits=_moved(context, step, first))


def _moved(context: Context, step: Step, first: Statement) -> list[Edit]:
    """Return the edits that move a parameter before the first command. A parameter inside another command has no such edits."""
    removed = _removed(context, step)
    head = context.program.source.text.rfind("\n", 0, first.span.start) + 1
    return [Edit(Span(head, head), f"{context.text(step.statement.span)}\n"), *removed] if removed else []


def _removed(context: Context, step: Step) -> list[Edit]:
    """Return the edit that removes the lines of a parameter.

    Return no edit if the parameter is inside another command, or shares a line with a comment.
    """
    span, text = step.statement.span, context.program.source.text
    if step.statement not in context.program.items or step.statement.command is not step.command or not text:
        return []
    begin = text.rfind("\n", 0, span.start) + 1
    end = text.find("\n", span.end)
    end = len(text) if end < 0 else end + 1
    if text[begin : span.start].strip() or text[span.end : end].strip():  # a comment on the same line stays where it is
        return []
    if end == len(text) and not text.endswith("\n") and begin:
        begin -= 1
    return [Edit(Span(begin, end), "")]


@lint("GASL098")
def duplicate_parameter(context: Context) -> Iterator[Diagnostic]:
    """Report a second parameter with the same name."""
    seen: dict[str, Param] = {}
    for step, command in context.commands(Param):
        if not isinstance(command, Param):
            continue
        first = seen.setdefault(command.name.text, command)
        if first is command:
            continue
        is_same = (first.type, first.default) == (command.type, command.default)
        message = f"the parameter {command.name.text} is already declared in line {context.line(first.span)}"
        hint = "remove one of the two declarations" if is_same else "remove one of the two declarations, or rename one"
        # Only a declaration with the same type and default can be removed without a change of the value.
        edits = _removed(context, step) if is_same else []
        yield context.diagnostic("GASL098", message, command.name.span, hint, edits=edits)


@lint("GASL088")
def unused_parameter(context: Context) -> Iterator[Diagnostic]:
    """Report parameters that no command reads."""
    if not context.is_whole:  # a command that could not be parsed may read it
        return
    read = {id(binding) for use in context.flow.uses for binding in use.bindings}
    unbound = {use.name for use in context.flow.uses if not use.bindings}
    # A command may read the other parameter with the same name; GASL098 reports the two.
    counted = Counter(command.name.text for _, command in context.commands(Param) if isinstance(command, Param))
    for binding in context.flow.bindings:
        if counted[binding.name] > 1:
            continue
        if isinstance(binding.command, Param) and id(binding) not in read and binding.name not in unbound:
            message = f"no command reads the parameter {binding.name}"
            hint = f"write ${{{format_name(binding.name)}}} in a condition, or remove the parameter"
            yield context.diagnostic("GASL088", message, binding.span, hint)


_TYPES: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "TEXT": ("a string", (str,)),
    "INT": ("a whole number", (int,)),
    "FLOAT": ("a number", (int, float)),
    "BOOL": ("true or false", (bool,)),
    "LIST": ("a list", ()),
}


@lint("GASL089")
def parameter_default(context: Context) -> Iterator[Diagnostic]:
    """Report defaults that do not have the type of their parameter."""
    for _, command in context.commands(Param):
        if not isinstance(command, Param) or command.default is None or command.default.value is None:
            continue
        value, (what, types) = command.default.value, _TYPES[command.type]
        if isinstance(value, types) and (isinstance(value, bool) is (command.type == "BOOL")):
            continue
        message = f"the parameter {command.name.text} is {what}, but its default is {_written(value)}"
        right = _as_type(context, command, value)
        hint = f"write {right}" if right else _OTHERWISE.get(command.type, "")
        edits = [Edit(command.default.span, right)] if right else []
        yield context.diagnostic("GASL089", message, command.default.span, hint, edits=edits)


def _written(value: Any) -> str:
    if isinstance(value, str):
        return short(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


_OTHERWISE = {"LIST": "a list has no default; write = null, and pass the list when the program runs"}


def _as_type(context: Context, command: Param, value: Any) -> str:
    """Return a default, rewritten as a constant of its parameter's type. Return "" if this would change the value."""
    assert command.default is not None  # noqa: S101  # the caller has tested it
    if command.type == "TEXT":
        return format_text(context.text(command.default.span) or str(value))
    if command.type == "BOOL" and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower()
    if isinstance(value, bool) or command.type not in ("INT", "FLOAT"):
        return ""
    try:
        number = float(value)
        if command.type == "INT" or "." not in str(value):
            return str(int(number)) if number.is_integer() and abs(number) < 2**53 else ""
    except ValueError:
        return ""
    return str(value).strip() if abs(number) < 1e15 and "e" not in str(value).lower() else ""


@lint("GASL090")
def cost_below_zero(context: Context) -> Iterator[Diagnostic]:
    """Report constant costs of SHORTEST BY that are below 0."""
    for step, command in context.commands(gasl.FindPaths):
        cost = command.cost if isinstance(command, gasl.FindPaths) else None
        if cost is None or not is_constant(cost):
            continue
        try:
            value = compute(cost, lambda _: None, lambda _: None, lenient=True)
        except ConditionError:
            continue
        if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
            message = f"the cost of every edge is {value}, but shortest paths need costs of 0 or greater"
            hint = "write a value that grows with the cost, such as 1 / (1 + gain)"
            yield context.diagnostic("GASL090", message, cost.span, hint)
        elif value is None or isinstance(value, str | bool):
            message = f"a cost must be a number, but {format_condition(cost)[:60]} is {_shown(value)}"
            scope = next(scope for each, scope in values_of(step) if each is cost)
            hints, edits = unquoted(context, cost, scope, certain=isinstance(cost, Constant))
            hints = hints or ["write the name of a field without quotes"]
            yield context.diagnostic("GASL090", message, cost.span, *hints, edits=edits)


def _shown(value: Any) -> str:
    return f"the string {short(value)}" if isinstance(value, str) else kind_of(value)


@lint("GASL091")
def measure_setting(context: Context) -> Iterator[Diagnostic]:
    """Report settings that a MEASURE algorithm does not have, and values that a setting does not accept."""
    for _, command in context.commands(gasl.Measure):
        if not isinstance(command, gasl.Measure):
            continue
        spec = MEASURES.get(command.algorithm)
        known = {} if spec is None else spec.settings
        for name, constant in command.settings:
            span = _setting_span(context, command, name, constant.span)
            if name not in known:
                near = context.suggestion(name, tuple(known)) if known else None
                hint = (
                    f"did you mean {near}?"
                    if near
                    else f"its settings are {', '.join(known)}"
                    if known
                    else "remove the parentheses"
                )
                edits = [Edit(span, near)] if near and span != command.span else []
                message = f"{command.algorithm} has no setting {name}"
                yield context.diagnostic("GASL091", message, span, hint, edits=edits)
            elif fault := known[name].needed(constant.value):
                message = f"{name} of {command.algorithm} takes {fault}, not {_written(constant.value)}"
                near = (
                    context.suggestion(constant.value, known[name].words) if isinstance(constant.value, str) else None
                )
                edits = [Edit(constant.span, format_text(near))] if near else []
                yield context.diagnostic(
                    "GASL091", message, constant.span, f"write {near}" if near else "", edits=edits
                )


def _setting_span(context: Context, command: gasl.Measure, name: str, value: Span) -> Span:
    """Return the span of a setting's name. The span is that of the last ``name`` before the value of the setting."""
    at = context.program.source.text.rfind(name, command.span.start, value.start)
    return Span(at, at + len(name)) if at >= 0 else command.span


@lint("GASL093")
def distinct_items(context: Context) -> Iterator[Diagnostic]:
    """Report a SELECT DISTINCT whose items are distinct anyway."""
    for step, command in context.commands(gasl.Select):
        if not isinstance(command, gasl.Select) or not command.distinct or command.columns:
            continue
        use = step.use_of(command.source)
        if use is None or not use.bindings or use.kind not in ("nodes", "edges", "paths"):
            continue
        if all(isinstance(binding.command, _FINDING) for binding in use.bindings):
            message = f"the {use.kind} in {use.name} are already distinct, so DISTINCT has no effect"
            hint = f"write SELECT DISTINCT {format_name(use.name)} FIELDS field AS values for the distinct values of a field"
            at = context.spelled("DISTINCT", command.span) or context.spelled("distinct", command.span)
            yield context.diagnostic("GASL093", message, at or command.span, hint)


_FINDING = (gasl.Find, gasl.FindPaths, gasl.FindCycles, gasl.Walk, gasl.Connect)
