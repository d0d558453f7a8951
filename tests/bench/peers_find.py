"""Other engines for bench_find, all optional: ladybug (the continuation of Kuzu), kglite, FalkorDB in a file (falkordblite),
polars, and GrandCypher over NetworkX.

Each loads the same tables and gets every query in its own words. Loading is not timed. Paths are of 1 to 3 edges from a MAYOR
to a HARBOUR; where a language has only trails (no edge twice) the count may exceed that of simple paths by the few that visit
a node twice.
"""

import signal
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from attrs import frozen

__all__ = ["PEERS", "QUERIES", "Answer", "Tables", "tables"]

Answer: TypeAlias = tuple[int, list[Any]]
"""How many matches there are, and the ids of the first of them."""
Side: TypeAlias = dict[str, Callable[[], Answer]]

QUERIES = (
    "22 % of nodes, equality and range",
    "0.1 % of nodes, equality and range",
    "nodes whose name CONTAINS five digits",
    "0.1 % of edges, equality and range",
    "paths of 1 to 3 edges, 0.01 % to 0.1 % of nodes",
)

CYPHER = (
    "MATCH (n:Node) WHERE n.kind = 'PERSON' AND n.age > 49 RETURN n.id",
    "MATCH (n:Node) WHERE n.kind = 'RARE' AND n.age > 49 RETURN n.id",
    "MATCH (n:Node) WHERE n.name CONTAINS '12345' RETURN n.id",
    "MATCH (a:Node)-[r:LINK]->(b:Node) WHERE r.relation = 'RARE' AND r.weight > 0.5 RETURN a.id, b.id",
    "MATCH (a:Node)-[r:LINK*1..3]->(b:Node) WHERE a.kind = 'MAYOR' AND b.kind = 'HARBOUR' RETURN a.id, b.id",
)


@frozen
class Tables:
    """The graph as columns; a node's id is its place."""

    kinds: list[str]
    ages: list[int]
    names: list[str]
    sources: list[int]
    targets: list[int]
    relations: list[str]
    weights: list[float]


def tables(nodes: int, seed: int = 1) -> Tables:
    """Return a random graph of ``nodes`` nodes and five times as many edges, no two edges between the same two nodes."""
    import numpy as np

    rng = np.random.default_rng(seed)
    names = np.array(["PERSON", "PLACE", "EVENT", "MAYOR", "HARBOUR", "RARE"])
    kinds = rng.choice(names, nodes, p=[0.44, 0.3, 0.2569, 0.0001, 0.001, 0.002])
    # A pair of ends is one number; sorted, so that edges stand with their source as in an adjacency list.
    pairs = rng.permutation(np.unique(rng.integers(0, nodes * nodes, int(5 * nodes * 1.01))))[: 5 * nodes]
    sources, targets = np.divmod(np.sort(pairs), nodes)
    letters = rng.choice(np.array(["RARE", *"ABCDEFGH"]), len(pairs), p=[0.002, *[0.12475] * 8])
    return Tables(
        kinds.tolist(),
        rng.integers(0, 100, nodes).tolist(),
        [f"person {at:x} of {number:06d}" for at, number in enumerate(rng.integers(0, 10**6, nodes).tolist())],
        sources.tolist(),
        targets.tolist(),
        letters.tolist(),
        rng.random(len(pairs)).tolist(),
    )


def polars(data: Tables, first: int) -> Side:
    """Filters and joins over two frames. Paths are joins, pruned from both ends, as one would write them by hand."""
    import polars as pl

    nodes = pl.DataFrame({"id": range(len(data.kinds)), "kind": data.kinds, "age": data.ages, "name": data.names})
    edges = pl.DataFrame(
        {"source": data.sources, "target": data.targets, "relation": data.relations, "weight": data.weights}
    )
    links = edges.select("source", "target")

    def ids(frame: Any) -> Answer:
        return frame.height, frame["id"].head(first).to_list()

    def pairs(frame: Any) -> Answer:
        return frame.height, frame.select("source", "target").head(first).rows()

    def paths() -> Answer:
        starts = nodes.filter(pl.col("kind") == "MAYOR").select(source="id")
        ends = nodes.filter(pl.col("kind") == "HARBOUR").select(target="id")
        out = links.join(starts, on="source", how="semi")
        into = links.join(ends, on="target", how="semi")
        one = out.join(ends, on="target", how="semi").filter(pl.col("source") != pl.col("target"))
        steps = out.rename({"target": "a"}).filter(pl.col("source") != pl.col("a"))
        last = into.rename({"source": "b"})
        two = steps.join(last, left_on="a", right_on="b")
        two = two.filter((pl.col("a") != pl.col("target")) & (pl.col("source") != pl.col("target")))
        middle = steps.join(links.rename({"source": "a", "target": "b"}), on="a")
        three = middle.join(last, on="b").filter(
            (pl.col("a") != pl.col("b")) & (pl.col("a") != pl.col("target")) & (pl.col("b") != pl.col("target"))
            & (pl.col("source") != pl.col("b")) & (pl.col("source") != pl.col("target"))
        )  # fmt: skip
        return pairs(pl.concat([frame.select("source", "target") for frame in (one, two, three)]))

    def kinds(kind: str) -> Any:
        return nodes.filter((pl.col("kind") == kind) & (pl.col("age") > 49))

    runs = (
        lambda: ids(kinds("PERSON")),
        lambda: ids(kinds("RARE")),
        lambda: ids(nodes.filter(pl.col("name").str.contains("12345", literal=True))),
        lambda: pairs(edges.filter((pl.col("relation") == "RARE") & (pl.col("weight") > 0.5))),
        paths,
    )
    return dict(zip(QUERIES, runs, strict=True))


def ladybug(data: Tables, first: int) -> Side:
    """A database in memory, loaded from CSV. It has no index but the primary key's."""
    import ladybug as lb

    folder = Path(tempfile.mkdtemp())
    with (folder / "nodes.csv").open("w") as out:
        out.writelines(
            f"{at},{kind},{age},{name}\n"
            for at, (kind, age, name) in enumerate(zip(data.kinds, data.ages, data.names, strict=True))
        )
    with (folder / "edges.csv").open("w") as out:
        out.writelines(
            f"{source},{target},{relation},{weight!r}\n"
            for source, target, relation, weight in zip(
                data.sources, data.targets, data.relations, data.weights, strict=True
            )
        )
    connection = lb.Connection(lb.Database(":memory:"))
    connection.execute("CREATE NODE TABLE Node(id INT64, kind STRING, age INT64, name STRING, PRIMARY KEY(id))")
    connection.execute("CREATE REL TABLE LINK(FROM Node TO Node, relation STRING, weight DOUBLE)")
    connection.execute(f'COPY Node FROM "{folder / "nodes.csv"}"')
    connection.execute(f'COPY LINK FROM "{folder / "edges.csv"}"')
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()

    def run(text: str) -> Callable[[], Answer]:
        def ask() -> Answer:
            result: Any = connection.execute(text)
            return result.get_num_tuples(), result.get_n(min(first, result.get_num_tuples()))

        return ask

    texts = (*CYPHER[:4], CYPHER[4].replace("*1..3", "* ACYCLIC 1..3"))
    return {query: run(text) for query, text in zip(QUERIES, texts, strict=True)}


def kglite(data: Tables, first: int) -> Side:
    """A graph in memory, loaded from data frames, with an index on ``kind``."""
    import kglite as kg
    import pandas as pd

    graph = kg.KnowledgeGraph()
    nodes = pd.DataFrame({"id": range(len(data.kinds)), "kind": data.kinds, "age": data.ages, "name": data.names})
    graph.add_nodes(nodes, node_type="Node", unique_id_field="id", node_title_field="name")
    edges = pd.DataFrame(
        {"source": data.sources, "target": data.targets, "relation": data.relations, "weight": data.weights}
    )
    graph.add_relationships(
        edges, connection_type="LINK", source_type="Node", source_id_field="source", target_type="Node",
        target_id_field="target", columns=["relation", "weight"],
    )  # fmt: skip
    graph.create_index("Node", "kind")

    def run(text: str) -> Callable[[], Answer]:
        def ask() -> Answer:
            result: Any = graph.cypher(text)
            count = len(result)
            return count, [list(result[at].values()) for at in range(min(first, count))]

        return ask

    return {query: run(text) for query, text in zip(QUERIES, CYPHER, strict=True)}


def falkordblite(data: Tables, first: int) -> Side:
    """A server in a process of its own, reached by a socket, with indexes on ``kind``, ``id`` and ``relation``."""
    from redislite.falkordb_client import FalkorDB

    graph = FalkorDB(str(Path(tempfile.mkdtemp()) / "graph.db")).select_graph("g")
    for index in ("(n:Node) ON (n.id)", "(n:Node) ON (n.kind)", "()-[r:LINK]-() ON (r.relation)"):
        graph.query(f"CREATE INDEX FOR {index}")
    nodes = list(zip(range(len(data.kinds)), data.kinds, data.ages, data.names, strict=True))
    for at in range(0, len(nodes), 20_000):
        rows = [list(row) for row in nodes[at : at + 20_000]]
        graph.query("UNWIND $rows AS x CREATE (:Node {id: x[0], kind: x[1], age: x[2], name: x[3]})", {"rows": rows})
    edges = list(zip(data.sources, data.targets, data.relations, data.weights, strict=True))
    for at in range(0, len(edges), 20_000):
        rows = [list(row) for row in edges[at : at + 20_000]]
        graph.query(
            "UNWIND $rows AS x MATCH (a:Node {id: x[0]}), (b:Node {id: x[1]}) "
            "CREATE (a)-[:LINK {relation: x[2], weight: x[3]}]->(b)",
            {"rows": rows},
        )

    def run(text: str) -> Callable[[], Answer]:
        def ask() -> Answer:
            rows = graph.query(text, timeout=60_000).result_set
            return len(rows), rows[:first]

        return ask

    return {query: run(text) for query, text in zip(QUERIES, CYPHER, strict=True)}


def grandcypher(data: Tables, first: int) -> Side:
    """Cypher in plain Python over a NetworkX graph. A query is stopped after a minute."""
    import networkx as nx
    from grandcypher import GrandCypher

    graph: Any = nx.DiGraph()
    columns = zip(range(len(data.kinds)), data.kinds, data.ages, data.names, strict=True)
    graph.add_nodes_from(
        (node, {"id": node, "kind": kind, "age": age, "name": name}) for node, kind, age, name in columns
    )
    edges = zip(data.sources, data.targets, data.relations, data.weights, strict=True)
    graph.add_edges_from((s, t, {"relation": relation, "weight": weight}) for s, t, relation, weight in edges)

    def late(*_: Any) -> None:
        raise TimeoutError

    def run(text: str) -> Callable[[], Answer]:
        def ask() -> Answer:
            before = signal.signal(signal.SIGALRM, late)
            signal.alarm(60)
            try:
                columns = list(GrandCypher(graph).run(text).values())
            finally:
                signal.alarm(0)
                signal.signal(signal.SIGALRM, before)
            return len(columns[0]), list(zip(*(column[:first] for column in columns), strict=True))

        return ask

    return {
        query: run(text.replace(":Node", "").replace(":LINK", "").replace("r*1..3", "*1..3").replace("'", '"'))
        for query, text in zip(QUERIES, CYPHER, strict=True)
    }


def _named(prepare: Callable[[Tables, int], Side], distribution: str) -> Callable[[Tables, int], Side]:
    def named(data: Tables, first: int) -> Side:
        side = prepare(data, first)
        print(f"{distribution} {version(distribution)}", flush=True)
        return side

    return named


PEERS: Mapping[str, Callable[[Tables, int], Side]] = {
    "polars": _named(polars, "polars"),
    "ladybug": _named(ladybug, "ladybug"),
    "kglite": _named(kglite, "kglite"),
    "falkordblite": _named(falkordblite, "falkordblite"),
    "GrandCypher": _named(grandcypher, "grand-cypher"),
}
