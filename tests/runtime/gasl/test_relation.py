"""Variables as columns: what max_results bounds, and numbers over groups that are exact."""

import math
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pytest
from knotwork import gasl
from knotwork.adapters.columns import NumberArray, ascending
from knotwork.runtime.gasl.commands.groups import NUMBERS, GroupedNumbers, groups_of_arrays
from knotwork.runtime.gasl.relation import Relation
from support.clients import Scripted
from support.runners import run, session


def ring(size: int) -> "nx.DiGraph[int]":
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_edges_from(
        (at, (at + 1) % size, {"weight": at, "kind": "even" if at % 2 == 0 else "odd"}) for at in range(size)
    )
    return graph


def test_a_count_over_more_items_than_a_record_has_is_exact_and_no_part() -> None:
    with gasl.open(ring(1_000), caps=gasl.Caps(max_results=10)) as opened:
        found, counted, total, ranked = opened.run_plan(
            "FIND edges AS e\nCOUNT e AS n\nAGGREGATE e BY kind COMPUTE sum(weight) AS s\nRANK e BY weight DESC LIMIT 1 AS top"
        )
        assert (found.status, found.metrics["count"], len(found.value)) == ("partial", 1_000, 10)
        assert found.summary["shown"] == 10
        assert found.error is not None
        assert found.error["message"] == (
            "the record shows the first 10 of 1,000 items, limited by max_results; e has all of them"
        )
        assert (counted.status, counted.value) == ("success", 1_000)
        assert total.value == [{"kind": "even", "sum_weight": 249_500}, {"kind": "odd", "sum_weight": 250_000}]
        assert ranked.value[0]["weight"] == 999
        assert gasl.plan_status([found, counted, total, ranked]) == "success", "only a record lacks items"
        assert gasl.plan_status([found]) == "partial"


def test_what_is_kept_is_bounded_and_marked() -> None:
    with gasl.open(ring(1_000), caps=gasl.Caps(max_results=10)) as opened:
        records = opened.run_plan("FIND edges AS e\nDECLARE k AS LIST\nUPDATE k WITH e\nCOUNT e AS n")
        assert [record.status for record in records] == ["partial", "success", "partial", "success"]
        reason = "only the first 10 of 1,000 items of e were kept, limited by max_results"
        assert records[2].error is not None and reason in records[2].error["message"]
        assert opened.state.snapshot().declared("k")[0].incomplete == (reason,)
        assert records[3].value == 1_000, "the variable has all of them"


def test_what_is_sent_to_a_model_is_bounded_and_marked() -> None:
    model = Scripted(default="yes")
    with gasl.open(ring(100), llm=model, caps=gasl.Caps(max_results=3)) as opened:
        records = opened.run_plan('FIND nodes AS x\nCLASSIFY x BY "is it?" INTO ("yes", "no") AS y\nCOUNT x AS n')
        assert (records[1].status, len(records[1].value)) == ("partial", 3)
        assert records[1].error is not None
        assert "only the first 3 of 100 items of x were sent to a model" in records[1].error["message"]
        assert records[2].value == 100


def test_rows_are_bounded_too() -> None:
    with gasl.open(ring(1_000), caps=gasl.Caps(max_rows=10)) as opened:
        records = opened.run_plan("FIND edges AS e\nCOUNT e AS n")
        assert [record.status for record in records] == ["partial", "partial"]
        assert records[0].metrics["caps_hit"] == ["max_rows"]


@pytest.mark.slow
def test_items_are_built_only_when_somebody_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with gasl.open(ring(5_000)) as opened:
        opened.execute_one("FIND edges AS e")
        held = opened.context.value("e").held
        assert isinstance(held, Relation)
        for command in ("COUNT e BY kind AS x", "AGGREGATE e COMPUTE mean(weight * 2) AS x", "SELECT e WHERE weight > 5 AS big",
                        "RANK e BY weight DESC LIMIT 3 AS x", "SELECT e FIELDS source, weight AS x", "COUNT e AS n"):  # fmt: skip
            assert opened.execute_one(command).ok
        assert held._items is None, "no command has built the items"
        assert opened.context.get("e")[:1] == [{"source": 0, "target": 1, "weight": 0, "kind": "even"}]


def test_the_first_of_each_group_of_what_is_found() -> None:
    with gasl.open(ring(1_000)) as opened:
        record = opened.execute_one("FIND edges WHERE weight < 900 ORDER BY weight DESC LIMIT 2 PER kind AS x")
        assert [item["weight"] for item in record.value] == [899, 897, 898, 896]
        assert opened.execute_one("FIND edges LIMIT 0 PER kind AS x").status == "empty"


def test_attributes_that_were_written_directly_are_read_from_the_graph() -> None:
    graph = ring(1_000)
    with gasl.open(graph) as opened:
        opened.execute_one("FIND edges AS e")
        opened.execute_one("COUNT e BY kind AS x")
        for _, _, data in graph.edges(data=True):
            data["kind"] = "new"
        with pytest.warns(UserWarning, match="without NetworkX's methods"):
            record = opened.execute_one("COUNT e BY kind AS x")
        assert record.value == [{"kind": "new", "count": 1_000}]


def test_a_graph_that_was_changed_does_not_mix_old_columns_with_new_ones() -> None:
    graph = ring(1_000)
    with gasl.open(graph) as opened:
        opened.execute_one("FIND nodes AS n")
        opened.execute_one("RANK n BY degree DESC LIMIT 1 AS x")
        graph.remove_node(0)
        record = opened.execute_one("COUNT n BY degree AS x")
        assert sum(row["count"] for row in record.value) == 1_000


def numbers(chance: Random, size: int) -> list[float | None]:
    kind = chance.choice(["cents", "wide", "tiny", "huge", "mixed"])
    made: list[float | None] = []
    for _ in range(size):
        value = {
            "cents": lambda: round(chance.uniform(-1e6, 1e6), 2),
            "wide": lambda: chance.uniform(-1, 1) * 10.0 ** chance.randint(-30, 30),
            "tiny": lambda: chance.uniform(-1, 1) * 1e-310,
            "huge": lambda: chance.uniform(-1, 1) * 1e300,
            "mixed": lambda: chance.choice([0.0, -0.0, 1e16, 1.0, -1e16, 0.1]),
        }[kind]()
        made.append(None if chance.random() < 0.1 else value)
    return made


def compare(seed: int) -> None:
    chance = Random(seed)
    size = chance.randint(1, 200)
    whole = chance.random() < 0.4
    values = (
        [None if chance.random() < 0.1 else chance.randint(-(2**53) + 1, 2**53 - 1) for _ in range(size)]
        if whole
        else numbers(chance, size)
    )
    keys = [chance.choice([None, *range(chance.randint(1, 9))]) for _ in range(size)]

    def array(given: list[Any], integers: bool) -> NumberArray:
        return NumberArray(np.array([math.nan if each is None else each for each in given], np.float64), integers)

    groups = groups_of_arrays([array(keys, True)])
    assert [key for (key,) in groups.keys] == list(dict.fromkeys(keys))
    found = GroupedNumbers(array(values, whole), groups)
    for (key,), members, total, mean, least in zip(
        groups.keys, groups.members, NUMBERS["sum"](found), NUMBERS["mean"](found), NUMBERS["min"](found), strict=True
    ):
        own = [value for value, other in zip(values, keys, strict=True) if other == key and value is not None]
        assert list(members) == [at for at, other in enumerate(keys) if other == key]
        if not own:
            assert (total, mean, least) == (None, None, None)
            continue
        exact = sum(own) if whole else math.fsum(own)
        assert (total, type(total)) == (exact, int if whole else float), seed
        assert (mean, least) == (exact / len(own), min(own)), seed


@pytest.mark.slow
def test_sums_over_groups_are_exact() -> None:
    for seed in range(150):
        compare(seed)


@pytest.mark.slow
def test_sums_over_groups_are_exact_many_times() -> None:
    for seed in range(1_000, 6_000):
        compare(seed)


@pytest.mark.slow
def test_the_sign_of_a_zero_is_that_of_the_first_row_as_in_python() -> None:
    chance = Random(7)
    for _ in range(300):
        size = chance.randint(1, 12)
        values = [chance.choice([0.0, -0.0, -0.0, 1.0, -1.0, math.nan]) for _ in range(size)]
        keys = np.array([float(chance.randint(0, 2)) for _ in range(size)])
        groups = groups_of_arrays([NumberArray(keys, True)])
        found = GroupedNumbers(NumberArray(np.array(values), False), groups)
        rows = zip(groups.members, found.extremes(True), found.extremes(False), found.at_share(0.5), strict=True)
        for members, least, most, (near, _) in rows:
            own = [values[at] for at in members if values[at] == values[at]]
            assert repr((least, most)) == repr((min(own), max(own)) if own else (None, None))
            middle = sorted(own)[(len(own) - 1) // 2 : len(own) // 2 + 1]
            assert repr(near) == repr(middle)


@pytest.mark.slow
@pytest.mark.parametrize("values", [[0.0, -0.0], [-0.0, 0.0], [1.0, -0.0, 0.0]])
def test_columns_and_lists_give_the_same_zero(values: list[float]) -> None:
    graph: Any = nx.DiGraph()
    for at, value in enumerate(values * 100):
        graph.add_node(at, x=value, y=-1.0 if value else value)
    with gasl.open(graph) as opened:
        opened.execute_one("FIND nodes AS n")
        opened.execute_one("SELECT n FIELDS x, y AS rows")
        text = "AGGREGATE {} COMPUTE min(x) AS a, max(y) AS b, median(y) AS c AS x"
        of_columns, of_rows = (opened.execute_one(text.format(name)).value for name in ("n", "rows"))
        own = [-1.0 if value else value for value in values * 100]
        assert repr(of_columns) == repr(of_rows)
        assert repr(of_columns[0]["a"]) == repr(min(values)) and repr(of_columns[0]["b"]) == repr(max(own))


@pytest.mark.slow
def test_the_first_in_an_order_are_those_of_a_stable_sort() -> None:
    for seed in range(200):
        chance = Random(seed)
        size = chance.randint(1, 300)
        keys = [
            (np.array([chance.choice([math.nan, *range(6)]) for _ in range(size)]), chance.random() < 0.5)
            for _ in range(chance.randint(1, 2))
        ]
        rows = list(range(size))
        for ranks, descending in reversed(keys):
            there = [at for at in rows if ranks[at] == ranks[at]]
            there.sort(key=lambda at: ranks[at], reverse=descending)  # used at once
            rows = there + [at for at in rows if ranks[at] != ranks[at]]
        for most in (None, 0, 1, 5, size):
            assert ascending(keys, most).tolist() == (rows if most is None else rows[:most]), seed


@pytest.mark.parametrize("command", ["JOIN v WITH v ON n AS x", "UNNEST v BY parts AS x"])
def test_time_bounds_joins_and_lists(command: str) -> None:
    items = [{"n": 1, "parts": [1, 2]}] * 50
    result = run(command, session(caps=gasl.Caps(timeout_s=0.0)), v=items)
    assert (result.status, result.caps_hit, result.count) == ("partial", ("timeout_s",), 0)
