"""What users of other languages write, and what the edits make of it: the meaning that a reader of the faulty text sees, or no edit.

The tables beside it were judged line by line: after a change, run with ``--update-golden`` and read every line of the difference.
"""

import networkx as nx
import pytest
from knotwork import gasl
from knotwork.lang.catalogue.schema import Schema
from knotwork.lang.diagnostic import Diagnostic, apply_edits
from knotwork.lang.linter.gasl import check
from knotwork.lang.parse.gasl import parse_gasl
from support.folders import GOLDEN

FOLDER = GOLDEN / "gasl/meant"
UNBOUND = {"GASL050", "GASL051", "GASL055"}
"""A line alone has no variables and keys: that they are missing is not a fault of it."""


def errors(text: str, schema: Schema | None = None) -> list[Diagnostic]:
    return [
        each
        for each in check(parse_gasl(text), state={}, schema=schema)
        if each.severity == "error" and each.code not in UNBOUND
    ]


def mended(text: str, schema: Schema | None = None) -> str | None:
    """Return what the edits lead to, round after round; None where an error without an edit is left."""
    for _ in range(5):
        found = errors(text, schema)
        if not found:
            return text
        after = apply_edits(text, [edit for each in found for edit in each.edits])
        if after == text:
            return None
        text = after
    raise AssertionError(f"the edits lead round in a circle: {text}")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["find", "commands"])
def test_the_tables_of_what_is_meant(name: str, golden) -> None:
    lines = (FOLDER / f"{name}.gasl").read_text("utf-8").splitlines()
    assert len(lines) == len(set(lines)) > 150
    told = []
    for line in lines:
        after = mended(line)
        told.append(f"{line}\n    {'no edit' if after is None else 'as it is' if after == line else after}\n")
    golden.check(FOLDER / f"{name}.txt", "".join(told))


def rows(condition: str) -> list[int]:
    with gasl.open(nx.karate_club_graph()) as executor:
        text = mended(f"FIND nodes {condition} AS x", executor.session.graph.schema)
        assert text is not None
        record = executor.execute_one(text)
        assert record.status in ("success", "empty"), record.error
        return [item["id"] for item in record.value or []]


GRAPH = nx.karate_club_graph()
HI = {n for n, club in GRAPH.nodes(data="club") if club == "Mr. Hi"}


@pytest.mark.parametrize(
    ("condition", "meant"),
    [
        ("WHERE NOT degree BETWEEN 2 AND 3", lambda n, d: not 2 <= d <= 3),
        ("WHERE degree NOT BETWEEN 2 AND 3", lambda n, d: not 2 <= d <= 3),
        ('WHERE club = "Officer" OR NOT degree BETWEEN 2 AND 3', lambda n, d: n not in HI or not 2 <= d <= 3),
        ("WHERE 2 <= degree < 4", lambda n, d: 2 <= d < 4),
        ("WHERE NOT 2 <= degree < 4", lambda n, d: not 2 <= d < 4),
        ("WHERE club IN [Mr. Hi, Officer]", lambda n, d: True),
        ("WHERE club NOT IN (Mr. Hi, Officer)", lambda n, d: False),
        ("WHERE club IN (Mr. Hi)", lambda n, d: n in HI),
        ('WHERE club IN ("Mr. Hi" OR "Officer")', lambda n, d: True),
        ('WHERE club ILIKE "mr%"', lambda n, d: n in HI),
        ('WHERE club NOT ILIKE "%HI"', lambda n, d: n not in HI),
        ('WHERE club LIKE "%Hi"', lambda n, d: n in HI),
        ('WHERE "Hi" IN club', lambda n, d: n in HI),
        ('WHERE "Hi" NOT IN club', lambda n, d: n not in HI),
        ("WHERE club MATCHES /^mr/i", lambda n, d: n in HI),
        ('WHERE !(club == "Officer") && degree >= 4', lambda n, d: n in HI and d >= 4),
        ('WHERE degree > 9 || club <> "Officer"', lambda n, d: d > 9 or n in HI),
        ("WHERE degree > 9 OR < 2", lambda n, d: d > 9 or d < 2),
        ("WHERE degree !> 3", lambda n, d: d <= 3),
        ("WHERE club is not None", lambda n, d: True),
        ("WHERE NOT EXISTS(club)", lambda n, d: False),
        ("WHERE 2 * degree BETWEEN 4 AND 6", lambda n, d: 4 <= 2 * d <= 6),
        ("WHERE NOT 100 - degree BETWEEN 90 AND 97", lambda n, d: not 90 <= 100 - d <= 97),
        ("WHERE degree NOT BETWEEN 1 + 1 AND 2 * 3", lambda n, d: not 2 <= d <= 6),
        ("WHERE degree + 1 = 2 OR 3", lambda n, d: d + 1 in (2, 3)),
        ("WHERE 2 * degree > 18 OR < 4", lambda n, d: not 4 <= 2 * d <= 18),
        ("WHERE 1 < degree / 2 < 3", lambda n, d: 1 < d / 2 < 3),
        ("WHERE NOT in_degree <= degree < 4", lambda n, d: d >= 4),
        ('WHERE lower(club) NOT LIKE "mr%"', lambda n, d: n not in HI),
        ('WHERE "Hix" IN club + "x"', lambda n, d: n in HI),
        ('WHERE club = ("Mr. Hi" OR "Other")', lambda n, d: n in HI),
    ],
)
def test_what_is_found_is_what_was_meant(condition: str, meant) -> None:
    assert rows(condition) == [n for n, d in GRAPH.degree if meant(n, d)]


@pytest.mark.parametrize(
    "order",
    ["degree descending", "degree DESCENDING", "descending degree", "-degree", "degree reverse", "degree decreasing"],
)
def test_the_highest_come_first(order: str) -> None:
    for limit in ("", " LIMIT 3"):
        assert rows(f"ORDER BY {order}{limit}")[:3] == [33, 0, 32]


def test_an_empty_list_takes_the_branch_for_empty_ones() -> None:
    found = 'FIND nodes WHERE club = "none" AS x'
    for branch in ("BRANCH IF x is empty: FIND edges AS y", "IF ${x} IS EMPTY THEN FIND edges AS y"):
        text = mended(branch)
        assert text is not None
        with gasl.open(nx.karate_club_graph()) as executor:
            plan = {
                "plan_id": "p",
                "why": "w",
                "config": {"continue_on_empty": True},
                "commands": [found, text, "COUNT y AS n"],
            }
            assert executor.run_plan(plan)[-1].value == 78
