"""Runs of seeds by batches in Python: ``batch=True`` and its options."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from knotwork import seed
from knotwork.adapters.llm import BudgetExceeded
from knotwork.runtime.api.seed_batches import BatchWaiting, cancel
from knotwork.runtime.errors import RequestError
from knotwork.runtime.events import Event, Events, Warned
from support.alone import alone_in
from support.batch_server import BatchServer, in_thread
from support.review_server import answer_review, contexts
from support.seeds import SEED as FOOD

CONTEXTS = contexts(2, 3)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    alone_in(tmp_path, monkeypatch)
    monkeypatch.setenv("KNOTWORK_BATCH_POLL", "0.01")
    with in_thread(BatchServer(answer=answer_review)) as server:
        yield server


def outputs(results: Any) -> list[Any]:
    return [each.outputs for each in results]


@pytest.mark.slow
def test_all_results_of_a_run_with_batches(server: BatchServer) -> None:
    food, llm = seed.load(FOOD), f"{server.url}#m"
    live = seed.collect_sync(food, CONTEXTS, llm=llm, cache=False)
    batch = seed.collect_sync(food, CONTEXTS, llm=llm, batch=True, record=True)
    assert outputs(batch) == outputs(live)
    assert (len(server.live), len(server.batches)) == (6, 1)
    assert [each.extraction for result in batch for each in result.extractions] == [
        each.extraction for result in live for each in result.extractions
    ]


@pytest.mark.slow
def test_a_run_ends_while_its_batch_continues(server: BatchServer, tmp_path: Path) -> None:
    food, llm = seed.load(FOOD), f"{server.url}#m"
    server.polls = 3
    with pytest.raises(BatchWaiting) as caught:
        list(seed.run_many_sync(food, CONTEXTS, llm=llm, batch=True, record=True, no_wait=True))
    assert (caught.value.batches, caught.value.is_interrupted) == (("batch-0",), False)
    (name,) = (each.name for each in (tmp_path / "knotwork" / "runs").iterdir())
    found = list(seed.run_many_sync(food, CONTEXTS, llm=llm, batch=True, resume=name))
    assert [each.status for each in found] == ["complete", "complete"]
    assert (server.live, len(server.batches)) == ([], 1)
    assert cancel(name).batches == ()


@pytest.mark.slow
def test_a_batch_that_exceeds_the_budget_is_not_submitted(server: BatchServer) -> None:
    with pytest.raises(BudgetExceeded, match="the batch has 6 calls; 5 of 5 are left"):
        seed.collect_sync(seed.load(FOOD), CONTEXTS, llm=f"{server.url}#m", batch=True, record=True, max_calls=5)
    assert server.batches == {}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "no batch is submitted twice"),
        ({"record": True, "llm": lambda prompt: "{}", "model": "m"}, "a custom client has no batch API"),
        ({"record": True, "llm": "replay:x"}, "replay has no batch API"),
        ({"record": True, "cache": False}, "this run has none"),
        ({"record": True, "workers": 2}, "has no workers"),
        ({"record": True, "vote": ["openai:a", "openai:b"]}, "several models"),
        ({"record": True, "batch": False, "finish_live": True}, "makes no batches"),
        ({"record": True, "batch": "yes"}, "expected True or False"),
        ({"record": True, "batch_id": "x", "batch_lost": True}, "it is not lost"),
        ({"record": True, "batch_id": 7}, "expected the id of a batch"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], reason: str) -> None:
    given = {"llm": "http://127.0.0.1:9/v1#m", "batch": True, "cache": True, **options}
    with pytest.raises(Exception, match=reason):
        seed.collect_sync(seed.load(FOOD), CONTEXTS, **given)


def test_contexts_that_can_be_read_once_are_refused() -> None:
    food = seed.load(FOOD)
    with pytest.raises(RequestError, match="reads the contexts several times"):
        seed.collect_sync(food, iter(CONTEXTS), llm="http://127.0.0.1:9/v1#m", batch=True, record=True)
    with pytest.raises(RequestError, match="use run_many or collect"):
        seed.run_sync(food, CONTEXTS[0], llm="http://127.0.0.1:9/v1#m", batch=True)


@pytest.mark.slow
def test_all_calls_about_a_review_are_in_one_batch(server: BatchServer) -> None:
    twice = seed.load({**FOOD, "passes": 2})
    llm = f"{server.url}#m"
    server.answer = lambda prompt: "mild" if prompt.endswith("severity:") else answer_review(prompt)
    for options in ({"ask": "choices"}, {"ask": "json"}):
        live = seed.collect_sync(twice, CONTEXTS, llm=llm, cache=False, **options)
        batch = seed.collect_sync(twice, CONTEXTS, llm=llm, batch=True, record=True, **options)
        assert outputs(batch) == outputs(live)
    assert [server.files[name].count(b"custom_id") for name in ("file-0", "file-2")] == [6 * 2 * 2, 6 * 2]


@pytest.mark.slow
def test_calls_about_several_reviews_are_made_live(server: BatchServer) -> None:
    reduce = {"name": "WHY", "from": ["text"], "prompt": "What do they say?", "type": "text"}
    loaded = seed.load({**FOOD, "reduce": [reduce], "output": [*FOOD["output"], "WHY"]})
    server.answer = lambda prompt: "They like it." if "What do they say?" in prompt else answer_review(prompt)
    heard: list[Event] = []
    events = Events()
    events.subscribe(heard.append)
    seed.collect_sync(loaded, CONTEXTS, llm=f"{server.url}#m", batch=True, record=True, events=events)
    told = [event.message for event in heard if isinstance(event, Warned)]
    assert "the calls of reduce WHY are made live, at full price: their prompts depend on the extractions" in told
    assert server.live
    assert all("What do they say?" in prompt for prompt in server.live)
    assert server.files["file-0"].count(b"custom_id") == 6
