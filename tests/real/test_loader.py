"""Graphs that other tools made, where they are at hand: what loading makes of them."""

import pytest
from knotwork.adapters.graph_networkx.graph_summary import summarise
from knotwork.adapters.graph_networkx.loader import read_graph
from support.folders import DATA

GRAPHS = DATA / "graphs"
pytestmark = pytest.mark.skipif(
    not GRAPHS.is_dir(), reason="the graphs are not at hand (KNOTWORK_TEST_DATA names their folder)"
)


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_a_graph_of_nano_graphrag() -> None:
    graph, report = read_graph(GRAPHS / "mmwr_nano_graphrag.graphml")
    assert (report.nodes, report.edges, report.warnings) == (3261, 1740, ())
    author = graph.nodes["BRIANA MORELAND"]
    assert author["entity_type"] == "PERSON"
    assert len(author["source_id"]) == 2
    assert author["description"].startswith("Briana Moreland, MPH")
    assert "<SEP>" not in author["description"]
    assert not any('"' in text[:1] + text[-1:] for _, text in graph.nodes(data="description"))
    assert all(isinstance(source, list) for _, source in graph.nodes(data="source_id"))
    schema = summarise(graph)
    assert schema.label_attribute == "entity_type"
    assert schema.labels["PERSON"] == 371


@pytest.mark.usefixtures("folder")
def test_a_graph_of_lightrag() -> None:
    graph, report = read_graph(GRAPHS / "lightrag_zjremo.graphml")
    assert (report.nodes, report.edges, report.warnings) == (100, 82, ())
    assert [(change.kind, change.where) for change in report.changes] == [
        ("lines", "node description"),
        ("lists", "node source_id"),
        ("lines", "edge description"),
        ("lists", "edge source_id"),
    ]
    assert graph.nodes["南开大学"]["entity_type"] == "organization"
    raw, report = read_graph(GRAPHS / "lightrag_zjremo.graphml", raw=True)
    assert report.changes == ()
    assert "<SEP>" in raw.nodes["南开大学"]["source_id"]
