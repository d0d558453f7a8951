"""Edge tables: the columns of the ends, directions, types, and the faults with their line."""

from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from knotwork.adapters.graph import AdapterError
from knotwork.adapters.graph_networkx.loader import LoadReport, read_graph
from support.graphs import write


def table(tmp_path: Path, text: str | bytes, name: str = "x.csv") -> tuple[Any, LoadReport]:
    return read_graph(write(tmp_path, name, text))


def edges(tmp_path: Path, text: str | bytes, name: str = "x.csv") -> list[tuple[Any, ...]]:
    return list(table(tmp_path, text, name)[0].edges(data=True))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n1,2\n", "x.csv:1: the first line does not name the columns source and target; it has: a, b"),
        ("source,target\na\n", "x.csv:2: 1 cell, but the header has 2"),
        ('source,target\n\n"a\nb",\n', "x.csv:3: the target is empty"),
        ("source,target,w, w\n", "two columns of"),
        ("Source,source,target\n", "x.csv:1: several columns can be the same end of an edge: 'Source' and 'source'"),
        ("from,to,u,v\na,b,c,d\n", "x.csv:1: several columns can be the same end of an edge: 'from' and 'u'"),
        ("source,target,key\na,b,1\na,b,1\n", "x.csv:3: an earlier line has the same source, target and key"),
        ('source,target\na,b\n"c,d\ne,f\n', "x.csv:3: a quote that is opened in this row is not closed"),
        ('source,target\na,"b"c\n', "x.csv:2: a closing quote is followed by other text"),
        (b"source,target\n\xff,b\n", "x.csv:2: the cell in the column 'source' is not UTF-8 text"),
        (
            "source,to\na,b\n",
            "x.csv:1: the first line names one end of the edges, 'source', but not the other; it has: source, to",
        ),
        (":END_ID,:TYPE\n1,2\n", "x.csv:1: the first line names one end of the edges, ':END_ID', but not the other"),
        ("Id,Label\n1,Ann\n", "x.csv:1: the table has nodes, not edges"),
        (":ID(Person),name\n1,Ann\n", "x.csv:1: the table has nodes, not edges"),
    ],
)
def test_faults_of_edge_tables(tmp_path: Path, text: str | bytes, told: str) -> None:
    with pytest.raises(AdapterError) as error:
        table(tmp_path, text)
    assert told in error.value.message


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("who;whom", "put a line before it with the names of its two columns, 'source;target'"),
        ("ann,likes,bob", "put a line before it with the names of its 3 columns, among them source and target"),
        ("ann bob", "separate the columns by commas, semicolons, tabs or |"),
    ],
)
def test_the_help_for_a_header_never_makes_it_an_edge(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(AdapterError) as error:
        table(tmp_path, f"{line}\n")
    first = "if it names the columns, rename those of the two ends to source and target; if it is an edge, "
    assert error.value.hint == (told if " " in line else first + told)


@pytest.mark.parametrize(
    "header",
    ["From,To", "from_id,to_id", "src,dst", "U,V", "node1,node2", "Node 1,Node 2", "subject,object", "Parent,Child",
     "Source ID,Target ID", "start_node,end_node", ":START_ID,:END_ID", "a:START_ID(P),b:END_ID(P)"],
)  # fmt: skip
def test_other_usual_headers_are_read_and_reported(tmp_path: Path, header: str) -> None:
    graph, report = table(tmp_path, f"{header},since\nann,bob,2001\n")
    assert list(graph.edges(data=True)) == [("ann", "bob", {"since": 2001})]
    first, second = header.split(",")
    assert f"the columns {first!r} and {second!r} are read as source and target" in report.warnings


def test_source_and_target_come_before_other_pairs(tmp_path: Path) -> None:
    assert edges(tmp_path, "Target,from,to,SOURCE\nb,x,y,a\n") == [("a", "b", {"from": "x", "to": "y"})]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(tmp_path: Path, delimiter: str) -> None:
    text = "\ufeffSource;Target;since;note\r\nann;bob;2001;\r\n\r\nann;cid;2002;a, b\r\n".replace(";", delimiter)
    graph, _ = table(tmp_path, text.replace("a, b", '"a, b"'))
    assert list(graph.edges(data=True)) == [
        ("ann", "bob", {"since": 2001}),
        ("ann", "cid", {"since": 2002, "note": "a, b"}),
    ]


def test_excel_and_utf_16(tmp_path: Path) -> None:
    found = [("ann", "bob", {"n": "a,b"})]
    assert edges(tmp_path, "sep=;\r\nsource;target;n\r\nann;bob;a,b\r\n") == found
    text = "source\ttarget\tn\r\nann\tbob\ta,b\r\n"
    for encoding in ("utf-16", "utf-32", "utf-8-sig"):
        for name in ("x.csv", "x.tsv", "x.tab"):
            assert edges(tmp_path, text.encode(encoding), name) == found


def test_blanks_of_ids_are_removed_and_reported(tmp_path: Path) -> None:
    graph, report = table(tmp_path, "source,target,note\nann ,bob, x \n ann,cid,\n")
    assert list(graph.edges(data=True)) == [("ann", "bob", {"note": " x "}), ("ann", "cid", {})]
    assert report.warnings == ("blanks before or after 2 ids are removed",)


def test_a_cell_may_be_long_and_a_table_may_have_no_rows(tmp_path: Path) -> None:
    assert edges(tmp_path, "source,target,text\na,b," + "x" * 200_000)[0][2] == {"text": "x" * 200_000}
    graph, report = table(tmp_path, "source,target\n")
    assert (len(graph), report.warnings) == (0, ("the table has no edges, only a header",))


# -- directions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", ["a,b,Undirected\nb,c,undirected\n", "a,b,UNDIRECTED\nb,c, Undirected \n"])
@pytest.mark.parametrize("column", ["Type", "type", "TYPE"])
def test_a_column_type_makes_the_graph_undirected(tmp_path: Path, rows: str, column: str) -> None:
    graph, report = table(tmp_path, f"source,target,{column}\n{rows}")
    assert type(graph) is nx.Graph
    assert nx.shortest_path(graph, "c", "a") == ["c", "b", "a"]
    assert report.warnings == ()


def test_a_column_directed_states_directions_too(tmp_path: Path) -> None:
    assert not table(tmp_path, "source,target,directed\na,b,false\nb,c,FALSE\n")[0].is_directed()
    assert table(tmp_path, "source,target,directed\na,b,true\n")[0].is_directed()


def test_parallel_undirected_edges_make_an_undirected_multigraph(tmp_path: Path) -> None:
    graph, _ = table(tmp_path, "source,target,type,w\na,b,Undirected,1\nb,a,Undirected,2\n")
    assert type(graph) is nx.MultiGraph
    assert sorted(w for *_, w in graph.edges(data="w")) == [1, 2]


def test_mixed_directions_are_read_as_a_directed_graph_and_reported(tmp_path: Path) -> None:
    graph, report = table(tmp_path, "source,target,Type,w\na,b,Undirected,5\nb,c,Directed,6\nc,c,Undirected,7\n")
    assert sorted(graph.edges(data="w")) == [("a", "b", 5), ("b", "a", 5), ("b", "c", 6), ("c", "c", 7)]
    assert graph.is_directed()
    assert report.warnings[0].startswith("2 of 3 edges are undirected, the others directed")


def test_an_edge_without_a_direction_is_directed_and_reported(tmp_path: Path) -> None:
    graph, report = table(tmp_path, "source,target,Type\na,b,Undirected\nb,c,\n")
    assert sorted(graph.edges) == [("a", "b"), ("b", "a"), ("b", "c")]
    assert report.warnings[1] == "1 edge has no direction of its own: directed"


def test_an_unknown_direction_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(AdapterError) as error:
        table(tmp_path, "source,target,Type\na,b,Undirected\n\nb,c,Undirectd\n")
    assert "x.csv:4: the direction 'Undirectd' is unclear: other edges are undirected" in error.value.message
    assert "rename the column" in error.value.hint


@pytest.mark.parametrize("rows", ["a,b,friend\nb,c,rival\n", "a,b,DIRECTED\nb,c,ACTED_IN\n", "a,b,1\n"])
def test_types_of_the_users_own_are_attributes(tmp_path: Path, rows: str) -> None:
    graph, report = table(tmp_path, f"source,target,type\n{rows}")
    assert graph.is_directed()
    assert graph.number_of_edges() == sum(1 for *_, kind in graph.edges(data="type") if kind)
    told = "type is an attribute and states no directions, because it has other values, such as 'ACTED_IN'"
    assert report.warnings == ((told,) if "DIRECTED" in rows else ())


def test_a_column_of_counts_is_not_about_directions(tmp_path: Path) -> None:
    assert edges(tmp_path, "source,target,directed\na,b,0\nb,c,2\n") == [
        ("a", "b", {"directed": 0}),
        ("b", "c", {"directed": 2}),
    ]


def test_two_columns_that_contradict_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match="the direction 'true' is unclear: another value of this edge"):
        table(tmp_path, "source,target,type,directed\na,b,Undirected,true\n")


# -- Neo4j --------------------------------------------------------------------------------------------------------------


def test_the_headers_of_neo4j_have_types(tmp_path: Path) -> None:
    text = ":START_ID,:END_ID,:TYPE,since:int,share:double,tags:string[],open:boolean,note,x:IGNORE\n"
    graph, report = table(tmp_path, text + "1,2,KNOWS,2001,1.10,a;b,true,hello,secret\n")
    assert list(graph.edges(data=True)) == [
        (
            "1",
            "2",
            {"relation": "KNOWS", "since": 2001, "share": 1.1, "tags": ["a", "b"], "open": True, "note": "hello"},
        )
    ]
    assert "the column ':TYPE' is the attribute 'relation'" in report.warnings
    assert "the column 'x:IGNORE' is left out, as its header says" in report.warnings


def test_a_value_that_does_not_fit_its_declared_type_is_refused(tmp_path: Path) -> None:
    for kind, value in (("int", "1.5"), ("boolean", "yes"), ("float", "1,5")):
        with pytest.raises(AdapterError, match=rf"x.csv:2: '{value}' is not of type {kind}, which the header of 'n'"):
            table(tmp_path, f":START_ID;:END_ID;n:{kind}\n1;2;{value}\n")


def test_ids_of_different_groups_are_different_nodes(tmp_path: Path) -> None:
    graph, report = table(tmp_path, ":START_ID(Person),:END_ID(Film)\n1,1\n")
    assert list(graph.edges) == [("Person:1", "Film:1")]
    assert "equal ids of two groups are two nodes" in report.warnings[0]


def test_a_colon_in_other_headers_is_part_of_the_name(tmp_path: Path) -> None:
    assert edges(tmp_path, "source,target,age:int\na,b,7\n") == [("a", "b", {"age:int": 7})]


def test_a_column_without_a_name_gets_one(tmp_path: Path) -> None:
    graph, report = table(tmp_path, ",source,target,\n0,a,b,\n1,b,c,\n")
    assert list(graph.edges(data=True)) == [("a", "b", {"column_1": 0}), ("b", "c", {"column_1": 1})]
    assert report.warnings == ("a column has no name; its values are the attribute 'column_1'",)
