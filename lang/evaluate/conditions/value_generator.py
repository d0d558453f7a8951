"""Code generator for values: compiles a value into a Python function of a row with the same results as ``values.compute``.

The code contains only text from this module; names, constants and functions are passed in its namespace. Arithmetic has a fast
path for numbers; everything else calls the functions of ``values``. After an unexpected exception, the interpreter computes the
row again.
"""

from collections.abc import Callable
from typing import Any

from attrs import define, field, frozen

from ...trees.conditions import Binary, Call, Comparison, Constant, Field, Items, Length, Negative, NullTest, Value
from .comparison import ConditionError, compare, constant_of, is_null, length, prepared, takes_types
from .interpreter import item_value
from .other_types import plain_side
from .values import (
    Mismatch,
    compute,
    count_mismatch,
    function_of,
    minus,
    node_reason,
    note_unreadable,
    operator_of,
)


@frozen
class Reader:
    """Describes how generated code reads a field. ``arguments`` are the indices of the row's values that the field needs.

    If there is a ``function``, the field is its result. If there is a ``key``, the row's value is a mapping, and the field is the value
    under the key (None if missing). Otherwise the field is the row's value itself. For a field with a quantifier, the reader returns an
    iterable of values.
    """

    arguments: tuple[int, ...] = (0,)
    key: str | None = None
    function: Callable[..., Any] | None = None

    def read(self, *row: Any) -> Any:
        """Return the value that the generated code would read."""
        values = [row[at] for at in self.arguments]
        if self.function is not None:
            return self.function(*values)
        return values[0] if self.key is None else values[0].get(self.key)


def of_item(at: Field) -> Reader:
    """Return the reader of a field in an item, as used by ``matches``."""
    if at.quantifier is None and len(at.path) == 1:
        return Reader(key=at.path[0])
    return Reader(function=lambda item: item_value(item, at))


Readers = Callable[[Field], Reader]
Plain = Callable[[Any], Any]
Holds = Callable[[Any], Callable[..., bool | None]]
"""Compiles the condition of an ``if`` to a function of a row."""

_SIMPLE = frozenset({str, int, bool, type(None)})
_NUMBERS = frozenset({int, float})
_FAST = {"+": "{0} + {1}", "-": "{0} - {1}", "*": "{0} * {1}", "/": "{0} / {1}", "%": "{0} % {1}"}
_COMPARED = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


@define
class _ValueWriter:
    """Writes statements that compute values, and keeps the objects that these statements use."""

    readers: Readers
    plain: Plain
    holds: Holds
    row: str
    lenient: bool
    lines: list[str] = field(factory=list)
    indent: int = 1
    count: int = 0
    space: dict[str, Any] = field(
        factory=lambda: {"__builtins__": {}, "S": _SIMPLE, "N": _NUMBERS, "float": float, "str": str, "length": length,
                         "Exception": Exception}
    )  # fmt: skip

    def keep(self, value: Any) -> str:
        """Add ``value`` to the namespace under a new name, and return this name."""
        name = f"c{len(self.space)}"
        self.space[name] = value
        return name

    def line(self, text: str) -> None:
        """Write a statement at the current indentation."""
        self.lines.append(" " * self.indent + text)

    def new(self) -> str:
        """Return a new local name."""
        self.count += 1
        return f"v{self.count}"

    def write(self, value: Any) -> str:
        """Write the statements that compute ``value``, and return the name that then holds the result."""
        match value:
            case Field():
                return self.field(value)
            case Constant():
                return self.keep(None if is_null(value.value) else value.value)
            case Length():
                inner, name = self.write(value.operand), self.new()
                self.line(f"{name} = length({inner})")
                return name
            case Negative():
                return self.operation(value, minus, [self.write(value.operand)])
            case Binary():
                return self.binary(value)
            case Call(function="if", arguments=(_, _, _)):
                return self.choice(value)
            case Call(function="coalesce"):
                return self.coalesce(value)
            case Call():
                run = function_of(value)
                return self.operation(value, run, [self.write(each) for each in value.arguments])
        raise ConditionError("a condition can't be used as a value", hint="write if(condition, a, b)")

    def field(self, at: Field) -> str:
        """Write the statements that read a field, and convert NaN to null and other types to JSON."""
        reader, name = self.readers(at), self.new()
        arguments = [f"a{index}" for index in reader.arguments]
        if reader.function is not None:
            self.line(f"{name} = {self.keep(reader.function)}({', '.join(arguments)})")
        elif reader.key is not None:
            self.line(f"{name} = {arguments[0]}.get({self.keep(reader.key)})")
        else:
            self.line(f"{name} = {arguments[0]}")
        plain = self.plain

        def settled(found: Any) -> Any:
            found = plain(found)
            return None if is_null(found) else found

        self.line(f"if {name}.__class__ is float:")
        self.line(f" if {name} != {name}: {name} = None")
        self.line(f"elif {name}.__class__ not in S: {name} = {self.keep(settled)}({name})")
        return name

    def binary(self, value: Binary) -> str:
        """Write the statements for an operator. Two numbers have a fast path; for all other values, the operator's function is called."""
        left, right, name = self.write(value.left), self.write(value.right), self.new()
        slow = self.keep(self.function(value, operator_of(value)))
        number = f"{left}.__class__ in N and {right}.__class__ in N"
        guard = f"{number} and {right}" if value.sign in "/%" else number
        limit = self.keep(float(1 << 62))
        self.line(f"if {guard}:")
        self.line(f" {name} = {_FAST[value.sign].format(left, right)}")
        # A result outside this range may be too large; the function checks it.
        self.line(f" if not -{limit} < {name} < {limit}: {name} = {slow}({left}, {right})")
        self.line(f"else: {name} = {slow}({left}, {right})")
        return name

    def operation(self, value: Value, run: Callable[..., Any], operands: list[str]) -> str:
        """Write the call of a function."""
        name = self.new()
        self.line(f"{name} = {self.keep(self.function(value, run))}({', '.join(operands)})")
        return name

    def function(self, value: Value, run: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``run``, wrapped to record faults.

        If ``lenient`` is true, mismatches are counted. If a string gives null, the reason is recorded.
        """
        lenient, reads = self.lenient, node_reason(value) is not None

        def counting(*operands: Any) -> Any:
            try:
                found = run(*operands)
            except Mismatch:
                if not lenient:
                    raise
                count_mismatch(value)
                return None
            if found is None and reads:
                note_unreadable(value, operands, lenient=lenient)
            return found

        return counting if lenient or reads else run

    def choice(self, call: Call) -> str:
        """Write ``if(condition, a, b)``: only the chosen value is computed."""
        condition, first, second = call.arguments
        name = self.new()
        self.line(f"if {self.keep(self.holds(condition))}({self.row}) is True:")
        self.branch(name, first)
        self.line("else:")
        self.branch(name, second)
        return name

    def branch(self, name: str, value: Any) -> None:
        """Write an indented block that computes ``value`` and assigns the result to ``name``."""
        self.indent += 1
        found = self.write(value)
        self.line(f"{name} = {found}")
        self.indent -= 1

    def coalesce(self, call: Call) -> str:
        """Write ``coalesce``: later arguments are computed only if all earlier ones are null."""
        name, depth = self.new(), self.indent
        self.line(f"{name} = None")
        for place, argument in enumerate(call.arguments):
            if place:
                self.line(f"if {name} is None:")
                self.indent += 1
            found = self.write(argument)
            self.line(f"{name} = {found}")
        self.indent = depth
        return name


def compiled_value(
    value: Value,
    readers: Readers,
    holds: Holds,
    *,
    arity: int = 1,
    plain: Plain = lambda value: value,
    lenient: bool = False,
) -> Callable[..., Any]:
    """Return ``value`` as a function of the ``arity`` values of a row. Raises the same errors as ``values.compute``."""
    row = ", ".join(f"a{at}" for at in range(arity))
    writer = _ValueWriter(readers, plain, holds, row, lenient)
    result = writer.write(value)
    writer.line(f"return {result}")

    def reference(*given: Any) -> Any:
        return computed(value, readers, holds, plain, given, lenient=lenient)

    return _function(writer, row, reference)


def compiled_test(
    leaf: Comparison | NullTest, readers: Readers, holds: Holds, *, arity: int, plain: Plain
) -> Callable[..., bool | None]:
    """Return a function of a row that compares computed values, or tests one for null. The left field has no quantifier."""
    row = ", ".join(f"a{at}" for at in range(arity))
    writer = _ValueWriter(readers, plain, holds, row, lenient=True)
    left = writer.write(leaf.left)
    if isinstance(leaf, NullTest):
        writer.line(f"return {left} is {'not ' if leaf.negated else ''}None")
    elif isinstance(leaf.right, Constant | Items):
        test = prepared(leaf.operator, constant_of(leaf.right))
        counts = isinstance(leaf.right, Constant) and not is_null(leaf.right.value) and takes_types(leaf)

        def counting(found: Any) -> bool | None:
            answer = test(found)
            if answer is None and found is not None and not isinstance(found, list | tuple):
                count_mismatch(leaf)
            return answer

        writer.line(f"return {writer.keep(counting if counts else test)}({left})")
    else:
        right, operator = writer.write(leaf.right), leaf.operator
        if operator in _COMPARED:
            quick = f"return {left} {_COMPARED[operator]} {right}"
            writer.line(f"if {left}.__class__ in N and {right}.__class__ in N: {quick}")
            ascii_only = f"{left}.isascii() and {right}.isascii()"  # other texts are compared in their canonical form
            writer.line(f"if {left}.__class__ is str and {right}.__class__ is str and {ascii_only}: {quick}")
        counts = takes_types(leaf) and plain_side(leaf) is None

        def compared(one: Any, other: Any) -> bool | None:
            answer = compare(one, operator, other)
            if (
                answer is None
                and counts
                and one is not None
                and other is not None
                and not isinstance(one, list | tuple)
            ):
                count_mismatch(leaf)
            return answer

        writer.line(f"return {writer.keep(compared)}({left}, {right})")

    def reference(*given: Any) -> bool | None:
        found = computed(leaf.left, readers, holds, plain, given, lenient=True)
        if isinstance(leaf, NullTest):
            return is_null(found) is not leaf.negated
        if isinstance(leaf.right, Constant | Items):
            return prepared(leaf.operator, constant_of(leaf.right))(found)
        return compare(found, leaf.operator, computed(leaf.right, readers, holds, plain, given, lenient=True))

    return _function(writer, row, reference)


def computed(value: Value, readers: Readers, holds: Holds, plain: Plain, row: Any, *, lenient: bool) -> Any:
    """Compute a value for one row with the interpreter."""
    return compute(
        value, lambda at: plain(readers(at).read(*row)), lambda condition: holds(condition)(*row), lenient=lenient
    )


def _function(writer: _ValueWriter, row: str, reference: Callable[..., Any]) -> Callable[..., Any]:
    """Compile the function that ``writer`` has written.

    The compiled function raises only ``ConditionError``: after any other exception, ``reference`` computes the row.
    """
    body = "".join(f" {line}\n" for line in writer.lines)
    text = f"def run({row}):\n try:\n{body} except E: raise\n except Exception: return reference({row})\n"
    space = {**writer.space, "E": ConditionError, "reference": reference}
    # The code contains only text from this module; every name and value is in `space`.
    exec(compile(text, "<value>", "exec"), space)  # noqa: S102
    return space["run"]  # type: ignore[no-any-return]
