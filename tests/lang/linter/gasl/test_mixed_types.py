"""Attributes whose values have several types: the linter says before a run what a comparison leaves out and an order separates."""

import networkx as nx
import pytest
from knotwork.adapters.graph_networkx import NetworkXAdapter
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.linter.gasl import check
from knotwork.lang.parse.gasl import parse_gasl


def schema():
    graph = nx.DiGraph()
    values = (
        ("1", 4, "7", True, "yes"),
        (1, "4", "8", False, "no"),
        ("c", "often", "9", "true", "yes"),
        ("d", 6.5, "10", True, "no"),
    )
    for node, size, code, open_, paid in values:
        graph.add_node(node, size=size, code=code, open=open_, paid=paid, rank=node if node != "c" else "2.5")
    graph.nodes["d"]["rank"] = 7
    graph.add_edge("1", 1, w=1)
    return NetworkXAdapter(graph).schema


SCHEMA = schema()
RANK = "rank is a number in 2 nodes and a string in 2"
SIZE = "size is a number in 2 nodes and a string in 2"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("FIND nodes WHERE size > 3 AS x", f'{SIZE}; the comparison with 3 leaves out 2 strings (1 "4", c "often")',
         None),
        ('FIND nodes WHERE size CONTAINS "o" AS x', f'{SIZE}; the comparison with "o" leaves out 2 numbers ("1" 4, d 6.5)', None),
        ("FIND nodes WHERE size = 4 AS x", f'{SIZE}; 4 is not equal to "4", the value in 1 node (1 "4")',
         'write size IN (4, "4") for all of them'),
        ("FIND nodes WHERE size NOT IN (4) AS x", f'{SIZE}; 4 is not equal to "4", the value in 1 node (1 "4")',
         'add "4" to the list for all of them'),
        ("FIND nodes WHERE id = 1 AS x",
         'id is a string in 3 nodes and a number in 1; 1 is not equal to "1", the value in 1 node ("1" "1")',
         'write id IN (1, "1") for all of them'),
        ("FIND nodes ORDER BY size DESC AS x", f'{SIZE}; sorting puts 2 strings (1 "4", c "often") after the numbers',
         None),
        ("FIND nodes AS a\nRANK a BY size AS x", f'{SIZE}; sorting puts 2 strings (1 "4", c "often") after the numbers',
         None),
        ("FIND nodes AS a\nCOUNT a BY size AS x", f'{SIZE}; values of different types are never equal (1 "4", c "often")',
         None),
        ("FIND nodes AS a\nAGGREGATE a COMPUTE max(size) AS most AS x", f'{SIZE}; the function takes values of one type (1 "4", c "often")',
         None),
        ("FIND nodes WHERE rank > 3 AS x", f'{RANK}; the comparison with 3 leaves out 2 strings ("1" "1", c "2.5")',
         "write number(rank) > 3 to read the strings as numbers"),
        ("FIND nodes ORDER BY rank AS x", f'{RANK}; sorting puts 2 strings ("1" "1", c "2.5") after the numbers',
         "write number(rank) to read the strings as numbers"),
        ("FIND paths FROM (id = \"c\") TO (id = \"d\") WHERE ANY node.rank > 3 AS x",
         f'{RANK}; the comparison with 3 leaves out 2 strings ("1" "1", c "2.5")', None),
        ("FIND paths FROM (id = \"c\") TO (id = \"d\") WHERE INCREASING node.rank AS x",
         f'{RANK}; a path with values of different types is not increasing ("1" "1", c "2.5")', None),
        ("FIND patterns (p)-[r]->(q) WHERE q.size < 9 AS x", f'{SIZE}; the comparison with 9 leaves out 2 strings (1 "4", c "often")',
         None),
    ],
)  # fmt: skip
def test_what_is_left_out_or_separated(text, message, hint):
    (found,) = [each for each in check(parse_gasl(text), schema=SCHEMA) if each.code == "GASL099"]
    assert (found.severity, found.message, found.hints[0] if found.hints else None) == ("warning", message, hint)


@pytest.mark.parametrize("text", [
    "FIND nodes WHERE number(size) > 3 ORDER BY number(size) DESC AS x",
    'FIND nodes WHERE size IN (4, "4") AS x',
    "FIND nodes WHERE size IS NULL AS x",
    "FIND nodes WHERE size = 6.5 AS x",
    "FIND edges WHERE w > 0 ORDER BY w AS x",
])  # fmt: skip
def test_nothing_is_said_of(text):
    assert not [each for each in check(parse_gasl(text), schema=SCHEMA) if each.code == "GASL099"]


@pytest.mark.parametrize(("written", "right"), [
    ("code = 7", 'code = "7"'), ("code = 5", None), ("paid = true", None), ("code IN (8, 11)", 'code IN ("8", 11)'), ("size = 6", None),
    ('size = "6.5"', "size = 6.5"), ("open = \"false\"", "open = false"),
])  # fmt: skip
def test_an_edit_offers_only_a_value_that_the_attribute_has(written, right):
    text = f"FIND nodes WHERE {written} AS x"
    edits = [edit for each in check(parse_gasl(text), schema=SCHEMA) for edit in each.edits]
    assert (apply_edits(text, edits) if edits else None) == (right and f"FIND nodes WHERE {right} AS x")
