"""JOIN ... SIMILAR: candidates for the same thing, best first, and what bounds it."""

from random import Random
from time import monotonic
from typing import Any

import pytest
from knotwork.adapters.graph import Caps
from knotwork.runtime.gasl.commands.similar_join import similar_pairs
from support import gasl_oracle as oracle
from support.cpu_time import pace
from support.runners import evidence, plain, run, session

NAMES = [
    "Ebenezer Scrooge",
    "SCROOGE",
    "John Smith",
    "Smith, John",
    "J. Smith",
    "Éva",
    "eva",
    "",
    "!!",
    None,
    5,
    "Tiny Tim",
]
ITEMS = [{"id": at, "name": name} for at, name in enumerate(NAMES)]


def pairs(left: Any, right: Any, least: float, **caps: Any) -> tuple[list[tuple[float, int, int]], str]:
    bounds = {"most_pairs": 10**7, "most_compared": 10**9, "stopped": lambda: False, **caps}
    found = similar_pairs(left, right, least, **bounds)
    rows = zip(found.similarity.tolist(), found.left.tolist(), found.right.tolist(), strict=True)
    return list(rows), found.hit


def test_each_pair_of_a_variable_with_itself_is_there_once_the_most_similar_first() -> None:
    result = run("JOIN v WITH v ON name SIMILAR 0.45 AS x", v=ITEMS)
    rows = plain(result)
    assert [(row["name"], row["right.name"]) for row in rows] == [
        ("John Smith", "Smith, John"), ("Éva", "eva"), ("John Smith", "J. Smith"), ("Smith, John", "J. Smith"),
        ("Ebenezer Scrooge", "SCROOGE"),
    ]  # fmt: skip
    assert rows[0] == {"id": 2, "name": "John Smith", "right.id": 3, "right.name": "Smith, John", "similarity": 1.0}
    assert [round(row["similarity"], 2) for row in rows] == [1.0, 1.0, 0.58, 0.58, 0.47]
    assert result.summary["mismatched"] == {"name": 1}
    assert evidence(result)[0] == [
        {"kind": "computed", "step": "", "columns": {"similarity": "similarity(name, right.name)"}, "over": 24}
    ]


def test_two_variables_give_every_pair() -> None:
    rows = plain(
        run("JOIN v WITH w ON name = alias SIMILAR 0.5 AS x", v=ITEMS, w=[{"alias": "scrooge"}, {"alias": "eva"}])
    )
    assert [(row["name"], row["alias"], row["similarity"]) for row in rows] == [
        ("SCROOGE", "scrooge", 1.0), ("Éva", "eva", 1.0), ("eva", "eva", 1.0),
    ]  # fmt: skip


def test_equally_similar_pairs_are_in_the_order_of_their_left_then_of_their_right_items() -> None:
    items = [{"id": at, "name": name} for at, name in enumerate(["ann lee", "bob", "lee ann", "ANN LEE"])]
    for other, pairs in (
        ("v", [(0, 2), (0, 3), (2, 3)]),
        ("w", [(0, 0), (0, 2), (0, 3), (1, 1), (2, 0), (2, 2), (2, 3)]),
    ):
        rows = plain(run(f"JOIN v WITH {other} ON name SIMILAR 0.9 AS x", v=items, w=list(items)))
        assert [(row["id"], row["right.id"]) for row in rows][: len(pairs)] == pairs


def test_the_right_item_may_be_nested_and_values_may_be_computed() -> None:
    rows = plain(run('JOIN v WITH v AS mate ON replace(name, "J. ", "John ") SIMILAR 0.9 AS x', v=ITEMS[:5]))
    assert [(row["id"], row["mate"]["id"]) for row in rows] == [(2, 3), (2, 4), (3, 4)]


def test_a_field_called_similarity_is_not_overwritten() -> None:
    result = run("JOIN v WITH v ON name SIMILAR 0.5 AS x", v=[{"name": "a", "similarity": 1}])
    assert (result.status, result.message) == ("schema_mismatch", "the rows would have two fields similarity")


def test_nothing_similar_is_empty_with_a_hint() -> None:
    result = run("JOIN v WITH v ON name SIMILAR 0.9 AS x", v=[{"name": "ab"}, {"name": "xy"}])
    assert (result.status, result.hint) == ("empty", "a lower number finds more pairs")
    result = run("JOIN v WITH v ON age SIMILAR 0.9 AS x", v=[{"age": 1}, {"age": 2}])
    assert (result.status, result.hint) == ("empty", "age is a number, but SIMILAR compares strings: write str(age)")


def words(chance: Random, count: int) -> list[Any]:
    parts = ["ann", "anna", "Änne", "bob", "Bobby", "smith", "smyth", "x", "de la", "O'Hara", "42", ""]
    return [
        chance.choice([None, 7, *[" ".join(chance.choices(parts, k=chance.randint(1, 3))) for _ in range(8)]])
        for _ in range(count)
    ]


def compare(seeds: range) -> None:
    for seed in seeds:
        chance = Random(seed)
        left, right = words(chance, chance.randint(0, 25)), words(chance, chance.randint(0, 25))
        least = chance.choice([0.05, 0.2, 1 / 3, 0.5, 0.6, 0.75, 0.9, 1.0])
        assert pairs(left, None, least)[0] == oracle.similar(left, None, least), seed
        assert pairs(left, right, least)[0] == oracle.similar(left, right, least), seed


@pytest.mark.slow
def test_every_pair_that_comparing_all_finds() -> None:
    compare(range(60))


@pytest.mark.slow
def test_every_pair_that_comparing_all_finds_many_times() -> None:
    compare(range(1_000, 4_000))


@pytest.mark.slow
def test_the_first_pairs_are_kept_when_there_are_too_many() -> None:
    many = ["ann smith"] * 40 + ["ann smyth"] * 40
    whole, hit = pairs(many, None, 0.3)
    assert hit == ""
    assert pairs(many, None, 0.3, most_pairs=100) == (whole[:100], "max_rows")


def test_the_candidates_are_bounded_and_it_says_so() -> None:
    at = session(caps=Caps(max_examined=10))
    items = [{"name": f"person {number}"} for number in range(60)]
    result = run("JOIN v WITH v ON name SIMILAR 0.3 AS x", at, v=items)
    assert (result.status, result.caps_hit) == ("partial", ("max_examined",))
    assert "max_examined (10)" in result.message


@pytest.mark.slow
def test_equal_texts_end_in_time() -> None:
    at = session(caps=Caps(timeout_s=1.0))
    began = monotonic()
    result = run("JOIN v WITH v ON name SIMILAR 0.5 AS x", at, v=[{"name": "the same"}] * 20_000)
    assert monotonic() - began < 10 * pace()
    assert result.status == "partial"
    assert set(result.caps_hit) <= {"timeout_s", "max_rows"}


@pytest.mark.slow
@pytest.mark.parametrize(("block", "marks"), [(1, 1), (7, 50), (1 << 18, 1 << 22)])
def test_the_size_of_the_blocks_changes_nothing(block: int, marks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = Random(3)
    texts = ["".join(chance.choice("abc ") for _ in range(chance.randrange(12))) for _ in range(80)]
    expected = [pairs(texts, right, least) for right in (None, texts[:30]) for least in (0.2, 0.5, 1.0)]
    monkeypatch.setattr("knotwork.runtime.gasl.commands.similar_join._BLOCK", block)
    monkeypatch.setattr("knotwork.runtime.gasl.commands.similar_join._MARKS", marks)
    assert [pairs(texts, right, least) for right in (None, texts[:30]) for least in (0.2, 0.5, 1.0)] == expected
