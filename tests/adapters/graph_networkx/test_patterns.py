"""FIND patterns over NetworkX graphs: equal to plain backtracking, whatever the order of the search and the size of its blocks."""

from collections.abc import Sequence
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.graph import AdapterError, Caps, GraphResult
from knotwork.adapters.graph_networkx import (
    NetworkXAdapter,
    pattern_candidates,
    pattern_plan,
    pattern_rows,
    pattern_search,
)
from knotwork.adapters.graph_networkx.find import StaleGraphWarning
from knotwork.lang.evaluate.conditions import ConditionError
from knotwork.lang.parse.gasl import parse_command
from knotwork.lang.trees.conditions import And, Binary, Call, Comparison, Constant, Field, Not, Or
from knotwork.lang.trees.gasl import FindPatterns, Order, Pattern, PatternEdge, PatternNode
from support.conditions import constants, graphs, leaves
from support.examples import many
from support.graphs import people
from support.pattern_oracle import right_rows

pytestmark = pytest.mark.usefixtures("columns_for_small_graphs_too")

NODES, EDGES = ("p", "q", "o"), ("r", "s", "t")
NODE_FIELDS = [("id",), ("degree",), ("a",), ("b",), ("a", "b"), ("attr", "id"), ("n",), ("entity_type",)]
EDGE_FIELDS = [("a",), ("source",), ("target", "a"), ("key",), ("n",), ("relation",)]


@st.composite
def labelled_graphs(draw: st.DrawFn) -> Any:
    """Small graphs of the four kinds, with labels, relations and numbers besides attributes of every type."""
    graph = draw(graphs())
    numbers = st.sampled_from([None, 0, 1, 2, 2.5, -1])
    for _, data in graph.nodes(data=True):
        data["entity_type"] = draw(st.sampled_from(("A", "B")))
        data["n"] = draw(numbers)
    for *_, data in graph.edges(data=True):
        data["relation"] = draw(st.sampled_from(("X", "Y")))
        data["n"] = draw(numbers)
    return graph


@st.composite
def pattern_lists(draw: st.DrawFn) -> tuple[Pattern, ...]:
    """One or two patterns that share a name, with at most three edges."""
    free = list(EDGES)

    def node(shared: bool = False) -> PatternNode:
        name = draw(st.sampled_from(NODES) if shared else st.sampled_from((None, *NODES)))
        labels = draw(st.sampled_from([(), (), ("A",), ("B",), ("A", "B"), ("C",)]))
        properties = draw(st.sampled_from([(), (), (), (("n", Constant(1)),), (("a", Constant("a")),)]))
        return PatternNode(name, labels, properties)

    def edge() -> PatternEdge:
        name = draw(st.sampled_from((None, free[0])))
        if name is not None:
            free.remove(name)
        labels = draw(st.sampled_from([(), (), ("X",), ("Y", "X")]))
        return PatternEdge(draw(st.sampled_from(("out", "in", "either"))), name, labels)

    made: list[Pattern] = []
    for _ in range(draw(st.integers(1, 2))):
        count = draw(st.integers(0, 3 - sum(len(each.edges) for each in made)))
        nodes = [node() for _ in range(count + 1)]
        if made:
            nodes[draw(st.integers(0, count))] = PatternNode(next((n.name for n in made[0].nodes if n.name), "p"))
        edges = [edge() for _ in range(count)]
        made.append(Pattern(tuple(nodes), tuple(edges)))
    if len(made) == 2 and all(each.name is None for each in made[0].nodes):
        made[0] = Pattern((PatternNode("p"), *made[0].nodes[1:]), made[0].edges)
    return tuple(made)


def names_of(patterns: Sequence[Pattern]) -> list[str]:
    parts = [part for pattern in patterns for part in (*pattern.nodes, *pattern.edges)]
    return sorted({part.name for part in parts if part.name is not None})


def fields_of(names: Sequence[str]) -> list[tuple[str, ...]]:
    return [(name, *path) for name in names for path in (NODE_FIELDS if name in NODES else EDGE_FIELDS)]


@st.composite
def comparisons_between(draw: st.DrawFn, names: Sequence[str]) -> Any:
    """A condition on fields of one or several names."""
    at = st.sampled_from(fields_of(names)).map(Field)
    values = st.one_of(
        at,
        constants,
        st.builds(Binary, st.sampled_from("+-*/%"), at, st.one_of(at, constants)),
        st.builds(lambda left, right: Call("coalesce", (left, right)), at, at),
    )
    leaf = st.one_of(
        leaves(at),
        st.builds(Comparison, st.one_of(at, values), st.sampled_from(("=", "!=", "<", "<=", ">", ">=")), values),
        st.builds(
            Comparison,
            st.sampled_from([Field((name,)) for name in names]),
            st.sampled_from(("=", "!=")),
            st.sampled_from([Field((name,)) for name in names]),
        ),
    )
    some = draw(st.lists(leaf, min_size=1, max_size=3))
    shape = draw(st.integers(0, 3))
    if len(some) == 1:
        return some[0] if shape else Not(some[0])
    return And(tuple(some)) if shape else Or(tuple(some))


def found(graph: Any, patterns: Sequence[Pattern], where: Any = None, **rest: Any) -> GraphResult:
    strict = rest.pop("strict", False)
    return NetworkXAdapter(graph, strict=strict).patterns(patterns, where, **rest)


def check_random(data: st.DataObject) -> None:
    graph, patterns = data.draw(labelled_graphs()), data.draw(pattern_lists())
    names = names_of(patterns)
    where = data.draw(st.one_of(st.none(), comparisons_between(names))) if names else None
    order: list[Order] = []
    per: list[Any] = []
    limit = data.draw(st.sampled_from([None, None, 1, 2, 5]))
    if names:
        at = st.sampled_from(fields_of(names)).map(Field)
        order = [Order(value, data.draw(st.booleans())) for value in data.draw(st.lists(at, max_size=2))]
        if limit is not None and data.draw(st.integers(0, 2)) == 0:
            per = [data.draw(at)]
    schema = NetworkXAdapter(graph).schema
    labels = schema.label_attribute, schema.relation_attribute
    if (labels[0] is None and any(node.labels for each in patterns for node in each.nodes)) or (
        labels[1] is None and any(edge.labels for each in patterns for edge in each.edges)
    ):
        with pytest.raises(AdapterError, match="no attribute that distinguishes"):
            found(graph, patterns, where)
        return
    wanted = right_rows(graph, patterns, where, labels, order, limit, per)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pattern_search, "BLOCK", data.draw(st.sampled_from([1, 2, 100_000])))
        patch.setattr(pattern_search, "_FIRST", data.draw(st.sampled_from([1, 256])))
        patch.setattr(pattern_candidates, "_FEW", data.draw(st.sampled_from([0, 256])))
        patch.setattr(pattern_plan, "_SHARE", data.draw(st.sampled_from([0.001, 4, 10**9])))
        patch.setattr(pattern_plan, "_BETTER", data.draw(st.sampled_from([-(10**9), 1.3, 10**9])))
        patch.setattr(pattern_rows, "_KEPT", data.draw(st.sampled_from([2, 100_000])))
        result = found(
            graph, patterns, where, order=order, limit=limit, per=per, strict=data.draw(st.booleans()),
            caps=Caps(timeout_s=600),
        )  # fmt: skip
        assert list(result.items) == wanted, result.used
        assert result.caps_hit == ()
        assert bool(result.missing) is (not wanted)
        assert len(result.matches) == len(wanted)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_rows_are_those_of_backtracking(data: st.DataObject) -> None:
    check_random(data)


@pytest.mark.slow
@settings(max_examples=many(2_000), deadline=None)
@given(st.data())
def test_many_rows_are_those_of_backtracking(data: st.DataObject) -> None:
    check_random(data)


# Examples


def command(text: str) -> FindPatterns:
    program = parse_command(text)
    assert not program.diagnostics, program.diagnostics
    read = program.statements[0].command
    assert isinstance(read, FindPatterns)
    return read


def search(text: str, graph: Any = None, **caps: Any) -> GraphResult:
    """Search ``people()``, or another graph, for the patterns of a command."""
    read = command(text)
    limit = read.limit
    assert limit is None or isinstance(limit, int)
    adapter = NetworkXAdapter(people() if graph is None else graph)
    return adapter.patterns(
        read.patterns, read.where, order=read.order, limit=limit, per=read.per, caps=Caps(**caps)
    )  # fmt: skip


def ids(result: GraphResult, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name]["id"] for name in names) for row in result.items]


def test_a_row_has_the_named_elements_in_the_order_of_the_text() -> None:
    result = search('FIND patterns (p)-[r]->()-[s:pays]->(q) WHERE p.id = "bob" AS x')
    (row,) = result.items
    assert list(row) == ["p", "r", "s", "q"]
    assert row["p"] == {"id": "bob", "kind": "person", "age": 35}
    assert row["s"] == {"source": "cid", "target": "dee", "key": 0, "relation": "pays"}
    (match,) = result.matches
    assert [node["id"] for node in match["nodes"]] == ["bob", "cid", "dee"]
    assert [edge["relation"] for edge in match["edges"]] == ["knows", "pays"]


def test_an_edge_is_used_once_in_a_row_and_a_node_may_stand_under_two_names() -> None:
    assert ids(search("FIND patterns (p)-[r]-(q)-[s]-(o) WHERE p.id = 'bob' AND q.id = 'cid' AS x".replace("'", '"')), "o") == [
        ("ann",), ("dee",),
    ]  # fmt: skip
    back = search('FIND patterns (p)-[r]->(q)<-[s]-(o) WHERE q.id = "bob" AS x')
    assert ids(back, "p", "o") == [("ann", "ann"), ("ann", "ann")]  # the two parallel edges, in both orders


def test_a_name_that_stands_twice_closes_a_cycle() -> None:
    found_rows = search("FIND patterns (a)-[:knows]->(b)-[:knows]->(c)-[:knows]->(a) WHERE a != b AS x")
    assert ids(found_rows, "a", "b", "c") == [("ann", "bob", "cid"), ("bob", "cid", "ann"), ("cid", "ann", "bob")]
    assert ids(search("FIND patterns (a)-[r]->(a) AS x"), "a") == [("dee",)]


def test_patterns_that_share_a_name_are_joined() -> None:
    found_rows = search('FIND patterns (a {id: "cid"})-[:pays]->(b), (a)-[:knows]->(c) AS x')
    assert ids(found_rows, "a", "b", "c") == [("cid", "dee", "ann")]


def test_a_single_node_is_a_pattern() -> None:
    assert ids(search("FIND patterns (p {age: 41}) AS x"), "p") == [("ann",)]


def test_order_limit_and_per() -> None:
    assert ids(search("FIND patterns (p)-[r:knows]->(q) ORDER BY q.age DESC, p.id LIMIT 2 AS x"), "p", "q") == [
        ("cid", "ann"), ("ann", "bob"),
    ]  # fmt: skip
    assert ids(search("FIND patterns (p)-[r]->(q) ORDER BY q.id DESC LIMIT 1 PER p.id AS x"), "p", "q") == [
        ("cid", "dee"), ("dee", "dee"), ("bob", "cid"), ("ann", "bob"),
    ]  # fmt: skip


def test_an_arrow_of_an_undirected_graph_matches_either_way_with_a_note() -> None:
    graph = nx.path_graph(3)
    result = search("FIND patterns (a)-->(b) WHERE a.id = 1 AS x", graph)
    assert ids(result, "b") == [(0,), (2,)]
    assert result.notes == ("the graph is undirected: an arrow matches either way",)
    assert search("FIND patterns (a)--(b) AS x", graph).notes == ()
    assert len(search("FIND patterns (a)--(b) AS x", graph).items) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(a)-->(b), (c)-->(d)", "share no node name"),
        ("(a)-[r]->(b)-[r]->(c)", "r names two edges"),
        ("(a)-[a]->(b)", "a names a node and an edge"),
        ("(a)-->()-->()-->()-->()-->()-->()-->(b)", "the patterns have 7 edges; at most 6 are allowed here"),
    ],
)
def test_patterns_without_a_meaning_are_refused(text: str, message: str) -> None:
    with pytest.raises(AdapterError, match=message):
        search(f"FIND patterns {text} AS x")


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("z.id = 1", "z is not a name in the pattern"),
        ("id = 1", "id is not a name in the pattern"),
        ('ANY a.id = "x"', "ANY a.id is only allowed for paths"),
        ("a.id = nonsense(b.id)", "unknown function nonsense"),
    ],
)
def test_conditions_without_a_meaning_are_refused(where: str, message: str) -> None:
    program = parse_command(f"FIND patterns (a)-->(b) WHERE {where} AS x")
    if any(each.severity == "error" for each in program.diagnostics):
        return  # refused before it runs
    with pytest.raises(ConditionError, match=message):
        read = program.statements[0].command
        assert isinstance(read, FindPatterns)
        found(people(), read.patterns, read.where)


def test_a_label_needs_an_attribute_that_tells_kinds_apart() -> None:
    graph = nx.DiGraph([(1, 2)])
    graph.add_node(1, size=3)
    with pytest.raises(AdapterError, match="no attribute that distinguishes kinds of nodes") as raised:
        search("FIND patterns (p:PERSON)-->(q) AS x", graph)
    assert raised.value.hint == 'write WHERE p.type = "PERSON", with one of: size'
    with pytest.raises(AdapterError, match="no attribute that distinguishes kinds of edges") as raised:
        search("FIND patterns (p)-[:KNOWS]->(q) AS x", graph)
    assert raised.value.hint == "the edges have no attributes"


def business() -> Any:
    graph = nx.DiGraph()
    for name, kind in (("Ann", "PERSON"), ("Bob", "PERSON"), ("Initech", "ORGANIZATION"), ("Hooli", "ORGANIZATION")):
        graph.add_node(name, entity_type=kind)
    graph.add_edge("Ann", "Bob", relation="KNOWS")
    graph.add_edge("Initech", "Ann", relation="EMPLOYS")
    graph.add_edge("Hooli", "Bob", relation="EMPLOYS")
    return graph


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("(p:PERSN)-->(q)", 'no node has entity_type "PERSN"'),
        ("(p)-[:LIKES|HATES]->(q)", 'no edge has relation "LIKES" or "HATES"'),
        (
            "(p:PERSON)-[:EMPLOYS]->(o:ORGANIZATION)",
            "no edge of type EMPLOYS goes from a PERSON to an ORGANIZATION; 2 go the other way",
        ),
        (
            "(p:ORGANIZATION)-[:EMPLOYS]-(o:ORGANIZATION)",
            "no edge of type EMPLOYS is between an ORGANIZATION and an ORGANIZATION",
        ),
        ('(p:PERSON {id: "Eve"})-->(q)', 'no node satisfies entity_type = "PERSON" AND id = "Eve"'),
        ("(p)-->(p)", "no edge goes from a node to itself"),
        (
            "(p)-[r]->(q)-[s]->(o)-[t]->(u)",
            "each element of the patterns occurs in the graph, but not all of them together",
        ),
    ],
)
def test_an_empty_result_names_the_first_element_without_a_candidate(text: str, missing: str) -> None:
    result = search(f"FIND patterns {text} AS x", business())
    assert list(result.items) == []
    assert result.missing == missing.replace(" AND ", " and ")


def test_a_condition_that_no_row_satisfies_is_named() -> None:
    result = search("FIND patterns (p)-[r]->(q) WHERE p.id = q.id AS x", business())
    assert (
        result.missing
        == "each element of the patterns occurs in the graph, but not all of them together with p.id = q.id"
    )


def test_explain_names_the_start_the_steps_and_the_checks() -> None:
    graph = nx.DiGraph()
    for at in range(400):
        graph.add_node(at, entity_type="RARE" if at % 100 == 0 else "PERSON")
        graph.add_edge(at, (at * 7 + 1) % 400, relation="KNOWS")
    read = command("FIND patterns (p:PERSON)-[r]->(o)<-[s]-(q:RARE) WHERE p.id < q.id AS x")
    plan = NetworkXAdapter(graph).explain("patterns", read.where, patterns=read.patterns)
    assert plan.used == (
        "start at q:RARE by index on entity_type, 4 nodes; follow s (mean 1.0); follow r against its direction (mean 1.0); "
        f"check p.id < q.id; about {plan.rows:,} rows, about 1 examined for each start"
    )
    assert "the rows are sorted into the order of the patterns" in plan.notes


def test_attributes_that_were_written_directly_are_seen() -> None:
    graph = nx.DiGraph((at, at + 1) for at in range(300))
    nx.set_node_attributes(graph, 1, "v")
    adapter = NetworkXAdapter(graph)
    read = command("FIND patterns (a)-->(b) WHERE a.v = b.v AND a.v = 1 AS x")
    assert len(adapter.patterns(read.patterns, read.where).items) == 300
    for node in graph:
        graph.nodes[node]["v"] = 2
    with pytest.warns(StaleGraphWarning):
        assert list(adapter.patterns(read.patterns, read.where).items) == []


# Caps: partial, never wrong


@pytest.mark.parametrize(
    ("caps", "hit"),
    [({"max_results": 3}, "max_results"), ({"max_rows": 2}, "max_rows"), ({"max_examined": 4}, "max_examined")],
)
@pytest.mark.parametrize("order", ["", "ORDER BY r.relation, q.id DESC"])
def test_a_cap_gives_a_part_of_the_rows(caps: dict[str, int], hit: str, order: str) -> None:
    read = command(f"FIND patterns (p)-[r]->(q)-[s]->(o) {order} AS x")
    whole = right_rows(people(), read.patterns, order=read.order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pattern_search, "BLOCK", 1)
        result = search(f"FIND patterns (p)-[r]->(q)-[s]->(o) {order} AS x", **caps)
    assert result.caps_hit == (hit,)
    assert all(row in whole for row in result.items)
    assert len(result.items) < len(whole)
    if hit != "max_examined":
        assert list(result.items) == whole[: len(result.items)]


def test_a_limit_is_no_cap() -> None:
    result = search("FIND patterns (p)-[r]->(q) LIMIT 2 AS x", max_results=2)
    assert (len(result.items), result.caps_hit) == (2, ())
    assert search("FIND patterns (p)-[r]->(q) LIMIT 0 AS x").caps_hit == ()
