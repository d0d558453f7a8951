"""Graphs from files, from NetworkX's generators and from programs."""

import os
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.graph import AdapterError
from knotwork.adapters.graph_networkx.graphml import read_graphml
from knotwork.adapters.graph_networkx.loader import load, read_graph
from support.graphs import GRAPHML, SAMPLES, content, people, write


@pytest.mark.parametrize("suffix", SAMPLES)
def test_every_format_gives_the_same_edge(tmp_path: Path, suffix: str) -> None:
    graph, report = read_graph(write(tmp_path, f"people.{suffix}", SAMPLES[suffix]))
    assert graph.is_directed()
    source, target, data = next(iter(graph.edges(data=True)))
    assert (source, target, data["weight"]) == ("ann", "bob", 0.5)
    assert report.format == suffix.replace("tsv", "csv")
    assert (report.nodes, report.edges) == (2, graph.number_of_edges())
    assert report.warnings == ()


@pytest.mark.parametrize("suffix", ["graphml", "gml", "gexf", "json"])
def test_without_a_suffix_the_content_tells(tmp_path: Path, suffix: str) -> None:
    assert read_graph(write(tmp_path, "people", SAMPLES[suffix]))[1].format == suffix


def test_load_gives_an_adapter_that_answers() -> None:
    loaded = load("nx:les_miserables")
    assert loaded.report.nodes == len(loaded.adapter.find_nodes()) == 77
    assert loaded.adapter.schema.edges == loaded.report.edges == 254


# -- GraphML ------------------------------------------------------------------------------------------------------------


def graphml(text: str) -> Any:
    warnings: list[str] = []
    graph = read_graphml(text.encode(), "x", warnings.append)
    graph.graph["warnings"] = warnings
    return graph


def test_graphml_has_types_and_entities_of_xml() -> None:
    assert graphml(GRAPHML).nodes["ann"] == {"age": 41, "name": "Ann & Co"}


def test_graphml_reads_what_networkx_writes() -> None:
    for graph in (nx.les_miserables_graph(), nx.karate_club_graph(), nx.florentine_families_graph(), people()):
        text = "\n".join(nx.generate_graphml(graph))
        ours, theirs = graphml(text), nx.parse_graphml(text)
        assert content(ours) == content(theirs)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=40)
def test_graphml_reads_any_graph_that_networkx_writes(data: st.DataObject) -> None:
    graph = data.draw(st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]))()
    text = st.text(
        st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn"), exclude_characters="\x85"), max_size=8
    )
    value = st.one_of(
        text, st.integers(-(2**62), 2**62), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)
    )
    ids = data.draw(st.lists(text, min_size=1, max_size=6, unique=True))
    for node in ids:
        graph.add_node(node, **data.draw(st.dictionaries(st.sampled_from("abc"), value, max_size=2)))
    for source, target in data.draw(st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(ids)), max_size=6)):
        graph.add_edge(source, target, **data.draw(st.dictionaries(st.sampled_from("xyz"), value, max_size=2)))
    written = "\n".join(nx.generate_graphml(graph))
    assert content(graphml(written)) == content(nx.parse_graphml(written))


def test_keys_defaults_apply_where_a_value_is_missing() -> None:
    text = GRAPHML.replace('attr.type="int"/>', 'attr.type="int"><default>7</default></key>')
    assert [age for _, age in graphml(text).nodes(data="age")] == [41, 7]


def test_parallel_edges_make_a_multigraph_with_ids_as_keys() -> None:
    edge = '<edge source="ann" target="bob" id="second"/>'
    graph = graphml(GRAPHML.replace("</graph>", edge + "</graph>"))
    assert list(graph.edges(keys=True)) == [("ann", "bob", 0), ("ann", "bob", "second")]


def test_labels_and_places_of_yed() -> None:
    text = (
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml">'
        '<key for="node" id="d6" yfiles.type="nodegraphics"/><graph edgedefault="undirected"><node id="n0"><data key="d6">\n'
        '<y:ShapeNode><y:Geometry height="30.0" width="30.0" x="5.0" y="7.0"/><y:NodeLabel x="3.0">Start<y:LabelModel/></y:NodeLabel>'
        '<y:Shape type="ellipse"/></y:ShapeNode></data></node></graph></graphml>'
    )
    assert graphml(text).nodes["n0"] == {"label": "Start", "x": 5.0, "y": 7.0, "shape_type": "ellipse"}


def test_what_is_read_otherwise_than_written_is_said() -> None:
    graph = graphml(GRAPHML.replace('target="bob"', 'target="zoe"'))
    assert graph.has_edge("ann", "zoe")
    assert "1 nodes occur only in edges" in graph.graph["warnings"][0]
    nested = GRAPHML.replace('<node id="bob"/>', '<node id="bob"><graph><node id="kid"/></graph></node>')
    graph = graphml(nested)
    assert "kid" in graph
    assert "flat" in graph.graph["warnings"][0]


@pytest.mark.parametrize(
    ("old", "new", "told", "line"),
    [
        ("41", "old", 'the node "ann": "old" is not of type int, which the key of "age" declares', 6),
        ("0.5", "0,5", 'the edge from "ann" to "bob": "0,5" is not of type double', 8),
        ('key="d2"', 'key="d3"', 'refers to the undeclared key "d3"', 6),
        ('id="bob"', 'id="ann"', 'the node "ann" occurs twice, first in line 6', 7),
        ('id="d1"', 'id="d0"', 'two keys have the id "d0"', 3),
        ('source="ann" ', "", "an <edge> has no source", 8),
        ('<node id="bob"/>', "<node/>", "a <node> has no id", 7),
        ('target="bob"', 'target="bob" directed="no"', 'an <edge> has directed="no"', 8),
        ('<node id="bob"/>', "<hyperedge/>", "hyperedges are not supported", 7),
        ('"directed"', '"yes"', 'edgedefault is "yes"', 5),
        (' attr.name="age"', "", 'the key "d0" has no attr.name', 2),
        (
            '<data key="d0">41</data>',
            '<data key="d0">41</data><data key="d0">42</data>',
            'the node "ann" has the attribute "age" twice',
            6,
        ),
        ("</graph>\n", "<node id=\"a\"><node id='b'/></node></graph>", "a <node> is not inside a <graph>", 9),
        ("Ann &amp; Co", "Ann & Co", "not well-formed XML", 6),
        ("<graphml xmlns", "<html xmlns", "not GraphML: the first element is <html>", 1),
    ],
)
def test_faults_of_graphml_have_their_line(old: str, new: str, told: str, line: int) -> None:
    assert old in GRAPHML
    with pytest.raises(AdapterError) as error:
        graphml(GRAPHML.replace(old, new, 1))
    assert told in error.value.message
    assert error.value.message.startswith(f"x:{line}: ")


def test_parallel_edges_with_one_id_are_refused() -> None:
    edge = '<edge source="ann" target="bob" id="e"/>'
    with pytest.raises(AdapterError, match='two edges from "ann" to "bob" have the id "e"'):
        graphml(GRAPHML.replace("</graph>", edge + edge + "</graph>"))


def test_other_encodings() -> None:
    text = '<?xml version="1.0" encoding="{}"?>' + GRAPHML.replace("Co", "Zoë")
    for encoding in ("utf-8", "utf-16", "iso-8859-1", "windows-1252"):
        graph = read_graphml(text.format(encoding).encode(encoding), "x", print)
        assert graph.nodes["ann"]["name"] == "Ann & Zoë"
    for encoding in ("nonsense", "shift_jis", "rot13"):
        with pytest.raises(AdapterError, match=r"UTF-8|encoding"):
            read_graphml(text.format(encoding).encode(), "x", print)


# -- generators ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "nodes"),
    [("nx:karate_club", 34), ("nx:karate_club_graph", 34), ("nx:grid_2d(3, 4)", 12), ("nx:gnp_random(20,0.2)", 20),
     ("nx:balanced_tree(2,3)", 15), ("nx:Les_Miserables()", 77), ("nx:davis_southern_women", 32)],
)  # fmt: skip
def test_graphs_of_networkx(name: str, nodes: int) -> None:
    graph, report = read_graph(name)
    assert len(graph) == report.nodes == nodes
    assert content(read_graph(name)[0]) == content(graph)  # random ones too


@pytest.mark.parametrize(
    ("name", "told", "hint"),
    [
        ("nx:karate", "unknown graph nx:karate", "did you mean nx:karate_club?"),
        ("nx:complete(100000)", "too large", "limit"),
        ("nx:hypercube(1000000)", "too large", "limit"),
        ("nx:balanced_tree(1000000,1000000)", "too large", "limit"),
        ("nx:path(1e300)", "too large", ""),
        ("nx:grid_2d", "takes 2 numbers, not 0", "nx:grid_2d(3,2)"),
        ("nx:karate_club(3)", "takes no numbers", "nx:karate_club"),
        ("nx:cycle(--)", "is not a number", ""),
        ("nx:read_gpickle('x')", "can't be read", "nx:grid_2d(3,4)"),
        ("nx:", "can't be read", ""),
        ("nx:watts_strogatz(3,5,0.1)", "can't be generated", ""),
        ("nx:path(nan)", "can't be read", ""),
    ],
)
def test_generators_are_bounded(name: str, told: str, hint: str) -> None:
    with pytest.raises(AdapterError) as error:
        read_graph(name)
    assert told in error.value.message
    assert hint in error.value.hint


# -- files that are none ------------------------------------------------------------------------------------------------


def test_a_file_that_is_not_there_is_met_with_one_that_is(tmp_path: Path) -> None:
    write(tmp_path, "people.graphml", GRAPHML)
    with pytest.raises(AdapterError, match="the file does not exist") as error:
        read_graph(tmp_path / "poeple.graphml")
    assert "people.graphml" in error.value.hint
    with pytest.raises(AdapterError) as error:
        read_graph("karate_clb")
    assert error.value.hint == "did you mean nx:karate_club?"


def test_what_is_no_graph_file(tmp_path: Path) -> None:
    cases: dict[str, tuple[bytes, str]] = {
        "empty.graphml": (b" \n", "the file is empty"),
        "packed.graphml.gz": (b"\x1f\x8b\x08rest", "compressed with gzip"),
        "packed.graphml": (b"PK\x03\x04rest", "compressed with zip"),
        "graph.pickle": (b"\x80\x04N.", "pickles are not read"),
        "image.png": (b"\x89PNG\x00", "binary data"),
        "notes.txt": (b"hello", "the suffix '.txt'"),
        "x.graphml": (b"{}", "not well-formed XML"),
    }
    for name, (data, told) in cases.items():
        with pytest.raises(AdapterError) as error:
            read_graph(write(tmp_path, name, data))
        assert told in error.value.message
        assert error.value.message.startswith(str(tmp_path / name))
    for path, told in (
        (tmp_path, "a folder"),
        ("a\0b.graphml", "can't be read"),
        (Path("/dev/null"), "not a regular file"),
    ):
        with pytest.raises(AdapterError, match=told):
            read_graph(path)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.graphml")
    with pytest.raises(AdapterError, match="not a regular file"):
        read_graph(tmp_path / "x.graphml")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = write(tmp_path, "x.graphml", GRAPHML)
    path.chmod(0)
    with pytest.raises(AdapterError, match="no permission"):
        read_graph(path)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match="larger than"):
        read_graph(write(tmp_path, "x.graphml", GRAPHML), largest=100)


def test_something_else_is_no_graph() -> None:
    with pytest.raises(AdapterError, match="not list"):
        read_graph([])  # type: ignore[arg-type]


# -- graph objects ------------------------------------------------------------------------------------------------------


def test_a_graph_object_is_used_as_it_is() -> None:
    mine = people()
    graph, report = read_graph(mine)
    assert graph is mine
    assert (report.format, report.copied, report.changes) == ("networkx", False, ())


def test_a_graph_object_is_never_written() -> None:
    mine = nx.Graph()
    mine.add_node('"a"', kind='"PERSON"', place=(1, 2))
    before = content(mine)
    graph, report = read_graph(mine)
    assert content(mine) == before
    assert list(graph.nodes(data=True)) == [("a", {"kind": "PERSON", "place": [1, 2]})]
    assert report.copied
    assert "copied" in report.warnings[0]
    assert read_graph(mine, raw=True)[0] is mine


def test_the_types_of_values_that_a_program_made_are_meant() -> None:
    mine = nx.Graph()
    mine.add_node((1, 2), zip="12345")
    graph, report = read_graph(mine)
    assert graph is mine
    assert [(change.kind, change.where) for change in report.changes] == [("ids", "node id")]  # in items
    mine.add_node("b", kind='"PLACE"', zip="2")
    assert [zip_ for _, zip_ in read_graph(mine)[0].nodes(data="zip")] == [12345, 2]
