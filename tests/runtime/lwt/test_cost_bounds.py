"""The bounds of a dry run: what a script may cost, from the prompts that are known."""

import pytest
from knotwork import lwt
from knotwork.adapters.llm.budget import Price
from knotwork.runtime.api.lwt import dry_run
from knotwork.runtime.lwt.cost_bounds import USUAL_ANSWER, cost_bounds
from support.command import call

PRICE = Price(1.0, 10.0)


def bounds(text: str, **options):
    return cost_bounds(dry_run(lwt.parse(text), **options), lambda name: PRICE)


def test_known_prompts_are_measured_and_answers_bounded():
    found = bounds('(final)=LLM("' + "x" * 300 + '", max_tokens=50)')
    assert (found.prompt, found.completion) == ((60, 100), (1, 50))
    assert found.cost == (pytest.approx((60 + 10) / 1e6), pytest.approx((100 + 500) / 1e6))
    assert bounds('(final)=LLM("x")').completion == (1, USUAL_ANSWER)


def test_an_answer_in_a_prompt_is_as_long_as_its_step_allows():
    found = bounds('(a)=LLM("x", max_tokens=20)\n(final)=LLM("{(a)}")')
    assert found.prompt[1] == round(1 / 3) + 20
    many = bounds('(n)=CONST([1, 2, 3])\n(a)=EACH({(n)}, LLM("{(item)}", max_tokens=20))\n(final)=LLM("{(a)}")')
    assert many.completion == (4, 60 + USUAL_ANSWER) and many.prompt[1] >= 60


def test_a_condition_may_cost_nothing():
    assert bounds('(a)=LLM("x")\n(final)=LLM("y", when="{(a)} == 1")').completion == (1, 2 * USUAL_ANSWER)


def test_an_unknown_number_of_calls_has_no_upper_bound():
    found = bounds('(a)=LLM("x", type=list)\n(final)=EACH({(a)}, LLM("{(item)}"))')
    assert found.prompt[1] is None and found.cost[1] is None and found.cost[0] > 0


def test_each_step_has_the_price_of_its_model():
    prices = {"": Price(0.0, 1.0), "big": Price(0.0, 100.0)}
    plan = dry_run(lwt.parse('(a)=LLM("x", max_tokens=10)\n(final)=LLM("{(a)}", model="big", max_tokens=10)'))
    assert cost_bounds(plan, prices.get).cost[1] == pytest.approx((10 + 1_000) / 1e6)
    assert cost_bounds(plan, {"": Price(0, 1)}.get).cost is None


@pytest.mark.slow
def test_the_command_names_model_price_source_tokens_cost_and_time(tmp_path, monkeypatch):
    pytest.importorskip("genai_prices")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.lwt").write_text('(a)=LLM("x")\n(final)=LLM("{(a)}")\n')
    done = call("run", "a.lwt", "--dry-run", "--llm", "openai:gpt-5-mini", "--rate", "4")
    assert done.code == 0 and "model openai:gpt-5-mini; price: $0.25 + $2 per million tokens (genai-prices" in done.out
    assert (
        "completion tokens, $" in done.out
        and "at --rate 4: 0:30 or more" in done.out
        and "no model was called" in done.out
    )
    told = call("run", "a.lwt", "--dry-run", "--llm", "openai:gpt-5-mini", "--format", "json").json
    assert (
        told["cost_range"][0] < told["cost_range"][1]
        and told["prices"][0]["date"]
        and told["model"] == "openai:gpt-5-mini"
    )
    given = call("run", "a.lwt", "--dry-run", "--llm", "openai:x", "--price", "1/2").out
    assert "price: $1 + $2 per million tokens (given)" in given
    assert "no cost" in call("run", "a.lwt", "--dry-run", "--llm", "local").out
    assert "its price is unknown" in call("run", "a.lwt", "--dry-run", "--llm", "openai:no-such-model").out
