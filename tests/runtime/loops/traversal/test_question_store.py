"""What a question stands on: the state's folder, a graph that changed, another attempt in between, the disk."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from knotwork.runtime.api.ask import RequestError, ask
from knotwork.runtime.events import Events
from knotwork.runtime.loops.traversal.question_store import AskRecorder, asks, open_asks
from knotwork.runtime.runs.journal import Journal, RunError
from support.executing import library
from support.traversing import Planning, asked, plan
from support.wondering import Wondering


def test_a_state_that_is_a_file_or_nothing_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("{}")
    for state, told in ((tmp_path / "f", "is a file"), ("", "the path is empty")):
        with pytest.raises(RequestError, match=told):
            asyncio.run(ask(library(), "Who?", state=state, llm=Planning("COMPLETE: x")))
    assert os.listdir(tmp_path) == ["f"]


def test_a_question_under_way_is_refused_a_second_time(tmp_path: Path) -> None:
    first = open_asks(tmp_path, "Who?")
    with pytest.raises(RunError, match="active in another process"):
        open_asks(tmp_path, "Who?")
    other = open_asks(tmp_path, "Who else?")
    for each in (first, other):
        assert isinstance(each, AskRecorder)
        each.close()


@pytest.mark.slow
def test_asked_anew_and_ended_early_it_is_the_new_attempt_that_goes_on(tmp_path: Path) -> None:
    state = tmp_path / "s"
    asked(Planning(plan("DECLARE x AS COUNTER"), "COMPLETE: one"), state=state)
    assert asked(Planning(plan("FIND nodes AS a")), state=state, again=True, max_steps=1).stopped == "steps"
    made = asked(Planning("COMPLETE: two"), state=state)
    assert (made.answer, made.earlier) == ("two", 1)
    assert len(asks(state)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("search", [None, "mcts"])
def test_a_graph_that_changed_in_between_is_told_and_asked_about_as_it_is(tmp_path: Path, search: str | None) -> None:
    state = tmp_path / "s"
    first: Any = Wondering() if search else Planning(plan("FIND nodes AS a"))
    asked(first, state=state, search=search, max_steps=1)
    changed = library()
    changed.add_node("Zoe", entity_type="PERSON", age=3)

    class Changed(Wondering):
        def plans(self, prompt: str) -> dict[str, Any]:
            return {"complete": "six people"} if "people LIST, 6" in prompt else super().plans(prompt)

    model: Any = Changed() if search else Planning("COMPLETE: six people")
    made = asked(model, state=state, graph=changed, search=search, max_steps=12)
    assert (made.status, made.answer) == ("complete", "six people")
    assert any("the graph has changed" in warning for warning in made.warnings)
    if search:
        assert "Zoe" in str([step.entries for step in made.steps])


def test_a_plan_is_on_the_disk_before_it_begins_and_the_answer_when_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    real = Journal.sync

    def sync(journal: Journal) -> None:
        order.append("sync")
        real(journal)

    monkeypatch.setattr(Journal, "sync", sync)
    events = Events()
    events.subscribe(lambda event: order.append(event.name))
    asked(Planning(plan("DECLARE n AS COUNTER"), "COMPLETE: x"), state=tmp_path / "s", events=events)
    told = [each for each in order if each in ("sync", "plan.started", "plan.finished", "phase.finished")]
    assert told == ["sync", "plan.started", "plan.finished", "sync", "phase.finished"]


def test_a_journal_that_cant_be_synced_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("knotwork.runtime.runs.journal.os.fsync", refused)
    record = open_asks(tmp_path, "Who?")
    assert isinstance(record, AskRecorder)
    record.step_begun({"number": 1})
    assert record.damage.endswith("Input/output error")
    record.close()
