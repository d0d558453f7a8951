"""A NetworkX graph behind the port: each question goes to the room that answers it."""

from collections.abc import Sequence
from sys import maxsize
from typing import TYPE_CHECKING, Any, Literal

from ...lang.trees.conditions import Comparison, Condition, Constant, Field, Or
from ...lang.trees.gasl import Order
from ..graph import DEFAULT_CAPS, MOST_TEXTS, AdapterError, Caps, Direction, Found, Item, NodeId, Plan, Schema, tree_of
from .find import MISSING, find, node_named, plan_of
from .rows import node_item
from .tables import Computed, computed, forget

if TYPE_CHECKING:
    import networkx as nx

    from .path_search import PathQuery

__all__ = ["NetworkXAdapter"]

_MOST_PATHS = 1_000_000
_NAMES = ("name", "label", "title")


class NetworkXAdapter:
    """A ``Graph``, ``DiGraph``, ``MultiGraph`` or ``MultiDiGraph`` that answers. See ``GraphAdapter`` for the methods.

    What is computed from the graph (columns, indexes, adjacency) is kept beside it until NetworkX's methods change it.
    ``strict`` keeps nothing and looks at the live graph every time, for graphs whose attributes are written directly
    (``graph.nodes[a]["x"] = 1``); ``invalidate`` is for one who writes them now and then. ``told`` is what loading changed, in words.
    """

    def __init__(self, graph: "nx.Graph[Any]", name: str = "", strict: bool = False, told: Sequence[str] = ()) -> None:
        self.graph = graph
        self.name = name
        self.strict = strict
        self.told = tuple(told)

    def __repr__(self) -> str:
        return f"<NetworkXAdapter {self.name or type(self.graph).__name__}>"

    def find_nodes(self, conditions: Condition | None = None, limit: int | None = None) -> list[Item]:
        """Return the nodes for which the condition is true, in the graph's own order.

        Raises ``ConditionError``, and ``AdapterError`` where that takes longer than ``Caps`` allow.
        """
        return _whole(self.nodes(conditions, limit=limit, caps=Caps(max_results=maxsize)))

    def find_edges(self, conditions: Condition | None = None, limit: int | None = None) -> list[Item]:
        """Return the edges for which the condition is true, in the graph's own order; as ``find_nodes``."""
        return _whole(self.edges(conditions, limit=limit, caps=Caps(max_results=maxsize)))

    def find_paths(self, starts: Sequence[NodeId], ends: Sequence[NodeId], max_length: int) -> list[list[NodeId]]:
        """Return the simple paths from a start to an end, as lists of ids, each once whatever edges are parallel.

        Raises ``AdapterError`` where there are more than a million, or it takes longer than ``Caps`` allow.
        """
        caps = Caps(max_path_length=max_length, max_paths=_MOST_PATHS, max_results=_MOST_PATHS)
        found = _whole(self.paths(starts, ends, max_length=max_length, caps=caps))
        return [list(nodes) for nodes in dict.fromkeys(tuple(item["nodes"]) for item in found)]

    def get_node(self, name_or_id: NodeId) -> Item | None:
        """Return the node with this id, or else the one whose name, label or title it is; None where none or several are."""
        node = node_named(self.graph, self._kept(), name_or_id)
        if node is not MISSING:
            return node_item(node, self.graph.nodes[node])
        if not isinstance(name_or_id, str):
            return None
        named = Or(tuple(Comparison(Field((name,)), "=", Constant(name_or_id)) for name in _NAMES))
        found = self.find_nodes(named, 2)
        return found[0] if len(found) == 1 else None

    @property
    def schema(self) -> Schema:
        """The graph in summary; computed once."""
        from .schema import summarise

        return self._kept().part("schema", lambda: summarise(self.graph, self.name))

    def texts(self, kind: Literal["nodes", "edges"], name: str, most: int = MOST_TEXTS) -> list[str]:
        """Return the different texts that a field has; see ``GraphAdapter.texts``."""
        from .find_plan import texts_of

        return texts_of(self.graph, self._kept(), kind, name, most)

    def nodes(
        self,
        where: Condition | None,
        *,
        order: Sequence[Order] = (),
        limit: int | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> Found:
        """Find nodes; see ``GraphAdapter.nodes``. Raises ``ConditionError``."""
        return find(self.graph, self._kept(), "nodes", tree_of(where), order, limit, caps, self.strict)

    def edges(
        self,
        where: Condition | None,
        *,
        order: Sequence[Order] = (),
        limit: int | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> Found:
        """Find edges; see ``GraphAdapter.edges``. Raises ``ConditionError``."""
        return find(self.graph, self._kept(), "edges", tree_of(where), order, limit, caps, self.strict)

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
    ) -> Found:
        """Find simple paths; see ``GraphAdapter.paths``. Parallel edges make paths of their own.

        Ids that no node has are left out. Raises ``ConditionError``.
        """
        from .path_search import find_paths

        return find_paths(
            self.graph, self._kept(), _query(starts, ends, via, where, shortest, limit, max_length), caps, self.strict
        )

    def walk(
        self,
        starts: Sequence[NodeId],
        *,
        via: Condition | None = None,
        depth: int = 1,
        direction: Direction = "out",
        caps: Caps = DEFAULT_CAPS,
    ) -> Found:
        """Return the nodes around ``starts``; see ``GraphAdapter.walk``. Raises ``AdapterError``, ``ConditionError``."""
        from .neighbourhood import walk

        return walk(self.graph, starts, via=tree_of(via), depth=depth, direction=direction, caps=caps)

    def subgraph(self, centers: Sequence[NodeId], radius: int, *, caps: Caps = DEFAULT_CAPS) -> Found:
        """Return what lies within ``radius`` of the centers; see ``GraphAdapter.subgraph``. Raises ``AdapterError``."""
        from .neighbourhood import subgraph

        return subgraph(self.graph, centers, radius, caps=caps)

    def connect(
        self,
        left: Sequence[NodeId],
        right: Sequence[NodeId],
        *,
        via: Condition | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> Found:
        """Return the edges between two sets; see ``GraphAdapter.connect``. Raises ``AdapterError``, ``ConditionError``."""
        from .neighbourhood import connect

        return connect(self.graph, left, right, via=tree_of(via), caps=caps)

    def measure(self, algorithm: str, among: Sequence[NodeId] | None = None, *, caps: Caps = DEFAULT_CAPS) -> Found:
        """Return a measure of each node; see ``GraphAdapter.measure``. Raises ``AdapterError``."""
        from .measures import measure

        return measure(self.graph, algorithm, among, caps=caps)

    @property
    def measures(self) -> tuple[str, ...]:
        """The algorithms that ``measure`` knows."""
        from .measures import MEASURES

        return tuple(MEASURES)

    def explain(self, kind: Literal["nodes", "edges", "paths"], where: Condition | None, **rest: Any) -> Plan:
        """Say how a search would run, without running it. ``rest`` is what ``paths`` takes; columns may be built for the answer.

        Raises ``ConditionError``.
        """
        if kind != "paths":
            return plan_of(self.graph, self._kept(), kind, tree_of(where), self.strict)
        from .path_search import path_plan

        caps = rest.pop("caps", Caps())
        return path_plan(self.graph, self._kept(), _query(where=where, **rest), caps, self.strict)

    def invalidate(self) -> None:
        """Forget what was computed from the graph: its attributes were written past NetworkX's own methods."""
        forget(self.graph)

    def _kept(self) -> Computed:
        return computed(self.graph, self.strict)


def _whole(found: Found) -> list[Item]:
    """Return all items; what a cap cut short is not passed off as the whole."""
    if found.caps_hit:
        raise AdapterError(f"the search was cut short by {', '.join(found.caps_hit)}", hint="ask with caps of your own")
    return list(found.items)


def _query(
    starts: Sequence[NodeId] | Condition | None = None,
    ends: Sequence[NodeId] | Condition | None = None,
    via: Condition | None = None,
    where: Condition | None = None,
    shortest: bool = False,
    limit: int | None = None,
    max_length: int | None = None,
) -> "PathQuery":
    from .path_search import PathQuery

    begins, stops = (end if isinstance(end, list | tuple) or end is None else _ends(end) for end in (starts, ends))
    return PathQuery(begins, stops, tree_of(via), tree_of(where), shortest, limit, max_length)


def _ends(end: Any) -> Any:
    """Return a path's ends: ids as they are, what is a condition as its tree."""
    return tree_of(end) if isinstance(end, str) or hasattr(end, "tree") else end
