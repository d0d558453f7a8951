"""Extraction through the real SDK from a real server: what is asked, what is repaired, what fails and says so."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from knotwork.adapters.llm import BudgetExceeded, Refused, TimedOut, Truncated, WrongKey
from knotwork.adapters.llm.budget import Ledger
from knotwork.lang.trees.seed import Extracted, FormulaSeed, ReviewHandling
from knotwork.runtime.events import CallFinished, CallRetried, CallStarted, Events
from knotwork.runtime.models.factory import ModelSettings, open_model
from knotwork.runtime.seeds.extraction import Extractor
from knotwork.runtime.seeds.extraction_prompts import way_of_asking
from knotwork.runtime.seeds.seed_results import Counts, Extraction, SeedResult
from knotwork.runtime.seeds.seed_run import run_one
from support.clients import Scripted
from support.model_server import ModelServer
from support.review_server import ReviewServer, marked, review_of
from support.seeds import ACCOUNT, PEOPLE, SEVERITY, food_seed


def run(
    texts: list[str], *, seed: FormulaSeed | None = None, server: ModelServer | None = None, ledger: Ledger | None = None,
    **options: Any,
) -> tuple[SeedResult, ModelServer]:  # fmt: skip
    """Run over reviews "food" + text, through the OpenAI SDK and all layers."""

    async def work() -> tuple[SeedResult, ModelServer]:
        async with server or ReviewServer() as serving:
            model = open_model(ModelSettings(f"{serving.url}#m", ledger=ledger or Ledger()))
            try:
                context = {
                    "name": "Café",
                    "reviews": [{"text": f"food {text}", "id": place} for place, text in enumerate(texts)],
                }
                return await run_one(seed or food_seed(), context, model, **options), serving
            finally:
                await model.aclose()

    return asyncio.run(work())


def alone(answer: Any, seed: FormulaSeed | None = None, **options: Any) -> tuple[Extraction, Scripted]:
    """Extract from one review with a client of somebody's own."""
    client = Scripted(default=answer)
    context = {"reviews": [{"text": "the food"}]}
    result = asyncio.run(run_one(seed or food_seed(), context, client, **options))
    return result.extractions[0], client


def test_each_kept_review_is_asked_once() -> None:
    result, server = run([marked(severity="mild", people=2), marked(severity="none", people=None)])
    assert len(server.requests) == 2
    assert [found.extraction for found in result.extractions] == [
        {"severity": "mild", "people": 2}, {"severity": "none", "people": None},
    ]  # fmt: skip
    assert result.outputs == {"N": 2, "N_MILD": 1, "VERDICT": "bad"}
    assert result.status == "complete"
    assert (result.calls, result.usage.prompt_tokens, result.usage.completion_tokens) == (2, 22, 14)


def test_the_schema_is_asked_for_strictly() -> None:
    _, server = run([""])
    asked = server.requests[0].body["response_format"]["json_schema"]
    assert asked["strict"] is True
    assert asked["schema"]["properties"]["severity"] == {"type": "string", "enum": ["none", "mild", "severe"]}
    assert server.requests[0].body["temperature"] == 0.0


def test_an_enum_value_in_another_spelling_costs_no_repair() -> None:
    result, server = run([marked(severity=" Mild ", people=1)])
    assert len(server.requests) == 1
    assert result.extractions[0].extraction["severity"] == "mild"


def test_an_unlisted_value_gets_one_repair_and_is_invalid_then() -> None:
    result, server = run([marked(severity="awful", people=3), marked(severity="mild", people=1)])
    assert len(server.requests) == 3
    bad = result.extractions[0]
    assert bad.extraction == {"severity": None, "people": 3}
    assert bad.invalid == {"severity": "awful"}
    assert bad.failed == ""
    assert result.outputs == {"N": 2, "N_MILD": 1, "VERDICT": "bad"}  # it still counts
    assert result.counts.as_json() == Counts(2, 2, 2, 1).as_json()
    assert result.status == "partial"
    (error,) = result.errors
    assert (error.kind, error.message) == (
        "invalid",
        "the field severity is missing for 1 of 2 kept reviews (50.0%): 1 invalid",
    )
    assert result.unknown == {"N_MILD": 1}
    assert result.calls == 3


def test_a_repair_that_helps_leaves_nothing_invalid() -> None:
    found, client = alone(['{"severity": "bad", "people": 1}', '{"severity": "severe", "people": 1}'])
    assert len(client.prompts) == 2
    assert (found.extraction, found.invalid) == ({"severity": "severe", "people": 1}, {})


def test_a_client_that_answers_no_json_fails_after_one_repair() -> None:
    found, client = alone("It was mild.")
    assert len(client.prompts) == 2
    assert found.failed == (
        'bad_answer: the answer can\'t be used: it has no JSON object with "severity" or "people"; '
        'it is "It was mild." (even after a repair)'
    )
    assert found.extraction == {}


@pytest.mark.parametrize(
    "refusal", ['{"error": "I may not read this."}', "{}", '{"name": "save", "arguments": {"severity": "mild"}}']
)
def test_a_refusal_in_json_fails_like_one_in_prose(refusal: str) -> None:
    answers = {"first": refusal, "second": '{"severity": "mild", "people": null}'}
    context = {"reviews": [{"text": "food first"}, {"text": "food second"}]}
    result = asyncio.run(run_one(food_seed(), context, Scripted(answers)))
    assert (result.status, result.outputs["N"]) == ("partial", 1)
    assert json.dumps(refusal) in result.extractions[0].failed


def test_a_failed_extraction_is_told_and_the_others_count() -> None:
    answers = {"first": Refused("the model declined"), "second": '{"severity": "mild", "people": null}'}
    context = {"reviews": [{"text": "food first"}, {"text": "food second"}]}
    result = asyncio.run(run_one(food_seed(), context, Scripted(answers)))
    assert [found.failed for found in result.extractions] == ["refused: the model declined", ""]
    assert (result.status, result.outputs["N"]) == ("partial", 1)
    assert result.counts.as_json() == Counts(2, 2, 1, 0, 1).as_json()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Truncated("cut off"), "truncated: cut off"),
        (TimedOut("no answer in time"), "timeout: no answer in time"),
        (RuntimeError("boom"), "error: RuntimeError: boom"),
        ("", "empty: the client's answer is empty"),
    ],
)
def test_where_nothing_could_be_extracted_there_are_no_outputs(error: Any, said: str) -> None:
    result = asyncio.run(run_one(food_seed(), {"reviews": [{"text": "food"}]}, Scripted(default=error)))
    assert result.status == "failed"
    assert result.outputs == {}
    assert result.errors[0].message == f"the only kept review could not be extracted: {said}"


def test_where_nothing_is_kept_nothing_is_asked_and_it_is_computed_over_nothing() -> None:
    client = Scripted()
    result = asyncio.run(run_one(food_seed(), {"reviews": [{"text": "x"}]}, client))
    assert client.prompts == []
    assert (result.status, result.outputs) == ("complete", {"N": 0, "N_MILD": 0, "VERDICT": "good"})


def test_a_budget_that_is_used_up_stops_the_asking_and_says_so() -> None:
    texts = [str(n) + marked(severity="mild", people=0) for n in range(10)]
    result, server = run(texts, ledger=Ledger(max_calls=4), max_concurrency=2)
    assert len(server.requests) == 4
    assert result.counts.extracted == 4
    assert (result.counts.failed, result.counts.not_asked) == (0, 6)
    assert result.status == "partial"
    assert result.calls == 4
    failures = [found.failed for found in result.extractions if found.failed]
    assert failures[0] == "budget: the budget of 4 calls is used up"
    assert failures[-1] == "budget: not asked: the budget of 4 calls is used up"


def test_after_a_wrong_key_nothing_more_is_asked() -> None:
    client = Scripted(default=WrongKey("the key is wrong"))
    context = {"reviews": [{"text": f"food {n}"} for n in range(50)]}
    result = asyncio.run(run_one(food_seed(), context, client, max_concurrency=1))
    assert len(client.prompts) == 1
    assert (result.counts.failed, result.counts.not_asked) == (1, 49)


@pytest.mark.parametrize("fault", ["500", "length", "json_cut", "surrogate", "html"])
def test_the_requests_of_a_failed_extraction_are_counted(fault: str) -> None:
    result, server = run(["a", "b"], server=ReviewServer(always=fault), max_concurrency=1)
    assert result.counts.failed + result.counts.not_asked == 2
    assert result.calls == len(server.requests) == (1 if fault == "html" else 6)


@pytest.mark.parametrize("most", range(6))
def test_a_budget_that_ends_between_an_answer_and_its_repair_counts_what_was_sent(most: int) -> None:
    texts = [marked(severity="awful", people=1), marked(severity="mild", people=1), marked(severity="bad", people=1)]
    result, server = run(texts, ledger=Ledger(max_calls=most), max_concurrency=1)
    assert result.calls == len(server.requests) == most
    assert result.counts.extracted + result.counts.failed + result.counts.not_asked == 3


def test_a_budget_error_of_a_client_counts_no_call() -> None:
    context = {"reviews": [{"text": "food"}]}
    result = asyncio.run(run_one(food_seed(), context, Scripted(default=BudgetExceeded("spent"))))
    assert result.calls == 0


@pytest.mark.slow
def test_faults_of_the_service_are_met_by_the_layers_below() -> None:
    server = ReviewServer(faults=["500", "html_502", "reset", "length", "json_cut"])
    result, server = run([str(n) + marked(severity="mild", people=n) for n in range(4)], server=server)
    assert [found.extraction["people"] for found in result.extractions] == [0, 1, 2, 3]
    assert result.status == "complete"


def test_events_tell_each_call_with_its_review() -> None:
    seen: list[Any] = []
    events = Events()
    events.subscribe(seen.append)
    run([marked(severity="awful", people=3)], events=events)
    names = [event.name for event in seen]
    assert names == [
        "run.started", "step.started", "call.started", "call.retried", "call.finished", "step.finished", "run.finished",
    ]  # fmt: skip
    started = next(event for event in seen if isinstance(event, CallStarted))
    assert (started.step, started.item) == ("0 Café", 0)
    assert next(event for event in seen if isinstance(event, CallRetried)).kind == "repair"
    assert next(event for event in seen if isinstance(event, CallFinished)).prompt_tokens == 22


# Seed 000's own prompt


def test_a_prompt_of_ones_own_is_used_as_it_is() -> None:
    seed = food_seed(prompt="How bad, {review_id}?\n{review_text}\nStars: {review_stars}")
    found, client = alone('{"severity": "none", "people": 4}', seed)
    assert client.prompts[0].startswith("How bad, {review_id}?\n```\nthe food\n```\nStars: unknown\n\n")
    assert found.extraction == {"severity": "none", "people": 4}


# Long reviews and two readings


def by_review(answers: dict[str, Any]) -> Callable[[str], str]:
    return lambda prompt: json.dumps(answers[review_of(prompt).strip()])


def test_a_split_review_is_asked_in_chunks_and_merged() -> None:
    seed = food_seed(review_handling=ReviewHandling(9, "split"))
    answers = {"the food": {"severity": "none", "people": 3}, "was bad": {"severity": "severe", "people": None}}
    client = Scripted(default=by_review(answers))
    result = asyncio.run(run_one(seed, {"reviews": [{"text": "the food was bad"}]}, client))
    assert result.extractions[0].extraction == {"severity": "severe", "people": 3}
    assert result.calls == len(client.prompts) == 2


@pytest.mark.parametrize(("strategy", "sent"), [("truncate_head", "the foo"), ("truncate_tail", "was bad")])
def test_a_truncated_review_is_asked_in_part(strategy: Any, sent: str) -> None:
    client = Scripted(default='{"severity": "none", "people": null}')
    seed = food_seed(review_handling=ReviewHandling(7, strategy))
    asyncio.run(run_one(seed, {"reviews": [{"text": "the food was bad"}]}, client))
    assert review_of(client.prompts[0]) == sent


def test_a_chunk_that_fails_fails_the_extraction() -> None:
    seed = food_seed(review_handling=ReviewHandling(9, "split"))
    client = Scripted({"was bad": Refused("no")}, default='{"severity": "none", "people": null}')
    result = asyncio.run(run_one(seed, {"reviews": [{"text": "the food was bad"}]}, client))
    assert result.extractions[0].failed == "refused: no"


def test_two_readings_that_agree_cost_two_calls() -> None:
    found, client = alone('{"severity": "mild", "people": 1}', food_seed(passes=2))
    assert found.extraction == {"severity": "mild", "people": 1}
    assert [asked.get("sample") for asked in client.options] == [None, 1]
    assert all("temperature" not in asked for asked in client.options)


def test_where_two_readings_differ_a_third_sees_both_and_decides() -> None:
    answers = ['{"severity": "mild", "people": 1}', '{"severity": "severe", "people": 1}', '{"severity": "severe"}']
    found, client = alone(answers, food_seed(passes=2))
    assert found.extraction == {"severity": "severe", "people": 1}
    assert len(client.prompts) == 3
    third = client.prompts[2]
    assert '```\n{"severity": "mild"}\n```\nThe second said:\n```\n{"severity": "severe"}\n```' in third
    assert list(client.options[2]["schema"]["properties"]) == ["severity"]


# Choices, one field at a time


def test_only_the_local_model_is_asked_field_by_field() -> None:
    seed, own = food_seed(), food_seed(prompt="{review_text}")
    assert way_of_asking(seed, "auto", "local") == "choices"
    assert way_of_asking(seed, "auto", "local:model.gguf") == "choices"
    assert way_of_asking(seed, "auto", "openai:local") == "json"
    assert way_of_asking(own, "auto", "local") == "json"
    assert way_of_asking(own, "choices", "") == "choices"


def test_enum_fields_are_choices_and_the_others_are_asked_together() -> None:
    seed = food_seed(fields=(SEVERITY, ACCOUNT, PEOPLE, Extracted("late", "bool")))
    client = Scripted({"severity:": "mild", "account:": " Hearsay"}, default='{"people": 2, "late": true}')
    result = asyncio.run(run_one(seed, {"reviews": [{"text": "the food"}]}, client, ask="choices"))
    assert result.extractions[0].extraction == {"severity": "mild", "account": "hearsay", "people": 2, "late": True}
    assert [asked.get("choices") for asked in client.options] == [
        ["none", "mild", "severe"],
        ["firsthand", "hearsay"],
        None,
    ]


def test_choices_are_made_over_the_part_that_is_asked_for() -> None:
    text = "food " + "a " * 1_500 + "the end"
    for strategy, most, seen, asked in (("truncate_tail", 2_000, 1, 1), ("split", 5_000, 1, 2), ("truncate_head", 2_000, 0, 1),
                                        ("truncate_head", 5_000, 1, 2)):  # fmt: skip
        seed = food_seed(fields=(SEVERITY,), review_handling=ReviewHandling(most, strategy))
        client = Scripted(default="mild")
        asyncio.run(run_one(seed, {"reviews": [{"text": text}]}, client, ask="choices"))
        assert sum("the end\n" in prompt for prompt in client.prompts) == seen
        assert len(client.prompts) == asked


def test_a_choice_that_is_none_is_invalid_after_a_repair() -> None:
    found, client = alone("terrible", food_seed(fields=(SEVERITY,)), ask="choices")
    assert len(client.prompts) == 2
    assert (found.extraction, found.invalid) == ({"severity": None}, {"severity": "terrible"})


def test_a_seed_without_fields_asks_nothing() -> None:
    found, client = alone("", food_seed(fields=()))
    assert client.prompts == []
    assert found.extraction == {}


def test_the_digest_is_of_all_that_goes_into_an_extraction() -> None:
    from knotwork.runtime.seeds.reviews import read_context

    (review,) = read_context({"reviews": [{"text": "food"}]}).reviews

    def digest(**changes: Any) -> str:
        options = changes.pop("options", {})
        return Extractor(food_seed(**changes), None, options=options).digest(review)

    assert digest() == digest(steps=(), outputs=(), task_name="x")
    others = {
        digest(), digest(fields=(SEVERITY,)), digest(fields=(PEOPLE, SEVERITY)), digest(passes=2), digest(prompt="{review_text}"),
        digest(review_handling=ReviewHandling(2)), digest(options={"max_tokens": 5}),
    }  # fmt: skip
    assert len(others) == 7
    assert digest(options={"timeout": 5.0}) == digest()
