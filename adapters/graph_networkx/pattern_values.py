"""Evaluates conditions and sort values for the rows of ``FIND patterns``: on columns for blocks of rows, or else row by row.

A row has the position of a node or an edge in each slot. Comparisons of fields, and arithmetic over columns of numbers, are computed
on arrays; all other conditions and values are computed by generated code for one row. Both give the same results as the interpreter.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from sys import getsizeof
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from ...lang.evaluate.conditions import (
    Mismatch,
    Predicate,
    Reader,
    compiled,
    evaluate,
    identity,
    order_key,
    value_function,
)
from ...lang.evaluate.conditions import kept as storable
from ...lang.evaluate.conditions.other_types import plain_side, typed_leaves
from ...lang.evaluate.conditions.values import MOST_EXAMPLES, check, count_mismatch, current_tally, hold, uncounted
from ...lang.printer.gasl_printer import format_condition
from ...lang.trees import walk
from ...lang.trees.conditions import (
    And,
    Binary,
    Comparison,
    Condition,
    Constant,
    Field,
    Items,
    Negative,
    Not,
    NullTest,
    Or,
)
from ...lang.unicode_forms import canonical
from ..graph import UnusableValue
from .column_types import Array, Coded, Mask, Numbers
from .edge_costs import edge_label
from .find_plan import column_of_field
from .rows import Deadline, Kind, edge_item, examples_of, item_value, node_id, node_item, plain, readers_of
from .tables import Computed, Through

Place = tuple[int, Kind, tuple[str, ...]]
"""A slot, the kind of its elements, and the path of a field of the element; an empty path means the entire item."""

_EXACT = float(2**53)
"""Floats do not represent every integer of this size or larger."""
_CHUNK = 4096
_EQUALITY = ("=", "!=")
_ORDER = ("<", "<=", ">", ">=")


@frozen(eq=False)
class _Source:
    """A column, and the slot with the positions in it. For a field of an edge's end, ``through`` maps edges to end nodes."""

    slot: int
    column: Any
    through: Array | None

    def at(self, rows: Any) -> Array:
        """Return, for each row, the position in the column."""
        positions: Array = rows[self.slot]
        return positions if self.through is None else self.through.take(positions)


_Typed = tuple[Comparison, _Source, Mask]
"""A comparison, the column of its field, and a mask of the column's values that have another type."""


class RowValues:
    """Evaluates conditions and values over blocks of rows. ``locate`` returns the place of a field.

    ``rows[slot]`` are the positions in a slot. Results that do not depend on the block are cached for the search.
    """

    def __init__(self, graph: Any, kept: Computed, locate: Callable[[Field], Place]) -> None:
        self._graph = graph
        self._kept = kept
        self._locate = locate
        self._sources: dict[tuple[str, ...], _Source | None] = {}
        self._masks: dict[tuple[int, bool], tuple[Condition, Mask | None]] = {}
        self._tests: dict[int, tuple[Condition, tuple[int, ...], Predicate]] = {}
        self._typed: dict[int, tuple[Condition, list[_Typed]]] = {}

    # On columns

    def mask(self, condition: Condition, rows: Any, size: int, wanted: bool = True) -> Mask | None:
        """Return, for each of ``size`` rows, whether the condition's result is ``wanted``. Return None if columns can't evaluate it."""
        if isinstance(condition, Not):
            return self.mask(condition.operand, rows, size, not wanted)
        if isinstance(condition, And | Or):
            join = np.logical_and if isinstance(condition, And) is wanted else np.logical_or
            joined: Mask | None = None
            for operand in condition.operands:
                mask = self.mask(operand, rows, size, wanted)
                if mask is None:
                    return None
                joined = mask if joined is None else join(joined, mask)
            return joined
        if isinstance(condition, NullTest):
            return self._of_column(condition, rows, wanted) if isinstance(condition.left, Field) else None
        if not isinstance(condition, Comparison):
            return None
        left, right = condition.left, condition.right
        if isinstance(left, Field) and isinstance(right, Constant | Items):
            return self._of_column(condition, rows, wanted)
        if isinstance(left, Field) and isinstance(right, Field):
            return self._of_two(condition, rows, wanted)
        if condition.operator not in (*_EQUALITY, *_ORDER) or isinstance(right, Items):
            return None
        one, other = self._number(left, rows), self._number(right, rows)
        if one is None or other is None or not (isinstance(one, np.ndarray) or isinstance(other, np.ndarray)):
            return None
        return _compared(one, condition.operator, other, wanted)

    def _of_column(self, leaf: Comparison | NullTest, rows: Any, wanted: bool) -> Mask | None:
        """Return the result of a test of one field against a constant."""
        assert isinstance(leaf.left, Field)  # noqa: S101  # the callers check it
        source = self._source(leaf.left)
        if source is None:
            return None
        positions = source.at(rows)
        if isinstance(source.column, Numbers) and 4 * len(positions) < len(source.column.values):
            found: Mask | None = source.column.mask(leaf, wanted, positions)
            return found
        key = (id(leaf), wanted)
        if key not in self._masks:
            self._masks[key] = (leaf, source.column.mask(leaf, wanted, None))
        whole = self._masks[key][1]
        if whole is None:
            return None
        chosen: Mask = whole.take(positions)
        return chosen

    def _of_two(self, leaf: Comparison, rows: Any, wanted: bool) -> Mask | None:
        """Return the result of a comparison of two fields."""
        assert isinstance(leaf.left, Field) and isinstance(leaf.right, Field)  # noqa: S101  # the caller checks it
        operator = leaf.operator
        if operator not in (*_EQUALITY, *_ORDER):
            return None
        places = self._locate(leaf.left), self._locate(leaf.right)
        if not places[0][2] and not places[1][2]:
            return self._same_nodes(places, rows, operator, wanted)
        left, right = self._source(leaf.left), self._source(leaf.right)
        if left is None or right is None:
            return None
        one, other = left.column, right.column
        if isinstance(one, Numbers) and isinstance(other, Numbers):
            return _compared(one.values.take(left.at(rows)), operator, other.values.take(right.at(rows)), wanted)
        if not (isinstance(one, Coded) and isinstance(other, Coded)):
            return None
        if one.text and other.text:
            key = ("joint ranks", id(one), id(other))
            first, second = (
                (one.ranks_by_code(), one.ranks_by_code())
                if one is other
                else self._kept.part(key, lambda: (_joint_ranks(one, other), one, other))[0]
            )
            values = first.take(one.codes.take(left.at(rows))), second.take(other.codes.take(right.at(rows)))
            return _compared(values[0], operator, values[1], wanted)
        if one is other and not one.forms and operator in _EQUALITY:
            codes = one.codes[left.at(rows)], other.codes[right.at(rows)]
            same = codes[0] == codes[1]
            found: Mask = (same if (operator == "=") is wanted else ~same) & (codes[0] != 0) & (codes[1] != 0)
            return found
        return None

    def _same_nodes(self, places: tuple[Place, Place], rows: Any, operator: str, wanted: bool) -> Mask | None:
        """Return the result of ``p = q`` for entire nodes, by comparing positions; None if two nodes have the same id."""
        if operator not in _EQUALITY or {place[1] for place in places} != {"nodes"}:
            return None
        ids: Any = column_of_field(self._graph, self._kept, "nodes", Field(("id",)))
        distinct = len(ids.known) if isinstance(ids, Coded) else len(np.unique(ids.values)) if ids is not None else 0
        if distinct != len(self._kept.nodes(self._graph)):
            return None
        same: Mask = rows[places[0][0]] == rows[places[1][0]]
        return same if (operator == "=") is wanted else ~same

    def _number(self, value: Any, rows: Any) -> Any:
        """Return the numbers of a value, with NaN for null. Return None unless floats represent all values exactly."""
        match value:
            case Constant():
                number = value.value
                exact = number.__class__ in (int, float) and abs(number) < _EXACT
                return float(number) if exact else None
            case Field():
                source = self._source(value)
                if source is None or not isinstance(source.column, Numbers):
                    return None
                return source.column.values.take(source.at(rows))
            case Negative():
                inner = self._number(value.operand, rows)
                return None if inner is None else -inner
            case Binary():
                return self._combined(value, rows)
        return None

    def _combined(self, value: Binary, rows: Any) -> Any:
        left, right = self._number(value.left, rows), self._number(value.right, rows)
        if left is None or right is None or not (_is_exact(left) and _is_exact(right)):
            return None
        with np.errstate(all="ignore"):
            match value.sign:
                case "+":
                    found = left + right
                case "-":
                    found = left - right
                case "*":
                    found = left * right
                case _:
                    # Division by zero gives null.
                    divisor = np.where(np.asarray(right) == 0, np.nan, right)
                    found = left / divisor if value.sign == "/" else np.mod(left, divisor)
        return found if _is_exact(found) else None

    def _source(self, at: Field) -> _Source | None:
        """Return the column of a field. Return None for an entire item, and for values that are nested too deeply."""
        if at.path not in self._sources:
            slot, kind, path = self._locate(at)
            column = column_of_field(self._graph, self._kept, kind, Field(path)) if path else None
            through = column.ends if isinstance(column, Through) else None
            inner = column.inner if isinstance(column, Through) else column
            self._sources[at.path] = None if inner is None else _Source(slot, inner, through)
        return self._sources[at.path]

    # Row by row

    def holds(self, condition: Condition, rows: Any, size: int, deadline: Deadline) -> Mask:
        """Return whether a condition is true for each row. After the deadline the remaining rows count as false."""
        slots, test = self._test(condition)
        holds = test.holds
        if not slots:
            return np.full(size, evaluate(condition, lambda _: None) is True, np.bool_)
        lists = [rows[slot].tolist() for slot in slots]
        mask = np.zeros(size, np.bool_)
        for begin in range(0, size, _CHUNK):
            if deadline.passed():
                break
            pieces = [values[begin : begin + _CHUNK] for values in lists]
            mask[begin : begin + len(pieces[0])] = list(map(holds, *pieces))
        return mask

    def count_left_out(self, condition: Condition, rows: Any, size: int, among: Mask | None = None) -> None:
        """Count the rows (of those in the mask ``among``) that a condition leaves out because of the types of their values."""
        if current_tally() is None:
            return
        known = self._typed.get(id(condition))
        if known is None:
            known = self._typed[id(condition)] = (condition, list(self._typed_of(condition)))
        for leaf, source, others in known[1]:
            mask = others.take(source.at(rows))
            chosen = np.flatnonzero(mask if among is None else mask & among)
            if len(chosen) and len(unknown := chosen[self._unknown(condition, rows, chosen)]):
                count_mismatch(
                    leaf, len(unknown), self._examples(leaf, source, source.at(rows).take(unknown[:MOST_EXAMPLES]))
                )

    def _examples(self, leaf: Comparison, source: _Source, positions: Array) -> Iterator[str]:
        """Yield descriptions of the values at some positions in the column of a comparison's field."""
        at = plain_side(leaf)
        _, kind, path = self._locate(at) if at is not None else (0, "nodes", ())
        if source.through is not None:  # the column belongs to the end nodes
            kind, path = "nodes", path[1:] or ("id",)
        reader = readers_of(self._graph, kind)(Field(path))
        return examples_of(self._kept.table(self._graph, kind).rows(positions.tolist()), reader)

    def _typed_of(self, condition: Condition) -> "Iterator[_Typed]":
        for leaf, at, is_other in typed_leaves(condition):
            source = self._source(at)  # None: the values are nested too deeply to be compared
            others = None if source is None else source.column.others(is_other)
            if source is not None and others is not None:
                yield leaf, source, others

    def _unknown(self, condition: Condition, rows: Any, chosen: Array) -> Mask:
        """Return, for each of the rows at ``chosen``, whether a condition is neither true nor false."""
        slots, test = self._test(condition)
        some = {slot: rows[slot].take(chosen) for slot in slots}
        true, false = (self.mask(condition, some, len(chosen), wanted) for wanted in (True, False))
        if true is not None and false is not None:
            return ~(true | false)
        with uncounted():
            rows_of_slots = zip(*(some[slot].tolist() for slot in slots), strict=True)
            return np.fromiter((test(*row) is None for row in rows_of_slots), np.bool_, len(chosen))

    def check(self, condition: Condition) -> None:
        """Raise ``ConditionError`` if a condition can't be evaluated, for example because it calls an unknown function."""
        self._test(condition)

    def _test(self, condition: Condition) -> tuple[tuple[int, ...], Predicate]:
        known = self._tests.get(id(condition))
        if known is None:
            slots = self._slots(condition)
            arity = max(len(slots), 1)
            test = compiled(condition, self._reader(slots), arity=arity, plain=plain)
            known = self._tests[id(condition)] = (condition, slots, test)
        return known[1], known[2]

    def _slots(self, node: Any) -> tuple[int, ...]:
        return tuple(sorted({self._locate(at)[0] for at in walk(node) if isinstance(at, Field)}))

    def _reader(self, slots: Sequence[int]) -> Callable[[Field], Reader]:
        """Return the readers of fields for rows of positions in ``slots``."""

        def read(at: Field) -> Reader:
            slot, kind, path = self._locate(at)
            return Reader((slots.index(slot),), function=reader_at(self._graph, self._kept, kind, path))

        return read

    def values(self, value: Any, rows: Any, size: int) -> list[Any]:
        """Return a value for each row. The value is null if an operator or a function does not accept its operands."""
        slots = self._slots(value)
        compute = value_function(value, self._reader(slots), arity=max(len(slots), 1), plain=plain, lenient=True)
        if not slots:
            return [compute(None)] * size
        made: list[Any] = []
        for begin in range(0, size, _CHUNK):
            check()
            some = list(map(compute, *(rows[slot][begin : begin + _CHUNK].tolist() for slot in slots)))
            if not isinstance(value, Field):  # the texts of a field belong to the graph
                hold(sum(getsizeof(each) for each in some if each.__class__ is str))
            made += some
        return made

    def ranks(self, value: Any, rows: Any, size: int, descending: bool = False) -> NDArray[np.float64]:
        """Return numbers with the same order as the values, equal for equal values; NaN for null."""
        source = self._source(value) if isinstance(value, Field) else None
        if source is not None:
            ranks: NDArray[np.float64] = source.column.ranks(source.at(rows), descending)
            return ranks
        null = order_key(None, descending)
        keys = [order_key(plain(found), descending) for found in self.values(value, rows, size)]
        places: Mapping[Any, int] = {key: at for at, key in enumerate(sorted({key for key in keys if key != null}))}
        return np.array([places.get(key, np.nan) for key in keys], np.float64)

    def groups(self, value: Any, rows: Any, size: int) -> NDArray[np.int64]:
        """Return a number for each row. Equal values have the same number; a value that items show as null counts as null.

        Raises ``UnusableValue`` if an operator or a function does not accept its operands.
        """
        source = self._source(value) if isinstance(value, Field) else None
        numbers: Any = None
        if source is not None and isinstance(source.column, Numbers):
            numbers = source.column.values.take(source.at(rows))
            numbers[np.isinf(numbers)] = np.nan
        elif source is not None and isinstance(source.column, Coded) and source.column.text and not source.column.forms:
            numbers = source.column.codes.take(source.at(rows))
        if numbers is None:
            known: dict[Hashable, int] = {}
            codes = [known.setdefault(identity(each), len(known)) for each in self._kept_values(value, rows)]
            return np.array(codes, np.int64)
        found: NDArray[np.int64] = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
        return found

    def _kept_values(self, value: Any, rows: Any) -> "Iterator[Any]":
        """Yield the value of each row. Raises ``UnusableValue``."""
        slots = self._slots(value)
        readers = self._reader(slots)

        def shown(at: Field) -> Reader:
            reader = readers(at)
            read = reader.function
            assert read is not None  # noqa: S101  # so ``_reader`` makes them
            return Reader(reader.arguments, function=lambda position: item_value(read(position)))

        compute = value_function(value, shown, arity=len(slots))
        for row in zip(*(rows[slot].tolist() for slot in slots), strict=True):
            try:
                yield storable(compute(*row))
            except Mismatch as mismatch:
                message = f"{format_condition(value)} of {self._label(value, dict(zip(slots, row, strict=True)))}"
                raise UnusableValue(f"{message}: {mismatch.message}", hint=mismatch.hint) from None

    def _label(self, value: Any, row: Mapping[int, int]) -> str:
        """Return a description, for a message, of the first element that a value reads."""
        slot, kind, _ = self._locate(next(node for node in walk(value) if isinstance(node, Field)))
        found = row_at(self._graph, self._kept, kind)(row[slot])
        return edge_label(found) if kind == "edges" else f"the node {node_id(found[0])}"


def reader_at(graph: Any, kept: Computed, kind: Kind, path: tuple[str, ...]) -> Callable[[int], Any]:
    """Return a function that maps a position in the live graph to the field ``path`` or, if ``path`` is empty, to the item."""
    row = row_at(graph, kept, kind)
    if not path:
        build: Callable[..., Any] = node_item if kind == "nodes" else edge_item
        return lambda at: build(*row(at))
    inner = readers_of(graph, kind)(Field(path))
    if inner.key is not None:
        data, name = kept.table(graph, kind).data, inner.key
        return lambda at: data[at].get(name)
    return lambda at: inner.read(*row(at))


def row_at(graph: Any, kept: Computed, kind: Kind) -> Callable[[int], tuple[Any, ...]]:
    """Return a function that maps a position to the row of the graph, in the form that ``rows_of`` yields."""
    nodes = kept.nodes(graph).nodes
    if kind == "nodes":
        data = kept.nodes(graph).data
        return lambda at: (nodes[at], data[at])
    table = kept.edges(graph)
    sources, targets, keys, attributes = table.sources, table.targets, table.keys, table.data
    return lambda at: (nodes[sources[at]], nodes[targets[at]], None if keys is None else keys[at], attributes[at])


def _is_exact(numbers: Any) -> bool:
    return not bool((np.abs(numbers) >= _EXACT).any())


def _compared(left: Any, operator: str, right: Any, wanted: bool) -> Mask:
    """Compare numbers. NaN means null, so a comparison with NaN is neither true nor false."""
    with np.errstate(invalid="ignore"):
        found: Mask
        match operator, wanted:
            case ("=", True) | ("!=", False):
                found = left == right
            case ("!=", True) | ("=", False):
                found = (left < right) | (left > right)
            case ("<", True) | (">=", False):
                found = left < right
            case ("<=", True) | (">", False):
                found = left <= right
            case (">", True) | ("<=", False):
                found = left > right
            case _:
                found = left >= right
    return found


def _joint_ranks(one: Coded, other: Coded) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return, for each code of two columns of strings, the rank of its string among all strings of both; NaN for null."""
    texts = [list(map(canonical, column.values)) for column in (one, other)]
    places = {text: at for at, text in enumerate(sorted({*texts[0], *texts[1]}))}
    first, second = (np.array([np.nan, *(places[text] for text in each)], np.float64) for each in texts)
    return first, second
