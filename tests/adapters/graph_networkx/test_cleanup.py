"""What loading changes in a graph, and that it says so."""

import datetime
import math
from typing import Any

import networkx as nx
import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.graph_networkx.cleanup import normalise
from knotwork.adapters.graph_networkx.loader import LoadReport
from support.graphs import content


def nodes_with(values: list[Any], name: str = "x") -> Any:
    graph = nx.Graph()
    for number, value in enumerate(values):
        graph.add_node(number, **{name: value})
    return graph


def column(values: list[Any], name: str = "x", *, raw: bool = False) -> list[Any]:
    graph, _, _ = normalise(nodes_with(values, name), raw=raw)
    return [value for _, value in graph.nodes(data=name)]


# -- quotes -------------------------------------------------------------------------------------------------------------


def test_quotes_around_a_whole_value_go_where_the_whole_column_has_them() -> None:
    assert column(['"PERSON"', '"UNKNOWN"', '""', "", None]) == ["PERSON", "UNKNOWN", "", "", None]
    assert column(['"He said "hi""', '"x"', '"y"']) == ['He said "hi"', "x", "y"]


@pytest.mark.parametrize(
    "values",
    [
        ['"PERSON"', "UNKNOWN"],
        ["a"] * 19 + ['"quoted"'],
        ['"quoted"'] * 19 + ["a"],
        ['"quoted"', 3],
        ['"quoted"', '"'],
        ['"a" and "b"', '"c" or "d"'],  # around two parts, not around all
    ],
)
def test_one_value_without_quotes_keeps_those_of_all(values: list[Any]) -> None:
    assert column(values) == values


def test_quoted_ids_lose_their_quotes_at_every_edge() -> None:
    graph = nx.MultiGraph([('"A"', '"B"'), ('"A"', '"B"'), ('"B"', '"c"')])
    graph, changes, warnings = normalise(graph)
    assert list(graph.edges(keys=True)) == [("A", "B", 0), ("A", "B", 1), ("B", "c", 0)]
    assert [(change.kind, change.where, change.count) for change in changes] == [("quotes", "node id", 3)]
    assert changes[0].examples[0] == ('"A"', "A")
    assert warnings == ()


def test_ids_never_merge() -> None:
    graph = nx.Graph()
    graph.add_node(1, x=1)
    graph.add_node('"A"', x=2)
    graph.add_node('"B"', x=3)
    graph.add_node((1,), x=4)
    graph, _, _ = normalise(graph)
    assert list(graph.nodes(data="x")) == [(1, 1), ("A", 2), ("B", 3), ("(1,)", 4)]
    graph, _, warnings = normalise(nx.empty_graph(['"(1,)"', (1,), '"B"']))
    assert list(graph) == ['"(1,)"', "(1,)", "B"]
    assert "1 quoted ids keep their quotes" in warnings[0]


def test_ids_of_which_one_has_no_quotes_stay() -> None:
    graph, changes, _ = normalise(nx.empty_graph(['"A"', '""A""', "A"]))
    assert (set(graph), changes) == ({"A", '"A"', '""A""'}, ())


@pytest.mark.slow
@given(st.lists(st.text('"ab', max_size=5), unique=True, max_size=8))
def test_however_ids_are_quoted_there_are_as_many_after(ids: list[str]) -> None:
    graph, _, _ = normalise(nx.path_graph(ids))
    assert len(graph) == len(ids)
    assert graph.number_of_edges() == max(0, len(ids) - 1)


# -- <SEP> --------------------------------------------------------------------------------------------------------------


def rag(values: list[Any], name: str) -> list[Any]:
    """Return a column of a graph that such a tool wrote."""
    graph = nodes_with(values, name)
    graph.add_edge(0, 1, source_id="chunk-1")
    return [value for _, value in normalise(graph)[0].nodes(data=name)]


def test_a_column_that_is_joined_throughout_becomes_lists() -> None:
    assert column(["a<SEP>b", "c<SEP>d", "", None]) == [["a", "b"], ["c", "d"], [], None]
    assert column(['"a"<SEP>"b"', '"c"']) == [["a", "b"], ["c"]]


def test_the_columns_that_graphrag_joins_become_lists_in_its_graphs() -> None:
    assert column(["chunk-1<SEP>chunk-2", "chunk-3", ""], "source_id") == [["chunk-1", "chunk-2"], ["chunk-3"], []]
    assert rag(["a.pdf<SEP>b.pdf", "c.pdf"], "file_path") == [["a.pdf", "b.pdf"], ["c.pdf"]]
    assert column(["a.pdf<SEP>b.pdf", "c.pdf"], "file_path") == ["a.pdf<SEP>b.pdf", "c.pdf"]
    assert rag(["a<SEP>b", "c"], "title") == ["a<SEP>b", "c"]


@pytest.mark.parametrize("name", ["title", "description", "source_id"])
def test_one_joined_value_rewrites_no_column(name: str) -> None:
    values = [*(f"title {n}" for n in range(19)), "a<SEP>b"]
    assert column(values, name) == values
    graph = nodes_with(values, name)
    assert normalise(graph, owned=False) == (graph, (), ())


def test_prose_becomes_lines_and_can_still_be_searched() -> None:
    said = "An author of the report on injuries, who works at the center for disease control."
    assert column([f'"{said}"<SEP>"{said}"', f'"{said}"']) == [f"{said}\n{said}", said]
    assert rag(["short<SEP>text", "x"], "description") == ["short\ntext", "x"]


# -- numbers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "after"),
    [
        (["16.0", "3"], [16.0, 3]),
        (["1", "-2", "0"], [1, -2, 0]),
        (["1.5", "9007199254740993"], [1.5, 9007199254740993]),
        (["1e-09", "0.1"], [1e-09, 0.1]),  # as Python writes them
        (["1e3", "25"], ["1e3", "25"]),
        (["2.5E-2"], ["2.5E-2"]),
        (["1.1", "1.10"], ["1.1", "1.10"]),
        (["+5"], ["+5"]),
        (["-0"], ["-0"]),
        ([".5"], [".5"]),
        (["1,5", "2,5"], ["1,5", "2,5"]),
        (["0.12345678901234567"], ["0.12345678901234567"]),
        (['"1"', '"2"'], [1, 2]),
        (["1", None], [1, None]),
        (["007", "123"], ["007", "123"]),  # a code
        (["+49", "1"], ["+49", "1"]),
        (["1", "many"], ["1", "many"]),
        (["1", 2], ["1", 2]),
        (["1", ""], ["1", ""]),
        (["9223372036854775808", "1"], ["9223372036854775808", "1"]),
        (["1e999", "1"], ["1e999", "1"]),
        (["NaN", "1"], ["NaN", "1"]),
        (["\u0661", "\u0662"], ["\u0661", "\u0662"]),  # other digits
        ([" 1", "2"], [" 1", "2"]),
    ],
)
def test_a_column_of_numbers_written_as_text_becomes_numbers(values: list[Any], after: list[Any]) -> None:
    found = column(values)
    assert found == after
    assert [type(value) for value in found] == [type(value) for value in after]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (["1.1", "1.10", None], "node x: numbers written as text stay text, because 1 of 2 would not come back as written ('1.10' -> 1.1)"),
        (["007", "12"], "('007' -> 7)"),
        (["1,5", "2"], "('1,5' has a comma)"),
        (["1e400", "2"], "('1e400' -> inf)"),
        ([" 7", "2"], "(' 7' -> 7.0)"),
        (["3", "N/A", "NaN"], "2 of 3 would not come back as written ('N/A' is not a number)"),
    ],
)  # fmt: skip
def test_a_column_of_numbers_that_stays_text_is_reported(values: list[Any], told: str) -> None:
    graph, changes, warnings = normalise(nodes_with(values))
    assert ([value for _, value in graph.nodes(data="x")], changes) == (values, ())
    assert told in warnings[0]
    assert normalise(nodes_with(values), owned=False)[2] == ()  # the types of a program's own values are meant
    assert normalise(nodes_with(values), raw=True)[2] == ()


def test_a_column_that_is_not_numeric_is_not_reported() -> None:
    for values in (["1.10", "many"], ["NA", "-"], ["192.168.0.1"], ["2024-05-01"], ["1.10", 2]):
        assert normalise(nodes_with(values))[1:] == ((), ())


def test_numbers_of_edges_too_each_attribute_by_itself() -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b", weight="2.5", code="01")
    graph, changes, _ = normalise(graph)
    assert graph.edges["a", "b"] == {"weight": 2.5, "code": "01"}
    assert [(c.kind, c.where, c.count, c.examples) for c in changes] == [("numbers", "edge weight", 1, (("2.5", 2.5),))]


# -- what is needed -----------------------------------------------------------------------------------------------------


def test_raw_leaves_habits_alone_but_not_what_json_cannot_hold() -> None:
    values = ['"PERSON"', "a<SEP>b", "16.0"]
    assert column(values, raw=True) == values
    assert column([2**64, (1,)], raw=True) == [str(2**64), [1]]


def test_values_become_json() -> None:
    given_ = [
        math.inf,
        -math.inf,
        (1, (2,)),
        {3},
        np.float64(1.5),
        np.int64(2),
        datetime.date(2020, 1, 2),
        2**64,
        {1: math.nan},
    ]
    after = [math.inf, -math.inf, [1, [2]], [3], 1.5, 2, "2020-01-02", str(2**64), {"1": None}]
    found = column(given_)
    assert found == after
    assert type(found[4]) is float
    assert column([b"bytes", 1j, "a\ud800"]) == ["bytes", "1j", "a?"]


def test_not_finite_numbers_are_reported_apart() -> None:
    _, changes, _ = normalise(nodes_with([math.nan, 2.0]))
    assert [(change.kind, change.where, change.count) for change in changes] == [("non-finite", "node x", 1)]


@pytest.mark.parametrize("owned", [True, False])
def test_an_attribute_with_two_unicode_forms_is_reported_once(owned: bool) -> None:
    graph = nx.DiGraph()
    graph.add_node("a", **{"caf\u00e9": 1})
    graph.add_nodes_from([("b", {"cafe\u0301": '"2"'}), ("c", {"cafe\u0301": '"3"'}), ("d", {"cafe": 4})])
    graph, _, warnings = normalise(graph, owned=owned)
    assert graph.nodes["a"] == {"caf\u00e9": 1}
    (said,) = warnings
    assert said.startswith(
        "nodes have the attribute \"caf\u00e9\" in 2 Unicode forms ('caf\\xe9' in 1 and 'cafe\\u0301' in 2);"
    )


def test_attributes_with_the_name_of_a_field_are_renamed() -> None:
    graph = nx.MultiDiGraph()
    graph.add_node("a", id="x", degree=3, label="y")
    graph.add_edges_from([("a", "a", {"source": 1, "target": 2, "key": 3, "id": 4})])
    graph, _, warnings = normalise(graph)
    assert graph.nodes["a"] == {"label": "y", "attr.id": "x", "attr.degree": 3}
    assert next(iter(graph.edges(data=True)))[2] == {"id": 4, "attr.source": 1, "attr.target": 2, "attr.key": 3}
    assert len(warnings) == 5
    assert 'the attribute "id" of nodes is renamed "attr.id"' in warnings[0]
    simple = nx.Graph()
    simple.add_edge("a", "b", key=3)
    assert normalise(simple)[0].edges["a", "b"] == {"key": 3}  # no such field where edges have no keys


def test_renaming_takes_no_name_that_is_there() -> None:
    graph = nx.Graph()
    graph.add_node("a", **{"id": 1, "attr.id": 2})
    graph.nodes["a"][7] = "seven"
    graph.nodes["a"]["7"] = "text"
    assert normalise(graph)[0].nodes["a"] == {"attr.id": 2, "7": "text", "attr.attr.id": 1, "attr.7": "seven"}


def test_ids_are_text_or_integers() -> None:
    graph = nx.Graph()
    graph.add_edges_from([((0, 1), 1.5), (1.5, "1.5"), (3, 2**70)])
    graph, changes, warnings = normalise(graph)
    assert list(graph) == ["(0, 1)", "1.5 (2)", "1.5", 3, str(2**70)]
    assert list(graph.edges) == [("(0, 1)", "1.5 (2)"), ("1.5 (2)", "1.5"), (3, str(2**70))]
    assert changes[0].count == 3
    assert "one of them is renamed '1.5 (2)'" in warnings[0]


def test_keys_of_parallel_edges_are_text_or_integers() -> None:
    graph = nx.MultiGraph()
    graph.add_edge("a", "b", key=("x", 1))
    graph.add_edge("a", "b", key="y")
    assert list(normalise(graph)[0].edges(keys=True)) == [("a", "b", "('x', 1)"), ("a", "b", "y")]


def test_a_graph_that_needs_nothing_is_the_same_graph() -> None:
    graph = nx.les_miserables_graph()
    before = content(graph)
    same, changes, warnings = normalise(graph)
    assert same is graph
    assert content(graph) == before
    assert (changes, warnings) == ((), ())


_VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters()), st.binary(max_size=3), st.dates(),
        st.sampled_from(['"q"', "a<SEP>b", "1.5", "007"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=2), st.tuples(inner)),
    max_leaves=5,
)  # fmt: skip


@pytest.mark.slow
@given(
    st.lists(st.dictionaries(st.sampled_from(["x", "id", "key", "description"]), _VALUES), max_size=4), st.booleans()
)
@settings(max_examples=50)
def test_whatever_a_graph_holds_comes_out_as_json(rows: list[dict[str, Any]], raw: bool) -> None:
    graph = nx.MultiDiGraph()
    for number, row in enumerate(rows):
        graph.add_nodes_from([(number, row)])
        graph.add_edges_from([(number, 0, dict(row))])
    graph, _, _ = normalise(graph, raw=raw)
    written = orjson.dumps([list(graph.nodes(data=True)), list(graph.edges(keys=True, data=True))])
    assert orjson.loads(written) is not None
    again, changes, _ = normalise(graph, raw=True)
    assert changes == ()
    assert again is graph


# -- the report ---------------------------------------------------------------------------------------------------------


def test_the_report_for_people_and_programs() -> None:
    _, changes, warnings = normalise(nodes_with(['"PERSON"', '"EVENT"']))
    report = LoadReport(
        "x.graphml", "graphml", False, False, 2, 0, 0.01, changes=changes, warnings=(*warnings, "careful")
    )
    assert list(report.as_lines()) == [
        "x.graphml: undirected graph of 2 nodes and 0 edges (graphml)",
        "node x: quotes around the whole value removed (2); '\"PERSON\"' -> 'PERSON'",
        "warning: careful",
    ]
    told = report.as_json()
    assert orjson.loads(orjson.dumps(told)) == told
    assert told["changes"][0]["examples"][1] == {"before": '"EVENT"', "after": "EVENT"}
