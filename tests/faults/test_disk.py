"""A run on a bad disk: full, read-only, damaged files, two at once. Told in a line; nothing that was paid for is lost."""

import asyncio
import json
import os
import resource
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from knotwork import lwt
from knotwork.runtime.lwt import run_store
from support.clients import Scripted, echo
from support.command import Result, cassette, environment, process

pytestmark = pytest.mark.slow

SCRIPT = '(a)=LLM("one")\n(b)=LLM("two {(a)}")\n(final)=EACH({(input)}, LLM("x {(item)} {(b)}"))\n'
DATA = ["p", "q", "r"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path))
    return tmp_path / "runs"


def kept() -> lwt.Run:
    return lwt.run_sync(SCRIPT, input=DATA, llm=Scripted(default=echo), record=True)


def resumed(run_id: str, client: Scripted, **rest: bool) -> lwt.Run:
    return asyncio.run(lwt.resume(run_id, llm=client, **rest))


@pytest.mark.parametrize("line", [1, 2, 3, 4, 5])
def test_any_flipped_byte_is_found_and_costs_one_record_at_most(home: Path, line: int) -> None:
    first = kept()
    file = home / first.run_id / "run.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    start = sum(map(len, lines[:line]))
    for position in range(start, start + len(lines[line]), 11):
        body = bytearray(file.read_bytes())
        body[position] ^= 0x04
        file.write_bytes(body)
        client = Scripted(default=echo)
        try:
            again = resumed(first.run_id, client)
        except lwt.RunError as error:
            assert f"damaged at byte {start}" in str(error)
            assert "--force" in str(error)
            again = resumed(first.run_id, client, force=True)
        assert again.output == first.output
        assert len(client.prompts) <= 2
        file.write_bytes(b"".join(lines))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "no complete record"),
        (b"\n\n", "damaged at byte 0"),
        (b"\x00" * 4096, "no complete record"),
        (b"\xff\xfe\n", "damaged at byte 0"),
        (b"[" * 100_000 + b"\n", "damaged at byte 0"),
        (b"7" * 10_000 + b"\n", "damaged at byte 0"),
        (b'["a list"]\n', "damaged at byte 0"),
        (b'{"some": "log"}\n', "does not begin with run_started"),
        (b'{"record": "run_started", "run": "x"}\n', "does not begin with run_started"),
        (b'{"record": "run_started", "run": [], "time": {}, "script": 5}\n', "does not begin with run_started"),
        (b"x" * (1 << 24), "no complete record"),
    ],
)
def test_a_journal_that_is_none_is_refused_in_a_line(tmp_path: Path, body: bytes, said: str) -> None:
    folder = tmp_path / "knotwork" / "runs" / "r1"
    folder.mkdir(parents=True)
    (folder / "run.jsonl").write_bytes(body)
    with pytest.raises(lwt.RunError, match=said) as raised:
        run_store.load(folder)
    assert len(str(raised.value)) < 400
    assert run_store.list_runs(folder.parent) == [] or b"run_started" in body


def test_records_of_other_kinds_are_passed_over_with_force(home: Path) -> None:
    first = kept()
    file = home / first.run_id / "run.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    odd = [
        b'{"record": "step_done", "step": {}, "item": [], "status": "done", "input_hash": "1", "output": 3}\n',
        b"{}\n",
    ]
    file.write_bytes(b"".join([lines[0], *odd, *lines[1:]]))
    with pytest.raises(lwt.RunError, match="a record of an unknown form"):
        resumed(first.run_id, Scripted())
    client = Scripted()
    assert resumed(first.run_id, client, force=True).output == first.output
    assert client.prompts == []


def test_what_another_process_finished_meanwhile_is_not_asked_again(home: Path) -> None:
    first = lwt.run_sync(SCRIPT, input=DATA, llm=Scripted({"two": ConnectionError("gone")}), record=True)
    early = run_store.load(first.run_id)
    whole = resumed(first.run_id, Scripted(default=echo))
    recorder = early.resume()
    recorder.close()
    answers = [recorder.recall(*key) for key in run_store.load(first.run_id).answers]
    assert whole.status == "complete"
    assert len(answers) == 5
    assert None not in answers


def test_a_run_that_can_only_be_read_is_refused_in_a_line(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, real = kept(), os.open

    def read_only(path: str, flags: int, *rest: int) -> int:
        if flags & os.O_RDWR:
            raise OSError(30, "Read-only file system")
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(lwt.RunError, match=r"can't be written: Read-only file system"):
        resumed(first.run_id, Scripted())
    assert run_store.load(first.run_id).answers


def limited(size: int, folder: Path, *words: str) -> Result:
    """Run the command where no file may grow beyond ``size`` bytes: a full disk, as far as a program can tell."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    done = subprocess.run(
        [sys.executable, "-B", "-m", "knotwork", *words], cwd=folder, env=environment(folder), preexec_fn=limit,
        capture_output=True, timeout=60,
    )  # fmt: skip
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_a_disk_that_fills_up_costs_the_record_and_not_the_answers(tmp_path: Path) -> None:
    (tmp_path / "s.lwt").write_text(SCRIPT)
    (tmp_path / "in.json").write_text(json.dumps(DATA))
    spec = cassette(tmp_path / "c.jsonl", {"one": "1" * 200, "two": "2" * 3000, "x ": "3"})
    words = ("run", "s.lwt", "--input", "in.json", "--llm", spec)
    done = limited(1500, tmp_path, *words)
    assert (done.code, json.loads(done.out)) == (0, ["3", "3", "3"])
    assert (
        done.err.count("can't be recorded any further: only part of the record was written") == 2
    )  # at once, and at the end
    assert "Traceback" not in done.err
    (folder,) = (tmp_path / "knotwork" / "runs").iterdir()
    again = process("run", "--resume", folder.name, "--llm", spec, home=tmp_path)
    assert (again.code, again.out) == (0, done.out)
    assert "1 reused" in again.err


def test_a_disk_that_is_full_from_the_start_ends_it_before_the_first_call(tmp_path: Path) -> None:
    (tmp_path / "s.lwt").write_text(SCRIPT)
    (tmp_path / "in.json").write_text(json.dumps(DATA))
    spec = cassette(tmp_path / "c.jsonl", {"": "1"})
    done = limited(100, tmp_path, "run", "s.lwt", "--input", "in.json", "--llm", spec)
    assert (done.code, done.out) == (1, "")
    assert "can't be recorded in" in done.err
    assert "Traceback" not in done.err
    assert list((tmp_path / "knotwork" / "runs").iterdir()) == []


def _a_folder(path: Path) -> None:
    path.mkdir()


def _noise(path: Path) -> None:
    path.write_bytes(b"not a database at all " * 500)


def _half(path: Path) -> None:
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE answers_1 (key BLOB)")
    made.close()


@pytest.mark.parametrize("damage", [_a_folder, _noise, _half])
def test_a_damaged_call_cache_is_a_warning(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    from knotwork.adapters.llm.cache import Cached
    from knotwork.adapters.llm.middleware import as_client

    damage(tmp_path / "answers.sqlite")
    said: list[str] = []

    async def whole() -> list[str]:
        client = Cached(as_client(echo), tmp_path / "answers.sqlite", "test", warn=said.append)
        try:
            return [(await client.generate(text)).text for text in ("a", "b", "a")]
        finally:
            await client.aclose()

    assert asyncio.run(whole()) == ["a", "b", "a"]
    assert len(said) == 1
    assert "can't be used and is ignored" in said[0]
    assert str(tmp_path / "answers.sqlite") in said[0]


def test_a_call_cache_that_another_process_locks_for_long_holds_up_nothing_for_long(tmp_path: Path) -> None:
    from time import perf_counter

    file = tmp_path / "answers.sqlite"
    program = f"""
        import asyncio, sys
        from pathlib import Path
        from knotwork.adapters.llm.cache import Cached
        from knotwork.adapters.llm.middleware import as_client
        async def whole():
            client = Cached(as_client(lambda prompt: prompt), Path({str(file)!r}), "test", warn=print, busy=0.3)
            print([(await client.generate(str(n))).text for n in range(5)])
            await client.aclose()
        asyncio.run(whole())
    """
    lock = sqlite3.connect(file, isolation_level=None)
    lock.execute("PRAGMA journal_mode=WAL")
    lock.execute("BEGIN EXCLUSIVE")
    began = perf_counter()
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=30)
    lock.rollback()
    lock.close()
    assert "['0', '1', '2', '3', '4']" in done.stdout
    assert done.stdout.count("can't be used and is ignored: database is locked") == 1
    assert perf_counter() - began < 10


def test_two_processes_that_resume_one_run(tmp_path: Path) -> None:
    spec = cassette(tmp_path / "c.jsonl", {"one": "1", "two": None, "x ": "3"})
    (tmp_path / "s.lwt").write_text(SCRIPT)
    (tmp_path / "in.json").write_text(json.dumps(DATA))
    process("run", "s.lwt", "--input", "in.json", "--llm", spec, home=tmp_path)
    (folder,) = (tmp_path / "knotwork" / "runs").iterdir()
    holder = run_store.load(folder).resume()
    done = process("run", "--resume", folder.name, "--llm", spec, home=tmp_path)
    holder.close()
    assert done.code == 2
    assert "is active in another process" in done.err
    assert "Traceback" not in done.err
