"""The same evaluation has the same scores, the same faults and the same account of calls in every interface."""

import asyncio
import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from knotwork import evals
from knotwork.runtime.api.session_data import Table
from support.agents import connected, told
from support.command import call, cassette
from support.mood_evaluation import CONTEXTS, GOLD, SEED
from support.sessions import new_session, run_all
from support.web import application, settings_in

ANSWERS = {"love": '{"mood": "glad"}', "": '{"mood": "sad"}'}
Found = tuple[str, int] | str
"""The accuracy and the number of calls, or the message of a fault."""
CASES: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "scores": (GOLD, ["mood.accuracy > 0.5"]),
    "a misspelt label": ([{"context": "cafe", "review": 0, "mood": "gladd"}], []),
    "a misspelt column": ([{"context": "cafe", "review": 0, "mod": "glad"}], []),
    "an unknown review": ([{"context": "cafe", "review": 7, "mood": "glad"}], []),
    "a misspelt requirement": (GOLD, ["mod.accuracy > 0.5"]),
    "a requirement without a comparison": (GOLD, ["mood.accuracy"]),
}


def python(folder: Path, gold: list[dict[str, Any]], require: list[str]) -> Found:
    llm = cassette(folder / "a.jsonl", ANSWERS)
    try:
        report = evals.run_sync(SEED, gold, contexts=CONTEXTS, llm=llm, require=require)
    except (evals.GoldError, evals.RequirementError) as error:
        return error.message
    return scored(report.as_json())


def scored(report: dict[str, Any]) -> Found:
    (candidate,) = report["candidates"].values()
    return f"{candidate['fields']['mood']['accuracy']['value']:.3f}", candidate["run"]["calls"]


def files(folder: Path, gold: list[dict[str, Any]]) -> list[str]:
    (folder / "t.seed.json").write_text(json.dumps(SEED))
    (folder / "c.jsonl").write_text("\n".join(map(json.dumps, CONTEXTS)))
    with (folder / "gold.csv").open("w") as file:
        writer = csv.DictWriter(file, gold[0])
        writer.writeheader()
        writer.writerows(gold)
    return [str(folder / "t.seed.json"), "--gold", str(folder / "gold.csv"), "--contexts", str(folder / "c.jsonl")]


def required(require: list[str]) -> list[str]:
    return [word for each in require for word in ("--require", each)]


def cli(folder: Path, gold: list[dict[str, Any]], require: list[str]) -> Found:
    seed, _, *words = files(folder, gold)
    llm = cassette(folder / "a.jsonl", ANSWERS)
    ran = call("eval", seed, *words, *required(require), "--llm", llm, "--format", "json", "--no-cache")
    return scored(json.loads(ran.out)) if ran.code == 0 else ran.err


def repl(folder: Path, gold: list[dict[str, Any]], require: list[str]) -> Found:
    options = " ".join(f"'{word}'" for word in (*files(folder, gold), *required(require)))
    at = new_session(llm=cassette(folder / "a.jsonl", ANSWERS))
    outcome, budget = run_all(at, f".eval {options}\n.budget")
    if not outcome.is_good:
        return outcome.message
    assert isinstance(outcome.value, Table) and isinstance(budget.value, Table)
    cells = {row[0]: str(row[1]) for row in outcome.value.rows}
    return cells["accuracy"].split()[0], int({row[0]: row[1] for row in budget.value.rows}["calls"])


def mcp(folder: Path, gold: list[dict[str, Any]], require: list[str]) -> Found:
    llm = cassette(folder / "a.jsonl", ANSWERS)

    async def work() -> Any:
        async with connected(graph=None, spec=llm) as client:
            return await told(client, "evaluate", seed=SEED, contexts=CONTEXTS, gold=gold, require=require)

    found = asyncio.run(work())
    if "error" in found:
        return str(found["error"]["message"])
    assert found["spent"]["calls"] == found["budget"]["calls"]
    return scored(found["report"]["value"])


def http(folder: Path, gold: list[dict[str, Any]], require: list[str]) -> Found:
    async def work() -> Any:
        async with application(settings_in(folder, ANSWERS)) as client:
            body = {"seed": SEED, "contexts": CONTEXTS, "gold": gold, "require": require}
            return (await client.post("/v1/evaluations", json=body)).json()

    found = asyncio.run(work())
    return scored(found["report"]) if "report" in found else str(found["detail"])


INTERFACES: dict[str, Callable[[Path, list[dict[str, Any]], list[str]], Found]] = {
    "cli": cli, "repl": repl, "mcp": mcp, "http": http,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_interface_says_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    gold, require = CASES[name]
    expected = python(tmp_path, gold, require)
    assert isinstance(expected, tuple) == (name == "scores")
    for interface, runner in INTERFACES.items():
        folder = tmp_path / interface
        folder.mkdir()
        found = runner(folder, gold, require)
        if isinstance(expected, str) and isinstance(found, str):  # the table has a name in each interface
            assert expected.removeprefix("the gold table").replace(" rating ", " t.seed.json ") in found.replace(
                "task.seed", "t.seed"
            ), interface
        else:
            assert found == expected, interface
