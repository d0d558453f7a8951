"""A measured sample of a dry run: what it measures, what it extrapolates to, and what it pays."""

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from knotwork import seed
from knotwork.adapters.llm import BadAnswer, Completion, Usage
from knotwork.runtime.errors import RequestError
from knotwork.runtime.models import factory
from knotwork.runtime.seeds.reviews import read_context
from knotwork.runtime.seeds.token_sample import ReviewPicker
from support.command import call

SEED = {
    "task_name": "t", "filter": {"keywords": ["ill"]}, "extract": {"fields": [{"name": "bad", "type": "bool"}]},
    "compute": [{"name": "N", "op": "count", "where": {"extraction.bad": True}}], "output": ["N"],
}  # fmt: skip
FS = seed.load(SEED)
CONTEXTS = [
    {
        "name": f"c{number}",
        "reviews": [{"text": f"{number} {place} " + "ill " * (1 + (number * 7 + place) % 40)} for place in range(10)],
    }
    for number in range(20)
]


class Client:
    """Uses a token for three bytes of a prompt and 70 for an answer, like a model with some hidden reasoning."""

    def __init__(self, wrong: int = 0) -> None:
        self.prompts: list[str] = []
        self.wrong = wrong

    async def generate(self, prompt: str, **options: Any) -> Completion:
        self.prompts.append(prompt)
        usage = Usage(len(prompt) // 3, 70)
        if len(self.prompts) <= self.wrong:
            raise BadAnswer("no", usage=usage)
        return Completion('{"bad": true}', usage=usage)

    async def aclose(self) -> None:
        pass


@pytest.mark.slow
def test_the_interval_holds_the_tokens_of_the_whole_run() -> None:
    client = Client()
    found = seed.measure_sync(FS, CONTEXTS, llm=client, sample=20, price=(1, 2))
    sample = found.sample
    assert (sample.reviews, sample.calls, len(client.prompts), sample.cached, sample.failed) == (20, 20, 20, 0, 0)
    assert sample.cost == pytest.approx((sum(len(each) // 3 for each in client.prompts) + 2 * 20 * 70) / 1e6)
    whole = Client()
    for context in CONTEXTS:
        seed.run_sync(FS, context, llm=whole)
    prompts = sum(len(each) // 3 for each in whole.prompts)
    assert found.kept == 200 and len(whole.prompts) == 200
    assert sample.prompt.low <= prompts <= sample.prompt.high and sample.prompt.value == pytest.approx(
        prompts, rel=0.05
    )
    assert sample.completion.value == pytest.approx(200 * 70) and sample.prompt.high < 2 * sample.prompt.low
    assert sample.total_cost.value == pytest.approx((sample.prompt.value + 2 * sample.completion.value) / 1e6)
    assert sample.total_cost.low <= sample.total_cost.value <= sample.total_cost.high


@pytest.mark.slow
def test_intervals_of_many_samples_hold_the_truth_about_as_often_as_they_say() -> None:
    whole = Client()
    for context in CONTEXTS:
        seed.run_sync(FS, context, llm=whole)
    truth = sum(len(each) // 3 for each in whole.prompts)
    held = []
    for state in range(40):
        sample = seed.measure_sync(FS, CONTEXTS, llm=Client(), sample=20, random_state=state).sample
        held.append(sample.prompt.low <= truth <= sample.prompt.high)
    assert np.mean(held) >= 0.8


def test_a_sample_of_everything_is_exact() -> None:
    sample = seed.measure_sync(FS, CONTEXTS[:1], llm=Client(), sample=50).sample
    assert (
        sample.reviews == 10
        and sample.prompt.low == sample.prompt.value == sample.prompt.high == sample.usage.prompt_tokens
    )


def test_few_reviews_have_no_interval() -> None:
    sample = seed.measure_sync(FS, CONTEXTS, llm=Client(), sample=3).sample
    assert (
        sample.prompt.value > 0 and sample.prompt.low is None and sample.as_json()["all_prompt_tokens"]["low"] is None
    )


def test_nothing_kept_measures_nothing() -> None:
    client = Client()
    sample = seed.measure_sync(FS, [{"reviews": [{"text": "fine"}]}], llm=client).sample
    assert (sample.reviews, sample.prompt, client.prompts) == (0, None, [])


def test_a_larger_sample_contains_the_smaller_one_and_another_state_differs() -> None:
    def picked(count: int, state: int = 0) -> list[tuple[str, int]]:
        picker = ReviewPicker(FS, count, state)
        list(picker.watch(map(read_context, CONTEXTS)))
        return [(context.name, review.index) for context, review in picker.picked()]

    assert picked(5) == picked(30)[:5] and len(set(picked(30))) == 30 and picked(5, 1) != picked(5)


def test_limits_make_the_sample_smaller_and_say_so() -> None:
    client = Client()
    sample = seed.measure_sync(FS, CONTEXTS, llm=client, sample=20, max_calls=6).sample
    assert sample.reviews == len(client.prompts) == 6 and "budget of 6 calls" in sample.stopped


def test_failed_answers_are_paid_and_counted() -> None:
    sample = seed.measure_sync(FS, CONTEXTS, llm=Client(wrong=2), sample=10, max_concurrency=1).sample
    assert sample.failed >= 1 and sample.usage.completion_tokens == 70 * sample.calls


@pytest.mark.parametrize(
    "wrong", [{"sample": 0}, {"sample": 1.5}, {"random_state": "x"}, {"max_concurrency": 0}, {"max_cals": 3}], ids=str
)
def test_wrong_settings_are_refused_before_a_call(wrong: dict[str, Any]) -> None:
    client = Client()
    with pytest.raises(RequestError, match=next(iter(wrong))):
        seed.measure_sync(FS, CONTEXTS, llm=client, **wrong)
    assert not client.prompts


# On the command line


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    pytest.importorskip("genai_prices")
    client = Client()
    monkeypatch.setattr(factory, "open_adapter", lambda spec, environ, stream=False: client)
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 20)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.seed.json").write_text(json.dumps(SEED))
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(each) + "\n" for each in CONTEXTS))
    return client


ARGS = ("seed", "run", "s.seed.json", "c.jsonl", "--llm", "openai:gpt-5-mini")


@pytest.mark.slow
def test_a_dry_run_names_model_price_calls_tokens_cost_and_time(service: Client) -> None:
    done = call(*ARGS, "--dry-run", "--rate", "50")
    assert done.code == 0 and not service.prompts
    assert "model openai:gpt-5-mini; price: $0.25 + $2 per million tokens (genai-prices " in done.out
    assert "200 calls, about " in done.out and " to $" in done.out and "at --rate 50: 4:00" in done.out
    told = call(*ARGS, "--dry-run", "--format", "jsonl", "--rate", "50").json
    low, high = told["cost_range"]
    assert 0 < low < told["cost"] < high and told["price"]["date"] and told["seconds_at_rate"] == 240
    assert call(*ARGS, "--dry-run", "--price", "1/1", "--format", "jsonl").json["price"]["source"] == "given"
    assert "its price is unknown" in call(*ARGS[:-1], "openai:no-such-model", "--dry-run").out


@pytest.mark.slow
def test_a_dry_run_with_a_sample_pays_once_and_fills_the_cache(service: Client) -> None:
    done = call(*ARGS, "--dry-run", "--sample", "20")
    assert done.code == 0 and len(service.prompts) == 20
    assert "these calls are real and paid" in done.err
    assert "measured 20 of 200 kept reviews: 20 calls ($0." in done.out and "95 % interval" in done.out
    again = call(*ARGS, "--dry-run", "--sample", "20", "--format", "jsonl").json["sample"]
    assert len(service.prompts) == 20 and (again["calls"], again["cached"], again["cost"]) == (0, 20, 0)
    assert again["all_completion_tokens"]["value"] == 200 * 70
    call(*ARGS, "--max-calls", "500")
    assert len(service.prompts) == 200  # the run asks only for the other 180
    whole = call(*ARGS, "--dry-run", "--sample", "5", "--no-cache", "--max-calls", "2")
    assert len(service.prompts) == 202 and "the sample ended early" in whole.out


@pytest.mark.slow
def test_a_sample_respects_the_limit_on_cost(service: Client) -> None:
    refused = call(*ARGS[:-1], "openai:no-such-model", "--dry-run", "--sample", "5", "--max-cost", "1")
    assert refused.code == 2 and "price of openai:no-such-model is unknown" in refused.err and not service.prompts
    done = call(*ARGS, "--dry-run", "--sample", "20", "--max-cost", "0.0000001")
    assert done.code == 1 and not service.prompts and "the sample ended early" in done.out


def test_nothing_is_measured_inside_a_running_loop() -> None:
    async def work() -> None:
        found = await seed.measure(FS, CONTEXTS[:1], llm=Client(), sample=2)
        assert found.sample is not None and found.sample.reviews == 2

    asyncio.run(work())
