"""``FIND nodes`` and ``FIND edges`` in a database: one statement per table; this process tests the rest of the condition."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from attrs import field, frozen

from ...lang.evaluate.conditions import Reader, compiled
from ...lang.evaluate.conditions.other_types import is_counting, typed_leaves
from ...lang.evaluate.conditions.values import MOST_EXAMPLES, count_mismatch, example_of, id_text, uncounted
from ...lang.trees import walk
from ...lang.trees.conditions import Condition, Field
from ...lang.trees.gasl import Order
from ...lang.unicode_forms import changeable
from ..graph import Caps, Plan
from ..graph_networkx.rows import Deadline, plain
from .address import Address
from .database import Database, EdgeTable, NodeTable, Row, Statement, Tables, quoted
from .prefilter import split
from .push_down import Parameters, Pushed, has_value, translated
from .summary import has_parallel_edges
from .table_rows import ARITY, EdgeColumns, Kind, NodeColumns, Wanted, item_of, readers_of
from .view import LABELS, WITH_DEGREES, EdgeView, Fixed, Known, NodeView, reads_degree, shown_properties

_MOST_AT_TOP = 10_000
_SECONDS = 600.0
_LARGEST_PAIR = 2**63
_MOST_PAIRS = 20_000_000
"""Maximum number of edges between two tables whose ends are fetched to find parallel edges; they take 16 bytes each."""
LARGEST_LIMIT = 2**31 - 1
"""The largest limit in a statement. Some servers refuse larger limits, and no result has so many rows."""


@frozen
class Source:
    """A database with its tables and the options of its URL."""

    database: Database
    tables: Tables
    address: Address
    _multi: list[bool] = field(factory=list, eq=False, repr=False)
    _degrees: dict[int, Mapping[Any, Mapping[str, int]]] = field(factory=dict, eq=False, repr=False)
    _fields: dict[tuple[int, bool], tuple[str, ...] | None] = field(factory=dict, eq=False, repr=False)
    _composed: dict[tuple[int, bool, str], bool] = field(factory=dict, eq=False, repr=False)
    _full: dict[tuple[int, bool, str], bool] = field(factory=dict, eq=False, repr=False)
    degree_columns: dict[int, Mapping[str, Any]] = field(factory=dict, eq=False, repr=False)
    """For each node table, arrays with the degree of the node at each position; counted once."""
    _positions: dict[tuple[int, bool], int] = field(factory=dict, eq=False, repr=False)

    @property
    def multi(self) -> bool:
        """Whether any two nodes are connected by several edges in the same direction. It is tested once, when it is needed.

        Raises ``AdapterError`` if the test takes too long.
        """
        if not self._multi:
            found = self._repeats_a_pair() if self.database.dialect.is_typed else None
            self._multi.append(has_parallel_edges(self.database) if found is None else found)
        return self._multi[0]

    def _repeats_a_pair(self) -> bool | None:
        """Return whether several edges lead from one node to another; None if the database must test it.

        The pairs of positions of the ends are fetched as integers and sorted, in a fifth of the time in which the engine groups them.
        """
        pairs: dict[tuple[int, int], list[EdgeTable]] = {}
        for table in self.tables.edges:
            pairs.setdefault((table.source.place, table.target.place), []).append(table)
        deadline, order = Deadline(_SECONDS), self.database.dialect.order.format
        for tables in pairs.values():
            sizes = [
                self.positions(end, lambda statement: self.database.run(statement, deadline))
                for end in (tables[0].source, tables[0].target)
            ]
            if sizes[0] * sizes[1] >= _LARGEST_PAIR:
                return None
            parts: list[Any] = []
            for table in tables:
                counted = self.database.run(Statement(f"{self.match(table)} RETURN count(*)"), deadline)
                if deadline.hit or sum(map(len, parts)) + int(counted[0][0]) > _MOST_PAIRS:
                    return None
                pair = f"{order('a')} * {sizes[1]} + {order('b')}"
                columns = self.database.columns(Statement(f"{self.match(table)} RETURN {pair} AS p"), deadline)
                if columns is None:
                    return None
                parts.append(columns.column(0).to_numpy())
            found = np.sort(np.concatenate(parts))
            if (found[1:] == found[:-1]).any():
                return True
        return False

    def readers(self, kind: Kind) -> Callable[[Field], Reader]:
        """Return the readers of fields for rows of nodes or of edges."""
        return readers_of(kind, kind == "edges" and self.multi)

    def degrees(self, table: NodeTable, deadline: Deadline) -> Mapping[Any, Mapping[str, int]]:
        """Return a mapping from the position of each node that has edges to its degrees. The degrees are counted once."""
        found = self._degrees.get(table.place)
        if found is None:
            match, position = self.match(table), self.database.dialect.order.format("n")
            counts: list[dict[Any, int]] = []
            for edge in ("-[r]->()", "<-[r]-()"):
                statement = Statement(f"{match}{edge} RETURN {position} AS p, count(*) AS c")
                columns = self.database.columns(statement, deadline)
                if columns is not None:
                    counts.append(dict(zip(*(each.to_pylist() for each in columns.columns), strict=True)))
                else:
                    rows = self.database.run(statement, deadline)
                    counts.append({row[0]: int(row[1]) for row in rows})
            leaving, entering = counts
            found = {
                at: {"degree": out + into, "in_degree": into, "out_degree": out}
                for at in {**leaving, **entering}
                for out, into in ((leaving.get(at, 0), entering.get(at, 0)),)
            }
            if not deadline.hit:
                self._degrees[table.place] = found
        return found

    def fields_of(self, table: "NodeTable | EdgeTable", deadline: Deadline) -> tuple[str, ...] | None:
        """Return the fields of the items of a table if all items have the same fields; else None.

        A property that is null in some rows is missing in their items. The values that are not null are counted once.
        """
        at = (table.place, isinstance(table, NodeTable))
        if at not in self._fields:
            name, properties = self._shown(table)
            texts = [f"count({name}.{quoted(each)})" for each in properties]
            statement = Statement(f"{self.match(table)} RETURN {', '.join(['count(*)', *texts])}")
            rows = self.database.run(statement, deadline)
            if deadline.hit or not rows:
                return None
            size, *counts = map(int, rows[0])
            is_same = all(count in (0, size) for count in counts)
            self._fields[at] = self._names(table, [count > 0 for count in counts]) if is_same else None
        return self._fields[at]

    def names_of(self, table: "NodeTable | EdgeTable", present: Sequence[bool] | None = None) -> tuple[str, ...]:
        """Return the fields of an item in whose row these properties are not null (None: all properties)."""
        return self._names(table, [True] * len(self._shown(table)[1]) if present is None else present)

    def _shown(self, table: "NodeTable | EdgeTable") -> tuple[str, Sequence[str]]:
        if isinstance(table, NodeTable):
            return "n", tuple(shown_properties(table, self.address))
        return "r", tuple(table.properties)

    def _names(self, table: "NodeTable | EdgeTable", present: Sequence[bool]) -> tuple[str, ...]:
        """Return the fields of an item in whose row these properties are not null."""
        columns = self.columns(table, Wanted(), Deadline(0))
        values: list[Any] = [0, "" if _has_texts(table) else 0] if isinstance(table, NodeTable) else [0]
        values += [0 if each else None for each in present]
        if isinstance(table, EdgeTable):
            for end in (table.source, table.target):
                values += [0, "" if _has_texts(end) else 0]
        return tuple(item_of("nodes" if isinstance(table, NodeTable) else "edges", columns.row(values)))

    def positions(self, table: "NodeTable | EdgeTable", run: Callable[[Statement], list[Row]]) -> int:
        """Return a number larger than the position of every row of a table. It is determined once."""
        at = (table.place, isinstance(table, NodeTable))
        if at not in self._positions:
            position = self.database.dialect.order.format("n" if isinstance(table, NodeTable) else "r")
            found = run(Statement(f"{self.match(table)} RETURN max({position})"))
            self._positions[at] = int(found[0][0] or 0) + 1 if found else 1
        return self._positions[at]

    def is_full(self, table: "NodeTable | EdgeTable", known: Known, run: Callable[[Statement], list[Row]]) -> bool:
        """Return whether a field has a value in all rows of a table, and no value is NaN or infinite. It is tested once."""
        at = (table.place, isinstance(table, NodeTable), known.text)
        if at not in self._full:
            finite = f" OR NOT {known.text} - {known.text} = 0.0" if known.family == "float" else ""
            text = f"{self.match(table)} WHERE {known.text} IS NULL{finite} RETURN 1 LIMIT 1"
            self._full[at] = known.always or not run(Statement(text))
        return self._full[at]

    def of(self, kind: Kind) -> "Sequence[NodeTable | EdgeTable]":
        """Return the tables of the nodes or of the edges."""
        return self.tables.nodes if kind == "nodes" else self.tables.edges

    def view(self, table: "NodeTable | EdgeTable") -> "NodeView | EdgeView":
        """Return the meaning of fields in a table."""
        if isinstance(table, NodeTable):
            return NodeView(table, "n", self.address, self.is_composed)
        return EdgeView(table, self.address, self.multi, self.is_composed)

    def is_composed(self, table: "NodeTable | EdgeTable", name: str) -> bool:
        """Return whether all strings in a property are in composed form (NFC). It is tested once, when it is needed."""
        at = (table.place, isinstance(table, NodeTable), name)
        if at not in self._composed:
            element = "n" if isinstance(table, NodeTable) else "r"
            test = f"regexp_matches({element}.{quoted(name)}, $pattern)"
            deadline = Deadline(_SECONDS)
            statement = Statement(f"{self.match(table)} WHERE {test} RETURN 1 LIMIT 1", {"pattern": changeable()})
            found = self.database.run(statement, deadline)
            if deadline.hit:
                return False
            self._composed[at] = not found
        return self._composed[at]

    def columns(
        self, table: "NodeTable | EdgeTable", wanted: Wanted, deadline: Deadline
    ) -> "NodeColumns | EdgeColumns":
        """Return the columns of a statement on a table."""
        if isinstance(table, NodeTable):
            return NodeColumns(table, self.address, self.database.dialect, wanted)
        return EdgeColumns(
            table, self.address, self.database.dialect, wanted, self.multi, lambda end: self.degrees(end, deadline)
        )

    def match(self, table: "NodeTable | EdgeTable") -> str:
        """Return the MATCH part of a statement on a table."""
        return self.database.dialect.match(table)


@frozen
class TablePlan:
    """The search in one table. ``limit`` is None if the statement returns all rows that satisfy its condition.

    An element of ``order`` is an expression to sort by, and whether the order is descending.
    """

    table: "NodeTable | EdgeTable"
    pushed: Pushed
    parameters: Parameters
    order: tuple[tuple[str, bool], ...] = ()
    limit: int | None = None


@frozen
class SearchPlan:
    """The search in all tables whose rows may satisfy the condition."""

    kind: Kind
    tables: tuple[TablePlan, ...]
    wanted: Wanted = field(factory=Wanted)

    @property
    def rest(self) -> tuple[Condition, ...]:
        """The conditions that this process tests, without repetitions."""
        found: list[Condition] = []
        for each in self.tables:  # a condition may hold values that have no hash
            if each.pushed.rest is not None and each.pushed.rest not in found:
                found.append(each.pushed.rest)
        return tuple(found)


def plan_search(
    source: Source, kind: Kind, where: Condition | None, order: Sequence[Order], most: int | None
) -> SearchPlan:
    """Return the plan of a search. ``most`` is the number of rows that are needed (None: all)."""
    dialect = source.database.dialect
    plans: list[TablePlan] = []
    fields = [node for each in order for node in walk(each.value) if isinstance(node, Field)]
    for table in source.of(kind):
        parameters = Parameters()
        view = source.view(table)
        pushed = split(where, view, parameters, dialect)
        if pushed.is_empty:
            continue
        texts = _order_texts(order, view, dialect.text_order)
        complete = pushed.rest is None and texts is not None and most is not None
        plans.append(
            TablePlan(table, pushed, parameters, (*texts, *own_order(source, table)), most)
            if complete and texts is not None
            else TablePlan(table, pushed, parameters)
        )
        if pushed.rest is not None:
            fields += [node for node in walk(pushed.rest) if isinstance(node, Field)]
    return SearchPlan(kind, tuple(plans), Wanted.of(fields))


def _order_texts(
    order: Sequence[Order], view: "NodeView | EdgeView", text_order: bool
) -> tuple[tuple[str, bool], ...] | None:
    """Return the expressions to sort by; None if the engine would sort in another order."""
    texts: list[tuple[str, bool]] = []
    for each in order:
        meaning = view.meaning(each.value.path) if isinstance(each.value, Field) else None
        if isinstance(meaning, Fixed):
            continue
        if (
            meaning is None
            or meaning.family == "other"
            or (meaning.family == "text" and not (text_order and meaning.composed()))
        ):
            return None
        if meaning.family == "float":
            # NaN counts as null, and the two zeros are equal: both must leave ties to the graph's own order.
            at = meaning.text
            texts.append((f"CASE WHEN {at} = {at} THEN 0 ELSE 1 END", False))
            texts.append((f"CASE WHEN {at} = {at} THEN {at} + 0.0 ELSE 0.0 END", each.descending))
        else:
            texts.append((f"CASE WHEN {meaning.text} IS NULL THEN 1 ELSE 0 END", False))
            texts.append((meaning.text, each.descending))
    return tuple(texts)


def own_order(source: Source, table: "NodeTable | EdgeTable") -> tuple[tuple[str, bool], ...]:
    """Return the expressions of the graph's own order inside a table."""
    order = source.database.dialect.order.format
    if isinstance(table, NodeTable):
        return ((order("n"), False),)
    names = ("a", "b", "r") if source.multi else ("a", "r")
    return tuple((order(name), False) for name in names)


def statement_of(source: Source, plan: TablePlan, wanted: Wanted) -> Statement:
    """Return the statement that fetches the rows of a table."""
    columns = source.columns(plan.table, wanted, Deadline(0)).texts()
    # Some engines sort only by returned columns with a name; the rows ignore these columns.
    columns += [f"{text} AS o{at}" for at, (text, _) in enumerate(plan.order)]
    text = f"{head_of(source, plan, columns)} RETURN {', '.join(columns)}"
    if plan.order:
        by = (f"o{at} DESC" if is_descending else f"o{at}" for at, (_, is_descending) in enumerate(plan.order))
        text += f" ORDER BY {', '.join(by)}"
    if plan.limit is not None:
        text += f" LIMIT {plan.limit}"
    return Statement(text, plan.parameters.values)


def near_the_top(source: Source, plan: TablePlan, order: Sequence[Order], deadline: Deadline) -> TablePlan:
    """Return the plan with a bound on the first value of the order, if enough rows have a value.

    The bound is the last of the first ``limit`` values, which an engine sorts alone in a fraction of the time that it takes to
    sort rows with all their columns.
    """
    if not order or not plan.order or not plan.limit or plan.limit > _MOST_AT_TOP:
        return plan
    first = order[0]
    meaning = source.view(plan.table).meaning(first.value.path) if isinstance(first.value, Field) else None
    if not isinstance(meaning, Known) or meaning.family not in ("integer", "float") or reads_degree(meaning.text):
        return plan
    there = attrs.evolve(plan, pushed=attrs.evolve(plan.pushed, texts=(*plan.pushed.texts, has_value(meaning))))
    text = f"{head_of(source, there)} RETURN {meaning.text} AS v ORDER BY v{' DESC' if first.descending else ''} LIMIT {plan.limit}"
    values = source.database.run(Statement(text, plan.parameters.values), deadline)
    if len(values) < plan.limit or reads_degree(" ".join(plan.pushed.texts)):
        return plan
    parameters = Parameters(dict(plan.parameters.values))
    bound = parameters.add(values[-1][0])
    test = f"{meaning.text} {'>=' if first.descending else '<='} {bound}"
    texts = (*there.pushed.texts, test)
    return attrs.evolve(plan, pushed=attrs.evolve(plan.pushed, texts=texts), parameters=parameters)


def count_rows(source: Source, plan: TablePlan, deadline: Deadline) -> int:
    """Return the number of rows of a table that satisfy the translated part of the condition; 0 if the deadline passes."""
    text = f"{head_of(source, plan)} RETURN count(*)"
    found = source.database.run(Statement(text, plan.parameters.values), deadline)
    return int(found[0][0]) if found else 0


def head_of(source: Source, plan: TablePlan, columns: Sequence[str] = ()) -> str:
    """Return the statement up to RETURN. Degrees are counted only if a condition or a column needs them."""
    texts, is_node = plan.pushed.texts, isinstance(plan.table, NodeTable)
    early = [text for text in texts if not (is_node and reads_degree(text))]
    late = [text for text in texts if is_node and reads_degree(text)]
    head = source.match(plan.table) + (f" WHERE {' AND '.join(early)}" if early else "")
    if is_node and (late or any(map(reads_degree, columns))):
        head += f" {WITH_DEGREES}"
    return head + (f" WHERE {' AND '.join(late)}" if late else "")


def used_of(plan: SearchPlan, crossed: int) -> str:
    """Return the description of a search: how many rows were fetched, and which conditions this process tested."""
    rest = f"; tested here: {', '.join(map(_written, plan.rest))}" if plan.rest else ""
    return f"Cypher, {crossed:,} rows fetched{rest}"


def explain(source: Source, kind: Kind, where: Condition | None) -> Plan:
    """Return the plan of a search: its statements, the condition that this process tests, and the number of rows to be fetched.

    The rows are counted by the database, within the time limit of a command. If this process tests nothing, the number is the
    size of the result; otherwise it is an upper bound of the size.
    """
    deadline = Deadline.of(Caps())
    if where is not None:
        compiled(where, source.readers(kind), arity=ARITY[kind], plain=plain)
    plan = plan_search(source, kind, where, (), None)
    notes: list[str] = []
    total = 0
    for each in plan.tables:
        rows = count_rows(source, each, deadline)
        total += rows
        statement = Statement(head_of(source, each), each.parameters.values)
        notes.append(f"{shown_statement(statement)}: {rows:,} rows are fetched")
    if not plan.tables:
        notes.append(f"no table has such {kind}: no statement is run")
    if deadline.hit:
        notes.append("the rows were not counted within the time limit")
    if plan.rest:
        notes.append("tested here: " + ", ".join(map(_written, plan.rest)))
        notes.append(f"at most {total:,} rows")
    return Plan("Cypher" + (", then a test of the fetched rows" if plan.rest else ""), total, tuple(notes))


def _written(condition: Condition) -> str:
    from ...lang.printer.gasl_printer import format_condition

    try:
        return format_condition(condition)
    except ValueError:  # a variable may hold a value that has no notation, such as an infinite number
        return "a comparison with the value of a variable"


def shown_statement(statement: Statement) -> str:
    """Return a statement with the values of its parameters, for EXPLAIN."""
    values = "".join(f"; ${name} = {_short(value)}" for name, value in statement.parameters.items())
    return f"{statement.text}{values}"


def _has_texts(table: NodeTable) -> bool:
    return bool(table.prefix) or table.key.family == "text"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def count_left_out(
    source: Source, kind: Kind, where: Condition, deadline: Deadline, shown: Callable[[Any], Any] | None = None
) -> None:
    """If a caller wants the counts, count the rows that ``where`` leaves out because of the types of their values.

    ``shown`` returns a comparison as the counts name it.

    The database counts them if it can answer the whole condition; otherwise the rows that have such a value are fetched.
    """
    if not is_counting(where):
        return
    dialect = source.database.dialect
    for leaf, at, is_other in typed_leaves(where):
        total = 0
        examples: list[str] = []
        for table in source.of(kind):
            view = source.view(table)
            meaning = view.meaning(at.path)
            if isinstance(meaning, Fixed) and (meaning.value is None or not is_other(meaning.value)):
                continue
            if isinstance(meaning, Known) and meaning.kind in _SAMPLES and not is_other(_SAMPLES[meaning.kind]):
                continue
            parameters = Parameters()
            known: list[str | bool | None] = [None]
            if dialect.is_typed:
                known = [translated(where, wanted, view, parameters, dialect) for wanted in (True, False)]
            present = has_value(meaning) if isinstance(meaning, Known) and meaning.kind != LABELS else ""
            if None not in known and (present or isinstance(meaning, Fixed)):
                if True in known:
                    continue
                tests = [present, *(f"NOT coalesce({text}, false)" for text in known if isinstance(text, str))]
                pushed = Pushed(tuple(filter(None, tests)))
                total += (count := count_rows(source, TablePlan(table, pushed, parameters), deadline))
                if count and len(examples) < MOST_EXAMPLES:
                    first = TablePlan(table, pushed, parameters, own_order(source, table), MOST_EXAMPLES)
                    examples += _examples(source, kind, _fetched(source, [at, *_NAMES[kind]], first, deadline), at)
                continue
            plan = TablePlan(table, Pushed((present,) if present else ()), Parameters(), own_order(source, table))
            found = _fetched_left_out(source, kind, where, plan, at, is_other, deadline)
            total += len(found)
            examples += _examples(source, kind, found[:MOST_EXAMPLES], at)
        if total:
            count_mismatch(leaf if shown is None else shown(leaf), total, examples)


_NAMES: Mapping[Kind, tuple[Field, ...]] = {
    "nodes": (Field(("id",)),),
    "edges": (Field(("source",)), Field(("target",))),
}
"""The fields whose values name a node or an edge."""


def _examples(source: Source, kind: Kind, rows: Iterable[tuple[Any, ...]], at: Field) -> Iterator[str]:
    """Yield a description of each row with the value of a field."""
    readers = source.readers(kind)
    read, names = readers(at).read, [readers(field).read for field in _NAMES[kind]]
    for row in rows:
        yield example_of(" → ".join(id_text(plain(name(*row))) for name in names), plain(read(*row)))


def _fetched(source: Source, fields: Sequence[Field], plan: TablePlan, deadline: Deadline) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a plan with these fields."""
    wanted = Wanted.of(fields)
    columns = source.columns(plan.table, wanted, deadline)
    return map(columns.row, source.database.run(statement_of(source, plan, wanted), deadline))


def _fetched_left_out(
    source: Source, kind: Kind, where: Condition, plan: TablePlan, at: Field, is_other: Any, deadline: Deadline
) -> list[tuple[Any, ...]]:
    fields = [*(node for node in walk(where) if isinstance(node, Field)), *_NAMES[kind]]
    readers = source.readers(kind)
    read, whole = readers(at).read, compiled(where, readers, arity=ARITY[kind], plain=plain)
    with uncounted():
        rows = _fetched(source, fields, plan, deadline)
        return [row for row in rows if is_other(plain(read(*row))) and whole(*row) is None]


_SAMPLES = {"text": "", "integer": 0, "float": 0.5, "boolean": True, "list": [], "object": {}}
"""Maps each JSON kind to an example value. All values of a kind differ in type from the same constants."""
