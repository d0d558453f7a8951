"""What GASL's values and conditions mean, said once more and plainly. No module of the project is used.

Values are tuples: ``("field", "a.b")``, ``("const", v)``, ``("var", "x[0].y", v)``, ``("neg", v)``, ``("bin", sign, v, w)``,
``("len", v)``, ``("call", name, [v, ...])``, ``("if", condition, v, w)``. Conditions: ``("cmp", operator, v, w)``,
``("in", negated, v, [constant, ...])``, ``("null", negated, v)``, ``("not", c)``, ``("and", [c, ...])``, ``("or", [c, ...])``,
``("increasing", "edge.x")``, ``("quantified", which, "edge.x", operator, constant)``.
"""

import itertools
import math
import re
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from support.gasl_oracle import Mismatch, key, similarity

__all__ = ["MISSING", "fields_in", "holds", "is_number", "kept", "stored", "value_of"]

MISSING = object()


# Values of fields


def stored(item: Any, parts: list[str]) -> Any:
    """The field of an item; a field that is named like the whole rest of the path wins."""
    if not parts:
        return item
    if isinstance(item, list):
        found = [stored(each, parts) for each in item if isinstance(each, dict)]
        return [each for each in found if each is not MISSING]
    if not isinstance(item, dict):
        return MISSING
    if ".".join(parts) in item:
        return item[".".join(parts)]
    return stored(item[parts[0]], parts[1:]) if parts[0] in item else MISSING


def fields_in(part: Any) -> list[str]:
    """The fields that a value or a condition names."""
    if isinstance(part, tuple) and part[:1] == ("field",):
        return [part[1]]
    if isinstance(part, tuple | list):
        return [path for each in part for path in fields_in(each)]
    return []


# Arithmetic and functions


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def numbers(*values: Any) -> None:
    if not all(map(is_number, values)):
        raise Mismatch


def texts(*values: Any) -> None:
    if not all(isinstance(value, str) for value in values):
        raise Mismatch


def finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise Mismatch
    return value


def arithmetic(sign: str, left: Any, right: Any) -> Any:
    if sign == "+" and isinstance(left, str) and isinstance(right, str):
        return left + right
    numbers(left, right)
    if sign in "/%" and right == 0:
        return None
    try:
        match sign:
            case "+":
                return finite(left + right)
            case "-":
                return finite(left - right)
            case "*":
                return finite(left * right)
            case "/":
                return finite(left / right)
        return finite(left % right)
    except OverflowError:
        raise Mismatch from None


def instant(text: str) -> tuple[datetime, bool] | None:
    """The moment in UTC, and whether it has a time; None for a text that writes none."""
    text = text.strip()
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return found.astimezone(UTC), "T" in text or " " in text


def truncated(unit: str, text: str) -> Any:
    found = instant(text)
    if found is None:
        return None
    at = found[0].date()
    match unit:
        case "year":
            return at.replace(month=1, day=1).isoformat()
        case "quarter":
            return at.replace(month=at.month - (at.month - 1) % 3, day=1).isoformat()
        case "month":
            return at.replace(day=1).isoformat()
        case "week":
            return (at - timedelta(days=at.weekday())).isoformat()
        case "hour":
            return found[0].strftime("%Y-%m-%dT%H:00:00Z")
    return at.isoformat()


def days_between(one: str, other: str) -> Any:
    first, last = instant(one), instant(other)
    if first is None or last is None:
        return None
    days = (last[0] - first[0]) / timedelta(days=1)
    return days if first[1] or last[1] else int(days)


def extreme(name: str, values: list[Any]) -> Any:
    if len(values) == 1:
        if not isinstance(values[0], list):
            raise Mismatch
        values = values[0]
    if any(value is None or value != value for value in values):
        return None
    if not values:
        return 0 if name == "sum" else None
    if name != "sum" and all(isinstance(value, str) for value in values):
        return min(values) if name == "min" else max(values)
    numbers(*values)
    return finite({"min": min, "max": max, "sum": sum}[name](values))


def number(value: Any) -> Any:
    if is_number(value):
        return finite(value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    if re.fullmatch("[+-]?[0-9]+", text):
        return int(text)
    return float(text) if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text) else None


def text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    numbers(value)
    return repr(value)


def folded(text: str) -> str:
    bare = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(bare.casefold().split())


def called(name: str, values: list[Any]) -> Any:
    if name in ("min", "max", "sum"):
        return extreme(name, values)
    if any(value is None for value in values):
        return None
    if name in ("abs", "floor", "ceil", "round", "sqrt"):
        numbers(*values)
        if name == "sqrt" and values[0] < 0:
            raise Mismatch
        return {"abs": abs, "floor": math.floor, "ceil": math.ceil, "round": round, "sqrt": math.sqrt}[name](*values)
    if name == "str":
        return text_of(*values)
    if name == "number":
        return number(*values)
    texts(*(values[:1] if name == "substring" else values))
    match name, values:
        case "lower", [text]:
            return text.lower()
        case "upper", [text]:
            return text.upper()
        case "strip", [text]:
            return text.strip()
        case "fold", [text]:
            return folded(text)
        case "similarity", [one, other]:
            return similarity(one, other)
        case "replace", [text, part, new]:
            return text.replace(part, new)
        case "split", [text, separator]:
            return text.split(separator)
        case "substring", [text, start, count]:
            return text[start : start + count]
        case "date", [text]:
            return truncated("day", text)
        case "year", [text]:
            found = instant(text)
            return None if found is None else found[0].year
        case "date_trunc", [unit, text]:
            return truncated(unit, text)
        case "days_between", [one, other]:
            return days_between(one, other)
    raise AssertionError(name)


Read = Callable[[str], Any]


def value_of(value: Any, read: Read, *, lenient: bool) -> Any:
    """A value for one row. If lenient, an operation that can't take its operands is null."""

    def of(inner: Any) -> Any:
        return value_of(inner, read, lenient=lenient)

    def tried(run: Callable[[], Any]) -> Any:
        try:
            return run()
        except Mismatch:
            if not lenient:
                raise
            return None

    match value:
        case ("field", path):
            return read(path)
        case ("const", constant) | ("var", _, constant):
            return constant
        case ("neg", inner):
            found = of(inner)
            return None if found is None else tried(lambda: arithmetic("-", 0, found))
        case ("len", inner):
            found = of(inner)
            return len(found) if isinstance(found, str | list | dict) else None
        case ("bin", sign, left, right):
            one, other = of(left), of(right)
            return None if one is None or other is None else tried(lambda: arithmetic(sign, one, other))
        case ("if", condition, one, other):
            return of(one if holds(condition, read) is True else other)
        case ("call", "coalesce", arguments):
            return next((found for each in arguments if (found := of(each)) is not None), None)
        case ("call", name, arguments):
            found = [of(each) for each in arguments]
            return tried(lambda: called(name, found))
    raise AssertionError(value)


def kept(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        raise Mismatch
    return finite(value)


# Conditions: True, False, or None for unknown


def compared(operator: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    if operator in ("=", "!="):
        return (key(left) == key(right)) is (operator == "=")
    if operator in ("<", "<=", ">", ">="):
        alike = (
            (is_number(left) and is_number(right))
            or (isinstance(left, str) and isinstance(right, str))
            or (isinstance(left, bool) and isinstance(right, bool))
        )
        if not alike:
            return None
        return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator]
    if operator == "CONTAINS" and isinstance(left, list):
        members = [key(each) for each in left]
        return True if key(right) in members else None if None in members else False
    if not isinstance(left, str) or not isinstance(right, str):
        return None
    match operator:
        case "CONTAINS":
            return right in left
        case "STARTS_WITH":
            return left.startswith(right)
        case "ENDS_WITH":
            return left.endswith(right)
    return re.search(right, left) is not None


def either(answers: list[bool | None]) -> bool | None:
    return True if True in answers else None if None in answers else False


def opposite(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def holds(condition: Any, read: Read) -> bool | None:
    """Whether a condition holds for a row, by three-valued logic."""
    match condition:
        case ("cmp", operator, left, right):
            return compared(operator, *(value_of(side, read, lenient=True) for side in (left, right)))
        case ("null", negated, left):
            return (value_of(left, read, lenient=True) is None) is not negated
        case ("in", negated, left, constants):
            found = value_of(left, read, lenient=True)
            if not constants:
                return negated
            members = [key(each) for each in constants]
            inside: bool | None = None
            if found is not None:
                inside = True if key(found) in members else None if None in members else False
            return opposite(inside) if negated else inside
        case ("not", inner):
            return opposite(holds(inner, read))
        case ("or", several):
            return either([holds(each, read) for each in several])
        case ("and", several):
            return opposite(either([opposite(holds(each, read)) for each in several]))
        case ("quantified", which, path, operator, constant):
            answers = [compared(operator, each, constant) for each in read(f"*{path}")]
            if which == "ALL":
                return opposite(either([opposite(answer) for answer in answers]))
            return either(answers) if which == "ANY" else opposite(either(answers))
        case ("increasing", path):
            found = read(f"*{path}")
            pairs = itertools.pairwise(found)
            return None not in found and all(compared("<=", one, other) for one, other in pairs)
    raise AssertionError(condition)
