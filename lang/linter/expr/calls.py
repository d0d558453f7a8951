"""Rules about calls: which functions and methods there are, their arguments, generators in them, a set as the result."""

from collections.abc import Iterator

from ...diagnostic import Diagnostic, Edit
from ...expr import BoolChain, Call, Clause, Comparison, Comprehension, Expr, Literal, MethodCall, Not
from ...functions import FUNCTIONS, METHODS, Function
from ...printer.expr import format_expr
from ...source import Span
from .registry import Context, Lint, lint, listed

__all__ = ["LINTS"]


@lint("EXPR051")
def unknown_functions(context: Context) -> Iterator[Diagnostic]:
    """Functions that are not there."""
    for place in context.places:
        node = place.node
        if isinstance(node, Call) and node.function not in FUNCTIONS:
            near = context.suggestion(node.function, FUNCTIONS)
            span = Span(node.span.start, node.span.start + len(node.function))
            edits = [Edit(span, near)] if near else []
            hint = _INSTEAD.get(node.function.lower()) or (f"did you mean `{near}`?" if near else listed(FUNCTIONS, 30))
            edits = [] if node.function.lower() in _INSTEAD else edits
            yield context.found("EXPR051", f"there is no function `{node.function:.60}`", span, hint, edits=edits)


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
    "range": "there are no numbered loops; go through a list", "dict": 'write `{"key": value}`',
    "isinstance": "the kinds of values can't be asked for", "type": "the kinds of values can't be asked for",
    "print": "an expression gives a value and does nothing else", "reversed": "write `xs[::-1]`",
    "sign": "write `1 if x > 0 else -1 if x < 0 else 0`", "trunc": "write `int(x)`",
}  # fmt: skip
"""What is written for functions of Python and of spreadsheets."""


@lint("EXPR052")
def unknown_methods(context: Context) -> Iterator[Diagnostic]:
    """Methods that are not there."""
    for place in context.places:
        node = place.node
        if isinstance(node, MethodCall) and node.method not in METHODS:
            near = context.suggestion(node.method, METHODS)
            hint = f"did you mean `.{near}`?" if near else listed((f".{name}" for name in METHODS), 12)
            yield context.found("EXPR052", f"there is no method `.{node.method:.60}`", node.span, hint)


@lint("EXPR053")
def argument_counts(context: Context) -> Iterator[Diagnostic]:
    """Calls with too many arguments or too few."""
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
        yield context.found(
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
    """Keywords that a function does not take, or takes with one list only, or that stand twice."""
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
                yield context.found("EXPR054", f"{node.function} takes no `{name:.60}=`", value.span, hint)
            elif name in seen:
                yield context.found("EXPR054", f"`{name}=` stands twice", value.span, "leave one out")
            elif name == "default" and len(node.arguments) > 1:
                message = f"{node.function} takes `default=` only with one list"
                yield context.found(
                    "EXPR054", message, value.span, "leave it out: of several values there is always one"
                )
            seen.add(name)


@lint("EXPR061")
def sums_of_booleans(context: Context) -> Iterator[Diagnostic]:
    """``sum(x == 1 for ...)``: true is not 1; what is counted stands behind ``if``."""
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
        written = _written(Call("sum", (counted,)))
        hint = f"count with `{written:.200}`" if written else "count with `sum(1 for x in xs if ...)`"
        edits = [Edit(node.span, written)] if written else []
        yield context.found("EXPR061", "sum takes numbers, and true is not 1", node.span, hint, edits=edits)


def _is_boolean(node: Expr) -> bool:
    if isinstance(node, BoolChain):
        return all(isinstance(each, Comparison | Not) for each in node.operands)
    is_test = isinstance(node, Comparison | Not) or (isinstance(node, Literal) and isinstance(node.value, bool))
    return is_test or (isinstance(node, Call) and node.function in ("bool", "any", "all"))


def _evolved(clause: Clause, *, conditions: tuple[Expr, ...]) -> Clause:
    return Clause(clause.name, clause.iterable, conditions, span=clause.span)


def _written(expr: Expr) -> str:
    """Return the text of a rewritten expression, "" for one that no text can have."""
    try:
        return format_expr(expr)
    except ValueError:
        return ""


@lint("EXPR063")
def misplaced_generators(context: Context) -> Iterator[Diagnostic]:
    """``len(x for x in xs)``: a generator has no length, and only functions of lists go through one."""
    for place in context.places:
        node = place.node
        if not isinstance(node, Call) or node.function not in FUNCTIONS or FUNCTIONS[node.function].comprehension:
            continue
        for argument in node.arguments:
            if not isinstance(argument, Comprehension) or argument.kind != "generator":
                continue
            counted = Call("sum", (Comprehension("generator", Literal(1), argument.clauses),))
            written = _written(counted) if node.function == "len" and len(node.arguments) == 1 else ""
            hint = f"count with `{written:.200}`" if written else "write `[... for ...]` for a list"
            edits = [Edit(node.span, written)] if written else []
            message = (
                "a generator has no length" if node.function == "len" else f"{node.function} goes through no generator"
            )
            yield context.found("EXPR063", message, node.span, hint, edits=edits)


@lint("EXPR067")
def set_as_result(context: Context) -> Iterator[Diagnostic]:
    """``set(...)`` as the value of the whole: sets exist inside an expression only."""
    node = context.expr
    if isinstance(node, Call) and node.function == "set":
        written = _written(Call("sorted", (node,)))
        edits = [Edit(node.span, written)] if written else []
        yield context.found("EXPR067", "a set is no result", node.span, "write sorted(...) around it", edits=edits)


LINTS: tuple[Lint, ...] = (
    unknown_functions, unknown_methods, argument_counts, keywords, sums_of_booleans, misplaced_generators, set_as_result,
)  # fmt: skip
