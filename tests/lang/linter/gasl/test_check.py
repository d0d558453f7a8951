"""The linter of GASL as a whole: its catalogue, ignore comments, hostile programs, and plans in JSON."""

import time

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from knotwork.lang.catalogue.rules import RULES
from knotwork.lang.catalogue.rules.gasl_check_rules import GASL_CHECK_RULES
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.linter.gasl import check
from knotwork.lang.linter.gasl.context import lint
from knotwork.lang.parse.gasl import parse_gasl
from knotwork.lang.printer.gasl_printer import format_gasl
from support.cpu_time import pace
from support.gasl_schema import CEILING, PEOPLE
from support.programs import programs

IDS = [rule.code for rule in GASL_CHECK_RULES]


GRAPHS = {"GASL083": evolve(PEOPLE, label_attribute=None, labels={}), "GASL084": evolve(PEOPLE, directed=False)}
"""The graphs of rules about graphs of another form."""


def checked(text, schema=PEOPLE):
    return check(parse_gasl(text), schema=schema, ceiling=CEILING)


@pytest.mark.parametrize("rule", GASL_CHECK_RULES, ids=IDS)
def test_every_rule_finds_its_example_and_nothing_else_there(rule):
    schema = GRAPHS.get(rule.code, PEOPLE)
    found = checked(rule.bad, schema)
    assert [d.code for d in found] == [rule.code]
    assert found[0].severity == rule.severity or rule.code == "GASL055"  # a warning where the state isn't known
    assert found[0].span is not None
    assert found[0].span.end > found[0].span.start
    assert not found[0].message.endswith(".")
    assert checked(rule.good, schema) == []


@pytest.mark.parametrize("rule", GASL_CHECK_RULES, ids=IDS)
def test_edits_remove_the_fault(rule):
    found = checked(rule.bad)
    edits = [edit for d in found for edit in d.edits]
    if edits:
        assert rule.code not in [d.code for d in checked(apply_edits(rule.bad, edits))]


def test_most_rules_offer_an_edit():
    assert sum(any(d.edits for d in checked(rule.bad)) for rule in GASL_CHECK_RULES) >= 12


def test_every_lint_is_in_the_catalogue():
    codes = [each.code for each in lint.all]
    assert sorted({*codes, "GASL074"}) == IDS
    assert len(set(codes)) == len(codes)
    assert all(RULES[code].language == "gasl" for code in codes)


IGNORED = "SET llm.temperature = 9"


@pytest.mark.parametrize(
    "text",
    [
        f"# knotwork: ignore[GASL062]\n{IGNORED}",
        f"# knotwork: ignore\n{IGNORED}",
        f"# knotwork: ignore[GASL050, gasl062]\n# and more\nBRANCH IF ${{x}} = 1 THEN {IGNORED}",
        f"{IGNORED}  # knotwork: ignore[GASL062]",
        f"TRY\n# knotwork: ignore[GASL062]\n{IGNORED}\nEND",
        f"# knotwork: ignore[GASL062]\nTRY\nRESET a\nCATCH ANY\n{IGNORED}\nEND",
    ],
)
def test_ignore_comments_silence(text):
    assert checked(text) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"# knotwork: ignore[GASL062]\n\n{IGNORED}", "this ignore comment is not above a command"),
        (f"{IGNORED}\n# knotwork: ignore[GASL062]", "this ignore comment is not above a command"),
        ("# knotwork: ignore\nRESET a", "this ignore comment has no effect"),
        (f"# knotwork: ignore[GASL062, GASL999]\n{IGNORED}", "unknown rule `GASL999`"),
        (f"TRY\n# knotwork: ignore[GASL052]\n{IGNORED}\nEND",
         "this comment has no effect: no diagnostic here has the code GASL052"),
    ],
)  # fmt: skip
def test_ignore_comments_that_do_nothing_are_reported(text, message):
    assert message in [d.message for d in checked(text) if d.code == "GASL074"]


def test_faults_of_reading_are_not_silenced():
    found = checked("# knotwork: ignore\nFIND noes AS x")
    assert "error" in [d.severity for d in found]


@pytest.mark.slow
@given(programs())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_checking_never_fails(program):
    built = check(program, schema=PEOPLE, ceiling=CEILING, state={"a": "LIST"}, models=("small",), measures=())
    read = parse_gasl(format_gasl(program))
    assert len(check(read, schema=PEOPLE, ceiling=CEILING, state={"a": "LIST"}, models=("small",), measures=())) == len(
        built
    )
    text = read.source.text
    for diagnostic in check(read, schema=PEOPLE, ceiling=CEILING):
        assert diagnostic.span is not None
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
        assert diagnostic.code in RULES


def test_blocks_without_end_are_no_danger():
    found = checked("TRY\n" * 5_000)
    assert "GASL023" in [d.code for d in found]


MANY = 1_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"FIND nodes AS v{i}\nCOUNT w{i} AS n{i}" for i in range(MANY)),
        "\n".join(f"DECLARE k{i} AS LIST\nUPDATE l{i} WITH v" for i in range(MANY)),
        "FIND nodes WHERE " + " OR ".join(f'kind{i} = "x{i}"' for i in range(MANY)) + " AS v",
        "FIND nodes WHERE " + " AND ".join(f'entity_type = "x{i}"' for i in range(MANY)) + " AS v",
        "FIND nodes WHERE entity_type IN (" + ", ".join(f'"x{i}"' for i in range(MANY)) + ") AS v",
        "\n".join(f"BRANCH IF ${{a}} = {i} THEN FIND nodes AS v{i} ELSE FIND edges AS w{i}" for i in range(MANY)),
        "TRY\n" * 50 + "\n".join(f"FIND nodes AS v{i % 7}" for i in range(MANY)) + "\nCATCH ANY\nEND" * 50,
        "FIND nodes AS v\nSELECT v FIELDS " + ", ".join("id" for _ in range(MANY)) + " AS w",
        "DECLARE " + ".".join("a" for _ in range(MANY)) + " AS LIST",
        "SELECT v FIELDS " + ".".join("a" for _ in range(MANY)) + " AS w\nCOUNT w BY " + ".".join("b" * MANY) + " AS x",
    ],
    ids=[
        "unbound",
        "undeclared",
        "attributes",
        "contradictions",
        "values",
        "branches",
        "blocks",
        "fields",
        "deep-key",
        "deep-path",
    ],
)
def test_large_programs_are_checked_in_bounded_time(text):
    program = parse_gasl(text)
    begun = time.process_time()
    check(program, schema=PEOPLE, ceiling=CEILING)
    assert time.process_time() - begun < 5 * pace()
