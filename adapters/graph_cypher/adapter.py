"""The ``GraphAdapter`` for databases that answer Cypher.

``nodes`` and ``edges`` run in the database (``search``). The other methods run on a copy. WALK, SUBGRAPH and CONNECT copy only
the part of the graph that they reach. All others copy the whole graph, which must not be larger than the URL allows (``pull``).
The copy is a NetworkX graph with the same order of nodes and edges, so each method returns what the NetworkX adapter returns.
"""

from collections.abc import Mapping, Sequence
from sys import maxsize
from threading import RLock
from typing import Any, Literal

from ...lang.catalogue.measures import MEASURES
from ...lang.evaluate.conditions import Reader
from ...lang.trees.conditions import Comparison, Condition, Constant, Field, NullTest, Or, Value
from ...lang.trees.gasl import Order, Pattern
from ..graph import (
    DEFAULT_CAPS,
    MOST_TEXTS,
    AdapterError,
    Caps,
    Direction,
    GraphResult,
    Item,
    Links,
    NodeId,
    Plan,
    Schema,
    tree_of,
)
from ..graph_networkx.adapter import AllIds, NetworkXAdapter
from ..graph_networkx.rows import DEGREES, Deadline, item_value, plain
from ..graph_networkx.tables import computed
from .address import Address
from .database import Database, NodeTable, Statement, Tables
from .find_rows import find
from .path_part import can_search, explain_paths, find_paths
from .pull import needs_all, pull_all, pull_around, pull_between, rows_by_id
from .push_down import has_value
from .search import Source, explain
from .summary import check_ids, summarise
from .table_rows import Wanted, item_of
from .view import LABELS, Fixed, Known

_SECONDS = 600.0
"""Time limit, in seconds, of a statement that is run outside a command."""
_NAMES = ("name", "label", "title")
_MOST_PATHS = 1_000_000


class CypherAdapter:
    """A graph database as a graph engine. See ``GraphAdapter`` for the methods.

    The tables, the summary and a copy of the whole graph are kept until ``invalidate`` is called. With ``strict``, no copy is kept:
    each command that needs one copies the graph again.
    """

    def __init__(self, database: Database, address: Address, strict: bool = False) -> None:
        self.database = database
        self.address = address
        self.strict = strict
        self.name = address.name
        self.told: tuple[str, ...] = ()
        self._lock = RLock()
        self._source: Source | None = None
        self._schema: Schema | None = None
        self._copy: NetworkXAdapter | None = None

    def __repr__(self) -> str:
        return f"<CypherAdapter {self.name}>"

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    @property
    def source(self) -> Source:
        """The database with its tables, read once. Raises ``AdapterError`` if two nodes have the same id."""
        with self._lock:
            if self._source is None:
                tables = self.database.tables(Deadline(_SECONDS))
                tables = _prefixed(tables) if self.address.prefixed else tables
                check_ids(self.database, tables)
                self._source = Source(self.database, tables, self.address)
            return self._source

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of nodes and edges, counted by the database."""
        source, dialect = self.source, self.database.dialect

        def count(kind: Literal["nodes", "edges"]) -> int:
            texts = [f"{dialect.match(table)} RETURN count(*)" for table in source.of(kind)]
            return sum(int(self.database.run(Statement(text), Deadline(_SECONDS))[0][0]) for text in texts)

        return count("nodes"), count("edges")

    @property
    def schema(self) -> Schema:
        """The summary of the database, computed once."""
        with self._lock:
            if self._schema is None:
                import attrs

                source = self.source
                made = summarise(self.database, source.tables, self.address, source.multi)
                self._schema = attrs.evolve(made, all_ids=AllIds(self))
            return self._schema

    def find_nodes(self, conditions: Condition | None = None, limit: int | None = None) -> list[Item]:
        """Return the nodes for which the condition is true, in the graph's own order."""
        return _all_items(self.nodes(conditions, limit=limit, caps=Caps(max_results=maxsize - 1)))

    def find_edges(self, conditions: Condition | None = None, limit: int | None = None) -> list[Item]:
        """Return the edges for which the condition is true, in the graph's own order."""
        return _all_items(self.edges(conditions, limit=limit, caps=Caps(max_results=maxsize - 1)))

    def find_paths(self, starts: Sequence[NodeId], ends: Sequence[NodeId], max_length: int) -> list[list[NodeId]]:
        """Return the simple paths from a start to an end as lists of ids; see ``NetworkXAdapter.find_paths``."""
        return self._whole("a search for paths", DEFAULT_CAPS).find_paths(starts, ends, max_length)

    def has_node(self, node_id: object) -> bool:
        """Return whether a node has this id."""
        if isinstance(node_id, bool) or not isinstance(node_id, str | int):
            return False
        return bool(rows_by_id(self.source, [node_id], Wanted(), Deadline(_SECONDS)))

    def get_node(self, name_or_id: NodeId) -> Item | None:
        """Return the node with this id, else the node with this name, label or title; None unless exactly one node matches."""
        if isinstance(name_or_id, str | int) and not isinstance(name_or_id, bool):
            for row in rows_by_id(self.source, [name_or_id], Wanted(), Deadline(_SECONDS)):
                return item_of("nodes", row)
        if not isinstance(name_or_id, str):
            return None
        named = Or(tuple(Comparison(Field((name,)), "=", Constant(name_or_id)) for name in _NAMES))
        found = self.find_nodes(named, 2)
        return found[0] if len(found) == 1 else None

    def texts(self, kind: Literal["nodes", "edges"], name: str, most: int = MOST_TEXTS) -> list[str]:
        """Return the distinct strings of a field; see ``GraphAdapter.texts``. Strings are in the order of the tables."""
        source, path, found = self.source, tuple(name.split(".")), dict[str, None]()
        deadline = Deadline(_SECONDS)
        if most <= 0:
            return []
        for table in source.of(kind):
            meaning = source.view(table).meaning(path)
            match = source.match(table)
            if isinstance(meaning, Fixed):
                if isinstance(meaning.value, str) and self.database.run(
                    Statement(f"{match} RETURN 1 LIMIT 1"), deadline
                ):
                    found.setdefault(meaning.value)
            elif isinstance(meaning, Known):
                if meaning.kind not in ("text", "", LABELS):
                    continue
                if meaning.kind != "text":
                    self._other_texts(kind, table, source.readers(kind)(Field(path)), found)
                    continue
                at = self.database.dialect.order.format("n" if isinstance(table, NodeTable) else "r")
                text = f"{match} WHERE {has_value(meaning)} RETURN {meaning.text} AS v, min({at}) AS p ORDER BY p LIMIT {most}"
                for value, _ in self.database.run(Statement(text), deadline):
                    found.setdefault(str(plain(value)))
            else:
                read = source.readers(kind)(Field(path))
                self._other_texts(kind, table, read, found)
        return list(found)[:most]

    def _other_texts(self, kind: Literal["nodes", "edges"], table: Any, read: Reader, found: dict[str, None]) -> None:
        from .push_down import Parameters, Pushed
        from .search import TablePlan, statement_of

        wanted = Wanted(ends=kind == "edges")
        columns = self.source.columns(table, wanted, Deadline(_SECONDS))
        statement = statement_of(self.source, TablePlan(table, Pushed(), Parameters()), wanted)
        rows = sorted(map(columns.row, self.database.run(statement, Deadline(_SECONDS))), key=lambda row: row[0])
        for row in rows:
            value = plain(read.read(*row))
            if isinstance(value, str):
                found.setdefault(value)

    def node_values(self, ids: Sequence[Any], path: tuple[str, ...]) -> list[Any] | None:
        """Return the value of a field or a degree for each node in ``ids``; see ``GraphAdapter.node_values``."""
        at = Field(path)
        usable = [each for each in ids if isinstance(each, str | int) and not isinstance(each, bool)]
        rows = {row[1]: row for row in rows_by_id(self.source, usable, Wanted.of([at]), Deadline(_SECONDS))}
        read = self.source.readers("nodes")(at).read
        found = [
            item_value(read(*rows[each])) if isinstance(each, str | int) and not isinstance(each, bool) and each in rows
            else None
            for each in ids
        ]  # fmt: skip
        if path in (("id",), *((name,) for name in DEGREES)) or any(value is not None for value in found):
            return found
        known = self.nodes(NullTest(at, negated=True), limit=1).items
        return found if known else None

    def nodes(
        self,
        where: Condition | None,
        *,
        order: Sequence[Order] = (),
        limit: int | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Find nodes; see ``GraphAdapter.nodes``. Raises ``ConditionError``, ``AdapterError``."""
        return find(self.source, "nodes", tree_of(where), order, limit, caps)

    def edges(
        self,
        where: Condition | None,
        *,
        order: Sequence[Order] = (),
        limit: int | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Find edges; see ``GraphAdapter.edges``. Raises ``ConditionError``, ``AdapterError``."""
        return find(self.source, "edges", tree_of(where), order, limit, caps)

    def paths(
        self,
        starts: Sequence[NodeId] | Condition | None,
        ends: Sequence[NodeId] | Condition | None,
        *,
        via: Condition | None = None,
        where: Condition | None = None,
        shortest: bool = False,
        limit: int | None = None,
        max_length: int | None = None,
        count: int | None = None,
        cost: Value | None = None,
        direction: Direction = "out",
        capped: bool = False,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Find simple paths; see ``GraphAdapter.paths``. The part of the graph between the starts and the ends is copied first."""
        via, where = tree_of(via), tree_of(where)
        starts, ends = (given if _are_ids(given) else tree_of(given) for given in (starts, ends))
        if cost is None and self._copy is None and can_search(starts, ends, via, where):
            return find_paths(
                self.source, starts, ends, via, where, shortest=shortest, limit=limit, max_length=max_length, count=count,
                direction=direction, capped=capped, caps=caps,
            )  # fmt: skip
        return self._whole("FIND paths", caps).paths(
            starts, ends, via=via, where=where, shortest=shortest, limit=limit, max_length=max_length, count=count,
            cost=cost, direction=direction, capped=capped, caps=caps,
        )  # fmt: skip

    def cycles(
        self,
        *,
        via: Condition | None = None,
        where: Condition | None = None,
        limit: int | None = None,
        max_length: int | None = None,
        capped: bool = False,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Find simple cycles in a copy of the graph; see ``GraphAdapter.cycles``."""
        whole = self._whole("FIND cycles", caps)
        return whole.cycles(via=via, where=where, limit=limit, max_length=max_length, capped=capped, caps=caps)

    def patterns(
        self,
        patterns: Sequence[Pattern],
        where: Condition | None = None,
        *,
        order: Sequence[Order] = (),
        limit: int | None = None,
        per: Sequence[Value] = (),
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Find the rows that match patterns in a copy of the graph; see ``GraphAdapter.patterns``."""
        whole = self._whole("FIND patterns", caps)
        return whole.patterns(patterns, where, order=order, limit=limit, per=per, caps=caps)

    def walk(
        self,
        starts: Sequence[NodeId],
        *,
        via: Condition | None = None,
        depth: int = 1,
        direction: Direction = "out",
        trace: bool = False,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Return the nodes reached from ``starts``. The edges that are followed are copied first. See ``GraphAdapter.walk``."""
        via = tree_of(via)
        if needs_all([via]):
            part = self._whole("WALK with a degree in VIA", caps)
        else:
            part = NetworkXAdapter(pull_around(self.source, starts, depth, direction, via, "WALK", caps), self.name)
        return part.walk(starts, via=via, depth=depth, direction=direction, trace=trace, caps=caps)

    def subgraph(self, centers: Sequence[NodeId], radius: int, *, caps: Caps = DEFAULT_CAPS) -> GraphResult:
        """Return the nodes and edges within ``radius`` of the centers; see ``GraphAdapter.subgraph``."""
        part = pull_around(self.source, centers, radius, "both", None, "SUBGRAPH", caps, between=True)
        return NetworkXAdapter(part, self.name).subgraph(centers, radius, caps=caps)

    def connect(
        self,
        left: Sequence[NodeId],
        right: Sequence[NodeId],
        *,
        via: Condition | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Return the edges between two sets of nodes; see ``GraphAdapter.connect``."""
        via = tree_of(via)
        if needs_all([via]):
            part = self._whole("CONNECT with a degree in VIA", caps)
        else:
            part = NetworkXAdapter(pull_between(self.source, left, right, via, "CONNECT", caps), self.name)
        return part.connect(left, right, via=via, caps=caps)

    def measure(
        self,
        algorithm: str,
        among: Sequence[NodeId] | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        weight: Value | None = None,
        links: Links | None = None,
        pairs: Sequence[tuple[NodeId, NodeId]] | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Return the rows of an algorithm on a copy of the graph, or on ``links``; see ``GraphAdapter.measure``."""
        whole = NetworkXAdapter(_empty(), self.name) if links is not None else self._whole("MEASURE", caps)
        return whole.measure(algorithm, among, settings=settings, weight=weight, links=links, pairs=pairs, caps=caps)

    @property
    def measures(self) -> tuple[str, ...]:
        """The algorithm names that ``measure`` accepts."""
        return tuple(MEASURES)

    def explain(
        self, kind: Literal["nodes", "edges", "paths", "cycles", "patterns"], where: Condition | None, **rest: Any
    ) -> Plan:
        """Return the plan of a search. The database counts the rows that would be fetched. Raises ``ConditionError``."""
        if kind == "nodes" or kind == "edges":
            return explain(self.source, kind, tree_of(where))
        if kind == "paths" and rest.get("cost") is None and self._copy is None:
            starts, ends = (
                given if _are_ids(given) else tree_of(given) for given in (rest.get("starts"), rest.get("ends"))
            )
            if can_search(starts, ends, tree_of(rest.get("via")), tree_of(where)):
                return explain_paths(self.source, starts, ends, tree_of(where), self.schema, rest)
        import attrs

        plan = self._whole(f"FIND {kind}", rest.get("caps", DEFAULT_CAPS)).explain(kind, where, **rest)
        size = f"a copy of the graph in memory: {self.schema.nodes:,} nodes and {self.schema.edges:,} edges are fetched"
        return attrs.evolve(plan, notes=(size, *plan.notes))

    def invalidate(self) -> None:
        """Discard the tables, the summary and the copy; call this after the database was changed."""
        with self._lock:
            self._source = self._schema = self._copy = None

    def _whole(self, what: str, caps: Caps) -> NetworkXAdapter:
        """Return a copy of the whole graph. Raises ``AdapterError`` if the graph is larger than the URL allows."""
        schema = self.schema
        with self._lock:
            if self._copy is None:
                graph = pull_all(self.source, schema.nodes, schema.edges, what, caps)
                if (graph.number_of_nodes(), graph.number_of_edges()) != (schema.nodes, schema.edges):
                    raise AdapterError(
                        f"{self.name}: the graph changed while it was read: {graph.number_of_nodes():,} nodes and "
                        f"{graph.number_of_edges():,} edges were copied, {schema.nodes:,} and {schema.edges:,} counted",
                        hint="run the command again when nothing writes to the database",
                    )
                computed(graph).part("schema", lambda: schema)
                made = NetworkXAdapter(graph, self.name)
                if self.strict:
                    return made
                self._copy = made
            return self._copy


def _are_ids(given: Any) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, str)


def _empty() -> Any:
    import networkx as nx

    return nx.DiGraph()


def _prefixed(tables: Tables) -> Tables:
    import attrs

    nodes = {table.label: attrs.evolve(table, prefix=f"{table.label}:") for table in tables.nodes}
    edges = (
        attrs.evolve(each, source=nodes[each.source.label], target=nodes[each.target.label]) for each in tables.edges
    )
    return Tables(tuple(nodes.values()), tuple(edges))


def _all_items(found: GraphResult) -> list[Item]:
    """Return all items; raise an error if a cap cut the result short."""
    if found.caps_hit:
        raise AdapterError(f"the search was cut short by {', '.join(found.caps_hit)}", hint="pass higher caps")
    return list(found.items)
