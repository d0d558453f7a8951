"""What an agent can mend that has only the structured diagnostics: the repairer makes the edits of errors, and thinks nothing."""

import asyncio
import json
from typing import Any

import pytest
from support.agents import connected, repaired, told
from support.folders import EXAMPLES

PAPERS = EXAMPLES / "papers"

FAULTY = {
    "many slips at once": (PAPERS / "faulty-plan.json").read_text(encoding="utf-8"),
    "a misspelt command and a misspelt key": json.dumps(
        {
            "plan_id": "p",
            "why": "w",
            "commads": ["FND nodes WHERE entity_type = 'PERSON' AS people", "COUNT peple AS n"],
        }
    ),
    "single quotes, and a comma too many": """{'plan_id': 'p', 'why': 'w', 'commands': ["FIND nodes AS x",],}""",
    "a kind that is none": '{"plan_id": "p", "why": "w", "commands": ["FIND node AS x", "SELCT x FIELDS id AS y"]}',
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTY)
def test_a_wrong_plan_is_repaired_from_its_diagnostics_alone_and_runs(name: str) -> None:
    async def work() -> Any:
        async with connected(graph=str(PAPERS / "papers.graphml")) as client:
            first = await client.call_tool("run_plan", {"plan": FAULTY[name]})
            text, left = await repaired(client, "plan", FAULTY[name])
            return first, text, left, await told(client, "run_plan", plan=text)

    first, text, left, ran = asyncio.run(work())
    assert first.is_error and first.structured_content["status"] == "refused"
    assert left == [], text
    assert ran["status"] in ("success", "empty") and ran["commands"]


@pytest.mark.slow
def test_an_object_is_repaired_in_the_text_that_comes_with_its_diagnostics() -> None:
    plan = {"plan_id": "p", "why": "w", "commands": ["FIND node AS x", "CONT x AS n"]}

    async def work() -> Any:
        async with connected() as client:
            refused = await told(client, "run_plan", plan=plan)
            text, left = await repaired(client, "plan", refused["text"])
            return left, await told(client, "run_plan", plan=json.loads(text))

    left, ran = asyncio.run(work())
    assert left == [] and ran["status"] == "success" and ran["value"]["value"] == 77


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("gasl", "FND nodes WHERE degre > 3 AS x\nCONT x AS n"),
        ("lwt", '(a)=LLN("x")\n(final)=LLM("{(aa)}")'),
        ("seed", '{"compute": [{"name": "N", "op": "cuont"}], "outptu": ["N"]}'),
    ],
)
def test_the_other_languages_are_repaired_likewise(language: str, text: str) -> None:
    async def work() -> Any:
        async with connected() as client:
            return await repaired(client, language, text)

    mended, left = asyncio.run(work())
    assert mended != text and left == []
