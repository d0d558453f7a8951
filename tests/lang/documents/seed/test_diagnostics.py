"""What people and models read when a seed is wrong: every faulty seed beside its messages, and what edits promise.

Messages are meant to be read: after a change, run with ``--update-golden`` and look at the difference.
"""

import copy
import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.lang.catalogue.rules import RULES
from knotwork.lang.diagnostic import Diagnostic, apply_edits, picture
from knotwork.lang.documents.seed import read_seed
from knotwork.lang.source import Source
from support.folders import GOLDEN
from support.seed_texts import diagnostics

FOLDER = GOLDEN / "seed/invalid"
SEEDS = sorted(FOLDER.glob("*.json"))


def alike(one: Diagnostic, many: Sequence[Diagnostic]) -> int:
    """Count the diagnostics that say what ``one`` says."""
    return sum((one.code, one.message) == (other.code, other.message) for other in many)


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


def test_there_are_enough_seeds() -> None:
    assert len(SEEDS) >= 45


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.name.split(".")[0])
def test_messages(path: Path, golden) -> None:
    source = Source(text_of(path), path.name)
    found = diagnostics(source)
    assert found
    shown = "\n\n".join(picture(d, source) for d in found)
    mended = apply_edits(source.text, [edit for d in found for edit in d.edits])
    changed = [line for line in mended.splitlines() if line not in source.text.splitlines()]
    told = "\n".join(("\n\n-- with the edits\n", *changed)) if changed else ""
    golden.check(path.with_name(path.name.split(".")[0] + ".txt"), f"{shown}{told}\n")


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.name.split(".")[0])
def test_an_edit_that_is_made_takes_its_fault_away(path: Path) -> None:
    text = text_of(path)
    before = diagnostics(text)
    for diagnostic in before:
        if diagnostic.edits:
            after = diagnostics(apply_edits(text, diagnostic.edits))
            assert alike(diagnostic, after) < alike(diagnostic, before), diagnostic.message


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.name.split(".")[0])
def test_edits_bring_no_fault_of_syntax(path: Path) -> None:
    text = text_of(path)
    before = diagnostics(text)
    if any(d.code.startswith("JSON") and not d.edits for d in before):
        return
    for edits in ([edit for d in before for edit in d.edits], *(d.edits for d in before)):
        known = {(d.code, d.message) for d in before}
        after = diagnostics(apply_edits(text, edits))
        new = [d for d in after if (d.code, d.message) not in known and d.severity == "error"]
        assert [d for d in new if d.code.startswith("JSON") or d.code < "EXPR050"] == []


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.name.split(".")[0])
def test_every_fault_is_in_the_catalogue_and_has_a_place(path: Path) -> None:
    text = text_of(path)
    for diagnostic in diagnostics(text):
        assert RULES[diagnostic.code].language in ("seed", "expr", "json")
        assert diagnostic.span is not None
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
        assert "\n" not in diagnostic.message
        for edit in diagnostic.edits:
            assert 0 <= edit.span.start <= edit.span.end <= len(text)


RULES_OF_SEEDS = [rule for rule in RULES.values() if rule.language == "seed"]


@pytest.mark.parametrize("rule", [rule for rule in RULES_OF_SEEDS if rule.bad], ids=lambda rule: rule.code)
def test_the_examples_of_the_rules(rule) -> None:
    assert rule.code in {d.code for d in diagnostics(rule.bad)}
    assert diagnostics(rule.good) == []
    assert read_seed(rule.good).ok


def test_every_rule_has_an_example_or_cannot() -> None:
    without = {rule.code for rule in RULES_OF_SEEDS if not rule.bad}
    assert without == {"SEED007", "SEED065", "SEED067", "SEED070", "SEED071"}


def test_one_fault_hides_no_other() -> None:
    text = """{"filter": {"keywords": ["allergy"]}, "extract": {"fields": [{"name": "a", "type": "strin"}, {"name": "b", "type": "int"}]},
      "compute": [{"name": "N", "op": "cuont"}, {"name": "M", "op": "count", "where": {"b": 1}}, {"name": "T", "op": "expr", "expr": "N +"},
      {"name": "U", "op": "expr", "expr": "T + M + Q"}], "output": ["U", "X"]}"""
    assert [d.code for d in diagnostics(text)] == ["SEED008", "SEED008", "SEED010", "EXPR002", "EXPR050", "SEED049"]


EXAMPLE = json.loads((FOLDER.parents[2] / "seeds/002/example.seed.json").read_text(encoding="utf-8"))
STRAY: list[Any] = [
    "count",
    "extraction.severity",
    "$IS_INCIDENT",
    "N_MILD",
    "< 4",
    "N_MILD + ",
    3,
    True,
    None,
    [],
    {},
    ["mild"],
    {"gte": 3},
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values inside."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, below in inner for found in ((*path, key), *places(below, (*path, key)))]


PLACES = places(EXAMPLE)


@st.composite
def corrupted(draw: st.DrawFn) -> str:
    """Draw the example of seed 002 with one or two things left out, misspelt, moved, or put in."""
    made = copy.deepcopy(EXAMPLE)
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(PLACES))
        try:
            parent = functools.reduce(lambda value, key: value[key], path[:-1], made)
            old = parent[path[-1]]
        except (KeyError, IndexError, TypeError):
            continue
        how = draw(st.integers(0, 5))
        if how == 0:
            del parent[path[-1]]
        elif how == 1 and isinstance(old, str) and old:
            at = draw(st.integers(0, len(old) - 1))
            parent[path[-1]] = old[:at] + old[at + 1 :]
        elif how == 2 and isinstance(parent, dict) and len(path[-1]) > 2:
            parent[path[-1][:-1]] = parent.pop(path[-1])
        elif how == 3 and isinstance(parent, list):
            parent.append(parent.pop(path[-1]))
        elif how == 4 and isinstance(parent, list):
            parent.insert(0, parent.pop(path[-1]))
        else:
            parent[path[-1]] = draw(st.sampled_from(STRAY))
    return json.dumps(made, indent=1)


@pytest.mark.slow
@given(corrupted())
@settings(max_examples=60)
def test_edits_keep_their_promise_on_any_seed(text: str) -> None:
    before = diagnostics(text)
    for diagnostic in before:
        assert diagnostic.code in RULES
        if diagnostic.edits:
            mended = apply_edits(text, diagnostic.edits)
            after = diagnostics(mended)
            assert alike(diagnostic, after) < alike(diagnostic, before), diagnostic.message
            assert not any(d.code.startswith("JSON") for d in after), mended
