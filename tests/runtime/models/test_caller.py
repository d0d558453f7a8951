"""What a typed step asks of a model: a schema, or words for a client that takes none."""

import asyncio
import json
from typing import Any

import pytest
from knotwork import lwt
from support.model_server import KEY, ModelServer

TYPES = {
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "list": {"type": "array", "items": {}},
    "json": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
def test_a_server_receives_the_schema_of_the_type(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> tuple[Any, list[Any]]:
        async with ModelServer() as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            monkeypatch.setenv("OPENAI_API_KEY", KEY)
            run = await lwt.run(f'(a)=LLM("How many?", type={kind})', llm="openai:gpt-4o-mini")
            return run.steps["a"], [request.body for request in server.requests]

    step, bodies = asyncio.run(work())
    assert step.status == "done", step
    sent = bodies[0]["response_format"]["json_schema"]["schema"]
    assert sent["properties"]["answer"] == TYPES[kind]
    assert len(bodies) == 1


def test_a_client_that_takes_a_schema_receives_it() -> None:
    seen: list[tuple[str, Any]] = []

    class Client:
        async def generate(self, prompt: str, **options: Any) -> str:
            seen.append((prompt, options.get("schema")))
            return "4"

    run = lwt.run_sync('(a)=LLM("How many?", type=int)', llm=Client())
    assert (run.value, seen) == (4, [("How many?", TYPES["int"])])


def test_a_client_that_takes_no_schema_is_asked_in_words() -> None:
    seen: list[str] = []

    def client(prompt: str) -> str:
        seen.append(prompt)
        return "The answer is 4." if len(seen) == 1 else "4"

    run = lwt.run_sync('(a)=LLM("How many?", type=int)', llm=client)
    assert run.value == 4
    assert seen[0] == "How many?\n\nAnswer with a whole number in digits and nothing else."
    assert "That can't be used" in seen[1]


def test_untyped_steps_are_asked_as_they_are() -> None:
    seen: list[tuple[str, Any]] = []

    class Client:
        async def generate(self, prompt: str, **options: Any) -> str:
            seen.append((prompt, options))
            return json.dumps({"a": 1})

    lwt.run_sync('(a)=LLM("How many?")', llm=Client())
    assert seen == [("How many?", {})]
