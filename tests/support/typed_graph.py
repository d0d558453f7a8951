"""A graph whose properties have every type that a Ladybug table can hold, as a database and as a NetworkX graph.

Labels differ in the types of properties with the same name. Values include null, NaN, infinity, both zeros, integers beyond 2**53,
quotes, and characters beyond U+FFFF.
"""

from collections.abc import Mapping
from itertools import product
from math import inf, nan
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx

from .graph_databases import write_ladybug

BIG = 2**53
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "A": {
        "id": "STRING", "t": "STRING", "i": "INT64", "d": "DOUBLE", "b": "BOOL", "x": "INT64", "s": "INT8", "u": "UINT64",
        "f": "FLOAT", "h": "INT128", "l": "STRING[]", "o": "STRUCT(c STRING, n INT64)", "day": "DATE",
    },
    "B b": {"id": "STRING", "t": "STRING", "i": "DOUBLE", "d": "DOUBLE", "x": "STRING", "l": "INT64[]", "odd `name`": "STRING"},
    "C": {"k": "INT64", "id": "STRING", "t": "STRING", "x": "BOOL", "label": "STRING", "degree": "INT64"},
}  # fmt: skip
RELATIONS = (
    ("R", "A", "A", {"w": "DOUBLE", "t": "STRING", "relation": "STRING"}),
    ("R", "A", "C", {"w": "DOUBLE", "t": "STRING", "relation": "STRING"}),
    ("S s", "C", "B b", {"w": "INT64", "t": "STRING"}),
)
TEXTS = (
    None,
    "",
    "a",
    "ab",
    "b",
    "ba",
    "A",
    "é",
    "e\u0301",
    "\uffff",
    "😀",
    "1",
    "it's",
    '"q"',
    "a\\b",
    "a.b",
    "$p0",
    "`x`",
    "\n",
)
VALUES: Mapping[str, tuple[Any, ...]] = {
    "STRING": TEXTS,
    "INT64": (None, 0, 1, 2, -1, BIG, BIG + 1, 2**63 - 1, -(2**63)),
    "INT8": (None, 0, 1, -128, 127),
    "UINT64": (None, 0, 1, 2**64 - 1),
    "INT128": (None, 0, 1, 2**100),
    "DOUBLE": (None, 0.0, -0.0, 1.0, 1.5, -0.5, nan, inf, -inf, float(BIG), 1e300),
    "FLOAT": (None, 0.5, nan, 1.0, float(BIG)),
    "BOOL": (None, True, False),
    "STRING[]": (None, [], ["a"], ["a", None], ["b", "a"]),
    "INT64[]": (None, [], [1], [1, None]),
    "STRUCT(c STRING, n INT64)": (None, {"c": "a", "n": 1}, {"c": "é", "n": BIG + 1}),
    "DATE": (None, "2024-01-02", "1999-12-31"),
}

PATHS = (
    ("id",), ("label",), ("t",), ("i",), ("d",), ("b",), ("x",), ("s",), ("u",), ("f",), ("h",), ("l",), ("o",), ("o", "c"),
    ("o", "n"), ("day",), ("odd `name`",), ("k",), ("attr", "id"), ("attr", "label"), ("attr", "degree"), ("degree",),
    ("out_degree",), ("nothing",), ("t", "deep"),
)  # fmt: skip
EDGE_PATHS = (
    ("source",), ("target", "id"), ("relation",), ("attr", "relation"), ("w",), ("t",), ("key",), ("source", "t"),
    ("source", "label"), ("target", "x"), ("target", "degree"), ("source", "o", "c"), ("nothing",),
)  # fmt: skip


def contents(seed: int = 1, nodes: int = 15, edges: int = 12) -> tuple[list[Any], list[Any]]:
    """Return the nodes and the edges in the form that ``write_ladybug`` takes. Some nodes have several edges between them."""
    random = Random(seed)
    made: list[tuple[str, dict[str, Any]]] = []
    for label, columns in COLUMNS.items():
        for at in range(nodes):
            values = {name: random.choice(VALUES[kind]) for name, kind in columns.items()}
            key = next(iter(columns))
            values[key] = at if columns[key] == "INT64" else f"{label[0].lower()}{at}"
            made.append((label, values))
    keys = {label: [values[next(iter(COLUMNS[label]))] for each, values in made if each == label] for label in COLUMNS}
    links = []
    for (relation, source, target, columns), _ in product(RELATIONS, range(edges)):
        values = {name: random.choice(VALUES[kind]) for name, kind in columns.items()}
        links.append(
            (relation, (source, random.choice(keys[source][:5])), (target, random.choice(keys[target][:5])), values)
        )
    return made, links


def write_typed(path: Path) -> Path:
    """Write the database."""
    return write_ladybug(path, COLUMNS, *_both())


def _both() -> tuple[Any, Any, Any]:
    nodes, edges = contents()
    return nodes, RELATIONS, edges


def typed_networkx() -> "nx.MultiDiGraph[Any]":
    """Return the same graph. Its nodes and edges are in the order that the adapter for databases promises."""
    nodes, edges = contents()
    graph: Any = nx.MultiDiGraph()
    places: dict[Any, Any] = {}
    for label, values in nodes:
        key = next(iter(COLUMNS[label]))
        shown = {name: value for name, value in values.items() if value is not None and not (name == key == "id")}
        if "label" in shown:
            shown["attr.label"] = shown.pop("label")
        graph.add_node(values[key])
        graph.nodes[values[key]].update({"label": label, **shown})
        places[values[key]] = len(places)
    rows = []
    counts: dict[int, int] = {}
    for relation, (source, first), (target, second), values in edges:
        table = next(at for at, each in enumerate(RELATIONS) if each[:3] == (relation, source, target))
        position = counts[table] = counts.get(table, -1) + 1
        shown = {name: value for name, value in values.items() if value is not None}
        if "relation" in shown:
            shown["attr.relation"] = shown.pop("relation")
        rows.append((places[first], places[second], table, position, first, second, {"relation": relation, **shown}))
    for _, _, table, position, first, second, data in sorted(rows, key=lambda row: row[:4]):
        graph.add_edge(first, second, f"{table}:{position}")
        graph.edges[first, second, f"{table}:{position}"].update(data)
    return graph
