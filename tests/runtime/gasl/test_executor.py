"""One command at a time: what its record says, what the state and the history keep, what is refused and how."""

import asyncio
import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from knotwork import gasl
from knotwork.adapters.llm import Completion, Unavailable, Usage
from knotwork.runtime.api.reports import render_state
from knotwork.runtime.events import CommandFinished, CommandStarted, Events, StateChanged
from support.clients import Scripted, Timed
from support.executing import executor, library, statuses

PEOPLE = 'FIND nodes WHERE entity_type = "PERSON" AS people'


def test_a_record_says_what_happened() -> None:
    with executor() as opened:
        record = opened.execute_one(PEOPLE, why="seed the author set")
    assert (record.step, record.status, record.why, record.variable) == (1, "success", "seed the author set", "people")
    assert record.command == PEOPLE
    assert [item["id"] for item in record.value] == ["Ada", "Ben", "Cyd", "Dee", "Eve"]
    assert record.metrics["count"] == 5
    assert record.metrics["shape"]["kind"] == "list"
    assert set(record.metrics["shape"]["fields"]) >= {"id", "age"}
    assert record.summary == {"count": 5}
    assert record.provenance_summary == {"items": 5, "sources": 5}
    assert record.duration >= 0
    assert record.started_at <= record.finished_at
    assert record.started_at.endswith("Z")
    assert record.error is None


def test_what_a_result_covers_is_in_the_record_the_event_the_history_and_the_report() -> None:
    events = Events()
    finished: list[str] = []
    events.subscribe(lambda event: finished.append(event.message) if isinstance(event, CommandFinished) else None)
    notes = [
        "pagerank, unweighted: no edge has an attribute weight; on the whole graph (3 nodes, 2 edges)",
        "2 of 3 items of ranks have no partner in some: they are left out",
    ]
    with executor(graph=nx.path_graph(3), events=events) as opened:
        opened.execute_one("MEASURE graph USING pagerank AS ranks")
        opened.execute_one("FIND nodes WHERE id = 0 AS some")
        record = opened.execute_one("JOIN ranks WITH some ON id AS joined")
        page = render_state(opened.state.as_json(), opened.adapter)
        history = [entry["metrics"].get("notes") for entry in opened.state.history]
    assert (record.status, record.metrics["notes"]) == ("success", [notes[1]])
    assert record.summary["without_partner"] == {"left": 2, "right": 0}
    assert history == [[notes[0]], None, [notes[1]]]
    assert finished == [notes[0], "", notes[1]]
    assert all(note in page for note in notes)


def test_names_and_keys_are_equal_in_any_unicode_form_and_stay_as_they_were_written() -> None:
    graph = nx.DiGraph()
    names = ("Rene\u0301", "Ren\u00e9", "Rene\u0301", "Bo")
    graph.add_nodes_from((f"n{at}", {"pre\u0301nom": name}) for at, name in enumerate(names))
    with gasl.open(graph) as opened:
        found = opened.execute_one('FIND nodes WHERE `pr\u00e9nom` = "Ren\u00e9" AS people')
        assert [item["pre\u0301nom"] for item in found.value] == list(names[:3])
        opened.execute_one("FIND nodes AS every")
        assert [row["count"] for row in opened.execute_one("COUNT every BY `pr\u00e9nom` AS counts").value] == [3, 1]
        joined = opened.execute_one("JOIN people WITH every ON `pr\u00e9nom` = `pre\u0301nom` AS pairs")
        assert len(joined.value) == 9
        distinct = opened.execute_one("SELECT DISTINCT every FIELDS `pr\u00e9nom` AS name AS names")
        assert [row["name"] for row in distinct.value] == ["Rene\u0301", "Bo"]
        branch = opened.execute_one('BRANCH IF ${every[3].`pr\u00e9nom`} = "Bo" THEN COUNT every AS size')
        assert (branch.status, branch.value) == ("success", 4)
        nothing = opened.execute_one('FIND nodes WHERE `pr\u00e9nom` = "Ren\u00e9e" AS none')
        assert nothing.status == "empty"


def test_the_value_is_bound_and_used_by_the_next_command() -> None:
    with executor() as opened:
        opened.execute_one(PEOPLE)
        record = opened.execute_one("COUNT people AS number")
        assert (record.value, opened.context.get("number")) == (5, 5)


def test_history_has_the_seeds_keys_first_and_replay_the_exact_text() -> None:
    text = '  find NODES where entity_type="PERSON" as people'
    with executor() as opened:
        opened.execute_one(text, why="seed the author set")
        (entry,) = opened.state.history
        assert list(entry)[:7] == [
            "step", "command", "why", "summary", "provenance_summary", "started_at", "finished_at"
        ]  # fmt: skip
        assert (entry["step"], entry["command"], entry["why"]) == (1, text, "seed the author set")
        assert opened.state.replay_info()["commands"] == [text]


def test_the_why_of_the_text_goes_before_the_callers() -> None:
    with executor() as opened:
        assert opened.execute_one(f"#: from the text\n{PEOPLE}", why="from the caller").why == "from the text"


@pytest.mark.slow
def test_history_is_truncated_and_replay_is_not() -> None:
    names = ", ".join(f'"name-{number:04}"' for number in range(2_000))
    text = f"FIND nodes WHERE id IN ({names}) AS found"
    with executor() as opened:
        opened.execute_one(text)
        (entry,) = opened.state.history
        assert len(json.dumps(entry)) < 8_000
        assert opened.state.replay_info()["commands"] == [text]


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("FIND nodes WHERE AS x", "error", ""),
        ("", "error", ""),
        ("COUNT people AS n\nCOUNT people AS m", "error", ""),
        ("COUNT nobody AS n", "binding_failure", "nobody"),
        ("UPDATE network.authors WITH people", "binding_failure", "network"),
        ("SET adapter.caps.max_paths = 0", "error", "max_paths"),
        ("MEASURE people USING page_rank AS ranks", "error", "page_rank"),
    ],
)
def test_what_is_wrong_comes_back_in_the_record(text: str, status: str, said: str) -> None:
    with executor() as opened:
        opened.execute_one(PEOPLE)
        before = opened.state.hash
        record = opened.execute_one(text)
        assert record.status == status
        assert record.error is not None
        assert said in json.dumps(record.error)
        assert record.error["diagnostic"]["message"]
        assert opened.state.hash == before
        assert [entry["status"] for entry in opened.state.history] == ["success", status]
        assert opened.state.replay_info()["commands"] == [PEOPLE]


def test_hints_name_what_was_meant() -> None:
    with executor() as opened:
        opened.execute_one(PEOPLE)
        record = opened.execute_one("COUNT poeple AS n")
        assert "people" in json.dumps(record.error)


def test_an_empty_result_says_what_is_near() -> None:
    with executor() as opened:
        record = opened.execute_one('FIND nodes WHERE entity_type = "PERSONS" AS people')
    assert record.status == "empty"
    assert record.value == []
    assert "PERSON" in json.dumps(record.error)


def test_a_cap_that_is_hit_makes_the_record_partial() -> None:
    with executor(caps=gasl.Caps(max_results=2)) as opened:
        record = opened.execute_one(PEOPLE)
    assert (record.status, record.metrics["caps_hit"], len(record.value)) == ("partial", ["max_results"], 2)


def test_update_keeps_items_with_their_provenance() -> None:
    with executor() as opened:
        opened.execute_one("DECLARE authors AS LIST")
        opened.execute_one(PEOPLE)
        record = opened.execute_one("UPDATE authors WITH people MERGE")
        assert record.status == "success"
        assert [item["id"] for item in opened.state.get("authors")] == ["Ada", "Ben", "Cyd", "Dee", "Eve"]
        assert opened.state.snapshot().evidence("authors")[0][0]["nodes"] == ["Ada"]


def test_a_change_that_is_refused_changes_nothing() -> None:
    with executor() as opened:
        opened.execute_one("DECLARE counts AS COUNTER")
        opened.execute_one(PEOPLE)
        before = opened.state.hash
        record = opened.execute_one("UPDATE counts WITH people")
        assert record.status == "schema_mismatch"
        assert opened.state.hash == before
        assert opened.execute_one("RESET counts").status == "success"


def test_each_change_is_durable_when_the_record_is_there(tmp_path: Path) -> None:
    opened = gasl.open(library(), tmp_path / "run")
    opened.execute_one("DECLARE authors AS LIST")
    opened.execute_one(PEOPLE)
    opened.execute_one("UPDATE authors WITH people")
    other = gasl.replay(tmp_path / "run", library())  # reads beside the writer
    assert other.identical
    opened.close()
    again = gasl.open(library(), tmp_path / "run")
    assert len(again.state.get("authors")) == 5
    record = again.execute_one(PEOPLE)
    assert record.step == 4
    again.close()
    assert json.loads((tmp_path / "run" / "state.json").read_text(encoding="utf-8"))["replay"]["commands"][-1] == PEOPLE


def test_a_model_that_fails_fails_its_command_with_the_kind() -> None:
    with executor(Scripted(default=Unavailable("nobody is there"))) as opened:
        opened.execute_one(PEOPLE)
        record = opened.execute_one('PROCESS people USING "say more" AS more')
        assert record.status == "error"
        assert "nobody is there" in json.dumps(record.error)


def test_without_a_model_the_record_says_how_to_get_one() -> None:
    with executor() as opened:
        opened.execute_one(PEOPLE)
        record = opened.execute_one('CLASSIFY people BY "age" INTO ("old", "young") AS sorted')
        assert record.status == "error"


class Breaking:
    """A graph that raises what it is told to."""

    def __init__(self, inner: Any, error: BaseException) -> None:
        self.inner = inner
        self.error = error

    def nodes(self, *_: Any, **__: Any) -> Any:
        raise self.error

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (gasl.AdapterError("the graph is gone", hint="open it again"), "the graph is gone"),
        (TimeoutError(), "took too long"),
        (ValueError("two\nlines"), "ValueError: two lines"),
        (MemoryError(), "not enough memory"),
        (RecursionError(), "is nested too deeply"),
    ],
)
def test_whatever_an_adapter_raises_becomes_an_error(error: Exception, said: str) -> None:
    with executor() as plain:
        adapter = plain.adapter
    with executor(graph=Breaking(adapter, error)) as opened:
        record = opened.execute_one(PEOPLE)
        assert record.status == "error"
        assert record.error is not None
        assert said in record.error["message"]
        assert "Traceback" not in json.dumps(record.error)


def test_events_tell_of_commands_and_of_the_state() -> None:
    heard: list[Any] = []
    events = Events()
    events.subscribe(heard.append)
    with executor(events=events) as opened:
        opened.execute_one("DECLARE authors AS LIST")
        opened.execute_one(PEOPLE)
        before = len(heard)
        opened.execute_one("FIND")
    assert [event.name for event in heard[before:]] == ["command.started", "command.finished"]
    assert heard[-1].status == "error" and heard[-1].message
    names = [event.name for event in heard[:before]]
    assert names == ["command.started", "command.finished", "state.changed", "command.started", "command.finished"]
    started, finished, changed = heard[:3]
    assert isinstance(started, CommandStarted) and started.step == "1"
    assert isinstance(finished, CommandFinished) and finished.status == "success"
    assert isinstance(changed, StateChanged) and len(changed.hash) == 64


def test_the_sync_form_refuses_where_a_loop_runs() -> None:
    async def inside() -> None:
        opened = gasl.open(library())
        with pytest.raises(RuntimeError, match="aexecute_one"):
            opened.execute_one(PEOPLE)
        record = await opened.aexecute_one(PEOPLE)
        assert record.status == "success"
        await opened.aclose()

    asyncio.run(inside())


def test_one_thing_at_a_time() -> None:
    async def inside() -> None:
        model = Timed(0.5)
        opened = gasl.open(library(), llm=model)
        await opened.aexecute_one(PEOPLE)
        asking = asyncio.create_task(opened.aexecute_one('CLASSIFY people BY "age" INTO ("a", "b") AS c'))
        await model.reached(1)
        with pytest.raises(gasl.ExecutionError, match="is running"):
            await opened.aexecute_one(PEOPLE)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert model.under_way == 0
        assert (await opened.aexecute_one(PEOPLE)).status == "success"
        assert [entry["status"] for entry in opened.state.history] == ["success", "cancelled", "success"]
        await opened.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(inside())


def test_set_holds_and_stays_below_the_ceiling() -> None:
    with executor(ceiling=gasl.Caps(max_path_length=4)) as opened:
        assert opened.execute_one("SET adapter.caps.max_path_length = 4").status == "success"
        assert opened.session.caps.max_path_length == 4
        refused = opened.execute_one("SET adapter.caps.max_path_length = 5")
        assert refused.status == "error"
        assert opened.session.caps.max_path_length == 4
        assert opened.execute_one("SET adapter.caps.max_path_lenght = 2").status == "error"


def test_set_names_another_model() -> None:
    first, second = Scripted(default="a"), Scripted(default="b")
    with executor(first, models={"other": second}) as opened:
        opened.execute_one("FIND nodes LIMIT 1 AS one")
        assert opened.execute_one('SET llm.model = "nobody"').status == "error"
        opened.execute_one('SET llm.model = "other"')
        opened.execute_one("SET llm.temperature = 0.5")
        record = opened.execute_one('CLASSIFY one BY "letter" INTO ("a", "b") AS c')
        assert record.value[0]["label"] == "b"
        assert (len(first.prompts), second.options[0]["temperature"]) == (0, 0.5)


@pytest.mark.parametrize(("attributes", "note"), [
    ({"weight": 2}, "weighted by weight, where a missing value counts as 1; unweighted if a value is negative or not finite"),
    ({"weight": "x"}, "unweighted: weight is not a number on every edge"),
    ({"Weight": 1, "WEIGHT": 2}, "unweighted: no edge has an attribute weight, but there are Weight and WEIGHT"),
    ({"w": 2}, "unweighted: no edge has an attribute weight"),
])  # fmt: skip
def test_explain_says_which_weight_a_measure_would_use(attributes: dict[str, object], note: str) -> None:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", **attributes)
    with gasl.open(graph) as opened:
        assert note in opened.execute_one("EXPLAIN MEASURE graph USING pagerank AS r").value["notes"]
        assert (
            "unweighted without BY" in opened.execute_one("EXPLAIN MEASURE graph USING betweenness AS r").value["notes"]
        )


def test_explain_runs_nothing() -> None:
    model = Scripted()
    with executor(model) as opened:
        found = opened.execute_one(f"EXPLAIN {PEOPLE}")
        assert found.status == "success"
        assert found.value["rows"] == 5
        assert found.value["model_calls"] == 0
        assert not opened.context.exists("people")
        opened.execute_one(PEOPLE)
        asked = opened.execute_one('EXPLAIN CLASSIFY people BY "age" INTO ("a", "b") AS c')
        assert asked.value["model_calls"] == 5
        batched = opened.execute_one('EXPLAIN PROCESS people USING "say more" AS more')
        assert batched.value["model_calls"] == 1
        paths = opened.execute_one('EXPLAIN FIND paths FROM people TO (entity_type = "PLACE") AS p')
        assert paths.value["how"]
        assert model.prompts == []
        assert opened.execute_one("EXPLAIN BRANCH IF LEN ${people} > 0 THEN COUNT people AS n").value["inside"]


def test_cancel_of_a_plan_that_is_not_there() -> None:
    with executor() as opened:
        record = opened.execute_one('CANCEL PLAN "plan-7"')
        assert record.status == "error"
        assert record.error is not None and "plan-7" in record.error["message"]


def test_chunks_give_snippets() -> None:
    with executor(chunks={"chunk-a": "Ada Lovelace wrote of engines."}) as opened:
        opened.execute_one("DECLARE authors AS LIST")
        opened.execute_one(PEOPLE)
        opened.execute_one("UPDATE authors WITH people")
        assert "Lovelace" in opened.state.snapshot().evidence("authors")[0][0]["snippet"]


def test_what_a_host_binds_is_there_in_every_plan() -> None:
    context = gasl.ContextStore()
    context.set("names", ["Ada", "Eve"])
    plan = {"plan_id": "p", "why": "look", "commands": ["FIND nodes WHERE id IN ${names} AS found"]}
    with executor(context=context) as opened:
        assert len(opened.execute_one("FIND nodes WHERE id IN ${names} AS found").value) == 2
        assert statuses(opened.run_plan(plan)) == ["success"]


def test_nothing_of_the_text_of_a_value_is_ever_parsed() -> None:
    context = gasl.ContextStore()
    context.set("name", '"Ada" OR age > 0')
    with executor(context=context) as opened:
        assert opened.execute_one("FIND nodes WHERE id = ${name} AS found").status == "empty"


class FullDisk:
    """A state whose disk is full for a while."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.full = False

    def commit(self) -> str:
        if self.full:
            raise gasl.StoreError("the disk is full")
        return self.inner.commit()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_a_state_that_can_not_be_kept_is_raised_and_the_plan_ends() -> None:
    with executor() as plain:
        state = FullDisk(plain.state.fork())
    heard: list[Any] = []
    events = Events()
    events.subscribe(heard.append)
    with executor(state=state, events=events) as opened:
        opened.execute_one("DECLARE authors AS LIST")
        state.full = True
        with pytest.raises(gasl.StoreError, match="full"):
            opened.run_plan("DECLARE papers AS LIST\nDECLARE places AS LIST")
        assert (heard[-1].name, heard[-1].status) == ("plan.finished", "error")
        state.full = False
        assert opened.execute_one("DECLARE others AS LIST").status == "success"
        assert opened.state.replay_info()["commands"][-1] == "DECLARE others AS LIST"
        assert gasl.replay(opened.state.as_json(), library()).identical


def test_a_command_that_a_full_disk_refused_and_that_is_run_again_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = 0
    with gasl.open(library(), tmp_path / "run") as opened:
        for text in (
            "DECLARE n AS COUNTER",
            PEOPLE,
            "UPDATE n WITH people",
            "DECLARE m AS COUNTER",
            "UPDATE m WITH people",
        ):
            with monkeypatch.context() as patch:
                patch.setattr("os.pwrite", lambda file, data, at: 0)
                for _ in range(3):
                    with pytest.raises(gasl.StoreError, match="can't be written"):
                        opened.execute_one(text)
                    refused += 1
            opened.execute_one(text)
        assert refused == 15
        counts = opened.state.get("n"), opened.state.get("m")
        with gasl.open(library()) as whole:
            for text in (
                "DECLARE n AS COUNTER",
                PEOPLE,
                "UPDATE n WITH people",
                "DECLARE m AS COUNTER",
                "UPDATE m WITH people",
            ):
                whole.execute_one(text)
            assert counts == (whole.state.get("n"), whole.state.get("m"))
        assert len(opened.state.history) == 5
        assert gasl.replay(opened.state.as_json(), library()).identical
    with gasl.open(library(), tmp_path / "run") as opened:
        assert (opened.state.get("n"), opened.state.get("m")) == counts


def test_every_command_that_writes_has_its_provenance_in_brief() -> None:
    with executor() as opened:
        for text in (
            "DECLARE kept AS LIST",
            PEOPLE,
            "UPDATE kept WITH people",
            "UPDATE kept WITH people REPLACE",
            "RESET kept",
        ):
            opened.execute_one(text)
        declared, found, updated, replaced, reset = (entry["provenance_summary"] for entry in opened.state.history)
        assert declared == reset == {"items": 0, "sources": 0}
        assert found["items"] == len(opened.context.get("people")) > 0
        assert updated == replaced == found
        opened.execute_one("TRY\n  UPDATE kept WITH people\nEND")
        assert opened.state.history[-1]["provenance_summary"] == {**found, "commands": 1}


@pytest.mark.slow
def test_only_the_last_records_keep_their_values() -> None:
    with executor() as opened:
        for _ in range(60):
            opened.execute_one(PEOPLE)
        assert [record.value is None for record in opened.command_history] == [True] * 10 + [False] * 50


def test_what_is_no_client_is_a_type_error_and_leaves_the_state_free(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="not a model client"):
        gasl.open(library(), tmp_path / "run", 5)
    gasl.open(library(), tmp_path / "run").close()


def test_metrics_say_what_the_model_took() -> None:
    model = Scripted(default=Completion("old", usage=Usage(10, 2), cost=0.5))
    with executor(model) as opened:
        opened.execute_one("FIND nodes LIMIT 2 AS two")
        record = opened.execute_one('CLASSIFY two BY "age" INTO ("old", "young") AS sorted')
        assert record.metrics["calls"] == 2
        assert record.metrics["tokens"] == {"prompt": 20, "completion": 4}
        assert record.metrics["cost"] == 1.0


def test_sources_of_many_items_are_counted_in_the_first_ones() -> None:
    graph = nx.empty_graph(1_000)
    nx.set_node_attributes(graph, {node: f"chunk-{node % 90}" for node in graph}, "source_id")
    with executor(graph=graph) as opened:
        record = opened.execute_one("FIND nodes AS all_of_them")
        assert record.provenance_summary == {"items": 1_000, "sources": 90, "counted": 500}


def test_two_sittings_number_their_commands_on(tmp_path: Path) -> None:
    for first in (1, 3):
        with executor(state=tmp_path / "run") as opened:
            assert opened.execute_one(PEOPLE).step == first
            opened.execute_one("BRANCH IF LEN ${people} > 0 THEN COUNT people AS n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "path", "fields"),
    [
        ("AGGREGATE j BY nonsense COMPUTE count() AS x", "nonsense", "right.weight"),
        ("AGGREGATE j BY source COMPUTE sum(right.wight) AS x", "right.wight", "right.weight"),
        ("RANK e BY wight AS x", "wight", "weight"),
        ("SELECT e FIELDS source, wight AS x", "wight", "weight"),
        ("SELECT e WHERE wight > 1 AS x", "wight", "weight"),
        ("COUNT e BY wight AS x", "wight", "weight"),
        ("JOIN e WITH j ON wight AS x", "wight", "weight"),
    ],
)
def test_fields_of_variables_of_earlier_commands_are_checked_before_the_next_one(
    command: str, path: str, fields: str
) -> None:
    with executor(graph=nx.les_miserables_graph()) as opened:
        for before in ("FIND edges AS e", "JOIN e WITH e ON source AS j"):
            assert opened.execute_one(before).status == "success"
        record = opened.execute_one(command)
        assert record.error is not None
        found = record.error["diagnostic"]
        kinds = {"GASL073": f"no field {path}", "GASL070": f"no edge has an attribute {path}"}
        assert record.status == "schema_mismatch" and found["message"].endswith(kinds[found["code"]])
        assert fields in record.error["hint"], record.error
        assert opened.execute_one(command.replace("wight", "weight").replace("nonsense", "target")).status != "error"


def test_a_field_that_only_other_nodes_have_is_not_refused() -> None:
    with executor() as opened:
        opened.execute_one('FIND nodes WHERE entity_type = "PERSON" AS people')
        lacking = sorted({*opened.adapter.schema.node_attributes} - {*opened.context.fields("people")})
        assert lacking, "the people lack a field that other nodes have"
        assert opened.execute_one(f"SELECT people WHERE {lacking[0]} IS NULL AS s").status == "success"
