"""What runs was checked, and once: the linters are counted while each interface runs a text without faults."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from knotwork import gasl, lwt, seed
from knotwork.adapters.llm import Completion
from knotwork.lang.linter import gasl as gasl_linter
from knotwork.lang.linter import lwt as lwt_linter
from knotwork.lang.linter import seed as seed_linter
from support.agents import GRAPH, connected, told
from support.command import call
from support.sessions import new_session, run
from support.web import application, settings_in

SCRIPT = '(a)=CONST("x")\n(final)=EXPR("a + a", a={(a)})\n'
PROGRAM = "FIND nodes WHERE degree > 10 AS some\nCOUNT some AS n\n"
PLAN = '{"plan_id": "p", "why": "w", "commands": ["FIND nodes WHERE degree > 10 AS some", "COUNT some AS n"]}'
SEED = (
    '{"task_name": "t", "filter": {"keywords": ["ill"]}, "extract": {"fields": [{"name": "bad", "type": "bool"}]}, '
    '"compute": [{"name": "N", "op": "count", "where": {"extraction.bad": true}}], "output": ["N"]}'
)
CONTEXT = {"name": "x", "reviews": [{"text": "ill"}]}


class Yes:
    async def generate(self, prompt: str, **options: Any) -> Completion:
        return Completion('{"bad": true}')


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The languages of the checks so far."""
    made: list[str] = []

    def counted(language: str, check: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*args: Any, **options: Any) -> Any:
            made.append(language)
            return check(*args, **options)

        return counting

    monkeypatch.setattr(lwt_linter, "diagnose", counted("lwt", lwt_linter.diagnose))
    monkeypatch.setattr(gasl_linter, "diagnose", counted("gasl", gasl_linter.diagnose))
    monkeypatch.setattr(seed_linter, "check", counted("seed", seed_linter.check))
    return made


def written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_command_checks_a_script_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checks: list[str]) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    assert call("run", written(tmp_path, "x.lwt", SCRIPT)).code == 0
    assert checks == ["lwt"]


@pytest.mark.parametrize(("name", "text"), [("x.gasl", PROGRAM), ("plan.json", PLAN)])
def test_the_command_checks_a_program_once(tmp_path: Path, checks: list[str], name: str, text: str) -> None:
    assert call("run", written(tmp_path, name, text), "--graph", GRAPH).code == 0
    assert checks == ["gasl"]


def test_python_checks_once(checks: list[str]) -> None:
    assert lwt.run_sync(SCRIPT).status == "complete"
    assert checks.pop() == "lwt" and not checks
    with gasl.open(GRAPH) as executor:
        assert executor.run_plan(PROGRAM)[-1].value == 17
        assert checks.pop() == "gasl" and not checks
        assert executor.run_plan(PLAN)[-1].value == 17
        assert checks.pop() == "gasl" and not checks
    assert seed.run_sync(seed.load(SEED), CONTEXT, llm=Yes()).status == "complete"
    assert checks == ["seed"]


def test_a_plan_that_was_prepared_is_checked_again_only_where_something_changed(checks: list[str]) -> None:
    with gasl.open(GRAPH) as executor:
        ready = asyncio.run(executor.prepare(PLAN))
        executor.run_plan(ready)
        assert checks == ["gasl"]
        executor.run_plan("DECLARE found AS LIST")
        executor.run_plan(ready)
        assert checks == ["gasl"] * 3, "the state has a key that it did not have"


@pytest.mark.slow
def test_servers_and_the_prompt_check_once(tmp_path: Path, checks: list[str]) -> None:
    async def agent() -> Any:
        async with connected() as client:
            ran = await told(client, "run_plan", plan=PLAN)
            assert ran["status"] == "success"
            assert checks.pop() == "gasl" and not checks
            return await told(client, "run_lwt", script=SCRIPT)

    async def browser() -> Any:
        async with application(settings_in(tmp_path)) as client:
            return (await client.post("/scripts/run", json={"script": SCRIPT})).json()

    assert asyncio.run(agent())["status"] == "complete"
    assert checks.pop() == "lwt" and not checks
    assert asyncio.run(browser())["status"] == "complete"
    assert checks.pop() == "lwt" and not checks
    assert run(new_session(GRAPH), '(a)=CONST("x")').status == "done"
    assert checks.pop() == "lwt" and not checks
