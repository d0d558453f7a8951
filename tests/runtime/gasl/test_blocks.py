"""TRY: a block's changes are there together or not at all; what fails goes to CATCH, FINALLY always runs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from knotwork import gasl
from support.clients import Timed
from support.executing import executor, library, statuses

PEOPLE = 'FIND nodes WHERE entity_type = "PERSON" AS people'
PAPERS = 'FIND nodes WHERE entity_type = "PAPER" AS papers'
START = f"DECLARE kept AS LIST\nDECLARE seen AS COUNTER\n{PEOPLE}\n{PAPERS}\nCOUNT people AS number\n"
FAILS = "ASSERT ${number} = 6"


def run(block: str, **options: Any) -> tuple[list[gasl.ExecutionRecord], gasl.GASLExecutor]:
    with executor(**options) as opened:
        records = opened.run_plan(START + block)
        return records, opened.state.as_json()


def kept(state: Any) -> list[str]:
    return [item["id"] for item in state["variables"]["kept"]["items"]]


PEOPLE_IDS = ["Ada", "Ben", "Cyd", "Dee", "Eve"]
PAPER_IDS = ["Engines", "Trees", "Stones"]


def test_a_block_that_goes_well_is_kept_as_a_whole() -> None:
    records, state = run("TRY\n  UPDATE kept WITH people\n  UPDATE kept WITH papers\nEND")
    assert records[-1].status == "success"
    assert statuses(records[-1].nested) == ["success", "success"]
    assert kept(state) == PEOPLE_IDS + PAPER_IDS


def test_what_fails_rolls_the_state_back_and_stops_the_plan() -> None:
    records, state = run(f"TRY\n  UPDATE kept WITH people\n  {FAILS}\nEND\nUPDATE kept WITH papers")
    assert records[-1].status == "error"
    assert records[-1].error is not None and "${number}" in records[-1].error["message"]
    assert kept(state) == []
    assert [record.rolled_back for record in records[-1].nested] == [True, True]


def test_rolled_back_commands_stay_in_the_history_marked() -> None:
    _, state = run(f"TRY\n  UPDATE kept WITH people\n  {FAILS}\nEND")
    entries = [(entry["command"], entry.get("part"), entry.get("rolled_back", False)) for entry in state["history"][5:]]
    assert entries[:2] == [("UPDATE kept WITH people", "1", True), (FAILS, "2", True)]
    assert entries[2][0].startswith("TRY")
    assert entries[2][1:] == (None, False)
    assert state["replay"]["commands"][-1].startswith("TRY")


def test_catch_has_the_error_and_its_changes_are_kept() -> None:
    block = (
        f"TRY\n  UPDATE kept WITH people\n  {FAILS}\nCATCH ANY\n  UPDATE kept WITH papers\n"
        '  ASSERT ${error.status} = "error"\n  ASSERT ${error.message} CONTAINS "5"\n'
        '  ASSERT ${error.command} CONTAINS "ASSERT"\nEND\nCOUNT papers AS after'
    )
    records, state = run(block)
    assert statuses(records[-2:]) == ["success", "success"]
    assert records[-2].summary["caught"]["status"] == "error"
    assert kept(state) == PAPER_IDS


def test_catch_that_fails_rolls_back_too() -> None:
    records, state = run(
        f"TRY\n  UPDATE kept WITH people\n  {FAILS}\nCATCH ANY\n  UPDATE kept WITH papers\n  {FAILS}\nEND"
    )
    assert records[-1].status == "error"
    assert kept(state) == []
    assert all(record.rolled_back for record in records[-1].nested)


def test_finally_always_runs() -> None:
    for body in ("UPDATE kept WITH people", FAILS):
        records, state = run(f"TRY\n  {body}\nFINALLY\n  UPDATE kept WITH papers\nEND")
        assert records[-1].status == ("error" if body == FAILS else "success")
        assert kept(state)[-3:] == PAPER_IDS


def test_finally_that_fails_takes_everything_back() -> None:
    records, state = run(f"TRY\n  UPDATE kept WITH people\nFINALLY\n  {FAILS}\nEND")
    assert records[-1].status == "error"
    assert kept(state) == []


def test_a_step_that_would_stop_the_plan_empty_is_caught() -> None:
    block = (
        "TRY\n  UPDATE kept WITH people\n  FIND nodes WHERE age > 200 AS old\nCATCH ANY\n  UPDATE kept WITH papers\nEND"
    )
    records, state = run(block)
    assert records[-1].summary["caught"]["status"] == "empty"
    assert kept(state) == PAPER_IDS


def test_what_an_on_handles_is_not_caught() -> None:
    block = "TRY\n  FIND nodes WHERE age > 200 AS old\n  ON EMPTY old THEN UPDATE kept WITH people\nCATCH ANY\n  RESET kept\nEND"
    _, state = run(block)
    assert kept(state) == PEOPLE_IDS


def test_variables_bound_in_a_block_stay() -> None:
    block = f"TRY\n  COUNT papers AS inside\n  {FAILS}\nCATCH ANY\n  ASSERT ${{inside}} = 3\nEND"
    records, _ = run(block)
    assert records[-1].status == "success"


def test_the_error_is_bound_in_catch_only() -> None:
    with executor() as opened:
        opened.run_plan(f"{START}TRY\n  {FAILS}\nCATCH ANY\n  COUNT people AS n\nEND")
        assert not opened.context.exists("error")


def test_blocks_nest() -> None:
    block = (
        "TRY\n  UPDATE kept WITH people\n"
        f"  TRY\n    UPDATE kept WITH papers\n    {FAILS}\n  CATCH ANY\n    COUNT papers AS n\n  END\n"
        "END"
    )
    records, state = run(block)
    assert records[-1].status == "success"
    assert kept(state) == PEOPLE_IDS
    inner = records[-1].nested[1]
    assert [record.rolled_back for record in inner.nested] == [True, True, False]


def test_an_inner_failure_without_catch_goes_to_the_outer_one() -> None:
    block = (
        f"TRY\n  UPDATE kept WITH people\n  TRY\n    {FAILS}\n  END\nCATCH ANY\n"
        '  ASSERT ${error.command} STARTS_WITH "ASSERT"\n  UPDATE kept WITH papers\nEND'
    )
    records, state = run(block)
    assert records[-1].status == "success"
    assert kept(state) == PAPER_IDS


def test_cancel_is_not_caught_and_finally_runs() -> None:
    commands = [
        *START.splitlines(), "TRY", "UPDATE kept WITH people", 'CANCEL PLAN "p"', "CATCH ANY", "UPDATE kept WITH people",
        "FINALLY", "UPDATE kept WITH papers", "END", "RESET kept",
    ]  # fmt: skip
    with executor() as opened:
        records = opened.run_plan({"plan_id": "p", "why": "see", "commands": commands})
        assert records[-1].status == "cancelled"
        assert records[-1].command.startswith("TRY")
        assert kept(opened.state.as_json()) == PAPER_IDS


@pytest.mark.parametrize("how", ["event", "task"])
def test_a_cancellation_from_outside_runs_finally(how: str, tmp_path: Path) -> None:
    block = (
        'TRY\n  UPDATE kept WITH people\n  CLASSIFY people BY "age" INTO ("a", "b") AS c\nCATCH ANY\n  RESET kept\n'
        "FINALLY\n  UPDATE kept WITH papers\nEND\nRESET kept"
    )

    async def inside() -> None:
        model, cancel = Timed(30.0), asyncio.Event()
        opened = gasl.open(library(), tmp_path / "run", model)
        running = asyncio.create_task(opened.arun_plan(START + block, cancel=cancel))
        await model.reached(1)
        if how == "event":
            cancel.set()
            records = await running
            assert statuses(records[-1].nested) == ["success", "cancelled", "success"]
        else:
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert opened.command_history[-1].status == "cancelled"
        assert kept(opened.state.as_json()) == PAPER_IDS
        assert len(asyncio.all_tasks()) == 1
        await opened.aclose()

    asyncio.run(inside())
    verdict = gasl.replay(tmp_path / "run", library())
    assert verdict.identical, verdict


def test_a_second_cancellation_ends_finally_as_well(tmp_path: Path) -> None:
    block = (
        'TRY\n  UPDATE kept WITH people\n  CLASSIFY people BY "one" INTO ("a", "b") AS c\n'
        'FINALLY\n  UPDATE kept WITH papers\n  CLASSIFY papers BY "two" INTO ("a", "b") AS d\nEND'
    )

    async def inside() -> None:
        second = asyncio.Event()

        def seconds(prompt: str) -> float:
            if "two" in prompt:
                second.set()
            return 30.0

        model = Timed(seconds)
        opened = gasl.open(library(), tmp_path / "run", model)
        running = asyncio.create_task(opened.arun_plan(START + block))
        await model.reached(1)
        running.cancel()
        await second.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert model.under_way == 0
        assert opened.command_history[-1].status == "cancelled"
        assert kept(opened.state.as_json()) == []
        await opened.aclose()

    asyncio.run(inside())
    assert gasl.replay(tmp_path / "run", library()).identical


def test_a_block_is_one_record_of_the_journal(tmp_path: Path) -> None:
    opened = gasl.open(library(), tmp_path / "run")
    opened.run_plan(START)
    journal = next((tmp_path / "run").glob("wal-*.jsonl"))
    before = journal.read_bytes().count(b"\n")
    opened.execute_one("TRY\n  UPDATE kept WITH people\n  UPDATE kept WITH papers\n  COUNT papers AS n\nEND")
    assert journal.read_bytes().count(b"\n") == before + 1
    opened.close()


def test_nothing_of_a_block_is_there_before_it_ends(tmp_path: Path) -> None:
    """What a crash inside a block would leave is what the directory holds while it runs."""

    async def inside() -> None:
        model = Timed(30.0)
        opened = gasl.open(library(), tmp_path / "run", model)
        await opened.arun_plan(START)
        block = 'TRY\n  UPDATE kept WITH people\n  CLASSIFY people BY "age" INTO ("a", "b") AS c\nEND'
        running = asyncio.create_task(opened.aexecute_one(block))
        await model.reached(1)
        from knotwork.runtime.models.factory import read_state

        seen = read_state(tmp_path / "run")
        assert kept(seen) == []
        assert len(seen["history"]) == 5
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await opened.aclose()

    asyncio.run(inside())


def test_a_block_may_span_the_strings_of_a_plan() -> None:
    commands = [*START.splitlines(), "TRY", "UPDATE kept WITH people", "CATCH ANY", "RESET kept", "END"]
    with executor() as opened:
        records = opened.run_plan({"plan_id": "p", "why": "see", "commands": commands})
        assert len(records) == 6
        assert records[-1].command == "TRY\nUPDATE kept WITH people\nCATCH ANY\nRESET kept\nEND"
