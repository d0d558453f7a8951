"""What editors offer in the parts around the steps of a seed: metadata, examples, resolve, reduce, tally; hover and renaming there."""

import json
from typing import Any

import pytest
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.service import complete, hover, rename
from support.seed_texts import diagnostics

SEED = """{
  "meta": {"price": "float", "country": "text"},
  "extract": {
    "fields": [{"name": "dish", "type": "text"}, {"name": "mood", "values": ["good", "bad"]}],
    "examples": [{"text": "t", "extraction": {"dish": "soup", "mood": "good"}}]
  },
  "resolve": [{"field": "dish", "as": "dish_name"}],
  "reduce": [{"name": "TOP", "from": ["extraction.dish_name"], "where": {"extraction.mood": "bad"}, "prompt": "The dishes."}],
  "compute": [
    {"name": "BY", "op": "tally", "field": "extraction.dish_name", "top": 3},
    {"name": "N", "op": "expr", "expr": "len(TOP) + len(BY)"}@
  ],
  "output": ["BY", "N"]
}
"""


def offered(text: str) -> list[str]:
    offset = text.rindex("|")
    return [each.text for each in complete("seed", text[:offset] + text[offset + 1 :], offset)]


def test_the_seed_of_these_tests_has_no_error() -> None:
    assert [each.code for each in diagnostics(SEED.replace("@", "")) if each.severity == "error"] == []


@pytest.mark.parametrize(
    ("part", "some"),
    [
        (', {"name": "C", "op": "t|"}', ['"tally']),
        (', {"name": "C", "op": "tally", "|"}', ['"field', '"top', '"where']),
        (
            ', {"name": "C", "op": "tally", "field": "|"}',
            ['"extraction.dish', '"extraction.dish_name', '"meta.price', '"meta.stars'],
        ),
        (', {"name": "C", "op": "count", "where": {"meta.p|"}}', ['"meta.price']),
        (', {"name": "C", "op": "count", "where": {"extraction.dish_|"}}', ['"extraction.dish_name']),
        (', {"name": "C", "op": "sum", "expr": "meta.pr|"}', ["price"]),
        (', {"name": "C", "op": "expr", "expr": "len(TO|"}', ["TOP"]),
    ],
)
def test_steps_offer_declared_metadata_resolved_fields_and_reduced_values(part: str, some: list[str]) -> None:
    found = offered(SEED.replace("@", part))
    assert set(some) <= set(found), found


@pytest.mark.parametrize(
    ("text", "some"),
    [
        ('{"|": 1, "compute": []}', ['"meta', '"resolve', '"reduce']),
        ('{"meta": {"price": "|"}}', ['"float', '"list']),
        ('{"extract": {"fields": [{"name": "a", "type": "text"}]}, "resolve": [{"field": "|"}]}', ['"a']),
        ('{"resolve": [{"|"}]}', ['"field', '"as', '"method', '"scope', '"same_above', '"ask_above']),
        ('{"resolve": [{"method": "|"}]}', ['"llm', '"fuzzy']),
        ('{"reduce": [{"type": "|"}]}', ['"text', '"list']),
        (
            '{"extract": {"fields": [{"name": "a", "type": "text"}]}, "reduce": [{"from": ["|"]}]}',
            ['"extraction.a', '"text'],
        ),
        ('{"extract": {"examples": [{"|"}]}}', ['"text', '"extraction']),
        ('{"extract": {"fields": [{"name": "a", "or|"}]}}', ['"ordered']),
    ],
)
def test_the_parts_around_the_steps(text: str, some: list[str]) -> None:
    found = offered(text)
    assert set(some) <= set(found), found


def renamed(name: str, new: str) -> Any:
    text = SEED.replace("@", "")
    edits = rename("seed", text, text.index(f'"{name}"') + 1, new)
    assert isinstance(edits, tuple), edits
    return json.loads(apply_edits(text, edits))


def test_a_renamed_field_is_renamed_in_examples_resolve_and_reduce() -> None:
    made = renamed("dish", "plate")
    assert made["extract"]["examples"][0]["extraction"] == {"plate": "soup", "mood": "good"}
    assert made["resolve"][0] == {"field": "plate", "as": "dish_name"}
    assert renamed("mood", "feeling")["reduce"][0]["where"] == {"extraction.feeling": "bad"}


def test_a_resolved_field_and_a_reduced_value_can_be_renamed() -> None:
    made = renamed("dish_name", "plate")
    assert made["resolve"][0]["as"] == "plate" and made["reduce"][0]["from"] == ["extraction.plate"]
    assert made["compute"][0]["field"] == "extraction.plate"
    made = renamed("TOP", "BEST")
    assert made["reduce"][0]["name"] == "BEST" and made["compute"][1]["expr"] == "len(BEST) + len(BY)"


def test_hover_describes_the_operation() -> None:
    text = SEED.replace("@", "")
    found = hover("seed", text, text.index('"tally"') + 2)
    assert found is not None and "How often each value" in found.text
