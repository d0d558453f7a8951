"""How the engine searches: what it decides, how it hears of changes, its limits, its nodes."""

import pickle
import warnings
from copy import deepcopy
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.graph import AdapterError, Caps
from knotwork.adapters.graph_networkx import NetworkXAdapter
from knotwork.adapters.graph_networkx.find import StaleGraphWarning
from knotwork.lang.evaluate.conditions import ConditionError
from knotwork.lang.trees.conditions import And, Comparison, Condition, Constant, Field, Items, Not, NullTest, Or
from knotwork.lang.trees.gasl import Order, Path
from support.conditions import KINDS, values
from support.graph_oracle import above, equal, right_edges, right_nodes

pytestmark = pytest.mark.usefixtures("columns_for_small_graphs_too")


# How it is searched


def people(size: int = 4000) -> Any:
    graph = nx.DiGraph()
    for i in range(size):
        graph.add_node(
            i, kind="RARE" if i % 500 == 0 else "PERSON" if i % 4 else "PLACE", age=i % 90, name=f"person {i}"
        )
    graph.add_edges_from((i, (i * 7 + 1) % size, {"weight": i % 10}) for i in range(size))
    return graph


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "used"),
    [
        (equal("kind", "RARE"), "index on kind"),
        (And((above("age", 50), equal("kind", "RARE"))), "index on kind"),
        (equal("kind", "PERSON"), "column on kind"),
        (And((equal("kind", "PERSON"), above("age", 50))), "columns on kind, age"),
        (above("age", 88), "index on age"),
        (Comparison(Field(("name",)), "CONTAINS", Constant("99")), "column on name"),
        (Comparison(Field(("kind",)), "IN", Items((Constant("RARE"), Constant("none")))), "index on kind"),
        (Not(equal("kind", "PERSON")), "column on kind"),
        (Or((equal("kind", "RARE"), equal("kind", "none"))), "index on kind"),
        (Or((equal("kind", "RARE"), equal("age", 1))), "columns on kind, age"),
        (None, "scan"),
        (equal("age", 2**60), "scan"),
    ],
)
def test_an_index_where_it_is_selective_else_columns(where: Condition | None, used: str) -> None:
    graph = people()
    adapter = NetworkXAdapter(graph)
    found = adapter.nodes(where)
    plan = adapter.explain("nodes", where)
    assert found.used == plan.used == used
    wanted = list(graph) if where is None else right_nodes(graph, where)
    assert [item["id"] for item in found.items] == wanted
    assert len(found.items) / 2 <= plan.rows <= len(found.items) * 2 + 50
    if used.startswith("index"):
        assert plan.rows <= found.examined < 400


@pytest.mark.slow
def test_edges_by_their_ends() -> None:
    graph = people()
    adapter = NetworkXAdapter(graph)
    for where, used in (
        (equal("source", 70), "index on source"),
        (equal("target.kind", "RARE"), "index on target.kind"),
        (And((equal("source.kind", "RARE"), above("weight", -1))), "index on source.kind"),
        (above("source.degree", 1), "column on source.degree"),
    ):
        found = adapter.edges(where)
        assert found.used == used
        assert [(item["source"], item["target"]) for item in found.items] == right_edges(graph, where)


def test_explain_paths() -> None:
    adapter = NetworkXAdapter(people())
    plan = adapter.explain("paths", And((equal("source.kind", "RARE"), above("length", 1))), ends=[5])
    assert plan.used == "paths from nodes by index on kind to 1 nodes"
    longer = "the condition allows longer paths than max_path_length"
    assert plan.notes == ("lengths 2 to 3", "the index finds 8 of 4,000 nodes", "pruned from both ends", longer)
    plan = adapter.explain("paths", And((equal("source.kind", "RARE"), above("length", 1))), ends=[5], max_length=3)
    assert longer not in plan.notes


@pytest.mark.slow
def test_text_in_many_different_values() -> None:
    graph = nx.Graph()
    names = [f"{chr(97 + i % 26)}{i}é{'x' * (i % 3)}" for i in range(6000)] + ["", "\ud800z", "é"]
    graph.add_nodes_from((i, {"name": name}) for i, name in enumerate(names))
    adapter = NetworkXAdapter(graph)
    for operator, test in (
        ("CONTAINS", str.__contains__),
        ("STARTS_WITH", str.startswith),
        ("ENDS_WITH", str.endswith),
    ):
        for needle in ("a", "é", "99", "", "éx", "zzz", "\ud800", "a26é"):
            where = Comparison(Field(("name",)), operator, Constant(needle))
            assert [item["id"] for item in adapter.nodes(where).items] == [
                i for i, n in enumerate(names) if test(n, needle)
            ]
            unlike = [i for i, n in enumerate(names) if not test(n, needle)]
            assert [item["id"] for item in adapter.nodes(Not(where)).items] == unlike


# The graph changes


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_change_through_networkx_is_seen(kind: Any) -> None:
    graph = kind()
    adapter = NetworkXAdapter(graph)
    where, heavy = equal("kind", "A"), equal("weight", 1)

    def seen() -> tuple[int, int, int]:
        counts = len(adapter.nodes(where).items), len(adapter.edges(heavy).items), len(adapter.paths(None, None).items)
        fresh = NetworkXAdapter(graph, strict=True)
        assert counts == (
            len(fresh.nodes(where).items), len(fresh.edges(heavy).items), len(fresh.paths(None, None).items)
        )  # fmt: skip
        return counts

    changes = [
        lambda: graph.add_node("x", kind="A"),
        lambda: graph.add_nodes_from(["y", "z"], kind="A"),
        lambda: graph.add_edge("x", "y", weight=1),
        lambda: graph.add_edges_from([("y", "z"), ("z", "x")], weight=1),
        lambda: graph.add_weighted_edges_from([("x", "z", 2)]),
        lambda: graph.update(edges=[("z", "w")], nodes=["v"]),
        lambda: graph.add_node("v", kind="A"),
        lambda: nx.set_node_attributes(graph, "A", "kind"),
        lambda: graph.remove_edge("x", "y"),
        lambda: graph.remove_edges_from([("y", "z")]),
        lambda: graph.remove_node("x"),
        lambda: graph.remove_nodes_from(["y"]),
        lambda: graph.clear_edges(),
        lambda: graph.clear(),
    ]
    states = [seen()]
    for change in changes:
        change()
        states.append(seen())
    assert len(set(states)) > 8
    assert states[-1] == (0, 0, 0)


def test_direct_writes_are_caught_by_the_audit() -> None:
    graph = people(400)
    adapter = NetworkXAdapter(graph)
    where = equal("kind", "NEW")
    assert len(adapter.nodes(where).items) == 0
    for node in graph:
        graph.nodes[node]["kind"] = "NEW"
    with pytest.warns(StaleGraphWarning, match="invalidate"):
        assert len(adapter.nodes(where).items) == 400


@pytest.mark.slow
def test_a_hit_that_no_longer_holds_is_never_shown() -> None:
    graph = people(20_000)
    adapter = NetworkXAdapter(graph)
    few, many = equal("kind", "RARE"), equal("kind", "PERSON")
    before = adapter.nodes(many).items
    assert len(adapter.nodes(few).items) == 40
    graph.nodes[500]["kind"] = "written"
    graph.nodes[501]["kind"] = "written"
    with pytest.warns(StaleGraphWarning):
        assert len(adapter.nodes(few).items) == 39
    with pytest.warns(StaleGraphWarning):
        assert 501 not in {item["id"] for item in before}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(adapter.nodes(many).items) == 14_999


def test_strict_and_invalidate_see_direct_writes() -> None:
    graph = people(400)
    strict, kept = NetworkXAdapter(graph, strict=True), NetworkXAdapter(graph)
    where = equal("kind", "NEW")
    assert len(kept.nodes(where).items) == len(strict.nodes(where).items) == 0
    graph.nodes[3]["kind"] = "NEW"
    assert len(strict.nodes(where).items) == 1
    kept.invalidate()
    assert len(kept.nodes(where).items) == 1
    assert strict.nodes(where).used == "scan"


def test_views_are_live() -> None:
    graph = people(400)
    view = graph.subgraph(range(300))
    adapter = NetworkXAdapter(view)
    assert len(adapter.nodes(equal("kind", "PERSON")).items) == 225
    graph.remove_node(1)
    assert len(adapter.nodes(equal("kind", "PERSON")).items) == 224
    assert adapter.nodes(equal("kind", "PERSON")).used == "scan"


def test_what_is_kept_does_not_travel_with_the_graph() -> None:
    graph = people(400)
    assert len(NetworkXAdapter(graph).nodes(equal("kind", "PERSON")).items) == 300
    for other in (deepcopy(graph), pickle.loads(pickle.dumps(graph)), graph.copy()):
        other.nodes[1]["kind"] = "other"
        assert len(NetworkXAdapter(other).nodes(equal("kind", "PERSON")).items) == 299


def test_one_condition_is_not_taken_for_another() -> None:
    graph = people(400)
    graph.add_node("yes", age=True)
    adapter = NetworkXAdapter(graph)
    for value, count in ((1, 5), (True, 1), (1.0, 5)):
        assert len(adapter.nodes(equal("age", value)).items) == count


# Limits


def test_a_limit_is_no_cap() -> None:
    adapter = NetworkXAdapter(people())
    for where in (None, equal("kind", "PERSON"), above("age", 88)):
        total = len(adapter.nodes(where).items)
        assert adapter.nodes(where).caps_hit == ()
        assert adapter.nodes(where, caps=Caps(max_results=total)).caps_hit == ()
        capped = adapter.nodes(where, caps=Caps(max_results=5))
        assert (len(capped.items), capped.caps_hit) == (5, ("max_results",))
        limited = adapter.nodes(where, limit=5, caps=Caps(max_results=5))
        assert (len(limited.items), limited.caps_hit) == (5, ())
        more = adapter.nodes(where, limit=6, caps=Caps(max_results=5))
        assert (len(more.items), more.caps_hit) == (5, ("max_results",))
        assert adapter.nodes(where, limit=0).items == []


def test_ordering_comes_before_limits() -> None:
    adapter = NetworkXAdapter(people())
    order = [Order(Path(("age",)), True), Order(Path(("name",)))]
    found = adapter.nodes(equal("kind", "PERSON"), order=order, limit=2)
    assert [(item["age"], item["name"]) for item in found.items] == [(89, "person 1079"), (89, "person 1169")]
    assert [item["age"] for item in adapter.nodes(None, order=order, caps=Caps(max_results=1)).items] == [89]


@pytest.mark.slow
def test_a_million_ways_are_bounded() -> None:
    adapter = NetworkXAdapter(nx.complete_graph(60))
    found = adapter.paths(None, None, caps=Caps(max_path_length=8))
    assert (len(found.items), found.caps_hit) == (10_000, ("max_paths",))
    assert found.items[0]["nodes"] == [0, 1]
    found = adapter.paths([0], [1], limit=3, caps=Caps(max_path_length=8))
    assert [item["nodes"] for item in found.items] == [[0, 1], [0, 2, 1], [0, 3, 1]]
    assert found.caps_hit == ()
    nowhere = Comparison(Field(("node", "x"), "any"), "=", Constant(1))
    found = adapter.paths(None, None, where=nowhere, caps=Caps(max_path_length=8, timeout_s=0.2))
    assert (len(found.items), found.caps_hit) == (0, ("timeout_s",))
    found = adapter.paths([0], [1], where=equal("length", 3), caps=Caps(max_paths=5))
    assert (len(found.items), found.caps_hit) == (5, ("max_paths",))


def test_a_condition_that_asks_for_longer_paths_than_the_cap() -> None:
    adapter = NetworkXAdapter(nx.path_graph(9))
    for where, hit in (
        (equal("length", 5), True),
        (Comparison(Field(("length",)), "<=", Constant(5)), True),
        (equal("length", 2), False),
        (above("length", 1), True),
        (above("length", 3), True),
        (equal("length", 70), False),
        (None, True),
    ):
        assert adapter.paths([0], None, where=where).caps_hit == (("max_path_length",) if hit else ())


def test_time_is_a_cap() -> None:
    adapter = NetworkXAdapter(people())
    for found in (
        adapter.nodes(equal("kind", "RARE"), caps=Caps(timeout_s=0)),
        adapter.edges(None, caps=Caps(timeout_s=0)),
        adapter.paths(None, None, caps=Caps(timeout_s=0)),
    ):
        assert found.caps_hit == ("timeout_s",)


@pytest.mark.slow
def test_twenty_thousand_operands() -> None:
    adapter = NetworkXAdapter(people())
    wide = Or(tuple(equal("age", number) for number in range(88, 20_088)))
    assert {item["age"] for item in adapter.nodes(wide).items} == {88, 89}
    never = Or(tuple(above("age", number) for number in range(100, 20_100)))
    assert adapter.nodes(never, caps=Caps(timeout_s=0.2)).caps_hit == ("timeout_s",)
    with pytest.raises(ConditionError, match="pattern"):
        adapter.nodes(Comparison(Field(("name",)), "MATCHES", Constant("(")))


@pytest.mark.slow
def test_what_is_cut_short_is_not_passed_off_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(NetworkXAdapter(nx.empty_graph(100_001)).find_nodes()) == 100_001
    monkeypatch.setattr("knotwork.adapters.graph_networkx.adapter._MOST_PATHS", 100)
    with pytest.raises(AdapterError, match="max_paths"):
        NetworkXAdapter(nx.complete_graph(60)).find_paths(range(30), range(30, 60), 5)


# Nodes


def test_nodes_of_any_kind_have_ids() -> None:
    graph = nx.grid_2d_graph(2, 2)
    adapter = NetworkXAdapter(graph)
    assert [item["id"] for item in adapter.nodes(None).items] == ["(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)"]
    assert adapter.get_node("(0, 1)") == {"id": "(0, 1)"}
    assert adapter.find_paths(["(0, 0)"], ["(1, 1)"], 2) == [
        ["(0, 0)", "(1, 0)", "(1, 1)"],
        ["(0, 0)", "(0, 1)", "(1, 1)"],
    ]
    assert [item["id"] for item in adapter.nodes(equal("id", "(1, 0)")).items] == ["(1, 0)"]


def test_a_node_by_its_id_or_its_name() -> None:
    graph = nx.Graph()
    graph.add_node("n1", name="Ada")
    graph.add_node("n2", label="Bob", id="own", degree=7)
    graph.add_node("n3", title="Bob")
    graph.add_node(4, name="n1")
    adapter = NetworkXAdapter(graph)
    assert adapter.get_node("n1") == {"id": "n1", "name": "Ada"}
    assert adapter.get_node("Ada") == {"id": "n1", "name": "Ada"}
    assert adapter.get_node("n2") == {"id": "n2", "label": "Bob", "attr.id": "own", "attr.degree": 7}
    assert adapter.get_node("Bob") is None
    assert adapter.get_node("4") is None
    assert adapter.get_node(4) == {"id": 4, "name": "n1"}
    assert adapter.get_node(5) is None
    assert adapter.get_node(True) is None  # type: ignore[arg-type]


def test_values_become_json() -> None:
    import datetime
    import decimal

    import numpy as np

    graph = nx.Graph()
    graph.add_node(
        1, i=np.int64(3), f=np.float32(0.5), b=np.bool_(True), s=np.str_("x"), array=np.arange(2), set={"b", "a"},
        day=datetime.date(2020, 1, 2), tuple=(1, (2,)), bytes=b"a\xff", nan=float("nan"), inf=float("inf"),
        price=decimal.Decimal("1.5"), deep={1: {"x": float("inf")}},
    )  # fmt: skip
    adapter = NetworkXAdapter(graph)
    assert adapter.get_node(1) == {
        "id": 1, "i": 3, "f": 0.5, "b": True, "s": "x", "array": [0, 1], "set": ["a", "b"], "day": "2020-01-02",
        "tuple": [1, [2]], "bytes": "a\\xff", "nan": None, "inf": None, "price": 1.5, "deep": {"1": {"x": None}},
    }  # fmt: skip
    for where in (
        equal("i", 3), equal("f", 0.5), equal("b", True), equal("s", "x"), above("inf", 1e300), NullTest(Field(("nan",))),
        Comparison(Field(("set",)), "CONTAINS", Constant("a")), above("day", "2020-01-01"), equal("array", (0, 1)),
    ):  # fmt: skip
        assert len(adapter.nodes(where).items) == len(NetworkXAdapter(graph, strict=True).nodes(where).items) == 1


def test_ids_that_the_graph_lacks_start_no_path() -> None:
    found = NetworkXAdapter(nx.path_graph(3)).paths(["nobody", 0, 0, True], [1, "1"])
    assert [item["nodes"] for item in found.items] == [[0, 1]]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(values, min_size=1, max_size=8), st.sampled_from(["a", 1]))
def test_counts_of_the_index_are_exact(column: list[Any], value: Any) -> None:
    graph = nx.Graph()
    graph.add_nodes_from((i, {"x": each}) for i, each in enumerate(column))
    adapter = NetworkXAdapter(graph)
    plan = adapter.explain("nodes", equal("x", value))
    if plan.used.startswith("index"):
        assert plan.rows == len(adapter.nodes(equal("x", value)).items)


def test_threads_share_what_is_computed() -> None:
    from concurrent.futures import ThreadPoolExecutor

    graph = people()
    adapter = NetworkXAdapter(graph)
    queries = [equal("kind", "RARE"), above("age", 80), equal("target.kind", "RARE")] * 8

    def ask(at: int) -> int:
        where = queries[at]
        return len(adapter.edges(where).items if at % 3 == 2 else adapter.nodes(where).items)

    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(ask, range(len(queries))))
    assert counts == [8, 396, 8] * 8


def test_the_schema_of_an_open_graph_knows_all_ids() -> None:
    graph: Any = nx.DiGraph()
    graph.add_nodes_from(["SCROOGE", 7, ("a", 1)])
    adapter = NetworkXAdapter(graph)
    ids = adapter.schema.all_ids
    assert ids is not None
    assert [each in ids for each in ("SCROOGE", 7, "7", True, None, "CRATCHIT", 1.5)] == [True, True, *[False] * 5]
    assert all(node["id"] in ids for node in adapter.find_nodes())
    assert ids.nearest("SCROOEG") == "SCROOGE"
    graph.add_node("CRATCHIT")
    assert "CRATCHIT" in ids


def test_similar_ids_are_not_looked_for_in_large_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knotwork.adapters.graph_networkx.adapter._MOST_COMPARED", 1)
    ids = NetworkXAdapter(nx.path_graph(["SCROOGE", "CRATCHIT"])).schema.all_ids
    assert ids is not None and ids.nearest("SCROOEG") is None and "SCROOGE" in ids
