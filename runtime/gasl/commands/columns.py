"""Columns: a value for every item of a variable. Reads fields by dotted names, and rejects a field that no item has."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from ....lang.diagnostic import nearest
from ....lang.evaluate.conditions import Mismatch, Reader, compiled, counted, dotted, kept, value_function
from ....lang.evaluate.conditions.other_types import is_counting, typed_leaves
from ....lang.evaluate.conditions.value_generator import of_item
from ....lang.evaluate.conditions.values import MOST_EXAMPLES, count_mismatch, example_of, id_text, uncounted
from ....lang.linter.gasl.arguments import is_in
from ....lang.linter.gasl.contents import Contents, fields_in
from ....lang.linter.gasl.fields import scope_of_items
from ....lang.linter.gasl.graph import DEGREES, is_known, place_of
from ....lang.literals import short
from ....lang.printer.gasl_printer import format_condition
from ....lang.trees import walk
from ....lang.trees.conditions import Binary, Condition, Field, Negative, Not, NullTest
from ....lang.trees.conditions import Value as ValueNode
from .. import column_cells
from ..column_cells import Cells, Pick, blocks_of
from ..records import Session
from ..relation import Relation
from .bindings import Refused, Rows, listed
from .column_store import PIECE, ColumnStore, new_bytes
from .evidence import is_node_id
from .mixed_values import Found, count_equalities

if TYPE_CHECKING:
    from ....adapters.columns import Array, ColumnArray

MISSING = object()
"""The result of ``read`` if an item does not have the field."""

FEW_NUMBERS = 256
"""Up to this number of values, a standard deviation is correctly rounded. With more values, the last digit may differ."""
SAFE_MAGNITUDES = (1e-100, 2.0**50)
"""The range of magnitudes in which squares of differences neither overflow nor lose digits."""
_MOST_OFFERED = 30
"""Maximum number of fields in a hint."""
_NAMED_FROM = 1_000
"""Maximum number of items whose fields are collected for the hint about an unknown field."""


def read(item: Any, parts: Sequence[str]) -> Any:
    """Return a field of ``item``, or ``MISSING``. At each level, the longest name in the path that is a field has priority.

    If a name applies to a list, it is looked up in each object of the list; the result is the list of the values found.
    """
    while parts:
        if isinstance(item, list | tuple):
            found = [value for each in item if (value := read(each, parts)) is not MISSING]
            return found if found or not item else MISSING
        if not isinstance(item, dict):
            return MISSING
        for name, rest in dotted(parts):
            if name in item:
                item, parts = item[name], rest
                break
        else:
            return MISSING
    return item


@define(eq=False)
class Column:
    """The values of one column: a value for each item (None for null).

    ``nulls`` maps reasons to numbers of nulls in a computed column. ``array`` has the values as an array, or is None if they
    are only stored as a list.
    """

    _values: Sequence[Any] | None = None
    nulls: Mapping[str, int] = field(factory=dict)
    array: "ColumnArray | None" = None

    @property
    def values(self) -> Sequence[Any]:
        """The values as a sequence. The values of a large array are read from it."""
        if self._values is None:
            assert self.array is not None  # noqa: S101  # a column has values or an array
            self._values = Cells(self.array) if len(self.array) > column_cells.LARGE else self.array.listed()
        return self._values


def column(rows: Rows, value: ValueNode, session: Session, *, lenient: bool = False, of_graph: bool = False) -> Column:
    """Evaluate ``value`` for every item and return the results. The variables in ``value`` must be bound.

    Raises ``Refused`` (``schema_mismatch``) for a field in ``value`` that no item has. Unless ``lenient``, also raises
    ``Refused`` if an operator or a function does not accept a value, or if a number does not fit in 64 bits. A lenient column
    is not stored in items, so its integers may be larger; a value that can't be computed is null and counted as a mismatch.
    With ``of_graph``, a field that no item has is null, because items of the graph outside ``rows`` may have it.
    """
    if (found_array := array_column(rows, value)) is not None:
        return found_array
    store = ColumnStore(len(rows))
    nulls: dict[str, int] = {}
    for block, new in column_blocks(rows, value, session, nulls, lenient=lenient, of_graph=of_graph):
        store.add(block, new)
    values, array = store.finished()
    return Column(values, nulls, array)


def column_blocks(
    rows: Rows,
    value: ValueNode,
    session: Session,
    nulls: dict[str, int],
    *,
    lenient: bool = False,
    of_graph: bool = False,
) -> Iterator[tuple[list[Any], int]]:
    """Yield the values of ``column`` in blocks, each with the number of bytes of its new texts and lists.

    ``nulls`` counts the nulls of a computed value, separately for each reason. Raises the same errors as ``column``.
    """
    table = table_of(rows, fields_of(value), session, of_graph=of_graph)
    if isinstance(value, Field):
        read_row = table.readers(value).read
        for some in table.blocks():
            yield [None if (found := read_row(*row)) is None or found != found else found for row in some], 0
        return
    compute = value_function(value, table.readers, arity=table.arity, lenient=lenient)
    index = -1
    with counted() as tally:
        for some in table.blocks():
            made: list[Any] = []
            new = 0
            for row in some:
                index += 1
                try:
                    made.append(found := compute(*row) if lenient else kept(compute(*row)))
                except Mismatch as mismatch:
                    raise _mismatched(rows, index, value, mismatch) from None
                if found is None:
                    reason = tally.reason or "missing"
                    nulls[reason] = nulls.get(reason, 0) + 1
                elif found.__class__ is str or found.__class__ is list:
                    new += new_bytes(found)
                    if new > PIECE:
                        yield made, new
                        made, new = [], 0
                tally.reason = ""
            yield made, new


@frozen
class FieldTable:
    """Reads the fields of the items of a variable, block by block.

    ``blocks`` yields blocks of rows; a row is a tuple of ``arity`` elements. ``readers`` returns the reader of a field in such
    a tuple.
    """

    blocks: Callable[[], Iterator[Iterable[tuple[Any, ...]]]]
    readers: Callable[[Field], Reader]
    arity: int


def table_of(rows: Rows, fields: Sequence[Field], session: Session, *, of_graph: bool = False) -> FieldTable:
    """Return the fields of the items, without building the items if possible. Raises the same errors as ``item_readers``."""
    found = columns_of(rows, fields)
    return item_table(rows, item_readers(rows, fields, session, of_graph=of_graph)) if found is None else found


def item_table(rows: Rows, readers: Callable[[Field], Reader]) -> FieldTable:
    """Return a table whose rows are the items."""
    objects = rows.objects

    def blocks() -> Iterator[Iterable[tuple[Any, ...]]]:
        for at in blocks_of(len(objects)):
            yield [(item,) for item in objects[at]]

    return FieldTable(blocks, readers, 1)


def columns_of(rows: Rows, fields: Sequence[Field]) -> FieldTable | None:
    """Return the values of ``fields`` without building items. Return None for a list, or if a field may be in no item."""
    relation = rows.relation
    if relation is None or not len(relation) or not fields or any(at.quantifier is not None for at in fields):
        return None
    paths = list(dict.fromkeys(at.path for at in fields))
    picks: list[Pick] = []
    size = len(relation)
    for path in paths:
        pick = relation.reader(path)
        if pick is None or all(all(value is None for value in pick(at)) for at in blocks_of(size)):
            return None
        picks.append(pick)
    at_path = {path: index for index, path in enumerate(paths)}

    def blocks() -> Iterator[Iterable[tuple[Any, ...]]]:
        for at in blocks_of(size):
            yield zip(*(pick(at) for pick in picks), strict=True)

    return FieldTable(blocks, lambda at: Reader((at_path[at.path],)), len(paths))


def array_of(rows: Rows, value: ValueNode) -> "ColumnArray | None":
    """Return the values of a field as an array. Return None if the items must be read, or if all values are null."""
    relation = rows.relation
    if relation is None or not isinstance(value, Field) or value.quantifier is not None or not len(relation):
        return None
    array = relation.array(value.path)
    return array if array is not None and array.has_values else None


def array_column(rows: Rows, value: ValueNode) -> Column | None:
    """Return a field, or arithmetic over numeric fields, as a column with an array. Return None if each row must be read."""
    if isinstance(value, Field):
        array = array_of(rows, value)
        return None if array is None else Column(array=array)
    if rows.relation is None or not len(rows) or not isinstance(value, Binary | Negative):
        return None
    from .array_arithmetic import computed_array

    found = computed_array(value, lambda at: array_of(rows, at))
    return None if found is None else Column(array=found[0], nulls=found[1])


def null_counts(columns: Iterable[tuple[str, Column]]) -> dict[str, Any]:
    """Return the part of a summary that counts the nulls of computed columns by their reasons; empty if no column has nulls."""
    nulls = {name: dict(made.nulls) for name, made in columns if made.nulls}
    return {"nulls": nulls} if nulls else {}


def positions_of(positions: "array[int]") -> "Array":
    """Return an array of the type "i" as a NumPy array that shares its memory."""
    import numpy as np

    return np.frombuffer(positions, np.intc) if len(positions) else np.empty(0, np.intc)


def fields_of(node: Any) -> list[Field]:
    """Return the fields that a value or a condition reads."""
    return [each for each in walk(node) if isinstance(each, Field)]


def selected(rows: Rows, condition: Condition, session: Session) -> Sequence[int]:
    """Return the positions of the items for which the condition is true. In the condition, a field that no item has is null."""

    def search(test: Condition) -> Found:
        with uncounted():
            return found_items(rows, _selected(rows, test, session), session)

    count_equalities(condition, lambda field: _may_be_mixed(rows, field), search)
    return _selected(rows, condition, session)


def found_items(rows: Rows, at: Sequence[int], session: Session) -> Found:
    """Return the items at the positions ``at``."""

    def values(field: Field) -> Sequence[Any]:
        with uncounted():
            some = Rows(rows.name, rows.value, rows.taken(at))
            return column(some, field, session, lenient=True, of_graph=True).values

    return Found(len(at), lambda index: item_name(rows, at[index]), values)


def _may_be_mixed(rows: Rows, field: Field) -> bool:
    """Return whether the values of a field may have several types."""
    from ....adapters.columns import NumberArray

    array = rows.relation.array(field.path) if rows.relation is not None else None
    if array is None:
        return True
    return not isinstance(array, NumberArray) and len(set(map(type, array.values))) > 1


def _selected(rows: Rows, condition: Condition, session: Session) -> Sequence[int]:
    if (relation := rows.relation) is not None:
        mask = relation.mask(condition)
        if mask is not None:
            _count_in_columns(relation, condition, rows)
            return mask.nonzero()[0]  # type: ignore[no-any-return]
        columns = columns_of(rows, fields_of(condition))
        if columns is not None:
            return _chosen(condition, columns, rows)
    computed = [at for at in fields_of(condition) if _may_be_computed(rows, at)]
    return _chosen(condition, item_table(rows, item_readers(rows, computed, session)), rows)


def _chosen(condition: Condition, table: FieldTable, rows: Rows) -> Sequence[int]:
    """Return the indices of the rows for which the condition is true. Count the rows excluded because of value types."""
    predicate = compiled(condition, table.readers, arity=table.arity)
    holds, leaves = predicate.holds, typed_leaves(condition) if is_counting(condition) else []
    left_out = [0] * len(leaves)
    examples: list[list[str]] = [[] for _ in leaves]
    tests = [(place, table.readers(at).read, is_other) for place, (_, at, is_other) in enumerate(leaves)]
    chosen = array("i")
    first = 0
    for some in table.blocks():
        block = some if isinstance(some, list) else list(some)
        chosen.extend([index for index, row in enumerate(block, first) if holds(*row)])
        for place, read_row, is_other in tests:
            others = [(index, row) for index, row in enumerate(block, first) if is_other(read_row(*row))]
            if others:
                with uncounted():
                    found = [(index, row) for index, row in others if predicate(*row) is None]
                left_out[place] += len(found)
                room = MOST_EXAMPLES - len(examples[place])
                examples[place] += (example_of(item_name(rows, index), read_row(*row)) for index, row in found[:room])
        first += len(block)
    for (leaf, *_), count, some_values in zip(leaves, left_out, examples, strict=True):
        if count:
            count_mismatch(leaf, count, some_values)
    return chosen.tolist() if first <= column_cells.LARGE else positions_of(chosen)  # type: ignore[return-value]  # an array


def _count_in_columns(relation: Relation, condition: Condition, rows: Rows) -> None:
    """Count the rows of found items that a condition excludes because of the types of their values."""
    if not is_counting(condition):
        return
    from ....adapters.columns import CodeArray, NumberArray  # imported late: it needs NumPy

    for leaf, at, is_other in typed_leaves(condition):
        array = relation.array(at.path)
        if isinstance(array, NumberArray) and not is_other(0.5):
            continue
        if isinstance(array, CodeArray) and not any(map(is_other, array.values)):
            continue
        masks = [relation.mask(each) for each in (condition, Not(condition), leaf, Not(leaf), NullTest(at))]
        if all(mask is not None for mask in masks):
            true, false, leaf_true, leaf_false, null = masks
            values = relation.values(at.path) or ()
            unknown = (~(true | false | leaf_true | leaf_false | null)).nonzero()[0].tolist()
            found = [index for index in unknown if is_other(values[index])]
            if found:
                count_mismatch(leaf, len(found), (example_of(item_name(rows, index), values[index]) for index in found))


def _may_be_computed(rows: Rows, at: Field) -> bool:
    """Return whether a field that no item has may be a computed field: a degree, or a field of an edge's or path's end node."""
    if at.quantifier is not None or _node_field(rows, at.path) is None:
        return False
    return all(read(item, at.path) is MISSING for item in rows.each())


def _mismatched(rows: Rows, index: int, value: ValueNode, mismatch: Mismatch) -> Refused:
    message = f"{format_condition(value)} of {item_label(rows, index)}: {mismatch.message}"
    return Refused("schema_mismatch", message, mismatch.hint)


def item_name(rows: Rows, index: int) -> str:
    """Return a short name for an item: its id, the ids of its ends, or its position."""
    item = rows.held[index]
    named = item if isinstance(item, dict) else {}
    ends = [named.get(name) for name in ("source", "target")]
    if isinstance(named.get("id"), str | int):
        return id_text(named["id"])
    return " → ".join(map(id_text, ends)) if all(isinstance(end, str | int) for end in ends) else f"item {index + 1}"


def item_label(rows: Rows, index: int) -> str:
    """Return a description of an item for a message: its position, its variable, and its id if it has one."""
    item = rows.held[index]
    name = item.get("id") if isinstance(item, dict) else None
    return f"item {index + 1} of {rows.name}" + (f" ({short(name)})" if isinstance(name, str) else "")


def item_readers(
    rows: Rows, fields: Iterable[Field], session: Session, *, of_graph: bool = False
) -> Callable[[Field], Reader]:
    """Return the readers of ``fields`` in the items. Raises ``Refused`` for a field that no item can have, unless ``of_graph``.

    Nodes, edges and paths of the graph, also those inside rows, have computed fields: the degrees of a node, and ``source.x`` and
    ``target.x``. An attribute of the graph that these items lack is null.
    """
    known: dict[tuple[str, ...], Reader] = {}
    for at in fields:
        if at.path in known or at.quantifier is not None:
            continue
        if not len(rows) or any(read(item, at.path) is not MISSING for item in rows.each()):
            known[at.path] = of_item(at)
        else:
            computed = _graph_reader(rows, at, session)
            if computed is None and not of_graph and not _is_known(rows, at, session):
                raise unknown_field(rows, at)
            known[at.path] = computed or of_item(at)
    return lambda at: known.get(at.path) or of_item(at)


def _graph_reader(rows: Rows, at: Field, session: Session) -> Reader | None:
    """Return the reader of a computed field of graph items. Return None if the items do not have this computed field."""
    found = _node_field(rows, at.path)
    if found is None:
        return None
    holder, path = found

    def node_of(item: Any) -> Any:
        node = read(item, holder)
        return node if is_node_id(node) else None

    if path == ("id",):
        return Reader(function=node_of)
    ids = list(dict.fromkeys(node for item in rows.each() if (node := node_of(item)) is not None))
    found_values = session.graph.node_values(ids, path)
    if found_values is None:
        return None
    values = dict(zip(ids, found_values, strict=True))
    return Reader(function=lambda item: values.get(node_of(item)))


def _node_field(rows: Rows, path: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the path to a node's id in the items, and the path of the field in this node. Return None for any other field."""
    before: tuple[str, ...] = ()
    contents, kind = rows.value.contents, str(rows.value.graph_items)
    if not kind and contents is not None and (held := contents.holder(path)) is not None:
        before, kind, path = path[: held[0]], held[1], path[held[0] :]
    if kind in ("edges", "paths") and len(path) > 1 and path[0] in ("source", "target"):
        return (*before, path[0]), path[1:]
    if kind == "nodes" and len(path) == 1 and path[0] in DEGREES:
        return (*before, "id"), path
    return None


def _is_known(rows: Rows, at: Field, session: Session) -> bool:
    """Return whether the linter knows a field, which no item has, as an attribute of the graph or as a column."""
    contents, schema = _contents(rows), session.graph.schema
    scope = scope_of_items(contents, rows.name)
    place = place_of(at, scope, schema)
    if place is not None:
        return bool(place.path) and is_known(place, schema)
    return is_in(at, (*(contents.columns or ()), *contents.more))


def _contents(rows: Rows) -> Contents:
    contents = rows.value.contents
    return Contents(rows.value.graph_items or "unknown") if contents is None else contents


def possible_fields(rows: Rows, session: Session) -> tuple[str, ...]:
    """Return the fields that, according to the linter, the items of a variable may have; empty if they are unknown."""
    return fields_in(_contents(rows), session.graph.schema) or ()


def unknown_field(rows: Rows, path: Field) -> Refused:
    """Return the ``Refused`` for a field that no item has; its hint has the nearest name and the fields of the items."""
    names = list(_names(islice(rows.each(), _NAMED_FROM)))
    like = nearest(path.text, names)
    hint = f"there are: {listed(names, _MOST_OFFERED)}" if names else "the items are not objects"
    if like:
        hint = f"did you mean {like}? {hint}"
    return Refused("schema_mismatch", f"no item of {rows.name} has a field {path.text}", hint)


def _names(items: Iterable[Any]) -> dict[str, None]:
    """Return the names of all fields; a field of a nested object has a dotted name. Deeper fields are left out."""
    names: dict[str, None] = {}
    for item in items:
        if isinstance(item, dict):
            for name, value in item.items():
                names[name] = None
                if isinstance(value, dict):
                    names.update((f"{name}.{inner}", None) for inner in islice(value, 50))
    return names
