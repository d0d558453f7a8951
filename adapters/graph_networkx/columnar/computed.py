"""What was computed from a graph and is kept beside it, until the graph is changed.

It lives in ``graph.__networkx_cache__``, which NetworkX empties whenever one of its methods changes the graph. Attributes
written directly (``graph.nodes[a]["x"] = 1``) leave it as it is: see ``audit``. A view of another graph is not told when that
one changes, so nothing is kept for it.
"""

from collections.abc import Callable, Hashable
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from ....lang.conditions import And, Comparison, Condition, Constant, Field, Not, NullTest, Or

if TYPE_CHECKING:
    from .csr import Adjacency
    from .tables import EdgeTable, NodeTable, Table

__all__ = ["Computed", "computed", "forget", "keeps"]

_KEY = "knotwork"
_MOST_PREPARED = 512
_WIDE = 50
Made = TypeVar("Made")


class Computed:
    """Tables, adjacency, columns and compiled conditions of one graph, each made when it is first asked for.

    Reading threads may share it: whoever needs a part first makes it, the others wait. Copying or pickling a graph does not
    take it along.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._parts: dict[Hashable, Any] = {}
        self._prepared: dict[Hashable, tuple[Condition, Any]] = {}
        self.turn = 0
        """Counts searches, so that each audit looks at other rows."""

    def __reduce__(self) -> tuple[type["Computed"], tuple[()]]:
        return (Computed, ())

    def part(self, name: Hashable, make: Callable[[], Made]) -> Made:
        """Return the part called ``name``, made by ``make`` if it is not there yet."""
        if name in self._parts:
            return self._parts[name]  # type: ignore[no-any-return]  # what `make` of this name made
        with self._lock:
            if name not in self._parts:
                self._parts[name] = make()
            return self._parts[name]  # type: ignore[no-any-return]  # the same

    def has(self, name: Hashable) -> bool:
        """Say whether the part was made."""
        return name in self._parts

    def prepared(self, name: Hashable, condition: Condition, make: Callable[[], Made]) -> Made:
        """Return what ``make`` makes of ``condition``, kept for conditions that mean the same. The latest few hundred are kept."""
        meaning = _meaning(condition)
        key = (name, id(condition) if meaning is None else meaning)
        known = self._prepared.get(key)
        if known is not None:
            return known[1]  # type: ignore[no-any-return]  # what `make` of this name made
        made = make()
        with self._lock:
            if len(self._prepared) >= _MOST_PREPARED:
                self._prepared.clear()
            self._prepared[key] = (condition, made)  # the condition is held, so that no other takes its id
        return made

    def nodes(self, graph: Any) -> "NodeTable":
        """Return the table of nodes."""
        from .tables import NodeTable

        return self.part("nodes", lambda: NodeTable.of(graph))

    def edges(self, graph: Any, look: Callable[[], None] = lambda: None) -> "EdgeTable":
        """Return the table of edges. ``look`` is called now and then while it is made; what it raises ends that, and nothing is kept."""
        from .tables import EdgeTable

        return self.part("edges", lambda: EdgeTable.of(graph, self.nodes(graph), look))

    def table(self, graph: Any, kind: str) -> "Table":
        """Return the table of ``kind``."""
        return self.nodes(graph) if kind == "nodes" else self.edges(graph)

    def outgoing(self, graph: Any, look: Callable[[], None] = lambda: None) -> "Adjacency":
        """Return the edges that leave each node. ``look``: see ``edges``."""
        from .csr import outgoing

        return self.part("outgoing", lambda: outgoing(self.edges(graph, look), graph.is_directed(), look))

    def incoming(self, graph: Any, look: Callable[[], None] = lambda: None) -> "Adjacency":
        """Return the edges that enter each node; in an undirected graph the same as ``outgoing``. ``look``: see ``edges``."""
        if not graph.is_directed():
            return self.outgoing(graph, look)
        from .csr import incoming

        return self.part("incoming", lambda: incoming(self.edges(graph, look), True, look))


def keeps(graph: Any) -> bool:
    """Say whether something can be kept for ``graph``: whether it is no view and NetworkX empties its cache."""
    return isinstance(getattr(graph, "__networkx_cache__", None), dict) and not hasattr(graph, "_graph")


def computed(graph: Any, strict: bool = False) -> Computed:
    """Return what is kept for ``graph``, or something that lasts as long as the caller holds it where nothing can be."""
    if strict or not keeps(graph):
        return Computed()
    kept: Computed = graph.__networkx_cache__.setdefault(_KEY, Computed())
    return kept


def forget(graph: Any) -> None:
    """Forget what was kept for ``graph``."""
    if keeps(graph):
        graph.__networkx_cache__.pop(_KEY, None)


def _meaning(condition: Condition) -> Hashable | None:
    """Return a key that only conditions of one meaning share; None for a large one.

    Conditions themselves won't do: they are equal when their constants are, and 1 is equal to true.
    """
    if isinstance(condition, Comparison):
        left, right = condition.left, condition.right
        if left.__class__ is not Field or right.__class__ is not Constant:
            return _in_words(condition)
        value: Any = right.value
        if value.__class__ not in (str, int, float, bool):
            return _in_words(condition)
        return (left, condition.operator, value.__class__, value)
    if isinstance(condition, And | Or | Not):
        operands = (condition.operand,) if isinstance(condition, Not) else condition.operands
        if len(operands) > _WIDE:
            return None
        inner = tuple([_meaning(operand) for operand in operands])
        return None if None in inner else (condition.__class__, inner)
    return _in_words(condition)


def _in_words(leaf: Comparison | NullTest) -> str | None:
    right = getattr(leaf, "right", None)
    items = getattr(right, "items", getattr(right, "value", ()))
    return repr(leaf) if not isinstance(items, tuple | list | dict) or len(items) <= _WIDE else None
