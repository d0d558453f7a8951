"""What a step computes, in words: "count of extractions where severity is mild or severe"."""

from collections.abc import Sequence

from ...expr import BoolChain, Comparison, Expr, Field, ListDisplay, Literal, Name, Not
from ...printer.expr import format_expr
from ...seed import Aggregate, Case, Const, DefineFilter, FilterUse, Formula, Lookup, SeedStep
from ..expr.values import shown

__all__ = ["condition_in_words", "step_in_words"]

_TESTS = {"==": "is", "!=": "is not", "<": "is below", "<=": "is at most", ">": "is above", ">=": "is at least"}
_AGGREGATES = {"sum": "sum of", "max": "greatest", "min": "least"}
_LOOKUPS = {
    "exact": "value of the first key that is exactly",
    "substring_first": "value of the first key found in",
    "substring_max": "greatest value of the keys found in",
    "word_first": "value of the first key found as a word in",
    "word_max": "greatest value of the keys found as words in",
}


def step_in_words(step: SeedStep) -> str:
    """Say what ``step`` computes, without its name or its value."""
    match step:
        case DefineFilter():
            return f"extractions{_where(step.where)}"
        case Aggregate(operation="count"):
            return f"count of extractions{_where(step.where)}"
        case Aggregate():
            element = "" if step.element is None else f" {_subject(step.element)}"
            of_none = "" if step.operation == "sum" or step.default is None else f"; {shown(step.default)} of none"
            return f"{_AGGREGATES[step.operation]}{element} over extractions{_where(step.where)}{of_none}"
        case Lookup():
            return f"{_LOOKUPS[step.match]} {format_expr(step.source)}; {shown(step.default)} if there is none"
        case Case():
            return "value of the first rule that holds"
        case Formula():
            return format_expr(step.expr)
        case Const():
            return "a constant"


def _where(where: Sequence[Expr | FilterUse] | None) -> str:
    return f" where {' and '.join(condition_in_words(part) for part in where)}" if where else ""


def condition_in_words(part: Expr | FilterUse) -> str:
    """Say what must hold: a comparison of a field in words, anything else as it is written."""
    match part:
        case FilterUse():
            return f"{part.name} {'holds' if part.holds else 'does not hold'}"
        case Not():
            return f"not ({condition_in_words(part.operand)})"
        case BoolChain():
            nested = (condition_in_words(operand) for operand in part.operands)
            return f" {part.operator} ".join(
                f"({words})" if isinstance(operand, BoolChain) else words
                for operand, words in zip(part.operands, nested, strict=True)
            )
        case Comparison(first=Field() | Name() as subject, rest=((test, operand),)):
            words = _comparison(test, operand)
            return f"{_subject(subject)} {words}" if words else format_expr(part)
        case Comparison(first=Literal() as low, rest=(("<=", Field() | Name() as subject), ("<=", Literal() as high))):
            return f"{_subject(subject)} is from {_literal(low)} to {_literal(high)}"
        case Field() | Name():
            return f"{_subject(part)} is true"
        case _:
            return format_expr(part)


def _comparison(test: str, operand: Expr) -> str:
    if isinstance(operand, ListDisplay) and test in ("in", "not in") and operand.items:
        literals = [item for item in operand.items if isinstance(item, Literal)]
        if len(literals) != len(operand.items):
            return ""
        *firsts, last = map(_literal, literals)
        several = f"{', '.join(firsts)} {'or' if test == 'in' else 'nor'} {last}" if firsts else last
        return f"is {several}" if test == "in" else f"is {'neither ' if firsts else 'not '}{several}"
    if not isinstance(operand, Literal):
        return ""
    if operand.value is None:
        return {"==": "is null", "is": "is null", "!=": "is not null", "is not": "is not null"}.get(test, "")
    return f"{_TESTS[test]} {_literal(operand)}" if test in _TESTS else ""


def _literal(literal: Literal) -> str:
    value = literal.value
    return value if isinstance(value, str) and value.isidentifier() else shown(value)


def _subject(expr: Expr) -> str:
    return expr.name if isinstance(expr, Field) and expr.namespace == "extraction" else format_expr(expr)
