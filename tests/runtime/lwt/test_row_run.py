"""A script that runs once for each row of a table: results, failures, resumed runs and tables."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from knotwork import lwt
from knotwork.adapters.tables.port import TableError
from knotwork.runtime.errors import RequestError
from knotwork.runtime.runs.journal import RunError
from support.clients import Scripted, Timed

MOOD = """(mood)=LLM('Glad or sad? {(input)}["text"]', type="glad" | "sad")"""
TWO = """
(mood)=LLM('Glad or sad? {(input)}["text"]', type="glad" | "sad")
(final)=LLM('Why {(mood)}? {(input)}["text"]', type=json)
"""
ROWS = [{"id": "a", "text": "Great"}, {"id": "b", "text": "Cold"}, {"id": "c", "text": "Fine"}]


def model(**more: Any) -> Scripted:
    return Scripted({**more, "Why": '{"about": "food", "stars": 4}', "Cold": "sad"}, default="glad")


def test_the_input_is_the_row() -> None:
    run = lwt.run_each_sync(MOOD, ROWS, llm=model())
    assert run.status == "complete"
    assert run.table.to_dicts() == [
        {"index": n, "id": each["id"], "status": "complete", "final": mood, "error": None, "calls": 1, "prompt_tokens": 5,
         "completion_tokens": 1, "estimated": True, "cost": None}
        for n, (each, mood) in enumerate(zip(ROWS, ("glad", "sad", "glad"), strict=True))
    ]  # fmt: skip


def test_an_object_has_a_column_for_each_key() -> None:
    table = lwt.run_each_sync(TWO, ROWS, llm=model()).table
    assert [(each.name, each.type) for each in table.columns][2:5] == [
        ("status", "text"), ("final.about", "text"), ("final.stars", "int"),
    ]  # fmt: skip
    assert [row["final.stars"] for row in table] == [4, 4, 4]


def test_mixed_values_are_one_column() -> None:
    answers = {"Great": "1", "Cold": '{"a": 1}', "Fine": "null"}
    table = lwt.run_each_sync("""(a)=LLM('{(input)}["text"]', type=json)""", ROWS, llm=Scripted(answers)).table
    assert [(each.name, each.type) for each in table.columns if each.name.startswith("final")] == [("final", "json")]
    assert [row["final"] for row in table] == ["1", '{"a":1}', None]


def test_a_failed_row_is_a_result_and_the_others_run() -> None:
    run = lwt.run_each_sync(MOOD, ROWS, llm=model(Great=RuntimeError("no")))
    assert run.status == "partial"
    assert [each.status for each in run.results] == ["failed", "complete", "complete"]
    assert run.results[0].error.startswith("(mood): ")
    assert run.results[0].name == "a"


@pytest.mark.parametrize(
    ("kind", "text"),
    [("float", "1,5"), ("int", "1.5"), ("int", "many"), ("bool", "yes"), ("list", "a;b"), ("list", "5")],
)
def test_a_text_that_is_not_of_the_type_of_its_column_fails_its_row(kind: str, text: str) -> None:
    rows = [{"text": text}, {"text": ""}, {"text": None}]
    run = lwt.run_each_sync("""(a)=LLM('{(input)}["n"]')""", rows, columns={f"n:{kind}": "text"}, llm=model())
    assert [each.status for each in run.results] == ["failed", "complete", "complete"]
    assert run.results[0].error == f"row 1: {text!r} in the column 'text' is not of type {kind}"


def test_no_call_is_made_after_the_budget_is_used_up() -> None:
    client = model()
    run = lwt.run_each_sync(MOOD, ROWS, llm=client, max_calls=1, max_concurrency=1)
    assert len(client.prompts) == 1
    assert [each.status for each in run.results] == ["complete", "not_asked", "not_asked"]
    assert run.results[2].error == "not asked: (mood): the budget of 1 call is used up"
    assert run.totals.stopped


def test_columns_are_renamed_and_typed(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("key,cost,text\nx,1.5,Good\ny,,Bad\n")
    client = Scripted()
    script = """(a)=LLM('{(input)}["price"] {(input)}["text"]')"""
    run = lwt.run_each_sync(script, tmp_path / "r.csv", columns={"price:float": "cost"}, key="key", llm=client)
    assert sorted(client.prompts) == ["1.5 Good", "null Bad"]
    assert [row["key"] for row in run.table] == ["x", "y"]


def test_a_row_that_cannot_be_read_fails(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS * 50) + "nonsense\n")
    run = lwt.run_each_sync(MOOD, tmp_path / "r.jsonl", llm=model())
    assert run.totals.statuses == {"complete": 150, "failed": 1}
    assert run.results[-1].error == "line 151: not JSON: invalid literal, expected 'null'"


def test_a_sample_is_part_of_a_larger_sample() -> None:
    rows = [{"id": number, "text": "Great"} for number in range(40)]
    small, large = (lwt.run_each_sync(MOOD, rows, sample=size, llm=model()) for size in (5, 20))
    assert {each.index for each in small.results} < {each.index for each in large.results}
    parts = [lwt.run_each_sync(MOOD, rows, shard=f"{number}/3", llm=model()) for number in (1, 2, 3)]
    assert sorted(each.index for part in parts for each in part.results) == list(range(40))


def test_a_missing_key_is_an_error_before_any_call() -> None:
    client = model()
    with pytest.raises(lwt.ScriptError, match='no key "txt"'):
        lwt.run_each_sync(MOOD.replace('"text"', '"txt"'), ROWS, llm=client)
    assert client.prompts == []


def test_an_empty_first_value_does_not_hide_a_path() -> None:
    rows = [{"place": None}, {"place": {"city": "Rome"}}]
    run = lwt.run_each_sync("""(a)=LLM('{(input)}["place"]["city"]')""", rows, llm=Scripted())
    assert [each.status for each in run.results] == ["failed", "complete"]


def test_refused() -> None:
    with pytest.raises(RequestError, match="GASL steps"):
        lwt.run_each_sync('(a)=GASL("FIND nodes WHERE id = 1 AS x")', ROWS, llm=model())
    with pytest.raises(TableError, match="--key: unknown column 'idd'"):
        lwt.run_each_sync(MOOD, ROWS, key="idd", llm=model())
    with pytest.raises(RequestError, match="unknown type 'number'"):
        lwt.run_each_sync(MOOD, ROWS, columns={"n:number": "text"}, llm=model())


def test_a_resumed_run_repeats_no_answered_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path))
    first = lwt.run_each_sync(TWO, ROWS, llm=model(**{"Why sad": RuntimeError("no")}), record=True)
    assert [each.status for each in first.results] == ["complete", "failed", "complete"]
    client = model()
    again = lwt.run_each_sync(TWO, ROWS, llm=client, resume=first.totals.run_id, out=tmp_path / "o.csv")
    assert [prompt.splitlines()[0] for prompt in client.prompts] == ["Why sad? Cold"]
    assert (again.totals.before, again.status, len(again.results)) == (2, "complete", 3)
    assert (tmp_path / "o.csv").read_text().splitlines()[0].startswith("index,id,status,final.about,final.stars,error")
    with pytest.raises(RunError, match="the script changed and --key changed"):
        lwt.run_each_sync(MOOD, ROWS, key=(), llm=client, resume=first.totals.run_id)


def test_cancelled_rows_have_no_result() -> None:
    async def run() -> Any:
        cancel = asyncio.Event()
        return await lwt.run_each(
            MOOD, ROWS, llm=model(), cancel=cancel, max_concurrency=1, on_result=lambda result: cancel.set()
        )

    totals = asyncio.run(run()).totals
    assert totals.status == "cancelled"
    assert totals.statuses.total() < 3


def test_the_calls_of_cancelled_rows_are_counted() -> None:
    async def run() -> Any:
        cancel, sent = asyncio.Event(), list[str]()

        def seconds(prompt: str) -> float:
            sent.append(prompt)
            if len(sent) == 4:
                asyncio.get_running_loop().call_soon(cancel.set)
            return 60.0 if "Why" in prompt else 0.0

        script = '(a)=LLM("{(input)}")\n(b)=LLM("Why {(a)}")'
        return await lwt.run_each(script, ROWS, llm=Timed(seconds), cancel=cancel, max_concurrency=2)

    totals = asyncio.run(run()).totals
    assert (totals.status, totals.calls, totals.usage.estimated) == ("cancelled", 4, True)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "tsv", "json", "jsonl", "duckdb"])
def test_each_format_has_all_rows(suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"o.{suffix}"
    lwt.run_each_sync(TWO, ROWS, llm=model(), out=out)
    if suffix in ("parquet", "duckdb"):
        import duckdb

        if suffix == "parquet":
            found = duckdb.sql(f"SELECT id, \"final.stars\" FROM '{out}' ORDER BY index").fetchall()
        else:
            found = duckdb.connect(str(out), read_only=True).sql('SELECT id, "final.stars" FROM results').fetchall()
        assert found == [("a", 4), ("b", 4), ("c", 4)]
    else:
        assert out.read_text().count("food") == 3


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tracemalloc

    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path))

    class Model:
        async def generate(self, prompt: str, **options: Any) -> str:
            return "an answer"

    def peak(count: int) -> int:
        table = tmp_path / f"{count}.csv"
        table.write_text("id,text\n" + "".join(f"{number},{'word ' * 20}\n" for number in range(count)))
        tracemalloc.start()
        lwt.run_each_sync("""(a)=LLM('{(input)}["text"]')""", table, llm=Model(), record=True, on_result=lambda _: None)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(100)
    assert peak(2_000) < 1.5 * peak(500) + (1 << 20)
