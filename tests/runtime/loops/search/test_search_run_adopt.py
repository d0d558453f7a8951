"""A state that was searched becomes the real one: one commit, with its history, commands, answers and provenance."""

import asyncio
import json

import pytest
from knotwork import gasl
from knotwork.adapters.state import StoreError
from knotwork.runtime.gasl import GASLExecutor
from knotwork.runtime.loops.search import Action, AdoptError, Budget, Filled, adopt, search
from knotwork.runtime.models.factory import NetworkXAdapter, open_state
from support.executing import library
from support.scripted import Scripted

ADAPTER = NetworkXAdapter(library())


class Papers:
    """Proposes to collect papers, and then to have a model read them."""

    async def propose(self, node):
        if node.depth == 0:
            declare = [
                "DECLARE papers AS LIST",
                'FIND nodes WHERE entity_type = "PAPER" AS it',
                "UPDATE papers WITH it",
            ]
            return [Action(declare, 0.9, "the papers")]
        ask = [
            'FIND nodes WHERE entity_type = "PAPER" AS it',
            'PROCESS it USING "name them" AS named RETURNING (title TEXT)',
        ]
        return [Action([*ask, "DECLARE titles AS LIST", "UPDATE titles WITH named"], 0.8, "their titles")]


def model():
    """Return a model that answers as PROCESS asks it to."""
    rows = [{"title": "Engines", "ids": ["Engines"]}, {"title": "Trees", "ids": ["Trees"]}]
    return Scripted(json.dumps({"rows": rows}))


def found(state, llm=None):
    """Search from ``state``."""
    value = Filled(("papers", "titles") if llm else ("papers",))
    return asyncio.run(
        search(state, lambda fork: GASLExecutor(ADAPTER, llm, fork), Papers(), value, budget=Budget(max_steps=5))
    )


def test_adopting_is_one_commit_and_survives_closing(tmp_path):
    state = open_state(tmp_path / "run")
    journal = next((tmp_path / "run").glob("wal-*.jsonl"))
    before = journal.read_bytes().count(b"\n")
    result = found(state)
    assert journal.read_bytes().count(b"\n") == before
    assert adopt(state, result.best) == result.best.snapshot.hash
    assert journal.read_bytes().count(b"\n") == before + 1
    state.close()
    again = open_state(tmp_path / "run")
    assert again.hash == result.best.snapshot.hash
    assert len(again.get("papers")) == 3 and again.snapshot().evidence("papers")[0]
    assert [entry["why"] for entry in again.history] == ["the papers"] * 3
    again.close()


def test_what_was_adopted_can_be_replayed_without_a_model(tmp_path):
    state, llm = open_state(tmp_path / "run"), model()
    result = found(state, llm)
    assert result.status == "found", result.tree.text()
    asked = len(llm.calls)
    adopt(state, result.best)
    assert len(llm.calls) == asked
    assert result.calls == asked == 1
    state.close()
    verdict = gasl.replay(tmp_path / "run", library())
    assert verdict.identical, verdict.differences
    assert (verdict.recalled, verdict.asked) == (1, 0)


def test_a_state_that_had_something_keeps_it():
    state = open_state(None)
    executor = GASLExecutor(ADAPTER, None, state)
    executor.run_plan("DECLARE mine AS COUNTER\nFIND nodes AS x\nCOUNT x AS n\nUPDATE mine WITH n")
    result = found(state)
    adopt(state, result.best)
    assert state.get("mine") == 10 and len(state.get("papers")) == 3
    assert [entry["step"] for entry in state.history] == list(range(1, 8))
    record = executor.execute_one("FIND nodes AS again")
    assert record.ok


def test_adopting_twice_and_adopting_the_root_change_nothing():
    state = open_state(None)
    result = found(state)
    assert adopt(state, result.nodes[0]) == state.hash and not state.history
    first = adopt(state, result.best)
    assert adopt(state, result.best) == first and len(state.history) == 3


def test_a_state_that_went_on_since_is_not_overwritten():
    state = open_state(None)
    result = found(state)
    GASLExecutor(ADAPTER, None, state).run_plan("DECLARE other AS LIST")
    before = state.as_json()
    with pytest.raises(AdoptError, match="changed since"):
        adopt(state, result.best)
    assert state.as_json() == before


def test_a_store_that_is_closed_refuses(tmp_path):
    state = open_state(tmp_path / "run")
    result = found(state)
    state.close()
    with pytest.raises(StoreError):
        adopt(state, result.best)
