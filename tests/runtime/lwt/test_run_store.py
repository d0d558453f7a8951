"""Runs on disk: what is kept, and going on with it."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from knotwork import lwt
from knotwork.runtime.lwt import run_store
from support.clients import Scripted, echo

SCRIPT = '(a)=LLM("one")\n(b)=LLM("two {(a)}")\n(final)=LLM("three {(b)}", type="x" | "y")\n'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path))
    return tmp_path / "runs"


def kept(script: str = SCRIPT, client: Any = None, **rest: Any) -> Any:
    return asyncio.run(lwt.run(script, llm=client or Scripted({"three": "x"}), record=True, **rest))


def resume(run_id: str, client: Any = None, **rest: Any) -> Any:
    return asyncio.run(lwt.resume(run_id, llm=client or Scripted({"three": "x"}), **rest))


def journal(path: Path) -> list[Any]:
    return [json.loads(line) for line in (path / "run.jsonl").read_bytes().splitlines()]


def test_a_run_is_kept_as_it_goes(home: Path) -> None:
    result = kept(input={"k": 1})
    path = home / result.run_id
    records = journal(path)
    assert [record["record"] for record in records] == ["run_started", *["step_done"] * 3, "run_finished"]
    assert records[0]["script"] == SCRIPT
    assert records[1]["output"] == "ok"
    assert records[1]["input_hash"]
    assert records[-1]["status"] == "complete"
    assert json.loads((path / "input.json").read_text()) == {"k": 1}


def test_others_can_not_read_it(home: Path) -> None:
    path = home / kept().run_id
    assert [stat.S_IMODE(p.stat().st_mode) for p in (home, path, path / "run.jsonl", path / "input.json")] == [
        0o700, 0o700, 0o600, 0o600,
    ]  # fmt: skip


def test_run_ids_are_sortable_and_the_list_begins_with_the_latest() -> None:
    first, second = kept(), kept(client=Scripted(default="z"))
    listed = run_store.list_runs()
    assert {run.run_id: run.status for run in listed} == {first.run_id: "complete", second.run_id: "failed"}
    assert [run.run_id for run in listed] == sorted([first.run_id, second.run_id], reverse=True)


def test_finished_steps_are_reused_and_the_failed_one_runs_again() -> None:
    first = kept(client=Scripted({"two": ConnectionError("gone"), "three": "x"}))
    assert first.status == "failed"
    client = Scripted({"three": "x"})
    again = resume(first.run_id, client)
    assert client.prompts == ["two ok", "three ok"]
    assert (again.status, again.run_id) == ("complete", first.run_id)
    assert {step: r.reused for step, r in again.steps.items()} == {"a": True, "b": False, "final": False}
    client = Scripted()
    again = resume(first.run_id, client)
    assert client.prompts == []
    assert (again.output, again.calls, again.usage.total) == ("x", 0, 0)


def test_typed_values_come_back_as_values() -> None:
    script = '(l)=LLM("list", type=list)\n(final)=LLM("{(l)}[0]", type=int)'
    first = kept(script, Scripted({"list": "['7', 'b']", "7": "7"}))
    again = resume(first.run_id, Scripted(default="not asked"))
    assert (again.value, again.steps["l"].value, again.steps["l"].output) == (7, ["7", "b"], '["7", "b"]')


def test_items_are_reused_one_by_one() -> None:
    script = '(final)=EACH({(input)}, LLM("{(item)}"), max_concurrency=1)'
    first = kept(script, Scripted({"c": ConnectionError("gone")}, default=echo), input=["a", "b", "c", "d"])
    assert first.status == "failed"
    client = Scripted(default=echo)
    assert resume(first.run_id, client).output == '["a", "b", "c", "d"]'
    assert client.prompts == ["c", "d"]


def test_a_dependent_runs_again_only_where_its_prompt_changed() -> None:
    first = kept(client=Scripted({"one": ConnectionError("gone")}))
    client = Scripted({"one": "other", "three": "y"})
    assert resume(first.run_id, client).output == "y"
    assert client.prompts == ["one", "two other", "three ok"]


def test_a_changed_script_or_input_is_refused_and_says_what_differs() -> None:
    first = kept(input={"k": 1})
    changed = SCRIPT.replace("two", "2")
    with pytest.raises(lwt.RunError, match=r"the script changed \(steps b\) and the input changed .*--force"):
        resume(first.run_id, script=changed, input={"k": 2})
    with pytest.raises(lwt.RunError, match="its layout"):
        resume(first.run_id, script="# a comment\n" + SCRIPT)
    client = Scripted({"three": "x"})
    resume(first.run_id, client, script=changed, force=True)
    assert client.prompts == ["2 ok"]


def test_the_same_script_and_input_are_not_refused() -> None:
    first = kept(input={"k": 1, "j": 2})
    assert resume(first.run_id, script=SCRIPT, input={"j": 2, "k": 1}).status == "complete"


@pytest.mark.slow
def test_a_torn_last_line_is_cut_off(home: Path) -> None:
    first = kept()
    file = home / first.run_id / "run.jsonl"
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    for cut in range(len(lines[0]), len(whole)):
        if cut % 37 == 0 or whole[cut - 1 : cut + 1].count(b"\n"):
            file.write_bytes(whole[:cut])
            assert resume(first.run_id).output == "x"
            journal(home / first.run_id)


def test_damage_before_the_end_is_refused_with_its_place(home: Path) -> None:
    first = kept()
    file = home / first.run_id / "run.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + b"{broken\n" + lines[1])
    with pytest.raises(lwt.RunError, match=f"damaged at byte {len(lines[0])}"):
        resume(first.run_id)
    file.write_bytes(lines[0] + b'{"record": "step_done"}\n')
    with pytest.raises(lwt.RunError, match="a record of an unknown form"):
        resume(first.run_id)
    file.write_bytes(b"")
    with pytest.raises(lwt.RunError, match="no complete record"):
        resume(first.run_id)
    assert run_store.list_runs() == []


@pytest.mark.parametrize("name", ["nothing", "../x", "", "a/b"])
def test_an_unknown_run_is_an_error(name: str) -> None:
    with pytest.raises(lwt.RunError, match="does not exist"):
        run_store.load(name)


def test_two_processes_can_not_write_one_run(home: Path) -> None:
    first = kept()
    holder = run_store.load(first.run_id).resume()
    with pytest.raises(lwt.RunError, match="active in another process"):
        resume(first.run_id)
    holder.close()
    assert resume(first.run_id).status == "complete"


def test_a_full_disk_stops_the_recording_and_not_the_run(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    real = os.write

    def full(file: int, body: bytes) -> int:
        if b'"step_done"' in body:
            real(file, body[:10])
            raise OSError(28, "No space left on device")
        return real(file, body)

    monkeypatch.setattr(os, "write", full)
    result = kept()
    monkeypatch.undo()
    assert result.status == "complete"
    assert result.warnings == ("the run can't be recorded any further: No space left on device",)
    assert len((home / result.run_id / "run.jsonl").read_bytes().splitlines()) == 1


def test_a_home_that_can_not_be_written_is_an_error(home: Path) -> None:
    home.write_text("a file")
    with pytest.raises(lwt.RunError, match="can't be recorded"):
        kept()


def test_text_of_any_kind_survives(home: Path) -> None:
    odd = "line\nline\u2028\x00\U0001f600 'é' {(a)}"
    first = kept('(a)=LLM("ask")', Scripted(default=odd))
    assert resume(first.run_id, Scripted(default="no")).output == odd


def test_a_script_built_by_a_program_can_be_kept() -> None:
    from knotwork.lang.trees.lwt import Call, Script, Step, Template, Text

    script = Script((Step("a", Call("LLM", (Template((Text("hello"),)),))),))
    result = asyncio.run(lwt.run(script, llm=Scripted(), record=True))
    assert asyncio.run(lwt.resume(result.run_id, llm=Scripted(default="no"))).output == "ok"


def test_a_cancelled_run_goes_on_where_it_was() -> None:
    async def whole() -> str:
        async def never(prompt: str) -> str:
            if prompt.startswith("two"):
                cancel.set()
                await asyncio.sleep(60)
            return "ok"

        cancel = asyncio.Event()
        result = await lwt.run(SCRIPT, llm=never, record=True, cancel=cancel)
        assert result.status == "cancelled"
        return result.run_id

    client = Scripted({"three": "x"})
    assert resume(asyncio.run(whole()), client).status == "complete"
    assert client.prompts == ["two ok", "three ok"]


KILLED = """
    import asyncio, os, sys, time
    from knotwork import lwt

    class Counter:
        async def generate(self, prompt, **options):
            os.write(log, f"{prompt}\\n".encode())
            await asyncio.sleep(0.02)
            return f"<{prompt}>"

    log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    steps = '(m)=EACH({(input)}, LLM("item {(item)}"), max_concurrency=4)\\n'
    steps += "".join(f'(s{i})=LLM("step {i}")\\n' for i in range(40))
    steps += '(final)=LLM("end {(m)}' + "".join(f"{{(s{i})}}" for i in range(40)) + '")\\n'
    data = list(range(40))
    if len(sys.argv) > 2:
        result = asyncio.run(lwt.resume(sys.argv[2], llm=Counter(), max_concurrency=6))
        print(result.status, sum(step.reused for step in result.steps.values()))
    else:
        asyncio.run(lwt.run(steps, input=data, llm=Counter(), record=True, max_concurrency=6))
"""


@pytest.mark.slow
@pytest.mark.parametrize("asked_before_the_kill", [1, 25, 60])
def test_kill_9_and_resume_repeats_at_most_what_was_in_flight(
    tmp_path: Path, home: Path, asked_before_the_kill: int
) -> None:
    program, log = tmp_path / "program.py", tmp_path / "asked"
    program.write_text(textwrap.dedent(KILLED))
    first = subprocess.Popen([sys.executable, program, log])
    deadline = time.monotonic() + 20
    while not log.exists() or len(log.read_text().splitlines()) < asked_before_the_kill:
        assert time.monotonic() < deadline
        assert first.poll() is None
        time.sleep(0.002)
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = log.read_text().splitlines()
    (run_id,) = [path.name for path in home.iterdir()]
    assert [run.status for run in run_store.list_runs()] == ["running or interrupted"]
    again = subprocess.run([sys.executable, program, log, run_id], capture_output=True, text=True, timeout=60)
    assert again.stdout.startswith("complete"), again.stderr
    asked = log.read_text().splitlines()
    assert len(set(asked)) == 81
    repeated = len(asked) - len(set(asked))
    assert repeated <= 6
    assert len(before) < 81
