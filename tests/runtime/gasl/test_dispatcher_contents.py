"""What is known about a variable: the same for a command alone as in a whole program, and the same in every command on rows."""

from typing import Any

import networkx as nx
import pytest
from knotwork import gasl
from support.executing import executor


def mixed() -> Any:
    """People with a score, and places with a height; edges between them, one of which has a fee."""
    graph: Any = nx.MultiDiGraph()
    graph.add_node("Ada", kind="PERSON", score=None)
    graph.add_node("Ben", kind="PERSON")
    graph.add_node("Basel", kind="PLACE", height=260, score=7)
    graph.add_node("Turin", kind="PLACE", height=239)
    graph.add_edge("Ada", "Turin", relation="AT", since=2001)
    graph.add_edge("Ben", "Basel", relation="AT", since=2005)
    graph.add_edge("Basel", "Turin", relation="NEAR", fee=3)
    return graph


def both_ways(text: str, graph: Any = None) -> list[tuple[str, Any]]:
    """Run a program as a whole and a command at a time; the results must be equal. Return them."""
    commands = text.strip().splitlines()
    with executor(graph=graph or mixed()) as one:
        alone = [one.execute_one(command) for command in commands]
    try:
        with executor(graph=graph or mixed()) as whole:
            records = whole.run_plan(
                {"plan_id": "p", "why": "w", "commands": commands, "config": {"continue_on_empty": True}}
            )
    except gasl.PlanError as refused:
        (fault,) = [each for each in refused.diagnostics if each.severity == "error"]
        assert alone[-1].error is not None and alone[-1].error["diagnostic"]["code"] == fault.code
        assert fault.message in (
            alone[-1].error["message"],
            f"commands[{len(commands) - 1}]: {alone[-1].error['message']}",
        )
    else:
        assert [(each.status, each.value) for each in records] == [(each.status, each.value) for each in alone]
    return [(each.status, each.value) for each in alone]


def weights(path: Any) -> list[int]:
    return [edge["weight"] for edge in path["edges"]]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("ANY edge.weight > 15", lambda path: any(each > 15 for each in weights(path))),
        ("ALL edge.weight > 3", lambda path: all(each > 3 for each in weights(path))),
        ("NONE edge.weight > 15", lambda path: not any(each > 15 for each in weights(path))),
        ('ANY node.id = "Valjean"', lambda path: "Valjean" in path["nodes"]),
        ("INCREASING edge.weight", lambda path: weights(path) == sorted(weights(path))),
        ("INCREASING node.id", lambda path: path["nodes"] == sorted(path["nodes"])),
        ("sum(edges.weight) > 24", lambda path: sum(weights(path)) > 24),
        ("source.degree > 5 AND length < 4", lambda path: path["length"] < 4),
    ],
)
def test_conditions_on_the_paths_of_a_variable(condition: str, holds: Any) -> None:
    program = f'FIND paths FROM (id = "Myriel") TO (id = "Javert") SHORTEST 20 AS p\nSELECT p WHERE {condition} AS x'
    (_, paths), (status, value) = both_ways(program, nx.les_miserables_graph())
    assert value == [path for path in paths if holds(path)]
    assert status == ("success" if value else "empty")


@pytest.mark.parametrize("quantifier", ["ANY", "ALL", "NONE", "INCREASING"])
def test_attributes_of_nodes_that_paths_do_not_hold_are_refused(quantifier: str) -> None:
    test = "INCREASING node.group" if quantifier == "INCREASING" else f"{quantifier} node.group = 1"
    program = f'FIND paths FROM (id = "Myriel") TO (id = "Javert") SHORTEST 4 AS p\nSELECT p WHERE {test} AS x'
    with executor(graph=nx.les_miserables_graph()) as at:
        *_, record = [at.execute_one(command) for command in program.splitlines()]
    assert (record.status, record.error["diagnostic"]["code"]) == ("schema_mismatch", "GASL069")
    assert "FIND paths WHERE" in record.error["hint"]
    both_ways(program, nx.les_miserables_graph())


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("SELECT p WHERE b.degree > 2 AS x", ["Turin", "Turin"][:0]),
        ("SELECT p WHERE b.in_degree = 2 AS x", ["Turin", "Turin"]),
        ("SELECT p WHERE r.source.kind = \"PLACE\" AS x", ["Turin"]),
        ("SELECT p WHERE r.source.id = \"Ben\" AS x", ["Basel"]),
        ("SELECT p WHERE b.score IS NULL AS x", ["Turin", "Turin"]),
        ("RANK p BY r.source.in_degree DESC, a.out_degree AS x", ["Turin", "Turin", "Basel"]),
    ],
)  # fmt: skip
def test_fields_of_the_nodes_and_edges_in_rows(command: str, expected: list[str]) -> None:
    results = both_ways(f"FIND patterns (a)-[r]->(b) AS p\n{command}\nCOUNT x AS n")
    assert [row["b"]["id"] for row in results[1][1]] == expected
    assert results[2] == ("success", len(expected))


def test_computed_fields_of_rows_in_values() -> None:
    results = both_ways(
        "FIND patterns (a)-[r]->(b) AS p\n"
        "SELECT p FIELDS a, b, b.degree AS degree, r.target.height AS height, r.source.id AS begun AS s\n"
        "AGGREGATE p BY r.source.kind AS kind COMPUTE max(b.in_degree) AS most AS g\n"
        "SELECT s FIELDS b.out_degree AS out AS t"
    )
    assert [(row["degree"], row["height"], row["begun"]) for row in results[1][1]] == [
        (2, 239, "Ada"), (2, 260, "Ben"), (2, 239, "Basel"),
    ]  # fmt: skip
    assert results[2][1] == [{"kind": "PERSON", "most": 2}, {"kind": "PLACE", "most": 2}]
    assert [row["out"] for row in results[3][1]] == [0, 1, 0]


PEOPLE = 'FIND nodes WHERE kind = "PERSON" AS p\n'


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("SELECT p FIELDS id, coalesce(height, 0) AS h AS x", [{"id": "Ada", "h": 0}, {"id": "Ben", "h": 0}]),
        ("SELECT p FIELDS height AS x", [{"height": None}, {"height": None}]),
        ("COUNT p BY height AS x", [{"height": None, "count": 2}]),
        ("AGGREGATE p COMPUTE sum(height), count(height) AS x", [{"sum_height": None, "count_height": 0}]),
        ("UNNEST p BY height AS x", []),
        ("FIND nodes AS all\nJOIN p WITH all ON height AS x", []),
        ("FIND nodes AS all\nLEFT JOIN p WITH all AS other ON height AS x\nCOUNT x AS n", 2),
        ("FIND nodes AS all\nEXCEPT p WITH all ON height AS x\nCOUNT x AS n", 2),
        ("RANK p BY height LIMIT 1 PER height AS x\nSELECT x FIELDS id AS y", [{"id": "Ada"}]),
        ("FIND patterns (a {id: \"Ada\"})-[r]->(b) AS q\nSELECT q FIELDS r.fee, a.height AS x", [{"r.fee": None, "a.height": None}]),
    ],
)  # fmt: skip
def test_an_attribute_of_the_graph_that_no_selected_item_has_is_null(command: str, expected: Any) -> None:
    status, value = both_ways(PEOPLE + command)[-1]
    assert (status, value) == ("empty" if expected == [] else "success", expected)


@pytest.mark.parametrize(
    "command", ["SELECT p FIELDS hight AS x", "RANK p BY hight AS x", "COUNT p BY hight AS x", "UNNEST p BY hight AS x"]
)
def test_a_field_that_the_graph_lacks_is_refused(command: str) -> None:
    ((_, people), (status, value)) = both_ways(PEOPLE + command)
    assert len(people) == 2 and status in ("error", "schema_mismatch") and value is None


def test_names_of_joined_fields_depend_on_no_value() -> None:
    """The people have no height; the field of that name is theirs all the same."""
    program = (
        PEOPLE + 'FIND nodes WHERE kind = "PLACE" AS places\n'
        'FIND edges WHERE relation = "AT" AS at\nJOIN p WITH at ON id = source AS going\n'
        "JOIN going WITH places ON target = id AS x\nSELECT x FIELDS id, height, right.height AS y"
    )
    assert both_ways(program)[-1] == (
        "success",
        [{"id": "Ada", "height": None, "right.height": 239}, {"id": "Ben", "height": None, "right.height": 260}],
    )
