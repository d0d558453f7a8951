"""The summary of a database (``lang.catalogue.schema``), from counts that the database makes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
from attrs import define, evolve, field
from blake3 import blake3

from ...lang.catalogue.schema import Attribute, Schema
from ..graph import AdapterError, NodeId
from ..graph_networkx.graph_summary import LABELS, MOST_DISTINCT, MOST_VALUES, RELATIONS, Tally, classifier
from ..graph_networkx.rows import Deadline, item_value, json_value
from .address import Address
from .database import Database, EdgeTable, NodeTable, Property, Row, Statement, Tables, quoted
from .view import shown_properties

_SECONDS = 600.0
"""Time limit of a summary."""
_IDS = 6
_DEEPEST = 3


class _Counts:
    """Runs the statements of a summary. Raises ``AdapterError`` if they take too long."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.deadline = Deadline(_SECONDS)

    def rows(self, text: str, **parameters: Any) -> list[Row]:
        found = self.database.run(Statement(text, parameters), self.deadline)
        if self.deadline.hit:
            raise AdapterError(
                f"{self.database.name}: the summary of the graph takes longer than {_SECONDS:.0f} s",
                hint="use a smaller database, or one on a faster machine",
            )
        return found


@define
class _Column:
    """The values of an attribute in all tables. If ``is_full``, there are too many values to count each of them."""

    tally: Tally = field(factory=Tally)
    is_full: bool = False
    frequent: list[tuple[Any, int]] = field(factory=list)

    def attribute(self, name: str) -> Attribute:
        """Return the summary of the attribute."""
        tally = self.tally
        if not self.is_full:
            return tally.attribute(name)
        top = Counter[Any]()
        for value, times in (*self.frequent, *tally.texts.items(), *tally.numbers.items(), *tally.booleans.items()):
            top[value] += times
        frequent = sorted(top.items(), key=lambda pair: (-pair[1], type(pair[0]) is not str, str(pair[0])))
        lowest, highest = (None if tally.types["text"] else tally.range) or (None, None)
        types = dict(tally.types.most_common())
        return Attribute(name, tally.count, types, tuple(frequent[:MOST_VALUES]), None, lowest, highest)


def has_parallel_edges(database: Database) -> bool:
    """Return whether any two nodes are connected by several edges in the same direction."""
    text = "MATCH (a)-[r]->(b) WITH a, b, count(*) AS c WHERE c > 1 RETURN count(*)"
    return bool(_Counts(database).rows(text)[0][0])


def check_ids(database: Database, tables: Tables) -> None:
    """Raise ``AdapterError`` if two tables have a node with the same id."""
    counts = _Counts(database)
    for at, first in enumerate(tables.nodes):
        for second in tables.nodes[at + 1 :]:
            if first.prefix or first.key.family != second.key.family:
                continue
            keys = [f"{name}.{quoted(table.key.name)}" for name, table in (("a", first), ("b", second))]
            text = f"MATCH (a:{quoted(first.label)}), (b:{quoted(second.label)}) WHERE {keys[0]} = {keys[1]}"
            if found := counts.rows(f"{text} RETURN {keys[0]} LIMIT 1"):
                raise AdapterError(
                    f"{database.name}: {first.label} and {second.label} both have a node {found[0][0]!r}",
                    hint=f"add ?ids=label to the URL: ids then begin with the label, as in {first.label}:{found[0][0]}",
                )


def summarise(database: Database, tables: Tables, address: Address, multi: bool) -> Schema:
    """Return the summary of the database. ``hash`` is a hash of the summary: it changes if a count or a frequent value changes."""
    counts = _Counts(database)
    if not database.dialect.is_typed:
        return _summarise_open(counts, tables, address, multi)
    sizes: dict[Any, int] = {}
    nodes, edges = dict[str, _Column](), dict[str, _Column]()
    every: list[NodeTable | EdgeTable] = [*tables.nodes, *tables.edges]
    for table in every:
        sizes[table.place, isinstance(table, NodeTable)] = _count_table(
            counts, table, address, nodes if isinstance(table, NodeTable) else edges
        )
    labels = _named((table.label, sizes[table.place, True]) for table in tables.nodes)
    relations = _named((table.relation, sizes[table.place, False]) for table in tables.edges)
    node_attributes, label, labels = _with_type(nodes, address.label, labels, LABELS)
    edge_attributes, relation, relations = _with_type(edges, address.relation, relations, RELATIONS)
    node_count = sum(sizes[table.place, True] for table in tables.nodes)
    edge_count = sum(sizes[table.place, False] for table in tables.edges)
    content = [
        [table.label for table in tables.nodes],
        [[table.relation, table.source.label, table.target.label] for table in tables.edges],
        sorted((place, is_node, size) for (place, is_node), size in sizes.items()),
        [_as_list(each) for each in (*node_attributes.values(), *edge_attributes.values())],
        multi,
    ]
    return Schema(
        directed=True,
        multi=multi,
        nodes=node_count,
        edges=edge_count,
        node_attributes=node_attributes,
        edge_attributes=edge_attributes,
        label_attribute=label,
        labels=labels,
        relation_attribute=relation,
        relations=relations,
        name=database.name,
        hash=blake3(orjson.dumps(json_value(content))).hexdigest(),
        ids=_sample(counts, tables, sizes, node_count),
        id_types=_named(
            ("integer" if table.key.family == "integer" and not table.prefix else "text", sizes[table.place, True])
            for table in tables.nodes
        ),
    )


def _as_list(attribute: Attribute) -> list[Any]:
    types = sorted(attribute.types.items())
    return [
        attribute.name,
        attribute.count,
        types,
        attribute.values,
        attribute.distinct,
        attribute.lowest,
        attribute.highest,
    ]


def _named(pairs: Iterator[tuple[str, int]]) -> dict[str, int]:
    """Return the names with their counts, most frequent first. Names without elements are omitted."""
    counter = Counter[str]()
    for name, times in pairs:
        counter[name] += times
    return dict(
        sorted(((name, times) for name, times in counter.items() if times), key=lambda each: (-each[1], each[0]))
    )


def _with_type(
    columns: Mapping[str, _Column], name: str, types: dict[str, int], classifiers: Sequence[str]
) -> tuple[dict[str, Attribute], str | None, dict[str, int]]:
    """Return the attributes, the attribute that contains the type of an element, and the types with their counts."""
    attributes: dict[str, Attribute] = {}
    if name and types:
        values = tuple(types.items())
        attributes[name] = Attribute(
            name, sum(types.values()), {"text": sum(types.values())}, values[:MOST_VALUES], len(types)
        )
    attributes |= {each: column.attribute(each) for each, column in columns.items() if column.tally.count}
    if not name or len(types) < 2:
        tallies = {each: column.tally for each, column in columns.items() if not column.is_full}
        found, values_of = classifier(tallies, [each for each in classifiers if each != "key"])
        if found is not None:
            return attributes, found, values_of
    return attributes, name if name and types else None, types if name else {}


def _count_table(counts: _Counts, table: NodeTable | EdgeTable, address: Address, columns: dict[str, _Column]) -> int:
    dialect = counts.database.dialect
    match = dialect.match(table)
    size = int(counts.rows(f"{match} RETURN count(*)")[0][0])
    if isinstance(table, NodeTable):
        name, properties, own = (
            "n",
            shown_properties(table, address),
            {"id", "degree", "in_degree", "out_degree", address.label},
        )
    else:
        name, properties, own = "r", table.properties, {"source", "target", address.relation}
    for each in properties.values():
        shown = f"attr.{each.name}" if each.name in own else each.name
        _count_property(counts, match, f"{name}.{quoted(each.name)}", each, shown, columns, 1)
    return size


def _summarise_open(counts: _Counts, tables: Tables, address: Address, multi: bool) -> Schema:
    """Return the summary of a database whose properties have no fixed types: each value is fetched with its count."""
    (table,) = tables.nodes
    label_rows = counts.rows("MATCH (n) RETURN labels(n), count(*)")
    type_rows = counts.rows("MATCH ()-[r]->() RETURN type(r), count(*)")
    nodes, edges = (int(sum(row[1] for row in rows)) for rows in (label_rows, type_rows))
    columns: dict[str, dict[str, _Column]] = {"n": {}, "r": {}}
    for name, match, own in (
        ("n", "MATCH (n)", {"id", "degree", "in_degree", "out_degree", address.label}),
        ("r", "MATCH ()-[r]->()", {"source", "target", address.relation} | ({"key"} if multi else set())),
    ):
        keys = sorted(str(row[0]) for row in counts.rows(f"{match} UNWIND keys({name}) AS k RETURN DISTINCT k"))
        for each in keys:
            if name == "n" and each == "id" == address.id:
                continue
            text = f"{name}.{quoted(each)}"
            found = counts.rows(f"{match} WHERE {text} IS NOT NULL RETURN {text}, count(*)")
            column = columns[name].setdefault(f"attr.{each}" if each in own else each, _Column())
            column.tally.add_counted([(item_value(value), int(times)) for value, times in found])
            column.is_full = len(column.tally.texts) + len(column.tally.numbers) >= MOST_DISTINCT
            if column.is_full:
                top = Counter[Any](column.tally.texts)
                top.update(column.tally.numbers)
                column.frequent = top.most_common(MOST_VALUES)
                column.tally.texts.clear()
                column.tally.numbers.clear()
    labels = _named((kinds[0], int(times)) for kinds, times in label_rows if len(kinds) == 1)
    relations = _named((str(kind), int(times)) for kind, times in type_rows)
    node_attributes, label, labels = _with_type(columns["n"], address.label, labels, LABELS)
    if address.label and (several := sum(int(times) for kinds, times in label_rows if len(kinds) > 1)):
        known = node_attributes.get(address.label, Attribute(address.label, 0, {}))
        types = {**known.types, "list": several}
        node_attributes[address.label] = evolve(known, count=known.count + several, types=types)
    edge_attributes, relation, relations = _with_type(columns["r"], address.relation, relations, RELATIONS)
    key = table.key_text("n")
    ids = [table.id_of(row[0]) for row in counts.rows(f"MATCH (n) RETURN {key}")] if address.id else []
    kinds = Counter("text" if isinstance(each, str) else "integer" for each in ids) if ids else Counter(text=nodes)
    order = counts.database.dialect.order.format("n")
    sample = counts.rows(f"MATCH (n) RETURN {key}, {order} AS o ORDER BY o LIMIT {_IDS}")
    content = [
        [[sorted(map(str, each)), int(times)] for each, times in sorted(label_rows, key=str)], relations, nodes, edges, multi,
        [_as_list(each) for each in (*node_attributes.values(), *edge_attributes.values())],
    ]  # fmt: skip
    return Schema(
        directed=True,
        multi=multi,
        nodes=nodes,
        edges=edges,
        node_attributes=node_attributes,
        edge_attributes=edge_attributes,
        label_attribute=label,
        labels=labels,
        relation_attribute=relation,
        relations=relations,
        name=counts.database.name,
        hash=blake3(orjson.dumps(json_value(content))).hexdigest(),
        ids=tuple(table.id_of(row[0]) for row in sample),
        id_types=dict(kinds.most_common()) if nodes else {},
    )


def _count_property(
    counts: _Counts, match: str, text: str, at: Property, shown: str, columns: dict[str, _Column], depth: int
) -> None:
    column = columns.setdefault(shown, _Column())
    present, distinct = counts.rows(f"{match} RETURN count({text}), count(DISTINCT {text})")[0]
    if not present:
        return
    if at.kind in ("object", "list"):
        column.tally.count += present
        column.tally.types[at.kind] += present
        if at.kind == "object" and depth < _DEEPEST:
            for part in at.parts:
                inner = f"{text}.{quoted(part.name)}"
                _count_property(counts, match, inner, part, f"{shown}.{part.name}", columns, depth + 1)
        return
    where = f"{match} WHERE {text} IS NOT NULL"
    if distinct < MOST_DISTINCT:
        found = counts.rows(f"{where} RETURN {text}, count(*)")
        column.tally.add_counted([(item_value(value), int(times)) for value, times in found])
        column.is_full = column.is_full or len(column.tally.texts) + len(column.tally.numbers) >= MOST_DISTINCT
        return
    column.is_full = True
    column.tally.count += present
    column.tally.types[at.kind] += present
    found = counts.rows(f"{where} RETURN {text} AS v, count(*) AS c ORDER BY c DESC, v LIMIT {MOST_VALUES}")
    column.frequent += [(item_value(value), int(times)) for value, times in found]
    if at.kind in ("integer", "float"):
        low, high = map(item_value, counts.rows(f"{where} RETURN min({text}), max({text})")[0])
        known = column.tally.range
        if low is not None and high is not None:
            column.tally.range = (low, high) if known is None else (min(low, known[0]), max(high, known[1]))


def _sample(counts: _Counts, tables: Tables, sizes: Mapping[Any, int], total: int) -> tuple[NodeId, ...]:
    """Return the ids of a few nodes of each part of the graph."""
    found: list[NodeId] = []
    for table in tables.nodes:
        share = -(-_IDS * sizes[table.place, True] // total) if total else 0
        if share:
            key = f"n.{quoted(table.key.name)}"
            order = counts.database.dialect.order.format("n")
            rows = counts.rows(f"{counts.database.dialect.match(table)} RETURN {key} ORDER BY {order} LIMIT {share}")
            found += [table.id_of(row[0]) for row in rows]
    return tuple(found[:_IDS])
