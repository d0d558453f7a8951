"""What the planner of a question is held to: a strict schema at a service, a grammar where the model is small."""

import asyncio
import json

import pytest
from knotwork.runtime.api.ask import ask, ask_sync
from support.model_server import KEY, ModelServer
from support.strict_rules import in_strict_form, strict_faults

COMMANDS = ["DECLARE found AS LIST", "FIND nodes ORDER BY degree DESC LIMIT 1 AS some", "UPDATE found WITH some"]
PLAN = {"why": "to see", "hypothesis": "one leads", "commands": COMMANDS}
END = {"complete": "33", "evidence": ["found"]}
QUESTION = "Which member has the most friends?"


def said(prompt: str) -> dict[str, object]:
    return END if "THE LAST STEP" in prompt else PLAN


@pytest.mark.slow
@pytest.mark.parametrize("strictly", [True, False])
def test_openai_is_asked_strictly_and_a_plain_answer_is_read_too(
    monkeypatch: pytest.MonkeyPatch, strictly: bool
) -> None:
    forms: list[dict[str, object]] = []

    def answer(prompt: str) -> str:
        if not strictly:
            return json.dumps(said(prompt))
        form = serving.requests[-1].body["response_format"]["json_schema"]["schema"]
        return json.dumps(in_strict_form({"answer": said(prompt)}, form))

    async def main() -> None:
        nonlocal serving
        async with ModelServer(answer=answer, ignores_format=True) as serving:
            monkeypatch.setenv("OPENAI_BASE_URL", serving.url)
            monkeypatch.setenv("OPENAI_API_KEY", KEY)
            made = await ask("nx:karate_club", QUESTION, llm="openai:m")
        assert (made.status, made.answer, len(made.steps)) == ("complete", "33", 1)
        forms.extend(request.body["response_format"]["json_schema"] for request in serving.requests)

    serving: ModelServer = None  # type: ignore[assignment]
    asyncio.run(main())
    assert len(forms) == 2
    for form in forms:
        assert form["strict"] is True
        assert strict_faults(form["schema"]) == []  # type: ignore[arg-type]


class Small:
    """A client that says of itself that it is the local model."""

    spec = "local"

    def __init__(self) -> None:
        self.options: list[dict[str, object]] = []
        self.prompts: list[str] = []

    async def generate(self, prompt: str, **options: object) -> str:
        self.options.append(options)
        self.prompts.append(prompt)
        return json.dumps(said(prompt))


def test_a_small_model_writes_under_a_grammar_of_the_graphs_own_fields() -> None:
    model = Small()
    made = ask_sync("nx:karate_club", QUESTION, llm=model)
    assert (made.status, made.answer) == ("complete", "33")
    assert "(id|club)" in str(model.options[0]["grammar"])
    assert "schema" not in model.options[0]
    assert max(map(len, model.prompts)) <= 9_000
    model = Small()
    ask_sync("nx:karate_club", QUESTION, llm=model, as_json=False)
    assert not {"grammar", "schema"} & set(model.options[0])


@pytest.mark.parametrize("placeholder", ["the answer", "The answer.", "<answer>", "..."])
def test_a_placeholder_of_the_prompt_is_no_answer(placeholder: str) -> None:
    class Parrot(Small):
        async def generate(self, prompt: str, **options: object) -> str:
            return json.dumps({"complete": placeholder, "evidence": []})

    made = ask_sync("nx:karate_club", QUESTION, llm=Parrot(), max_steps=1, max_repairs=1)
    assert made.status != "complete"
