"""The plan, the state, the commands and the classes of seed 003, as they stand there, do what seed 003 says."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from knotwork import gasl
from support.clients import Scripted
from support.executing import executor, library, statuses

SEED = Path(__file__).parent / "003"
PLAN = (SEED / "plan_init_state.json").read_text(encoding="utf-8")
STATE = json.loads((SEED / "state.json").read_text(encoding="utf-8"))
SCHEMA = json.loads((SEED / "plan_schema.json").read_text(encoding="utf-8"))


def test_the_initial_plan_gives_the_seeds_variables() -> None:
    with executor(query="<original user query>") as opened:
        records = opened.run_plan(PLAN)
        made = opened.state.as_json()
    assert statuses(records) == ["success"] * 5
    assert json.dumps(made["variables"]) == json.dumps(STATE["variables"])
    assert made["query"] == STATE["query"]
    assert made["version"] == STATE["version"]
    assert list(made)[: len(STATE)] == list(STATE)


def test_the_initial_plan_can_run_twice() -> None:
    with executor() as opened:
        opened.run_plan(PLAN)
        before = opened.state.hash
        assert statuses(opened.run_plan(PLAN)) == ["success"] * 5
        assert opened.state.hash == before


def test_history_and_replay_have_the_seeds_keys() -> None:
    find, process, update = STATE["replay"]["commands"]
    rows = {"rows": [{"ids": ["i1"], "pair": "Ada"}]}
    model = Scripted(default=lambda prompt: json.dumps(rows))
    with executor(model) as opened:
        opened.execute_one("DECLARE coauthorship_network AS LIST")
        record = opened.execute_one(find, why="Seed the author set")
        opened.execute_one(process)
        opened.execute_one(update)
        made = opened.state.as_json()
    entry, seeds = made["history"][1], STATE["history"][0]
    assert list(entry)[: len(seeds)] == list(seeds)
    assert {name: entry[name] for name in ("command", "why")} == {name: seeds[name] for name in ("command", "why")}
    assert entry["summary"] == {"count": 5}
    assert set(entry["provenance_summary"]) == set(seeds["provenance_summary"])
    assert record.status == "success"
    assert made["replay"]["commands"][1:] == [find, process, update]
    assert made["replay"]["seed"] == STATE["replay"]["seed"]
    assert set(STATE["replay"]) <= set(made["replay"])
    assert gasl.replay(made, library()).identical


def test_the_seeds_state_file_can_be_opened() -> None:
    with executor(state=SEED / "state.json") as opened:
        assert opened.state.get("co_authorship_analysis.authors") == []
        assert opened.execute_one('FIND nodes WHERE entity_type = "PERSON" AS authors').step == 2
        assert opened.execute_one("UPDATE co_authorship_analysis.authors WITH authors").status == "success"
    assert json.loads((SEED / "state.json").read_text(encoding="utf-8")) == STATE


def test_a_plan_is_what_the_seeds_schema_says() -> None:
    assert set(json.loads(PLAN)) == set(SCHEMA)
    for missing in ("plan_id", "why", "commands"):
        broken = {name: value for name, value in json.loads(PLAN).items() if name != missing}
        with executor() as opened, pytest.raises(gasl.PlanError, match=missing):
            opened.run_plan(broken)
    without = {name: value for name, value in json.loads(PLAN).items() if name != "config"}
    with executor() as opened:
        assert statuses(opened.run_plan(without)) == ["success"] * 5


AUTHORS = 'FIND nodes WHERE entity_type = "PERSON" AS authors'


@pytest.mark.parametrize(
    ("commands", "status"),
    [
        ([AUTHORS, "ASSERT LEN ${authors} > 0"], "success"),
        ([AUTHORS, "REQUIRE EXISTS authors"], "success"),
        (["REQUIRE EXISTS authors"], "binding_failure"),
        (["SET adapter.caps.max_path_length=2"], "success"),
        (["SET adapter.caps.max_path_length=2", 'FIND paths WHERE source.entity_type = "PERSON" LIMIT 3 AS paths'], "success"),
        ([AUTHORS, "SELECT authors FIELDS id, age AS new_variable"], "success"),
        ([AUTHORS, "SELECT authors WHERE age >= 40 AND age <= 70 AS new_variable"], "success"),
        (["FIND nodes WHERE id IN ('Ada', 'Ben') OR id STARTS_WITH 'Cy' LIMIT 2 AS var"], "success"),
        (["FIND nodes WHERE id NOT IN ('Ada') AND (id CONTAINS 'd' OR id ENDS_WITH 'e') AS var"], "success"),
        (["FIND nodes WHERE age != 36 AS var", "ON EMPTY var THEN FIND nodes AS var"], "success"),
        (["TRY\nFIND nodes WHERE age > 900 AS var\nCATCH ANY\nFIND nodes LIMIT 1 AS var\nFINALLY\nCOUNT var AS n\nEND"], "success"),
        (['CANCEL PLAN "nobody"'], "error"),
    ],
)  # fmt: skip
def test_the_seeds_commands(commands: list[str], status: str) -> None:
    with executor() as opened:
        assert [opened.execute_one(command).status for command in commands][-1] == status


def test_cancel_plan_aborts_the_running_plan() -> None:
    with executor() as opened:
        plan = {**json.loads(PLAN), "commands": ["DECLARE a AS LIST", 'CANCEL PLAN "plan-init-state-001"', "RESET a"]}
        assert statuses(opened.run_plan(plan)) == ["success", "cancelled"]


def names(kind: Any) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind)}


def test_the_seeds_classes_have_the_seeds_methods() -> None:
    assert {"parse"} <= names(gasl.GASLParser)
    assert {"set", "get", "exists", "summary"} <= names(gasl.ContextStore)
    assert {"find_nodes", "find_edges", "find_paths", "get_node"} <= names(gasl.GraphAdapter)
    assert {"find_nodes", "find_edges", "find_paths", "get_node"} <= names(gasl.NetworkXAdapter)
    assert {"generate"} <= names(gasl.LLMClient)
    assert {"execute_one", "run_until_complete"} <= names(gasl.GASLExecutor)
    assert {
        "get", "merge", "replace", "summary", "persist", "append_history", "attach_provenance", "replay_info"
    } <= names(gasl.StateStore)  # fmt: skip
    assert list(inspect.signature(gasl.GASLExecutor).parameters)[:4] == ["adapter", "llm", "state", "context"]


def test_the_executor_is_made_as_in_the_seed() -> None:
    state = gasl.open(library()).state
    adapter = gasl.NetworkXAdapter(library())
    opened = gasl.GASLExecutor(adapter, Scripted(), state, gasl.ContextStore())
    assert opened.execute_one(AUTHORS).status == "success"
    assert [record.command for record in opened.command_history] == [AUTHORS]
    assert gasl.GASLParser().parse(AUTHORS).into.text == "authors"


def test_the_loop_ends_with_complete() -> None:
    said = iter(['FIND nodes WHERE entity_type = "PERSON" AS authors', "COUNT authors AS n", "COMPLETE: five authors"])
    with executor() as opened:
        assert opened.run_until_complete(lambda executor, last: next(said)) == "five authors"
