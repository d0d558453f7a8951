"""Limits on calls in Python: the names of the command's options, the same meaning, the same refusals."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from knotwork import lwt, seed
from knotwork.adapters.llm import Completion, NotConfigured, Usage
from knotwork.runtime.errors import RequestError
from knotwork.runtime.events import Events, Warned
from support.command import cassette

SCRIPT = '(a)=LLM("first")\n(b)=LLM("second {(a)}")\n(final)=LLM("third {(b)}")\n'
SEED = (
    '{"task_name": "t", "filter": {"keywords": ["ill"]}, "extract": {"fields": [{"name": "bad", "type": "bool"}]}, '
    '"compute": [{"name": "N", "op": "count", "where": {"extraction.bad": true}}], "output": ["N"]}'
)
CONTEXT = {"name": "x", "reviews": [{"text": f"ill {number}"} for number in range(3)]}


class Client:
    """Answers everything, and counts."""

    def __init__(self, text: str = "red") -> None:
        self.text, self.calls = text, 0

    async def generate(self, prompt: str, **options: Any) -> Completion:
        self.calls += 1
        return Completion(self.text, usage=Usage(1_100, 100))


def run(**options: Any) -> Any:
    return lwt.run_sync(SCRIPT, **options)


async def chunks() -> Any:
    yield SCRIPT


STREAMED: Callable[..., Any] = lambda **options: asyncio.run(lwt.run_stream(chunks(), **options))  # noqa: E731


@pytest.mark.parametrize("run", [run, STREAMED], ids=["run", "run_stream"])
@pytest.mark.parametrize("limits", [{"max_calls": 2}, {"max_tokens": 2_300}, {"max_cost": 0.0023, "price": (1, 1)}])
def test_a_script_s_calls_end_at_the_limit(run: Any, limits: dict[str, Any]) -> None:
    client = Client()
    result = run(llm=client, **limits)
    assert result.status in ("partial", "failed") and 1 <= client.calls <= 2
    failed = [each.failed.kind for each in result.steps.values() if each.failed is not None]
    assert "budget" in failed


def test_the_limit_holds_for_all_models_of_a_run_together(tmp_path: Path) -> None:
    spec = cassette(tmp_path / "model.jsonl", {"first": "red", "second": "blue", "third": "green"})
    script = SCRIPT.replace('"second {(a)}"', '"second {(a)}", model="other"')
    assert run(llm=spec).output == "green"
    result = lwt.run_sync(script, llm=spec, models={"other": spec}, max_calls=2)
    assert result.steps["b"].status == "done" and result.steps["final"].failed.kind == "budget"


@pytest.mark.parametrize("text", ["an answer", Completion("an answer")])
def test_the_usage_of_a_model_that_reports_none_is_estimated_and_marked(text: Any) -> None:
    class Silent:
        async def generate(self, prompt: str, **options: Any) -> Any:
            return text

    prompt = "a prompt of 24 bytes ..."
    for limits in ({}, {"max_calls": 5}):
        run = lwt.run_sync(f'(a)=LLM("{prompt}")', llm=Silent(), **limits)
        assert (run.usage, run.cost) == (Usage(6, 3, estimated=True), None)
    assert lwt.run_sync(f'(a)=LLM("{prompt}")', llm=Silent(), price=(1, 2)).cost == pytest.approx(12e-6)


def test_a_limit_says_what_it_counted_for_a_model_that_reports_no_usage() -> None:
    warnings: list[str] = []
    events = Events()
    events.subscribe(lambda event: warnings.append(event.message) if isinstance(event, Warned) else None)
    run = lwt.run_sync(
        '(a)=LLM("x")\n(b)=LLM("y {(a)}")',
        llm=lambda prompt: "words" * 20,
        max_cost=0.0003,
        price=(1, 1),
        events=events,
    )
    assert run.steps["a"].status == "done" and run.steps["b"].failed is not None
    assert "one token per byte was counted where a model reports no usage" in run.steps["b"].failed.message
    assert warnings[-1].startswith("the budget counted 165 tokens and $0.000165: one token per byte")


def test_a_custom_model_is_asked_again_and_then_no_more() -> None:
    class Broken:
        def __init__(self, *failures: Exception) -> None:
            self.failures, self.calls = list(failures), 0

        async def generate(self, prompt: str, **options: Any) -> str:
            self.calls += 1
            if self.failures:
                raise self.failures.pop(0)
            return "fine"

    refused = type("APIError", (Exception,), {"status_code": 429, "headers": {"retry-after-ms": "1"}})
    client = Broken(refused("too many"), ConnectionError("reset"), *[refused("too many")] * 3)
    run = lwt.run_sync('(a)=LLM("x")', llm=client)
    assert (run.status, run.calls, client.calls) == ("complete", 6, 6)
    client = Broken(*[ConnectionError("refused")] * 100)
    run = lwt.run_sync('(a)=EACH({(input)}, LLM("{(item)}"), on_error=keep)', input=list("abcdefghijkl"), llm=client)
    assert client.calls == run.calls < 12
    failed = run.steps["a"].failed_items
    assert [each.is_unasked for each in failed] == [each.message.startswith("not asked: ") for each in failed]
    assert [each.name for each in failed if each.is_unasked][-1] == "l"


def test_a_price_gives_the_cost(tmp_path: Path) -> None:
    assert run(llm=Client(), price=(1, 2)).cost == pytest.approx(3 * (1_100 * 1 + 100 * 2) / 1e6)


def test_a_kept_run_is_resumed_under_its_own_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    spec = cassette(tmp_path / "model.jsonl", {"first": "red", "second": "blue", "third": "green"})
    begun = run(llm=spec, record=True, max_calls=1)
    again = lwt.resume_sync(begun.run_id, llm=spec, max_calls=1)
    assert again.steps["b"].status == "done" and again.steps["final"].failed.kind == "budget"
    assert lwt.resume_sync(begun.run_id, llm=spec, max_calls=1).output == "green"


def test_a_cache_answers_the_second_run(tmp_path: Path) -> None:
    spec = cassette(tmp_path / "model.jsonl", {"first": "red", "second": "blue", "third": "green"})
    assert run(llm=spec, cache=tmp_path / "cache.sqlite").output == "green"
    with pytest.raises(RequestError, match="custom client"):
        run(llm=Client(), cache=tmp_path / "cache.sqlite")


def test_a_seed_s_calls_end_at_the_limit() -> None:
    client = Client('{"bad": true}')
    result = seed.run_sync(seed.load(SEED), CONTEXT, llm=client, max_calls=2)
    assert client.calls == 2 and result.counts.not_asked == 1 and result.status != "complete"

    async def many() -> list[Any]:
        found = seed.run_many(seed.load(SEED), [CONTEXT, CONTEXT], llm=Client('{"bad": true}'), max_calls=4)
        return [each async for each in found]

    assert sum(each.counts.not_asked for each in asyncio.run(many())) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_calls": -1},
        {"max_calls": 1.5},
        {"max_tokens": -1},
        {"max_cost": "1"},
        {"price": 3},
        {"price": (1,)},
        {"rate": 0},
        {"rate": "fast"},
        {"rate": True},
    ],
    ids=str,
)
def test_what_is_no_limit_is_refused_before_a_call(wrong: dict[str, Any]) -> None:
    client = Client()
    with pytest.raises(RequestError, match=next(iter(wrong))):
        run(llm=client, **wrong)
    with pytest.raises(RequestError, match=next(iter(wrong))):
        seed.run_sync(seed.load(SEED), CONTEXT, llm=client, **wrong)
    assert not client.calls


def test_a_limit_in_dollars_needs_a_price() -> None:
    with pytest.raises((RequestError, NotConfigured)):
        run(llm=Client(), max_cost=1.0)
