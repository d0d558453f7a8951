"""The functions that values in GASL may call. These functions and the functions of expressions have the same implementations.

See ``docs/design/gasl.md#values``.
"""

from collections.abc import Mapping

from attrs import evolve

from .operations import FUNCTIONS, METHODS, Function

_SHARED = (
    "abs", "ceil", "clamp", "coalesce", "date", "date_trunc", "days_between", "exp", "floor", "fold", "ln", "log", "log10", "log2",
    "max", "min", "number", "replace", "round", "similarity", "sqrt", "str", "substring", "sum", "year",
)  # fmt: skip
_METHODS = {"lower": "lower(text)", "upper": "upper(text)", "strip": "strip(text)", "split": "split(text, separator)"}
_DOCS = {
    "max": "The largest element of a list, or the largest argument.",
    "min": "The smallest element of a list, or the smallest argument.",
    "sum": "The sum of a list of numbers, exactly rounded. COMPUTE sum(x) adds up the items of a group.",
}
"""The descriptions of functions whose description for expressions does not fit, because it mentions keywords."""


def _of_method(name: str) -> Function:
    """Return a string method converted to a function; its first argument is the string."""
    method = METHODS[name]
    most = None if method.most is None else method.most + 1
    return Function(name, _METHODS[name], method.doc, method.least + 1, most, gives=method.gives)


VALUE_FUNCTIONS: Mapping[str, Function] = {
    function.name: function
    for function in sorted(
        (
            *(
                evolve(FUNCTIONS[name], doc=_DOCS.get(name, FUNCTIONS[name].doc))
                for name in _SHARED
                if name in FUNCTIONS
            ),
            *map(_of_method, _METHODS),
            Function("if", "if(condition, a, b)", "a if the condition is true, else b.", 3, 3),
        ),
        key=lambda function: function.name,
    )
}
"""Maps names to the functions that a value may call. A null argument gives null, except for ``coalesce`` and ``if``."""

OF_NUMBERS = frozenset({"abs", "ceil", "clamp", "exp", "floor", "ln", "log", "log10", "log2", "round", "sqrt"})
"""The functions that have only numbers as arguments."""
OF_DATES: Mapping[str, tuple[int, ...]] = {"date": (0,), "year": (0,), "days_between": (0, 1), "date_trunc": (1,)}
"""Maps the name of each date function to the positions of those arguments that are dates."""
_OF_TEXT = frozenset({"fold", "lower", "replace", "similarity", "split", "strip", "substring", "upper", *OF_DATES})
_GIVES = {"year": "number", "days_between": "number", "number": "number", "date": "text", "date_trunc": "text"}


def argument_kind(function: str, place: int) -> str:
    """Return the kind of the argument at ``place``, "number" or "text"; "" if the function takes several kinds."""
    if function in OF_NUMBERS or (function == "substring" and place > 0):
        return "number"
    return "text" if function in _OF_TEXT else ""


def result_kind(function: str) -> str:
    """Return the kind of a result that is not null, "number", "text" or "list"; "" if it depends on the arguments."""
    return _GIVES.get(function) or VALUE_FUNCTIONS[function].gives


AGGREGATE_FUNCTIONS: Mapping[str, Function] = {
    function.name: function
    for function in (
        Function("count", "count(), count(value), count(DISTINCT value)", "The number of items, of values, or of different values.", 0, 1),
        Function("sum", "sum(value)", "The sum of the numbers in a group.", 1, 1),
        Function("mean", "mean(value)", "The arithmetic mean of the numbers in a group.", 1, 1),
        Function("min", "min(value)", "The smallest value in a group.", 1, 1),
        Function("max", "max(value)", "The largest value in a group.", 1, 1),
        Function("median", "median(value)", "The middle number of a group, or the mean of the two middle numbers.", 1, 1),
        Function("stdev", "stdev(value)", "The standard deviation of a sample (divisor n - 1).", 1, 1),
        Function("percentile", "percentile(value, share)", "The percentile for a share from 0 to 1, interpolated linearly.", 2, 2),
        Function("collect", "collect(value), collect(DISTINCT value)", "The list of the values in a group.", 1, 1),
    )
}  # fmt: skip
"""Maps the name of each function of ``COMPUTE`` to the function. These functions ignore nulls."""
