"""The rows of an exact search: few are fetched at once, many are counted and stay in the database until they are read."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from attrs import field, frozen

from ...lang.evaluate.conditions.values import current_tally
from ...lang.trees.conditions import And, Comparison, Condition, Constant, Field
from ..columns import Array, CodeArray, ColumnArray, GroupedItems, GroupQuery, NumberArray
from ..graph import AdapterError, Caps, GraphResult
from ..graph_networkx.rows import Deadline, Items
from .column_items import ColumnItems, TableItems, items_of_columns
from .database import EdgeTable, NodeTable, Row, Statement
from .found_rows import FIRST, FoundInDatabase, Places, RowsInDatabase, array_of, code_array, shown
from .grouped_rows import grouped, grouping, statement_of_groups
from .push_down import Parameters, Pushed
from .search import (
    SearchPlan,
    Source,
    TablePlan,
    count_rows,
    head_of,
    own_order,
    plan_search,
    shown_statement,
    statement_of,
    used_of,
)
from .table_rows import Kind, TableRow, Wanted, item_of
from .view import Fixed, Known

if TYPE_CHECKING:
    import pyarrow as pa

_FEW = 5_000
"""A result without more rows is fetched at once."""
_SOME = 50_000
"""Edges of a table are fetched at once in columns up to this number: to find them takes longer than to fetch them."""
_LARGE = 20 * _FEW
"""If a table has more rows, a result is counted before rows are fetched."""
_SECONDS = 600.0
_EXACT = 2**53


def search_exactly(
    source: Source, kind: Kind, where: Condition | None, caps: Caps, deadline: Deadline
) -> GraphResult | None:
    """Return the result of a search whose whole condition the database tests; None if a cap or the deadline cuts the result."""
    plan = plan_search(source, kind, where, (), None)
    counts: list[int] = []
    rows: list[list[Row] | None] = []
    fetched: list[pa.Table | None] = []
    is_one = kind == "nodes" and _names_a_node(where)
    for each in plan.tables:
        if is_one and any(counts):  # no other table has a node with the same id
            counts.append(0)
            rows.append([])
            fetched.append(None)
            continue
        count = count_rows(source, each, deadline) if _is_large(source, each, deadline) else None
        columns = _some_columns(source, each, count, deadline)
        found: list[Row] | None = None
        if columns is not None and columns.num_rows > _SOME:
            columns = None
        elif columns is None and (count is None or count <= _FEW):
            statement = statement_of(source, attrs.evolve(each, limit=_FEW + 1), plan.wanted)
            found = source.database.few(attrs.evolve(statement, is_short=is_one), _FEW, deadline)
        if deadline.hit:
            return None
        rows.append(found)
        fetched.append(columns)
        if found is not None:
            counts.append(len(found))
        elif columns is not None:
            counts.append(columns.num_rows)
        else:
            counts.append(count_rows(source, each, deadline) if count is None else count)
    total = sum(counts)
    if deadline.passed() or total > caps.max_results:
        return None
    if total <= _FEW and not any(one is other is None for one, other in zip(rows, fetched, strict=True)):
        few: list[TableRow] = []
        for each, some, columns in zip(plan.tables, rows, fetched, strict=True):
            made = source.columns(each.table, plan.wanted, deadline).row
            few += map(made, _rows_of(columns) if columns is not None else some or ())
        few.sort(key=lambda row: row[0])
        return GraphResult(Items(few, lambda row: item_of(kind, row)), (), used_of(plan, total), total)
    selection = TableSelection(source, kind, where, plan, tuple(counts), tuple(fetched))
    items = FoundInDatabase(RowsInDatabase(selection))
    if selection.is_fetched:
        return GraphResult(items, (), used_of(plan, total), total, columnar=lambda: items)
    used = f"Cypher, {total:,} rows counted and fetched when they are read"
    return GraphResult(items, (), used, 0, columnar=lambda: items)


def _some_columns(source: Source, each: TablePlan, count: int | None, deadline: Deadline) -> "pa.Table | None":
    """Return the columns of the first ``_SOME + 1`` rows of a table of edges; None if rows must be counted or fetched.

    ``count`` is the number of rows, if it is known.
    """
    table = each.table
    if not isinstance(table, EdgeTable) or (count is not None and count > _SOME):
        return None
    if any(at.family == "other" for at in table.properties.values()):  # columns can't hold their values
        return None
    statement = statement_of(source, attrs.evolve(each, limit=_SOME + 1), Wanted())
    return source.database.columns(statement, deadline)


def _rows_of(columns: "pa.Table") -> list[Row]:
    return list(zip(*(each.to_pylist() for each in columns.columns), strict=True))


def _names_a_node(where: Condition | None) -> bool:
    """Return whether a condition is true for one id only: ``id = constant``, perhaps with other conditions after AND."""
    parts = where.operands if isinstance(where, And) else (where,)
    return any(
        isinstance(each, Comparison) and each.operator == "=" and each.left == Field(("id",))
        and isinstance(each.right, Constant) for each in parts
    )  # fmt: skip


def _is_large(source: Source, each: TablePlan, deadline: Deadline) -> bool:
    """Return whether a table has so many rows that counting the result is cheaper than starting to fetch it."""
    if any(" = " in text for text in each.pushed.texts):  # this may be a look-up by key, which is fast
        return False
    return source.positions(each.table, lambda statement: source.database.run(statement, deadline)) > _LARGE


@frozen(eq=False)
class TableSelection:
    """The rows that an exact search selects, with the number of rows of each table.

    ``fetched`` has the columns of tables that were fetched already, or None.
    """

    source: Source
    kind: Kind
    where: Condition | None
    plan: SearchPlan
    counts: tuple[int, ...]
    fetched: "tuple[pa.Table | None, ...]"
    total: int = field(init=False)

    @total.default
    def _default_total(self) -> int:
        return sum(self.counts)

    @property
    def is_fetched(self) -> bool:
        """See ``Selection``."""
        return bool(self.fetched) and all(each is not None for each in self.fetched)

    def rows(self, most: int | None) -> list[TableRow]:
        """See ``Selection``."""
        source, deadline = self.source, _command_deadline()
        if most is not None and self.kind == "nodes" and (first := self._first_nodes(most, deadline)) is not None:
            return first
        wanted = self.plan if most is None else plan_search(source, self.kind, self.where, (), most)
        found: list[TableRow] = []
        for each, known in zip(wanted.tables, self.fetched, strict=True):
            columns = source.columns(each.table, wanted.wanted, deadline)
            if known is None or most is not None:
                rows = self._unchanged(statement_of(source, each, wanted.wanted), deadline)
            else:
                rows = _rows_of(known)
            found += map(columns.row, rows)
        found.sort(key=lambda row: row[0])
        self._counted(found, self.total if most is None else min(most, self.total), most is not None)
        return found

    def _first_nodes(self, most: int, deadline: Deadline) -> list[TableRow] | None:
        """Return the first ``most`` nodes: those before a position that is estimated from the share of the selected nodes.

        Engines find them in a fraction of the time of a sort. Return None if the selected nodes are distributed too unevenly.
        For a few nodes, one thread scans the table; counting the nodes up to the last one found shows whether these are the first.
        """
        if most <= FIRST and (scanned := self._scanned(most, deadline)) is not None:
            return scanned
        source, found = self.source, list[TableRow]()
        position = source.database.dialect.order.format("n")
        for each, count in zip(self.plan.tables, self.counts, strict=True):
            needed = most - len(found)
            if needed <= 0:
                break
            pushed, parameters = each.pushed, Parameters(dict(each.parameters.values))
            if count > 2 * needed:
                size = int(self._unchanged(Statement(f"{source.match(each.table)} RETURN count(*)"), deadline)[0][0])
                bound = parameters.add(2 * needed * size // count + 1)
                pushed = attrs.evolve(pushed, texts=(f"{position} < {bound}", *pushed.texts))
            columns = source.columns(each.table, self.plan.wanted, deadline)
            statement = statement_of(source, TablePlan(each.table, pushed, parameters), self.plan.wanted)
            some = sorted(map(columns.row, self._unchanged(statement, deadline)), key=lambda row: row[0])
            if len(some) < min(count, needed):
                return None
            found += some[:needed]
        self._counted(found, min(most, self.total), True)
        return found

    def _scanned(self, most: int, deadline: Deadline) -> list[TableRow] | None:
        """Return the nodes that a scan of the first table with one thread finds first; None if these are not the first nodes."""
        source = self.source
        each = next(each for each, count in zip(self.plan.tables, self.counts, strict=True) if count)
        position = source.database.dialect.order.format("n")
        statement = statement_of(source, attrs.evolve(each, limit=most), self.plan.wanted)
        found = self._unchanged(attrs.evolve(statement, is_short=True), deadline)
        if len(found) < min(most, self.total):
            return None
        columns = source.columns(each.table, self.plan.wanted, deadline)
        rows = sorted(map(columns.row, found), key=lambda row: row[0])
        parameters = Parameters(dict(each.parameters.values))
        up_to = f"{position} <= {parameters.add(rows[-1][0][-1])}"
        pushed = attrs.evolve(each.pushed, texts=(*each.pushed.texts, up_to))
        return rows if count_rows(source, TablePlan(each.table, pushed, parameters), deadline) == len(rows) else None

    def items(self) -> ColumnItems | None:
        """Return all items in the graph's own order, in Arrow columns; None if they must be made row by row."""
        source, deadline = self.source, _command_deadline()
        parts: list[TableItems] = []
        keys: list[list[Array]] = []
        for each, count, known in zip(self.plan.tables, self.counts, self.fetched, strict=True):
            if not count:
                continue
            table = known
            if table is None:
                table = source.database.columns(statement_of(source, each, Wanted()), deadline)
            made = None if table is None else items_of_columns(source, each.table, table)
            if made is None:
                return None
            self._counted(range(made[0].size), count, False)
            parts.append(made[0])
            keys.append(self._keys(each.table, made[1]))
        return ColumnItems(parts, _sorted(keys)[0] if keys else None)

    def rows_at(self, places: Places, positions: Sequence[int]) -> dict[int, TableRow]:
        """See ``Selection``."""
        source, deadline = self.source, _command_deadline()
        chosen = np.asarray(positions, np.int64)
        where = {(int(at), int(offset)): position for at, offset, position in zip(
            places.tables[chosen], places.offsets[chosen], positions, strict=True)}  # fmt: skip
        found: dict[int, TableRow] = {}
        for at, each in enumerate(self.plan.tables):
            offsets = [offset for table, offset in where if table == at]
            if not offsets:
                continue
            columns = source.columns(each.table, self.plan.wanted, deadline)
            for row in map(columns.row, self._unchanged(self._at_offsets(each, offsets, deadline), deadline)):
                found[where[at, row[0][-1]]] = row
        if len(found) != len(where):
            raise self._changed(len(where), len(found))
        return found

    def _at_offsets(self, each: TablePlan, offsets: list[int], deadline: Deadline) -> Statement:
        """Return the statement that fetches the rows of a table at positions.

        Nodes are looked up by their keys, which are fetched first: engines have an index of keys, but not of positions.
        """
        source, parameters = self.source, Parameters()
        name = "n" if isinstance(each.table, NodeTable) else "r"
        position = source.database.dialect.order.format(name)
        if isinstance(each.table, NodeTable):
            texts = [position, each.table.key_text(name)]
            named = f"RETURN {texts[0]} AS v0, {texts[1]} AS v1"
            table = source.database.columns(
                Statement(f"{head_of(source, each, texts)} {named}", each.parameters.values), deadline
            )
            if table is not None:
                chosen = np.flatnonzero(np.isin(table.column(0).to_numpy(), offsets))
                keys = table.column(1).take(chosen).to_pylist()
                made = statement_of(source, TablePlan(each.table, Pushed(), parameters), self.plan.wanted)
                match, _, rest = made.text.partition(" RETURN ")
                test = f"{each.table.key_text(name)} = k"
                text = f"UNWIND {parameters.add(keys)} AS k {match} WHERE {test} RETURN {rest}"
                return Statement(text, parameters.values)
        pushed = Pushed((f"{position} IN {parameters.add(offsets)}",))
        return statement_of(source, TablePlan(each.table, pushed, parameters), self.plan.wanted)

    def column(self, path: tuple[str, ...]) -> tuple[ColumnArray | None, Places] | None:
        """See ``Selection``."""
        if not self.total:
            return None
        if self.kind == "edges" and path[0] in ("source", "target") and len(path) > 1:
            whole = ".".join(path)  # an attribute with this name hides the field of the end
            if any(whole in table.properties for table in self.source.tables.edges):
                return None
        parts: list[Any] = []
        keys: list[list[Array]] = []
        deadline = _command_deadline()
        for each, count in zip(self.plan.tables, self.counts, strict=True):
            meaning = self.source.view(each.table).meaning(path)
            if meaning is None or (isinstance(meaning, Known) and meaning.family == "other"):
                return None
            orders = [text for text, _ in own_order(self.source, each.table)]
            texts = [*orders, *([meaning.text] if isinstance(meaning, Known) else [])]
            made, offsets = self._fetched(each, texts, len(orders), count, deadline)
            parts.append(shown(meaning.value) if isinstance(meaning, Fixed) else made)
            keys.append(self._keys(each.table, offsets))
        order, places = _sorted(keys)
        return _array(parts, self.counts, order), places

    def first_fields(self, most: int) -> tuple[str, ...] | None:
        """See ``ColumnarItems``."""
        found = [(each.table, count) for each, count in zip(self.plan.tables, self.counts, strict=True) if count]
        shapes: list[tuple[str, ...]] = []
        for table, count in found:
            if most <= 0 and self.kind == "nodes":
                break
            shape = self.source.fields_of(table, _command_deadline())
            if shape is None:
                return None
            shapes.append(shape)
            most -= count
        if self.kind == "edges" and len(set(shapes)) > 1:
            return None  # the first edges may be from any of the tables
        return tuple(dict.fromkeys(name for shape in shapes for name in shape))

    def possible_fields(self) -> frozenset[str] | None:
        """See ``ColumnarItems``."""
        names: set[str] = set()
        for each in self.plan.tables:
            names.update(self.source.names_of(each.table))
        return frozenset(names)

    def grouped(self, query: GroupQuery) -> GroupedItems | None:
        """See ``ColumnarItems``."""
        deadline = _command_deadline()
        return grouped(self.source, self.plan, self.counts, query, lambda each: self._unchanged(each, deadline))

    def grouping(self, query: GroupQuery) -> tuple[str, ...]:
        """See ``ColumnarItems``."""
        deadline = _command_deadline()
        made = grouping(self.source, self.plan, query, lambda each: self._unchanged(each, deadline))
        return tuple(shown_statement(statement_of_groups(self.source, each, query)) for each in made or ())

    def _fetched(
        self, each: TablePlan, texts: Sequence[str], orders: int, count: int, deadline: Deadline
    ) -> tuple[Any, list[Array]]:
        """Return the values of the last expression (as an Arrow array or a list), and the other columns, which are integers."""
        named = ", ".join(f"{text} AS v{at}" for at, text in enumerate(texts))
        statement = Statement(f"{head_of(self.source, each, texts)} RETURN {named}", each.parameters.values)
        table = self.source.database.columns(statement, deadline)
        if table is not None:
            self._counted(range(table.num_rows), count, False)
            offsets = [table.column(at).to_numpy() for at in range(orders)]
            return table.column(orders) if len(texts) > orders else None, offsets
        columns = list(zip(*self._counted(self._unchanged(statement, deadline), count, False), strict=True))
        if not columns:
            columns = [()] * len(texts)
        offsets = [np.array(column, np.int64) for column in columns[:orders]]
        return list(map(shown, columns[orders])) if len(texts) > orders else None, offsets

    def _keys(self, table: NodeTable | EdgeTable, offsets: list[Array]) -> list[Array]:
        """Return the columns by which the rows of a table are sorted: those of the rows' positions."""
        size = len(offsets[0])
        if isinstance(table, NodeTable):
            return [np.full(size, table.place), offsets[0]]
        keys = [np.full(size, table.source.place), offsets[0]]
        if self.source.multi:
            keys += [np.full(size, table.target.place), offsets[1]]
        return [*keys, np.full(size, table.place), offsets[-1]]

    def _unchanged(self, statement: Statement, deadline: Deadline) -> list[Row]:
        found = self.source.database.run(statement, deadline)
        if deadline.hit:
            raise AdapterError(f"{self.source.database.name}: fetching rows was ended")
        return found

    def _counted(self, found: Any, count: int, is_part: bool) -> Any:
        if len(found) < count or (not is_part and len(found) != count):
            raise self._changed(count, len(found))
        return found

    def _changed(self, counted: int, fetched: int) -> AdapterError:
        return AdapterError(
            f"{self.source.database.name}: the graph changed: {counted:,} rows were counted, {fetched:,} fetched",
            hint="run the commands again when nothing writes to the database",
        )


def _command_deadline() -> Deadline:
    """Return the deadline of a statement that a later command needs. It passes when the later command is cancelled."""
    tally = current_tally()
    return Deadline(_SECONDS, lambda: tally is not None and (tally.whole or tally).stopped)


def _sorted(keys: list[list[Array]]) -> tuple[Array | None, Places]:
    """Return the order of the rows of all tables (None: they are sorted), and their places in this order."""
    tables = np.repeat(np.arange(len(keys), dtype=np.int32), [len(each[0]) for each in keys])
    columns = [np.concatenate(each) for each in zip(*keys, strict=True)]
    varied = [column for column in columns if len(column) and (column[0] != column).any()]
    order: Array | None = None
    if varied and not (len(varied) == 1 and (np.diff(varied[0]) >= 0).all()):
        order = np.lexsort(varied[::-1])
    places = Places(tables, columns[-1])
    return order, places if order is None else Places(tables[order], places.offsets[order])


def _array(parts: list[Any], counts: Sequence[int], order: Array | None) -> ColumnArray | None:
    """Return the values of all tables as an array, in ``order``. A part is an Arrow array, a list, or the value of all rows."""
    is_arrow = any(hasattr(part, "to_pylist") for part in parts)
    if is_arrow and not any(isinstance(part, list) for part in parts):
        import pyarrow as pa

        arrays = [
            part if hasattr(part, "to_pylist") else pa.chunked_array([_repeated(pa, part, count)])
            for part, count in zip(parts, counts, strict=True)
        ]
        kinds = {each.type for each in arrays if each.null_count < len(each)}
        if not kinds:
            return None
        made = _of_arrow(pa, arrays, kinds)
        if made is not None:
            return made if order is None or not isinstance(made, NumberArray | CodeArray) else made.take(order)
        parts = [each.to_pylist() for each in arrays]
    values: list[Any] = []
    for part, count in zip(parts, counts, strict=True):
        values += map(shown, part) if isinstance(part, list) else [part] * count
    return array_of(values if order is None else [values[at] for at in order.tolist()])


def _repeated(pa: Any, value: Any, count: int) -> Any:
    return pa.nulls(count) if value is None else pa.repeat(pa.scalar(value), count)


def _of_arrow(pa: Any, arrays: "list[pa.ChunkedArray]", kinds: "set[pa.DataType]") -> ColumnArray | None:
    """Return the values of Arrow arrays as one array; None if their types differ or an array can't hold the values."""
    if len({_family(pa, kind) for kind in kinds}) != 1:
        return None
    family = _family(pa, next(iter(kinds)))
    if family is None:
        return None
    kind = {"text": pa.string(), "boolean": pa.int8(), "integer": pa.int64(), "float": pa.float64()}[family]
    whole = pa.chunked_array([chunk for each in arrays for chunk in each.cast(kind).chunks], kind)
    if family in ("text", "boolean"):
        coded = whole.combine_chunks().dictionary_encode()
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32) + 1
        values = coded.dictionary.to_pylist()
        return code_array(codes, values if family == "text" else list(map(bool, values)))
    if family == "integer":
        from pyarrow.compute import min_max

        ends = min_max(whole).as_py()
        if max(-ends["min"], ends["max"]) >= _EXACT:
            return None
        return NumberArray(whole.cast(pa.float64()).to_numpy().copy(), True)
    numbers = whole.to_numpy().copy()
    numbers[~np.isfinite(numbers)] = np.nan
    return None if np.isnan(numbers).all() else NumberArray(numbers, False)


def _family(pa: Any, kind: Any) -> str | None:
    if pa.types.is_string(kind):
        return "text"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        return "integer"
    return "float" if pa.types.is_float64(kind) else None
