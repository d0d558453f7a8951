"""GASL on a Ladybug database against the same query written in Cypher by hand, in one process.

    python tests/bench/bench_graph_databases.py [NODES] [EDGES] [--rounds N] [--quick] [--folder FOLDER] [--only TEXT]

NODES (default 100,000) people and places, EDGES (default five times NODES); 1,000,000 5,000,000 is the size to reach. The database is
written with COPY, which is not measured, to a temporary folder or to FOLDER, where a later run finds it. Both sides run in turn, N
times (default 5) after a first round. Times are CPU seconds of the process (all its threads), medians; the ratio is ours to the query
by hand. Ours includes the items of all result rows; the query by hand fetches its rows as lists. The numbers of rows must agree, or
the row says so. Memory is the peak of what Python and NumPy allocate in one more round of ours; the engine's own memory and Arrow
columns are not included.
"""

import argparse
import random
import statistics
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from knotwork import gasl
from knotwork.adapters.graph import Caps
from knotwork.adapters.graph_cypher import open_database
from knotwork.adapters.graph_cypher.adapter import CypherAdapter
from knotwork.adapters.graph_cypher.ladybug_database import load_ladybug
from knotwork.lang.trees.conditions import Field
from knotwork.lang.trees.gasl import Order

CAPS = Caps(max_results=10**8, timeout_s=600.0)
RELATIONS = ("KNOWS", "LIVES_IN")


def write(folder: Path, nodes: int, edges: int) -> Path:
    """Write the database."""
    ladybug = load_ladybug()
    chosen = random.Random(1)
    people = nodes * 9 // 10
    with (folder / "person.csv").open("w") as file:
        file.writelines(
            f"p{at},Name {at % 5000},{chosen.randrange(1900, 2020)},{chosen.random():.6f}\n" for at in range(people)
        )
    with (folder / "city.csv").open("w") as file:
        file.writelines(f"c{at},City {at}\n" for at in range(nodes - people))
    with (folder / "knows.csv").open("w") as file:
        file.writelines(
            f"p{chosen.randrange(people)},p{chosen.randrange(people)},{chosen.randrange(100)}\n"
            for _ in range(edges * 4 // 5)
        )
    with (folder / "lives.csv").open("w") as file:
        file.writelines(
            f"p{chosen.randrange(people)},c{chosen.randrange(nodes - people)},{chosen.randrange(100)}\n"
            for _ in range(edges // 5)
        )
    database = ladybug.Database(str(folder / "bench.lbug"))
    connection = ladybug.Connection(database)
    for text in (
        "CREATE NODE TABLE Person(id STRING PRIMARY KEY, name STRING, born INT64, score DOUBLE)",
        "CREATE NODE TABLE City(id STRING PRIMARY KEY, name STRING)",
        "CREATE REL TABLE KNOWS(FROM Person TO Person, weight INT64)",
        "CREATE REL TABLE LIVES_IN(FROM Person TO City, weight INT64)",
        *(f"COPY {name} FROM '{folder / file}.csv'" for name, file in (
            ("Person", "person"), ("City", "city"), ("KNOWS", "knows"), ("LIVES_IN", "lives"))),
    ):  # fmt: skip
        connection.execute(text)
    connection.close()
    database.close()
    return folder / "bench.lbug"


def tasks(
    graph: CypherAdapter, by_hand: Callable[[str], list[Any]]
) -> list[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """Return the tasks: a name, ours, and the query by hand."""
    born = Field(("born",))
    person = "n.id, n.name, n.born, n.score"
    young = "MATCH (n:Person) WHERE n.born > 2015"
    edge = "a.id, b.id, label(r), r.weight"

    def nodes(where: str | None, **rest: Any) -> list[Any]:
        return list(graph.nodes(where, caps=CAPS, **rest).items)  # type: ignore[arg-type]

    def edges(where: str | None, **rest: Any) -> list[Any]:
        return list(graph.edges(where, caps=CAPS, **rest).items)  # type: ignore[arg-type]

    walk = "MATCH (a:Person {{id: '{}'}})-[*1..{}]->(n) WHERE n.id <> a.id RETURN DISTINCT n.id, n.name"

    def walked(start: str, depth: int) -> list[Any]:
        return list(graph.walk([start], depth=depth, caps=CAPS).items)

    executor = gasl.open(graph)

    def program(last: str) -> Any:
        executor.execute_one("FIND nodes WHERE born > 1950 AS x")
        executor.execute_one(last)
        return executor.context.get("y")

    return [
        ("FIND nodes WHERE id = ", lambda: nodes("id = 'p77'"), lambda: by_hand(f"MATCH (n:Person {{id: 'p77'}}) RETURN {person}")),
        ("FIND nodes WHERE born > 2015", lambda: nodes("born > 2015"), lambda: by_hand(f"{young} RETURN {person}")),
        ("... AND name MATCHES (tested here)", lambda: nodes("born > 2015 AND name MATCHES '99$'"),
         lambda: by_hand(f"MATCH (n:Person) WHERE n.born > 2015 AND n.name =~ '.*99' RETURN {person}")),
        ("FIND nodes ORDER BY born DESC LIMIT 10", lambda: nodes(None, order=[Order(born, True)], limit=10),
         lambda: by_hand(f"MATCH (n:Person) RETURN {person} ORDER BY n.born DESC LIMIT 10")),
        ("FIND nodes ORDER BY degree DESC LIMIT 10", lambda: nodes(None, order=[Order(Field(("degree",)), True)], limit=10),
         lambda: by_hand("MATCH (n)-[r]-() RETURN n.id, count(r) AS d ORDER BY d DESC LIMIT 10")),
        ("FIND edges WHERE weight = 7 AND source.born < 1950", lambda: edges("weight = 7 AND source.born < 1950"),
         lambda: by_hand(f"MATCH (a:Person)-[r:KNOWS|LIVES_IN]->(b) WHERE r.weight = 7 AND a.born < 1950 RETURN {edge}")),
        ("FIND edges ORDER BY weight DESC LIMIT 10", lambda: edges(None, order=[Order(Field(("weight",)), True)], limit=10),
         lambda: by_hand("MATCH (a)-[r]->(b) RETURN a.id, b.id, r.weight ORDER BY r.weight DESC LIMIT 10")),
        ("number of nodes WHERE born > 1950", lambda: [None] * graph.explain("nodes", "born > 1950").rows,  # type: ignore[arg-type]
         lambda: [None] * by_hand("MATCH (n:Person) WHERE n.born > 1950 RETURN count(*)")[0][0]),
        ("FIND nodes WHERE born > 1950 AS x, COUNT x", lambda: [None] * program("COUNT x AS y"),
         lambda: [None] * by_hand("MATCH (n:Person) WHERE n.born > 1950 RETURN count(*)")[0][0]),
        ("FIND nodes WHERE born > 1950 AS x, COUNT x BY name", lambda: program("COUNT x BY name AS y"),
         lambda: by_hand("MATCH (n:Person) WHERE n.born > 1950 RETURN n.name, count(*)")),
        ("FIND nodes WHERE born > 1950 AS x, AGGREGATE x BY name sum(born)",
         lambda: program("AGGREGATE x BY name COMPUTE sum(born) AS s, min(score) AS low AS y"),
         lambda: by_hand("MATCH (n:Person) WHERE n.born > 1950 RETURN n.name, sum(n.born), min(n.score)")),
        ("FIND paths from one node to one, MAXLEN 8", lambda: list(graph.paths(["p77"], ["p4242"], max_length=8, caps=CAPS).items),
         lambda: by_hand("MATCH p = (a:Person {id: 'p77'})-[* ACYCLIC 1..8]->(b:Person {id: 'p4242'}) RETURN nodes(p)")),
        ("FIND paths from one node to one, SHORTEST", lambda: list(graph.paths(["p77"], ["p4242"], shortest=True, caps=CAPS).items),
         lambda: by_hand("MATCH p = (a:Person {id: 'p77'})-[* ALL SHORTEST 1..30]->(b:Person {id: 'p4242'}) RETURN nodes(p)")),
        ("WALK from one node, DEPTH 2", lambda: walked("p77", 2), lambda: by_hand(walk.format("p77", 2))),
        ("WALK from one node, DEPTH 3", lambda: walked("p77", 3), lambda: by_hand(walk.format("p77", 3))),
    ]  # fmt: skip


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("nodes", type=int, nargs="?", default=100_000)
    parser.add_argument("edges", type=int, nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="2,000 nodes, one round")
    parser.add_argument("--folder", type=Path, help="the folder of the database, which is kept")
    parser.add_argument("--only", default="", help="measure the tasks whose names contain this text")
    options = parser.parse_args()
    if options.quick:
        options.nodes, options.edges, options.rounds = 2_000, None, 1
    edges = options.edges or 5 * options.nodes
    with tempfile.TemporaryDirectory() as folder:
        began = perf_counter()
        kept = options.folder and options.folder / "bench.lbug"
        path = kept if kept and kept.exists() else write(options.folder or Path(folder), options.nodes, edges)
        print(f"{options.nodes:,} nodes, {edges:,} edges, written in {perf_counter() - began:.1f} s")
        began = process_time()
        graph = open_database(f"ladybug:{path}")
        assert graph.source.tables.nodes
        print(f"opening: {process_time() - began:.2f} s of CPU time; {'multigraph' if graph.source.multi else 'graph'}")
        began = process_time()
        assert graph.schema.nodes == options.nodes
        print(f"summary: {process_time() - began:.2f} s of CPU time")
        ladybug = load_ladybug()
        connection = ladybug.Connection(ladybug.Database(str(path), read_only=True))
        print("| task | rows | ours, ms | by hand, ms | ratio | our memory, MiB |\n|---|---|---|---|---|---|")
        for name, ours, by_hand in tasks(graph, lambda text: connection.execute(text).get_all()):
            if options.only not in name:
                continue
            times: tuple[list[float], list[float]] = ([], [])
            rows = [0, 0]
            for at in range(options.rounds + 1):
                for side, run in enumerate((ours, by_hand)):
                    start = process_time()
                    rows[side] = len(run())
                    if at:
                        times[side].append(process_time() - start)
            mine, theirs = (1000 * statistics.median(each) for each in times)
            told = f"{rows[0]:,}" if rows[0] == rows[1] else f"{rows[0]:,} and {rows[1]:,}: THEY DIFFER"
            tracemalloc.start()
            ours()
            peak = tracemalloc.get_traced_memory()[1] / 2**20
            tracemalloc.stop()
            print(f"| {name} | {told} | {mine:,.1f} | {theirs:,.1f} | {mine / theirs:.2f} | {peak:,.1f} |", flush=True)


if __name__ == "__main__":
    main()
