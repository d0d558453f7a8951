"""What is wrong with seeds that can be read: places, fixes, and what is not a fault."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from knotwork.lang.diagnostic import apply_edits, picture
from knotwork.lang.linter.seed import FilterCounts, check
from knotwork.lang.source import Source
from knotwork.lang.trees.expr import Arithmetic, Name
from knotwork.lang.trees.seed import Aggregate, Formula, FormulaSeed, Keep
from support.folders import GOLDEN, TESTS
from support.seed_texts import diagnostics, of_form_000, of_form_002


def codes(*steps: Any, **more: Any) -> list[str]:
    return [d.code for d in diagnostics(of_form_002(*steps, **more))]


def count(name: str = "N", **where: Any) -> dict[str, Any]:
    given = {key.replace("__", "."): value for key, value in where.items()}
    return {"name": name, "op": "count", **({"where": given} if given else {})}


def expr(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "op": "expr", "expr": text}


def case(*whens: Any, source: str = "N") -> dict[str, Any]:
    rules = [{"when": when, "then": number} for number, when in enumerate(whens)]
    return {"name": "V", "op": "case", "source": source, "rules": [*rules, {"else": None}]}


def test_the_example_of_seed_000(golden: Any) -> None:
    source = Source((TESTS / "seeds/000/example.seed.json").read_text(encoding="utf-8"), "example.seed.json")
    found = diagnostics(source)
    golden.check(GOLDEN / "seed/example-000.txt", "\n\n".join(picture(each, source) for each in found) + "\n")


def test_the_example_of_seed_002(golden: Any) -> None:
    source = Source((TESTS / "seeds/002/example.seed.json").read_text(encoding="utf-8"), "example.seed.json")
    found = diagnostics(source)
    assert {each.severity for each in found} == {"warning"}
    golden.check(GOLDEN / "seed/example-002.txt", "\n\n".join(picture(each, source) for each in found) + "\n")


@pytest.mark.parametrize(
    "steps",
    [
        [count(meta__stars={"between": [1, 3]}), expr("R", "1 / N if N else 0")],
        [count(), expr("R", "1 / max(1, N)")],
        [count(), expr("R", "0 if N == 0 else 5 / N")],
        [count(), case("< 4", "< 8", "== 9"), ],
        [count(), case("> 8", "> 4", "<= 4")],
        [count(), case("< 4", "> 8", "< 8")],
        [count(), case("N < 4 and N > 1", "N < 4")],
        [count(extraction__note={"exists": False})],
        [count(extraction__note=None), count("M", extraction__severity=None)],
        [count(meta__month=5, meta__date={">": "2023"})],
        [expr("T", "[e['note'] for e in extractions if e['meta']['stars'] > 3]")],
        [count("meta_value"), expr("T", "meta_value")],
        [{"name": "M", "op": "max", "field": "meta.year", "default": None}],
        [count(), {"name": "L", "op": "lookup", "source": "context.kind", "table": {"Thai": 1, "thai": 2}, "default": 0}],
    ],
)  # fmt: skip
def test_what_is_no_fault(steps: Sequence[Any]) -> None:
    assert codes(*steps) == []


def test_names_of_unread_steps_are_known() -> None:
    broken = {"name": "B", "op": "count", "where": {}}
    assert codes(broken, expr("T", "B + 1")) == ["SEED011"]
    assert codes({"name": "F", "op": "define_filter"}, count(**{"$F": True})) == ["SEED003"]


def test_moving_a_step_makes_the_order_right() -> None:
    text = """{"filter": {"keywords": ["allergy"]}, "extract": {"fields": [{"name": "a", "type": "int"}]},
  "compute": [
    {"name": "T", "op": "expr", "expr": "N + M"},
    {"name": "M", "op": "const", "value": 1},
    {"name": "N", "op": "expr", "expr": "M"}
  ], "output": ["T"]}"""
    for _ in range(2):
        found = diagnostics(text)
        text = apply_edits(text, found[0].edits or found[1].edits)
    assert diagnostics(text) == []
    assert [line.strip()[:12] for line in text.splitlines()[2:5]] == ['{"name": "M"', '{"name": "N"', '{"name": "T"']


@pytest.mark.parametrize(
    ("whens", "unreachable"),
    [
        (["< 8", "< 4"], [1]), (["<= 4", "< 4"], [1]), (["< 4", "<= 4"], []), (["> 4", "== 5"], [1]), ([">= 4", "> 4", "< 2"], [1]),
        (["== 3", "== 3.0"], [1]), (["== 3", "== 4"], []), (["N < 8", "< 4"], [1]), (["8 > N", "< 4"], [1]), (["N", "N"], [1]),
        (["'a'", "'a'"], [1]), (["!= 3", "!= 3"], [1]), (["< 20", "< 8", "< 4"], [1, 2]), (["in [1]", "in [2]"], []),
    ],
)  # fmt: skip
def test_rules_that_are_never_reached(whens: list[str], unreachable: list[int]) -> None:
    found = [d for d in diagnostics(of_form_002(count(), case(*whens))) if d.code == "SEED054"]
    assert [d.message.split(":")[0] for d in found] == [f"compute[1].rules[{number}]" for number in unreachable]


@pytest.mark.parametrize(
    ("text", "unreachable"),
    [
        ("1 if N < 8 else 2 if N < 4 else 3", ["N < 4"]), ("1 if N < 8 else (2 if N < 4 else 3)", ["N < 4"]),
        ("1 if N < 4 else 2 if N < 8 else 3", []), ("[1 if N else 2 if N else 3 for x in [1]]", ["N"]),
    ],
)  # fmt: skip
def test_branches_that_are_never_reached(text: str, unreachable: list[str]) -> None:
    found = diagnostics(source := Source(json.dumps(of_form_002(count(), expr("E", text)))))
    assert [source.slice(d.span) for d in found if d.span and d.code == "SEED054"] == unreachable


@pytest.mark.parametrize(
    ("field", "value", "is_right"),
    [
        ("party", 3, True), ("party", 3.5, True), ("party", "3", False), ("party", True, False), ("price", {">": -1}, True),
        ("served", False, True), ("served", 0, False), ("served", "yes", False), ("note", "x", True), ("note", 5, False),
        ("note", {">": "a"}, True), ("severity", "mild", True), ("severity", 1, False), ("severity", {"<": "mild"}, False),
        ("dishes", "soup", False), ("dishes", {"exists": True}, True), ("dishes", {"in": ["soup"]}, False),
        ("party", {"in": [1, 2, "3"]}, False), ("party", {"between": [1, 3]}, True),
    ],
)  # fmt: skip
def test_fields_are_compared_with_what_they_may_be(field: str, value: Any, is_right: bool) -> None:
    assert (codes(count(**{f"extraction.{field}": value})) == []) == is_right


def test_types_are_checked_in_expressions_too() -> None:
    text = of_form_000(
        "sum(1 for e in extractions if e['party'] == '3')",
        "sum(1 for e in extractions if e['served'] == 'true' and 3 < e['price'])",
    )
    assert [d.code for d in diagnostics(text)].count("SEED064") == 2


def test_contexts() -> None:
    steps = [
        {"name": "L", "op": "lookup", "source": "context.categories", "table": {"Thai": 1}, "default": 0},
        expr("E", "context.nam"), count(context__city="Rome"),
    ]  # fmt: skip
    given = [
        {"name": "a", "categories": ["Thai"], "city": "Rome", "reviews": []},
        {"name": "b", "categories": 5, "reviews": []},
    ]
    found = diagnostics(of_form_002(*steps), contexts=given)
    assert [(d.code, d.severity, d.message) for d in found] == [
        (
            "SEED065",
            "warning",
            "compute[0].source: in some contexts, categories is neither a string nor a list of strings",
        ),
        ("SEED065", "error", "compute[1].expr: the context has no nam"),
        ("SEED065", "warning", 'compute[2].where["context.city"]: 1 of 2 contexts have no city'),
    ]
    assert found[1].hints == ("did you mean name?",)
    assert diagnostics(of_form_002(*steps), contexts=[]) == diagnostics(of_form_002(*steps))


def test_what_keywords_keep() -> None:
    document = of_form_002(count(), filter={"keywords": ["allergy", "peanut"]})
    found = diagnostics(document, kept=FilterCounts([3, 1], 4, 1_000))
    assert [(d.severity, d.message) for d in found] == [
        ("info", "filter.keywords: all keywords together keep 4 of 1,000 reviews"),
        ("info", 'filter.keywords[0]: "allergy" keeps 3 of 1,000 reviews'),
        ("info", 'filter.keywords[1]: "peanut" keeps 1 of 1,000 reviews'),
    ]
    assert [d.severity for d in diagnostics(document, kept=FilterCounts([0, 0], 0, 5))] == ["warning", "info", "info"]


def test_a_seed_that_a_program_made() -> None:
    steps = (
        Formula("T", Arithmetic(Name("N"), (("/", Name("N")),))),
        Aggregate("N", "count"),
        Aggregate("N", "max", Name("Q")),
    )
    found = check(FormulaSeed(keep=Keep(("nut",)), steps=steps, outputs=("T", "X")))
    assert {"SEED041", "SEED042", "SEED049", "SEED051", "SEED052", "SEED056", "SEED069"} <= {d.code for d in found}
    assert all(d.edits == () for d in found)
    assert all(d.span is None for d in found if d.code.startswith("SEED"))


@pytest.mark.parametrize("match", ["substring", "word", "regex"])
def test_short_keywords_matter_inside_of_words(match: str) -> None:
    assert codes(count(), filter={"keywords": ["nut"], "match": match}) == (["SEED056"] if match == "substring" else [])
