"""Rules about calls in values: unknown functions, arguments that a function does not accept, the share in ``percentile``."""

from collections.abc import Iterator, Mapping

from attrs import frozen

from ...catalogue.value_functions import VALUE_FUNCTIONS
from ...diagnostic import Diagnostic, Edit, is_slip
from ...literals import short
from ...printer.gasl_names import backticked
from ...printer.gasl_printer import format_condition, format_key, format_name
from ...source import Span
from ...trees import gasl, walk
from ...trees.conditions import Call, Constant, Field, Variable
from .conditions import word_of
from .context import Context, Step, lint
from .fields import CONDITIONS, Scope, tested_in, values_of
from .shapes import shape_of

_RENAMED: Mapping[str, str] = {
    **dict.fromkeys(("tolower", "lcase", "lowercase", "to_lower", "casefold"), "lower"),
    **dict.fromkeys(("toupper", "ucase", "uppercase", "to_upper"), "upper"),
    **dict.fromkeys(("trim", "btrim"), "strip"),
    **dict.fromkeys(("ceiling",), "ceil"),
    **dict.fromkeys(("tostring", "string", "text", "to_string"), "str"),
    **dict.fromkeys(("tofloat", "float", "to_number", "tonumber", "num"), "number"),
    **dict.fromkeys(("ifnull", "nvl"), "coalesce"),
    **dict.fromkeys(("iff", "iif", "case"), "if"),
    **dict.fromkeys(("datetrunc", "date_truncate", "datetruncate"), "date_trunc"),
    **dict.fromkeys(
        ("size", "length", "len", "char_length", "character_length", "cardinality", "array_length"), "LEN "
    ),
    **dict.fromkeys(("least",), "min"),
    **dict.fromkeys(("greatest",), "max"),
}
"""Maps the names of other languages' functions, in lower case, to the GASL function with the same meaning."""

_HINTS: Mapping[str, str] = {
    **dict.fromkeys(("tointeger", "int", "integer", "toint"), "write floor(number(text)), or round(number(text))"),
    **dict.fromkeys(("substr", "mid", "left", "right"), "write substring(text, from, count)"),
    **dict.fromkeys(("concat", "concat_ws", "join"), "write a + b"),
    **dict.fromkeys(("pow", "power", "square"), "write x * x"),
    **dict.fromkeys(("levenshtein", "edit_distance", "jaro_winkler"), "write similarity(a, b), a number from 0 to 1"),
    **dict.fromkeys(("datediff", "date_diff"), "write days_between(a, b)"),
    **dict.fromkeys(("month", "day", "week", "quarter"), 'write date_trunc("month", d)'),
    **dict.fromkeys(("contains", "includes"), 'write name CONTAINS "x"'),
    **dict.fromkeys(("startswith", "starts_with"), 'write name STARTS_WITH "x"'),
    **dict.fromkeys(("endswith", "ends_with"), 'write name ENDS_WITH "x"'),
    **dict.fromkeys(("regexp_matches", "regexp", "matches"), 'write name MATCHES "x"'),
    **dict.fromkeys(("exists", "isnotnull"), "write name IS NOT NULL"),
    "isnull": "write name IS NULL, or coalesce(a, b) for another value in place of null",
    **dict.fromkeys(("labels", "type"), "the kind is an attribute: write its name, as in p.entity_type"),
    **dict.fromkeys(("id", "elementid"), "the id is a field: write id, or p.id in patterns"),
    **dict.fromkeys(("degree", "in_degree", "out_degree"), "the degree is a field: write it without parentheses"),
    **dict.fromkeys(("nodes", "relationships", "edges"), "they are fields of a path: write nodes or edges"),
}  # fmt: skip
"""Maps names, in lower case, to hints: the names of other languages' functions that have no equivalent in GASL."""

_AGGREGATES: Mapping[str, str] = {
    **{name: name for name in ("count", "mean", "median", "stdev", "percentile", "collect")},
    "avg": "mean", "average": "mean", "stddev": "stdev", "stdevp": "stdev", "std": "stdev", "percentilecont": "percentile",
    "percentiledisc": "percentile", "percentile_cont": "percentile", "quantile": "percentile", "array_agg": "collect",
    "group_concat": "collect", "string_agg": "collect",
}  # fmt: skip
"""Maps names of aggregate functions, in lower case and from any language, to the names in AGGREGATE."""
_CLOCK = frozenset({
    "now", "today", "current_date", "current_time", "current_timestamp", "sysdate", "getdate", "utcnow", "localtime", "timestamp",
    "datetime", "localdatetime",
})  # fmt: skip
_RANDOM = frozenset({"rand", "random", "randint", "uuid", "randomuuid", "newid"})
_OF_LISTS = frozenset({"sum", "min", "max"})


@frozen(eq=False)
class _Called:
    """A call, and the items whose fields it uses. ``tests`` is true if the call is in a condition."""

    call: Call
    scope: Scope
    tests: bool


def _calls(step: Step) -> tuple[_Called, ...]:
    return step.once("calls", lambda: _find_calls(step)) if step.nodes_of(Call) else ()


def _find_calls(step: Step) -> Iterator[_Called]:
    for condition, scope in tested_in(step):
        yield from (_Called(node, scope, True) for node in walk(condition) if isinstance(node, Call))
    for value, scope in values_of(step):
        yield from (_Called(node, scope, False) for node in walk(value) if isinstance(node, Call))


def _name_span(context: Context, call: Call) -> Span:
    """Return the span of the function's name in a call."""
    text = context.text(call.span)
    at = text.find("(", text.rfind("`", 0, len(call.function) + 2) + 1)
    return Span(call.span.start, call.span.start + len(text[: max(at, 0)].rstrip())) if at > 0 else call.span


@lint("GASL078")
def unknown_function(context: Context) -> Iterator[Diagnostic]:
    """Report calls of unknown functions."""
    for step in context.steps:
        for called in _calls(step):
            if called.call.function not in VALUE_FUNCTIONS:
                yield _unknown(context, step, called)
            elif called.call.function.lower() == "date" and not called.call.arguments:
                yield _not_repeatable(context, called.call)


def _unknown(context: Context, step: Step, called: _Called) -> Diagnostic:
    call, span = called.call, _name_span(context, called.call)
    name, lowered = call.function, call.function.lower()
    if lowered in _CLOCK | _RANDOM or (lowered == "date" and not call.arguments):
        return _not_repeatable(context, call)
    if lowered == "count" and called.scope.on == "variables" and len(call.arguments) == 1:
        message, hint = "count is allowed only in AGGREGATE", "LEN ${name} is the number of items in a variable"
        return context.diagnostic("GASL078", message, span, hint, edits=[Edit(span, "LEN ")])
    if lowered in _AGGREGATES or (lowered in _OF_LISTS and len(call.arguments) == 1):
        return _of_groups(context, step, called)
    message = f"unknown function {name[:80]}"
    if "." in name and (method := _as_function(context, call)) is not None:
        written, edit = method
        return context.diagnostic("GASL078", f"{message}: GASL has no methods", span, f"write {written}", edits=[edit])
    if lowered in VALUE_FUNCTIONS or lowered in _RENAMED:
        meant = lowered if lowered in VALUE_FUNCTIONS else _RENAMED[lowered]
        if meant == "LEN ":
            return context.diagnostic("GASL078", message, span, "write LEN x", edits=[Edit(span, meant)])
        if meant in VALUE_FUNCTIONS:
            signature, count = VALUE_FUNCTIONS[meant], len(call.arguments)
            takes = signature.least <= count and (signature.most is None or count <= signature.most)
            is_alone = lowered in ("greatest", "least") and count < 2
            hint = f"write {meant}(a, b, ...)" if lowered in ("greatest", "least") else f"write {signature.signature}"
            edits = [Edit(span, meant)] if takes and not is_alone else []
            return context.diagnostic("GASL078", message, span, hint, edits=edits)
    if lowered in ("type", "labels") and (found := _kind_of_element(context, called)) is not None:
        hint, edits = f"write {found}", [Edit(call.span, found)] if lowered == "type" else []
        return context.diagnostic("GASL078", message, span, hint, edits=edits)
    if lowered in _HINTS:
        return context.diagnostic("GASL078", message, span, _HINTS[lowered])
    near = context.suggestion(name, tuple(VALUE_FUNCTIONS))
    if near is None:
        hints = [f"the functions are {', '.join(VALUE_FUNCTIONS)}"]
        if (written := context.text(call.span)).startswith(f"{name} ") and "`" not in written:
            hints.insert(0, f"write {backticked(written)} for a field of this name")
        return context.diagnostic("GASL078", message, span, *hints)
    edits = [Edit(span, near)] if is_slip(name, near) else []
    return context.diagnostic("GASL078", message, span, f"did you mean {near}?", edits=edits)


def _kind_of_element(context: Context, called: _Called) -> str | None:
    """Return the equivalent of a function of Cypher: ``r.relation`` for ``type(r)``, ``p.label`` for ``labels(p)``.

    Return None if the graph has no attribute for types or labels.
    """
    call, schema = called.call, context.schema
    argument = call.arguments[0] if len(call.arguments) == 1 else None
    if schema is None or not isinstance(argument, Field) or len(argument.path) != 1:
        return None
    is_type = call.function.lower() == "type"
    if called.scope.contents.parts.get(argument.path[0]) != ("edges" if is_type else "nodes"):
        return None
    attribute = schema.relation_attribute if is_type else schema.label_attribute
    return format_key(Field((argument.path[0], attribute))) if attribute is not None else None


def _not_repeatable(context: Context, call: Call) -> Diagnostic:
    message = f"{call.function}() is not available: a program must give the same result each time"
    if call.function.lower() in _RANDOM:
        hint = "SELECT name SAMPLE 10 AS some takes a sample that is the same each time"
    else:
        hint = "declare PARAM today TEXT at the beginning, write ${today}, and pass the date when the program runs"
    return context.diagnostic("GASL078", message, call.span, hint)


def _of_groups(context: Context, step: Step, called: _Called) -> Diagnostic:
    """Return the diagnostic about a function of AGGREGATE that is called in another place."""
    call, span = called.call, _name_span(context, called.call)
    right = _AGGREGATES.get(call.function.lower(), call.function.lower())
    message = f"{call.function} is allowed only in AGGREGATE"
    if right != call.function.lower():
        message += f", where it is called {right}"
    source = called.scope.name or "name"
    given = ", ".join(format_condition(each) for each in call.arguments)
    if right in ("count", "percentile"):
        given = "" if right == "count" else given if len(call.arguments) > 1 else f"{given or 'field'}, 0.95"
    computed = f"{right}({given or ('' if right == 'count' else 'field')})"
    if len(computed) > 60:
        computed = f"{right}({'' if right == 'count' else 'field'})"
    column = "n" if right == "count" else right
    hint = f"AGGREGATE {format_name(source)} BY field COMPUTE {computed} AS {column} AS groups"
    if called.tests:
        return context.diagnostic(
            "GASL078", message, span, f"compute it first: {hint}", f"then SELECT groups WHERE {column} > 3 AS found"
        )
    return context.diagnostic("GASL078", message, span, f"write {hint}")


def _as_function(context: Context, call: Call) -> tuple[str, Edit] | None:
    """Return ``lower(name)`` for ``name.lower()``, and the edit that writes it; None for an unknown function."""
    owner, _, method = call.function.rpartition(".")
    found = method.lower() if method.lower() in VALUE_FUNCTIONS else _RENAMED.get(method.lower(), "").strip()
    if found not in VALUE_FUNCTIONS or not owner or "`" in context.text(call.span)[: len(call.function) + 1]:
        return None
    start = context.text(call.span).find("(") + 1
    first = f"{found}({owner}" + (", " if call.arguments else "")
    rest = ", ..." if call.arguments else ""
    return f"{found}({owner}{rest})", Edit(Span(call.span.start, call.span.start + start), first)


@lint("GASL079")
def function_arguments(context: Context) -> Iterator[Diagnostic]:
    """Report arguments that a function does not accept."""
    for step in context.steps:
        for called in _calls(step):
            call, signature = called.call, VALUE_FUNCTIONS.get(called.call.function)
            if signature is None:
                continue
            count, most = len(call.arguments), signature.most
            if count < signature.least or (most is not None and count > most):
                if call.function == "date" and not count:
                    continue  # the rule for clocks reports it
                message = f"wrong number of arguments for {call.function}: {count}"
                yield context.diagnostic("GASL079", message, call.span, f"write {signature.signature}")
                continue
            yield from _misplaced_conditions(context, call)
            if call.function in _OF_LISTS and count == 1:
                yield from _of_one_item(context, step, called)


def _misplaced_conditions(context: Context, call: Call) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each condition where a value is needed, and for each value where ``if`` needs its condition."""
    for place, argument in enumerate(call.arguments):
        wanted = call.function == "if" and place == 0
        shown = format_condition(argument)[:60]
        if isinstance(argument, CONDITIONS) and not wanted:
            message = f"{shown} is a condition, but {call.function} takes a value here"
            hint = (
                f"write if({shown}, 1, 0) for a number" if len(shown) < 40 else "write if(condition, 1, 0) for a number"
            )
            yield context.diagnostic("GASL079", message, argument.span, hint)
        elif wanted and not isinstance(argument, CONDITIONS):
            message = f"the first argument of if is a condition, but {shown} is a value"
            hint = f"write {shown} = true, for example" if isinstance(argument, Field) else "write a comparison"
            yield context.diagnostic("GASL079", message, argument.span, hint)


def _of_one_item(context: Context, step: Step, called: _Called) -> Iterator[Diagnostic]:
    """Yield a diagnostic if ``sum``, ``min`` or ``max`` has a single argument that is never a list."""
    call, (argument,) = called.call, called.call.arguments
    shape = shape_of(context, step, argument, called.scope)
    kinds = sorted(shape.kinds or ())
    if not shape.is_scalar or len(kinds) != 1:
        return
    kind = kinds[0]
    shown = format_condition(argument)[:60]
    message = f"{call.function} with one argument takes a list, but {shown} is a {word_of(kind)}"
    source = called.scope.name or "name"
    column = f"{call.function}_{argument.path[-1]}" if isinstance(argument, Field) else call.function
    hint = f"AGGREGATE {format_name(source)} COMPUTE {call.function}({shown}) AS {format_name(column)} AS totals computes it over all items"
    also = f"{call.function}(a, b) compares several values of an item" if call.function != "sum" else ""
    yield context.diagnostic("GASL079", message, call.span, hint, also)


@lint("GASL092")
def percentile_share(context: Context) -> Iterator[Diagnostic]:
    """Report calls of ``percentile`` whose share is not a constant from 0 to 1."""
    for step in context.steps:
        for node in step.nodes_of(gasl.Computation):
            if node.share is None or isinstance(node.share, Variable):
                continue
            share = node.share.value if isinstance(node.share, Constant) else None
            if isinstance(share, bool) or not isinstance(share, int | float):
                shown = short(share) if isinstance(share, str) else format_condition(node.share)[:60]
                message = f"percentile takes a share from 0 to 1, not {shown}"
                yield context.diagnostic("GASL092", message, node.share.span, "write percentile(field, 0.95)")
            elif not 0 <= share <= 1:
                edits = [Edit(node.share.span, f"{share / 100:g}")] if 1 < share <= 100 else []
                hint = f"write {share / 100:g}" if edits else "write percentile(field, 0.95)"
                message = f"percentile takes a share from 0 to 1, not {share}"
                yield context.diagnostic("GASL092", message, node.share.span, hint, edits=edits)
