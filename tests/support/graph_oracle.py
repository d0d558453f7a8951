"""Which nodes and edges a condition holds for, said once more and plainly: the interpreter, asked of each."""

from typing import Any

from knotwork.adapters.graph_networkx.rows import node_id, plain
from knotwork.lang.evaluate.conditions import evaluate, look_up
from knotwork.lang.trees.conditions import Comparison, Condition, Constant, Field


def equal(name: str, value: Any) -> Condition:
    return Comparison(Field(tuple(name.split("."))), "=", Constant(value))


def above(name: str, value: Any) -> Condition:
    return Comparison(Field(tuple(name.split("."))), ">", Constant(value))


def attribute(data: Any, path: tuple[str, ...], own: set[str]) -> Any:
    if len(path) == 2 and path[0] == "attr" and path[1] in own:
        return data.get(".".join(path), data.get(path[1]))
    return look_up(data, path)


def of_node(graph: Any, node: Any, path: tuple[str, ...]) -> Any:
    if path == ("id",):
        return node_id(node)
    if path == ("degree",):
        return graph.degree(node)
    return attribute(graph.nodes[node], path, {"id", "degree"})


def of_edge(graph: Any, edge: Any, path: tuple[str, ...]) -> Any:
    if path[0] in ("source", "target"):
        return of_node(graph, edge[path[0] == "target"], path[1:] or ("id",))
    if path == ("key",) and graph.is_multigraph():
        return edge[2]
    data = graph.edges[edge]
    return attribute(data, path, {"source", "target", "key"} if graph.is_multigraph() else {"source", "target"})


def edges_of(graph: Any) -> list[Any]:
    return list(graph.edges(keys=True) if graph.is_multigraph() else graph.edges)


def right_nodes(graph: Any, where: Condition) -> list[Any]:
    return [node for node in graph if evaluate(where, lambda at: plain(of_node(graph, node, at.path))) is True]  # noqa: B023


def right_edges(graph: Any, where: Condition) -> list[Any]:
    return [e for e in edges_of(graph) if evaluate(where, lambda at: plain(of_edge(graph, e, at.path))) is True]  # noqa: B023
