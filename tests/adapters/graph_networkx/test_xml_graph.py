"""What GraphML and GEXF have in common: directions, types, names that occur twice, and reports; and what only one of them has."""

import math
from typing import Any

import networkx as nx
import pytest
from knotwork.adapters.graph import AdapterError
from knotwork.adapters.graph_networkx.gexf import read_gexf
from knotwork.adapters.graph_networkx.graphml import read_graphml
from support.graphs import HEAD, people

KEYS = (
    '<key id="age" for="node" attr.name="age" attr.type="int"/>\n<key id="label" for="node" attr.name="label"/>\n'
    '<key id="shape" for="node" yfiles.type="nodegraphics"/>\n<key id="line" for="edge" yfiles.type="edgegraphics"/>\n'
)


def graphml(body: str, keys: str = KEYS, default: str = "directed") -> tuple[Any, list[str]]:
    """Return the graph with ``body``, from line 6 on, inside <graph>, and the warnings."""
    warnings: list[str] = []
    head = HEAD.replace(">", ' xmlns:y="http://www.yworks.com/xml/graphml">')
    text = f'{head}\n{keys}<graph edgedefault="{default}">{body}</graph></graphml>'
    return read_graphml(text.encode(), "x", warnings.append), warnings


def gexf(body: str, attributes: str = "", head: str = 'defaultedgetype="directed"') -> tuple[Any, list[str]]:
    """Return the graph with ``body``, from line 3 on, inside <graph>, and the warnings. ``attributes`` are those of nodes."""
    warnings: list[str] = []
    text = (
        f'<gexf xmlns="http://gexf.net/1.3" xmlns:viz="http://gexf.net/1.3/viz" version="1.3"><graph {head}>\n'
        f'<attributes class="node">{attributes}</attributes>\n{body}</graph></gexf>'
    )
    return read_gexf(text.encode(), "x", warnings.append), warnings


def one_value(type: str, value: str) -> tuple[Any, list[str]]:
    """Return the value of an attribute of GEXF, and the warnings."""
    body = f'<nodes><node id="a"><attvalues><attvalue for="0" value="{value}"/></attvalues></node></nodes>'
    graph, warnings = gexf(body, f'<attribute id="0" title="v" type="{type}"/>')
    return graph.nodes["a"].get("v"), warnings


# -- directions ---------------------------------------------------------------------------------------------------------

MIXED = {
    "graphml": '<edge source="a" target="b" directed="false"/><edge source="b" target="c"/><edge source="c" target="c" directed="false"/>',
    "gexf": '<edges><edge source="a" target="b" type="undirected"/><edge source="b" target="c"/>'
    '<edge source="c" target="c" type="undirected"/></edges>',
}


@pytest.mark.parametrize("kind", MIXED)
def test_mixed_directions_are_a_directed_graph_and_undirected_edges_are_two(kind: str) -> None:
    nodes = '<node id="a"/><node id="b"/><node id="c"/>'
    graph, warnings = (
        graphml(nodes + MIXED[kind]) if kind == "graphml" else gexf(f"<nodes>{nodes}</nodes>" + MIXED[kind])
    )
    assert graph.is_directed()
    assert set(graph.edges) == {("a", "b"), ("b", "a"), ("b", "c"), ("c", "c")}
    (told,) = warnings
    assert told.startswith("1 undirected edge is read as two directed edges")


def test_a_file_whose_edges_are_all_of_one_direction_has_this_direction() -> None:
    for default, written in (("directed", "false"), ("undirected", "true")):
        graph, warnings = graphml(f'<node id="a"/><edge source="a" target="a" directed="{written}"/>', default=default)
        assert (graph.is_directed(), warnings) == (written == "true", [])
    graph, warnings = gexf(
        '<nodes><node id="a"/></nodes><edges><edge source="a" target="a" type="undirected"/></edges>'
    )
    assert (graph.is_directed(), warnings) == (False, [])


def test_mutual_edges_are_two_edges_with_their_own_attributes() -> None:
    body = '<nodes><node id="a"/><node id="b"/></nodes><edges><edge source="a" target="b" type="mutual" weight="2"/></edges>'
    graph, warnings = gexf(body)
    assert list(graph.edges(data=True)) == [("a", "b", {"weight": 2.0}), ("b", "a", {"weight": 2.0})]
    assert graph.edges["a", "b"] is not graph.edges["b", "a"]
    assert "1 mutual edge is read as two" in warnings[0]


def test_each_nested_graph_has_its_own_default_direction() -> None:
    inner = '<graph edgedefault="undirected"><node id="b"/><edge source="a" target="b"/></graph>'
    graph, warnings = graphml(f'<node id="a">{inner}</node><edge source="a" target="a"/>')
    assert set(graph.edges) == {("a", "b"), ("b", "a"), ("a", "a")}
    assert graph.nodes["b"] == {"parent": "a"}
    assert len(warnings) == 2


# -- names --------------------------------------------------------------------------------------------------------------


def test_xml_attributes_and_descriptions_of_graphml_are_attributes() -> None:
    body = (
        '<node id="a" labels=":Ship:Ferry"><desc>built in 1920</desc></node>'
        '<node id="b" yfiles.foldertype="group"/><edge id="e" source="a" target="b" label="CARRIES"/>'
    )
    graph, warnings = graphml(body)
    assert dict(graph.nodes(data=True)) == {
        "a": {"labels": ":Ship:Ferry", "desc": "built in 1920"},
        "b": {"foldertype": "group"},
    }
    assert graph.edges["a", "b"] == {"label": "CARRIES", "id": "e"}
    assert warnings == []


@pytest.mark.parametrize(("own", "named"), [("Oak", "label"), ("Elm", "xml_label")])
def test_an_xml_attribute_is_kept_beside_a_declared_one_with_another_value(own: str, named: str) -> None:
    first, told = graphml(f'<node id="a" label="Oak"><data key="label">{own}</data></node>')
    values = f'<attvalues><attvalue for="0" value="{own}"/></attvalues>'
    attribute = '<attribute id="0" title="label" type="string"/>'
    second, warnings = gexf(f'<nodes><node id="a" label="Oak">{values}</node></nodes>', attribute)
    for graph in (first, second):
        assert graph.nodes["a"]["label"] == own
        assert graph.nodes["a"][named] == "Oak"
    assert len(told) == len(warnings) == (own != "Oak")


@pytest.mark.parametrize("drawn_first", [True, False])
def test_the_drawing_and_a_property_of_the_same_name_are_both_kept(drawn_first: bool) -> None:
    parts = [
        '<data key="shape"><y:ShapeNode><y:Geometry x="3" y="4"/><y:NodeLabel>Drawn</y:NodeLabel></y:ShapeNode></data>',
        '<data key="label">Written</data>',
    ]
    graph, warnings = graphml(f'<node id="a">{"".join(parts if drawn_first else parts[::-1])}</node>')
    assert graph.nodes["a"] == {"label": "Written", "drawn_label": "Drawn", "x": 3.0, "y": 4.0}
    (told,) = warnings
    assert "drawn_label" in told


# -- drawings -----------------------------------------------------------------------------------------------------------


def test_a_group_has_its_active_state_and_a_label_has_no_indentation() -> None:
    states = [
        f"<y:GroupNode><y:NodeLabel>{text}<y:LabelModel/>\n      </y:NodeLabel></y:GroupNode>"
        for text in ("Open", "Shut")
    ]
    drawing = f'<y:ProxyAutoBoundsNode><y:Realizers active="1">{"".join(states)}</y:Realizers></y:ProxyAutoBoundsNode>'
    graph, warnings = graphml(f'<node id="a"><data key="shape">{drawing}</data></node>')
    assert graph.nodes["a"] == {"label": "Shut"}
    assert "inactive states of groups" in warnings[0]


def test_all_labels_of_nodes_and_edges_are_read() -> None:
    graph, warnings = graphml(
        '<node id="a"><data key="shape"><y:GenericNode configuration="start"><y:NodeLabel>one</y:NodeLabel>'
        '<y:NodeLabel hasText="false"/><y:NodeLabel> two\nlines </y:NodeLabel></y:GenericNode></data></node>'
        '<edge source="a" target="a"><data key="line"><y:PolyLineEdge><y:Path sx="1"/><y:EdgeLabel>loop</y:EdgeLabel>'
        "</y:PolyLineEdge></data></edge>"
    )
    assert graph.nodes["a"] == {"label": "one", "labels": ["one", " two\nlines "], "shape_type": "start"}
    assert graph.edges["a", "a"] == {"label": "loop"}
    assert warnings == ["of the drawing, only labels, x, y and shapes are read; not read: Path"]


def test_labels_of_yfiles_for_html() -> None:
    label = "<y:List><y:Label><y:Label.Text><![CDATA[Valve]]></y:Label.Text></y:Label></y:List>"
    keys = '<key id="n" for="node" attr.name="NodeLabels"/><key id="g" for="node" attr.name="NodeGeometry"/>'
    graph, _ = graphml(
        f'<node id="a"><data key="n">{label}</data><data key="g"><y:RectD X="1" Y="2"/></data></node>', keys
    )
    assert graph.nodes["a"] == {"label": "Valve", "x": 1.0, "y": 2.0}


def test_of_a_value_with_markup_the_text_is_read() -> None:
    graph, warnings = graphml(
        '<node id="a"><data key="label">very <i>old</i> tree</data><data key="age"><b>90</b></data></node>'
    )
    assert graph.nodes["a"] == {"label": "very old tree", "age": 90}
    assert [told.partition(" in values")[0] for told in warnings] == ["markup", "markup"]
    graph, _ = graphml('<node id="a"><data key="label"><p>First <b>line</b></p><p>second<br/>third</p></data></node>')
    assert graph.nodes["a"] == {"label": "First line\nsecond\nthird"}


def test_numbers_of_parallel_edges_leave_the_ids_of_other_edges_free() -> None:
    edges = '<edge source="b" target="a"/><edge source="a" target="b" id="0"/><edge source="a" target="b" id="x"/>'
    graph, _ = graphml(f'<node id="a"/><node id="b"/>{edges}', default="undirected")
    assert sorted(map(str, (key for *_, key in graph.edges(keys=True)))) == ["0", "1", "x"]


def test_declarations_of_one_name_are_one_attribute_which_is_reported() -> None:
    keys = '<key id="1" for="node" attr.name="n"/><key id="2" for="node" attr.name="n"/><key id="3" for="edge" attr.name="n"/>'
    _, warnings = graphml('<node id="a"/>', keys)
    assert warnings == ['several keys are named "n" and are read as one attribute (line 2)']
    attributes = '<attribute id="1" title="n" type="string"/><attribute id="2" title="n" type="integer"/>'
    assert len(gexf("", attributes)[1]) == 1


# -- types --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type", "written", "value"),
    [
        ("integer", " 5 ", 5), ("long", "9000000000", 9_000_000_000), ("short", "-3", -3), ("byte", "7", 7), ("biginteger", "+7", 7),
        ("float", "1.5", 1.5), ("double", "2", 2.0), ("bigdecimal", "1.10", 1.1), ("boolean", "TRUE", True), ("boolean", "0", False),
        ("char", "x", "x"), ("string", "5", "5"), ("string", "", ""), ("date", "2020-02-01", "2020-02-01"), ("dateTime", "", None),
        ("anyURI", "http://example.org", "http://example.org"), ("integer", "", None), ("liststring", "", None), ("liststring", "[]", []),
        ("liststring", "[a, b c]", ["a", "b c"]), ("liststring", "a|b|c", ["a", "b", "c"]), ("liststring", "a", ["a"]),
        ("liststring", "['a, b', &quot;c&quot;, null]", ["a, b", "c", None]), ("listinteger", "[1, 2]", [1, 2]),
        ("listlong", "1|2", [1, 2]),
        ("listshort", "1;2", [1, 2]), ("listbyte", "1,2", [1, 2]), ("listdouble", "[1.5, 2]", [1.5, 2.0]), ("listfloat", "[]", []),
        ("listboolean", "[true, False]", [True, False]), ("listchar", "[a, b]", ["a", "b"]), ("listbiginteger", "[1]", [1]),
        ("listbigdecimal", "[1.0]", [1.0]),
    ],
)  # fmt: skip
def test_every_type_of_gexf(type: str, written: str, value: Any) -> None:
    found, warnings = one_value(type, written)
    assert (found, warnings) == (value, [])
    assert repr(found) == repr(value)


def test_numbers_that_a_double_does_not_hold_are_reported_in_both_formats() -> None:
    for written, value in (("1e999", math.inf), ("-1e400", -math.inf), ("1e-999", 0.0)):
        found, warnings = one_value("double", written)
        keys = '<key id="w" for="node" attr.name="w" attr.type="double"/>'
        graph, told = graphml(f'<node id="a"><data key="w">{written}</data></node>', keys)
        assert found == graph.nodes["a"]["w"] == value
        assert warnings[0].partition(" (")[0] == told[0].partition(" (")[0]
        assert warnings[0].startswith("numbers outside the range of a double")
    assert one_value("double", "INF") == (math.inf, [])
    assert "rounded" in one_value("bigdecimal", "0.12345678901234567890")[1][0]


def test_values_that_are_read_otherwise_than_declared_are_reported() -> None:
    assert one_value("liststring", "a, b")[0] == ["a, b"]
    assert one_value("liststring", "a, b")[1]
    assert one_value("instant", "noon")[0] == "noon"
    assert 'unknown type "instant"' in one_value("instant", "noon")[1][0]


def test_lists_of_neo4j() -> None:
    keys = '<key id="r" for="node" attr.name="roles" attr.type="string" attr.list="string"/>'
    graph, _ = graphml('<node id="a"><data key="r">["cook", "mate \\u00e9"]</data></node>', keys)
    assert graph.nodes["a"]["roles"] == ["cook", "mate é"]


# -- GEXF ---------------------------------------------------------------------------------------------------------------


def test_defaults_of_gexf_apply_where_a_value_is_missing_or_empty() -> None:
    nodes = '<node id="a"/><node id="b"><attvalues><attvalue for="0" value="{}"/></attvalues></node>'
    attribute = '<attribute id="0" title="deep" type="boolean"><default>true</default></attribute>'
    for written, value in (("false", False), ("", True)):
        graph, _ = gexf(f"<nodes>{nodes.format(written)}</nodes>", attribute)
        assert list(graph.nodes(data="deep")) == [("a", True), ("b", value)]


def test_times_keep_their_open_ends() -> None:
    body = (
        '<nodes><node id="a" start="2001" endopen="2009"><attvalues><attvalue for="0" value="1" end="2004"/>'
        '<attvalue for="0" value="2" startopen="2004"/></attvalues>'
        '<spells><spell start="2001"/><spell startopen="2002.5" endopen="2003"/></spells></node></nodes>'
    )
    graph, warnings = gexf(body, '<attribute id="0" title="crew" type="integer"/>', 'timeformat="double"')
    assert graph.nodes["a"] == {
        "crew": [{"value": 1, "end": 2004}, {"value": 2, "startopen": 2004}],
        "start": 2001,
        "endopen": 2009,
        "spells": [{"start": 2001}, {"startopen": 2002.5, "endopen": 2003}],
    }
    assert warnings == []
    dates, _ = gexf('<nodes><node id="a" start="2001-01-01"/></nodes>', head='timeformat="date"')
    assert dates.nodes["a"] == {"start": "2001-01-01"}


def test_nested_nodes_drawings_and_kinds_of_gexf() -> None:
    graph, warnings = gexf(
        '<nodes><node id="a"><viz:color r="1" g="2" b="3"/><viz:size value="2.5"/><nodes><node id="b"/></nodes></node></nodes>'
        '<edges><edge source="a" target="b" kind="part"/></edges>'
    )
    assert graph.nodes["a"] == {"viz": {"color": {"r": 1, "g": 2, "b": 3}, "size": 2.5}}
    assert graph.nodes["b"] == {"pid": "a"}
    assert graph.edges["a", "b"] == {"kind": "part"}
    assert "flattened" in warnings[0]


def test_values_outside_of_the_options_are_reported() -> None:
    attribute = '<attribute id="0" title="state" type="string"><options>open|shut</options></attribute>'
    for written in ("open", "ajar"):
        node = f'<node id="a"><attvalues><attvalue for="0" value="{written}"/></attvalues></node>'
        graph, warnings = gexf(f"<nodes>{node}</nodes>", attribute)
        assert graph.nodes["a"]["state"] == written
        assert len(warnings) == (written == "ajar")


@pytest.mark.parametrize(
    ("body", "told", "hint", "line"),
    [
        ('<nodes><node id="a"><attvalues>\n<attvalue for="0" value="old"/></attvalues></node></nodes>',
         'the node "a": "old" is not of type long, which the attribute "age" declares', 'type="string"', 4),
        ('<nodes><node id="a"><attvalues><attvalue for="0" value="1.5"/></attvalues></node></nodes>',
         '"1.5" is not of type long', 'type="double"', 3),
        ('<nodes><node id="a"><attvalues><attvalue for="ago" value="1"/></attvalues></node></nodes>',
         'the node "a" has a value of the undeclared attribute "ago"', "", 3),
        ('<nodes><node id="a"/>\n<node id="a"/></nodes>', 'the node "a" occurs twice, first in line 3', "its own id", 4),
        ("<nodes><node/></nodes>", "a <node> has no id", "", 3),
        ('<edges><edge source="a"/></edges>', "an <edge> has no target", "", 3),
        ('<edges>\n<edge source="a" target="b" weight="much"/></edges>', 'the weight "much" is not a number', "write a number", 4),
        ('<edges><edge source="a" target="b" type="both"/></edges>', 'the edge from "a" to "b": type is "both"', "write directed", 3),
        ('<edges><edge id="5" source="a" target="b"/>\n<edge id="5" source="a" target="b"/></edges>',
         'two edges from "a" to "b" have the id "5"', "give parallel edges different ids", 4),
        ('<attributes class="x"/>', '<attributes> has the class "x"', 'class="node"', 3),
    ],
)  # fmt: skip
def test_faults_of_gexf_have_their_line_and_a_remedy(body: str, told: str, hint: str, line: int) -> None:
    with pytest.raises(AdapterError) as error:
        gexf(body, '<attribute id="0" title="age" type="long"/>')
    assert error.value.message.startswith(f"x:{line}: ")
    assert told in error.value.message
    assert hint in error.value.hint


@pytest.mark.parametrize("text", ["", "<gexf", "<gexf></gexf>", "<gexf><nodes/></gexf>", "<graph/>"])
def test_what_is_not_gexf(text: str) -> None:
    with pytest.raises(AdapterError, match=r"GEXF|XML|inside"):
        read_gexf(text.encode(), "x", print)


@pytest.mark.parametrize("version", ["1.1draft", "1.2draft", "1.3"])
def test_gexf_reads_what_networkx_writes(version: str) -> None:
    graph = nx.les_miserables_graph()
    ours = read_gexf("\n".join(nx.generate_gexf(graph, version=version)).encode(), "x", print)
    assert type(ours) is nx.Graph
    assert {frozenset(pair): data["weight"] for *pair, data in ours.edges(data=True)} == {
        frozenset(pair): data["weight"] for *pair, data in graph.edges(data=True)
    }
    several = read_gexf("\n".join(nx.generate_gexf(people(), version=version)).encode(), "x", print)
    assert list(several.nodes(data="age")) == list(people().nodes(data="age"))
    assert list(several.edges(keys=True, data="relation")) == list(people().edges(keys=True, data="relation"))


# -- what is not read ---------------------------------------------------------------------------------------------------


def test_what_is_not_read_is_reported_once_with_its_count() -> None:
    _, warnings = graphml('<node id="a"><port name="n"/><port name="m"/><note/></node><locator/>some text')
    assert warnings == [
        "ports are ignored (2, the first in line 6)",
        "<note> is not a GraphML element and is ignored (line 6)",
        "<locator> is not read (line 6)",
        "text outside of <data> is not read (line 6)",
    ]


def test_other_xml_attributes_of_values_are_reported() -> None:
    _, warnings = graphml('<node id="a"><data key="age" unit="year">4</data></node>')
    assert warnings == ['the XML attribute "unit" of <data> is not read (line 6)']
    value = '<attvalue for="0" value="4" unit="year"/>'
    _, warnings = gexf(
        f'<nodes><node id="a"><attvalues>{value}</attvalues></node></nodes>',
        '<attribute id="0" title="age" type="long"/>',
    )
    assert warnings == ['the XML attribute "unit" of <attvalue> is not read (line 3)']


def test_attributes_of_the_graph_itself() -> None:
    keys = '<key id="t" for="graph" attr.name="title"/>'
    graph, warnings = graphml('<desc>of a harbour</desc><data key="t">Ships</data>', keys)
    assert (graph.graph, warnings) == ({"desc": "of a harbour", "title": "Ships"}, [])
    graph, warnings = gexf("", head='mode="static"')
    assert (graph.graph, warnings) == ({"mode": "static"}, [])
