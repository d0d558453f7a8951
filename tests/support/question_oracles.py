"""The thirty questions, answered by plain Python from the data of the graphs alone: no module of the project is used.

Each function returns the rows of the last command of its program, in order.
"""

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from hashlib import blake2b
from typing import Any

import networkx as nx

from support.question_data import Row, degree, descending, edges, grouped, instant, nodes, path_row, people, percentile
from support.question_oracles_words import circles, w13, w14, w15, w16, w17, w18, w19

__all__ = ["ORACLES", "same_person"]


# The story


def d1(graph: Any) -> list[Row]:
    ranked = descending(people(graph), lambda node: degree(graph, node["id"]))
    return [{"id": node["id"], "links": degree(graph, node["id"])} for node in ranked[:10]]


def d2(graph: Any) -> list[Row]:
    return [
        node for node in nodes(graph) if isinstance(node.get("source_id"), list | str) and len(node["source_id"]) > 2
    ]


def d3(graph: Any) -> list[Row]:
    mentions = []
    for node in people(graph):
        chunks = node.get("source_id")
        for chunk in chunks if isinstance(chunks, list) else [] if chunks is None else [chunks]:
            mentions.append((node["id"], chunk))
    counts: Counter[tuple[str, str]] = Counter()
    for one, chunk in mentions:
        for other, same in mentions:
            if chunk is not None and chunk == same and one < other:
                counts[one, other] += 1
    return [{"id": one, "right.id": other, "count": count} for (one, other), count in counts.items()]


def incident(graph: Any, name: Any) -> Iterator[tuple[int, Row, Any]]:
    """The edges at a node of an undirected graph, with their positions and their other ends."""
    for at, edge in enumerate(edges(graph)):
        if edge["source"] == name:
            yield at, edge, edge["target"]
        elif edge["target"] == name:
            yield at, edge, edge["source"]


def d4(graph: Any) -> list[Row]:
    by_name = {node["id"]: node for node in nodes(graph)}
    rows = []
    for p in people(graph):
        for first, r, middle in incident(graph, p["id"]):
            if by_name[middle].get("entity_type") in ("EVENT", "GEO"):
                for second, s, q in incident(graph, middle):
                    if first != second and by_name[q].get("entity_type") == "PERSON" and p["id"] < q:
                        rows.append({"p": p, "r": r, "o": by_name[middle], "s": s, "q": by_name[q]})
    return rows


def trigrams(text: str) -> set[str]:
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)).casefold()
    found = set()
    for word in re.findall(r"[^\W_]+", plain):
        padded = f"  {word} "
        found |= {padded[at : at + 3] for at in range(len(padded) - 2)}
    return found


def same_person(one: str, other: str) -> str:
    """The answer of the scripted model about two names."""
    return "same" if set(one.lower().split()) <= set(other.lower().split()) else "different"


def d5(graph: Any) -> list[Row]:
    everyone = people(graph)
    pairs = []
    for at, one in enumerate(everyone):
        for other in everyone[at + 1 :]:
            common, whole = trigrams(one["id"]) & trigrams(other["id"]), trigrams(one["id"]) | trigrams(other["id"])
            if len(common) / len(whole) >= 0.45:
                pairs.append((len(common) / len(whole), one, other))
    rows = []
    for likeness, one, other in sorted(pairs, key=lambda pair: -pair[0]):
        row = dict(one)
        row.update({f"right.{name}": value for name, value in other.items()})
        rows.append({**row, "similarity": likeness, "label": same_person(one["id"], other["id"])})
    return rows


def folded(text: str) -> str:
    bare = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(bare.casefold().split())


def d6(graph: Any) -> list[Row]:
    groups = grouped(nodes(graph), lambda node: (folded(node["id"]),))
    rows = [{"key": key, "n": len(group), "names": [node["id"] for node in group]} for (key,), group in groups]
    return [row for row in rows if row["n"] > 1]


def d7(graph: Any) -> list[Row]:
    kind = {node["id"]: node.get("entity_type") for node in nodes(graph)}
    groups = grouped(edges(graph), lambda edge: (kind[edge["source"]], kind[edge["target"]]))
    return [
        {"source.entity_type": source, "target.entity_type": target, "count": len(group)}
        for (source, target), group in groups
    ]


def weighted_links(graph: Any) -> dict[Any, dict[Any, float]]:
    links: dict[Any, dict[Any, float]] = {name: {} for name in graph}
    for edge in edges(graph):
        weight = 1.0 if edge["weight"] is None else edge["weight"]
        for one, other in {(edge["source"], edge["target"]), (edge["target"], edge["source"])}:
            links[one][other] = links[one].get(other, 0.0) + weight
    return links


def pageranks(graph: Any) -> dict[Any, float]:
    links = weighted_links(graph)
    count = len(links)
    ranks = dict.fromkeys(links, 1 / count)
    for _ in range(500):
        lost = sum(ranks[name] for name in links if not links[name])
        following = dict.fromkeys(links, 0.15 / count + 0.85 * lost / count)
        for name, near in links.items():
            for other, weight in near.items():
                following[other] += 0.85 * ranks[name] * weight / sum(near.values())
        ranks = following
    return ranks


def community_numbers(graph: Any) -> dict[Any, int]:
    """The partition of the greatest modularity that is found from many seeds; the largest group is 0, then by first node."""
    weighted: Any = nx.Graph()
    weighted.add_nodes_from(graph)
    for one, near in weighted_links(graph).items():
        weighted.add_weighted_edges_from((one, other, weight) for other, weight in near.items())
    best: Any = max(
        (nx.community.louvain_communities(weighted, seed=seed) for seed in range(60)),
        key=lambda groups: nx.community.modularity(weighted, groups),
    )
    place = {name: at for at, name in enumerate(graph)}
    ranked = sorted(best, key=lambda group: (-len(group), min(place[name] for name in group)))
    return {name: number for number, group in enumerate(ranked) for name in group}


def d8(graph: Any) -> list[Row]:
    ranks, numbers = pageranks(graph), community_numbers(graph)
    rows = [{"id": name, "communities": numbers[name], "pagerank": ranks[name]} for name in graph]
    ranked = descending(rows, lambda row: row["pagerank"])
    return [row for _, group in grouped(ranked, lambda row: (row["communities"],)) for row in group[:3]]


def d9(graph: Any) -> list[Row]:
    chosen = [node["id"] for node in people(graph)]
    inner: Any = nx.Graph()
    inner.add_nodes_from(name for name in graph if name in chosen and any(o in chosen for o in graph.adj[name]))
    inner.add_edges_from((e["source"], e["target"]) for e in edges(graph) if {e["source"], e["target"]} <= set(chosen))
    return [{"id": name, "betweenness": value} for name, value in nx.betweenness_centrality(inner).items()]


Trail = tuple[list[Any], list[Row], list[int]]


def trails(
    graph: Any, start: Any, *, ends: Callable[[Any], bool], most: int, usable: Callable[[Row], bool] = lambda edge: True
) -> Iterator[Trail]:
    """Every simple path of at most ``most`` edges from ``start``: its nodes, its edges and the edges' positions."""

    def grown(names: list[Any], along: list[Row], at: list[int]) -> Iterator[Trail]:
        if along and ends(names[-1]):
            yield names, along, at
        if len(along) == most:
            return
        for place, edge in enumerate(edges(graph)):
            ways = {(edge["source"], edge["target"])}
            if not graph.is_directed():
                ways.add((edge["target"], edge["source"]))
            for source, target in ways:
                if source == names[-1] and target not in names and usable(edge):
                    yield from grown([*names, target], [*along, edge], [*at, place])

    return grown([start], [], [])


def d10(graph: Any) -> list[Row]:
    every = list(trails(graph, "SCROOGE", ends=lambda name: name == "TINY TIM", most=7))
    least = min(len(along) for _, along, _ in every)
    shortest = sorted((at, names, along) for names, along, at in every if len(along) == least)
    return [path_row(names, along) for _, names, along in shortest]


def d11(graph: Any) -> list[Row]:
    return [node for node in nodes(graph) if degree(graph, node["id"]) == 0]


def d12(graph: Any) -> list[Row]:
    every = nodes(graph)
    groups = grouped(every, lambda node: (node.get("entity_type"),))
    return [{"entity_type": kind, "share": len(group) / len(every)} for (kind,), group in groups]


# The transfers


def ends(graph: Any, edge: Row, name: str) -> tuple[Any, Any]:
    return graph.nodes[edge["source"]].get(name), graph.nodes[edge["target"]].get(name)


def b20(graph: Any) -> list[Row]:
    rows = []
    for (payer, payee), group in grouped(edges(graph), lambda edge: ends(graph, edge, "bank")):
        amounts = [edge["amount"] for edge in group if edge["amount"] is not None]
        total = sum(amounts) if amounts else None
        usual = sum(amounts) / len(amounts) if amounts else None
        rows.append({"payer": payer, "payee": payee, "total": total, "usual": usual, "n": len(group)})
    return rows


def b21(graph: Any) -> list[Row]:
    limit = percentile([edge["amount"] for edge in edges(graph) if edge["amount"] is not None], 0.99)
    return [edge for edge in edges(graph) if edge["amount"] is not None and edge["amount"] > limit]


def b22(graph: Any) -> list[Row]:
    return [
        edge
        for edge in edges(graph)
        if None not in ends(graph, edge, "country") and len(set(ends(graph, edge, "country"))) == 2
    ]


def b23(graph: Any) -> list[Row]:
    def rising(along: list[Row]) -> bool:
        dates = [edge["date"] for edge in along]
        if None in dates or len({type(each) for each in dates}) > 1:
            return False
        return all(one <= other for one, other in itertools.pairwise(dates))

    return circles(graph, 5, lambda edge: edge["amount"] is not None and edge["amount"] >= 1000, rising)


def b24(graph: Any) -> list[Row]:
    chosen = [edge for edge in edges(graph) if edge["amount"] is not None and 9000 <= edge["amount"] < 10000]

    def day(edge: Row) -> str | None:
        found = instant(edge["at"])
        return None if found is None else found.date().isoformat()

    rows = [
        {"source": source, "day": at, "n": len(group), "total": sum(edge["amount"] for edge in group)}
        for (source, at), group in grouped(chosen, lambda edge: (edge["source"], day(edge)))
    ]
    return [row for row in rows if row["n"] >= 5]


def b25(graph: Any) -> list[Row]:
    passed: list[Row] = []
    paid = [(at, edge) for at, edge in enumerate(edges(graph)) if edge.get("relation") == "TRANSFER"]
    for name in graph:
        for first, x in paid:
            for second, y in paid:
                if x["source"] != name or x["target"] != y["source"] or first == second:
                    continue
                if None in (x["amount"], y["amount"], x["date"], y["date"]) or y["amount"] < 0.9 * x["amount"]:
                    continue
                if not (isinstance(x["date"], str) and isinstance(y["date"], str) and x["date"] <= y["date"]):
                    continue
                try:
                    days = (date.fromisoformat(y["date"]) - date.fromisoformat(x["date"])).days
                except ValueError:
                    continue
                if days <= 2:
                    passed.append({"b": x["target"], "amount": y["amount"]})
    return [
        {"account": account, "times": len(group), "total": sum(row["amount"] for row in group)}
        for (account,), group in grouped(passed, lambda row: (row["b"],))
    ]


def b26(graph: Any) -> list[Row]:
    every = trails(graph, "A1", ends=lambda name: name == "Z9", most=10, usable=lambda edge: edge["fee"] is not None)
    ranked = sorted((sum(edge["fee"] for edge in along), len(along), at, names) for names, along, at in every)
    return [{"nodes": names, "cost": cost} for cost, _, _, names in ranked[:3]]


def b27(graph: Any) -> list[Row]:
    def month(edge: Row) -> str | None:
        found = instant(edge["at"])
        return None if found is None else found.date().replace(day=1).isoformat()

    rows = []
    for (first, currency), group in grouped(edges(graph), lambda edge: (month(edge), edge["currency"])):
        amounts = [edge["amount"] for edge in group if edge["amount"] is not None]
        rows.append({"month": first, "currency": currency, "total": sum(amounts) if amounts else None})
    return rows


def b28(graph: Any) -> list[Row]:
    ranked = descending(edges(graph), lambda edge: edge["at"])
    return [group[0] for _, group in grouped(ranked, lambda edge: (edge["source"],))]


def b29(graph: Any) -> list[Row]:
    paid = [(at, edge) for at, edge in enumerate(edges(graph)) if edge.get("relation") == "TRANSFER"]
    both: list[Row] = []
    for name in graph:
        for first, one in paid:
            for second, other in paid:
                if (
                    one["source"] == name
                    and one["target"] == other["target"]
                    and first != second
                    and name < other["source"]
                ):
                    both.append({"source": name, "target": other["source"], "payee": one["target"]})
    rows = [
        {"source": source, "target": target, "common": len({row["payee"] for row in group})}
        for (source, target), group in grouped(both, lambda row: (row["source"], row["target"]))
    ]
    done = {(edge["source"], edge["target"]) for edge in edges(graph)}
    return [row for row in rows if row["common"] >= 2 and (row["source"], row["target"]) not in done]


def b30(graph: Any) -> list[Row]:
    chosen = [e for e in edges(graph) if e["source"] == "A1" and e["amount"] is not None and e["amount"] >= 5000.0]
    ranked = sorted(range(len(chosen)), key=lambda at: blake2b(at.to_bytes(8, "big"), digest_size=8).digest())
    return [chosen[at] for at in sorted(ranked[:50])]


ORACLES: dict[str, Callable[[Any], list[Row]]] = {
    function.__name__.upper(): function
    for function in (
        d1, d2, d3, d4, d5, d6, d7, d8, d9, d10, d11, d12, w13, w14, w15, w16, w17, w18, w19,
        b20, b21, b22, b23, b24, b25, b26, b27, b28, b29, b30,
    )
}  # fmt: skip
"""The answer of each question by its name."""
