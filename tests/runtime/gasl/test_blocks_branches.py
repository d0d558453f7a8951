"""ON and BRANCH: which command runs, and what becomes of its status."""

import pytest
from knotwork import gasl
from support.clients import Scripted
from support.executing import executor, statuses

PEOPLE = 'FIND nodes WHERE entity_type = "PERSON" AS people'
NOBODY = "FIND nodes WHERE age > 200 AS nobody"


def run(*commands: str, **options: object) -> list[gasl.ExecutionRecord]:
    with executor(**options) as opened:
        return [opened.execute_one(command) for command in commands]


def test_on_runs_its_command_when_the_status_is_the_one() -> None:
    record = run(NOBODY, f"ON EMPTY nobody THEN {PEOPLE}")[-1]
    assert (record.status, record.variable, len(record.value)) == ("success", "people", 5)
    assert record.summary["taken"] is True
    (inner,) = record.nested
    assert (inner.command, inner.step, inner.part) == (PEOPLE, record.step, "1")


def test_on_does_nothing_when_it_is_not() -> None:
    record = run(PEOPLE, f"ON EMPTY people THEN {NOBODY}")[-1]
    assert (record.status, record.nested, record.summary["taken"]) == ("success", (), False)


def test_on_asks_for_the_last_producer() -> None:
    first, second = NOBODY, 'FIND nodes WHERE entity_type = "PERSON" AS nobody'
    assert run(first, second, f"ON EMPTY nobody THEN {PEOPLE}")[-1].nested == ()


def test_on_partial() -> None:
    records = run(PEOPLE, "ON PARTIAL people THEN COUNT people AS n", caps=gasl.Caps(max_rows=2))
    assert (records[-1].variable, records[-1].value) == ("n", 2)


def test_on_error_takes_failures_of_a_model_and_of_binding() -> None:
    classify = 'CLASSIFY people BY "age" INTO ("a", "b") AS sorted'
    records = run(PEOPLE, classify, "ON ERROR sorted THEN COUNT people AS n")
    assert statuses(records[1:]) == ["error", "success"]
    assert records[-1].value == 5
    records = run(PEOPLE, "COUNT nobody AS m", "ON ERROR m THEN COUNT people AS n")
    assert statuses(records[1:]) == ["binding_failure", "success"]


def test_on_schema_mismatch() -> None:
    records = run(
        PEOPLE, "SELECT people FIELDS salary AS paid", "ON SCHEMA_MISMATCH paid THEN SELECT people FIELDS age AS paid"
    )
    assert statuses(records[1:]) == ["schema_mismatch", "success"]
    assert records[-1].value[0]["age"] == 36


def test_the_command_of_an_on_can_fail() -> None:
    record = run(NOBODY, "ON EMPTY nobody THEN ASSERT LEN ${nobody} > 0")[-1]
    assert record.status == "empty"
    assert record.error is not None and "LEN" in record.error["message"]


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        ("LEN ${people} = 5", "THEN"),
        ("LEN ${people} > 5", "ELSE"),
        ('${people[0].id} = "Ada"', "THEN"),
        ("${people[0].salary} > 5", "ELSE"),
        ("NOT ${people[0].salary} > 5", "ELSE"),
        ("${people[0].salary} IS NULL", "THEN"),
    ],
)
def test_branch_takes_then_when_the_condition_is_true_and_else_otherwise(condition: str, taken: str) -> None:
    text = f"BRANCH IF {condition} THEN COUNT people AS then ELSE COUNT people AS otherwise"
    record = run(PEOPLE, text)[-1]
    assert record.status == "success"
    assert record.summary["taken"] == taken
    assert record.variable == ("then" if taken == "THEN" else "otherwise")


def test_branch_without_else() -> None:
    record = run(PEOPLE, "BRANCH IF LEN ${people} = 0 THEN COUNT people AS n")[-1]
    assert (record.status, record.nested, record.summary["taken"]) == ("success", (), None)


def test_branches_nest_and_else_belongs_to_the_nearest() -> None:
    text = (
        "BRANCH IF LEN ${people} > 0 THEN BRANCH IF LEN ${people} > 100 THEN COUNT people AS many "
        "ELSE COUNT people AS few"
    )
    record = run(PEOPLE, text)[-1]
    assert record.variable == "few"
    assert [record.nested[0].label, record.nested[0].nested[0].label] == ["2.1", "2.1.1"]


def test_the_branch_that_was_taken_is_in_the_history() -> None:
    with executor() as opened:
        opened.execute_one(PEOPLE)
        opened.execute_one("BRANCH IF LEN ${people} > 0 THEN COUNT people AS n")
        entries = [(entry["step"], entry.get("part")) for entry in opened.state.history]
        assert entries == [(1, None), (2, "1"), (2, None)]
        assert len(opened.state.replay_info()["commands"]) == 2


def test_a_model_may_be_asked_in_a_branch() -> None:
    text = 'BRANCH IF LEN ${people} > 0 THEN CLASSIFY people BY "age" INTO ("a", "b") AS sorted'
    record = run(PEOPLE, text, llm=Scripted(default="b"))[-1]
    assert {item["label"] for item in record.value} == {"b"}
