"""Expression values: their kinds, their truth values, and their format in messages.

The values are JSON values; a tuple counts as a list. Intermediate values may also be sets (``Distinct``) and generators.
A boolean is not a number. Values of other Python types are rejected when an expression uses them.
"""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from types import GeneratorType
from typing import Any, Literal, NoReturn

import attrs
from attrs import field, frozen

from ...diagnostic import Diagnostic
from ...errors import KnotworkError
from ...source import NOWHERE, Span
from ...trees import walk
from ...trees.expr import Comprehension, DictDisplay, Expr, ListDisplay, TupleDisplay

# Cost limits of an evaluation, and the meter that counts the cost. The interpreter and generated code charge the same cost.
# Steps charged:
# - an iteration of a comprehension's clause: 1 + the ``weight`` of its evaluated parts (see ``clause_costs``);
# - a function, an operator, a slice or ``in`` over n elements of a list, set or object: n // 8 (building a set or object: n // 4;
#   sorting: n * log2(n) // 32 more);
# - a function, an operator, a slice or ``in`` over n characters: n // 256, or twice as much for a search in a string;
# - the elements of a generator: nothing more, because they were charged as iterations;
# - strings in a list that is sorted, compared or turned into a set: all their characters;
# - a string, a list, a set or an object created by a function or an operator: 1 more;
# - a comparison of two lists or objects, at every level: 12, plus their elements; a list in a set: 6, plus 1 per element;
# - the copy of the result: half a step per list element, 2 per key of an object.
# Names, literals, arithmetic and comparisons of numbers, ``len``, a key and an index cost nothing by themselves: outside
# comprehensions, expressions are too short for their cost to matter.
# Bytes charged (``memory``) are upper estimates: 50 for a string plus 1 or 4 per character, 56 for a list plus 8 per element, and
# 90 per element of a set or object. Freed memory is not subtracted.

# Evaluation errors: a single exception with the kind of fault, its position, and a hint.


Kind = Literal["division", "type", "name", "key", "index", "value", "limit", "overflow", "result"]
"""The kind of fault: ``limit`` if a limit was exceeded, ``result`` if the result is not JSON; all others are data errors."""


class ExprError(KnotworkError):
    """An expression can't be evaluated with the given values. See ``docs/design/seed.md#expressions``.

    ``message`` is one sentence with the shortened operands. ``hint`` says what to do, or is empty. ``span`` is the position of the
    fault in the expression's text; it is None until the interpreter sets it.
    """

    def __init__(self, kind: Kind, message: str, *, hint: str = "", span: Span | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint
        self.span = span

    def diagnostic(self) -> Diagnostic:
        """Return the error as a diagnostic, which can be shown with a caret under the fault."""
        span = None if self.span == NOWHERE else self.span
        return Diagnostic("EXPR090", "error", self.message, span, (self.hint,) if self.hint else ())


@frozen
class Limits:
    """Size and cost limits of an expression."""

    source: int = 10_000
    """Maximum number of characters of the expression's text."""
    nesting: int = 100
    """Maximum nesting depth of the expression's tree, and of a value that is compared or returned."""
    steps: int = 1_000_000
    """Maximum number of steps; the comment at the top of this module says what a step is."""
    size: int = 1_000_000
    """Maximum number of characters of a string, or of elements of a list, set or object, that the expression creates."""
    bits: int = 1_024
    """Maximum number of bits of an integer inside an expression. An integer in the result has at most 64 bits."""
    memory: int = 100_000_000
    """Maximum number of bytes of all strings, lists, sets and objects together that the expression creates."""


@attrs.define(eq=False)
class Meter:
    """Counts down the steps and bytes that remain for one evaluation, or for the whole computation of one seed.

    Performance-critical code may write ``meter.left -= n`` and call ``spent`` if ``meter.left`` is then below 0. Other code calls the
    methods, which raise ``ExprError`` of kind "limit".
    """

    limits: Limits = Limits()
    left: int = attrs.field(init=False)
    """Remaining steps."""
    room: int = attrs.field(init=False)
    """Remaining bytes."""

    def __attrs_post_init__(self) -> None:
        self.left = self.limits.steps
        self.room = self.limits.memory

    def step(self, steps: int = 1) -> None:
        """Charge ``steps`` steps."""
        self.left -= steps
        if self.left < 0:
            self.spent()

    def spent(self) -> NoReturn:
        """Raise the error for too many steps."""
        raise ExprError(
            "limit",
            f"the expression takes more than {self.limits.steps:,} steps",
            hint="iterate over fewer elements, or over only one list",
        )

    def elements(self, count: int) -> None:
        """Charge for iterating over ``count`` elements."""
        self.step(count >> 3)

    def characters(self, count: int) -> None:
        """Charge for reading ``count`` characters."""
        self.step(count >> 8)

    def hold(self, size: int) -> None:
        """Charge for ``size`` bytes of memory."""
        self.room -= size
        if self.room < 0:
            raise ExprError(
                "limit", f"the expression creates values of more than {self.limits.memory:,} bytes in total"
            )

    def sized(self, count: int, what: str) -> None:
        """Raise an error if ``what`` ("a list", "a string") would have more than ``limits.size`` elements or characters."""
        if count > self.limits.size:
            parts = "characters" if what == "a string" else "elements"
            raise ExprError("limit", f"the expression creates {what} of more than {self.limits.size:,} {parts}")

    def make_list(self, count: int) -> None:
        """Charge for a list of ``count`` existing elements. Call this before the list is created."""
        self._make("a list", count, count >> 3, 56 + 8 * count)

    def make_text(self, length: int, *, wide: bool) -> None:
        """Charge for a string. Call this before the string is created, if its length is known. ``wide`` is true if it is not ASCII."""
        self._make("a string", length, length >> 8, 50 + (4 * length if wide else length))

    def make_table(self, count: int, what: str) -> None:
        """Charge steps and memory for a set or an object with ``count`` elements. ``what`` is "a set" or "an object"."""
        self._make(what, count, count >> 2, 100 + 90 * count)

    def _make(self, what: str, count: int, steps: int, size: int) -> None:
        self.left -= 1 + steps
        self.room -= size
        if count > self.limits.size or self.left < 0 or self.room < 0:
            self.sized(count, what)
            self.step(0)
            self.hold(0)


# The cost of a comprehension is the number of nodes that an iteration evaluates. No function here is recursive.

_MADE = (ListDisplay, TupleDisplay, DictDisplay)


def weight(expr: Expr) -> int:
    """Return the maximum number of nodes that an evaluation of ``expr`` visits.

    In a comprehension, only the node itself and the first iterable are counted. The rest is charged when the comprehension iterates. A
    list or object literal counts twice, because creating a list or object takes longer than visiting a node.
    """
    total, left = 0, [expr]
    while left:
        for node in walk(left.pop(), lambda node: not isinstance(node, Comprehension)):
            total += 2 if isinstance(node, _MADE) else 1
            if isinstance(node, Comprehension):
                left.append(node.clauses[0].iterable)
    return total


def clause_costs(comprehension: Comprehension) -> tuple[int, ...]:
    """Return the number of steps that are charged for one iteration of each clause.

    The number is that of the clause's names, plus the weights of the clause's conditions, plus the weight of what each iteration
    evaluates next. After its conditions, an iteration evaluates the iterable of the next clause or, in the last clause, the element.
    """
    clauses = comprehension.clauses
    following = [*(clause.iterable for clause in clauses[1:]), comprehension.element]
    return tuple(
        len(clause.names) + sum(map(weight, clause.conditions)) + weight(then)
        for clause, then in zip(clauses, following, strict=True)
    )


ValueKind = Literal["null", "boolean", "number", "text", "list", "object", "set", "generator"]

DEEPEST = 100
"""Maximum nesting depth of lists and objects in a value that is compared, put in a set or returned."""

NUMBERS = frozenset({int, float})
"""The Python classes of numbers, excluding ``bool``."""


@frozen
class Distinct:
    """A set. ``members`` maps each element's key (``comparison.key_of``) to the element, in insertion order."""

    members: Mapping[Hashable, Any] = field(factory=dict)

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.members.values())


_KINDS: Mapping[type, ValueKind] = {
    type(None): "null", bool: "boolean", int: "number", float: "number", str: "text", list: "list", tuple: "list",
    dict: "object", Distinct: "set", GeneratorType: "generator",
}  # fmt: skip
_WIDER: Sequence[tuple[type, ValueKind]] = (
    (bool, "boolean"), (int, "number"), (float, "number"), (str, "text"), (list, "list"), (tuple, "list"),
    (Mapping, "object"),
)  # fmt: skip
"""Maps classes to the kinds of their subclasses, such as numpy's float64; the first class that matches is used."""


def kind(value: Any) -> ValueKind:
    """Return the kind of ``value``. Raises ``ExprError`` for values that expressions do not support."""
    return _KINDS.get(value.__class__) or _kind(value)


def _kind(value: Any) -> ValueKind:
    for wider, found in _WIDER:
        if isinstance(value, wider):
            return found
    raise ExprError(
        "type",
        f"can't use a value of Python's type {type(value).__name__}",
        hint="values are null, true, false, numbers, strings, lists and objects, as in JSON",
    )


_ARTICLES: Mapping[ValueKind, str] = {"null": "null", "object": "an object", "text": "a string"}


def a(value: Any) -> str:
    """Return the kind of ``value`` with its article: "a number", "null"."""
    found = kind(value)
    return _ARTICLES.get(found) or f"a {found}"


def truth(value: Any) -> bool:
    """Return whether ``value`` counts as true: it is not null, false, 0 or empty. Raises ``ExprError`` for a generator."""
    if kind(value) == "generator":
        raise ExprError(
            "type", "a generator is neither true nor false", hint="write any(... for ...) or all(... for ...)"
        )
    return bool(value)


def elements_of(meter: Meter, value: Any, function: str) -> Sequence[Any]:
    """Return the values that ``function`` iterates over (a list's elements, an object's keys), and charge for them.

    Callers must not change the returned sequence. Raises ``ExprError`` for a value without elements, such as a string.
    """
    found = kind(value)
    if found == "generator":
        taken = list(value)  # the iterations of the generator charge for it
        meter.hold(8 * len(taken))
        return taken
    if found == "list":
        meter.elements(len(value))
        return value  # type: ignore[no-any-return]
    if found in ("set", "object"):
        meter.make_list(len(value))
        return list(value) if found == "set" else keys_of(value)
    raise ExprError("type", f"{function} takes a list, not {a(value)}: {function}({short_json(value)})")


class _Flag:
    """Represents a boolean in the keys of a dict, because Python treats True and 1 as the same key."""

    def __init__(self, value: bool) -> None:
        self.value = value


TRUE, FALSE = _Flag(True), _Flag(False)


def keys_of(value: Mapping[Any, Any]) -> list[Any]:
    """Return the keys of an object as expression values."""
    if all(key.__class__ is str for key in value):
        return list(value)
    return [_from_key(key) for key in value]


def _from_key(key: Any) -> Any:
    if isinstance(key, _Flag):
        return key.value
    return int(key[1], 16) if isinstance(key, tuple) else key


_SHOWN = 40
"""Default maximum number of characters of a value in a message."""


def short_json(value: Any, width: int = _SHOWN) -> str:
    """Return ``value`` as JSON for a message, shortened to about ``width`` characters. This is fast even for a huge value."""
    found = kind(value)
    if found == "null":
        return "null"
    if found == "boolean":
        return "true" if value else "false"
    if found == "number":
        if isinstance(value, int) and value.bit_length() > 128:
            return f"an integer of {value.bit_length():,} bits"
        return repr(value + 0)
    if found == "text":
        return _quoted(value, width)
    if found == "generator":
        return "(... for ...)"
    opening, closing = {"list": "[]", "object": "{}", "set": ("set([", "])")}[found]
    return f"{opening}{_inside(_parts(value, found), width)}{closing}"


def _parts(value: Any, found: ValueKind) -> Iterator[str]:
    for each in value:
        if found == "object":
            inner = value[each]
            yield f"{short_json(_from_key(each), 20)}: {short_json(inner, 10) if _is_scalar(inner) else '…'}"
        else:
            yield short_json(each, 20) if _is_scalar(each) else "[…]" if kind(each) == "list" else "{…}"


def _is_scalar(value: Any) -> bool:
    return kind(value) in ("null", "boolean", "number", "text")


def _inside(parts: Iterable[str], width: int) -> str:
    taken: list[str] = []
    for part in parts:
        if sum(map(len, taken)) + 2 * len(taken) + len(part) > width:
            return ", ".join([*taken, "…"])
        taken.append(part)
    return ", ".join(taken)


def _quoted(text: str, width: int) -> str:
    short = text if len(text) <= width else f"{text[: width - 1]}…"
    escaped = short.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in escaped) + '"'


# Results of an expression are JSON values of limited size that share no list or object with the input.

_SIXTY_FOUR = 1 << 63


def checked_result(value: Any, span: Span | None = None, meter: Meter | None = None) -> Any:
    """Return ``value`` as a JSON value: tuples become lists, and every list and object is copied.

    Raises ``ExprError`` for a set, a generator, NaN, infinity, an integer of more than 64 bits, a key that is not a string and a
    lone surrogate. Raises it also for a value with more elements, characters or levels than the limits allow.
    """
    try:
        return _Copy(meter or Meter()).of(value, 0)
    except ExprError as error:
        error.span = error.span or span
        raise


class _Copy:
    """Copies a value and counts all its parts. A part that occurs several times is counted each time."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.elements = 0
        self.characters = 0

    def of(self, value: Any, depth: int) -> Any:
        if value is None or value.__class__ is bool:
            return value
        found = kind(value)
        if found == "text":
            return self.text(value)
        if found == "number":
            return _number(value)
        if found == "boolean":
            return bool(value)
        if found == "set":
            raise ExprError("result", "the result can't be a set", hint="wrap it in sorted(...)")
        if found == "generator":
            raise ExprError("result", "the result can't be a generator", hint="write [... for ...] or sum(... for ...)")
        if depth >= DEEPEST:
            raise ExprError("limit", f"the result is nested more than {DEEPEST} levels deep")
        self.elements += len(value) + 1
        if self.elements > self.meter.limits.size + 1:
            raise ExprError("limit", f"the result has more than {self.meter.limits.size:,} elements in total")
        if found == "list":
            self.meter.step(len(value) >> 1)
            self.meter.hold(56 + 8 * len(value))
            return [self.of(each, depth + 1) for each in value]
        self.meter.step(2 * len(value))
        self.meter.hold(100 + 90 * len(value))
        for key in value:
            if not isinstance(key, str):
                raise ExprError("result", "object keys in the result must be strings", hint='write "..." around them')
        return {self.text(key): self.of(each, depth + 1) for key, each in value.items()}

    def text(self, value: str) -> str:
        self.characters += len(value)
        if self.characters > 10 * self.meter.limits.size:
            raise ExprError("limit", f"the result has more than {10 * self.meter.limits.size:,} characters in total")
        if not value.isascii():
            self.meter.characters(len(value))
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ExprError("result", f"the text contains a lone surrogate: {short_json(value)}") from None
        return value if value.__class__ is str else str(value)


def _number(value: Any) -> Any:
    if value.__class__ is int and -_SIXTY_FOUR <= value < _SIXTY_FOUR:
        return value
    if isinstance(value, int):
        if not -_SIXTY_FOUR <= value < _SIXTY_FOUR:
            raise ExprError("result", "an integer in the result must fit in 64 bits", hint="write float(...) around it")
        return int(value)
    if not math.isfinite(value):
        raise ExprError("result", f"the result can't be {'infinity' if value == value else 'NaN'}")
    return float(value)
