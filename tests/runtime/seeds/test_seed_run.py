"""Many contexts at once: none is lost, their order, bounds, cancelling, and memory that does not grow."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from knotwork.adapters.llm import BudgetExceeded
from knotwork.lang.trees.seed import Keep
from knotwork.runtime.events import Events, RunStarted, StepFinished
from knotwork.runtime.seeds.compute import check, load
from knotwork.runtime.seeds.cost_estimate import estimate
from knotwork.runtime.seeds.reviews import ContextError, FilterError
from knotwork.runtime.seeds.seed_results import SeedResult, read_result
from knotwork.runtime.seeds.seed_run import Totals, run_many, run_one
from support.clients import Timed
from support.review_server import context, contexts
from support.seeds import food_seed


class Reader(Timed):
    """Answers each review after a while."""

    async def generate(self, prompt: str, **options: Any) -> str:
        await super().generate(prompt)
        return '{"severity": "mild", "people": 1}'


def run(given: Any, client: Any, **options: Any) -> tuple[list[SeedResult], Totals]:
    results: list[SeedResult] = []
    totals = asyncio.run(run_many(food_seed(), given, client, on_result=results.append, **options))
    return results, totals


def slow_first(prompt: str) -> float:
    return 0.05 if "place 0," in prompt else 0.0


def test_every_context_has_a_result_in_order() -> None:
    results, totals = run(contexts(30, 4), Reader(slow_first))
    assert [(result.index, result.name) for result in results] == [(n, f"Café {n}") for n in range(30)]
    assert all(result.outputs == {"N": 4, "N_MILD": 4, "VERDICT": "bad"} for result in results)
    assert (totals.contexts, totals.complete, totals.status) == (30, 30, "complete")
    assert totals.counts.extracted == totals.calls == 120


def test_results_may_come_as_they_are_ready() -> None:
    others = asyncio.Event()

    class Last(Reader):
        async def generate(self, prompt: str, **options: Any) -> str:
            if "place 0," in prompt:
                await others.wait()
            return await super().generate(prompt)

    results: list[int] = []

    def take(result: SeedResult) -> None:
        results.append(result.index)
        if len(results) == 9:
            others.set()

    asyncio.run(run_many(food_seed(), contexts(10, 2), Last(0.0), on_result=take, ordered=False, max_concurrency=4))
    assert sorted(results) == list(range(10))
    assert results[-1] == 0


def test_calls_of_all_contexts_share_one_bound() -> None:
    client = Reader(0.005)
    run(contexts(12, 3), client, max_concurrency=7)
    assert client.most == 7


def test_the_bound_holds_where_a_review_takes_several_calls() -> None:
    client = Reader(0.005)
    asyncio.run(run_many(food_seed(passes=2), contexts(6, 2), client, on_result=lambda result: None, max_concurrency=3))
    assert client.most == 3


@pytest.mark.slow
def test_contexts_are_read_as_they_are_needed() -> None:
    read = 0
    most = 0

    def source() -> Iterator[dict[str, Any]]:
        nonlocal read
        for index in range(300):
            read += 1
            yield context(index, 1)

    def ahead(result: SeedResult) -> None:
        nonlocal most
        most = max(most, read - result.index)

    asyncio.run(run_many(food_seed(), source(), Reader(0.0), on_result=ahead, max_concurrency=4))
    assert read == 300
    assert most <= 17


@pytest.mark.slow
def test_a_slow_reader_slows_the_run_down() -> None:
    client = Reader(0.0)
    ahead: list[int] = []

    async def slowly(result: SeedResult) -> None:
        await asyncio.sleep(0.002)
        ahead.append(len(client.order) - result.index)

    asyncio.run(run_many(food_seed(), contexts(100, 1), client, on_result=slowly, max_concurrency=2))
    assert max(ahead) <= 20


def test_contexts_may_come_from_an_async_source() -> None:
    async def source() -> AsyncIterator[dict[str, Any]]:
        for index in range(5):
            await asyncio.sleep(0)
            yield context(index, 1)

    results, totals = run(source(), Reader(0.0))
    assert len(results) == totals.contexts == 5


def test_a_context_that_cant_be_read_fails_alone() -> None:
    given = [*contexts(2, 1), {"name": "Thai"}, 7, *contexts(1, 1)]
    results, totals = run(given, Reader(0.0))
    assert [result.status for result in results] == ["complete", "complete", "failed", "failed", "complete"]
    assert results[2].errors[0].message == 'context 2 (Thai) has no "reviews"'
    assert (results[2].name, results[3].name) == ("Thai", "")
    assert (totals.failed, totals.status) == (2, "partial")


def test_a_budget_that_is_used_up_leaves_every_context_a_result_that_says_so() -> None:
    class Poor(Reader):
        async def generate(self, prompt: str, **options: Any) -> str:
            if len(self.order) >= 5:
                raise BudgetExceeded("the budget of 5 calls is used up")
            return await super().generate(prompt)

    results, totals = run(contexts(6, 2), Poor(0.0), max_concurrency=1)
    assert [result.status for result in results] == ["complete", "complete", "partial", "failed", "failed", "failed"]
    assert (totals.status, totals.stopped, totals.calls) == ("partial", "the budget of 5 calls is used up", 5)
    assert results[3].outputs == {}
    assert "not asked: the budget of 5 calls is used up" in results[3].errors[0].message


def test_a_run_that_is_cancelled_says_what_was_sent() -> None:
    async def work() -> tuple[Totals, int, int]:
        cancel = asyncio.Event()

        class Third(Reader):
            async def generate(self, prompt: str, **options: Any) -> str:
                if len(self.order) == 2:
                    cancel.set()
                    await asyncio.sleep(30)
                return await super().generate(prompt)

        client, results = Third(0.0), list[SeedResult]()
        totals = await run_many(
            food_seed(), contexts(1, 9), client, on_result=results.append, max_concurrency=1, cancel=cancel
        )
        return totals, len(client.order), len(results)

    totals, answered, results = asyncio.run(work())
    assert (totals.status, totals.calls, answered, results) == ("cancelled", 3, 2, 0)


def test_one_context_that_is_cancelled_is_failed() -> None:
    async def work() -> SeedResult:
        cancel = asyncio.Event()
        cancel.set()
        return await run_one(food_seed(), context(0, 1), Reader(30.0), cancel=cancel)

    result = asyncio.run(work())
    assert (result.status, result.errors[0].kind, result.counts.reviews) == ("failed", "cancelled", 1)


def test_one_context_that_cant_be_read_raises() -> None:
    with pytest.raises(ContextError, match='has no "reviews"'):
        asyncio.run(run_one(food_seed(), {"name": "Thai"}, Reader(0.0)))


def test_a_filter_that_cant_be_used_raises_before_any_call() -> None:
    seed = food_seed(keep=Keep(("(",), "regex"))
    with pytest.raises(FilterError):
        asyncio.run(run_one(seed, context(0, 1), Reader(0.0)))


def test_contexts_without_kept_reviews_do_not_hold_the_others_up() -> None:
    given = [context(index, 1 if index % 10 == 0 else 0) for index in range(200)]
    results, _ = run(given, Reader(0.001), max_concurrency=3)
    assert [result.counts.kept for result in results] == [1 if index % 10 == 0 else 0 for index in range(200)]


def test_no_contexts_give_no_results() -> None:
    results, totals = run([], Reader(0.0))
    assert results == []
    assert (totals.contexts, totals.status) == (0, "complete")


def test_warnings_of_a_context_are_in_its_result_and_told() -> None:
    given = context(0, 1)
    given["reviews"][0]["date"] = "soon"
    results, totals = run([given], Reader(0.0))
    assert results[0].warnings == ('the date "soon" of review 0 is not used: its format is unknown',)
    assert totals.warnings == ['0 Café 0: the date "soon" of review 0 is not used: its format is unknown']


def test_events_of_contexts() -> None:
    seen: list[Any] = []
    events = Events()
    events.subscribe(seen.append)
    run(contexts(3, 1), Reader(0.0), events=events)
    (started,) = [event for event in seen if isinstance(event, RunStarted)]
    assert started.layers == (("0 Café 0", "1 Café 1", "2 Café 2"),)
    assert {event.step for event in seen if isinstance(event, StepFinished)} == set(started.layers[0])


# Stopping


async def left_over() -> set[asyncio.Task[Any]]:
    await asyncio.sleep(0)
    return asyncio.all_tasks() - {asyncio.current_task()}


def test_cancelling_stops_the_calls_and_leaves_no_task() -> None:
    async def work() -> None:
        client = Reader(30.0)
        running = asyncio.create_task(run_many(food_seed(), contexts(9, 9), client, on_result=print, max_concurrency=5))
        await client.reached(5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert client.under_way == 0
        assert not await left_over()

    asyncio.run(work())


def test_a_cancel_event_ends_the_run_with_what_is_done() -> None:
    async def work() -> None:
        cancel = asyncio.Event()
        client = Reader(lambda prompt: 30.0 if "place 3," in prompt else 0.0)
        done = asyncio.Event()
        running = asyncio.create_task(
            run_many(
                food_seed(), contexts(9, 1), client, max_concurrency=1, cancel=cancel,
                on_result=lambda result: done.set() if result.index == 2 else None,
            )
        )  # fmt: skip
        await done.wait()
        cancel.set()
        totals = await running
        assert (totals.status, totals.contexts) == ("cancelled", 3)
        assert client.under_way == 0
        assert not await left_over()

    asyncio.run(work())


def test_what_a_reader_raises_ends_the_run() -> None:
    async def work() -> None:
        client = Reader(0.001)

        def broken(result: SeedResult) -> None:
            raise OSError("the disk is full")

        with pytest.raises(OSError, match="the disk is full"):
            await run_many(food_seed(), contexts(50, 2), client, on_result=broken)
        assert not await left_over()

    asyncio.run(work())


def test_what_the_source_raises_ends_the_run_after_what_came_before() -> None:
    def source() -> Iterator[Any]:
        yield context(0, 1)
        raise ContextError("line 2 is not JSON")

    with pytest.raises(ContextError, match="line 2"):
        run(source(), Reader(0.0))


@pytest.mark.parametrize("limit", [0, -1])
def test_a_run_needs_room_for_a_call(limit: int) -> None:
    with pytest.raises(ValueError, match="max_concurrency"):
        run([], Reader(0.0), max_concurrency=limit)


@pytest.mark.slow
def test_the_number_of_contexts_does_not_fill_memory() -> None:
    alive: list[int] = []

    def count(result: SeedResult) -> None:
        if result.index in (100, 400):
            gc.collect()
            alive.append(len(gc.get_objects()))

    many = (context(index, 3) for index in range(450))
    asyncio.run(run_many(food_seed(), many, Reader(0.0), on_result=count, max_concurrency=4))
    assert alive[1] < alive[0] * 1.05


LONG = load({
    "filter": {"keywords": ["food"]},
    "extract": {"fields": [{"name": "mood", "values": ["none", "planted"]}, {"name": "n", "type": "int"}]},
    "compute": [
        {"name": "N", "op": "count", "where": {"extraction.mood": "planted"}}, {"name": "ALL", "op": "count"},
        {"name": "TOTAL", "op": "sum", "expr": "extraction.n"}, {"name": "STARS", "op": "max", "field": "meta.stars", "default": 0},
    ],
    "output": ["N"],
})  # fmt: skip


class Seeing:
    """Says what it sees of the planted label; ``answers`` are given for texts that have a word."""

    def __init__(self, **answers: str) -> None:
        self.answers = answers
        self.lengths: list[int] = []

    async def generate(self, prompt: str) -> str:
        text = prompt.split("\n\n")[2]
        self.lengths.append(len(text))
        for word, answer in self.answers.items():
            if word in text:
                return answer
        return '{"mood": "planted", "n": 1}' if "MARK" in text else '{"mood": "none", "n": 1}'


def one(seed: Any, reviews: list[Any], llm: Any = None, **options: Any) -> Any:
    return asyncio.run(run_one(seed, {"name": "A", "reviews": reviews}, llm or Seeing(), **options))


def test_a_label_at_character_30_000_is_found_and_the_part_that_decided_is_told() -> None:
    text = ("food was cold. " * 3_000)[:30_000] + " MARK " + "and warm. " * 1_000
    client = Seeing()
    result = one(LONG, [{"text": text}], client)
    assert (result.status, dict(result.outputs), result.counts.cut) == ("complete", {"N": 1}, 0)
    assert len(client.lengths) == 6
    (found,) = result.extractions
    (part,) = found.decided["mood"]
    begin, end = found.parts[part]
    assert "MARK" in text[begin:end]
    assert all(after[0] <= before[1] - 100 for before, after in pairwise(found.parts))
    assert result.provenance("N").parts == {0: {"mood": ((begin, end),), "n": found.parts}}
    assert read_result(result.as_json()).extractions == result.extractions


def test_a_small_model_gets_parts_of_its_size_with_any_prompt() -> None:
    prompt = {**LONG.document, "extract": {**LONG.document["extract"], "prompt": "Read.\n\n-\n\n{review_text}"}}
    text = "food " * 1_000
    for document in (LONG.document, prompt):
        client = Seeing()
        one(load(document), [{"text": text}], client, model="local", ask="json")
        assert len(client.lengths) > 2 and max(client.lengths) < 4_000
        assert estimate(load(document), [{"reviews": [{"text": text}]}], model="local").split == 1


def test_a_cut_that_was_asked_for_is_counted() -> None:
    seed = load({**LONG.document, "review_handling": {"max_length": 100}})
    result = one(seed, [{"text": "food " * 100 + "MARK"}, {"text": "food"}])
    assert (dict(result.outputs), result.extractions[0].cut) == ({"N": 0}, 404)
    assert (result.counts.cut, result.counts.cut_characters) == (1, 404)
    found = estimate(seed, [{"reviews": [{"text": "food " * 100}, {"text": "food"}, {"text": 3}]}])
    assert (found.cut, found.cut_characters, found.characters, found.unusable) == (1, 400, 504, 1)
    (told,) = [each for each in check(seed, {"reviews": [{"text": "food " * 100}]}) if each.code == "SEED071"]
    assert told.message.startswith(
        "review_handling: 1 of 1 kept reviews would be cut at 100 characters; 80% of the text"
    )


def test_one_bad_review_fails_alone_and_the_context_is_partial() -> None:
    reviews = [{"text": "food MARK"}, {"text": 7}, "no", {"stars": 3}, {"text": "food \ud800"}, {"text": "food"}]
    result = one(LONG, reviews)
    assert (result.status, dict(result.outputs), result.values["ALL"]) == ("partial", {"N": 1}, 2)
    assert [found.review for found in result.extractions if found.failed] == [1, 2, 3, 4]
    assert [error.kind for error in result.errors] == ["review"]
    assert (
        result.errors[0].message
        == '4 of 6 kept reviews failed (66.7%): text: its "text" can\'t be used: it is a number, not a string'
    )
    assert one(LONG, reviews, allow_invalid=0.7).status == "complete"


@pytest.mark.parametrize("stars", ["five", float("nan"), True, 2**63])
def test_faulty_metadata_counts_only_where_a_step_uses_it(stars: Any) -> None:
    reviews = [{"text": "food", "stars": stars}, {"text": "food", "stars": 4}]
    assert one(LONG, reviews).status == "complete"
    uses = load({**LONG.document, "output": ["STARS"]})
    result = one(uses, reviews)
    assert (result.status, dict(result.outputs), dict(result.unknown)) == ("partial", {"STARS": 4}, {"STARS": 1})
    assert result.errors[0].message == "meta.stars is missing for 1 of 2 kept reviews (50.0%): 1 invalid"
    (alone,) = one(uses, reviews[:1]).errors[:1]
    assert (alone.step, alone.kind) == ("STARS", "no_values")


def test_allow_invalid_is_a_share_of_the_kept_reviews() -> None:
    reviews = [{"text": f"food {'BAD' if place < 1 else place}"} for place in range(4)]
    bad = {"BAD": '{"mood": "planted?", "n": 1}'}
    result = one(LONG, reviews, Seeing(**bad))
    assert result.status == "partial"
    assert result.errors[0].message == "the field mood is missing for 1 of 4 kept reviews (25.0%): 1 invalid"
    assert one(LONG, reviews, Seeing(**bad), allow_invalid=0.25).status == "complete"
    assert one(load({**LONG.document, "allow_invalid": 0.25}), reviews, Seeing(**bad)).status == "complete"
    assert one(load({**LONG.document, "allow_invalid": 0.2}), reviews, Seeing(**bad)).status == "partial"
    with pytest.raises(ValueError, match="allow_invalid must be a number from 0 to 1, not 2"):
        one(LONG, reviews, allow_invalid=2)


def test_an_invalid_field_that_no_output_uses_leaves_the_context_complete() -> None:
    result = one(LONG, [{"text": "food"}], Seeing(food='{"mood": "none", "n": "some"}'))
    assert (result.status, result.counts.invalid) == ("partial", 1)  # TOTAL has no values, which is told
    assert [(error.step, error.kind) for error in result.errors] == [("TOTAL", "no_values")]
    without = load({**LONG.document, "compute": LONG.document["compute"][:2]})
    result = one(without, [{"text": "food"}], Seeing(food='{"mood": "none", "n": "some"}'))
    assert (result.status, result.counts.invalid) == ("complete", 1)


def test_what_was_coerced_is_kept_in_the_cache_and_told_again(tmp_path: Path) -> None:
    said = Seeing(food='<think>n is 2</think>{"mood": "Planted", "n": "2"}')
    first = one(LONG, [{"text": "food"}], said, model="m", cache=tmp_path / "x.sqlite")
    again = one(LONG, [{"text": "food"}], Seeing(food="never"), model="m", cache=tmp_path / "x.sqlite")
    for result in (first, again):
        assert dict(result.extractions[0].coerced) == {"mood": "Planted", "n": "2"}
        assert (result.values["TOTAL"], result.counts.coerced) == (2, 1)
    assert (first.extractions[0].read_as, first.calls, again.calls) == ("thinking", 1, 0)
    strict = one(LONG, [{"text": "food"}], said, model="m", cache=tmp_path / "x.sqlite", strict_types=True)
    assert strict.status == "failed"
