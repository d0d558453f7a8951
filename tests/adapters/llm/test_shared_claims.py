"""Claims on the keys of a shared cache, in a real PostgreSQL server: processes with the same requests wait for each other's answers."""

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from knotwork.adapters.llm import BadAnswer
from knotwork.adapters.llm.cache import Cached
from knotwork.adapters.llm.middleware import Validated
from knotwork.adapters.llm.shared_answers import SharedAnswers
from knotwork.adapters.llm.shared_cache import StoredAnswer
from knotwork.adapters.llm.throttled import Throttled
from knotwork.runtime.models.answer_cache import SharedCaches
from support.model_server import ModelServer
from support.postgres import BINARIES, Server
from support.scripted import Scripted

psycopg = pytest.importorskip("psycopg", reason="the extra postgres is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BINARIES, reason="PostgreSQL is not installed in /usr/lib/postgresql"),
]
KEY = b"k" * 32


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def server(running: Server) -> Server:
    running.rows("DROP TABLE IF EXISTS knotwork_answers_1, knotwork_claims_1")
    return running


def claims(server: Server) -> int:
    return int(server.rows("SELECT count(*) FROM knotwork_claims_1")[0][0])


@asynccontextmanager
async def machines(server: Server, folder: Path, *models: Any, warnings: list[str]) -> AsyncIterator[list[Cached]]:
    """Yield a client for each model; each has a file and a connection of its own, as on a machine of its own."""
    clients = [
        Cached(
            Validated(model), folder / f"{number}.sqlite", "openai:m", warn=warnings.append,
            shared=SharedAnswers(server.url, warn=warnings.append),
        )
        for number, model in enumerate(models)
    ]  # fmt: skip
    try:
        yield clients
    finally:
        for client in clients:
            await client.aclose()


def answer(key: bytes) -> StoredAnswer:
    return StoredAnswer(key, "x", "stop", "m", b"12345678", 1, 1)


async def until_called(model: Scripted) -> None:
    while not model.calls:  # noqa: ASYNC110 - the model is a plain object
        await asyncio.sleep(0.005)


def test_two_machines_with_the_same_items_pay_once(server: Server, tmp_path: Path) -> None:
    models = [Scripted("x", delay=0.05) for _ in range(2)]
    warnings: list[str] = []

    async def items(client: Cached) -> None:
        slots = asyncio.Semaphore(16)

        async def one(number: int) -> None:
            async with slots:
                assert (await client.generate(f"item {number}")).text == "x"

        await asyncio.gather(*(one(number) for number in range(400)))

    async def main() -> None:
        async with machines(server, tmp_path, *models, warnings=warnings) as clients:
            await asyncio.gather(*map(items, clients))

    asyncio.run(main())
    assert sum(len(model.calls) for model in models) == 400
    assert (claims(server), warnings) == (0, [])
    assert server.rows("SELECT count(*) FROM knotwork_answers_1") == [(400,)]


def test_a_failed_call_hands_its_claim_over(server: Server, tmp_path: Path) -> None:
    first, second = Scripted(BadAnswer("bad"), delay=0.2), Scripted("fine")

    async def main() -> Any:
        async with machines(server, tmp_path, first, second, warnings=[]) as clients:
            failing = asyncio.ensure_future(clients[0].generate("hi"))
            await until_called(first)
            found = await clients[1].generate("hi")
            with pytest.raises(BadAnswer):
                await failing
            return found

    found = asyncio.run(main())
    assert (found.text, found.cached, len(first.calls), len(second.calls)) == ("fine", False, 1, 1)
    assert claims(server) == 0


def test_a_call_that_failed_is_made_again_at_once(server: Server) -> None:
    async def main() -> None:
        shared = SharedAnswers(server.url)
        for _ in range(3):
            assert await shared.find(KEY, 60) is None
            shared.release(KEY)
        await shared.aclose()

    began = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - began < 2
    assert claims(server) == 0


def test_a_cancelled_call_hands_its_claim_over(server: Server, tmp_path: Path) -> None:
    first, second = Scripted("never", delay=60), Scripted("fine")

    async def main() -> Any:
        async with machines(server, tmp_path, first, second, warnings=[]) as clients:
            calling = asyncio.ensure_future(clients[0].generate("hi"))
            await until_called(first)
            waiting = asyncio.ensure_future(clients[1].generate("hi"))
            await asyncio.sleep(0.2)
            assert not second.calls
            calling.cancel()
            return (await asyncio.wait_for(waiting, 5)).text

    assert asyncio.run(main()) == "fine"
    assert claims(server) == 0


def test_callers_that_are_cancelled_at_any_moment_leave_no_claim(server: Server) -> None:
    async def main() -> None:
        shared = SharedAnswers(server.url)
        await shared.find(b"x" * 32)
        for number in range(60):
            caller = asyncio.ensure_future(shared.find(number.to_bytes(32, "big"), 60))
            await asyncio.sleep(random.uniform(0, 0.006))
            caller.cancel()
            if not (await asyncio.gather(caller, return_exceptions=True))[0]:
                shared.release(number.to_bytes(32, "big"))
        for _ in range(50):
            if not claims(server):
                break
            await asyncio.sleep(0.1)
        assert claims(server) == 0
        await shared.aclose()

    asyncio.run(main())


def test_closing_releases_all_claims(server: Server) -> None:
    async def main() -> None:
        first, second = SharedAnswers(server.url), SharedAnswers(server.url)
        assert await first.find(KEY, 60) is None
        waiting = asyncio.ensure_future(second.find(KEY, 60))
        await asyncio.sleep(0.1)
        await first.aclose()
        assert await asyncio.wait_for(waiting, 5) is None
        assert claims(server) == 1
        await second.aclose()

    asyncio.run(main())
    assert claims(server) == 0


def test_the_claims_of_a_killed_process_are_taken_over(server: Server) -> None:
    code = (
        "import asyncio, sys\n"
        "from knotwork.adapters.llm import shared_answers\n"
        "shared_answers._CLAIM_SECONDS, shared_answers._RENEW_SECONDS = 2.0, 0.3\n"
        "async def main():\n"
        "    shared = shared_answers.SharedAnswers(sys.argv[1])\n"
        f"    print(await shared.find({KEY!r}, 60), flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )

    async def main() -> float:
        shared = SharedAnswers(server.url)
        waiting = asyncio.ensure_future(shared.find(KEY, 60))
        await asyncio.sleep(2.5)  # longer than a claim lasts that is not renewed
        assert not waiting.done()
        child.kill()
        began = time.monotonic()
        assert await waiting is None
        await shared.aclose()
        return time.monotonic() - began

    with subprocess.Popen([sys.executable, "-c", code, server.url], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "None\n"
        assert asyncio.run(main()) < 6


def test_a_wait_ends_with_the_timeout_of_the_call(server: Server, tmp_path: Path) -> None:
    first, second = Scripted("slow", delay=1.5), Scripted("own")

    async def main() -> Any:
        async with machines(server, tmp_path, first, second, warnings=[]) as clients:
            calling = asyncio.ensure_future(clients[0].generate("hi"))
            await until_called(first)
            found = await clients[1].generate("hi", timeout=0.3)
            return found.text, (await calling).text

    assert asyncio.run(main()) == ("own", "slow")
    assert server.rows("SELECT text FROM knotwork_answers_1") == [(b"own",)]
    assert claims(server) == 0


def test_a_wait_takes_no_slot_of_the_model(server: Server, tmp_path: Path) -> None:
    first, second = Scripted("x", delay=0.5), Scripted("y")

    async def main() -> Any:
        async with machines(server, tmp_path, first, Throttled(second, max_concurrency=1), warnings=[]) as clients:
            calling = asyncio.ensure_future(clients[0].generate("same"))
            await until_called(first)
            waiting = asyncio.ensure_future(clients[1].generate("same"))
            await asyncio.sleep(0.05)
            other = await clients[1].generate("other")
            assert not calling.done()
            return other.text, (await waiting).text, (await waiting).cached

    assert asyncio.run(main()) == ("y", "x", True)


def test_a_server_that_is_stopped_ends_the_wait_with_one_warning(tmp_path: Path) -> None:
    first, second = Scripted("x", delay=1.5), Scripted("own")
    warnings: list[str] = []

    async def main(server: Server) -> Any:
        async with machines(server, tmp_path, first, second, warnings=warnings) as clients:
            calling = asyncio.ensure_future(clients[0].generate("hi"))
            await until_called(first)
            waiting = asyncio.ensure_future(clients[1].generate("hi"))
            await asyncio.sleep(0.2)
            await asyncio.to_thread(server.stop)
            return (await asyncio.wait_for(waiting, 5)).text, (await calling).text

    with Server() as server:
        assert asyncio.run(main(server)) == ("own", "x")
    assert len(warnings) == 2  # one of each machine
    assert all(said.startswith("the shared cache postgresql://kw@/postgres can't be used") for said in warnings)


def test_a_role_without_rights_on_the_claims_works_without_them(server: Server) -> None:
    async def create() -> None:
        shared = SharedAnswers(server.url)
        await shared.find(KEY)
        await shared.aclose()

    asyncio.run(create())
    server.rows("DROP ROLE IF EXISTS writer")
    server.rows("CREATE ROLE writer LOGIN")
    server.rows("GRANT SELECT, INSERT ON knotwork_answers_1 TO writer")
    warnings: list[str] = []

    async def main() -> None:
        shared = SharedAnswers(server.url.replace("kw:", "writer:"), warn=warnings.append)
        assert [await shared.find(KEY, 60), await shared.find(KEY, 60)] == [None, None]
        shared.keep(answer(KEY))
        await shared.aclose()

    asyncio.run(main())
    assert server.rows("SELECT count(*) FROM knotwork_answers_1") == [(1,)]
    (said,) = warnings
    assert said.startswith("the shared cache postgresql://writer@/postgres has no claims")
    server.rows("DROP OWNED BY writer")


def test_many_processes_with_failures_and_cancellations_never_block(server: Server) -> None:
    keys = [number.to_bytes(32, "big") for number in range(300)]
    warnings: list[str] = []
    made: list[bytes] = []
    chance = random.Random(7)

    async def caller(shared: SharedAnswers, key: bytes) -> None:
        while await shared.find(key, 60) is None:
            try:
                await asyncio.sleep(chance.uniform(0, 0.01))
            except asyncio.CancelledError:  # whoever has the claim releases it, as the cache does
                shared.release(key)
                raise
            if chance.random() < 0.2:
                shared.release(key)
                continue
            made.append(key)
            shared.keep(answer(key))
            return

    async def main() -> None:
        every = [SharedAnswers(server.url, warn=warnings.append) for _ in range(4)]
        calls = []
        for shared in every:
            order = chance.sample(keys, len(keys))
            calls += [asyncio.ensure_future(caller(shared, key)) for key in order]
        await asyncio.sleep(0.1)
        for call in chance.sample(calls, 100):
            call.cancel()
        await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 30)
        for shared in every:
            await shared.aclose()

    asyncio.run(main())
    assert (warnings, claims(server)) == ([], 0)
    assert len(made) == len(set(made))


def test_the_models_of_an_opener_share_one_connection(server: Server) -> None:
    async def main() -> None:
        caches = SharedCaches()
        first, second = (caches.open(server.url, pytest.fail) for _ in range(2))
        assert await first.find(KEY, 60) is None
        waiting = asyncio.ensure_future(second.find(KEY, 60))
        await asyncio.sleep(0.1)
        assert server.rows("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'knotwork'") == [(1,)]
        first.keep(answer(KEY))
        await first.aclose()
        await first.aclose()
        assert await waiting == answer(KEY)
        await second.aclose()

    asyncio.run(main())


def test_a_server_that_is_missing_gives_one_warning_for_all_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from knotwork.runtime.api.clients import ModelOpener

    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path))
    warnings: list[str] = []

    async def main() -> None:
        url = f"postgresql://kw@/db?host={tmp_path}"
        async with ModelServer() as model, ModelOpener(warnings.append, cache=url) as opener:
            for name in ("a", "b"):
                assert (await opener.open(f"{model.url}#{name}").generate("hi")).text
        warnings[:] = [said for said in warnings if "requested" not in said]  # the server answers with another name

    asyncio.run(main())
    (said,) = warnings
    assert said.startswith("the shared cache postgresql://kw@/db can't be used and is ignored")
