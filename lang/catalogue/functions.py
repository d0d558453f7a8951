"""The functions and methods of expressions, seen from the text: how many arguments, which keywords, what they give.

What they do is ``lang.evaluate.expr``'s business. See ``docs/design/seed.md#expressions``.
"""

from collections.abc import Mapping

from attrs import frozen

__all__ = ["FUNCTIONS", "METHODS", "Function"]


@frozen
class Function:
    """A function or a method: least and most arguments (None: any number), keywords, and what it does, in a sentence.

    ``comprehension``: its first argument may be a bare ``element for ...``.
    """

    name: str
    signature: str
    doc: str
    least: int
    most: int | None
    keywords: tuple[str, ...] = ()
    comprehension: bool = False


def _table(*functions: Function) -> Mapping[str, Function]:
    return {function.name: function for function in functions}


FUNCTIONS = _table(
    Function("abs", "abs(x)", "The number without its sign.", 1, 1),
    Function("all", "all(xs)", "Whether every element is true; true of none.", 1, 1, comprehension=True),
    Function("any", "any(xs)", "Whether an element is true; false of none.", 1, 1, comprehension=True),
    Function("bool", "bool(x)", "Whether the value is true: not null, false, 0 or empty.", 1, 1),
    Function("ceil", "ceil(x)", "The least integer that is not below x.", 1, 1),
    Function("clamp", "clamp(x, low, high)", "x, but at least low and at most high.", 3, 3),
    Function("exp", "exp(x)", "e to the power x.", 1, 1),
    Function("float", "float(x)", "The number, or the number that a string writes, as a float.", 1, 1),
    Function("floor", "floor(x)", "The greatest integer that is not above x.", 1, 1),
    Function("int", "int(x)", "The number towards zero, the number that a string writes, or 1 for true and 0 for false.", 1, 1),
    Function("len", "len(xs)", "How many elements, keys or characters there are.", 1, 1, comprehension=False),
    Function("ln", "ln(x)", "The natural logarithm; log is the same.", 1, 1),
    Function("log", "log(x)", "The natural logarithm, or to a base: log(x, base).", 1, 2),
    Function("log10", "log10(x)", "The logarithm to base 10.", 1, 1),
    Function("log2", "log2(x)", "The logarithm to base 2.", 1, 1),
    Function("max", "max(xs)", "The greatest of a list or of the arguments; max(xs, default=0) of none.", 1, None, ("default",), True),
    Function("median", "median(xs)", "The middle number; of an even count the mean of the two in the middle.", 1, 1, comprehension=True),
    Function("min", "min(xs)", "The least of a list or of the arguments; min(xs, default=0) of none.", 1, None, ("default",), True),
    Function("mode", "mode(xs)", "The most frequent element, the first of equally frequent ones.", 1, 1, comprehension=True),
    Function("percentile", "percentile(xs, p)", "The number below which the share p (0 to 1) lies, interpolated linearly.", 2, 2),
    Function("round", "round(x)", "The nearest integer, a half to the even one; round(x, digits) a number with so many digits.", 1, 2),
    Function("set", "set(xs)", "The different elements; sorted(set(xs)) is a list again.", 0, 1, comprehension=True),
    Function("sorted", "sorted(xs)", "The elements in order; sorted(xs, reverse=True) from the greatest.", 1, 1, ("reverse",), True),
    Function("sqrt", "sqrt(x)", "The square root.", 1, 1),
    Function("stdev", "stdev(xs)", "The standard deviation of a sample: n - 1 in the divisor.", 1, 1, comprehension=True),
    Function("str", "str(x)", "The value as a string: a number as JSON writes it.", 1, 1),
    Function("sum", "sum(xs)", "The sum of numbers, exactly rounded; 0 of none.", 1, 2, comprehension=True),
    Function("variance", "variance(xs)", "The variance of a sample: n - 1 in the divisor.", 1, 1, comprehension=True),
)  # fmt: skip
"""All functions by name."""

METHODS = _table(
    Function("count", "xs.count(x)", "How often x stands in a list, or a string in a string.", 1, 1),
    Function("endswith", "text.endswith(end)", "Whether the string ends so.", 1, 1),
    Function("get", 'object.get("key", default)', "What stands under the key; the default, or null, where there is none.", 1, 2),
    Function("lower", "text.lower()", "The string in lower case.", 0, 0),
    Function("split", "text.split(separator)", "The parts between separators; between spaces without one.", 0, 1),
    Function("startswith", "text.startswith(start)", "Whether the string begins so.", 1, 1),
    Function("strip", "text.strip()", "The string without spaces around it, or without the characters given.", 0, 1),
    Function("upper", "text.upper()", "The string in upper case.", 0, 0),
)  # fmt: skip
"""All methods by name."""
