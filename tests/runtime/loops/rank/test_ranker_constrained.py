"""Rankings over the real SDK: what a service is asked to keep to, and that none of it is needed."""

import asyncio
import json
from typing import Any

import pytest
from knotwork import planner
from knotwork.adapters.llm.tools import read_grammar
from knotwork.runtime.loops.rank.phases import TOOLS
from knotwork.runtime.loops.rank.plan_phase import plan_grammar
from support.model_server import KEY, ModelServer

Items = list[dict[str, Any]]
STEP = '(final)=LLM("Items: [5]. Best?")'


def calls(prompt: str, tools: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Call a tool of those that are offered: replace the step, then end."""
    if "replaced at" in prompt:
        return [("done", {})]
    return [("lwt_set", {"idx": 0, "step": STEP})]


@pytest.fixture
def answer(expanding: str) -> Any:
    return lambda prompt: expanding if "[ITEMS]" in prompt else "5"


def ranked(
    items: Items, monkeypatch: pytest.MonkeyPatch, spec: str = "openai:m", **server: Any
) -> tuple[planner.Ranked, list[dict[str, Any]]]:
    """Rank against a server, and return the bodies of its requests as well."""

    async def main() -> tuple[planner.Ranked, list[dict[str, Any]]]:
        async with ModelServer(**server) as serving:
            monkeypatch.setenv("OPENAI_BASE_URL", serving.url)
            monkeypatch.setenv("OPENAI_API_KEY", KEY)
            made = await planner.rank(items, "tea", spec.replace("URL", serving.url))
            return made, [request.body for request in serving.requests]

    return asyncio.run(main())


@pytest.mark.slow
def test_openai_writes_the_plan_under_a_grammar_and_calls_tools(
    items: Items, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, (plan, *expand, last) = ranked(items, monkeypatch, answer=answer, calls=calls)
    assert (made.status, made.ranking, made.script) == ("complete", (6,), STEP)
    [tool] = plan["tools"]
    assert tool["custom"]["name"] == plan["tool_choice"]["custom"]["name"] == "plan"
    assert tool["custom"]["format"]["grammar"]["definition"] == read_grammar(plan_grammar(10)).definition
    assert len(expand) == 2
    for body in expand:
        assert [each["function"]["name"] for each in body["tools"]] == [each["name"] for each in TOOLS]
        assert body["parallel_tool_calls"] is False
        assert "tool_choice" not in body
    assert "tools" not in last


def test_another_server_gets_the_grammar_in_its_form(
    items: Items, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, (plan, *_) = ranked(items, monkeypatch, "URL#m", answer=answer, calls=calls)
    assert made.ranking == (6,)
    assert plan["structured_outputs"] == {"grammar": read_grammar(plan_grammar(10)).definition}


def test_who_refuses_all_of_it_is_asked_in_words(items: Items, answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(prompt: str) -> str:
        if "Check if the LWT" in prompt:
            return "done()" if "replaced at" in prompt else f"I replace it.\nlwt_set(0, {json.dumps(STEP)})"
        return str(answer(prompt))

    refuses = ("structured_outputs", "guided_grammar", "tools")
    made, bodies = ranked(items, monkeypatch, "URL#m", answer=said, refuses=refuses)
    assert (made.status, made.ranking, made.script) == ("complete", (6,), STEP)
    answered = [body for body in bodies if not set(refuses) & set(body)]
    assert (len(bodies), len(answered)) == (7, 4)
    assert "Answer in plain words where no tool" in answered[1]["messages"][-1]["content"]


def test_words_where_tools_are_offered_are_read_as_calls(
    items: Items, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(prompt: str) -> str:
        if "Check if the LWT" not in prompt:
            return str(answer(prompt))
        return (
            f"lwt_set(0, {json.dumps(STEP)})\ndone()"
            if "the answer has no tool call" in prompt
            else "It looks complete to me."
        )

    made, bodies = ranked(items, monkeypatch, answer=said, calls=lambda prompt, tools: [])
    assert (made.status, made.ranking, made.script) == ("complete", (6,), STEP)
    assert [use.ok for use in made.tools] == [False, True, True]
    assert ["function" in body.get("tools", [{}])[0] for body in bodies] == [False, True, True, False]


def test_a_recorded_ranking_is_replayed(items: Items, answer: Any, tmp_path: Any) -> None:
    path = tmp_path / "c.jsonl"

    async def main() -> planner.Ranked:
        async with ModelServer(answer=answer, calls=calls) as serving:
            spec = f"record:{path},{serving.url}#m"
            return await planner.rank(items, "tea", spec)

    first = asyncio.run(main())
    again = planner.rank_sync(items, "tea", f"replay:{path}")
    assert (first.ranking, first.script) == (again.ranking, again.script) == ((6,), STEP)
