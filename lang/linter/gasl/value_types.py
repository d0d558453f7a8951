"""Rules about the types of computed values and variables: operands that a function never accepts, tests that never hold."""

import re
from collections.abc import Iterator

from ...catalogue.operations import DATE_UNITS
from ...catalogue.value_functions import OF_DATES, argument_kind
from ...diagnostic import Diagnostic, Edit, Severity
from ...evaluate.expr.date_functions import moment
from ...printer.gasl_printer import format_condition, format_name, format_text
from ...trees import Node, gasl
from ...trees.conditions import Binary, Call, Comparison, Constant, Field, Items, Length, Negative, NullTest, Variable
from .arguments import unknown_columns
from .conditions import word_of
from .context import Context, Step, lint
from .fields import CONDITIONS, Leaf, Scope, constants_of, is_constant, leaves_of, oriented, values_of
from .shapes import Shape, kinds_of_constant, shape_of, unknown_parts, use_of

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?")


@lint("GASL073")
def unknown_field(context: Context) -> Iterator[Diagnostic]:
    """Report unknown fields of rows and of a variable's items, and unknown names in conditions on patterns."""
    yield from unknown_columns(context)
    yield from unknown_parts(context)


@lint("GASL096")
def operand_type(context: Context) -> Iterator[Diagnostic]:
    """Report operands of a type that a function or an operator never accepts."""
    for step in context.steps:
        yield from _similar_values(context, step)
        for node, scope, must in _operations(context, step):
            severity: Severity = "error" if must else "warning"
            if isinstance(node, Call):
                yield from _argument_types(context, step, node, scope, severity)
            else:
                yield from _operand_types(context, step, node, scope, severity)


def _similar_values(context: Context, step: Step) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each value before SIMILAR that is never a string."""
    if not isinstance(step.command, gasl.Join) or step.command.similar is None:
        return
    told: set[int] = set()
    for value, scope in values_of(step):
        kinds, shown = shape_of(context, step, value, scope).kinds, format_condition(value)[:60]
        if kinds and "text" not in kinds and id(value) not in told:
            told.add(id(value))
            message = f"SIMILAR compares strings, but {shown} is a {_words(kinds)}"
            yield context.diagnostic("GASL096", message, value.span, f"write str({shown})")


def _operations(context: Context, step: Step) -> Iterator[tuple[Call | Binary, Scope, bool]]:
    """Yield the calls and the arithmetic of a command.

    For each, a boolean says whether a null result makes the command fail or find nothing.
    """
    for leaf, scope in leaves_of(context, step):
        must = leaf.must and not isinstance(leaf.test, NullTest)
        for side in (leaf.test.left, *(() if isinstance(leaf.test, NullTest) else (leaf.test.right,))):
            yield from ((node, scope, decides) for node, decides in _within(side, must))
    for value, scope in values_of(step):
        yield from ((node, scope, decides) for node, decides in _within(value, True))


def _within(value: Node, must: bool) -> Iterator[tuple[Call | Binary, bool]]:
    stack = [(value, must)]
    while stack:
        node, decides = stack.pop()
        if isinstance(node, Call | Binary):
            yield node, decides
        if isinstance(node, Call):
            inner = decides and node.function not in ("if", "coalesce")
            stack.extend((each, inner) for each in reversed(node.arguments) if not isinstance(each, CONDITIONS))
        elif isinstance(node, Binary):
            stack.extend(((node.right, decides), (node.left, decides)))
        elif isinstance(node, Length | Negative):
            stack.append((node.operand, decides))


def _argument_types(context: Context, step: Step, call: Call, scope: Scope, severity: Severity) -> Iterator[Diagnostic]:
    if call.function == "date_trunc" and len(call.arguments) == 2:
        unit, when = call.arguments
        found = _unit(context, call, unit, when)
        if found is not None:
            message, hint, edits = found
            yield context.diagnostic("GASL096", message, unit.span, hint, edits=edits, severity=severity)
            return
    for place, argument in enumerate(call.arguments):
        wanted, shown = argument_kind(call.function, place), format_condition(argument)[:60]
        shape = shape_of(context, step, argument, scope)
        if wanted and shape.kinds and wanted not in shape.kinds:
            message = f"{call.function} takes a {word_of(wanted)}, but {shown} is a {_words(shape.kinds)}"
            hint = f"write {'str' if wanted == 'text' else 'number'}({shown})"
            hint = hint if shape.is_scalar else ""
            if shape.is_scalar and wanted == "text" and call.function in OF_DATES:
                hint = "a date is a string, such as 2024-03-05"
            yield context.diagnostic("GASL096", message, argument.span, hint, severity=severity)
        elif place in OF_DATES.get(call.function, ()) and _is_no_date(argument):
            message = f"{shown} is not a date, so {call.function} is null"
            hint = 'write it as in "2024-03-05" or "2024-03-05T10:00:00"'
            yield context.diagnostic("GASL096", message, argument.span, hint, severity=severity)


def _is_no_date(value: Node) -> bool:
    return isinstance(value, Constant) and isinstance(value.value, str) and moment(value.value) is None


def _unit(context: Context, call: Call, unit: Node, when: Node) -> tuple[str, str, list[Edit]] | None:
    """Return the message, the hint and the edits for a faulty unit of date_trunc, or None."""
    if isinstance(unit, Constant) and unit.value in DATE_UNITS:
        return None
    if isinstance(when, Constant) and when.value in DATE_UNITS:
        texts = context.text(unit.span), context.text(when.span)
        edits = [Edit(unit.span, texts[1]), Edit(when.span, texts[0])] if all(texts) else []
        shown = f"date_trunc({format_condition(when)}, {format_condition(unit)})"  # type: ignore[arg-type]  # two values
        return "the unit of date_trunc must come first", f"write {shown[:80]}", edits
    if not isinstance(unit, Constant):
        return None
    near = context.suggestion(unit.value, DATE_UNITS) if isinstance(unit.value, str) else None
    edits = [Edit(unit.span, format_text(near))] if near else []
    hint = f"did you mean {format_text(near)}?" if near else f"the units are {', '.join(map(format_text, DATE_UNITS))}"
    return f"{format_condition(unit)[:60]} is not a unit of date_trunc", hint, edits


def _operand_types(
    context: Context, step: Step, value: Binary, scope: Scope, severity: Severity
) -> Iterator[Diagnostic]:
    sides = (value.left, value.right)
    shapes = [shape_of(context, step, side, scope) for side in sides]
    shown = [format_condition(side)[:60] for side in sides]
    if value.sign == "+":
        left, right = (shape.kinds for shape in shapes)
        if not left or not right or (left & right and left & {"number", "text"} & right):
            return
        message = (
            f"+ takes two numbers or two strings, but {shown[0]} is a {_words(left)} and {shown[1]} a {_words(right)}"
        )
        mixed = {frozenset({"number"}), frozenset({"text"})} == {left, right}
        place = 0 if left == frozenset({"number"}) else 1
        other = "" if isinstance(sides[1 - place], Constant) else f", or number({shown[1 - place]}) for a number"
        hint = f"write str({shown[place]}) for a string{other}" if mixed else ""
        yield context.diagnostic("GASL096", message, value.span, hint, severity=severity)
        return
    for side, shape, text in zip(sides, shapes, shown, strict=True):
        if shape.kinds and "number" not in shape.kinds:
            message = f"{value.sign} takes two numbers, but {text} is a {_words(shape.kinds)}"
            hint = f"write number({text})" if shape.kinds == {"text"} else ""
            yield context.diagnostic("GASL096", message, side.span, hint, severity=severity)


def _words(kinds: frozenset[str]) -> str:
    return " or a ".join(sorted(map(word_of, kinds))).replace("a object", "an object")


_ORDER = frozenset({"<", "<=", ">", ">="})
_TEXTUAL = frozenset({"STARTS_WITH", "ENDS_WITH", "MATCHES"})


@lint("GASL097")
def value_type(context: Context) -> Iterator[Diagnostic]:
    """Report comparisons that never match because of their types. One side is a computed value or a variable."""
    for step in context.steps:
        for leaf, scope in leaves_of(context, step):
            if isinstance(leaf.test, Comparison):
                test = oriented(leaf.test)
                is_plain = isinstance(test.left, Field | Length) and isinstance(test.right, Constant | Items)
                # The rules about attributes, lengths and constants report plain tests.
                if not is_plain and not is_constant(test):
                    yield from _never_equal(context, step, leaf, test, scope)


def _never_equal(context: Context, step: Step, leaf: Leaf, test: Comparison, scope: Scope) -> Iterator[Diagnostic]:
    left, right = (shape_of(context, step, side, scope) for side in (test.left, test.right))
    severity: Severity = "error" if leaf.must and test.operator != "!=" else "warning"
    if isinstance(test.right, Items) or (isinstance(test.right, Constant) and test.operator != "IN"):
        yield from _constants(context, test, left, severity)
        return
    if not right.kinds:
        return
    shown = [format_condition(side)[:60] for side in (test.left, test.right)]
    message = ""
    if test.operator in ("IN", "NOT IN"):
        if "list" not in right.kinds:
            message = f"{test.operator} takes a list, but {shown[1]} is a {_words(right.kinds)}"
        elif right.elements and _excludes(left, right.elements, test, step):
            what = f"a {_words(left.kinds)}" if left.kinds else "a field of the rows"
            message = f"{shown[0]} is {what}, but {shown[1]} is a list of {_plural(right.elements)}"
            severity = "error" if left.kinds and leaf.must else "warning"
    elif test.operator in ("=", "!=") or test.operator in _ORDER:
        never_ordered = test.operator in _ORDER and right.kinds <= {"list", "object"}
        if never_ordered or (left.kinds and left.kinds.isdisjoint(right.kinds)):
            what = f"{shown[0]} is a {_words(left.kinds)}" if left.kinds else f"{test.operator} takes no list"
            message = f"{what}, but {shown[1]} is a {_words(right.kinds)}".replace("is a object", "is an object")
    elif test.operator in _TEXTUAL and "text" not in right.kinds:
        message = f"{test.operator} takes a string, but {shown[1]} is a {_words(right.kinds)}"
    if message:
        yield context.diagnostic(
            "GASL097",
            message,
            leaf.test.span,
            *_remedies(step, test, right),
            edits=_ids_of(step, test),
            severity=severity,
        )


def _excludes(left: Shape, elements: frozenset[str], test: Comparison, step: Step) -> bool:
    """Return whether no element of a list can be equal to the left side.

    It is assumed that fields of rows do not contain complete items.
    """
    if left.kinds:
        return left.kinds.isdisjoint(elements)
    return elements == {"object"} and isinstance(test.left, Field) and isinstance(test.right, Variable)


def _plural(kinds: frozenset[str]) -> str:
    return " or ".join(f"{word_of(kind)}s" for kind in sorted(kinds)).replace("objects", "items")


def _remedies(step: Step, test: Comparison, right: Shape) -> list[str]:
    """Return hints for a test with a variable on the right side.

    The variable holds a list where a single value is needed, or a single value where a list is needed.
    """
    variable = test.right if isinstance(test.right, Variable) else None
    use = use_of(step, variable) if variable is not None else None
    if variable is None or use is None:
        flipped = test.left if isinstance(test.left, Variable) else None
        if flipped is not None and not flipped.path and use_of(step, flipped) is not None:
            return [f"LEN {format_condition(flipped)} is the number of its items"]
        return []
    shown, name = format_condition(variable), format_name(variable.name)
    if test.operator in ("IN", "NOT IN"):
        if "list" not in (right.kinds or ()):
            return [f"write {'=' if test.operator == 'IN' else '!='} {shown}"]
        column = _column_for(test, use.kind, use.columns)
        return [f"write {test.operator} ${{{name}.{column}}} for the list of a field"]
    if right.kinds != frozenset({"list"}):
        return []
    if not variable.path and use.kind == "unknown":
        return [f"write IN {shown}"] if test.operator == "=" else []
    if not variable.path:
        column = _column_for(test, use.kind, use.columns)
        return [f"write ${{{name}[0].{column}}} for the first item, or LEN ${{{name}}} for the number of items"]
    first = format_condition(Variable(variable.name, (0, *variable.path)))
    if test.operator in ("=", "!="):
        return [f"write {'IN' if test.operator == '=' else 'NOT IN'} {shown}, or {first} for the first item"]
    return [f"write {first} for the first item, or max({shown}) for the largest value"]


def _column_for(test: Comparison, kind: str, columns: tuple[str, ...] | None) -> str:
    """Return the field of the variable's items that was probably meant in the comparison."""
    name = test.left.text if isinstance(test.left, Field) else ""
    if columns is not None:
        return name if name in columns else format_name(columns[0]) if columns else "field"
    is_id = isinstance(test.left, Field) and test.left.path[-1] in _IDS
    return {"nodes": "id", "edges": "source", "paths": "source"}.get(kind, "field") if is_id or not name else name


_IDS = frozenset({"id", "source", "target"})


def _ids_of(step: Step, test: Comparison) -> list[Edit]:
    """Return the edit that turns ``id IN ${x}`` into ``id IN ${x.id}``, if ``x`` holds nodes."""
    variable, field = test.right, test.left
    if not isinstance(variable, Variable) or variable.path or test.operator not in ("IN", "NOT IN"):
        return []
    use = use_of(step, variable)
    if use is None or use.kind != "nodes" or not isinstance(field, Field) or field.path[-1] not in _IDS:
        return []
    return [Edit(variable.span, format_condition(Variable(variable.name, ("id",))))]


def _constants(context: Context, test: Comparison, left: Shape, severity: Severity) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each constant that a computed value or a variable never equals."""
    if not left.kinds:
        return
    for constant in constants_of(test):
        kinds = kinds_of_constant(constant)
        if not kinds or test.operator not in ("=", "!=", "IN", *_ORDER, *_TEXTUAL, "CONTAINS"):
            continue
        if test.operator in _TEXTUAL:
            fits = "text" in left.kinds
        elif test.operator == "CONTAINS":
            fits = "list" in left.kinds or ("text" in left.kinds and kinds == {"text"})
        else:
            fits = bool(left.kinds & kinds)
        if fits:
            continue
        shown = format_condition(test.left)[:60]
        message = f"{shown} is always a {_words(left.kinds)}, never a {_words(kinds)}"
        if test.operator in _TEXTUAL or test.operator == "CONTAINS":
            message = f"{shown} is always a {_words(left.kinds)}, which {test.operator} never matches"
        edits = _other_type(context, constant, left, test.operator)
        hint = f"write {edits[0].text}" if edits else ""
        if isinstance(test.left, Variable) and left.kinds == frozenset({"list"}):
            hint = (
                f"LEN {shown} is the number of its items"
                if not test.left.path
                else f"CONTAINS tests whether {shown} contains a value"
            )
        yield context.diagnostic(
            "GASL097",
            message,
            constant.span,
            hint,
            edits=edits,
            severity="warning" if test.operator == "IN" else severity,
        )


def _other_type(context: Context, constant: Constant, left: Shape, operator: str) -> list[Edit]:
    """Return the edit that turns ``"30"`` into 30, or 30 into ``"30"``. Return no edit if it would change the meaning."""
    value = constant.value
    if operator in _TEXTUAL or operator == "CONTAINS" or not constant.span.end:
        return []
    if left.kinds == frozenset({"number"}) and isinstance(value, str) and _NUMBER.fullmatch(value):
        return [Edit(constant.span, value)]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if left.kinds == frozenset({"text"}) and is_number and operator not in _ORDER:
        return [Edit(constant.span, format_text(context.text(constant.span)))]
    return []
