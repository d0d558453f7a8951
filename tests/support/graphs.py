"""Graphs in tests: small ones in every format, and comparing them."""

from pathlib import Path
from typing import Any

import networkx as nx

__all__ = ["GRAPHML", "SAMPLES", "content", "people", "persons"]

HEAD = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
GRAPHML = (
    HEAD
    + """
  <key id="d0" for="node" attr.name="age" attr.type="int"/>
  <key id="d1" for="edge" attr.name="weight" attr.type="double"/>
  <key id="d2" for="node" attr.name="name" attr.type="string"/>
  <graph edgedefault="directed">
    <node id="ann"><data key="d0">41</data><data key="d2">Ann &amp; Co</data></node>
    <node id="bob"/>
    <edge source="ann" target="bob"><data key="d1">0.5</data></edge>
  </graph>
</graphml>
"""
)
SAMPLES = {
    "graphml": GRAPHML,
    "gml": 'graph [\n  directed 1\n  node [\n    id 0\n    label "ann"\n    age 41\n  ]\n  node [\n    id 1\n    label "bob"\n  ]\n'
    "  edge [\n    source 0\n    target 1\n    weight 0.5\n  ]\n]\n",
    "gexf": '<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2"><graph defaultedgetype="directed">'
    '<attributes class="node"><attribute id="0" title="age" type="long"/></attributes>'
    '<nodes><node id="ann" label="Ann"><attvalues><attvalue for="0" value="41"/></attvalues></node><node id="bob" label="Bob"/>'
    '</nodes><edges><edge source="ann" target="bob" weight="0.5"/></edges></graph></gexf>',
    "json": '{"directed": true, "multigraph": false, "nodes": [{"id": "ann", "age": 41}, {"id": "bob"}],\n'
    ' "edges": [{"source": "ann", "target": "bob", "weight": 0.5}]}',
    "csv": "source,target,weight\nann,bob,0.5\nbob,ann,2\n",
    "tsv": "source\ttarget\tkey\tweight\nann\tbob\ta\t0.5\nann\tbob\tb\t2\n",
}
"""A graph with an edge from ann to bob of weight 0.5, by suffix."""


def people() -> "nx.MultiDiGraph[Any]":
    """A directed multigraph of five people, with attributes of several types."""
    graph: Any = nx.MultiDiGraph()
    for name, age in (("ann", 41), ("bob", 35), ("cid", None), ("dee", 28), ("eve", 60)):
        graph.add_node(name, kind="person", **({} if age is None else {"age": age}))
    for source, target, relation in (
        ("ann", "bob", "knows"), ("ann", "bob", "pays"), ("bob", "cid", "knows"), ("cid", "ann", "knows"),
        ("cid", "dee", "pays"), ("dee", "dee", "knows"),
    ):  # fmt: skip
        graph.add_edge(source, target, relation=relation)
    return graph


def content(graph: Any) -> tuple[Any, ...]:
    """Return all that counts in a graph: kind, nodes and edges with attributes, in order; of undirected edges the ends sorted."""
    multi, directed = graph.is_multigraph(), graph.is_directed()
    edges = list(graph.edges(keys=True, data=True) if multi else graph.edges(data=True))
    if not directed:
        edges = [(*sorted(edge[:2], key=str), *edge[2:]) for edge in edges]
    return directed, multi, list(graph.nodes(data=True)), edges


def write(folder: Path, name: str, text: str | bytes) -> Path:
    """Write a file and return its path."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def persons() -> "nx.DiGraph[Any]":
    """Return a path of five persons and papers, each with a value, a source and a description."""
    graph: nx.DiGraph[Any] = nx.path_graph(5, create_using=nx.DiGraph)
    for n in graph:
        graph.nodes[n].update(t="PERSON" if n % 2 else "PAPER", v=n, source_id=f"c{n}", description=f"number {n}")
    return graph
