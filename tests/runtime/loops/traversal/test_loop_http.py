"""Questions over the real SDK and a server on the loopback: what is sent, counted, and not sent twice."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from knotwork.runtime.api.ask import ask
from support.executing import library
from support.model_server import KEY, ModelServer
from support.wondering import Wondering, kind_of


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_API_KEY", KEY)


def asked(server: dict[str, Any], *rounds: dict[str, Any]) -> tuple[Any, ModelServer]:
    """Ask once for each of ``rounds`` and return the last result, and the server."""

    async def go() -> Any:
        async with ModelServer(answer=Wondering().answer, ignores_format=True, **server) as there:
            made = None
            for settings in rounds:
                made = await ask(library(), "Who writes?", llm=f"{there.url}#m", max_steps=12, **settings)
            return made, there

    return asyncio.run(go())


@pytest.mark.slow
@pytest.mark.parametrize("search", [None, "beam", "mcts"])
def test_each_request_is_counted_and_asks_for_what_the_answer_is_to_be(search: str | None) -> None:
    settings: dict[str, Any] = {} if search else {"choose": lambda actions, _: len(actions) // 2}
    made, server = asked({}, {"search": search, **settings})
    assert (made.status, made.answer) == ("complete", "five people"), made
    assert made.calls == len(server.requests)
    for request in server.requests:
        properties = {"judge": {"reason", "score"}}.get(kind_of(request.prompt))
        if kind_of(request.prompt) == "planner":
            assert all(f'"{name}"' in json.dumps(request.schema) for name in ("commands", "next_actions", "complete"))
        elif properties:
            assert set(request.schema["properties"]) == properties


@pytest.mark.slow
def test_a_server_that_knows_no_schema_is_asked_for_text() -> None:
    made, server = asked({"refuses": ("response_format",)}, {"search": "mcts"})
    assert (made.status, made.answer) == ("complete", "five people"), made
    assert any(request.schema is None for request in server.requests)


@pytest.mark.slow
def test_what_was_answered_is_not_sent_again(tmp_path: Path) -> None:
    settings = {"search": "mcts", "state": tmp_path / "s"}
    made, server = asked({}, {**settings, "max_calls": 4}, {**settings, "max_calls": 4}, settings, settings)
    assert (made.status, made.calls) == ("complete", 0)
    prompts = [request.prompt for request in server.requests]
    assert len(prompts) == len(set(prompts))


@pytest.mark.slow
def test_faults_on_the_way_change_nothing() -> None:
    plain, _ = asked({}, {"search": "mcts"})
    made, server = asked({"faults": ["503", None, "429", "reset"]}, {"search": "mcts"})
    assert (made.answer, plain.answer, server.faulted) == ("five people", "five people", 3)
    assert [step.commands for step in made.steps] == [step.commands for step in plain.steps]
