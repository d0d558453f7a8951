"""The interface to graphs: the methods of a graph engine, and their results and errors. See ``docs/design/gasl.md#adapters``.

Items are JSON objects (``docs/design/gasl.md#items``): a node is ``{"id", ...attributes}``; an edge ``{"source", "target",
"key"?, ...attributes}`` (``key`` in multigraphs); a path ``{"source", "target", "length", "nodes": [id...], "edges":
[edge...]}``. Node ids are strings or integers. An engine only reads its graph. Its methods may be called from any thread. A
condition that is passed to an engine contains no variables: each variable has already been replaced by its value.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from attrs import field, frozen

from ..lang.catalogue.schema import Schema
from ..lang.errors import KnotworkError
from ..lang.trees import Node
from ..lang.trees.conditions import Condition, Value
from ..lang.trees.gasl import Order, Pattern

if TYPE_CHECKING:
    from .columns import ColumnarItems

__all__ = [
    "DEFAULT_CAPS",
    "MOST_TEXTS",
    "AdapterError",
    "Caps",
    "Direction",
    "GraphAdapter",
    "GraphResult",
    "Item",
    "Links",
    "NodeId",
    "Plan",
    "Schema",
    "Stoppable",
    "UnusableValue",
    "tree_of",
]

Item: TypeAlias = dict[str, Any]
NodeId: TypeAlias = str | int
Direction = Literal["out", "in", "both"]


def tree_of(condition: Any) -> Condition | None:
    """Return the tree of a condition, which may be a tree, a result of ``gasl.parse_condition`` or a string. None stays None.

    Raises ``ConditionError`` for a string that is not a condition, and ``TypeError`` for a value of any other type.
    """
    if condition is None or isinstance(condition, Node):
        return condition  # type: ignore[return-value]  # a node of a condition
    if isinstance(tree := getattr(condition, "tree", None), Node):
        return tree  # type: ignore[return-value]
    if not isinstance(condition, str):
        raise TypeError(
            f"a condition must be a string or a result of gasl.parse_condition, not {type(condition).__name__}"
        )
    from ..lang.evaluate.conditions import ConditionError
    from ..lang.parse.gasl import parse_condition

    read, found = parse_condition(condition)
    if read is None:
        fault = next(each for each in found if each.severity == "error")
        raise ConditionError(fault.message, hint="; ".join(fault.hints))
    return read


class AdapterError(KnotworkError):
    """Raised if the graph can't be read or a query fails. ``hint`` suggests a fix. See ``docs/design/gasl.md#errors``."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UnusableValue(AdapterError):
    """Raised if a value can't be used as a cost, as a weight or in PER; the message names the edge or the node."""


@frozen
class Caps:
    """Limits of one command.

    ``max_path_length`` is the maximum number of edges of a path. ``timeout_s`` is the maximum time of a search in seconds.
    ``max_results`` limits the items that are shown, stored in the state or sent to a model; ``max_rows`` limits the rows in a
    variable or in a search. ``max_pattern_edges`` is the maximum number of edges in the patterns of one search, and
    ``max_examined`` is the maximum number of partial rows or candidates that a search examines.

    In a plan, ``SET adapter.caps.name = value`` changes one limit, up to the ceiling set by the host.
    """

    max_path_length: int = 3
    max_results: int = 100_000
    max_paths: int = 10_000
    timeout_s: float = 30.0
    max_pattern_edges: int = 6
    max_examined: int = 50_000_000
    max_rows: int = 10_000_000


@frozen
class Stoppable(Caps):
    """The caps of a search that its caller may cancel: ``ended`` is called repeatedly during the search, in its thread.

    The result of a cancelled search is not used, so an engine may return a partial result or raise any exception.
    """

    ended: Callable[[], bool] = lambda: False


DEFAULT_CAPS = Caps()
MOST_TEXTS = 200_000
"""Maximum number of distinct strings of a field that are searched for a similar spelling."""


@frozen
class GraphResult:
    """The result of a search. ``items`` may be lazy: a sequence that creates items on access.

    ``caps_hit`` names the caps (fields of ``Caps``) that cut the result short; a LIMIT is not a cap. ``used`` describes the
    search: "index on entity_type", "column on age", "scan". ``examined`` is the number of candidates examined. If patterns were
    searched, ``matches`` contains the complete match of each row, ``{"nodes": [node...], "edges": [edge...]}``. A match
    includes the elements that have no name in the patterns. ``missing`` says why nothing was found ("" otherwise); ``notes``
    are further messages for the user. ``columnar`` is a function that checks the items against the graph and returns them as
    positions in columns (None if the check fails). It is None if the engine has no columns for the result. ``unused_edges`` is
    the number of edges that were left out because their cost or weight is null. ``weight`` is the value or the attribute that
    weighted the edges of a measured graph ("" if none did).
    """

    items: Sequence[Item]
    caps_hit: tuple[str, ...] = ()
    used: str = "scan"
    examined: int = 0
    matches: Sequence[Item] = ()
    missing: str = ""
    notes: tuple[str, ...] = ()
    columnar: "Callable[[], ColumnarItems | None] | None" = field(default=None, eq=False, repr=False)
    unused_edges: int = 0
    weight: str = ""


@frozen
class Links:
    """A graph that was built from given edges. It is measured in place of the engine's graph.

    ``nodes`` are its nodes in order. ``weights`` contains a weight for each edge; it is None for an unweighted graph. ``note`` says
    how the edges are weighted, or why they are not.
    """

    nodes: Sequence[NodeId]
    edges: Sequence[tuple[NodeId, NodeId]]
    weights: Sequence[float] | None = None
    note: str = ""


@frozen
class Plan:
    """The plan of a search, for EXPLAIN. ``used`` is as in ``GraphResult``; ``rows`` is the estimated number of rows."""

    used: str
    rows: int
    notes: tuple[str, ...] = ()


@runtime_checkable
class GraphAdapter(Protocol):
    """A graph engine.

    The methods up to ``schema`` are the documented interface. The later methods have more parameters and return more details.
    See ``docs/design/gasl.md#adapters``.
    """

    def find_nodes(self, conditions: Condition | None = None, limit: int | None = None) -> list[Item]:
        """Return the nodes for which the condition is true, in the graph's own order."""
        ...

    def find_edges(self, conditions: Condition | None = None, limit: int | None = None) -> list[Item]:
        """Return the edges for which the condition is true, in the graph's own order."""
        ...

    def find_paths(self, starts: Sequence[NodeId], ends: Sequence[NodeId], max_length: int) -> list[list[NodeId]]:
        """Return the simple paths of at most ``max_length`` edges from a start to an end (start ≠ end), shortest first."""
        ...

    def get_node(self, name_or_id: NodeId) -> Item | None:
        """Return the node with this id, else the node with this name, label or title; None unless exactly one node matches."""
        ...

    @property
    def schema(self) -> Schema:
        """The summary of the graph, computed once."""
        ...

    def node_values(self, ids: Sequence[Any], path: tuple[str, ...]) -> list[Any] | None:
        """Return a field or degree of each node in ``ids``; null for an unknown id. Return None if no node has the field."""
        ...

    def texts(self, kind: Literal["nodes", "edges"], name: str, most: int = MOST_TEXTS) -> Sequence[str]:
        """Return the first ``most`` distinct strings of a field, in the graph's order. A node's ``id`` is a field too.

        A dotted ``name`` refers to a field inside an object. Values that are not strings, and elements of lists, are omitted.
        """
        ...

    def nodes(
        self,
        where: Condition | None,
        *,
        order: Sequence[Order] = (),
        limit: int | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Find nodes, sorted by ``order`` with null last; without ``order``, the results are in the graph's own order."""
        ...

    def edges(
        self,
        where: Condition | None,
        *,
        order: Sequence[Order] = (),
        limit: int | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Find edges. Takes the same arguments as ``nodes``."""
        ...

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
        """Find simple paths (start ≠ end) of at most ``max_length`` edges, shortest first.

        In a directed graph the paths are directed.

        The default of ``max_length`` is ``caps.max_path_length``; with ``shortest`` the length is unlimited by default. A bound
        counts as a cap if it is this default, or if ``capped`` is true. If a cap may exclude paths from the result,
        ``caps_hit`` contains "max_path_length". Any other bound is a part of the query, so that a result without longer paths
        is complete.

        ``via`` is a condition on every edge of the path, ``where`` a condition on the path (``source.x``, ``target.x``,
        ``length``, ``ANY|ALL|NONE node.x`` and ``edge.x``). If ``shortest`` is true, only the shortest paths of each pair of
        start and end are returned; ``count`` is the number of shortest paths to return for each pair. ``cost`` is a value
        computed from the fields of an edge; the fields are named as in ``via``. With ``cost``, the path with the smallest sum
        of costs is the shortest, items have a field ``cost``, and they are sorted by cost, then by length, then in the graph's
        order. Edges whose cost is null are not used. With ``direction`` "in", paths follow edges backwards; with "both", they
        follow edges in either direction.

        Raises ``UnusableValue`` if the cost of an edge is not a number, or is negative.
        """
        ...

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
        """Find simple cycles of at most ``max_length`` edges, shortest first.

        Each cycle is found once, as a path that ends where it begins.

        A cycle has at least 2 edges in a directed graph, 3 in an undirected one, and 1 if it is a loop. A cycle begins at that
        one of its nodes which comes first in the graph's order. If ``where`` requires increasing values, it begins at the first
        node from which the values increase along the cycle. The arguments and ``caps_hit`` have the same meaning as in
        ``paths``.
        """
        ...

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
        """Find the rows that match all ``patterns``. A row is an object with a node or an edge for each name in the patterns.

        An edge is used at most once in a row; a name that is used twice refers to the same node. The fields in ``where``,
        ``order`` and ``per`` begin with a name: ``p.id``, ``r.amount``. Without ``order``, rows are sorted by the graph's order
        of their first element on the left, then of the next element, and so on. With ``per``, ``limit`` applies to each group
        of rows with equal values; groups are in the order of their first rows.
        """
        ...

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
        """Return the nodes that ``depth`` or fewer edges connect to ``starts``, nearest first, without ``starts``.

        All followed edges satisfy ``via``. If ``trace`` is true, each node also has ``depth``, the number of edges between the
        nearest start and the node, and ``parent``, the node from which it was reached (the first in the graph's order if there
        are several). Attributes with these names become ``attr.depth`` and ``attr.parent``.
        """
        ...

    def subgraph(self, centers: Sequence[NodeId], radius: int, *, caps: Caps = DEFAULT_CAPS) -> GraphResult:
        """Return one item with the nodes and edges within ``radius`` edges of a center, in either direction.

        The item has the form ``{"nodes": [node...], "edges": [edge...]}``.
        """
        ...

    def connect(
        self,
        left: Sequence[NodeId],
        right: Sequence[NodeId],
        *,
        via: Condition | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Return the edges between a node of ``left`` and a node of ``right``, in either direction."""
        ...

    def measure(
        self,
        algorithm: str,
        among: Sequence[NodeId] | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        weight: Value | None = None,
        links: "Links | None" = None,
        pairs: Sequence[tuple[NodeId, NodeId]] | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Run an algorithm from ``lang.catalogue.measures`` and return a row for every node, or for each node in ``among``.

        ``settings`` are the algorithm's settings. ``weight`` is a value computed from the fields of an edge, like ``cost`` in
        ``paths``. Without ``weight``, pagerank and communities use the edges' numeric attribute ``weight``. If ``links`` is
        given, it is measured instead of the graph, with its own weights. ``pairs`` are the pairs that a pair algorithm
        compares. Without ``pairs``, it compares all pairs of nodes in ``among``. Without ``pairs`` and ``among``, it compares
        all pairs of nodes that have a common neighbour but no edge between them.

        Raises ``UnusableValue`` if the weight of an edge is not a number, or is negative.
        """
        ...

    @property
    def measures(self) -> tuple[str, ...]:
        """The algorithm names that ``measure`` accepts."""
        ...

    def explain(
        self, kind: Literal["nodes", "edges", "paths", "cycles", "patterns"], where: Condition | None, **rest: Any
    ) -> Plan:
        """Return the plan of a search without running the search.

        ``rest`` are the other arguments of ``paths``, ``cycles`` or ``patterns``.
        """
        ...

    def invalidate(self) -> None:
        """Discard all cached data; call this after writing attributes without NetworkX's own methods."""
        ...
