"""Values: fields, constants, arithmetic and calls. The interpreter is the reference; generated code must give the same results.

A null operand or argument gives null, except in ``coalesce`` and ``if``. Division by zero gives null. If an operator or a
function does not support a value, this is a ``Mismatch``. In a condition, the result is then null, and the mismatch is counted.
A command that stores the result fails.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any

from attrs import define, field

from ...catalogue.value_functions import VALUE_FUNCTIONS
from ...diagnostic import nearest
from ...trees.conditions import Binary, Call, Comparison, Constant, Field, Length, Negative, Value, Variable
from ..expr.arithmetic import OPERATORS, negative
from ..expr.functions import FUNCTION_TABLE, METHOD_TABLE
from ..expr.values import ExprError, Meter, a, short_json
from .comparison import ConditionError, is_null, length

NUMBERS = (int, float)
LARGEST = 1 << 63


class Mismatch(ConditionError):
    """An operator or a function does not support a value, or its result is not a number of at most 64 bits."""


MOST_BYTES = 256 << 20
"""Maximum number of bytes of the values of one command, not counting the graph and the variables that the command reads."""


class TooLarge(ConditionError):
    """The values of a command take more memory than is allowed."""

    def __init__(self) -> None:
        super().__init__(
            f"the values of the command take more than {MOST_BYTES >> 20} MiB",
            hint="reduce the rows with WHERE or LIMIT first, or keep fewer and shorter values: SELECT variable FIELDS field AS variable",
        )


MOST_EXAMPLES = 3
"""Maximum number of examples for each comparison or value."""


@define
class Tally:
    """Counts of the rows that a computation could not use.

    ``mismatched`` maps the text of an operation, or of a comparison in a condition, to the number of rows in which it did not
    support the types of its operands. ``examples`` has the first values with their items for some of these texts, and for the values of
    ``mixed``: it maps the text of a value that orders or groups rows to the number of values of each type, if there are several types.
    ``equal_texts`` maps the text of an equality to the number of rows that it leaves out and that it keeps because their value has
    another type, as "1" in ``x = 1``.
    ``reason`` is set when an operation gave null for operands that are not null ("division
    by zero"); the code that stores a value resets it for each row. ``look`` is called after every few hundred steps of work,
    and raises an exception to end the computation; if it is None, nothing ends the computation early. If ``stopped`` is true,
    the command was cancelled and the computation ends at the next check. In the tally of a part of a command, ``whole`` is the
    tally of the entire command.
    """

    mismatched: dict[str, int] = field(factory=dict)
    mixed: dict[str, dict[str, int]] = field(factory=dict)
    equal_texts: dict[str, dict[str, int]] = field(factory=dict)
    examples: dict[str, list[str]] = field(factory=dict)
    reason: str = ""
    look: Callable[[], None] | None = None
    whole: "Tally | None" = None
    stopped: bool = False
    _work: int = 0
    _room: int = field(factory=lambda: MOST_BYTES)

    def charge(self, steps: int) -> None:
        """Add the steps of a value to the work. Call ``look`` if the work since the last call amounts to a few milliseconds."""
        self._work += steps
        if self._work > _LOOK:
            self._work = 0
            self.check()

    def check(self) -> None:
        """Raise an exception if the computation has to end."""
        if (self.whole or self).stopped:
            raise TimeoutError("the command was cancelled")
        if self.look is not None:
            self.look()

    def hold(self, size: int) -> None:
        """Add ``size`` to the bytes that the command keeps. Raises ``TooLarge``."""
        whole = self.whole or self
        whole._room -= size
        if whole._room < 0:
            raise TooLarge

    def mismatch(self, text: str, count: int = 1, examples: Iterable[str] = ()) -> None:
        """Add ``count`` rows to the mismatches of the operation or comparison ``text``, and the first ``examples``."""
        self.mismatched[text] = self.mismatched.get(text, 0) + count
        self.exemplify(text, examples)

    @property
    def counts(self) -> dict[str, Any]:
        """The counts that are not empty, for the summary of a command."""
        parts: dict[str, dict[str, Any]] = {
            "mismatched": self.mismatched,
            "equal_texts": self.equal_texts,
            "mixed": self.mixed,
            "examples": self.examples,
        }
        return {name: dict(part) for name, part in parts.items() if part}

    def exemplify(self, text: str, examples: Iterable[str]) -> None:
        """Add ``examples`` of the rows that are counted under ``text``, as far as there is room."""
        known = self.examples.get(text, [])
        for each in examples:
            if len(known) < MOST_EXAMPLES and each not in known:
                known = self.examples[text] = [*known, each]


_LOOK = 200
"""Maximum number of steps between two calls of ``look``."""
_CURRENT: ContextVar[Tally | None] = ContextVar("tally", default=None)


@contextmanager
def counted(look: Callable[[], None] | None = None) -> Iterator[Tally]:
    """Context manager: mismatches and divisions by zero in its block are counted.

    Threads started with ``asyncio.to_thread`` are included. If such a block is inside another one, its mismatches are added to
    the counts of the outer block. By default, it uses the ``look`` of the outer block.
    """
    outer = _CURRENT.get()
    tally = Tally(look=look or (outer.look if outer is not None else None))
    if look is None and outer is not None:
        tally.whole = outer.whole or outer
    token = _CURRENT.set(tally)
    try:
        yield tally
    finally:
        _CURRENT.reset(token)
        if outer is not None:
            for text, count in tally.mismatched.items():
                outer.mismatch(text, count)
            for text, kinds in tally.mixed.items():
                outer.mixed[text] = dict(Counter(outer.mixed.get(text, {})) + Counter(kinds))
            for text, counts in tally.equal_texts.items():
                outer.equal_texts[text] = dict(Counter(outer.equal_texts.get(text, {})) + Counter(counts))
            for text, examples in tally.examples.items():
                outer.exemplify(text, examples)


@contextmanager
def uncounted() -> Iterator[None]:
    """Context manager: mismatches in its block are not counted."""
    token = _CURRENT.set(None)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_tally() -> Tally | None:
    """Return the tally of the block that is running, or None."""
    return _CURRENT.get()


def check() -> None:
    """Raise an exception if the command that is running has to end. Loops over rows call this for each block of rows."""
    if (tally := _CURRENT.get()) is not None:
        tally.check()


def hold(size: int) -> None:
    """Add ``size`` to the bytes that the running command keeps. Raises ``TooLarge``."""
    if (tally := _CURRENT.get()) is not None:
        tally.hold(size)


Resolve = Callable[[Field], Any]
Test = Callable[[Any], bool | None]
"""Evaluates the condition in an ``if``."""


def compute(value: Value, resolve: Resolve, holds: Test, *, lenient: bool = False) -> Any:
    """Return the value for one row.

    ``resolve`` returns the value of a field. ``holds`` returns the truth value of a condition. If ``lenient`` is true, a mismatch is
    counted and gives null. If ``lenient`` is false, a mismatch raises ``Mismatch``. Raises ``ConditionError`` for an unknown function, and
    for a variable (see ``bind_value``).
    """

    def of(inner: Any) -> Any:
        match inner:
            case Field():
                return _null_or(resolve(inner))
            case Constant():
                return _null_or(inner.value)
            case Length():
                return length(of(inner.operand))
            case Negative():
                return of_operation(inner, minus, of(inner.operand))
            case Binary():
                return of_operation(inner, operator_of(inner), of(inner.left), of(inner.right))
            case Call(function="if", arguments=(condition, first, second)):
                return of(first if holds(condition) is True else second)
            case Call(function="coalesce"):
                return next((found for each in inner.arguments if (found := of(each)) is not None), None)
            case Call():
                return of_operation(inner, function_of(inner), *map(of, inner.arguments))
            case Variable():
                raise ConditionError(
                    f"the variable {inner.name} has no value", hint="bind it with AS in an earlier command"
                )
        raise ConditionError("a condition can't be used as a value", hint="write if(condition, a, b)")

    def of_operation(node: Value, run: Callable[..., Any], *operands: Any) -> Any:
        try:
            found = run(*operands)
        except Mismatch:
            if not lenient:
                raise
            count_mismatch(node)
            return None
        if found is None and node_reason(node) is not None:
            note_unreadable(node, operands, lenient=lenient)
        return found

    return of(value)


def node_reason(value: Value) -> str | None:
    """Return the reason why a call may give null for a string ("not a date"); None for other calls and for operators."""
    return _UNREADABLE.get(value.function) if isinstance(value, Call) else None


_UNREADABLE = {
    **dict.fromkeys(("date", "date_trunc", "year", "days_between"), "not a date"), "number": "not a number",
}  # fmt: skip
"""Maps each function that parses a string to the reason why it gives null."""


def note_unreadable(value: Value, operands: Sequence[Any], *, lenient: bool) -> None:
    """Record that a function could not read a string.

    In a condition, only unreadable dates are counted: ``number`` is meant to give null.
    """
    if (tally := current_tally()) is None or any(each is None for each in operands):
        return
    reason = node_reason(value) or ""
    if not lenient:
        tally.reason = reason
    elif reason == "not a date":
        count_mismatch(value)


def example_of(item: Any, value: Any) -> str:
    """Return a description of a value and of its item for a message: ``b2 "2011"``."""
    return f"{item} {short_json(value)}"


def id_text(item: Any) -> str:
    """Return the text of an id for a message. A string of digits is in quotes: the node "1" is not the node 1."""
    return f'"{item}"' if isinstance(item, str) and item.strip("-+.").replace(".", "").isdigit() else str(item)


def count_mismatch(value: "Value | Comparison", count: int = 1, examples: Iterable[str] = ()) -> None:
    """Count rows in which an operation or a comparison in a condition did not support the types of its operands.

    ``examples`` describes the first of these rows. No more examples are taken from it than there is room for.
    """
    if (tally := current_tally()) is not None:
        from ...printer.gasl_printer import format_condition

        try:
            text = format_condition(value)
        except ValueError:  # a parameter or a variable is not finite, so no program can be written with its value
            text = "a comparison with a number that is not finite"
        tally.mismatch(text, count, islice(examples, MOST_EXAMPLES))


def _null_or(value: Any) -> Any:
    return None if is_null(value) else value


def minus(value: Any) -> Any:
    """Return ``-value``; null for null. Raises ``Mismatch``."""
    return None if value is None else _run(negative, value)


def operator_of(value: Binary) -> Callable[[Any, Any], Any]:
    """Return the function that computes ``left sign right``.

    Its result is null for a null operand and for a division by zero. It raises ``Mismatch``.
    """
    sign, run = value.sign, OPERATORS[value.sign]

    def combined(left: Any, right: Any) -> Any:
        if left is None or right is None:
            return None
        if sign == "*" and (isinstance(left, str | list | tuple) or isinstance(right, str | list | tuple)):
            raise Mismatch(
                f"* multiplies two numbers, not {a(left)} and {a(right)}: {short_json(left)} * {short_json(right)}",
                hint=_NUMBER_HINT,
            )
        if sign == "+" and isinstance(left, list | tuple):
            raise Mismatch("+ adds two numbers or joins two strings, not lists")
        return _run(run, left, right)

    return combined


_NUMBER_HINT = "write number(...) around a string that contains a number"


def function_of(call: Call) -> Callable[..., Any]:
    """Return the function that computes a call. Null arguments give null. Raises ``ConditionError`` for an invalid call."""
    name, signature = call.function, VALUE_FUNCTIONS.get(call.function)
    if signature is None:
        like = nearest(name, VALUE_FUNCTIONS)
        raise ConditionError(
            f"unknown function {name}",
            hint=f"did you mean {like}?" if like else f"the functions are {', '.join(VALUE_FUNCTIONS)}",
        )
    count, most = len(call.arguments), signature.most
    if count < signature.least or (most is not None and count > most):
        raise ConditionError(f"wrong number of arguments for {name}: {count}", hint=f"write {signature.signature}")
    run = METHOD_TABLE[name] if name in METHOD_TABLE else FUNCTION_TABLE[name]
    if name in ("min", "max", "sum"):
        return _of_list(name, run)

    def called(*arguments: Any) -> Any:
        try:
            return None if None in arguments else _run(run, *arguments)
        except Mismatch as error:
            # In expressions, some of the functions are methods: `.lower() requires a string`.
            message = error.message.replace(f".{name}()", name)
            wants_string = re.search(r"\bstrings?\b", message.partition(", not")[0]) is not None
            hint = "write str(...) around a number" if wants_string and error.hint == _NUMBER_HINT else error.hint
            raise Mismatch(message, hint=hint) from None

    return called


def _of_list(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    """Return the form of ``min``, ``max`` or ``sum`` whose argument is a list.

    A null in the list gives null. The minimum and the maximum of an empty list are null.
    """

    def called(*arguments: Any) -> Any:
        values = arguments
        if len(arguments) == 1 and isinstance(arguments[0], list | tuple):
            values = tuple(arguments[0])
        elif len(arguments) == 1 and arguments[0] is not None:
            raise Mismatch(f"{name} takes a list or several values, not {_shown(arguments[0])}")
        if any(is_null(value) for value in values) or (not values and name != "sum"):
            return None
        return _run(run, values)

    return called


def _run(run: Callable[..., Any], *arguments: Any) -> Any:
    """Call an expression function. A division by zero gives null; other data errors become ``Mismatch``."""
    meter, tally = Meter(), current_tally()
    try:
        made = run(meter, *arguments)
        if tally is not None:
            tally.charge(1 + meter.limits.steps - meter.left)
        return made
    except ExprError as error:
        if error.kind == "division":
            if tally is not None:
                tally.reason = "division by zero"
            return None
        if error.kind == "limit":
            raise ConditionError(error.message, hint=error.hint) from None
        raise Mismatch(error.message, hint=error.hint or (_NUMBER_HINT if error.kind == "type" else "")) from None


def _shown(value: Any) -> str:
    return f"{a(value)}: {short_json(value)}"


def kept(value: Any) -> Any:
    """Return ``value`` if a row can store it. Raises ``Mismatch`` for an integer of more than 64 bits, infinity and NaN."""
    if value.__class__ is int and not -LARGEST <= value < LARGEST:
        raise Mismatch("the result does not fit in 64 bits", hint="compute it with a float, such as 1.0 * amount")
    if isinstance(value, float) and value - value != 0:
        raise Mismatch("the result is not a finite number")
    return value
