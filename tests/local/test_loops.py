"""The local model ranks and compiles: what it writes can be read, and what comes of it is said as it is."""

import json

import pytest
from knotwork import planner, seed
from knotwork.adapters.llm.answers import check_answer
from knotwork.adapters.llm.local import LocalModel
from knotwork.runtime.loops.compile.compile_store import schema_of
from support.folders import EXAMPLES

pytestmark = pytest.mark.slow


def test_a_ranking_has_a_plan_that_runs(model: LocalModel) -> None:
    items = json.loads((EXAMPLES / "rank" / "cafes.json").read_text(encoding="utf-8"))
    ranked = planner.rank_sync(items, "cafe with drive-thru", model, time_limit=300)
    assert ranked.repairs == ()
    assert [(phase.name, phase.status) for phase in ranked.phases][:2] == [("plan", "done"), ("expand", "pass-through")]
    assert ranked.script.startswith('(final)=LLM("User wants: cafe with drive-thru. Item(s) that match: [')
    assert ranked.remaining
    if ranked.status == "complete":  # its last answer is free text: an index, or none
        assert set(ranked.ranking) <= set(range(1, 11))
    else:
        assert (ranked.status, ranked.ranking) == ("failed", ())
        assert ranked.reason


def test_a_compilation_has_drafts_of_the_right_shape_and_fails_for_what_they_say(model: LocalModel) -> None:
    task = (EXAMPLES / "compile" / "allergy.md").read_text(encoding="utf-8")
    made = seed.compile_sync(task, llm=model, repairs=0, time_limit=300)
    if made.status == "done":
        assert [each for each in made.seed.check() if each.severity == "error"] == []
        return
    assert made.stopped in ("", "time")
    assert made.reason
    if made.stopped != "time":
        last = made.steps[-1]
        assert check_answer(last.text, schema_of(last.phase)) == (last.text, "")
        assert made.diagnostics
