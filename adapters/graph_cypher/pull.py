"""Copies a database, or a part of it, into a NetworkX graph. Commands that the database does not answer run on this copy."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import evolve, field, frozen

from ...lang.trees import walk
from ...lang.trees.conditions import Condition, Field
from ..graph import AdapterError, Caps, Direction, NodeId, Stoppable
from ..graph_networkx.rows import DEGREES, Deadline
from .database import EdgeTable, NodeTable, Statement, quoted
from .prefilter import split
from .push_down import Parameters, Pushed
from .search import Source, TablePlan, statement_of
from .table_rows import TableRow, Wanted

if TYPE_CHECKING:
    import networkx as nx

_SECONDS = 3600.0
"""Time limit of a copy. Cancelling the command ends the copy earlier."""


class TooLarge(AdapterError):
    """Raised if a part of the graph is larger than the URL allows."""


_FEW_KEYS = 2_000
"""Maximum number of nodes whose edges are looked up node by node (0.1 ms for each); for more nodes, all edges are scanned."""
_FEWEST_TOGETHER = 3
"""Minimum number of nodes, reached from one node, whose edges are fetched together."""
_MOST_TOGETHER = 2_000
"""Maximum number of edges that are fetched together."""


def copy_deadline(caps: Caps) -> Deadline:
    """Return the deadline for copying; it also ends when the command is cancelled."""
    return Deadline(_SECONDS, caps.ended) if isinstance(caps, Stoppable) else Deadline(_SECONDS)


def pull_all(source: Source, nodes: int, edges: int, what: str, caps: Caps) -> "nx.Graph[Any]":
    """Return the whole graph. ``nodes`` and ``edges`` are the numbers of its nodes and edges; ``what`` names the command.

    Raises ``AdapterError`` if the graph is larger than the URL allows.
    """
    if nodes + edges > source.address.pull:
        raise AdapterError(
            f"{what} needs the whole graph in memory: {nodes:,} nodes and {edges:,} edges are more than "
            f"{source.address.pull:,}",
            hint="FIND nodes, FIND edges, FIND paths from known nodes, WALK, SUBGRAPH and CONNECT fetch only what they need; "
            "or allow more with ?pull=NUMBER in the graph's URL",
        )
    deadline = copy_deadline(caps)
    rows: list[TableRow] = []
    links: list[TableRow] = []
    for table in source.tables.nodes:
        rows += _rows(source, table, Pushed(), Parameters(), Wanted(), deadline)
    for each in source.tables.edges:
        links += _rows(source, each, Pushed(), Parameters(), Wanted(), deadline)
    check_copied(source, deadline)
    return graph_of(source, rows, links)


def pull_around(
    source: Source, starts: Sequence[NodeId], depth: int, direction: Direction, via: Condition | None, what: str, caps: Caps,
    *, between: bool = False,
) -> "nx.Graph[Any]":  # fmt: skip
    """Return the nodes within ``depth`` edges of ``starts`` and these edges or, if ``between``, all edges between the nodes.

    Edges that do not satisfy ``via`` may be missing. Raises ``AdapterError`` if the part is larger than the URL allows.
    """
    deadline = copy_deadline(caps)
    rows = {row[1]: row for row in rows_by_id(source, starts, Wanted(), deadline)}
    links: dict[Any, TableRow] = {}
    frontier = Frontier.of(rows.values())
    for _ in range(depth):
        if not frontier.places:
            break
        reached: dict[NodeId, int] = {}
        came: dict[NodeId, Arrival] = {}
        for table, row in edges_at(source, frontier, direction, via, deadline):
            links[row[0]] = row
            ends = ((row[1], table.source.place), (row[4], table.target.place))
            for (end, place), (other, _), is_target in zip(ends, ends[::-1], (False, True), strict=True):
                if end not in rows:
                    reached.setdefault(end, place)
                    came.setdefault(end, (table, is_target, other))
            check_size(source, len(rows) + len(links) + len(reached), what)
        check_copied(source, deadline)
        frontier = Frontier(reached, came)
        for row in rows_of(source, frontier, deadline):
            rows[row[1]] = row
    for _, row in edges_at(source, frontier, "out", via, deadline) if between else ():
        if row[4] in rows:
            links[row[0]] = row
            check_size(source, len(rows) + len(links), what)
    check_copied(source, deadline)
    return graph_of(source, rows.values(), links.values())


def pull_between(
    source: Source, left: Sequence[NodeId], right: Sequence[NodeId], via: Condition | None, what: str, caps: Caps
) -> "nx.Graph[Any]":
    """Return the nodes of two sets and the edges between the sets that satisfy ``via``, in both directions."""
    deadline = copy_deadline(caps)
    rows = {row[1]: row for row in rows_by_id(source, list(dict.fromkeys([*left, *right])), Wanted(), deadline)}
    links: dict[Any, TableRow] = {}
    ends = (set(left), set(right))
    fewer, direct = (left, 0) if len(left) <= len(right) else (right, 1)
    given = set(fewer)
    frontier = Frontier.of(row for row in rows.values() if row[1] in given)
    for _, row in edges_at(source, frontier, "both", via, deadline):
        one, other = ends[direct], ends[1 - direct]
        if (row[1] in one and row[4] in other) or (row[4] in one and row[1] in other):
            links[row[0]] = row
            check_size(source, len(rows) + len(links), what)
    check_copied(source, deadline)
    return graph_of(source, rows.values(), links.values())


def needs_all(conditions: Iterable[Condition | None]) -> bool:
    """Return whether a condition reads a degree, because a node may have a lower degree in a part of the graph."""
    fields = [node for each in conditions if each is not None for node in walk(each) if isinstance(node, Field)]
    return any(at.path[-1] in DEGREES for at in fields)


def graph_of(source: Source, nodes: Iterable[TableRow], edges: Iterable[TableRow]) -> "nx.Graph[Any]":
    """Return a NetworkX graph made of rows, in the graph's own order."""
    import networkx as nx

    graph: Any = nx.MultiDiGraph() if source.multi else nx.DiGraph()
    for _, node_id, attributes, _ in sorted(nodes, key=lambda row: row[0]):
        graph.add_node(node_id)
        graph.nodes[node_id].update(attributes)
    for row in sorted(edges, key=lambda row: row[0]):
        first, second, key, attributes = row[1], row[4], row[7], row[8]
        if source.multi:
            graph.add_edge(first, second, key)
            graph.edges[first, second, key].update(attributes)
        else:
            graph.add_edge(first, second)
            graph.edges[first, second].update(attributes)
    return graph


def rows_by_id(source: Source, ids: Sequence[NodeId], wanted: Wanted, deadline: Deadline) -> list[TableRow]:
    """Return the rows of the nodes with these ids. Unknown ids are ignored."""
    found: list[TableRow] = []
    for table in source.tables.nodes:
        keys = [key for key in dict.fromkeys(table.key_of(each) for each in ids) if key is not None and _is_usable(key)]
        found += rows_of_keys(source, table, keys, wanted, deadline)
    return found


def rows_of_keys(
    source: Source, table: NodeTable, keys: Sequence[Any], wanted: Wanted, deadline: Deadline
) -> list[TableRow]:
    """Return the rows of the nodes of a table with these keys."""
    found: list[TableRow] = []
    for chunk in _of_one_type(keys, source.database.dialect.longest_list):
        parameters = Parameters()
        each, test = _with_keys(source, table.key_text("n"), parameters.add(chunk))
        found += _rows(source, table, Pushed((test,)), parameters, wanted, deadline, each)
    return found


def _is_usable(key: Any) -> bool:
    """Return whether a key can be passed to the database. A text with a lone surrogate can't, but no node has such an id."""
    return not isinstance(key, str) or not any("\ud800" <= character <= "\udfff" for character in key)


Arrival: TypeAlias = tuple[EdgeTable, bool, NodeId]
"""How a step reached a node: the table of the edge, whether the node is its target, and the id of the node at its other end."""


@frozen
class Frontier:
    """The nodes from which a search continues: a mapping from their ids to the places of their tables.

    ``came`` has, for nodes that an earlier step reached, the edge by which it reached them.
    """

    places: Mapping[NodeId, int]
    came: Mapping[NodeId, Arrival] = field(factory=dict)

    @classmethod
    def of(cls, rows: Iterable[TableRow]) -> "Frontier":
        """Return the nodes of rows."""
        return cls({row[1]: row[0][0] for row in rows})

    def keys(self, table: NodeTable) -> list[Any]:
        """Return the keys of the nodes in a table."""
        return [table.key_of(node) for node, place in self.places.items() if place == table.place]


def rows_of(source: Source, frontier: Frontier, deadline: Deadline) -> list[TableRow]:
    """Return the rows of the nodes of a frontier."""
    found: list[TableRow] = []
    for table in source.tables.nodes:
        found += rows_of_keys(source, table, frontier.keys(table), Wanted(), deadline)
    return found


def edges_at(
    source: Source, frontier: Frontier, direction: Direction, via: Condition | None, deadline: Deadline
) -> Iterable[tuple[EdgeTable, TableRow]]:
    """Yield the edges that leave ("out"), enter ("in") or touch ("both") the nodes, and may satisfy ``via``, with their tables.

    Edges may repeat.
    """
    dialect = source.database.dialect
    for table in source.tables.edges:
        for name, end in (("a", table.source), ("b", table.target)):
            if direction not in ("both", "out" if name == "a" else "in"):
                continue
            keys = frontier.keys(end)
            if not keys:
                continue
            # Ladybug scans the edges for IN and for UNWIND, but looks up one key.
            is_few = dialect.is_typed and len(keys) <= _FEW_KEYS
            parameters = Parameters()
            pushed = split(via, source.view(table), parameters, dialect)
            if pushed.is_empty:
                continue
            wanted = parameters.add(None)
            at = f"{end.key_text(name)} {'=' if is_few else 'IN'} {wanted}"
            plan = TablePlan(table, Pushed((at, *pushed.texts)), parameters)
            made, columns = statement_of(source, plan, Wanted()), source.columns(table, Wanted(), deadline)
            if is_few:
                keys, rows = _through_parents(source, frontier, plan, name, wanted, keys, deadline)
                yield from ((table, row) for row in rows)
            for chunk in _of_one_type(keys, 1 if is_few else dialect.longest_list):
                given = {**made.parameters, wanted[1:]: chunk[0] if is_few else chunk}
                for values in source.database.run(Statement(made.text, given, is_few), deadline):
                    yield table, columns.row(values)


def _through_parents(
    source: Source, frontier: Frontier, plan: TablePlan, name: str, wanted: str, keys: list[Any], deadline: Deadline
) -> tuple[list[Any], list[TableRow]]:
    """Return the edges of nodes that were reached from the same node, and the keys of all other nodes.

    One statement finds the edges of all nodes to which edges of one table lead from a node, instead of one for each of them. If
    these have too many edges, the nodes are looked up one by one.
    """
    table = plan.table
    if not isinstance(table, EdgeTable):
        return keys, []
    end, id_at = (table.source, 1) if name == "a" else (table.target, 4)
    groups: dict[tuple[int, bool, NodeId], list[NodeId]] = {}
    for node, (by, is_target, parent) in frontier.came.items():
        if frontier.places.get(node) == end.place:
            groups.setdefault((by.place, is_target, parent), []).append(node)
    columns = source.columns(table, Wanted(), deadline)
    found: list[TableRow] = []
    done: set[Any] = set()
    for (place, is_target, parent), nodes in groups.items():
        if len(nodes) < _FEWEST_TOGETHER:
            continue
        by = source.tables.edges[place]
        other = by.source if is_target else by.target
        ends = ("(p:{0})-[e:{1}]->({2}), " if is_target else "({2})-[e:{1}]->(p:{0}), ").format(
            quoted(other.label), quoted(by.relation), f"{name}:{quoted(end.label)}"
        )
        texts = (f"{other.key_text('p')} = {wanted}", *plan.pushed.texts[1:])
        made = statement_of(source, evolve(plan, pushed=Pushed(texts), limit=_MOST_TOGETHER + 1), Wanted())
        text = made.text.replace("MATCH ", f"MATCH {ends}", 1)
        given = {**made.parameters, wanted[1:]: other.key_of(parent)}
        rows = source.database.few(Statement(text, given, is_short=True), _MOST_TOGETHER, deadline)
        if rows is None:
            continue
        # The statement also finds the edges of nodes that earlier steps reached, or that no edge reached that satisfies VIA.
        found += (row for row in map(columns.row, rows) if row[id_at] in frontier.places)
        done.update(map(end.key_of, nodes))
    return [key for key in keys if key not in done], found


def _with_keys(source: Source, key: str, keys: str) -> tuple[str, str]:
    """Return the beginning of a statement, and the test that a key is in the list of the parameter ``keys``.

    Ladybug scans a table for IN, but looks up the primary key for each value of UNWIND.
    """
    if source.database.dialect.is_typed:
        return f"UNWIND {keys} AS wanted_key ", f"{key} = wanted_key"
    return "", f"{key} IN {keys}"


def _rows(
    source: Source,
    table: NodeTable | EdgeTable,
    pushed: Pushed,
    parameters: Parameters,
    wanted: Wanted,
    deadline: Deadline,
    each: str = "",
) -> list[TableRow]:
    made: Statement = statement_of(source, TablePlan(table, pushed, parameters), wanted)
    statement = Statement(each + made.text, made.parameters, is_short=bool(each))
    make: Callable[[Any], TableRow] = source.columns(table, wanted, deadline).row
    return [make(values) for values in source.database.run(statement, deadline)]


def _of_one_type(keys: Sequence[Any], most: int) -> Iterable[list[Any]]:
    """Yield the keys in lists of at most ``most``. Each list has one type, because some servers accept no mixed lists."""
    for kind in (str, int):
        same = [key for key in keys if isinstance(key, kind)]
        for start in range(0, len(same), most):
            yield same[start : start + most]


def check_copied(source: Source, deadline: Deadline) -> None:
    """Raise ``AdapterError`` if the deadline has passed."""
    if deadline.hit:
        raise AdapterError(f"{source.database.name}: copying the graph was ended")


def check_size(source: Source, size: int, what: str) -> None:
    """Raise ``AdapterError`` if a part of ``size`` nodes and edges is larger than the URL allows."""
    if size > source.address.pull:
        raise TooLarge(
            f"{what} reaches more than {source.address.pull:,} nodes and edges",
            hint="begin at fewer nodes, with a smaller depth or a stricter VIA; or allow more with ?pull=NUMBER in the graph's URL",
        )
