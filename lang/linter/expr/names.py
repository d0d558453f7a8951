"""Rules about names: values, fields of the extraction, metadata of a review, keys of the context, variables."""

import json
import re
from collections.abc import Collection, Iterator

from ...catalogue.operations import FUNCTIONS, METHODS, Function
from ...diagnostic import Diagnostic, Edit
from ...evaluate.seed.interpreter import META_KEYS
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
    if name in FUNCTIONS:
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
    if context.has_enough:
        return context.diagnostic("EXPR050", message, node.span)
    known = names.union(place.variables)
    near = context.suggestion(name, known)
    edits = [Edit(node.span, near)] if near else []
    hint = f"did you mean `{near}`?" if near else listed(known) if known else "the expression has no values"
    return context.diagnostic("EXPR050", message, node.span, hint, edits=edits)


def _reads_of_context(context: Context) -> dict[Span, tuple[Span, str]]:
    """Return the span and the key of each ``context["key"]`` and ``context.get("key")``, keyed by the span of ``context``."""
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
    """Return the full spelling of a field or a key that lacks its namespace, or None if that spelling is not certain."""
    fields = context.fields or {}
    rows = [variable for variable, binding in place.variables.items() if binding == "row"]
    if context.row and (name in fields) != (name in META_KEYS):
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
            hint = "values are named without a prefix"
        what = "extraction" if node.namespace == "extraction" else "review"
        message = f"`{node.namespace}.{node.name:.60}` has no value: there is no current {what} here"
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
            meta = node.name in META_KEYS
            written = f"meta.{node.name}" if meta else None
            yield _no_field(context, node.name, node.span, span, written, quoted=False)
        elif part is not None and part[0] == "extraction" and part[1] not in fields and part[1] != "meta":
            key = part[2]
            is_meta = part[1] in META_KEYS and not isinstance(node, MethodCall)
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
    """Return the span of ``name``, which is at the end of ``span``."""
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
        if name in META_KEYS:
            continue
        near = context.suggestion(name, META_KEYS)
        edits = [Edit(inner, json.dumps(near) if quoted else near)] if near else []
        hint = f"did you mean `{near}`?" if near else f"a review has {', '.join(META_KEYS)}"
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
    """Report variables of comprehensions whose name is already in use."""
    for place in context.places:
        if not isinstance(place.node, Comprehension):
            continue
        taken = set(place.variables)
        for clause in place.node.clauses:
            name = clause.name
            why = ""
            if name in taken:
                why = "another `for` has this variable"
            elif context.known is not None and name in context.known:
                why = "a value has this name"
            elif name in FUNCTIONS:
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
    **dict.fromkeys(("std", "stddev", "stdev_s", "std_dev", "standard_deviation"), "write `stdev(xs)`: of a sample, n - 1 in the divisor"),
    **dict.fromkeys(("var", "var_s"), "write `variance(xs)`: of a sample, n - 1 in the divisor"),
    **dict.fromkeys(("pstdev", "stdevp"), "for a whole population write `stdev(xs) * sqrt((len(xs) - 1) / len(xs))`"),
    **dict.fromkeys(("pvariance", "varp"), "for a whole population write `variance(xs) * (len(xs) - 1) / len(xs)`"),
    **dict.fromkeys(("most_common", "multimode"), "write `mode(xs)`"),
    "list": "write `[x for x in xs]`", "tuple": "write `[x for x in xs]`",
    "count": "count with `sum(1 for x in xs if ...)`", "countif": "count with `sum(1 for x in xs if ...)`",
    "count_if": "count with `sum(1 for x in xs if ...)`", "filter": "write `[x for x in xs if ...]`",
    "map": "write `[... for x in xs]`", "next": "write `[x for x in xs if ...][0]`",
    "range": "expressions have no numbered loops; iterate over a list", "dict": 'write `{"key": value}`',
    "isinstance": "expressions can't test the type of a value", "type": "expressions can't test the type of a value",
    "print": "an expression only returns a value", "reversed": "write `xs[::-1]`",
    "sign": "write `1 if x > 0 else -1 if x < 0 else 0`", "trunc": "write `int(x)`",
}  # fmt: skip
"""Replacements for functions that Python or spreadsheets have, but expressions do not."""


@lint("EXPR052")
def unknown_methods(context: Context) -> Iterator[Diagnostic]:
    """Report unknown methods."""
    for place in context.places:
        node = place.node
        if isinstance(node, MethodCall) and node.method not in METHODS:
            near = context.suggestion(node.method, METHODS)
            hint = f"did you mean `.{near}`?" if near else listed((f".{name}" for name in METHODS), 12)
            yield context.diagnostic("EXPR052", f"unknown method `.{node.method:.60}`", node.span, hint)


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
        message = f"{name} takes {_wanted(signature)}, not {count or 'none'}"
        yield context.diagnostic(
            "EXPR053", message, node.span, f"write `{signature.signature}`: {_first_down(signature.doc)}"
        )


def _wanted(signature: Function) -> str:
    least, most = signature.least, signature.most
    if least == most:
        return "no argument" if not least else f"{least} argument{'s' if least > 1 else ''}"
    return f"at least {least} argument{'s' if least > 1 else ''}" if most is None else f"{least} to {most} arguments"


def _first_down(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:].rstrip(".")


@lint("EXPR054")
def keywords(context: Context) -> Iterator[Diagnostic]:
    """Report keywords that are repeated, that a function does not take, or that it takes only together with a single list."""
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
                    hint = "there is no key function; take the values in a comprehension: `max(x[...] for x in xs)`"
                yield context.diagnostic("EXPR054", f"{node.function} takes no `{name:.60}=`", value.span, hint)
            elif name in seen:
                yield context.diagnostic("EXPR054", f"`{name}=` stands twice", value.span, "leave one out")
            elif name == "default" and len(node.arguments) > 1:
                message = f"{node.function} takes `default=` only with one list"
                yield context.diagnostic(
                    "EXPR054", message, value.span, "leave it out: of several values there is always one"
                )
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
        yield context.diagnostic("EXPR061", "sum takes numbers, but true is not 1", node.span, hint, edits=edits)


def _is_boolean(node: Expr) -> bool:
    if isinstance(node, BoolChain):
        return all(isinstance(each, Comparison | Not) for each in node.operands)
    is_test = isinstance(node, Comparison | Not) or (isinstance(node, Literal) and isinstance(node.value, bool))
    return is_test or (isinstance(node, Call) and node.function in ("bool", "any", "all"))


def _evolved(clause: Clause, *, conditions: tuple[Expr, ...]) -> Clause:
    return Clause(clause.name, clause.iterable, conditions, span=clause.span)


def _formatted(expr: Expr) -> str:
    """Return the text of a rewritten expression, or "" if the printer can't write it."""
    try:
        return format_expr(expr)
    except ValueError:
        return ""


@lint("EXPR063")
def misplaced_generators(context: Context) -> Iterator[Diagnostic]:
    """Report ``len(x for x in xs)``: a generator has no length, and only functions of lists can iterate over a generator."""
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
    """Report ``set(...)`` as the value of the whole expression: sets exist only inside an expression."""
    node = context.expr
    if isinstance(node, Call) and node.function == "set":
        written = _formatted(Call("sorted", (node,)))
        edits = [Edit(node.span, written)] if written else []
        yield context.diagnostic(
            "EXPR067", "the result can't be a set", node.span, "write sorted(...) around it", edits=edits
        )
