"""Node-link JSON, GML, GEXF and edge lists: what is read, and the faults with their place."""

import json
import math
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.graph import AdapterError
from knotwork.adapters.graph_networkx.formats import read_gexf, read_node_link
from knotwork.adapters.graph_networkx.gml import read_gml
from knotwork.adapters.graph_networkx.loader import read_graph
from support.graphs import SAMPLES, content, people, write


def test_node_link_json_reads_what_networkx_writes() -> None:
    for edges in ("edges", "links"):
        for graph in (nx.les_miserables_graph(), people(), nx.MultiGraph(nx.path_graph(3))):
            text = json.dumps(nx.node_link_data(graph, edges=edges))
            assert content(read_node_link(text.encode(), "x", print)) == content(graph)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=40)
def test_json_reads_any_graph_that_networkx_writes(data: st.DataObject) -> None:
    graph = data.draw(st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]))()
    text = st.text(st.characters(exclude_categories=("Cs",)), max_size=4)
    value = st.one_of(text, st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False, allow_infinity=False))
    ids = data.draw(st.lists(st.one_of(text, st.integers(0, 9)), min_size=1, max_size=6, unique=True))
    for node in ids:
        graph.add_node(node, **data.draw(st.dictionaries(st.sampled_from("abc"), value, max_size=2)))
    for source, target in data.draw(st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(ids)), max_size=6)):
        graph.add_edge(source, target, **data.draw(st.dictionaries(st.sampled_from("xyz"), value, max_size=2)))
    written = json.dumps(nx.node_link_data(graph, edges="edges"))
    assert content(read_node_link(written.encode(), "x", print)) == content(graph)


def test_json_that_does_not_say_is_a_multigraph_only_with_parallel_edges() -> None:
    once = b'{"nodes": [{"id": 1}, {"id": 2}], "links": [{"source": 1, "target": 2}]}'
    assert type(read_node_link(once, "x", print)) is nx.Graph
    twice = once.replace(b"]}", b', {"source": 2, "target": 1, "w": 1}]}')
    assert read_node_link(twice, "x", print).number_of_edges() == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", "not an object"),
        ('{"nodes": []}', 'the object has no "edges"'),
        ('{"nodes": [], "edges": 3}', '"edges" is not a list'),
        ('{"nodes": [], "edges": [], "links": []}', 'both "edges" and "links"'),
        ('{"nodes": [1], "edges": []}', "nodes[0] is not an object"),
        ('{"nodes": [{"name": "a"}], "edges": []}', 'nodes[0] has no "id"'),
        ('{"nodes": [{"id": true}], "edges": []}', '"id" is not a string or number'),
        ('{"nodes": [{"id": "a"}, {"id": "a"}], "edges": []}', "nodes[1] has the same id as nodes[0]"),
        ('{"nodes": [{"id": "a"}], "edges": [{"source": "a"}]}', 'edges[0]: "target" is missing'),
        ('{"nodes": [{"id": "a", "id": "b"}], "edges": []}', 'an object has the key "id" twice'),
        ('{"nodes": [{"id": "a", "x": NaN}], "edges": []}', "NaN is not valid JSON"),
        ('{"directed": "yes", "nodes": [], "edges": []}', '"directed" is not true or false'),
        ('{"nodes": [\n{"id": "a"\n', "x:3: not JSON"),
        ('{"nodes": [' + "[" * 50_000, "nested too deep"),
        ('{"nodes": [{"id": "a"}], "edges": [], "multigraph": true, "edges ": 1}', ""),
    ],
)
def test_faults_of_node_link_json(text: str, told: str) -> None:
    if not told:
        assert len(read_node_link(text.encode(), "x", print)) == 1
        return
    with pytest.raises(AdapterError) as error:
        read_node_link(text.encode(), "x", print)
    assert told in error.value.message


def test_gml_is_named_by_labels_where_all_have_one_of_their_own(tmp_path: Path) -> None:
    graph, _ = read_graph(write(tmp_path, "x.gml", SAMPLES["gml"]))
    assert list(graph.nodes(data=True)) == [("ann", {"age": 41}), ("bob", {})]
    graph, report = read_graph(write(tmp_path, "x.gml", SAMPLES["gml"].replace("bob", "ann")))
    assert list(graph) == [0, 1]
    assert "named by their ids" in report.warnings[0]
    graph, _ = read_graph(write(tmp_path, "x.gml", SAMPLES["gml"].replace('    label "bob"\n', "")))
    assert list(graph) == [0, 1]


def test_gml_is_read_as_networkx_reads_it() -> None:
    one = nx.house_graph()
    one.graph["made"] = [1]
    one.nodes[0].update(two=[1, 2], one=[5], none=[], inner={"a": 1.5}, text='q"&<é', inf=math.inf, small=-1e-9)
    for graph in (one, nx.les_miserables_graph(), people(), nx.MultiGraph(nx.path_graph(3)), nx.karate_club_graph()):
        text = "\n".join(nx.generate_gml(graph))
        assert content(read_gml(text.encode(), "x", print)) == content(nx.parse_gml(text))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("id 1", "id 0", "x:8: not GML: two nodes have the id 0"),
        ("    id 1\n", "", "x:8: not GML: a node has no id"),
        ("target 1", "target 7", "x:12: not GML: an edge has the target 7, which is not a node's id"),
        ("age 41", "age", "x:7: not GML: age has no value"),
        ("age 41", "age old", "x:6: not GML: invalid value of age: old"),
        ("age 41", "41", "x:6: not GML: expected a key, not '41'"),
        ("age 41", "age ?", "x:6: not GML: '?"),
        ('label "bob"', 'label "bob', "x:10: not GML: a string is not closed"),
        ("  edge [", "  edge [\n    source 0\n    target 1\n  ]\n  edge [", "occurs twice"),
        ("graph [", "graf [", "the file has no graph"),
        ("]\n]\n", "]\n]\n]\n", "x:18: not GML: a ] has no ["),
        ("]\n]\n", "]\n", "a [ is not closed"),
        ("node [", "node 5 nodes [", "node is not a block"),
    ],
)
def test_faults_of_gml_have_their_line(old: str, new: str, told: str) -> None:
    assert old in SAMPLES["gml"]
    with pytest.raises(AdapterError) as error:
        read_gml(SAMPLES["gml"].replace(old, new, 1 if "node" in old else -1).encode(), "x", print)
    assert told in error.value.message


def test_gml_and_gexf_read_what_networkx_writes(tmp_path: Path) -> None:
    graph = nx.les_miserables_graph()
    nx.write_gml(graph, tmp_path / "x.gml")
    assert content(read_graph(tmp_path / "x.gml")[0]) == content(graph)
    nx.write_gexf(graph, tmp_path / "x.gexf")
    found = read_graph(tmp_path / "x.gexf", raw=True)[0]
    assert [set(edge[:2]) for edge in found.edges] == [set(edge) for edge in graph.edges]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<gexf",
        "<gexf></gexf>",
        "<gexf xmlns='http://www.gexf.net/1.2draft'><graph><attributes class='x'/></graph></gexf>",
        "<gexf xmlns='http://www.gexf.net/1.2draft'><graph><nodes><node/></nodes></graph></gexf>",
        "<gexf xmlns='http://www.gexf.net/1.2draft'><graph><nodes/><edges><edge source='a'/></edges></graph></gexf>",
    ],
)
def test_faults_of_gexf(text: str) -> None:
    with pytest.raises(AdapterError, match=r"GEXF|XML"):
        read_gexf(text.encode(), "x", print)
