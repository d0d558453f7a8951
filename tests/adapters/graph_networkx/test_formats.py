"""Node-link JSON, GML, GEXF and edge lists: what is read, and the faults with their place."""

import json
import math
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.graph import AdapterError
from knotwork.adapters.graph_networkx.formats import read_node_link
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


def test_json_reports_what_it_does_not_read() -> None:
    told: list[str] = []
    text = b"""{"nodes": [{"id": 4}], "edges": [{"source": "4", "target": 4, "key": {"n": 1}}], "version": 2, "graph": [["a", 1]]}"""
    graph = read_node_link(text, "x", told.append)
    assert list(graph.edges(data=True)) == [(4, "4", {"key": {"n": 1}})]
    assert told == [
        '"graph" is not an object; its content is not read',
        "1 other keys of the object are not read: 'version'",
        "1 nodes occur only in edges, the first ('4') in edges[0]; they are added without attributes ('4' is not the node 4)",
    ]


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
        ("age 41", "age 4,1", "x:6: not GML: '4,1' is not a key, number, string or bracket"),
        ("age 41", "age 41y 2", "x:6: not GML: '41y' is not a key"),
        ('label "bob"', 'label "b"o"b"', "x:10: not GML: a string has a quote inside"),
        ("directed 1", "directed 2", "x:1: not GML: directed must be written once, as 0 or 1"),
        ("directed 1", "directed 1 directed 0", "x:1: not GML: directed must be written once"),
        ("directed 1", "Directed 1", "x:1: not GML: the key Directed is unknown"),
        ("target 1", 'target "1"', "x:12: not GML: an edge has the target '1', which is not a node's id"),
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


@pytest.mark.parametrize("sign", ["", "+", "-"])
@pytest.mark.parametrize(
    "word", ["Inf", "INF", "inf", "Infinity", "INFINITY", "1.#INF", "NaN", "NAN", "nan", "nan(ind)", "1.#IND00"]
)
def test_gml_has_the_number_words_of_all_tools(word: str, sign: str) -> None:
    graph = read_gml(f"graph [ node [ id 0 x {sign}{word} y 1 ] ]".encode(), "x", print)
    x = graph.nodes[0]["x"]
    assert (x == math.copysign(math.inf, -1 if sign == "-" else 1)) is ("inf" in word.lower())
    assert graph.nodes[0]["y"] == 1


def read_with_warnings(text: str | bytes) -> tuple[nx.Graph, list[str]]:
    warnings: list[str] = []
    return read_gml(text if isinstance(text, bytes) else text.encode(), "x", warnings.append), warnings


def test_gml_of_gephi_states_the_direction_of_each_edge() -> None:
    text = 'graph\n[\n  Creator Gephi\n  node [ id a In-Degree "1" ]\n  node [ id b ]\n%s]\n'
    edge = "  edge [ id e source a target b directed %d ]\n"
    graph, _ = read_with_warnings(text % (edge % 0))
    assert type(graph) is nx.Graph
    assert graph.nodes["a"] == {"In-Degree": "1"}
    graph, warnings = read_with_warnings(text % (edge % 0 + "  edge [ source b target b directed 1 ]\n"))
    assert sorted(graph.edges) == [("a", "b"), ("b", "a"), ("b", "b")]
    assert warnings[0].startswith("1 of 2 edges is undirected")


def test_parallel_edges_of_gml_make_a_multigraph() -> None:
    edge = "edge [ source 0 target 1 w %d ]"
    text = f"graph [ node [ id 0 ] node [ id 1 ] {edge % 1} {edge % 2} ]"
    graph, warnings = read_with_warnings(text)
    assert ([w for *_, w in graph.edges(data="w")], warnings) == ([1, 2], [])
    assert "multigraph is 0" in read_with_warnings(text.replace("graph [", "graph [ multigraph 0", 1))[1][0]
    keyed = text.replace("graph [", "graph [ multigraph 1", 1).replace("w", "key")
    assert list(read_with_warnings(keyed)[0].edges(keys=True)) == [(0, 1, 1), (0, 1, 2)]
    with pytest.raises(AdapterError, match="the edge from 0 to 1 occurs twice"):
        read_with_warnings(keyed.replace("key 2", "key 1"))


def test_encodings_of_gml() -> None:
    text = 'graph [\n node [ id 0 label "Zoë" ] ]'
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        assert [*read_with_warnings(text.encode(encoding))[0]] == ["Zoë"]
    graph, warnings = read_with_warnings(text.encode("latin-1"))
    assert [*graph] == ["Zoë"]
    assert warnings == ["the file is not UTF-8; it is read as Windows-1252 (ISO 8859-1): line 2 has Zoë"]
    for data, told in ((text.encode("utf-16-le"), "x:1: not GML: a zero character"), (b"graph [\n\x81\xff", "x:2: neither UTF-8 nor"),
                       (text.encode("utf-16")[:-1], "not UTF-16")):  # fmt: skip
        with pytest.raises(AdapterError, match=told):
            read_with_warnings(data)


def test_strings_of_gml_with_backslashes_before_quotes() -> None:
    text = 'graph [ node [ id 0 label "say \\"hi\\"\\n" ] node [ id 1 label "b" ] ]'
    graph, warnings = read_with_warnings(text)
    assert [*graph] == ['say "hi"\n', "b"]
    assert "a backslash before a quote" in warnings[0]
    graph, warnings = read_with_warnings('graph [ node [ id 0 label "C:\\" ] node [ id 1 label "b" ] ]')
    assert ([*graph], warnings) == (["C:\\", "b"], [])  # GML itself has no escapes


def test_ids_of_gml_that_are_more_than_a_numbering_are_kept() -> None:
    graph, warnings = read_with_warnings('graph [ node [ id -7 label "a" gml_id 1 ] node [ id 40 label "b" ] ]')
    assert dict(graph.nodes(data=True)) == {"a": {"gml_id": 1, "gml_id_": -7}, "b": {"gml_id_": 40}}
    assert warnings == ["the nodes are named by their labels; their ids are the attribute 'gml_id_'"]
    assert read_with_warnings('graph [ node [ id 1 label "a" ] node [ id 2 label "b" ] ]')[1] == []


def test_repeated_keys_and_records_of_gml() -> None:
    text = 'Creator "x" Version 1\n# comment\ngraph [ node [ id 0 label "a" label "b" line [ p [ x 1 ] p [ x 2 ] ] ] ]'
    graph, _ = read_with_warnings(text)
    assert graph.nodes[0] == {"label": ["a", "b"], "line": {"p": [{"x": 1}, {"x": 2}]}}


def test_json_states_the_direction_of_each_edge() -> None:
    nodes = '"nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}]'
    warnings: list[str] = []

    def edges(flags: str, first: str, second: str) -> tuple[bool, list[tuple[str, str]]]:
        warnings.clear()
        links = f'[{{"source": "a", "target": "b"{first}}}, {{"source": "b", "target": "c"{second}}}]'
        graph = read_node_link(f'{{{flags}{nodes}, "links": {links}}}'.encode(), "x", warnings.append)
        return graph.is_directed(), sorted(map(tuple, map(sorted, graph.edges)))

    once = [("a", "b"), ("b", "c")]
    assert edges("", "", "") == (False, once)
    assert edges('"directed": false, ', "", "") == (False, once)
    assert edges("", ', "directed": true', ', "directed": true') == (True, once)
    assert edges("", ', "type": "Undirected"', ', "type": "undirected"') == (False, once)
    assert warnings == []
    assert edges('"directed": true, ', ', "directed": false', "") == (True, [("a", "b"), *once])
    assert warnings[0].startswith("1 of 2 edges is undirected")
    assert edges('"directed": true, ', ', "directed": false', ', "directed": false') == (False, once)
    assert "declared directed, but every edge is undirected" in warnings[0]
    with pytest.raises(AdapterError, match=r"edges\[1\]: the direction 'mutual' is unclear"):
        edges("", ', "type": "undirected"', ', "type": "mutual"')


def test_gml_and_gexf_read_what_networkx_writes(tmp_path: Path) -> None:
    graph = nx.les_miserables_graph()
    nx.write_gml(graph, tmp_path / "x.gml")
    assert content(read_graph(tmp_path / "x.gml")[0]) == content(graph)
    nx.write_gexf(graph, tmp_path / "x.gexf")
    found = read_graph(tmp_path / "x.gexf", raw=True)[0]
    assert [set(edge[:2]) for edge in found.edges] == [set(edge) for edge in graph.edges]
