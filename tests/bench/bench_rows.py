"""The commands on rows over a found variable, against polars, heapq and plain Python.

    python tests/bench/bench_rows.py [EDGES] [--rounds N] [--quick]

A directed graph of EDGES edges (default 500,000) and a fifth as many nodes: each edge has a relation (20 texts), a float ``amount`` with
2 decimals, an integer ``day`` and a source. All sides are in one process and run in turn, N times (default 7) after a first round that
builds what each side builds on first use; the table has medians and the ratio of ours to the other side. Ours is the whole command as the
executor runs it, with its check, its record, its provenance and its history. Polars needs to be installed (it is not a dependency); its
frames exist before the clock starts.
"""

import heapq
import statistics
import sys
from collections.abc import Callable
from random import Random
from time import perf_counter
from typing import Any

from knotwork import gasl

LEAST = 0.5


def graph_of(edges: int) -> Any:
    """Return the graph."""
    import networkx as nx

    chance = Random(1)
    nodes = max(2, edges // 5)
    graph: Any = nx.DiGraph()
    graph.add_nodes_from((at, {"name": f"Person {at}", "country": f"C{at % 150}"}) for at in range(nodes))
    graph.add_edges_from(
        (
            chance.randrange(nodes), chance.randrange(nodes),
            {"relation": f"r{chance.randrange(20)}", "amount": round(chance.random() * 10_000, 2), "day": chance.randrange(365)},
        )
        for _ in range(edges)
    )  # fmt: skip
    return graph


def names(count: int) -> list[str]:
    """Return names of persons in several spellings."""
    chance = Random(2)
    first = ["".join(chance.choice("bcdfghklmnprstvw") + chance.choice("aeiou") for _ in range(3)) for _ in range(300)]
    last = ["".join(chance.choice("bcdfghklmnprstvw") + chance.choice("aeiou") for _ in range(4)) for _ in range(3_000)]
    made = []
    for _ in range(count):
        one, other = chance.choice(first), chance.choice(last)
        made.append(
            chance.choice([f"{one} {other}", f"{other}, {one}", f"{one[0]}. {other}", f"{one} {other}".upper()])
        )
    return made


def measured(sides: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the median of each side's seconds; the sides run in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for at in range(rounds + 1):
        for name, run in sides.items():
            began = perf_counter()
            run()
            if at:
                seconds[name].append(perf_counter() - began)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def main(edges: int, rounds: int) -> None:
    """Measure and print."""
    graph = graph_of(edges)
    executor = gasl.open(graph)
    items = executor.adapter.find_edges()

    def ours(*commands: str) -> Callable[[], Any]:
        def run() -> Any:
            record = None
            for command in commands:
                record = executor.execute_one(command)
                assert record.ok, record.error
            return record

        return run

    began = perf_counter()
    ours("FIND edges AS e")()
    print(f"{graph.number_of_edges():,} edges; first FIND edges {perf_counter() - began:.3f} s")
    began = perf_counter()
    ours("FIND edges ORDER BY amount DESC LIMIT 10 AS top")()
    first = perf_counter() - began
    attributes = [data for *_, data in graph.edges(data=True)]
    began = perf_counter()
    heapq.nlargest(10, ((data["amount"], at) for at, (*_, data) in enumerate(graph.edges(data=True))))
    print(
        f"top 10 with its column for the first time: {first:.3f} s; heapq over the graph {perf_counter() - began:.3f} s"
    )

    def heap() -> Any:
        return heapq.nlargest(10, attributes, key=lambda data: data["amount"])

    rows: list[tuple[str, dict[str, Callable[[], Any]]]] = [
        ("FIND edges", {"ours": ours("FIND edges AS e")}),
        ("top 10 of edges", {"ours": ours("FIND edges ORDER BY amount DESC LIMIT 10 AS top"), "heapq": heap}),
        ("RANK LIMIT 10", {"ours": ours("RANK e BY amount DESC LIMIT 10 AS top"), "heapq": heap}),
    ]
    try:
        import polars as pl
    except ModuleNotFoundError:
        pl = None
    frame = None if pl is None else pl.DataFrame(items)
    countries = {node: data["country"] for node, data in graph.nodes(data=True)}
    ends = None if pl is None else pl.DataFrame({"source": list(countries), "country": list(countries.values())})
    people = None if pl is None else pl.DataFrame([{"id": node, **data} for node, data in graph.nodes(data=True)])
    few = [f"C{number}" for number in range(27)]  # 18 % of the 150 countries
    listed = ", ".join(f'"{name}"' for name in few)
    queries: list[tuple[str, str, Callable[[], Any]]] = [
        ("FIND 18 % of the nodes", f"FIND nodes WHERE country IN ({listed}) AS x",
            lambda: people.filter(pl.col("country").is_in(few)).to_dicts()),
        ("COUNT BY text", "COUNT e BY relation AS x", lambda: frame.group_by("relation").len().to_dicts()),
        (
            "mean by text", "AGGREGATE e BY relation COMPUTE mean(amount) AS x",
            lambda: frame.group_by("relation").agg(pl.col("amount").mean()).to_dicts(),
        ),
        (
            "sum, max by number", "AGGREGATE e BY day COMPUTE sum(amount), max(amount), count() AS x",
            lambda: frame.group_by("day").agg(pl.col("amount").sum(), pl.col("amount").max().alias("m"), pl.len()).to_dicts(),
        ),
        (
            "median by text", "AGGREGATE e BY relation COMPUTE median(amount) AS x",
            lambda: frame.group_by("relation").agg(pl.col("amount").median()).to_dicts(),
        ),
        (
            "COUNT BY end's field", "COUNT e BY source.country AS x",
            lambda: frame.join(ends, on="source").group_by("country").len().to_dicts(),
        ),
        (
            "COUNT BY source", "COUNT e BY source AS x", lambda: frame.group_by("source").len().to_dicts(),
        ),
        ("filter by numbers", "SELECT e WHERE amount > 9000 AND day < 100 AS x",
            lambda: frame.filter((pl.col("amount") > 9000) & (pl.col("day") < 100))),
        ("computed column", "AGGREGATE e BY relation COMPUTE sum(amount * 2) AS x",
            lambda: frame.group_by("relation").agg((pl.col("amount") * 2).sum()).to_dicts()),
    ]  # fmt: skip
    for title, command, other in queries:
        rows.append((title, {"ours": ours(command), **({} if pl is None else {"polars": other})}))
    for title, sides in rows:
        found = measured(sides, rounds)
        line = ", ".join(f"{name} {seconds * 1e3:,.1f} ms" for name, seconds in found.items())
        ratio = "".join(
            f"; {found['ours'] / seconds:.2f} x {name}" for name, seconds in found.items() if name != "ours"
        )
        print(f"{title:22} {line}{ratio}; {found['ours'] / graph.number_of_edges() * 1e6:.3f} us a row")
    executor.close()
    _similar(rounds)


def _similar(rounds: int) -> None:
    """Measure JOIN ... SIMILAR over 10,000 names, and a share of all pairs compared one by one."""
    import networkx as nx
    from knotwork.lang.evaluate.expr.text_functions import trigrams

    texts = names(10_000)
    graph: Any = nx.Graph()
    graph.add_nodes_from((at, {"name": text}) for at, text in enumerate(texts))
    with gasl.open(graph) as executor:
        executor.execute_one("FIND nodes AS people")
        taken = []
        for _ in range(max(1, rounds // 3)):
            began = perf_counter()
            record = executor.execute_one(f"JOIN people WITH people ON name SIMILAR {LEAST} AS pairs")
            taken.append(perf_counter() - began)
    sets = [trigrams(text) for text in texts]
    began, some = perf_counter(), 200
    for one in sets[:some]:
        for other in sets:
            common = len(one & other)
            _ = common / (len(one) + len(other) - common) >= LEAST
    every = (perf_counter() - began) * len(texts) / some / 2
    seconds = statistics.median(taken)
    print(
        f"JOIN SIMILAR {LEAST}, 10,000 names: {seconds:.2f} s, {record.metrics['count']:,} pairs; all pairs one by one {every:.1f} s "
        f"({every / seconds:.0f} x)"
    )


if __name__ == "__main__":
    given = sys.argv[1:]
    quick = "--quick" in given
    rounds = int(given[given.index("--rounds") + 1]) if "--rounds" in given else 1 if quick else 7
    sizes = [int(each.replace(",", "")) for each in given[:1] if each.replace(",", "").isdigit()]
    main(sizes[0] if sizes else 5_000 if quick else 500_000, rounds)
