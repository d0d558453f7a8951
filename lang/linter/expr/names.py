"""Rules about names: values, fields of the extraction, metadata of a review, keys of the context, variables."""

import json
import re
from collections.abc import Collection, Iterator

from ...catalogue.operations import DATE_UNITS, FUNCTIONS, METHODS, RESERVED_FUNCTIONS, Function
from ...diagnostic import Diagnostic, Edit
from ...evaluate.seed.step_dependencies import EXTRACTIONS
from ...printer.expr_printer import format_expr
from ...source import Span
from ...trees.expr import (
    BoolChain,
    Call,
    Clause,
    Comparison,
    Comprehension,
    Expr,
    Field,
    Literal,
    MethodCall,
    Name,
    Not,
    Subscript,
)
from .expression_context import Context, Place, lint, listed, row_part

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}")


@lint("EXPR050")
def unknown_names(context: Context) -> Iterator[Diagnostic]:
    """Report undefined names."""
    for place in context.places:
        node = place.node
        if not isinstance(node, Name) or node.name in place.variables:
            continue
        if context.known is not None and node.name not in context.known:
            yield _unknown_name(context, place, node)


def _unknown_name(context: Context, place: Place, node: Name) -> Diagnostic:
    name, names = node.name, context.known or frozenset()
    message = f"unknown value `{name:.60}`"
    if name in RESERVED_FUNCTIONS:
        hint = f"it is a function: write `{FUNCTIONS[name].signature}`"
        return context.diagnostic("EXPR050", message, node.span, hint)
    if name == "context" and (reads := _reads_of_context(context)).get(node.span) is not None:
        whole, key = reads[node.span]
        hint = f"write `context.{key:.60}`"
        return context.diagnostic("EXPR050", message, node.span, hint, edits=[Edit(whole, f"context.{key}")])
    written = _in_namespace(context, place, name)
    if written is not None:
        return context.diagnostic("EXPR050", message, node.span, f"write `{written}`", edits=[Edit(node.span, written)])
    if context.fields is not None and name in context.fields and EXTRACTIONS in names:
        hint = f"it is a field of each extraction: `e[{json.dumps(name)}] for e in {EXTRACTIONS}`"
        return context.diagnostic("EXPR050", message, node.span, hint)
    if name in FUNCTIONS:
        hint = f"it is a function: write `{FUNCTIONS[name].signature}`"
        return context.diagnostic("EXPR050", message, node.span, hint)
    if context.has_enough:
        return context.diagnostic("EXPR050", message, node.span)
    known = names.union(place.variables)
    near = context.suggestion(name, known)
    edits = [Edit(node.span, near)] if near else []
    hint = f"did you mean `{near}`?" if near else listed(known) if known else "no values are defined"
    return context.diagnostic("EXPR050", message, node.span, hint, edits=edits)


def _reads_of_context(context: Context) -> dict[Span, tuple[Span, str]]:
    """Find all ``context["key"]`` and ``context.get("key")``.

    The result maps the span of each name ``context`` to the span of the complete access and to its key.
    """
    found: dict[Span, tuple[Span, str]] = {}
    for place in context.places:
        node = place.node
        if isinstance(node, MethodCall) and node.method == "get" and len(node.arguments) == 1:
            index: Expr = node.arguments[0]
        elif isinstance(node, Subscript):
            index = node.index
        else:
            continue
        key = index.value if isinstance(index, Literal) else None
        if (
            isinstance(node.value, Name)
            and node.value.name == "context"
            and isinstance(key, str)
            and _KEY.fullmatch(key)
        ):
            found[node.value.span] = node.span, key
    return found


def _in_namespace(context: Context, place: Place, name: str) -> str | None:
    """Return the full name of a field or a key that was written without its namespace. Return None if the full name is not certain."""
    fields = context.fields or {}
    rows = [variable for variable, binding in place.variables.items() if binding == "row"]
    if context.row and (name in fields) != (name in context.meta):
        return f"extraction.{name}" if name in fields else f"meta.{name}"
    if not context.row and len(rows) == 1 and name in fields:
        return f"{rows[0]}[{json.dumps(name)}]"
    if context.keys is not None and name in context.keys:
        return f"context.{name}"
    return None


@lint("EXPR055")
def namespaces(context: Context) -> Iterator[Diagnostic]:
    """Report ``extraction.`` and ``meta.`` where no extraction is available."""
    for place in context.places:
        node = place.node
        if not isinstance(node, Field) or node.namespace == "context" or context.row:
            continue
        rows = [variable for variable, binding in place.variables.items() if binding == "row"]
        key = f"[{json.dumps(node.name)}]"
        part = key if node.namespace == "extraction" else f'["meta"]{key}'
        edits = [Edit(node.span, rows[0] + part)] if len(rows) == 1 else []
        hint = (
            f"write `{rows[0]}{part}`" if edits else f"iterate over the extractions: `e{part} for e in {EXTRACTIONS}`"
        )
        if not edits and context.known is not None and EXTRACTIONS not in context.known:
            hint = "values have no prefix: write only the name"
        what = "extraction" if node.namespace == "extraction" else "review"
        message = f"`{node.namespace}.{node.name:.60}` has no value here: there is no current {what}"
        yield context.diagnostic("EXPR055", message, node.span, hint, edits=edits)


@lint("EXPR056")
def unknown_fields(context: Context) -> Iterator[Diagnostic]:
    """Report fields that are not extracted: ``extraction.f``, and ``e["f"]`` where ``e`` is an extraction."""
    fields = context.fields
    if fields is None:
        return
    for place in context.places:
        node, part = place.node, row_part(place)
        if isinstance(node, Field) and node.namespace == "extraction" and context.row and node.name not in fields:
            span = _last(node.span, node.name)
            meta = node.name in context.meta
            written = f"meta.{node.name}" if meta else None
            yield _no_field(context, node.name, node.span, span, written, quoted=False)
        elif part is not None and part[0] == "extraction" and part[1] not in fields and part[1] != "meta":
            key = part[2]
            is_meta = part[1] in context.meta and not isinstance(node, MethodCall)
            written = f'"meta"][{json.dumps(part[1])}' if is_meta else None
            yield _no_field(context, part[1], key.span, key.span, written, quoted=True)


def _no_field(context: Context, name: str, whole: Span, span: Span, written: str | None, *, quoted: bool) -> Diagnostic:
    message = f"unknown field `{name:.60}`"
    fields: Collection[str] = context.fields or {}
    if written is not None:
        shown = f"e[{written}]" if quoted else written
        return context.diagnostic(
            "EXPR056", message, whole, f"it is metadata of the review: write `{shown}`", edits=[Edit(whole, written)]
        )
    near = context.suggestion(name, fields)
    edits = [Edit(span, json.dumps(near, ensure_ascii=False) if quoted else near)] if near else []
    hint = f"did you mean `{near}`?" if near else listed(fields) or "nothing is extracted"
    return context.diagnostic("EXPR056", message, whole, hint, edits=edits)


def _last(span: Span, name: str) -> Span:
    """Return the span of ``name`` at the end of ``span``."""
    return Span(span.end - len(name), span.end)


@lint("EXPR057")
def unknown_metadata(context: Context) -> Iterator[Diagnostic]:
    """Report unknown metadata of a review: ``meta.x``, and ``e["meta"]["x"]``."""
    for place in context.places:
        node, part = place.node, row_part(place)
        if isinstance(node, Field) and node.namespace == "meta" and context.row:
            name, span, inner, quoted = node.name, node.span, _last(node.span, node.name), False
        elif part is not None and part[0] == "meta":
            name, span, inner, quoted = part[1], part[2].span, part[2].span, True
        else:
            continue
        if name in context.meta:
            continue
        near = context.suggestion(name, context.meta)
        edits = [Edit(inner, json.dumps(near) if quoted else near)] if near else []
        hint = f"did you mean `{near}`?" if near else f"a review has {', '.join(context.meta)}"
        yield context.diagnostic("EXPR057", f"a review has no `{name:.60}`", span, hint, edits=edits)


@lint("EXPR058")
def unknown_context(context: Context) -> Iterator[Diagnostic]:
    """Report keys that the context does not have."""
    keys = context.keys
    for place in context.places:
        node = place.node
        if keys is None or not isinstance(node, Field) or node.namespace != "context" or node.name in keys:
            continue
        near = context.suggestion(node.name, keys)
        edits = [Edit(_last(node.span, node.name), near)] if near else []
        hint = f"did you mean `context.{near}`?" if near else listed(keys) or "the context is empty"
        yield context.diagnostic("EXPR058", f"the context has no `{node.name:.60}`", node.span, hint, edits=edits)


@lint("EXPR062")
def shadowing(context: Context) -> Iterator[Diagnostic]:
    """Report a comprehension's variable if its name is already in use."""
    for place in context.places:
        if not isinstance(place.node, Comprehension):
            continue
        taken = set(place.variables)
        for clause in place.node.clauses:
            for name in clause.names:
                why = ""
                if name in taken:
                    why = "another `for` uses this variable" if clause.variable else "this variable is used twice"
                elif context.known is not None and name in context.known:
                    why = "a value has this name"
                elif name in RESERVED_FUNCTIONS:
                    why = "a function has this name"
                if why:
                    hint = "rename the variable"
                    yield context.diagnostic("EXPR062", f"`for {name:.60}`: {why}", clause.span, hint)
                taken.add(name)


# Rules about calls: unknown functions and methods, their arguments, generators as arguments, a set as the result.


@lint("EXPR051")
def unknown_functions(context: Context) -> Iterator[Diagnostic]:
    """Report unknown functions."""
    for place in context.places:
        node = place.node
        if isinstance(node, Call) and node.function not in FUNCTIONS:
            near = context.suggestion(node.function, FUNCTIONS)
            span = Span(node.span.start, node.span.start + len(node.function))
            edits = [Edit(span, near)] if near else []
            hint = _INSTEAD.get(node.function.lower()) or (f"did you mean `{near}`?" if near else listed(FUNCTIONS, 30))
            edits = [] if node.function.lower() in _INSTEAD else edits
            yield context.diagnostic("EXPR051", f"unknown function `{node.function:.60}`", span, hint, edits=edits)


_INSTEAD = {
    "fmean": "write `sum(xs) / len(xs)`",
    "avg": "write `sum(xs) / len(xs)`", "mean": "write `sum(xs) / len(xs)`", "average": "write `sum(xs) / len(xs)`",
    **dict.fromkeys(("quantile", "quantiles"), "write `percentile(xs, 0.95)`"),
    **dict.fromkeys(
        ("std", "stddev", "stdev_s", "std_dev", "standard_deviation"), "write `stdev(xs)`, the sample standard deviation (divisor n - 1)"
    ),
    **dict.fromkeys(("var", "var_s"), "write `variance(xs)`, the sample variance (divisor n - 1)"),
    **dict.fromkeys(("pstdev", "stdevp"), "for an entire population, write `stdev(xs) * sqrt((len(xs) - 1) / len(xs))`"),
    **dict.fromkeys(("pvariance", "varp"), "for an entire population, write `variance(xs) * (len(xs) - 1) / len(xs)`"),
    **dict.fromkeys(("most_common", "multimode"), "write `mode(xs)`"),
    "list": "write `[x for x in xs]`", "tuple": "write `[x for x in xs]`",
    "count": "count with `sum(1 for x in xs if ...)`", "countif": "count with `sum(1 for x in xs if ...)`",
    "count_if": "count with `sum(1 for x in xs if ...)`", "filter": "write `[x for x in xs if ...]`",
    "map": "write `[... for x in xs]`", "next": "write `[x for x in xs if ...][0]`",
    "dict": 'write `{"key": value}`',
    "isinstance": "expressions can't test the type of a value", "type": "expressions can't test the type of a value",
    "print": "an expression only returns a value", "reversed": "write `xs[::-1]`",
    **dict.fromkeys(("now", "today", "current_date"), "expressions have no clock; pass the date as a value"),
    **dict.fromkeys(("datediff", "date_diff"), "write `days_between(a, b)`, the days from a to b"),
    **dict.fromkeys(("month", "day"), "write `substring(date(t), 5, 2)` for the month, `substring(date(t), 8, 2)` for the day"),
    **dict.fromkeys(("substr", "mid"), "write `substring(t, from, count)`; the first index is 0"),
    **dict.fromkeys(("unaccent", "remove_accents"), "write `fold(t)`, which also folds case and white space"),
    "sign": "write `1 if x > 0 else -1 if x < 0 else 0`", "trunc": "write `int(x)`",
}  # fmt: skip
"""Replacements for functions that Python or spreadsheets have, but expressions do not."""


@lint("EXPR052")
def unknown_methods(context: Context) -> Iterator[Diagnostic]:
    """Report unknown methods."""
    for place in context.places:
        node = place.node
        if isinstance(node, MethodCall) and node.method not in METHODS:
            message = f"unknown method `.{node.method:.60}`"
            if (
                node.method == "replace" and len(node.arguments) == 2
            ):  # Python has this method; the other functions have no corresponding method
                written = _formatted(Call("replace", (node.value, *node.arguments)))
                edits = [Edit(node.span, written)] if written else []
                yield context.diagnostic("EXPR052", message, node.span, "write `replace(t, a, b)`", edits=edits)
                continue
            near = context.suggestion(node.method, METHODS)
            hint = f"did you mean `.{near}`?" if near else listed((f".{name}" for name in METHODS), 12)
            yield context.diagnostic("EXPR052", message, node.span, hint)


@lint("EXPR053")
def argument_counts(context: Context) -> Iterator[Diagnostic]:
    """Report calls with too many or too few arguments."""
    for place in context.places:
        node = place.node
        if isinstance(node, Call):
            signature, name = FUNCTIONS.get(node.function), node.function
        elif isinstance(node, MethodCall):
            signature, name = METHODS.get(node.method), f".{node.method}"
        else:
            continue
        count = len(node.arguments)
        if signature is None or (signature.least <= count and (signature.most is None or count <= signature.most)):
            continue
        message = f"{name} takes {_wanted(signature)}, not {count}"
        yield context.diagnostic(
            "EXPR053", message, node.span, f"write `{signature.signature}`: {_first_down(signature.doc)}"
        )


def _wanted(signature: Function) -> str:
    least, most = signature.least, signature.most
    if least == most:
        return f"{least} argument{'' if least == 1 else 's'}"
    return f"at least {least} argument{'s' if least > 1 else ''}" if most is None else f"{least} to {most} arguments"


def _first_down(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:].rstrip(".")


@lint("EXPR068")
def units(context: Context) -> Iterator[Diagnostic]:
    """Report unknown units of ``date_trunc``."""
    for place in context.places:
        node = place.node
        if not isinstance(node, Call) or node.function != "date_trunc" or len(node.arguments) != 2:
            continue
        unit = node.arguments[0]
        if not isinstance(unit, Literal) or unit.value in DATE_UNITS:
            continue
        near = context.suggestion(unit.value, DATE_UNITS) if isinstance(unit.value, str) else None
        edits = [Edit(unit.span, json.dumps(near))] if near else []
        hint = f'did you mean "{near}"?' if near else "units are " + ", ".join(map(json.dumps, DATE_UNITS))
        shown = json.dumps(unit.value, ensure_ascii=False)
        yield context.diagnostic("EXPR068", f"unknown unit {shown:.60}", unit.span, hint, edits=edits)


@lint("EXPR054")
def keywords(context: Context) -> Iterator[Diagnostic]:
    """Report invalid keywords: repeated keywords, keywords that the function lacks, and ``default=`` with several arguments."""
    for place in context.places:
        node = place.node
        signature = FUNCTIONS.get(node.function) if isinstance(node, Call) else None
        if not isinstance(node, Call) or signature is None:
            continue
        seen: set[str] = set()
        for name, value in node.keywords:
            if name not in signature.keywords:
                near = context.suggestion(name, signature.keywords)
                hint = f"did you mean `{near}=`?" if near else f"write `{signature.signature}`"
                if name == "key":
                    hint = f'write `sorted(xs, key="field")[{"-1" if node.function == "max" else "0"}]`'
                    hint += f", or compare only the values: `{node.function}(x[...] for x in xs)`"
                yield context.diagnostic("EXPR054", f"{node.function} does not accept `{name:.60}=`", value.span, hint)
            elif name in seen:
                yield context.diagnostic("EXPR054", f"`{name}=` is given twice", value.span, "remove one of them")
            elif name == "default" and len(node.arguments) > 1:
                message = f"{node.function} accepts `default=` only with a single list"
                hint = f"remove it: with several arguments, {node.function} always has a result"
                yield context.diagnostic("EXPR054", message, value.span, hint)
            seen.add(name)


@lint("EXPR061")
def sums_of_booleans(context: Context) -> Iterator[Diagnostic]:
    """Report ``sum(x == 1 for ...)``. True is not 1, so the condition must be written after ``if``."""
    for place in context.places:
        node = place.node
        if not isinstance(node, Call) or node.function != "sum" or not node.arguments:
            continue
        values = node.arguments[0]
        if not isinstance(values, Comprehension) or not _is_boolean(values.element) or len(node.arguments) > 1:
            continue
        *outer, last = values.clauses
        clause = _evolved(last, conditions=(*last.conditions, values.element))
        counted = Comprehension("generator", Literal(1), (*outer, clause))
        written = _formatted(Call("sum", (counted,)))
        hint = f"count with `{written:.200}`" if written else "count with `sum(1 for x in xs if ...)`"
        edits = [Edit(node.span, written)] if written else []
        message = "`sum` adds numbers, but a comparison is true or false"
        yield context.diagnostic("EXPR061", message, node.span, hint, edits=edits)


def _is_boolean(node: Expr) -> bool:
    if isinstance(node, BoolChain):
        return all(isinstance(each, Comparison | Not) for each in node.operands)
    is_test = isinstance(node, Comparison | Not) or (isinstance(node, Literal) and isinstance(node.value, bool))
    return is_test or (isinstance(node, Call) and node.function in ("bool", "any", "all"))


def _evolved(clause: Clause, *, conditions: tuple[Expr, ...]) -> Clause:
    return Clause(clause.names, clause.iterable, conditions, span=clause.span)


def _formatted(expr: Expr) -> str:
    """Return the text of a rewritten expression, or "" if the printer refuses its tree."""
    try:
        return format_expr(expr)
    except ValueError:
        return ""


@lint("EXPR063")
def misplaced_generators(context: Context) -> Iterator[Diagnostic]:
    """Report ``len(x for x in xs)``: a generator has no length, and only list functions can iterate over a generator."""
    for place in context.places:
        node = place.node
        if not isinstance(node, Call) or node.function not in FUNCTIONS or FUNCTIONS[node.function].comprehension:
            continue
        for argument in node.arguments:
            if not isinstance(argument, Comprehension) or argument.kind != "generator":
                continue
            counted = Call("sum", (Comprehension("generator", Literal(1), argument.clauses),))
            written = _formatted(counted) if node.function == "len" and len(node.arguments) == 1 else ""
            hint = f"count with `{written:.200}`" if written else "write `[... for ...]` for a list"
            edits = [Edit(node.span, written)] if written else []
            message = (
                "a generator has no length" if node.function == "len" else f"{node.function} does not take a generator"
            )
            yield context.diagnostic("EXPR063", message, node.span, hint, edits=edits)


@lint("EXPR067")
def set_as_result(context: Context) -> Iterator[Diagnostic]:
    """Report ``set(...)`` as the value of the complete expression: sets exist only inside an expression."""
    node = context.expr
    if isinstance(node, Call) and node.function == "set":
        written = _formatted(Call("sorted", (node,)))
        edits = [Edit(node.span, written)] if written else []
        yield context.diagnostic(
            "EXPR067", "the result can't be a set", node.span, "wrap it in sorted(...)", edits=edits
        )
