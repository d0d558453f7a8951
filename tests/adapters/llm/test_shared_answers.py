"""The cache that machines share, in a real PostgreSQL server: what is found and stored, and servers that are no use."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from knotwork.adapters.llm import NotConfigured, Usage
from knotwork.adapters.llm.cache import Cached
from knotwork.adapters.llm.middleware import Validated
from knotwork.adapters.llm.shared_answers import SharedAnswers
from knotwork.adapters.llm.shared_cache import StoredAnswer
from support.postgres import BINARIES, Server
from support.scripted import Scripted

psycopg = pytest.importorskip("psycopg", reason="the extra postgres is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BINARIES, reason="PostgreSQL is not installed in /usr/lib/postgresql"),
]


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def server(running: Server) -> Server:
    running.start() if not answers(running) else None
    running.rows("DROP TABLE IF EXISTS knotwork_answers_1, knotwork_claims_1")
    return running


def answers(server: Server) -> bool:
    try:
        psycopg.connect(server.url, connect_timeout=2).close()
        return True
    except psycopg.OperationalError:
        return False


def machine(
    url: str, file: Path, inner: Any, body: Callable[[Cached], Awaitable[Any]], warnings: list[str] | None = None
) -> Any:
    """Run ``body`` with a client that has a local file of its own."""

    async def main() -> Any:
        warn = (warnings if warnings is not None else []).append
        client = Cached(Validated(inner), file, "openai:m", warn=warn, shared=SharedAnswers(url, warn=warn))
        try:
            return await body(client)
        finally:
            await client.aclose()

    return asyncio.run(main())


def test_an_answer_of_one_machine_is_found_by_another(server: Server, tmp_path: Path) -> None:
    async def ask(client: Cached) -> Any:
        return await client.generate("hi", system="s")

    paid, other = Scripted("hello é😀"), Scripted("never")
    warnings: list[str] = []
    first = machine(server.url, tmp_path / "a.sqlite", paid, ask, warnings)
    second = machine(server.url, tmp_path / "b.sqlite", other, ask, warnings)
    assert (first.cached, second.cached, second.text, second.usage, second.original) == (
        False, True, "hello é😀", Usage(), Usage(10, 5),
    )  # fmt: skip
    server.rows("DROP TABLE knotwork_answers_1")
    third = machine(server.url, tmp_path / "b.sqlite", other, ask, warnings)  # it is in the machine's own file now
    assert third.text == "hello é😀"
    assert (len(paid.calls), other.calls, warnings) == (1, [], [])


def test_keys_are_looked_up_and_answers_stored_in_groups(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[bool] = []
    run = SharedAnswers._run

    async def counted(self: SharedAnswers, query: Any, *, writes: bool = False) -> Any:
        sent.append(writes)
        return await run(self, query, writes=writes)

    monkeypatch.setattr(SharedAnswers, "_run", counted)

    async def ask(client: Cached) -> Any:
        return await asyncio.gather(*(client.generate(f"question {number}") for number in range(640)))

    machine(server.url, tmp_path / "a.sqlite", Scripted("x"), ask)
    assert server.rows("SELECT count(*) FROM knotwork_answers_1") == [(640,)]
    assert sent.count(False) <= 40
    assert sent.count(True) <= 20
    sent.clear()
    found = machine(server.url, tmp_path / "b.sqlite", Scripted("never"), ask)
    assert all(each.cached for each in found)
    assert True not in sent


def test_what_is_damaged_or_does_not_fit_is_asked_for(server: Server, tmp_path: Path) -> None:
    async def ask(client: Cached) -> Any:
        return await client.generate("hi")

    machine(server.url, tmp_path / "a.sqlite", Scripted("hello"), ask)
    server.rows("UPDATE knotwork_answers_1 SET text = 'forged'")
    inner = Scripted("again")
    assert machine(server.url, tmp_path / "b.sqlite", inner, ask).text == "again"
    assert len(inner.calls) == 1


def test_texts_that_postgresql_or_unicode_refuse_cost_nothing(server: Server, tmp_path: Path) -> None:
    async def ask(client: Cached) -> Any:
        return [(await client.generate(f"{number}")).text for number in range(3)]

    texts = ["a\0b", "\ud800", "fine"]
    warnings: list[str] = []
    shared = SharedAnswers(server.url, warn=warnings.append)

    async def store() -> None:
        for number, text in enumerate(texts):
            shared.keep(StoredAnswer(bytes([number]) * 32, text, "stop", "m", b"12345678", 1, 1))
        await shared.aclose()

    asyncio.run(store())
    assert warnings == []
    assert [bytes(text) for (text,) in server.rows("SELECT text FROM knotwork_answers_1 ORDER BY key")] == [
        b"a\0b",
        b"fine",
    ]


def test_a_role_that_may_only_read_reads(server: Server, tmp_path: Path) -> None:
    async def ask(client: Cached) -> Any:
        return [(await client.generate(text)).cached for text in ("known", "new")]

    async def known(client: Cached) -> Any:
        return await client.generate("known")

    machine(server.url, tmp_path / "a.sqlite", Scripted("x"), known)
    server.rows("DROP ROLE IF EXISTS reader")
    server.rows("CREATE ROLE reader LOGIN")
    server.rows("GRANT SELECT ON knotwork_answers_1 TO reader")
    warnings: list[str] = []
    url = server.url.replace("kw:hunter2@", "reader:hunter2@")
    assert machine(url, tmp_path / "b.sqlite", Scripted("y"), ask, warnings) == [True, False]
    (said,) = warnings
    assert said.startswith("the shared cache postgresql://reader@/postgres is only read: permission denied")
    server.rows("DROP OWNED BY reader")


def test_a_server_that_goes_away_costs_one_warning(server: Server, tmp_path: Path) -> None:
    async def ask(client: Cached) -> Any:
        texts = [(await client.generate("before")).text]
        await asyncio.to_thread(server.stop)
        return [*texts, *[(await client.generate(f"after {number}")).text for number in range(5)]]

    warnings: list[str] = []
    assert machine(server.url, tmp_path / "a.sqlite", Scripted("x"), ask, warnings) == ["x"] * 6
    (said,) = warnings
    assert said.startswith("the shared cache postgresql://kw@/postgres can't be used and is ignored: ")
    assert "hunter2" not in said
    server.start()


def test_a_server_that_restarts_costs_nothing(server: Server, tmp_path: Path) -> None:
    async def ask(client: Cached) -> Any:
        await client.generate("before")
        await asyncio.to_thread(server.stop)
        await asyncio.to_thread(server.start)
        return (await client.generate("after")).text

    warnings: list[str] = []
    assert machine(server.url, tmp_path / "a.sqlite", Scripted("x"), ask, warnings) == "x"
    assert warnings == []
    assert server.rows("SELECT count(*) FROM knotwork_answers_1") == [(2,)]


def test_a_server_that_starts_again_after_a_while_is_waited_for(server: Server, tmp_path: Path) -> None:
    async def ask(client: Cached) -> Any:
        await client.generate("before")
        await asyncio.to_thread(server.stop)
        asking = asyncio.ensure_future(client.generate("after"))
        await asyncio.sleep(0.6)  # the first three attempts fail
        await asyncio.to_thread(server.start)
        return (await asking).text

    warnings: list[str] = []
    assert machine(server.url, tmp_path / "a.sqlite", Scripted("x"), ask, warnings) == "x"
    assert warnings == []


def test_many_processes_create_the_table_at_once(server: Server, tmp_path: Path) -> None:
    async def connect_all() -> list[Any]:
        warnings: list[str] = []
        every = [SharedAnswers(server.url, warn=warnings.append) for _ in range(20)]
        await asyncio.gather(*(each.find(b"k" * 32) for each in every))
        for each in every:
            await each.aclose()
        return warnings

    assert asyncio.run(connect_all()) == []


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(NotConfigured) as error:
        SharedAnswers("postgresql://kw:secret@host/db")
    assert "secret" not in error.value.message
    assert error.value.hint == 'pip install "knotwork[postgres]"'


def test_a_server_that_says_nothing_costs_little_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket
    import time

    monkeypatch.setattr("knotwork.adapters.llm.shared_answers._SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://kw@127.0.0.1:{silent.getsockname()[1]}/db"

        async def ask(client: Cached) -> Any:
            return await asyncio.gather(*(client.generate(f"{number}") for number in range(20)))

        warnings: list[str] = []
        began = time.monotonic()
        assert len(machine(url, tmp_path / "a.sqlite", Scripted("x"), ask, warnings)) == 20
        assert time.monotonic() - began < 5
    (said,) = warnings
    assert said.endswith("can't be used and is ignored: no answer within 0.3 s")


def test_a_caller_that_is_cancelled_costs_the_others_nothing(server: Server, tmp_path: Path) -> None:
    async def ask(client: Cached) -> Any:
        calls = [asyncio.ensure_future(client.generate(f"{number}")) for number in range(10)]
        await asyncio.sleep(0)
        calls[3].cancel()
        return await asyncio.gather(*calls, return_exceptions=True)

    found = machine(server.url, tmp_path / "a.sqlite", Scripted("x"), ask)
    assert [isinstance(each, asyncio.CancelledError) for each in found] == [number == 3 for number in range(10)]


@pytest.mark.parametrize(
    ("options", "text", "finish_reason"),
    [
        ({"schema": {"type": "object", "required": ["level"]}}, '{"x": 1}', "stop"),
        ({"choices": ("a", "b")}, "c", "stop"),
        ({}, '{"tool": "rm", "arguments": {}}', "tool_call"),
    ],
)
def test_an_answer_that_somebody_wrote_is_checked(
    server: Server, tmp_path: Path, options: dict[str, Any], text: str, finish_reason: str
) -> None:
    from knotwork.adapters.llm.cache import _digest, request_key

    key = request_key("openai:m", "hi", options)

    async def store() -> None:
        shared = SharedAnswers(server.url)
        shared.keep(StoredAnswer(key, text, finish_reason, "m", _digest(key, text), 1, 1))
        await shared.aclose()

    asyncio.run(store())
    inner = Scripted({"schema": '{"level": 1}', "choices": "a"}.get(next(iter(options), ""), "fine"))

    async def ask(client: Cached) -> Any:
        return await client.generate("hi", **options)

    assert machine(server.url, tmp_path / "a.sqlite", inner, ask).text != text
    assert len(inner.calls) == 1
