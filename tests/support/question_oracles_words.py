"""The questions about WordNet, answered by plain Python from the data of the graph alone."""

import statistics
from collections.abc import Callable
from typing import Any

from support.question_data import Row, descending, edges, grouped, joined, names_of, nodes, path_row, percentile


def above(graph: Any, starts: list[Any]) -> list[Row]:
    """The nodes above ``starts`` with their depths and parents: nearest first, then in the order of the edges."""
    order = {name: at for at, name in enumerate(graph)}
    depth, parent, found = dict.fromkeys(starts, 0), {}, []
    frontier = list(starts)
    for level in range(1, 21):
        following: list[Any] = []
        for name in frontier:
            for edge in edges(graph):
                if edge["source"] == name and edge.get("relation") == "_hypernym":
                    other = edge["target"]
                    if other not in depth:
                        depth[other] = level
                        following.append(other)
                        parent[other] = name
                    elif depth[other] == level and order[name] < order[parent[other]]:
                        parent[other] = name
        found += following
        frontier = following
    data = {node["id"]: node for node in nodes(graph)}
    return [{**data[name], "depth": depth[name], "parent": parent[name]} for name in found]


def w13(graph: Any) -> list[Row]:
    return above(graph, [next(node["id"] for node in nodes(graph) if node["id"].startswith("dog"))])


def hypernyms(graph: Any) -> list[Row]:
    return [edge for edge in edges(graph) if edge.get("relation") == "_hypernym"]


def w14(graph: Any) -> list[Row]:
    data = {node["id"]: node for node in nodes(graph)}
    rows = []
    for a in nodes(graph):
        for at, up in enumerate(hypernyms(graph)):
            for other, down in enumerate(hypernyms(graph)):
                if (
                    up["source"] == a["id"]
                    and down["target"] == up["target"]
                    and at != other
                    and a["id"] < down["source"]
                ):
                    rows.append({"a": a, "h": data[up["target"]], "b": data[down["source"]]})
    return rows[:1000]


def w15(graph: Any) -> list[Row]:
    left, right = above(graph, ["dog.n.01"]), above(graph, ["cat.n.01"])
    rows = []
    for one in left:
        for other in right:
            if one["id"] == other["id"]:
                rows.append(joined(one, other, "id", names_of(left), names_of(right)))
    return sorted(rows, key=lambda row: row["depth"] + row["right.depth"])[:1]


def w16(graph: Any) -> list[Row]:
    rows = [
        {"target": name, "count": len(group)} for (name,), group in grouped(hypernyms(graph), lambda e: (e["target"],))
    ]
    return descending(rows, lambda row: row["count"])[:10]


def w17(graph: Any) -> list[Row]:
    groups = grouped(edges(graph), lambda edge: (edge["source"],))
    return [
        {"source": name, "types": len({edge["relation"] for edge in group if edge.get("relation") is not None})}
        for (name,), group in groups
    ]


def circles(
    graph: Any, most: int, usable: Callable[[Row], bool], holds: Callable[[list[Row]], bool] = lambda along: True
) -> list[Row]:
    """Every simple cycle of a directed graph, from the first node from which it holds; shorter first, then in the graph's order."""
    names, every = list(graph), edges(graph)
    place = {name: at for at, name in enumerate(names)}
    found: dict[frozenset[int], tuple[Any, Row]] = {}

    def grown(along: list[int]) -> None:
        last, first = every[along[-1]]["target"], every[along[0]]["source"]
        if last == first:
            if holds([every[at] for at in along]) and frozenset(along) not in found:
                nodes_along = [every[at]["source"] for at in along]
                key = (len(along), place[first], along)
                found[frozenset(along)] = (key, path_row([*nodes_along, first], [every[at] for at in along]))
            return
        if len(along) < most and last not in [every[at]["source"] for at in along]:
            for at, edge in enumerate(every):
                if edge["source"] == last and usable(edge):
                    grown([*along, at])

    for name in names:  # the first node from which the order holds comes first
        for at, edge in enumerate(every):
            if edge["source"] == name and usable(edge):
                grown([at])
    return [row for _, row in sorted(found.values(), key=lambda each: each[0])]


def w18(graph: Any) -> list[Row]:
    return circles(graph, 6, lambda edge: edge.get("relation") == "_hypernym")


def w19(graph: Any) -> list[Row]:
    texts = [node.get("definition") for node in nodes(graph)]
    lengths = [len(text) for text in texts if isinstance(text, str | list)]
    return [{"mid": statistics.median(lengths), "p95": percentile(lengths, 0.95)}]
