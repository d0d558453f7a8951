"""FIND, WALK, SUBGRAPH, CONNECT, MEASURE: what is found, how much of it, and what is near where there is nothing."""

from typing import Any

import networkx as nx
import pytest
from knotwork.adapters.graph import Caps
from knotwork.lang.evaluate.conditions import Unbound
from support.runners import papers, plain, run, session


def ids(result: Any) -> list[Any]:
    return [item["id"] for item in plain(result)]


def test_nodes_come_in_the_graphs_order_with_all_their_attributes() -> None:
    result = run('FIND nodes WHERE entity_type = "PERSON" AS people')
    assert (result.status, result.count, result.summary) == ("success", 3, {"count": 3})
    assert ids(result) == ["Ada", "Grace", "Alan"]
    assert plain(result)[0] == {
        "id": "Ada", "entity_type": "PERSON", "born": 1815, "source_id": "c1", "description": "Ada wrote papers.",
    }  # fmt: skip


def test_the_value_is_a_plain_list() -> None:
    assert type(plain(run("FIND nodes AS all"))) is list


def test_order_and_limit() -> None:
    assert ids(run("FIND nodes WHERE born > 1800 ORDER BY born DESC LIMIT 2 AS x")) == ["Alan", "Grace"]


def test_edges_have_their_ends() -> None:
    result = run("FIND edges WHERE weight >= 2 AS x")
    assert [(edge["source"], edge["target"], edge["weight"]) for edge in plain(result)] == [
        ("Ada", "Engines", 2), ("Grace", "Compilers", 3),
    ]  # fmt: skip


def test_a_variable_is_bound_as_a_value_and_never_as_text() -> None:
    result = run("FIND nodes WHERE id IN ${names} AS x", names=["Ada", '") OR id != ("'])
    assert ids(result) == ["Ada"]


def test_a_variable_without_a_value_is_told_by_name() -> None:
    with pytest.raises(Unbound) as raised:
        run("FIND nodes WHERE id = ${nobody} AS x")
    assert raised.value.variable.name == "nobody"


def test_a_cap_makes_it_partial_and_a_limit_does_not() -> None:
    few = session(caps=Caps(max_rows=2))
    result = run("FIND nodes AS x", few)
    assert (result.status, result.caps_hit, result.count) == ("partial", ("max_rows",), 2)
    assert result.message == "cut short by max_rows (2); there may be more"
    assert run("FIND nodes LIMIT 2 AS x", few).status == "success"


# Nothing found: what is near


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ('entity_type = "PERSN"', 'entity_type has no "PERSN"; did you mean "PERSON"?'),
        ('entity_type = "person"', 'entity_type has no "person"; did you mean "PERSON"?'),
        ('entity_typ = "PERSON"', "there is no entity_typ; did you mean entity_type?"),
        ('entity_type IN ("PAPR", "PAPER2")', 'entity_type has no "PAPR"; did you mean "PAPER"?'),
        ('entity_type = "quite another thing"', 'entity_type is one of: "PAPER" (3), "PERSON" (3), "TOPIC" (1)'),
    ],
)
def test_an_empty_result_says_what_is_near(condition: str, hint: str) -> None:
    result = run(f"FIND nodes WHERE {condition} AS x")
    assert (result.status, plain(result), result.count) == ("empty", [], 0)
    assert result.message == "no node satisfies the condition"
    assert result.hint == hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('FIND nodes WHERE id = "Alam" AS x', 'id has no "Alam"; did you mean "Alan"?'),
        ('FIND nodes WHERE id = "quite another thing" AS x', ""),
        ('FIND edges WHERE source = "Alam" AS x', 'source has no "Alam"; did you mean "Alan"?'),
        (
            'FIND edges WHERE source.entity_typ = "A" AS x',
            "there is no source.entity_typ; did you mean source.entity_type?",
        ),
        ('FIND edges WHERE relation IN ("WROTEE") AS x', 'relation has no "WROTEE"; did you mean "WROTE"?'),
        ("FIND edges WHERE zzz = 1 AS x", "there is no zzz; the edges have: relation, weight, source_id, file_path"),
        (
            'FIND paths WHERE ANY node.entity_type = "TOPC" AS x',
            'node.entity_type has no "TOPC"; did you mean "TOPIC"?',
        ),
        ('FIND paths FROM (id = "Alam") TO (id = "Logic") AS x', 'id has no "Alam"; did you mean "Alan"?'),
    ],
)
def test_near_are_ids_ends_and_attributes_of_edges(text: str, hint: str) -> None:
    result = run(text)
    assert (result.status, result.hint) == ("empty", hint)


def test_an_empty_graph_says_so() -> None:
    assert run("FIND edges AS x", session(nx.Graph())).message == "the graph has no edges"


def test_a_number_asked_for_where_there_is_text_is_told() -> None:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_node("a", year="1843")
    graph.add_node("b", year="unknown")
    assert (
        run("FIND nodes WHERE year = 1843 AS x", session(graph)).hint
        == 'year is text, and 1843 is a number: write "1843"'
    )


@pytest.mark.slow
def test_a_rare_value_is_found_among_many() -> None:
    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_nodes_from((n, {"name": f"{n:05d}-{n * 7919 % 40_000:05d}"}) for n in range(30_000))
    graph.add_node("last", name="animal")
    graph.add_edge("last", 0, note="a long note on it")
    graph.add_edges_from((n, n + 1, {"note": f"{n * 31:06d}"}) for n in range(100))
    at = session(graph)
    assert run('FIND nodes WHERE name = "animl" AS x', at).hint == 'name has no "animl"; did you mean "animal"?'
    assert run('FIND edges WHERE target.name = "anmal" AS x', at).hint.endswith('did you mean "animal"?')
    assert run('FIND edges WHERE note = "a long nte on it" AS x', at).hint.endswith('did you mean "a long note on it"?')
    both = run('FIND nodes WHERE name = "animal" AND degree > 5 AS x', at)
    assert (both.status, both.hint) == ("empty", ""), "there is such a name: the other condition made it empty"
    graph.add_nodes_from((f"often{n}", {"name": "animals"}) for n in range(9))
    assert run('FIND nodes WHERE name = "animal" AND degree > 5 AS x', at).hint == "", "a rare one is one"
    part = run('FIND nodes WHERE name CONTAINS "anim" AND degree > 5 AS x', at)
    assert (part.status, part.hint) == ("empty", ""), "there is such a part of a name"
    assert run('FIND nodes WHERE name = "00ab1-99xyz" AS x', at).hint.startswith("name is mostly: ")


def test_a_name_with_a_word_more_or_less_is_near() -> None:
    at = session(nx.les_miserables_graph())
    assert run('FIND nodes WHERE id = "Jean Valjean" AS x', at).hint == (
        'id has no "Jean Valjean"; did you mean "Valjean"?'
    )
    assert run('FIND nodes WHERE id = "MlleGillenormand!" AS x', at).hint.endswith('"MlleGillenormand"?')
    assert run('FIND nodes WHERE id = "the whole of the story of Valjean" AS x', at).hint == ""


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('FIND nodes WHERE degree > "5" AS x', 'degree is a number, and "5" is text: write 5'),
        ('FIND nodes WHERE born = "1815" AS x', 'born is a number, and "1815" is text: write 1815'),
        ('FIND nodes WHERE born IN ("early", "late") AS x', 'born is a number, and "early" is text'),
        ('FIND nodes WHERE born STARTS_WITH "18" AS x', 'born is a number, and "18" is text'),
        ("FIND nodes WHERE born = true AS x", "born is a number, and true is a boolean"),
        ("FIND nodes WHERE entity_type > 5 AS x", 'entity_type is text, and 5 is a number: write "5"'),
        ("FIND nodes WHERE id = 5 AS x", 'id is text, and 5 is a number: write "5"'),
        ('FIND edges WHERE source.degree = "1" AS x', 'source.degree is a number, and "1" is text: write 1'),
        ('FIND edges WHERE length = "1" AS x', ""),
        ('FIND paths WHERE length > "1" AS x', 'length is a number, and "1" is text: write 1'),
        ("FIND nodes WHERE born > 3000 AS x", ""),
        ('FIND nodes WHERE source_id = "c9" AS x', 'source_id has no "c9"; did you mean "c1"?'),
    ],
)
def test_a_value_of_another_kind_than_the_attribute_is_told(text: str, hint: str) -> None:
    result = run(text)
    assert (result.status, result.hint) == ("empty", hint)


def test_ids_that_are_numbers_are_told() -> None:
    assert run('FIND nodes WHERE id = "3" AS x', session(nx.path_graph(4))).hint == (
        'id is a number, and "3" is text: write 3'
    )


def test_items_of_a_variable_have_kinds_too() -> None:
    assert (
        run('SELECT v WHERE n > "1" AS x', v=[{"n": 1}, {"n": None}]).hint == 'n is a number, and "1" is text: write 1'
    )
    assert run('SELECT v WHERE n > "1" AS x', v=[{"n": 1}, {"n": "0"}]).hint == ""


# Paths


def test_paths_between_the_nodes_of_variables() -> None:
    at = session()
    run('FIND nodes WHERE entity_type = "PERSON" AS people', at)
    result = run('FIND paths FROM people TO (id = "Logic") MAXLEN 2 AS ways', at)
    assert [path["nodes"] for path in plain(result)] == [["Ada", "Engines", "Logic"], ["Alan", "Machines", "Logic"]]
    assert plain(result)[0]["length"] == 2


def test_texts_are_ids_and_edges_stand_for_their_ends() -> None:
    at = session(variables={"ada": ["Ada"], "edge": [{"source": "Engines", "target": "Logic"}]})
    assert [path["nodes"] for path in plain(run("FIND paths FROM ada TO edge AS ways", at))] == [
        ["Ada", "Engines"],
        ["Ada", "Engines", "Logic"],
    ]


def test_maxlen_above_the_ceiling_is_cut_and_said() -> None:
    result = run("FIND paths FROM ada TO logic MAXLEN 50 AS ways", ada=["Ada"], logic=["Logic"])
    assert (result.status, len(plain(result))) == ("success", 1), "nothing was cut"
    line = session(
        nx.path_graph(12, create_using=nx.DiGraph), variables={"a": [0], "near": [4], "all": list(range(12))}
    )
    assert run("FIND paths FROM a TO near MAXLEN 50 AS ways", line).status == "success"
    result = run("FIND paths FROM a TO all MAXLEN 50 AS ways", line)
    assert (result.status, result.caps_hit, result.count) == ("partial", ("max_path_length",), 8)
    assert result.message == "MAXLEN 50 is above the host's ceiling of 8 edges; longer paths may exist"
    assert result.hint == "SHORTEST finds the shortest paths of any length, WALK all nodes that can be reached"
    assert run("FIND paths FROM a TO all MAXLEN 50 LIMIT 8 AS ways", line).status == "success"


def test_maxlen_may_be_more_than_the_cap_up_to_the_ceiling() -> None:
    at = session(
        nx.path_graph(6, create_using=nx.DiGraph), variables={"a": [0], "b": [5]}, caps=Caps(max_path_length=3)
    )
    assert run("FIND paths FROM a TO b AS ways", at).status in ("empty", "partial")
    assert [path["nodes"] for path in plain(run("FIND paths FROM a TO b MAXLEN 5 AS ways", at))] == [[0, 1, 2, 3, 4, 5]]


def test_no_ceiling_limits_depth_and_radius() -> None:
    at = session(nx.path_graph(12, create_using=nx.DiGraph), variables={"a": [0]}, ceiling=Caps(max_path_length=2))
    walked, around = run("WALK a DEPTH 9 AS x", at), run("SUBGRAPH a RADIUS 9 AS x", at)
    assert (walked.status, walked.count, walked.caps_hit) == ("success", 9, ())
    assert (around.status, around.count, around.caps_hit) == ("success", 10, ())


def test_no_path_says_which_side_is_empty_or_unknown() -> None:
    at = session(variables={"none": [], "ada": ["Ada"], "typo": ["Adaa"], "topic": ["Logic"], "grace": ["Grace"]})
    assert run("FIND paths FROM none TO ada AS x", at).message == "no path was found: none is empty"
    assert run("FIND paths FROM typo TO ada AS x", at).hint == "the graph has no node 'Adaa'"
    assert run("FIND paths FROM grace TO topic MAXLEN 2 AS x", at).message == "no path of at most 2 edges was found"


def test_ids_that_no_node_has_are_told_and_names_are_no_ids() -> None:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_node("n1", name="Ada")
    at = session(graph, variables={"x": ["Ada", "Bob"]})
    hint = "no node has the id 'Ada'; the node with that name is 'n1'; the graph has no node 'Bob'"
    for text in ("WALK x AS y", "SUBGRAPH x RADIUS 1 AS y", "CONNECT x TO x AS y", "FIND paths FROM x TO x AS y"):
        result = run(text, at)
        assert (result.status, result.hint) == ("empty", hint), text


@pytest.mark.parametrize("value", [[True], [1.5], [{"name": "Ada"}], [None], [{"id": None}], [["Ada"]]])
def test_what_stands_for_no_node_is_a_mismatch(value: Any) -> None:
    result = run("WALK x AS y", x=value)
    assert result.status == "schema_mismatch"
    assert result.message.startswith("item 1 of x does not refer to a node: ")


# Around nodes


def test_walk_reaches_neighbours_and_leaves_the_starts_out() -> None:
    ends = {"ada": ["Ada"], "logic": ["Logic"]}
    at = session(variables=ends)
    assert ids(run("WALK ada AS x", at)) == ["Engines"]
    assert ids(run("WALK ada DEPTH 2 AS x", at)) == ["Engines", "Logic"]
    assert sorted(ids(run("WALK logic DIRECTION in AS x", at))) == ["Engines", "Machines"]
    assert ids(run("WALK ada VIA weight > 2 AS x", at)) == []
    for text in ("WALK logic AS x", "FIND paths FROM logic TO ada SHORTEST AS x"):
        assert run(text, at).hint == "DIRECTION both follows edges in both directions"
    undirected = session(nx.empty_graph(["Ada", "Logic"]), variables=ends)
    for text in ("WALK logic AS x", "FIND paths FROM logic TO ada SHORTEST AS x"):
        assert run(text, undirected).hint == ""


def test_subgraph_is_one_object_and_counts_its_nodes() -> None:
    at = session(variables={"ada": ["Ada"]})
    result = run("SUBGRAPH ada RADIUS 1 AS ego", at)
    assert (result.status, result.count, result.summary) == ("success", 2, {"count": 2, "nodes": 2, "edges": 1})
    assert [node["id"] for node in plain(result)["nodes"]] == ["Ada", "Engines"]
    assert run("ASSERT LEN ${ego.nodes} = 2", at).status == "success"
    assert ids(run("WALK ego DEPTH 1 AS x", at)) == ["Logic"], "a subgraph stands for its nodes"


def test_connect_gives_the_edges_between_two_sets() -> None:
    at = session(variables={"people": ["Ada", "Grace"], "papers": ["Engines", "Machines"]})
    result = run("CONNECT papers TO people AS links", at)
    assert [(edge["source"], edge["target"]) for edge in plain(result)] == [("Ada", "Engines")]
    nothing = run('CONNECT papers TO people VIA relation = "WROTTE" AS links', at)
    assert (nothing.status, nothing.hint) == ("empty", 'relation has no "WROTTE"; did you mean "WROTE"?')


def test_measure_gives_a_row_for_each_node() -> None:
    at = session(nx.les_miserables_graph(), variables={"some": ["Valjean", "Javert"]})
    result = run("MEASURE some USING degree AS d", at)
    assert sorted(row["id"] for row in plain(result)) == ["Javert", "Valjean"]
    assert set(plain(result)[0]) == {"id", "degree"}
    assert run("MEASURE graph USING pagerank AS p", at).count == 77


def test_an_unknown_measure_offers_the_nearest() -> None:
    result = run("MEASURE graph USING pagerang AS p")
    assert (result.status, result.hint) == ("error", "did you mean pagerank?")


def test_a_name_that_is_not_bound_offers_what_is_near() -> None:
    result = run("WALK peple AS x", people=["Ada"])
    assert (result.status, result.message) == ("binding_failure", "the variable peple has no value")
    assert result.hint == "did you mean people?"


def test_a_key_of_the_state_is_not_a_variable() -> None:
    at = session()
    run("DECLARE found AS LIST", at)
    assert "is a key of the state" in run("COUNT found AS n", at).hint


def test_the_graph_is_not_written() -> None:
    graph = papers()
    before = nx.to_dict_of_dicts(graph)
    at = session(graph)
    plain(run("FIND nodes AS x", at))[0]["id"] = "changed"
    run("SUBGRAPH x RADIUS 1 AS y", at)
    assert nx.to_dict_of_dicts(graph) == before


def test_a_field_of_the_graph_that_no_found_item_has_is_null_in_per() -> None:
    found = plain(run('FIND nodes WHERE entity_type = "PERSON" LIMIT 1 PER year AS x'))
    assert [item["id"] for item in found] == ["Ada"]
