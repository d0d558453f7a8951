"""The FIND row of the targets: five queries over a graph in memory, against graph databases and a data frame library.

    python tests/bench/bench_find.py [NODES] [--rounds N] [--quick] [--alone] [--peers polars,kglite]

NODES (default 1,000,000) people, places and events, and five times as many directed edges: some 3 GB for the NetworkX graph
alone at the default, so the size is an argument, and what was measured is printed. All sides hold the same graph in one
process and run in turn, N times (default 7) after a first round that builds what each side builds on first use; the table
has medians, and the ratio of each to ours. ``--quick`` is a small graph without peers; ``--alone`` leaves the peers out,
``--peers`` all but those named (falkordblite loads some 10,000 edges a second; GrandCypher needs a second graph's memory).

What is timed is the same for all: the query is given (as a parsed condition, a text, an expression), every match is found
and counted, and the ids of the first 100 matches are Python objects. No side has to make an object of every match: ours
makes items when they are read, a database hands out rows when they are fetched. The counts must agree, or the row says so.
Peers (``peers_find``) get an index on what the queries compare with ``=`` where they have such a thing.
"""

import gc
import statistics
import sys
from collections.abc import Callable, Collection
from resource import RUSAGE_SELF, getrusage
from time import perf_counter
from typing import Any

from attrs import frozen
from knotwork.adapters.graph import Caps
from knotwork.adapters.graph_networkx import NetworkXAdapter
from knotwork.lang.trees.conditions import And, Comparison, Condition, Constant, Field
from peers_find import PEERS, QUERIES, Answer, Tables, tables

CAPS = Caps(max_results=10**9, max_paths=10**9, max_path_length=3, timeout_s=600.0)
FIRST = 100


@frozen
class Row:
    """Seconds of one side at one query, and how many matches it found; None where it can't."""

    seconds: list[float]
    count: int | None


def graph_of(data: Tables) -> Any:
    """Return the tables as a NetworkX graph."""
    import networkx as nx

    graph: Any = nx.DiGraph()
    columns = zip(range(len(data.kinds)), data.kinds, data.ages, data.names, strict=True)
    graph.add_nodes_from((node, {"kind": kind, "age": age, "name": name}) for node, kind, age, name in columns)
    edges = zip(data.sources, data.targets, data.relations, data.weights, strict=True)
    graph.add_edges_from((s, t, {"relation": relation, "weight": weight}) for s, t, relation, weight in edges)
    return graph


def is_(name: str, value: Any) -> Condition:
    """Return ``name = value``."""
    return Comparison(Field((name,)), "=", Constant(value))


def above(name: str, value: float) -> Condition:
    """Return ``name > value``."""
    return Comparison(Field((name,)), ">", Constant(value))


def ours(graph: Any) -> dict[str, Callable[[], Answer]]:
    """Return our side of the queries."""
    adapter = NetworkXAdapter(graph)
    many = And((is_("kind", "PERSON"), above("age", 49)))
    few = And((is_("kind", "RARE"), above("age", 49)))
    text = Comparison(Field(("name",)), "CONTAINS", Constant("12345"))
    edges = And((is_("relation", "RARE"), above("weight", 0.5)))
    starts, ends = is_("kind", "MAYOR"), is_("kind", "HARBOUR")

    def nodes(where: Condition) -> Answer:
        items = adapter.nodes(where, caps=CAPS).items
        return len(items), [item["id"] for item in items[:FIRST]]

    def of_edges() -> Answer:
        items = adapter.edges(edges, caps=CAPS).items
        return len(items), [(item["source"], item["target"]) for item in items[:FIRST]]

    def of_paths() -> Answer:
        items = adapter.paths(starts, ends, caps=CAPS).items
        return len(items), [(item["source"], item["target"]) for item in items[:FIRST]]

    runs = (lambda: nodes(many), lambda: nodes(few), lambda: nodes(text), of_edges, of_paths)
    return dict(zip(QUERIES, runs, strict=True))


def timed(run: Callable[[], Answer]) -> tuple[float, int]:
    """Time one run; the collector rests meanwhile, for all sides alike."""
    gc.collect(0)
    gc.disable()
    began = perf_counter()
    count, first = run()
    took = perf_counter() - began
    gc.enable()
    assert len(first) == min(count, FIRST)
    return took, count


def main(nodes: int, rounds: int, peers: Collection[str]) -> None:
    """Build all sides, run them in turn, print the table."""
    data = tables(nodes)
    began = perf_counter()
    sides = {"knotwork": ours(graph_of(data))}
    memory = getrusage(RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{nodes:,} nodes, {len(data.sources):,} edges; NetworkX graph built in {perf_counter() - began:.0f} s", end=""
    )
    print(f", with which the process takes {memory:.1f} GB", flush=True)
    for name, prepare in PEERS.items():
        if name not in peers:
            continue
        began = perf_counter()
        try:
            sides[name] = prepare(data, FIRST)
        except ImportError as error:
            print(f"{name} is not installed and left out ({error})", flush=True)
        else:
            print(f"{name} loaded in {perf_counter() - began:.0f} s", flush=True)
    gc.collect()
    gc.freeze()
    print(
        f"medians of {rounds} warm rounds, all sides in turn (GrandCypher: one round, at most a minute a query)",
        flush=True,
    )
    for query in QUERIES:
        table: dict[str, Row] = {}
        for turn in range(rounds + 1):
            for name, side in sides.items():
                if query not in side or (name in table and table[name].count is None) or ("Grand" in name and turn > 0):
                    continue
                try:
                    took, count = timed(side[query])
                except TimeoutError:
                    table[name] = Row([60.0], None)
                    continue
                row = table.setdefault(name, Row([], count))
                row.seconds.append(took)
        show(query, table, sides)


def show(query: str, table: dict[str, Row], sides: dict[str, Any]) -> None:
    """Print a query's rows."""
    right = table["knotwork"].count
    base = statistics.median(table["knotwork"].seconds[1:])
    print(f"\n{query:<46} {'warm':>12} {'first':>12} {'ratio':>8}   matches")
    for name in sides:
        if name not in table:
            print(f"  {name:<44} {'-':>12}")
            continue
        row = table[name]
        warm = statistics.median(row.seconds[1:] or row.seconds)
        more = "stopped" if row.count is None else f"{row.count:,}" + ("" if row.count == right else "  DIFFERENT")
        print(
            f"  {name:<44} {warm * 1e3:>9.3f} ms {row.seconds[0] * 1e3:>9.1f} ms {warm / base:>8.1f}   {more}",
            flush=True,
        )


if __name__ == "__main__":
    words = sys.argv[1:]
    quick = "--quick" in words
    turns = int(words[words.index("--rounds") + 1]) if "--rounds" in words else 3 if quick else 7
    sizes = [int(word) for at, word in enumerate(words) if word.isdigit() and words[at - 1] != "--rounds"]
    chosen = words[words.index("--peers") + 1].split(",") if "--peers" in words else list(PEERS)
    if quick or "--alone" in words:
        chosen = []
    main(20_000 if quick else sizes[0] if sizes else 1_000_000, turns, chosen)
