"""The analysis rows of the targets: paths and measures of a graph in memory, beside igraph in the same process.

    python tests/bench/bench_analysis.py [NODES] [--rounds N] [--quick] [--only paths,measures,communities] [--cpu]

NODES (default 100,000) and five times as many random edges, directed and undirected. Both sides hold the same graph and run in
turn, N times (default 5) after two warm-up rounds, which build what each side builds on first use. The table has medians in
milliseconds, and the ratio of ours to the other side with the ratio to reach. With --cpu, the times are processor time, for a busy machine.

A section is a function in ``SECTIONS`` that yields rows for one graph; a new section needs no other change. A row has a name, a
call for each side that returns what both must agree on, and the ratio to reach.
"""

import gc
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping
from random import Random
from time import perf_counter, process_time
from typing import Any

from attrs import frozen
from knotwork.adapters.graph import Caps
from knotwork.adapters.graph_networkx import NetworkXAdapter
from knotwork.lang.trees.conditions import Field

CAPS = Caps(max_results=10**9, max_paths=10**9, timeout_s=600.0)
PAIRS = 10
CLOCK = process_time if "--cpu" in sys.argv else perf_counter


@frozen
class Row:
    """One line of the table. ``agree`` compares the two results; ``target`` is the ratio to reach, None where none is set."""

    name: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    target: float | None
    agree: Callable[[Any, Any], bool]


@frozen
class Sides:
    """The same graph on both sides: an adapter, an igraph graph, and pairs of nodes to connect."""

    adapter: NetworkXAdapter
    igraph: Any
    pairs: list[tuple[int, int]]


def sides(nodes: int, directed: bool) -> Sides:
    """Return a random graph with weights and whole costs on both sides."""
    import igraph
    import networkx as nx

    random = Random(1)
    graph: Any = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(range(nodes))
    for _ in range(5 * nodes):
        source, target = random.randrange(nodes), random.randrange(nodes)
        if source != target:
            graph.add_edge(source, target, w=random.random(), cost=random.randint(1, 100))
    edges = list(graph.edges(data=True))
    other = igraph.Graph(nodes, [edge[:2] for edge in edges], directed=directed)
    for name in ("w", "cost"):
        other.es[name] = [edge[2][name] for edge in edges]
    pairs = [(random.randrange(nodes), random.randrange(nodes)) for _ in range(PAIRS)]
    return Sides(NetworkXAdapter(graph), other, pairs)


def paths(at: Sides) -> Iterator[Row]:
    """Shortest and cheapest paths of some pairs of nodes."""
    adapter, other, pairs = at.adapter, at.igraph, at.pairs

    def ours(**options: Any) -> list[Any]:
        return [list(adapter.paths([s], [t], shortest=True, caps=CAPS, **options).items) for s, t in pairs]

    def lengths(mine: Any, its: Any) -> bool:
        return all(
            (found[0]["length"] if found else 0) == max(len(p) - 1, 0) for found, p in zip(mine, its, strict=True)
        )

    def costs(name: str) -> Callable[[Any, Any], bool]:
        def agree(mine: Any, its: Any) -> bool:
            for found, edges in zip(mine, its, strict=True):
                total = sum(other.es[edge][name] for edge in edges)
                if abs((found[0]["cost"] if found else 0) - total) > 1e-9 * max(total, 1):
                    return False
            return True

        return agree

    yield Row("SHORTEST, all of each pair", lambda: ours(),
              lambda: [other.get_shortest_path(s, t) for s, t in pairs], 2.0, lengths)  # fmt: skip
    for name in ("cost", "w"):
        yield Row(
            f"SHORTEST BY {name}", lambda name=name: ours(cost=Field((name,))),
            lambda name=name: [other.get_shortest_path(s, t, weights=name, output="epath") for s, t in pairs],
            4.0, costs(name),
        )  # fmt: skip
    yield Row(
        "SHORTEST 3 BY cost, 1 pair", lambda: list(adapter.paths(
            [pairs[0][0]], [pairs[0][1]], shortest=True, count=3, cost=Field(("cost",)), caps=CAPS).items),
        lambda: other.get_k_shortest_paths(*pairs[0], k=3, weights="cost", output="epath"), None,
        lambda mine, its: [item["cost"] for item in mine] == [sum(other.es[e]["cost"] for e in p) for p in its],
    )  # fmt: skip


def measures(at: Sides) -> Iterator[Row]:
    """Measures of all nodes. What is timed includes the values as Python numbers, not the rows, which are built when read."""
    adapter, other = at.adapter, at.igraph
    directed = adapter.graph.is_directed()

    def ours(algorithm: str, **options: Any) -> Callable[[], Any]:
        return lambda: adapter.measure(algorithm, caps=CAPS, **options).items

    def close(name: str) -> Callable[[Any, Any], bool]:
        return lambda mine, its: all(abs(a[name] - b) < 1e-4 for a, b in zip(mine, its, strict=True))

    def same(name: str) -> Callable[[Any, Any], bool]:
        return lambda mine, its: [item[name] for item in mine] == list(its)

    def groups(name: str) -> Callable[[Any, Any], bool]:
        return lambda mine, its: (
            len({item[name] for item in mine})
            == len(set(its))
            == len({(item[name], group) for item, group in zip(mine, its, strict=True)})
        )

    yield Row("pagerank", ours("pagerank"), lambda: other.pagerank(), 1.5, close("pagerank"))
    yield Row("pagerank BY w", ours("pagerank", weight=Field(("w",))), lambda: other.pagerank(weights="w"), None,
              close("pagerank"))  # fmt: skip
    yield Row("components", ours("components"), lambda: other.connected_components(mode="weak").membership, 3.0,
              groups("components"))  # fmt: skip
    if directed:
        yield Row(
            "strong_components", ours("strong_components"),
            lambda: other.connected_components(mode="strong").membership, None, groups("strong_components"),
        )  # fmt: skip
    else:
        yield Row("core_number", ours("core_number"), lambda: other.coreness(), None, same("core_number"))
        yield Row(
            "triangles", ours("triangles"), lambda: other.list_triangles(), None,
            lambda mine, its: sum(item["triangles"] for item in mine) == 3 * len(its),
        )  # fmt: skip


def communities(at: Sides) -> Iterator[Row]:
    """Communities of smaller graphs, undirected: a random one, and one with 20 groups. igraph draws the same random numbers as ours."""
    import igraph
    import networkx as nx

    if at.adapter.graph.is_directed():
        return
    random, planted = (
        nx.gnm_random_graph(2_000, 10_000, seed=1),
        nx.planted_partition_graph(20, 100, 0.1, 0.003, seed=1),
    )
    for name, graph in (("communities, random, 2,000 nodes", random), ("communities, 20 groups of 100", planted)):
        adapter, other = NetworkXAdapter(graph), igraph.Graph(len(graph), list(graph.edges))

        def theirs(other: Any = other) -> list[int]:
            igraph.set_random_number_generator(Random(0))
            return list(other.community_multilevel(weights=[1.0] * other.ecount()).membership)

        def agree(mine: Any, its: Any, other: Any = other) -> bool:
            found = other.modularity([item["communities"] for item in mine])
            return bool(abs(found - other.modularity(its)) <= 0.01 * found)

        yield Row(
            name, lambda adapter=adapter: adapter.measure("communities", caps=CAPS).items, theirs, 3.0, agree
        )  # fmt: skip


SECTIONS: Mapping[str, Callable[[Sides], Iterator[Row]]] = {
    "paths": paths, "measures": measures, "communities": communities,
}  # fmt: skip


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the milliseconds of one run and its result; the collector rests meanwhile, for both sides alike."""
    gc.collect(0)
    gc.disable()
    began = CLOCK()
    result = run()
    took = 1000 * (CLOCK() - began)
    gc.enable()
    return took, result


def show(row: Row, rounds: int) -> bool:
    """Run both sides of a row in turn, print its line, and return whether the results agree."""
    times: tuple[list[float], list[float]] = ([], [])
    agree = True
    for turn in range(rounds + 2):
        results = []
        for took, run in zip(times, (row.ours, row.theirs), strict=True):
            spent, result = timed(run)
            results.append(result)
            if turn > 1:
                took.append(spent)
        agree = agree and (turn > 0 or row.agree(*results))
    mine, its = map(statistics.median, times)
    target = "" if row.target is None else f"(to reach: {row.target:g})"
    said = "" if agree else "   THE RESULTS DIFFER"
    print(f"{row.name:<32} {mine:>10.1f} {its:>10.1f} {mine / its:>8.2f} {target}{said}", flush=True)
    return agree


def main(nodes: int, rounds: int, only: list[str]) -> bool:
    """Run the sections on a directed and an undirected graph; return whether all results agree."""
    agree = True
    for directed in (True, False):
        at = sides(nodes, directed)
        print(f"\n{'directed' if directed else 'undirected'}: {nodes:,} nodes, {at.igraph.ecount():,} edges")
        for name in only:
            print(f"{name:<32} {'ours, ms':>10} {'igraph':>10} {'ratio':>8}")
            for row in SECTIONS[name](at):
                agree = show(row, rounds) and agree
    return agree


if __name__ == "__main__":
    arguments = sys.argv[1:]
    quick = "--quick" in arguments
    number = next(
        (int(text.replace(",", "")) for text in arguments[:1] if text[:1].isdigit()), 2_000 if quick else 100_000
    )
    turns = int(arguments[arguments.index("--rounds") + 1]) if "--rounds" in arguments else 2 if quick else 5
    names = arguments[arguments.index("--only") + 1].split(",") if "--only" in arguments else list(SECTIONS)
    sys.exit(0 if main(number, turns, names) else 1)
