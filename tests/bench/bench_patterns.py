"""The FIND patterns rows of the targets: two-edge patterns and triangles, against a data frame library, igraph and GrandCypher.

    python tests/bench/bench_patterns.py [--rounds N] [--quick] [--peers polars,igraph,GrandCypher]

All sides hold the same graph in one process and run in turn, N times (default 7) after a first round that builds what each side
builds on first use; the table has medians and our ratio to each peer. What is timed is the same for all: every match is found
and counted, as positions, rows of a frame or tuples of node numbers; no side makes an object of every match, except GrandCypher,
which has no other way and runs once. The counts must agree. Peers that are not installed are left out.
"""

import gc
import statistics
import sys
from collections.abc import Callable, Collection
from time import perf_counter
from typing import Any

import networkx as nx
import numpy as np
from attrs import frozen
from knotwork.adapters.graph import Caps
from knotwork.adapters.graph_networkx import NetworkXAdapter
from knotwork.lang.parse.gasl import parse_command
from knotwork.lang.trees.gasl import FindPatterns

CAPS = Caps(max_results=10**9, max_rows=10**9, max_examined=10**12, timeout_s=600.0)
TWO = "FIND patterns (a)-[x]->(b)-[y]->(c) AS rows"
DIFFERENT = "FIND patterns (a)-[x]->(b)-[y]->(c) WHERE a != c AS rows"  # as GrandCypher's nodes are
BETWEEN = "FIND patterns (a)-[x]->(b)-[y]->(c) WHERE y.amount >= 0.9 * x.amount AS rows"
TRIANGLES = "FIND patterns (a)-[x]-(b)-[y]-(c)-[z]-(a) WHERE a.id < b.id AND b.id < c.id AS rows"
Count = Callable[[], int]


@frozen
class Row:
    """A comparison: its name, our side, the peers, and how our time may relate to theirs."""

    name: str
    ours: Count
    peers: dict[str, Count]
    goal: str


def ours(graph: Any, text: str) -> Count:
    """Return our side: a parsed command over the graph."""
    command = parse_command(text).statements[0].command
    assert isinstance(command, FindPatterns)
    adapter = NetworkXAdapter(graph)
    return lambda: len(adapter.patterns(command.patterns, command.where, caps=CAPS).items)


def transfers(nodes: int, edges: int) -> tuple[Any, Any, Any, Any]:
    """Return a directed graph with an amount on every edge, and its edges as arrays."""
    rng = np.random.default_rng(1)
    sources, targets = np.divmod(np.unique(rng.integers(0, nodes * nodes, edges)), nodes)
    other = sources != targets
    sources, targets = sources[other], targets[other]
    amounts = rng.random(len(sources)) * 100
    graph: Any = nx.DiGraph()
    graph.add_nodes_from(range(nodes))
    rows = zip(sources.tolist(), targets.tolist(), amounts.tolist(), strict=True)
    graph.add_edges_from((source, target, {"amount": amount}) for source, target, amount in rows)
    return graph, sources, targets, amounts


def joined(sources: Any, targets: Any, amounts: Any, between: bool) -> Count:
    """Return polars' side: the table of edges joined with itself."""
    import polars as pl

    frame = pl.DataFrame({"id": np.arange(len(sources)), "source": sources, "target": targets, "amount": amounts})

    def run() -> int:
        rows = frame.join(frame, left_on="target", right_on="source", suffix="2")
        keep = pl.col("id") != pl.col("id2")
        if between:
            keep &= pl.col("amount2") >= 0.9 * pl.col("amount")
        return rows.filter(keep).height

    return run


def triangles(graph: Any) -> Count:
    """Return igraph's side: all triangles as triples of node numbers."""
    import igraph

    copy = igraph.Graph(n=graph.number_of_nodes(), edges=list(graph.edges))
    return lambda: len(copy.list_triangles())


def cypher(graph: Any, where: str = "") -> Count:
    """Return GrandCypher's side."""
    from grandcypher import GrandCypher

    text = f"MATCH (a)-[x]->(b)-[y]->(c) {where} RETURN a, c"
    return lambda: len(next(iter(GrandCypher(graph).run(text).values())))


def rows(small: bool, wanted: Collection[str]) -> list[Row]:
    """Return the comparisons; peers that are not installed or not wanted are left out."""

    def peers(**sides: Callable[[], Count]) -> dict[str, Count]:
        made: dict[str, Count] = {}
        for name, prepare in sides.items():
            if name in wanted:
                try:
                    made[name] = prepare()
                except ImportError as error:
                    print(f"{name} is not installed and left out ({error})", flush=True)
        return made

    scale = 50 if small else 1
    graph, *columns = transfers(180_000 // scale, 425_000 // scale)
    little = transfers(5_000 // scale, 10_000 // scale)[0]
    made = [
        Row("two edges, 1 million rows", ours(graph, TWO), peers(polars=lambda: joined(*columns, False)), "2 x polars"),
        Row(
            "the same with a condition between",
            ours(graph, BETWEEN),
            peers(polars=lambda: joined(*columns, True)),
            "2 x polars",
        ),
        Row(
            "two edges, 10,000 edges",
            ours(little, DIFFERENT),
            peers(GrandCypher=lambda: cypher(little)),
            "1/20 of GrandCypher",
        ),
    ]
    for name, build in (
        ("random graph", lambda: nx.gnm_random_graph(100_000 // scale, 500_000 // scale, seed=1)),
        ("preferential attachment", lambda: nx.barabasi_albert_graph(100_000 // scale, 5, seed=1)),
    ):
        graph = build()
        made.append(
            Row(f"triangles, {name}", ours(graph, TRIANGLES), peers(igraph=lambda: triangles(graph)), "2 x igraph")  # noqa: B023
        )
    return made


def timed(run: Count) -> tuple[float, int]:
    """Time one run; the collector rests meanwhile, for all sides alike."""
    gc.collect(0)
    gc.disable()
    began = perf_counter()
    count = run()
    took = perf_counter() - began
    gc.enable()
    return took, count


def main(rounds: int, small: bool, wanted: Collection[str]) -> None:
    """Run all comparisons and print the table."""
    gc.freeze()
    print(f"medians of {rounds} warm rounds, all sides in turn (GrandCypher: one round)")
    for row in rows(small, wanted):
        sides = {"knotwork": row.ours, **row.peers}
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        counts: dict[str, int] = {}
        for turn in range(rounds + 1):
            for name, side in sides.items():
                if name == "GrandCypher" and turn:
                    continue
                took, counts[name] = timed(side)
                if turn or name == "GrandCypher":
                    seconds[name].append(took)
        base = statistics.median(seconds["knotwork"])
        first = f"{row.name:<36} {counts['knotwork']:>9,} rows  knotwork {base * 1e3:8.1f} ms"
        others = [
            f"{name} {statistics.median(times) * 1e3:8.1f} ms (ours is {base / statistics.median(times):.3f} x)"
            + ("" if counts[name] == counts["knotwork"] else f" FINDS {counts[name]:,}")
            for name, times in seconds.items()
            if name != "knotwork"
        ]
        print(f"{first}  {'  '.join(others)}  goal: at most {row.goal}", flush=True)


if __name__ == "__main__":
    given = sys.argv[1:]
    named = given[given.index("--peers") + 1].split(",") if "--peers" in given else ["polars", "igraph", "GrandCypher"]
    times = int(given[given.index("--rounds") + 1]) if "--rounds" in given else 7
    main(2 if "--quick" in given else times, "--quick" in given, named)
