"""How a condition's fields are read from the live graph, and which names mean something of their own.

Of a node, ``id`` is its id, ``degree`` its number of edges (a loop counts twice), ``in_degree`` and ``out_degree`` those that enter and
leave it (in an undirected graph both are the degree); of an edge, ``source`` and ``target`` are
the ids of its ends (of an undirected edge in the order in which NetworkX yields them: the end that was added first stands
first), ``key`` its key in a multigraph, and ``source.x``, ``target.x`` the field ``x`` of an end. An attribute that bears one
of these names is ``attr.id`` and so on.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ....lang.conditions import Field
from ....lang.evaluate.conditions import ConditionError, Reader, look_up
from .jsonable import node_id
from .scan import Kind

__all__ = ["DEGREES", "attribute_reader", "degree_of", "edge_readers", "node_readers", "readers_of", "reserved"]

DEGREES = ("degree", "in_degree", "out_degree")
"""Fields of nodes that are counted, not kept."""

Readers = Callable[[Field], Reader]


def reserved(kind: str, multi: bool) -> frozenset[str]:
    """Return the names that mean something of their own for ``kind`` ("nodes" or "edges")."""
    if kind == "nodes":
        return frozenset({"id", *DEGREES})
    return frozenset({"source", "target", "key"} if multi else {"source", "target"})


def degree_of(graph: Any, name: str) -> Any:
    """Return NetworkX's view of the degree that a field of nodes is called after."""
    return graph.degree if name == "degree" or not graph.is_directed() else getattr(graph, name)


def attribute_reader(path: tuple[str, ...], names: frozenset[str], argument: int) -> Reader:
    """Return how an attribute is read from the row's mapping at ``argument``."""
    if len(path) == 1:
        return Reader((argument,), key=path[0])
    if len(path) == 2 and path[0] == "attr" and path[1] in names:
        whole, name = ".".join(path), path[1]

        def renamed(data: Mapping[str, Any]) -> Any:
            return data[whole] if whole in data else data.get(name)

        return Reader((argument,), function=renamed)
    return Reader((argument,), function=lambda data: look_up(data, path))


def node_readers(graph: Any) -> Readers:
    """Return the readers for rows ``(node, attributes)``."""
    degrees = {name: degree_of(graph, name) for name in DEGREES}

    def read(at: Field) -> Reader:
        if at.quantifier is not None:
            raise ConditionError(f"{at.quantifier.upper()} {'.'.join(at.path)} is for paths")
        if at.path == ("id",):
            return Reader((0,), function=node_id)
        if len(at.path) == 1 and at.path[0] in degrees:
            degree = degrees[at.path[0]]
            return Reader((0,), function=lambda node: degree[node])
        return attribute_reader(at.path, reserved("nodes", False), 1)

    return read


def edge_readers(graph: Any) -> Readers:
    """Return the readers for rows ``(source, target, key, attributes)``; the key is None in a graph without parallel edges."""
    names = reserved("edges", graph.is_multigraph())
    of_node, attributes = node_readers(graph), graph.nodes

    def read(at: Field) -> Reader:
        if at.quantifier is not None:
            raise ConditionError(f"{at.quantifier.upper()} {'.'.join(at.path)} is for paths")
        first, rest = at.path[0], at.path[1:]
        if first in ("source", "target"):
            end = 0 if first == "source" else 1
            if not rest:
                return Reader((end,), function=node_id)
            inner = of_node(Field(rest))
            return Reader((end,), function=lambda node: inner.read(node, attributes[node]))
        if at.path == ("key",) and "key" in names:
            return Reader((2,), function=node_id)
        return attribute_reader(at.path, names, 3)

    return read


def readers_of(graph: Any, kind: Kind) -> Readers:
    """Return the readers for the rows of ``kind``."""
    return node_readers(graph) if kind == "nodes" else edge_readers(graph)
