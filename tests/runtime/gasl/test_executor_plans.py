"""Plans: what is checked before anything runs, what stops them, what a loop of them gives. Seed 003, "HDT Execution Flow"."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from knotwork import gasl
from knotwork.runtime.events import Events
from support.clients import Timed
from support.executing import executor, library, statuses
from support.folders import TESTS

PEOPLE = 'FIND nodes WHERE entity_type = "PERSON" AS people'
NOBODY = "FIND nodes WHERE age > 200 AS nobody"
COUNT = "COUNT people AS number"


def plan(*commands: Any, **config: bool) -> dict[str, Any]:
    made: dict[str, Any] = {"plan_id": "plan-1", "why": "see who is there", "commands": list(commands)}
    return {**made, "config": config} if config else made


def run(*commands: Any, **config: bool) -> list[gasl.ExecutionRecord]:
    with executor() as opened:
        return opened.run_plan(plan(*commands, **config))


def test_a_plan_runs_its_commands_in_order() -> None:
    records = run(PEOPLE, COUNT, "ASSERT ${number} = 5")
    assert statuses(records) == ["success"] * 3
    assert [record.step for record in records] == [1, 2, 3]
    assert {record.plan_id for record in records} == {"plan-1"}
    assert gasl.plan_status(records) == "success"


def test_the_plans_why_holds_for_commands_without_one() -> None:
    records = run({"command": PEOPLE, "why": "first the people"}, COUNT)
    assert [record.why for record in records] == ["first the people", "see who is there"]


def test_json_text_is_a_plan_too_and_text_of_commands_a_program() -> None:
    with executor() as opened:
        assert statuses(opened.run_plan(json.dumps(plan(PEOPLE, COUNT)))) == ["success"] * 2
        records = opened.run_plan(f"#: the people\n{PEOPLE}\n# and how many\n{COUNT}\n")
        assert statuses(records) == ["success"] * 2
        assert records[0].why == "the people"
        assert records[0].command == PEOPLE
        assert len(records[0].plan_id) == 36
        assert statuses(opened.run_plan(gasl.parse(PEOPLE))) == ["success"]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (plan(PEOPLE, "COUNT poeple AS n"), "poeple"),
        (plan(PEOPLE, "FIND"), ""),
        ({"plan_id": "p", "commands": [PEOPLE]}, "why"),
        ({"why": "x", "commands": [PEOPLE]}, "plan_id"),
        (plan(PEOPLE, "UPDATE nowhere WITH people"), "nowhere"),
        (plan("DECLARE a AS LIST", "DECLARE a AS DICT"), "a"),
        ('{"plan_id": "p", "plan_id": "q", "why": "x", "commands": []}', "plan_id"),
        (plan("SET adapter.caps.max_path_length = 99"), "max_path_length"),
        (f"{PEOPLE}\nCOUNT nobody AS n", "nobody"),
    ],
)
def test_a_plan_with_an_error_is_refused_as_a_whole(broken: Any, said: str) -> None:
    with executor() as opened:
        before = opened.state.as_json()
        with pytest.raises(gasl.PlanError) as raised:
            opened.run_plan(broken)
        assert any(d.severity == "error" for d in raised.value.diagnostics)
        assert said in str(raised.value)
        assert isinstance(raised.value, gasl.ExecutionError)
        assert opened.state.as_json() == before
        assert opened.command_history == []


def test_a_plan_that_is_refused_leaves_the_variables_of_the_one_before() -> None:
    with executor() as opened:
        opened.run_plan(plan(PEOPLE))
        with pytest.raises(gasl.PlanError):
            opened.run_plan(plan("FIND"))
        assert opened.execute_one(COUNT).value == 5


def test_variables_and_settings_live_for_a_plan() -> None:
    with executor() as opened:
        opened.run_plan(plan(PEOPLE, "SET adapter.caps.max_paths = 7"))
        assert opened.session.caps.max_paths == 7
        with pytest.raises(gasl.PlanError):
            opened.run_plan(plan(COUNT))
        opened.run_plan(plan("FIND nodes LIMIT 1 AS one"))
        assert opened.context.names() == ("one",)
        assert opened.session.caps.max_paths == gasl.Caps().max_paths


ERROR = "ASSERT ${number} = 6"


@pytest.mark.parametrize(
    ("commands", "config", "expected"),
    [
        ((PEOPLE, COUNT, ERROR, PEOPLE), {}, ["success", "success", "error"]),
        ((PEOPLE, COUNT, ERROR, PEOPLE), {"stop_on_error": False}, ["success", "success", "error", "success"]),
        ((NOBODY, PEOPLE), {}, ["empty"]),
        ((NOBODY, PEOPLE), {"continue_on_empty": True}, ["empty", "success"]),
        ((NOBODY, "ON EMPTY nobody THEN " + PEOPLE, COUNT), {}, ["empty", "success", "success"]),
        ((NOBODY, "ON PARTIAL nobody THEN " + PEOPLE), {}, ["empty"]),
        ((NOBODY, "ON PARTIAL nobody THEN " + PEOPLE, "ON EMPTY nobody THEN " + PEOPLE), {}, ["empty", "success", "success"]),
        ((NOBODY, PEOPLE, "ON EMPTY nobody THEN " + PEOPLE), {}, ["empty"]),
        ((NOBODY, "ASSERT LEN ${nobody} > 0", PEOPLE), {"continue_on_empty": True}, ["empty", "empty"]),
        ((NOBODY, "ON EMPTY nobody THEN ASSERT LEN ${nobody} > 0", PEOPLE), {"continue_on_empty": True}, ["empty", "empty"]),
        ((NOBODY, "ON EMPTY nobody THEN ASSERT LEN ${nobody} > 0", PEOPLE), {"stop_on_error": False}, ["empty", "empty"]),
        (
            (NOBODY, "ASSERT LEN ${nobody} > 0", PEOPLE),
            {"stop_on_error": False, "continue_on_empty": True},
            ["empty", "empty", "success"],
        ),
        (("FIND nodes LIMIT 2 AS two", PEOPLE), {}, ["success", "success"]),
        (("SET adapter.caps.max_rows = 2", PEOPLE, COUNT), {}, ["success", "partial", "partial"]),
    ],
)  # fmt: skip
def test_what_stops_a_plan(commands: Any, config: Any, expected: list[str]) -> None:
    assert statuses(run(*commands, **config)) == expected


def test_the_status_of_a_plan_as_a_whole() -> None:
    assert gasl.plan_status(run(NOBODY, PEOPLE)) == "empty"
    assert gasl.plan_status(run(NOBODY, "ON EMPTY nobody THEN " + PEOPLE)) == "success"
    assert gasl.plan_status(run(PEOPLE, COUNT, ERROR)) == "error"
    assert gasl.plan_status(run(PEOPLE, COUNT, ERROR, PEOPLE, stop_on_error=False)) == "partial"
    assert gasl.plan_status(run("SET adapter.caps.max_results = 2", PEOPLE)) == "partial"
    assert gasl.plan_status([]) == "success"


UNBOUND = [
    "COUNT nothing BY id AS some", "SELECT nothing WHERE id = 1 AS some", "SELECT nothing FIELDS id AS some", "RANK nothing BY id AS some",
    "AGGREGATE nothing BY id COMPUTE count() AS some", "JOIN people WITH nothing ON id AS some", "UNION nothing WITH people AS some",
    "WALK nothing AS some", "SUBGRAPH nothing RADIUS 1 AS some", "CONNECT people TO nothing AS some",
    "MEASURE nothing USING degree AS some",
    "FIND paths FROM nothing TO people AS some", "FIND nodes WHERE id IN ${nothing} AS some",
    "FIND edges WHERE source = ${nothing} AS some",
    'PROCESS nothing USING "x" AS some', 'CLASSIFY nothing BY "x" INTO ("a", "b") AS some', "ASSERT LEN ${nothing} > 0",
    "REQUIRE EXISTS nothing", "BRANCH IF ${nothing} = 1 THEN FIND nodes AS some", "UPDATE found WITH nothing",
    "UPDATE undeclared WITH people", "RESET undeclared", 'ANALYZE undeclared USING "x" AS some', "DECLARE undeclared.part AS LIST",
    "SELECT later FIELDS id AS some",
]  # fmt: skip


@pytest.mark.parametrize("command", UNBOUND)
def test_what_is_not_bound_fails_its_step_and_those_that_depend_on_it(command: str) -> None:
    bound = re.search(r" AS (some)\Z", command)
    depending = [f"UPDATE found WITH {bound[1]}"] if bound else []
    commands = (
        "DECLARE found AS LIST",
        PEOPLE,
        command,
        *depending,
        "UPDATE found WITH people",
        "FIND nodes LIMIT 1 AS later",
    )
    with executor(Timed()) as opened:
        records = opened.run_plan(plan(*commands, stop_on_error=False))
        failed = ["binding_failure"] * (1 + len(depending))
        assert statuses(records) == ["success", "success", *failed, "success", "success"]
        assert all(record.error["message"] and record.error["hint"] for record in records if record.error)
        assert len(opened.state.get("found")) == 5
        assert gasl.plan_status(records) == "partial"
    with executor() as opened, pytest.raises(gasl.PlanError):
        opened.run_plan(plan(*commands))


def test_any_other_error_refuses_a_plan_that_goes_on_after_errors() -> None:
    for command in ("FIDN nodes AS x", "FIND nodes WHERE yaer = 1 AS x", "SET adapter.caps.none = 1"):
        with executor() as opened, pytest.raises(gasl.PlanError):
            opened.run_plan(plan("COUNT nothing AS number", command, stop_on_error=False))


def test_require_fails_the_plan_with_a_binding_failure() -> None:
    records = run(PEOPLE, "BRANCH IF LEN ${people} = 0 THEN COUNT people AS number", "REQUIRE EXISTS number", PEOPLE)
    assert statuses(records) == ["success", "success", "binding_failure"]


def test_an_assertion_says_the_values_that_made_it_fail() -> None:
    records = run(PEOPLE, COUNT, ERROR)
    assert records[-1].error is not None
    assert "5" in records[-1].error["message"]


def test_cancel_plan_ends_the_plan_and_keeps_what_it_committed() -> None:
    with executor() as opened:
        records = opened.run_plan(plan("DECLARE authors AS LIST", 'CANCEL PLAN "plan-1"', PEOPLE))
        assert statuses(records) == ["success", "cancelled"]
        assert gasl.plan_status(records) == "cancelled"
        assert opened.state.get("authors") == []


def test_a_plan_can_be_cancelled_from_beside_it() -> None:
    async def inside() -> None:
        model = Timed(30.0)
        async with gasl.open(library(), llm=model) as opened:
            asking = plan("DECLARE authors AS LIST", PEOPLE, 'CLASSIFY people BY "age" INTO ("a", "b") AS c', COUNT)
            running = asyncio.create_task(opened.arun_plan(asking))
            await model.reached(2)
            assert (await opened.aexecute_one('CANCEL PLAN "plan-2"')).status == "error"
            assert (await opened.aexecute_one('CANCEL PLAN "plan-1"')).status == "success"
            records = await running
            assert statuses(records) == ["success", "success", "cancelled"]
            assert (model.under_way, model.cancelled > 0) == (0, True)
            assert len(asyncio.all_tasks()) == 1

    asyncio.run(inside())


@pytest.mark.slow
@pytest.mark.parametrize("how", ["event", "task"])
def test_cancelling_keeps_what_was_committed_and_leaves_no_task(how: str, tmp_path: Path) -> None:
    async def inside() -> None:
        model, cancel = Timed(30.0), asyncio.Event()
        ended: list[Any] = []
        events = Events()
        events.subscribe(lambda event: ended.append(event.status) if event.name == "plan.finished" else None)
        opened = gasl.open(library(), tmp_path / "run", model, events=events)
        asking = plan("DECLARE authors AS LIST", PEOPLE, 'CLASSIFY people BY "age" INTO ("a", "b") AS c', COUNT)
        running = asyncio.create_task(opened.arun_plan(asking, cancel=cancel))
        await model.reached(5)
        if how == "event":
            cancel.set()
            assert statuses(await running) == ["success", "success", "cancelled"]
        else:
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert (model.under_way, ended) == (0, ["cancelled"])
        assert [entry["status"] for entry in opened.state.history] == ["success", "success", "cancelled"]
        assert len(asyncio.all_tasks()) == 1
        await opened.aclose()

    asyncio.run(inside())
    again = gasl.open(library(), tmp_path / "run")
    assert again.state.get("authors") == []
    again.close()
    assert gasl.replay(tmp_path / "run", library()).identical


INTERRUPTED = """
import asyncio, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job begins with it ignored
from knotwork import gasl
from support.executing import library

class Slow:
    async def generate(self, prompt, **options):
        print("asked", flush=True)
        await asyncio.sleep(60)

opened = gasl.open(library(), sys.argv[1], Slow(), max_concurrency=1)
try:
    opened.run_plan(sys.argv[2])
finally:
    opened.close()
"""


@pytest.mark.slow
def test_ctrl_c_in_the_sync_form_ends_the_plan_in_order(tmp_path: Path) -> None:
    text = f'DECLARE authors AS LIST\n{PEOPLE}\nCLASSIFY people BY "age" INTO ("a", "b") AS c\nRESET authors'
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "run"), text]
    tests = str(TESTS)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": tests}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in told
    with executor(state=tmp_path / "run") as opened:
        assert [entry["status"] for entry in opened.state.history] == ["success", "success", "cancelled"]


def test_a_plan_that_is_cancelled_before_it_begins() -> None:
    async def inside() -> None:
        cancel = asyncio.Event()
        cancel.set()
        async with gasl.open(library()) as opened:
            assert statuses(await opened.arun_plan(plan(PEOPLE, COUNT), cancel=cancel)) == ["cancelled"]
            assert statuses(await opened.arun_plan(plan(PEOPLE, COUNT))) == ["success", "success"]

    asyncio.run(inside())


def test_events_of_a_plan() -> None:
    heard: list[Any] = []
    events = Events()
    events.subscribe(heard.append)
    with executor(events=events) as opened:
        opened.run_plan(plan(PEOPLE, "ON EMPTY people THEN " + PEOPLE, "BRANCH IF LEN ${people} > 1 THEN " + COUNT))
    names = [event.name for event in heard]
    assert names[0], names[-1] == ("plan.started", "plan.finished")
    assert [event.step for event in heard if event.name == "command.started"] == ["1", "2", "3", "3.1"]
    assert heard[-1].status == "success"


def test_a_loop_goes_on_until_it_is_complete() -> None:
    seen: list[list[str]] = []

    def step(opened: gasl.GASLExecutor, last: Any) -> Any:
        seen.append(statuses(last))
        match len(seen):
            case 1:
                return PEOPLE
            case 2:
                return plan("FIND", COUNT)
            case 3:
                assert last[0].error["diagnostics"]
                return plan(PEOPLE, COUNT)
            case _:
                return f"COMPLETE: there are {opened.context.get('number')} people"

    with executor() as opened:
        assert opened.run_until_complete(step) == "there are 5 people"
        assert len(opened.command_history) == 3
    assert seen == [[], ["success"], ["error"], ["success", "success"]]


def test_a_loop_without_an_answer_ends() -> None:
    async def step(opened: gasl.GASLExecutor, last: Any) -> str:
        return PEOPLE

    with executor() as opened, pytest.raises(gasl.ExecutionError, match="after 3 steps"):
        opened.run_until_complete(step, most=3)


@pytest.mark.slow
def test_a_plan_that_nests_deeply_is_refused_or_ends() -> None:
    deep = "BRANCH IF LEN ${people} = 5 THEN " * 20_000 + PEOPLE
    with executor() as opened:
        record = opened.execute_one(deep)
        assert record.status == "error"


def test_what_is_no_plan_is_a_type_error() -> None:
    with executor() as opened, pytest.raises(TypeError, match="not int"):
        opened.run_plan(5)


def test_a_program_goes_on_after_an_empty_result_but_a_block_ends_there() -> None:
    program = f"{NOBODY}\nCOUNT nobody AS n\nTRY\n  {NOBODY}\n  {PEOPLE}\nCATCH ANY\n  COUNT nobody AS n\nEND\nCOUNT nobody AS m"
    with executor() as opened:
        records = opened.run_plan(program)
    assert statuses(records) == ["empty", "success", "success", "success"]
    assert [records[1].value, records[-1].value] == [0, 0]
    assert statuses(records[2].nested) == ["empty", "success"], "the block's body ended, and CATCH ran"
    with executor() as opened:
        records = opened.run_plan(
            {"plan_id": "p", "why": "w", "commands": [program], "config": {"continue_on_empty": True}}
        )
    assert statuses(records[2].nested) == ["empty", "success"]
