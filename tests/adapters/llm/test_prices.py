"""The price of a model: looked up offline, never guessed."""

import subprocess
import sys

import pytest
from knotwork.adapters.llm import Usage, budget
from knotwork.adapters.llm.budget import Ledger, Price, price_of_json, unknown_price
from knotwork.adapters.llm.prices import FREE, find_price

pytest.importorskip("genai_prices")


def test_the_oracle_is_the_package_s_own_computation():
    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    for service, model in (("openai", "gpt-5-mini"), ("openai", "gpt-4o"), ("anthropic", "claude-sonnet-4-5")):
        price = find_price(f"{service}:{model}", {})
        for asked, answered in ((1_000, 200), (250_000, 4_000)):
            wanted = calc_price(
                Counted(input_tokens=asked, output_tokens=answered), model, provider_id=service
            ).total_price
            assert price.of(Usage(asked, answered)) == pytest.approx(float(wanted))


def test_a_price_has_its_source_and_date():
    price = find_price("openai:gpt-5-mini", {})
    assert (
        price.source.startswith("genai-prices ")
        and price.source.endswith("openai/gpt-5-mini")
        and price.date[:2] == "20"
    )
    assert price.line("m").startswith(
        f"price of m: ${price.prompt:g} + ${price.completion:g} per million tokens (genai-prices"
    )
    assert Price(1, 2).line() == "price: $1 + $2 per million tokens (given)"


def test_nothing_is_paid_for_local_and_replayed_answers():
    assert (
        find_price("local", {}) is FREE
        and find_price("local:/m.gguf", {}) is FREE
        and find_price("replay:f.jsonl", {}) is FREE
    )
    assert find_price("record:f.jsonl,local", {}) is FREE
    assert find_price("record:f.jsonl,openai:gpt-5-mini", {}) == find_price("openai:gpt-5-mini", {})


@pytest.mark.parametrize(
    "spec",
    [
        "openai:no-such-model", "openai:ft:gpt-4o:us:1", "anthropic:gpt-5-mini", "http://localhost:8000/v1#gpt-5-mini",
        "http://10.0.0.7/v1#gpt-5-mini", "http://[::1]:1/v1#m", "https://models.example.com/v1#gpt-5-mini", "openai:text-embedding-3-small",
        "https://api.perplexity.ai#sonar", "nonsense", "",
    ],
)  # fmt: skip
def test_an_unknown_price_is_not_guessed(spec):
    assert find_price(spec, {}) is None


def test_another_address_is_another_price():
    assert find_price("openai:gpt-5-mini", {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}) is None
    assert find_price("openai:gpt-5-mini", {"OPENAI_BASE_URL": "https://models.example.com/v1"}) is None
    assert find_price("openai:gpt-5-mini", {"OPENAI_BASE_URL": "https://api.openai.com/v1"}) == find_price(
        "openai:gpt-5-mini", {}
    )
    assert "openrouter" in find_price("https://openrouter.ai/api/v1#openai/gpt-5", {}).source


def test_a_price_that_changes_within_the_day_is_the_highest_of_the_day():
    from datetime import UTC, datetime

    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    where = {"provider_api_url": "https://api.deepseek.com/v1"}
    price = find_price("https://api.deepseek.com/v1#deepseek-chat", {})
    day = datetime.now(UTC).replace(minute=0)
    for hour in range(24):
        now = calc_price(
            Counted(input_tokens=1_000_000, output_tokens=0),
            "deepseek-chat",
            genai_request_timestamp=day.replace(hour=hour),
            **where,
        )
        assert float(now.total_price) <= price.prompt + 1e-9


def test_long_prompts_reserve_the_price_of_long_prompts():
    price = Price(1.0, 2.0, ((1_000, 10.0, 20.0),))
    assert price.of(Usage(1_000, 0)) == pytest.approx(0.001) and price.of(Usage(1_001, 0)) == pytest.approx(0.01001)
    ledger = Ledger(max_cost=0.02)
    assert ledger._left(1_001, price) == int((0.02 - 0.01001) * 1e6 / 20)


def test_a_price_comes_back_from_its_record():
    price = find_price("anthropic:claude-sonnet-4-5", {})
    model, again = price_of_json(price.as_json("m"))
    assert (model, again, again.source, again.date) == ("m", price, price.source, price.date) and again.tiers
    assert price_of_json(Price(1, 2).as_json("m"))[1].source == ""


def test_the_hint_names_the_extra_only_where_it_is_missing(monkeypatch):
    assert "--price" in unknown_price("openai:x").hint and "pip install" not in unknown_price("openai:x").hint
    monkeypatch.setattr(budget, "find_spec", lambda name: None)
    assert find_price("openai:gpt-5-mini", {}) is None
    assert "pip install 'knotwork[prices]'" in unknown_price("openai:x").hint
    assert "custom client" in unknown_price("").message


@pytest.mark.slow
def test_free_models_do_not_import_the_package():
    code = (
        "import sys; from knotwork.adapters.llm.prices import find_price;"
        "find_price('local', {}); find_price('http://127.0.0.1:1/v1#m', {}); print('genai_prices' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
