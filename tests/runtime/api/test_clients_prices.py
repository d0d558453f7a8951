"""A price that nobody gave is looked up: one place for all functions that take ``max_cost``."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from knotwork import answers, evals, lwt, planner, seed
from knotwork.adapters.llm import Completion, Usage, budget
from knotwork.adapters.llm.budget import Price
from knotwork.runtime.api.ask import ask_sync
from knotwork.runtime.errors import RequestError
from knotwork.runtime.models import factory
from support.command import call, cassette

pytest.importorskip("genai_prices")

SCRIPT = '(final)=LLM("first")\n'
SEED = (
    '{"task_name": "t", "filter": {"keywords": ["ill"]}, "extract": {"fields": [{"name": "bad", "type": "bool"}]}, '
    '"compute": [{"name": "N", "op": "count", "where": {"extraction.bad": true}}], "output": ["N"]}'
)
CONTEXT = {"name": "x", "reviews": [{"text": f"ill {number}"} for number in range(3)]}
SPEC = "openai:gpt-5-mini"
USED = Usage(1_000_000, 100_000)


class Service:
    """Stands for a service's adapter, so that the layers above it are the real ones."""

    calls = 0

    async def generate(self, prompt: str, **options: Any) -> Completion:
        Service.calls += 1
        return Completion('{"bad": true}', usage=USED)

    async def aclose(self) -> None:
        pass


@pytest.fixture(autouse=True)
def service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Service.calls = 0
    monkeypatch.setattr(factory, "open_adapter", lambda spec, environ, stream=False: Service())
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


async def _many(**options: Any) -> list[Any]:
    return [each async for each in seed.run_many(seed.load(SEED), [CONTEXT], **options)]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "lwt.run": lambda llm, **options: lwt.run_sync(SCRIPT, llm=llm, **options),
    "seed.run": lambda llm, **options: seed.run_sync(seed.load(SEED), CONTEXT, llm=llm, **options),
    "seed.run_many": lambda llm, **options: asyncio.run(_many(llm=llm, **options)),
    "seed.collect": lambda llm, **options: seed.collect_sync(seed.load(SEED), [CONTEXT], llm=llm, **options),
    "evals.run": lambda llm, **options: evals.run_sync(
        seed.load(SEED),
        [{"context": "x", "review": 0, "bad": True}],
        contexts=[CONTEXT],
        candidates={"m": llm},
        **options,
    ),
    "seed.compile": lambda llm, **options: seed.compile_sync("count the bad reviews", llm, **options),
    "rank": lambda llm, **options: planner.rank_sync(["a", "b"], "best", llm, **options),
    "ask": lambda llm, **options: ask_sync("nx:les_miserables", "who?", llm=llm, max_steps=1, **options),
    "answers": lambda llm, **options: answers.generate_answer_sync(
        "say", eval_crit="short", llm=llm, iter_max=1, **options
    ),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    "llm", ["openai:no-such-model", "http://127.0.0.1:1/v1#m", Service()], ids=["model", "address", "client"]
)
def test_a_limit_on_cost_refuses_an_unknown_price_before_any_call(function: str, llm: Any) -> None:
    with pytest.raises(RequestError) as caught:
        FUNCTIONS[function](llm, max_cost=1.0)
    assert (
        caught.value.parameter == "max_cost"
        and "--price IN/OUT" in caught.value.hint
        and "needs a price" in caught.value.message
    )
    assert not Service.calls


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_limit_is_taken_by_every_function(function: str) -> None:
    for wrong in ({"max_calls": -1}, {"max_tokens": -1}, {"max_cost": -1}, {"price": 3}, {"rate": 0}):
        with pytest.raises(RequestError, match=next(iter(wrong))):
            FUNCTIONS[function](SPEC, **wrong)
    if function != "seed.compile":  # its steps run one after the other
        with pytest.raises((RequestError, ValueError), match="max_concurrency"):
            FUNCTIONS[function](SPEC, max_concurrency=0)
    assert not Service.calls


def test_without_the_extra_the_hint_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "find_spec", lambda name: None)
    with pytest.raises(RequestError, match="knotwork\\[prices\\]"):
        FUNCTIONS["lwt.run"](SPEC, max_cost=1.0)
    assert FUNCTIONS["lwt.run"](SPEC).cost is None and not FUNCTIONS["lwt.run"](SPEC).prices


@pytest.mark.slow
def test_results_name_the_price_that_was_looked_up() -> None:
    run = FUNCTIONS["lwt.run"](SPEC)
    price = run.prices[SPEC]
    assert run.cost == pytest.approx(price.prompt + price.completion / 10) and price.source.startswith("genai-prices")
    result = FUNCTIONS["seed.run"](SPEC)
    assert result.cost == pytest.approx(3 * run.cost) and result.prices == run.prices
    assert result.as_json()["prices"] == [price.as_json(SPEC)]
    assert FUNCTIONS["seed.run_many"](SPEC)[0].prices == run.prices
    assert FUNCTIONS["seed.collect"](SPEC)[0].prices == run.prices
    assert FUNCTIONS["evals.run"](SPEC).prices == run.prices
    for function in ("seed.compile", "rank", "ask"):
        assert FUNCTIONS[function](SPEC).prices == run.prices, function
        assert FUNCTIONS[function](SPEC).as_json()["prices"], function


def test_the_answers_name_the_price() -> None:
    with pytest.raises(answers.AnswerFailed) as failed:  # the service's judgement is not one
        FUNCTIONS["answers"](SPEC)
    assert SPEC in failed.value.result.prices and failed.value.result.as_json()["metadata"]["prices"]


def test_a_given_price_wins() -> None:
    run = FUNCTIONS["lwt.run"](SPEC, price=(1, 10))
    assert (
        run.cost == pytest.approx(2.0)
        and run.prices == {SPEC: Price(1, 10)}
        and run.prices[SPEC].as_json("m")["source"] == "given"
    )
    run = FUNCTIONS["lwt.run"](Service(), price=(1, 10))
    assert run.cost == pytest.approx(2.0) and list(run.prices) == ["custom client"]


def test_the_price_is_looked_up_once_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    import genai_prices

    looked: list[str] = []
    real = genai_prices.calc_price
    monkeypatch.setattr(
        genai_prices, "calc_price", lambda usage, model, **more: looked.append(model) or real(usage, model, **more)
    )
    FUNCTIONS["seed.run"](SPEC, max_cost=10.0)
    assert looked == ["gpt-5-mini"] and Service.calls == 3


def test_a_looked_up_price_limits_the_cost() -> None:
    result = FUNCTIONS["seed.run"](SPEC, max_cost=0.5, max_concurrency=1)
    assert (
        Service.calls == 2 and result.counts.not_asked == 1
    )  # each call costs $0.45; the second one was begun under the limit


def test_replayed_answers_cost_nothing_under_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    spec = cassette(tmp_path / "model.jsonl", {"first": "red"})
    run = FUNCTIONS["lwt.run"](spec, max_cost=0.0)
    assert run.output == "red" and run.cost == 0.0 and not run.prices


# On the command line: the end of a run, the stored run, its report, JSON.


def test_the_run_and_its_report_name_the_price(tmp_path: Path) -> None:
    (tmp_path / "a.lwt").write_text(SCRIPT)
    done = call("run", "a.lwt", "--llm", SPEC, "--no-cache", "--format", "json")
    assert done.code == 0 and "price of openai:gpt-5-mini: $0.25 + $2 per million tokens (genai-prices" in done.err
    assert done.json["prices"][0]["model"] == SPEC and done.json["prices"][0]["date"]
    shown = call("runs", "show", done.json["run"])
    assert "price    openai:gpt-5-mini: $0.25 + $2" in shown.out
    assert call("runs", "show", done.json["run"], "--format", "json").json["prices"] == done.json["prices"]
    assert call("report", done.json["run"], "-o", "page.html").code == 0
    assert "Price of openai:gpt-5-mini: $0.25 + $2 per million tokens" in (tmp_path / "page.html").read_text()


def test_a_seed_run_names_the_price(tmp_path: Path) -> None:
    (tmp_path / "s.seed.json").write_text(SEED)
    (tmp_path / "c.jsonl").write_text(json.dumps(CONTEXT))
    done = call("seed", "run", "s.seed.json", "c.jsonl", "--llm", SPEC, "--no-cache")
    assert "price of openai:gpt-5-mini" in done.err and json.loads(done.out)["prices"][0]["source"].startswith(
        "genai-prices"
    )
    given = call("seed", "run", "s.seed.json", "c.jsonl", "--llm", SPEC, "--no-cache", "--price", "1/1")
    assert "price of" not in given.err and json.loads(given.out)["prices"][0]["source"] == "given"


@pytest.mark.parametrize(
    "command",
    [
        ("run", "a.lwt"),
        ("seed", "run", "s.seed.json", "c.jsonl"),
        ("seed", "compile", "task.md"),
        ("rank", "items.json", "--request", "best"),
        ("ask", "nx:les_miserables", "who?"),
        ("answer", "say something", "--check", "words:1..9"),
        ("repl", "-c", "1"),
        ("mcp",),
        ("serve",),
    ],
    ids=" ".join,
)
def test_every_command_refuses_a_limit_on_cost_without_a_price(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "a.lwt").write_text(SCRIPT)
    (tmp_path / "s.seed.json").write_text(SEED)
    (tmp_path / "c.jsonl").write_text(json.dumps(CONTEXT))
    (tmp_path / "task.md").write_text("count the bad reviews")
    (tmp_path / "items.json").write_text('["a", "b"]')
    done = call(*command, "--llm", "openai:no-such-model", "--max-cost", "1")
    assert (
        done.code == 2 and "the price of openai:no-such-model is unknown" in done.err and "--price IN/OUT" in done.err
    ), done
    assert "Traceback" not in done.err and not Service.calls
