"""Functions and operations of the host in every kind of run: over rows, in test cases, in evaluations, and while a script arrives."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from knotwork import evals, lwt
from knotwork.runtime.errors import RequestError
from support.clients import Scripted
from support.evaluations import SEED, contexts, gold_rows

SCRIPT = """\
(word)=LLM("One word: {(input)}["text"]")
(loud)=CALL("up", text={(word)})
(final)=TWICE("{(loud)}")
"""
TWICE = lwt.Signature("TWICE", "A text twice.", (lwt.Parameter("text", "template", "The text."),))


async def twice(call: Any, context: Any) -> lwt.Outcome:
    text = context.value(call.arguments[0])
    return lwt.Outcome(text * 2, text * 2)


def up(text: str) -> str:
    return text.upper()


HOST: dict[str, Any] = {"functions": {"up": up}, "operations": [lwt.Operation(TWICE, twice)]}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "s.lwt").write_text(SCRIPT)
    case = {"name": "a", "input": {"text": "soup"}, "expect": {"loud": "YES", "final": "YESYES"}}
    (tmp_path / "s.cases.jsonl").write_text(json.dumps(case) + "\n")
    return tmp_path / "s.lwt"


def model() -> Scripted:
    return Scripted({}, default="yes")


def test_runs_over_rows(script: Path) -> None:
    rows = [{"id": number, "text": "soup"} for number in range(3)]
    run = lwt.run_each_sync(lwt.load(script), rows, llm=model(), **HOST)
    assert [row["final"] for row in run.table] == ["YESYES"] * 3
    for less in ({"functions": HOST["functions"]}, {"operations": HOST["operations"]}, {}):
        with pytest.raises(lwt.ScriptError):
            lwt.run_each_sync(lwt.load(script), rows, llm=(idle := model()), **less)
        assert not idle.prompts


def test_test_cases(script: Path) -> None:
    assert lwt.run_cases_sync(script, llm=model(), **HOST).passed
    with pytest.raises(lwt.ScriptError, match=r's\.lwt has errors: unknown function "up"'):
        lwt.run_cases_sync(script, llm=model(), operations=HOST["operations"])


def test_evaluations(script: Path) -> None:
    rows = [{"input": json.dumps({"text": "soup"}), "expect": "YESYES"}]
    report = evals.run_sync(script, rows, llm=model(), repeat=2, **HOST)
    assert report["model"].expect.equal.value == 1.0
    other = script.with_name("other.lwt")
    other.write_text('(final)=CALL("up", text="no")')
    candidates = {"one": model(), "other": {"llm": model(), "target": other}}
    compared = evals.run_sync(script, rows, candidates=candidates, **HOST)
    assert [compared[name].expect.equal.value for name in candidates] == [1.0, 0.0]
    with pytest.raises(lwt.ScriptError, match="unknown function"):
        evals.run_sync(script, rows, llm=model(), operations=HOST["operations"])
    estimate = evals.dry_run(script, rows, llm=model(), **HOST)
    assert estimate.candidates["model"].calls == 2  # the model, and the operation, which may ask it


def test_an_evaluation_of_a_seed_has_no_functions() -> None:
    with pytest.raises(RequestError, match="only scripts can call them") as refused:
        evals.run_sync(SEED, gold_rows(), contexts=contexts(), llm=model(), functions=HOST["functions"])
    assert refused.value.parameter == "functions"


def test_scripts_that_arrive() -> None:
    async def arriving() -> AsyncIterator[str]:
        for place in range(0, len(SCRIPT), 7):
            yield SCRIPT[place : place + 7]
            await asyncio.sleep(0)

    async def run(**host: Any) -> Any:
        return await lwt.run_stream(arriving(), input={"text": "soup"}, llm=model(), **host)

    assert asyncio.run(run(**HOST)).value == "YESYES"
    refused = asyncio.run(run(operations=HOST["operations"]))
    assert refused.status == "failed"
    assert [each.code for each in refused.diagnostics if each.severity == "error"] == ["LWT048"]
    with pytest.raises(TypeError, match="can't be called"):
        asyncio.run(run(functions={"up": 3}))
