"""Graph files made to hurt, and broken ones: an ``AdapterError`` or a correct graph, in bounded time, never anything else."""

import contextlib
import json
import math
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.graph import AdapterError
from knotwork.adapters.graph_networkx.formats import read_node_link
from knotwork.adapters.graph_networkx.gexf import read_gexf
from knotwork.adapters.graph_networkx.gml import read_gml
from knotwork.adapters.graph_networkx.graphml import read_graphml
from knotwork.adapters.graph_networkx.loader import read_graph
from knotwork.adapters.graph_networkx.xml_elements import LONGEST_TAG, parse_xml
from support.cpu_time import pace
from support.graphs import GRAPHML, HEAD, SAMPLES, content, people, write

LAUGHS = (
    '<!DOCTYPE graphml [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>'
)
READERS = {"graphml": read_graphml, "gexf": read_gexf, "gml": read_gml, "json": read_node_link}


def refused(text: str | bytes, kind: str = "graphml") -> str:
    """Return what the reader says."""
    with pytest.raises(AdapterError) as error:
        READERS[kind](text.encode() if isinstance(text, str) else text, "x", lambda warning: None)
    assert len(error.value.message) < 400
    return error.value.message


@pytest.mark.parametrize("kind", ["graphml", "gexf"])
@pytest.mark.parametrize(
    "doctype",
    [
        LAUGHS,
        '<!DOCTYPE graphml [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE graphml SYSTEM "http://example.org/x.dtd">',
        '<!DOCTYPE graphml [<!ENTITY % x SYSTEM "http://example.org/x"> %x;]>',
        "<!DOCTYPE graphml>",
    ],
)
def test_document_types_and_so_entities_are_refused(kind: str, doctype: str) -> None:
    assert "<!DOCTYPE>" in refused(doctype + "\n" + SAMPLES[kind].replace("41", "&c;"), kind)


def test_elements_nested_too_deep() -> None:
    assert "nested deeper than 100" in refused(HEAD + "<graph>" + "<desc>" * 100_000)
    assert "nested deeper than 100" in refused("<gexf><graph>" + "<nodes>" * 100_000, "gexf")
    assert "nested deeper than 100" in refused("graph [" * 100_000, "gml")
    assert "nested too deep" in refused('{"nodes": ' + "[" * 100_000, "json")
    assert "nested too deep" in refused('{"nodes": ' + '{"a":' * 100_000, "json")


def test_a_value_nested_too_deep_to_be_shown(tmp_path: Path) -> None:
    deep = '{"nodes": [{"id": "a", "x": ' + "[" * 500 + "]" * 500 + '}], "edges": []}'
    with pytest.raises(AdapterError, match="levels deep"):
        read_graph(write(tmp_path, "x.json", deep))


@pytest.mark.slow
def test_a_gigantic_tag_is_refused_and_a_gigantic_text_is_read() -> None:
    huge = "x" * (2 * LONGEST_TAG)
    began = time.process_time()
    with pytest.raises(AdapterError, match="a tag is longer than 16 MiB"):
        parse_xml(f"<a b='{huge}'/>".encode(), "x", lambda *_: None, lambda _: None, lambda _: None)
    with pytest.raises(AdapterError, match="a tag is longer than 16 MiB"):
        parse_xml(f"<a><!--{huge}--></a>".encode(), "x", lambda *_: None, lambda _: None, lambda _: None)
    assert time.process_time() - began < 2 * pace()
    graph = read_graphml(GRAPHML.replace("Ann &amp; Co", huge).encode(), "x", print)
    assert len(graph.nodes["ann"]["name"]) == len(huge)


def test_many_attributes_and_many_keys() -> None:
    many = "".join(f" a{n}='{n}'" for n in range(20_000))
    read_graphml(GRAPHML.replace('<node id="bob"', f'<node id="bob"{many}').encode(), "x", print)
    keys = "".join(f'<key id="k{n}" for="node" attr.name="n{n}"/>' for n in range(5_000))
    assert "did you mean" not in refused(GRAPHML.replace("<graph ", keys + "<graph ").replace('key="d2"', 'key="zzzz"'))


@pytest.mark.slow
def test_numbers_without_end_and_names_without_number_take_no_time() -> None:
    endless = "9" * 2_000_000
    assert "a number has 2,000,000 digits" in refused('{"nodes": [{"id": ' + endless + "}]", "json")
    assert "a number has 2,000,000 digits" in refused("graph [ node [ id " + endless, "gml")
    names = ", ".join(f'"{n}": 1' for n in range(200_000))
    assert 'an object has the key "x" twice' in refused(f'{{{names}, "x": 1, "x": 2}}', "json")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("41", "9" * 10_000),
        ("41", "1e5"),
        ("41", "0x29"),
        ("0.5", "one half"),
        ("0.5", "1_000"),
        ('attr.type="int"', 'attr.type="boolean"'),
    ],
)
def test_values_of_the_wrong_type(old: str, new: str) -> None:
    assert "is no" in refused(GRAPHML.replace(old, new))


def test_numbers_that_are_none_or_too_large_are_made_fit(tmp_path: Path) -> None:
    graph, report = read_graph(write(tmp_path, "x.graphml", GRAPHML.replace("0.5", "NaN").replace("41", "9" * 300)))
    assert math.isnan(graph.edges["ann", "bob"]["weight"])  # conditions see it; in results it is null
    assert graph.nodes["ann"]["age"] == "9" * 300
    assert {change.kind for change in report.changes} == {"non-finite", "values"}


@pytest.mark.parametrize(
    "text",
    [
        "graph 5",
        "graph [ node 5 ]",
        "graph [ node [ id 1 ] node [ id 1 ] ]",
        "graph [ node [ id [ x 1 ] ] ]",
        "graph [ edge [ source 1 target 2 ] ]",
        'graph [ node [ id 1 label "&#99999999;" ] ]',
        "graph [ node [ id " + "9" * 5000 + " ] ]",
        "graph [ directed [ ] multigraph [ ] node [ ] ]",
        "graph [ node [ id 1 ] edge [ source 1 target 1 ] edge [ source 1 target 1 ] ]",
        "nothing",
        "graph [",
        'graph [ name "',
        "\0",
    ],
)
def test_gml_of_the_wrong_shape(text: str) -> None:
    try:
        graph = read_gml(text.encode(), "x", lambda warning: None)
    except AdapterError as error:
        assert "GML" in error.message
    else:
        assert len(graph) == 1


def samples() -> Iterator[tuple[str, bytes]]:
    for kind, text in SAMPLES.items():
        yield kind, text.encode()
    yield "graphml", "\n".join(nx.generate_graphml(people())).encode()
    yield "json", json.dumps(nx.node_link_data(people(), edges="edges")).encode()
    yield "gml", "\n".join(nx.generate_gml(people())).encode()
    yield "gexf", "\n".join(nx.generate_gexf(people())).encode()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "data"), list(samples()))
def test_a_file_cut_off_anywhere_is_refused_or_whole(tmp_path: Path, kind: str, data: bytes) -> None:
    whole = content(read_graph(write(tmp_path, f"x.{kind}", data))[0])
    step = max(1, len(data) // 50)
    for end in range(0, len(data), step):
        path = write(tmp_path, f"x.{kind}", data[:end])
        try:
            found = content(read_graph(path)[0])
        except AdapterError as error:
            assert str(path) in error.message
        else:
            # A list of edges has no end that could be missing.
            assert kind in ("csv", "tsv") or found == whole


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "data"), list(SAMPLES.items()))
@given(change=st.data())
@settings(max_examples=60)
def test_a_file_damaged_anywhere_is_refused_or_read(
    kind: str, data: str, change: st.DataObject, tmp_path_factory: Any
) -> None:
    raw = bytearray(data.encode())
    for at in change.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=4)):
        raw[at] = change.draw(st.integers(0, 255))
    path = write(tmp_path_factory.getbasetemp(), f"damaged.{kind}", bytes(raw))
    try:
        graph, _ = read_graph(path)
    except AdapterError as error:
        assert str(path) in error.message
    else:
        json.dumps(list(graph.nodes(data=True)), allow_nan=False).encode()


@pytest.mark.slow
@given(st.binary(max_size=300), st.sampled_from(list(SAMPLES)))
def test_noise_is_refused_or_read(noise: bytes, kind: str) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(AdapterError):
        read_graph(write(Path(folder), f"x.{kind}", noise))
