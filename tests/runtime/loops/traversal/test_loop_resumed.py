"""What a kill leaves, at every moment of a loop: it goes on from there, nothing is paid for twice, no effect is lost or doubled.

A copy of the state's folder is taken whenever a model is asked and whenever something happens: that is what kill -9 leaves then.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from knotwork import gasl
from knotwork.adapters.state import StoreError
from knotwork.runtime.events import Events
from knotwork.runtime.loops.traversal.question_store import asks
from knotwork.runtime.loops.traversal.traversal_results import Asked
from support.executing import library
from support.traversing import Planning, asked, done, plan

PLANS = (
    plan(
        "SET adapter.caps.max_rows = 3",
        'DECLARE n AS COUNTER WITH_DESCRIPTION "how many"',
        'FIND nodes WHERE entity_type = "PERSON" AS people',
        'CLASSIFY people BY "age" INTO ("young", "old") AS ages',
        "COUNT people AS many",
        "UPDATE n WITH many",
        "UPDATE n WITH many",
        'FIND nodes WHERE entity_type = "NOBODY" AS none',
        "ON EMPTY none THEN UPDATE n WITH many",
        "DECLARE found AS LIST",
        "TRY\nUPDATE found WITH people\nUPDATE n WITH many\nFINALLY\nUPDATE n WITH many\nEND",
        "UPDATE found WITH ages",
    ),
    plan("FIND nodes WHERE age > 1000 AS x", "DECLARE never AS LIST"),
    plan("FIND nodes LIMIT 2 AS two", "COUNT two AS c", "UPDATE n WITH c", decision="continue"),
    json.dumps({"complete": "it is so", "evidence": ["n"]}),
)


def model(plans: Any = PLANS, **more: Any) -> Planning:
    return Planning(*plans, answers="old", **more)


def outcome(folder: Path) -> Any:
    with gasl.open(library(), folder) as executor:
        state = executor.state.as_json()
        history = [(each["plan_id"], each["command"], each.get("status")) for each in state["history"]]
        return executor.state.get("n"), state["variables"], len(state["provenance"]["found"]), history


def paid(folder: Path) -> int:
    (kept,) = asks(folder)
    return len(kept.answers)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the folder of a loop that ran to its end, what it gave, its model, and a copy of it for every moment."""
    base = tmp_path_factory.mktemp("whole")
    copies: list[Path] = []

    def copy(_: Any) -> None:
        if (base / "state").exists():
            copies.append(base / f"copy-{len(copies)}")
            shutil.copytree(base / "state", copies[-1])

    events = Events()
    events.subscribe(copy)
    asker = model(on_call=copy)
    made = asked(asker, state=base / "state", events=events)
    assert made.status == "complete", made
    assert events.broken == []
    return base / "state", made, asker, copies


@pytest.mark.slow
def test_the_loop_did_what_the_others_are_compared_with(whole: Any) -> None:
    folder, made, asker, copies = whole
    assert [step.status for step in made.steps] == ["partial", "empty", "partial"], (
        "the last adds to a key that is incomplete"
    )
    assert outcome(folder)[0] == 3 * 5 + 2
    assert len(copies) > 60
    assert len(asker.worked) == 3
    verdict = gasl.replay(folder, library())
    assert (verdict.identical, verdict.remarks) == (True, ())


def resumed(copy: Path) -> tuple[Asked, Planning, int]:
    before = asks(copy)
    kept = len(before[0].answers) if before else 0
    planned = sum(key[0] == "planner" for key in before[0].answers) if before else 0
    asker = model(PLANS[planned:] or ["nobody may be asked"])
    return asked(asker, state=copy), asker, kept


@pytest.mark.slow
@pytest.mark.parametrize("each", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_whatever_moment_it_is_killed_at_it_comes_to_the_same(whole: Any, tmp_path: Path, each: int) -> None:
    folder, made, _, moments = whole
    copies = [shutil.copytree(moment, tmp_path / moment.name) for moment in moments[::each]]
    expected, calls = outcome(folder), paid(folder)
    for copy in copies:
        again, other, kept = resumed(copy)
        assert (again.status, again.answer) == ("complete", made.answer), copy.name
        assert kept + len(other.prompts) + len(other.worked) == calls, copy.name
        assert outcome(copy) == expected, copy.name
        steps = [(step.status, step.commands) for step in again.steps]
        assert steps == [(step.status, step.commands) for step in made.steps], copy.name


@pytest.mark.slow
def test_what_was_gone_on_with_replays_the_same(whole: Any, tmp_path: Path) -> None:
    for moment in whole[3][::14]:
        copy = shutil.copytree(moment, tmp_path / moment.name)
        resumed(copy)
        verdict = gasl.replay(copy, library())
        assert (verdict.identical, verdict.remarks) == (True, ()), (copy.name, verdict)


@pytest.mark.slow
def test_an_answered_question_is_told_again_without_a_call(whole: Any) -> None:
    folder, made, _, _ = whole
    nobody = Planning(AssertionError("nobody may be asked"))
    again = asked(nobody, state=folder)
    assert (again.status, again.answer, again.calls, nobody.prompts) == ("complete", made.answer, 0, [])
    assert again.evidence == made.evidence
    assert again.earlier == len(again.steps) == 3


@pytest.mark.slow
def test_another_question_begins_on_what_was_found_and_the_same_one_can_be_asked_anew(tmp_path: Path) -> None:
    state = tmp_path / "s"
    count = plan("DECLARE x AS COUNTER", "FIND nodes AS all", "COUNT all AS n", "UPDATE x WITH n")
    asked(Planning(count, "COMPLETE: one"), state=state)
    other = Planning(done("two", "x"))
    assert asked(other, "Who else?", state=state).answer == "two"
    assert "x COUNTER" in other.prompts[0]
    assert asked(Planning(done("three", "x")), state=state, again=True).answer == "three"
    assert asked(Planning(AssertionError()), state=state).answer == "three"
    assert asked(Planning(AssertionError()), "Who else?", state=state).answer == "two"


def test_a_loop_that_a_bound_ended_goes_on_where_it_stood(tmp_path: Path) -> None:
    state = tmp_path / "s"
    more = [plan("FIND nodes LIMIT 1 AS x"), plan("FIND nodes LIMIT 2 AS x")]
    assert asked(Planning(*more), state=state, max_steps=2).stopped == "steps"
    nobody = Planning(AssertionError())
    assert asked(nobody, state=state, max_steps=2).stopped == "steps"
    made = asked(Planning("COMPLETE: done"), state=state, max_steps=3)
    assert (made.answer, made.earlier, len(made.steps)) == ("done", 2, 2)


@pytest.mark.slow
def test_a_plan_that_the_budget_ended_goes_on_with_the_command_that_was_not_paid(tmp_path: Path) -> None:
    state = tmp_path / "s"
    work = plan(
        "DECLARE n AS COUNTER", 'FIND nodes WHERE entity_type = "PERSON" AS people', "COUNT people AS many",
        "UPDATE n WITH many", 'CLASSIFY people BY "age" INTO ("young", "old") AS ages', "UPDATE n WITH many",
    )  # fmt: skip
    first = asked(model([work, "COMPLETE: done"]), state=state, max_calls=1)
    assert first.stopped == "budget"
    made = asked(model(["COMPLETE: done"]), state=state)
    assert (made.answer, [step.status for step in made.steps]) == ("done", ["success"])
    with gasl.open(library(), state) as executor:
        assert executor.state.get("n") == 10
    assert gasl.replay(state, library()).identical


@pytest.mark.slow
def test_a_plan_that_was_cancelled_goes_on(tmp_path: Path) -> None:
    import asyncio

    from knotwork.runtime.api.ask import ask

    state = tmp_path / "s"

    async def go() -> Asked:
        cancel = asyncio.Event()
        waiting = model([PLANS[0]], delay=0.3, on_call=lambda each: each.worked and cancel.set())
        return await ask(library(), "Who writes?", state=state, llm=waiting, cancel=cancel)

    assert asyncio.run(go()).status == "cancelled"
    made = asked(model(PLANS[1:]), state=state)
    assert made.status == "complete"
    with gasl.open(library(), state) as executor:
        assert executor.state.get("n") == 17
    assert gasl.replay(state, library()).identical


def test_a_state_in_use_is_refused(tmp_path: Path) -> None:
    with gasl.open(library(), tmp_path / "s"), pytest.raises(StoreError):
        asked(Planning("COMPLETE: x"), state=tmp_path / "s")


def test_a_damaged_record_costs_its_answer_and_no_more(tmp_path: Path) -> None:
    state = tmp_path / "s"
    asked(Planning(plan("DECLARE n AS COUNTER"), plan("FIND nodes AS x")), state=state, max_steps=2)
    (journal,) = state.glob("asks/*/run.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"COUNTER", b"COUNTRY")
    journal.write_bytes(b"".join(lines))
    made = asked(Planning("COMPLETE: done"), state=state)
    assert made.answer == "done"
    assert any("damaged" in warning for warning in made.warnings)
