"""Conditions and orders in a database against the NetworkX adapter on the same graph: the same rows in the same order."""

import json
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork import gasl
from knotwork.adapters.graph import Caps
from knotwork.adapters.graph_cypher import found_rows, ladybug_database, rows_in_database
from knotwork.adapters.graph_cypher.adapter import CypherAdapter
from knotwork.adapters.graph_cypher.found_rows import RowsInDatabase
from knotwork.adapters.graph_networkx import NetworkXAdapter
from knotwork.adapters.graph_networkx.rows import DEGREES
from knotwork.lang.evaluate.conditions import Tally, counted, look_up
from knotwork.lang.trees.conditions import Comparison, Field
from knotwork.lang.trees.gasl import Order
from knotwork.runtime.gasl.relation import FoundRows
from support.conditions import OPERATORS, conditions
from support.examples import many
from support.typed_graph import EDGE_PATHS, PATHS

pytestmark = pytest.mark.slow


def some(count: int) -> int:
    """Return the number of examples: an example runs a dozen statements, so runs that draw no new ones draw fewer."""
    return count if many(count) == count else count // 15


def both(database: Any, memory: NetworkXAdapter, kind: Any, where: Any, **rest: Any) -> None:
    """Compare the items, the caps, the counts of rows that are left out because of types, and the examples of nodes."""
    found = []
    for adapter in (database, memory):
        # A message can't contain an infinite number.
        with nullcontext(Tally()) if "inf" in repr(where) else counted() as tally:
            result = getattr(adapter, kind)(where, **rest)
            items = list(result.items)
        found.append((written(items), result.caps_hit, tally.mismatched, tally.examples if kind == "nodes" else {}))
    assert found[0] == found[1]
    if not rest:
        plan = database.explain(kind, where)
        assert plan.rows >= len(items)
        assert plan.rows == len(items) or "test" in plan.used


def written(items: Any) -> list[str]:
    """Return the items as text, in which 1, 1.0 and true differ. The order of attributes has no meaning."""
    return [json.dumps(item, sort_keys=True, default=str) for item in items]


def test_the_copy_is_the_graph(typed: CypherAdapter, same: NetworkXAdapter) -> None:
    both(typed, same, "nodes", None)
    both(typed, same, "edges", None)
    whole = typed._whole("a test", Caps())
    both(whole, same, "nodes", None, limit=None)
    both(whole, same, "edges", None, limit=None)


orders = st.lists(st.tuples(st.sampled_from(PATHS), st.booleans()), max_size=2).map(
    lambda pairs: [Order(Field(path), descending) for path, descending in pairs]
)


@given(where=st.none() | conditions(PATHS), taken=st.lists(st.integers(0, 44), max_size=5))
@settings(max_examples=some(450))
def test_rows_that_stay_in_the_database(
    typed: CypherAdapter, same: NetworkXAdapter, where: Any, taken: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_in_database, "_FEW", -1)
        patch.setattr(rows_in_database, "_SOME", -1)
        for kind, paths in (("nodes", PATHS), ("edges", EDGE_PATHS)):
            found = getattr(typed, kind)(where if kind == "nodes" else None)
            expected = list(getattr(same, kind)(where if kind == "nodes" else None).items)
            if found.columnar is None:
                continue
            rows = FoundRows(found.columnar())
            assert len(rows) == len(expected)
            places = [at for at in taken if at < len(expected)]
            for some_rows, items in ((rows, expected), (rows.take(places), [expected[at] for at in places])):
                assert written(some_rows.block(slice(0, 3))) == written(items[:3])
                for path in paths:
                    column = some_rows.values(path)
                    if column is not None and path[-1] not in DEGREES and path[0] not in ("source", "target"):
                        assert written(column) == written([look_up(item, path) for item in items])
                    array = some_rows.array(path)
                    if array is not None:
                        assert array.listed() == column
                assert written(list(some_rows)) == written(items)
                assert set(some_rows.fields()) == {name for item in items for name in item}


@given(where=st.none() | conditions(PATHS), taken=st.lists(st.integers(0, 44), max_size=5))
@settings(max_examples=some(150))
def test_rows_that_are_fetched_by_their_places(
    typed: CypherAdapter, same: NetworkXAdapter, where: Any, taken: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_in_database, "_FEW", -1)
        patch.setattr(rows_in_database, "_SOME", -1)
        for kind, paths in (("nodes", PATHS), ("edges", EDGE_PATHS)):
            expected = list(getattr(same, kind)(where if kind == "nodes" else None).items)
            places = [at for at in taken if at < len(expected)]
            columns = []
            for has_arrow in (True, False):
                patch.setattr(ladybug_database, "find_spec", (lambda name: name) if has_arrow else (lambda name: None))
                found = getattr(typed, kind)(where if kind == "nodes" else None)
                if found.columnar is None:
                    return
                rows = FoundRows(found.columnar())
                columns.append([None if (values := rows.values(path)) is None else written(values) for path in paths])
                patch.setattr(RowsInDatabase, "_fetch", None)  # all rows are not needed
                assert written(rows.take(places)) == written([expected[at] for at in places])
                rows.expect(places)
                assert written(rows[at] for at in places) == written([expected[at] for at in places])
                patch.undo()
                patch.setattr(rows_in_database, "_FEW", -1)
                patch.setattr(rows_in_database, "_SOME", -1)
            assert columns[0] == columns[1]


def test_the_first_rows_of_many(typed: CypherAdapter, same: NetworkXAdapter) -> None:
    """They are found before an estimated position if they are distributed evenly, and else by sorting."""
    for where in (None, "i > 0", "label = 'A'"):
        expected = same.find_nodes(where)  # type: ignore[arg-type]
        for most in (1, 2, 5):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(rows_in_database, "_FEW", -1)
                patch.setattr(found_rows, "_FIRST", most)
                found = typed.nodes(where).columnar  # type: ignore[arg-type]
                assert found is not None
                assert written(found()[:most]) == written(expected[:most])  # type: ignore[index]


def test_edges_that_are_fetched_in_columns(typed: CypherAdapter, same: NetworkXAdapter) -> None:
    """Edges are fetched at once; above a number they are counted, and fetched when they are read."""
    for where in (None, "w > 0", "relation = 'R'", "source.t = 'a' OR w = 1"):
        expected = same.find_edges(where)  # type: ignore[arg-type]
        for few, some_edges in ((-1, 50_000), (3, 50_000), (-1, -1), (3, 5), (3, -1)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(rows_in_database, "_FEW", few)
                patch.setattr(rows_in_database, "_SOME", some_edges)
                found = typed.edges(where)  # type: ignore[arg-type]
                assert written(found.items) == written(expected)
                assert found.columnar is None or written(found.columnar()[:2]) == written(expected[:2])  # type: ignore[index]


def test_columns_of_ends_and_degrees(typed: CypherAdapter, same: NetworkXAdapter) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_in_database, "_FEW", -1)
        edges = typed.edges(None).columnar()  # type: ignore[misc]
        nodes = typed.nodes(None).columnar()  # type: ignore[misc]
    assert edges is not None
    assert nodes is not None
    assert edges.values(("source", "t")) is None  # a text has two Unicode forms there
    assert nodes.values(("degree",)) == same.node_values([item["id"] for item in same.find_nodes()], ("degree",))


@given(where=st.none() | conditions(PATHS), order=orders, limit=st.none() | st.integers(0, 12), most=st.integers(1, 60))
@settings(max_examples=some(3_500))
@pytest.mark.timeout(3_600)  # for a search of new examples
def test_nodes(
    typed: CypherAdapter, same: NetworkXAdapter, where: Any, order: Any, limit: int | None, most: int
) -> None:
    both(typed, same, "nodes", where, order=order, limit=limit, caps=Caps(max_results=most))


@given(where=conditions(EDGE_PATHS), limit=st.none() | st.integers(0, 12))
@settings(max_examples=some(1_500))
@pytest.mark.timeout(3_600)  # for a search of new examples
def test_edges(typed: CypherAdapter, same: NetworkXAdapter, where: Any, limit: int | None) -> None:
    order = [] if limit is None else [Order(Field(("w",)), True)]
    both(typed, same, "edges", where, order=order, limit=limit)


@given(st.sampled_from(PATHS), st.sampled_from(PATHS), st.sampled_from(OPERATORS[:6]))
@settings(max_examples=some(600))
def test_two_fields(typed: CypherAdapter, same: NetworkXAdapter, left: Any, right: Any, operator: Any) -> None:
    both(typed, same, "nodes", Comparison(Field(left), operator, Field(right)))


_FUNCTIONS = ("count", "sum", "mean", "min", "max")


@given(
    kind=st.sampled_from(("nodes", "edges")),
    by=st.lists(st.integers(0, 30), max_size=2),
    computed=st.lists(st.tuples(st.sampled_from(_FUNCTIONS), st.integers(0, 30)), max_size=2),
    has_where=st.booleans(),
)
@settings(max_examples=some(900))
def test_groups(
    typed: CypherAdapter, same: NetworkXAdapter, kind: Any, by: list[int], computed: list[Any], has_where: bool
) -> None:
    """COUNT and AGGREGATE give the same rows, record and status whether the database or this process computes the groups."""
    paths = PATHS if kind == "nodes" else EDGE_PATHS
    names = [_name(paths[at % len(paths)]) for at in by]
    calls = [
        f"{function}({_name(paths[at % len(paths)])}) AS c{place}" for place, (function, at) in enumerate(computed)
    ]
    where = " WHERE t IS NOT NULL" if has_where else ""
    grouped_by = f" BY {', '.join(f'{name} AS k{place}' for place, name in enumerate(names))}" if names else ""
    last = f"AGGREGATE x{grouped_by} COMPUTE {', '.join(['count()', *calls])} AS y"
    if not calls and names:
        last = f"COUNT x{grouped_by} AS y"
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_in_database, "_FEW", -1)
        for graph in (typed, same):
            executor = gasl.open(graph)
            records = [executor.execute_one(text) for text in (f"FIND {kind}{where} AS x", last)]
            record = records[1]
            value = executor.context.get("y") if record.ok else None
            evidence = executor.context.value("y")
            pieces = [list(evidence.evidence_at(at)) for at in range(evidence.count)] if evidence is not None else []
            metrics = {name: each for name, each in record.metrics.items() if name != "used"}
            shapes = [sorted((each.metrics.get("shape") or {}).get("fields", ())) for each in records]
            found.append((record.status, written(value or []), written(pieces), written([metrics]),
                          record.provenance_summary, (record.error or {}).get("message"), shapes))  # fmt: skip
    assert found[0] == found[1]


def _name(path: tuple[str, ...]) -> str:
    return ".".join(name if name.isidentifier() else "`" + name.replace("`", "``") + "`" for name in path)
