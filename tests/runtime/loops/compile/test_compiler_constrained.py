"""Compiling over the real SDK: every step is asked for strictly, the last repair too, and what comes back is a seed."""

import asyncio

import pytest
from knotwork import seed
from knotwork.adapters.llm.answers import answer_format
from knotwork.adapters.llm.strict_schema import strict_form
from knotwork.runtime.loops.compile.compile_store import schema_of
from support.compiling import ASKED_AGAIN, GOOD, PHASES, TASK, Author, phase_of, written
from support.model_server import KEY, ModelServer
from support.strict_rules import in_strict_form, strict_faults

FORMS = {phase: strict_form(answer_format({"schema": schema_of(phase)})[0], bounds=True) for phase in PHASES}
WRONG = {"nodes": GOOD["graph"]["nodes"][:-1]}


def strictly(phase: str, document: object) -> str:
    return written(in_strict_form(document, FORMS[phase]))


def compiled(monkeypatch, answer, **options):
    """Compile against a server, and return what came of it with the requests' phases and schemas."""

    async def main():
        async with ModelServer(answer=answer, ignores_format=True) as serving:  # it answers by phase, not by schema
            monkeypatch.setenv("OPENAI_BASE_URL", serving.url)
            monkeypatch.setenv("OPENAI_API_KEY", KEY)
            made = await seed.compile(TASK, llm="openai:m", **options)
            return made, [
                (phase_of(request.prompt), request.body["response_format"]["json_schema"])
                for request in serving.requests
            ]

    return asyncio.run(main())


@pytest.mark.slow
def test_three_steps_each_under_its_strict_schema(monkeypatch) -> None:
    made, asked = compiled(monkeypatch, lambda prompt: strictly(phase_of(prompt), GOOD[phase_of(prompt)]))
    assert (made.status, made.repairs, made.calls) == ("done", 0, 3)
    assert made.document == GOOD["seed"]
    assert [phase for phase, _ in asked] == list(PHASES)
    for phase, sent in asked:
        assert sent["strict"] is True
        assert sent["schema"] == FORMS[phase]
        assert strict_faults(sent["schema"]) == []


@pytest.mark.slow
@pytest.mark.parametrize("repairs", [0, 1])
def test_the_last_draft_is_asked_for_under_the_schema_as_well(monkeypatch, repairs: int) -> None:
    made, asked = compiled(
        monkeypatch,
        lambda prompt: (
            strictly("graph", WRONG) if phase_of(prompt) == "graph" else strictly("conditions", GOOD["conditions"])
        ),
        repairs=repairs,
    )
    assert (made.status, made.repairs) == ("failed", repairs)
    assert [(phase, sent["strict"]) for phase, sent in asked] == [
        ("conditions", True),
        *[("graph", True)] * (1 + repairs),
    ]


@pytest.mark.slow
def test_a_service_that_ignores_the_form_is_read_all_the_same(monkeypatch) -> None:
    def answer(prompt: str) -> str:
        plain = written(GOOD[phase_of(prompt)])
        return f"Here it is:\n```json\n{plain}\n```" if ASKED_AGAIN not in prompt else plain

    made, _ = compiled(monkeypatch, answer)
    assert (made.status, made.document) == ("done", GOOD["seed"])


def test_a_small_model_is_asked_for_little() -> None:
    class Small(Author):
        spec = "local"

    author = Small()
    made = seed.compile_sync(TASK, llm=author, repairs=0)
    assert made.status == "done"
    asked = author.options[0]
    assert asked["max_tokens"] == 1_000
    assert asked["schema"]["properties"]["fields"]["maxItems"] == 2


@pytest.mark.slow
def test_another_local_model_is_granted_long_answers() -> None:
    class Local(Author):
        spec = "local:large.gguf"

    author = Local()
    assert seed.compile_sync(TASK, llm=author).status == "done"
    assert {options["max_tokens"] for options in author.options} == {3_000}
    assert author.options[2]["schema"] == schema_of("seed")
    author = Local()
    seed.compile_sync(TASK, llm=author, options={"max_tokens": 500})
    assert {options["max_tokens"] for options in author.options} == {500}
