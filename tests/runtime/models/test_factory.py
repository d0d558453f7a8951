"""From specs to clients: which model, which key, which layers."""

import asyncio
import subprocess
import sys

import pytest
from knotwork.adapters.llm import BudgetExceeded, NotConfigured
from knotwork.adapters.llm.anthropic import AnthropicModel
from knotwork.adapters.llm.budget import Ledger, Price
from knotwork.adapters.llm.openai import OpenAIModel
from knotwork.runtime.models import factory
from knotwork.runtime.models.answer_cache import AnswerCache
from knotwork.runtime.models.factory import SPECS, ModelSettings, default_spec, identity_of, open_adapter, open_model
from support.model_server import KEY, ModelServer, answer_to


def opened(spec, environ):
    client = open_adapter(spec, environ)
    asyncio.run(client.aclose())
    return client


def test_the_named_model_comes_first():
    assert default_spec({"KNOTWORK_LLM": " openai:m "}) == "openai:m"


def test_without_a_name_it_is_the_local_model_where_there_is_one(monkeypatch):
    monkeypatch.setattr(factory, "find_spec", lambda name: object())
    assert default_spec({}) == "local"


def test_a_key_alone_chooses_nothing_and_two_lines_say_what_does(monkeypatch):
    monkeypatch.setattr(factory, "find_spec", lambda name: None)
    with pytest.raises(NotConfigured) as caught:
        default_spec({"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY})
    first, second = str(caught.value).splitlines()
    assert "pip install 'knotwork[local]'" in first
    assert "--llm openai:MODEL with OPENAI_API_KEY set" in second
    assert KEY not in str(caught.value)


@pytest.mark.slow
def test_each_kind_of_spec_opens_its_adapter(tmp_path):
    tape = tmp_path / "t.jsonl"
    tape.write_text('{"cassette": 1}\n')
    assert isinstance(opened("openai:gpt-x", {"OPENAI_API_KEY": KEY}), OpenAIModel)
    assert isinstance(opened("anthropic:claude-x", {"ANTHROPIC_API_KEY": KEY}), AnthropicModel)
    assert isinstance(opened("http://localhost:8080/v1#org/model:7b", {}), OpenAIModel)
    assert opened(f"replay:{tape}", {}).path == tape
    recorder = opened(f"record:{tmp_path}/a.jsonl,http://localhost:1/v1#m", {})
    assert recorder.spec == "http://localhost:1/v1#m"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "is not a model"),
        ("gpt-5", "is not a model"),
        ("sk-secret0123456789", "looks like an API key"),
        ("opena:gpt", "did you mean openai:MODEL"),
        ("Local", "did you mean local"),
        ("antropic:x", "did you mean anthropic:MODEL"),
        ("openai:", "did you mean openai:MODEL"),
        ("openai:m", "OPENAI_API_KEY is not set"),
        ("anthropic:m", "ANTHROPIC_API_KEY is not set"),
        ("http://localhost:8080/v1", "add the model to the address"),
        ("http://#m", "https://HOST:PORT/v1#MODEL"),
        ("http://user:sk-secret@host/v1#m", "KNOTWORK_API_KEY"),
        ("http://host/v1?key=sk-secret#m", "KNOTWORK_API_KEY"),
        ("http://[::1/v1#m", "https://HOST:PORT/v1#MODEL"),
        ("replay:/does/not/exist", "can't be read"),
        ("record:x", "record:FILE,SPEC"),
        ("record:x,record:y,local", "record:FILE,SPEC"),
        ("record:x,opnai:y", "did you mean openai:MODEL"),
    ],
)
def test_what_names_no_model_is_told_how_to(spec, said):
    with pytest.raises(NotConfigured) as caught:
        open_adapter(spec, {})
    text = f"{caught.value} {caught.value.hint}"
    assert said in text
    assert "sk-secret" not in text


def test_the_forms_are_listed():
    with pytest.raises(NotConfigured) as caught:
        open_adapter("what", {})
    assert all(form in str(caught.value) for form in SPECS)


def test_a_key_with_a_line_end_is_refused_and_not_shown():
    with pytest.raises(NotConfigured) as caught:
        open_adapter("openai:m", {"OPENAI_API_KEY": "sk-abc\u2028def"})
    assert "sk-abc" not in str(caught.value)


@pytest.mark.slow
def test_all_layers_together(tmp_path):
    async def main():
        async with ModelServer(faults=["length", "503"]) as server:
            settings = ModelSettings(
                f"{server.url}#m",
                cache=AnswerCache(tmp_path / "c.sqlite"),
                ledger=Ledger(max_calls=4),  # asked again, sent again, and one more
                price=Price(1.0, 2.0),
                rate=6000,
                max_concurrency=2,
                stream=True,
            )
            client = open_model(settings, {"KNOTWORK_API_KEY": KEY})
            notices = []
            first = await client.generate("hi", notify=notices.append)
            assert first.text == answer_to("hi")
            assert first.attempts == 3
            assert first.cost == pytest.approx((first.usage.prompt_tokens + 2 * first.usage.completion_tokens) / 1e6)
            assert [notice.kind for notice in notices] == ["again", "retry"]
            assert (await client.generate("hi")).cached
            await client.generate("ho")
            with pytest.raises(BudgetExceeded):
                await client.generate("hu")
            await client.aclose()
            assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"

    asyncio.run(main())


def test_a_budget_does_not_change_what_a_cassette_is_asked(tmp_path):
    async def main():
        async with ModelServer() as server:
            tape = tmp_path / "t.jsonl"
            for spec in (f"record:{tape},{server.url}#m", f"replay:{tape}"):
                for limit in (10_000, None):
                    client = open_model(ModelSettings(spec, ledger=Ledger(max_tokens=limit)), {})
                    assert (await client.generate("hi")).text == answer_to("hi")
                    await client.aclose()
            assert [request.body.get("max_tokens") for request in server.requests] == [1024, None]

    asyncio.run(main())


def test_cassettes_are_not_cached(tmp_path):
    async def main():
        async with ModelServer() as server:
            tape = tmp_path / "t.jsonl"
            for spec in (f"record:{tape},{server.url}#m", f"replay:{tape}"):
                client = open_model(ModelSettings(spec, cache=AnswerCache(tmp_path / "c.sqlite")), {})
                for _ in range(2):
                    assert not (await client.generate("hi")).cached
                await client.aclose()
            assert len(tape.read_text().splitlines()) == 3

    asyncio.run(main())


def test_a_limit_on_cost_needs_a_price(tmp_path):
    with pytest.raises(NotConfigured, match="price"):
        open_model(ModelSettings("http://localhost:1/v1#m", ledger=Ledger(max_cost=1.0)), {})
    tape = tmp_path / "t.jsonl"
    tape.write_text('{"cassette": 1}\n')
    asyncio.run(open_model(ModelSettings(f"replay:{tape}", ledger=Ledger(max_cost=1.0)), {}).aclose())


@pytest.mark.slow
def test_sdks_are_imported_only_when_used():
    code = (
        "import sys, knotwork.runtime.models.factory as w\n"
        "names = {'openai', 'anthropic', 'httpx2', 'xllamacpp'}\n"
        "assert not names & set(sys.modules), names & set(sys.modules)\n"
        "w.open_adapter('http://localhost:1/v1#m', {})\n"
        "assert 'anthropic' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_caches_tell_servers_apart_that_the_environment_names():
    environ = {"OPENAI_BASE_URL": "http://localhost:1/v1"}
    assert identity_of("openai:m", environ) == "openai:m at http://localhost:1/v1"
    assert identity_of("openai:m", {}) == "openai:m"
    assert identity_of("local", environ) == "local"


@pytest.mark.parametrize(
    ("spec", "right"),
    [
        ("http://localhost:8000/v1/chat/completions#m", "http://localhost:8000/v1#m"),
        ("https://models.example/v1/responses/#m", "https://models.example/v1#m"),
        ("http://localhost:11434/api/chat#m", "http://localhost:11434/v1#m"),
        ("localhost:8000/v1#m", "http://localhost:8000/v1#m"),
        ("localhost:8000", "http://localhost:8000#MODEL"),
        ("models.example/v1#m", "https://models.example/v1#m"),
        ("HTTPS://models.example/v1#m", "https://models.example/v1#m"),
        ("http:/localhost/v1#m", "http://localhost/v1#m"),
        ("http://localhost:8000/v1", "http://localhost:8000/v1#MODEL"),
        ("ollama:llama3:8b", "http://localhost:11434/v1#llama3:8b"),
        ("LM-Studio/qwen", "http://localhost:1234/v1#qwen"),
        ("http://localhost:99999/v1#m", "https://HOST:PORT/v1#MODEL"),
        ("http://local host/v1#m", "https://HOST:PORT/v1#MODEL"),
    ],
)
def test_another_form_of_an_address_gets_the_right_one(spec: str, right: str) -> None:
    with pytest.raises(NotConfigured) as refused:
        open_adapter(spec, {})
    assert right in refused.value.hint


def test_the_address_in_a_variable_is_that_of_a_service() -> None:
    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://localhost:8000/v1/chat/completions"}
    with pytest.raises(NotConfigured, match="OPENAI_BASE_URL") as refused:
        open_adapter("openai:m", environ)
    assert refused.value.hint == "did you mean http://localhost:8000/v1?"
