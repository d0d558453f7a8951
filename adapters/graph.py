"""The port to graphs: the methods of an engine, their results and errors. See ``docs/design/gasl.md#adapters``.

Items are JSON objects (``docs/design/gasl.md#items``): a node is ``{"id", ...attributes}``; an edge
``{"source", "target", "key"?, ...attributes}`` (``key`` in multigraphs); a path
``{"source", "target", "length", "nodes": [id...], "edges": [edge...]}``. Node ids are strings or integers. An engine only reads its
graph; the engine's methods may be called from any thread. Conditions contain no variables: their values are already filled in.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from attrs import frozen

from ..lang.catalogue.schema import Schema
from ..lang.errors import KnotworkError
from ..lang.trees import Node
from ..lang.trees.conditions import Condition
from ..lang.trees.gasl import Order

__all__ = [
    "DEFAULT_CAPS",
    "MOST_TEXTS",
    "AdapterError",
    "Caps",
    "Direction",
    "GraphAdapter",
    "GraphResult",
    "Item",
    "NodeId",
    "Plan",
    "Schema",
    "Stoppable",
    "tree_of",
]

Item: TypeAlias = dict[str, Any]
NodeId: TypeAlias = str | int
Direction = Literal["out", "in", "both"]


def tree_of(condition: Any) -> Condition | None:
    """Return the tree of a condition given as a tree, as a result of ``gasl.parse_condition``, or as a string. None stays None.

    Raises ``ConditionError`` for a string that is not a condition, ``TypeError`` for a value of another type.
    """
    if condition is None or isinstance(condition, Node):
        return condition  # type: ignore[return-value]  # a node of a condition
    if isinstance(tree := getattr(condition, "tree", None), Node):
        return tree  # type: ignore[return-value]
    if not isinstance(condition, str):
        raise TypeError(f"a condition is a text or a result of gasl.parse_condition, not {type(condition).__name__}")
    from ..lang.evaluate.conditions import ConditionError
    from ..lang.parse.gasl import parse_condition

    read, found = parse_condition(condition)
    if read is None:
        fault = next(each for each in found if each.severity == "error")
        raise ConditionError(fault.message, hint="; ".join(fault.hints))
    return read


class AdapterError(KnotworkError):
    """The graph can't be read, or a query failed. ``hint`` says what to do. See ``docs/design/gasl.md#errors``."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@frozen
class Caps:
    """Limits of one command. ``max_path_length`` counts edges; ``timeout_s`` is seconds of searching.

    In a plan, ``SET adapter.caps.name = value`` changes one limit, up to the ceiling set by the host.
    """

    max_path_length: int = 3
    max_results: int = 100_000
    max_paths: int = 10_000
    timeout_s: float = 30.0


@frozen
class Stoppable(Caps):
    """The caps of a search that its caller may cancel: ``ended`` is called repeatedly during the search, in its thread.

    The result of a cancelled search is not used, so an engine may return a partial result or raise any exception.
    """

    ended: Callable[[], bool] = lambda: False


DEFAULT_CAPS = Caps()
MOST_TEXTS = 200_000
"""Maximum number of distinct texts of a field among which a similar spelling is searched for."""


@frozen
class GraphResult:
    """The result of a search. ``items`` may be lazy: a sequence that creates items on access.

    ``caps_hit`` names the caps (fields of ``Caps``, or "MAXLEN") that cut the result short; a LIMIT is not a cap. ``used``
    describes the search: "index on entity_type", "column on age", "scan". ``examined`` is the number of candidates examined.
    """

    items: Sequence[Item]
    caps_hit: tuple[str, ...] = ()
    used: str = "scan"
    examined: int = 0


@frozen
class Plan:
    """The way a search would run, for EXPLAIN: ``used`` as in ``GraphResult``, the estimated number of rows, and notes as strings."""

    used: str
    rows: int
    notes: tuple[str, ...] = ()


@runtime_checkable
class GraphAdapter(Protocol):
    """A graph engine. The first methods are the documented interface; the methods below them take more parameters and return more.

    See ``docs/design/gasl.md#adapters``.
    """

    def find_nodes(self, conditions: Condition | None = None, limit: int | None = None) -> list[Item]:
        """Return the nodes for which the condition is true, in the graph's own order."""
        ...

    def find_edges(self, conditions: Condition | None = None, limit: int | None = None) -> list[Item]:
        """Return the edges for which the condition is true, in the graph's own order."""
        ...

    def find_paths(self, starts: Sequence[NodeId], ends: Sequence[NodeId], max_length: int) -> list[list[NodeId]]:
        """Return the simple paths from a start to an end (start ≠ end) of at most ``max_length`` edges, shorter first."""
        ...

    def get_node(self, name_or_id: NodeId) -> Item | None:
        """Return the node with this id, else the node with this name, label or title; None if no node or several match."""
        ...

    @property
    def schema(self) -> Schema:
        """The summary of the graph, computed once."""
        ...

    def texts(self, kind: Literal["nodes", "edges"], name: str, most: int = MOST_TEXTS) -> Sequence[str]:
        """Return the first ``most`` distinct texts of a field, in the graph's order. A node's ``id`` is a field too.

        A dotted ``name`` refers to a field inside an object. Values that are not texts and elements of lists are omitted.
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
        """Find edges. The arguments are those of ``nodes``."""
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
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Find simple paths (start ≠ end) of at most ``max_length`` edges, shorter first; directed if the graph is directed.

        The default of ``max_length`` is ``caps.max_path_length``; with ``shortest`` the length is unlimited by default. If the
        bound hides the shortest path between a start and an end, ``caps_hit`` contains "MAXLEN". If nothing was found and a
        longer path exists, ``caps_hit`` contains "max_path_length".

        ``via`` is a condition on every edge of the path, ``where`` a condition on the path (``source.x``, ``target.x``,
        ``length``, ``ANY|ALL|NONE node.x`` and ``edge.x``). ``shortest``: return only the shortest paths of each start and end.
        """
        ...

    def walk(
        self,
        starts: Sequence[NodeId],
        *,
        via: Condition | None = None,
        depth: int = 1,
        direction: Direction = "out",
        caps: Caps = DEFAULT_CAPS,
    ) -> GraphResult:
        """Return the nodes reached in 1 to ``depth`` edges that satisfy ``via``, nearest first; ``starts`` are not included."""
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
        self, algorithm: str, among: Sequence[NodeId] | None = None, *, caps: Caps = DEFAULT_CAPS
    ) -> GraphResult:
        """Return ``{"id", algorithm: value}`` for each node, or for each of ``among``; ``measures`` lists the algorithms."""
        ...

    @property
    def measures(self) -> tuple[str, ...]:
        """The algorithm names that ``measure`` accepts."""
        ...

    def explain(self, kind: Literal["nodes", "edges", "paths"], where: Condition | None, **rest: Any) -> Plan:
        """Return the plan of a search without running the search. ``rest``: the other arguments of ``paths``."""
        ...

    def invalidate(self) -> None:
        """Discard all cached data; call this after writing attributes without NetworkX's own methods."""
        ...
