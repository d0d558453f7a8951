"""``max_concurrency="auto"`` in runs: a real server that answers 429 if too many requests run, the message at the end, and refusals."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from knotwork import answers, evals, gasl, lwt, planner, seed
from knotwork.runtime.api.clients import ModelOpener, concurrency_of
from knotwork.runtime.errors import RequestError
from knotwork.runtime.events import Events, Warned
from support.command import call
from support.evaluations import SEED, contexts, gold_rows

_ANSWER = {
    "model": "m", "choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 1},
}  # fmt: skip


class _Busy:
    """What a server saw: how many requests ran at once, and how many were refused."""

    def __init__(self, most: int) -> None:
        self.most, self.active, self.highest, self.refused = most, 0, 0, 0
        self.writers: list[asyncio.StreamWriter] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection, each after 0.2 s; those above ``most`` get 429 at once."""
        self.writers.append(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                await reader.readexactly(int(head.partition("content-length:")[2].split("\r\n")[0]))
                self.active += 1
                self.highest = max(self.highest, self.active)
                is_refused = self.active > self.most
                self.refused += is_refused
                if not is_refused:
                    await asyncio.sleep(0.2)
                body = json.dumps({"error": {"message": "busy"}} if is_refused else _ANSWER).encode()
                status = "429 Too Many Requests\r\nRetry-After: 0" if is_refused else "200 OK"
                kind = "Content-Type: application/json"
                writer.write(f"HTTP/1.1 {status}\r\n{kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                self.active -= 1
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def busy_server(most: int) -> AsyncIterator[tuple[str, _Busy]]:
    seen = _Busy(most)
    server = await asyncio.start_server(seen.answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1#m", seen
    finally:
        server.close()
        for writer in seen.writers:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)


@pytest.mark.slow
def test_the_limit_falls_below_what_the_server_refuses() -> None:
    async def work() -> tuple[_Busy, list[str], int]:
        told: list[str] = []
        auto = concurrency_of("auto")
        async with (
            busy_server(24) as (spec, seen),
            ModelOpener(told.append, max_concurrency=auto, cache=False) as opener,
        ):
            client, left = opener.open(spec), iter(range(300))

            async def caller() -> int:
                return sum([bool((await client.generate(f"{number}?")).text) for number in left])

            done = sum(await asyncio.gather(*(caller() for _ in range(64))))
        return seen, told, done

    seen, told, done = asyncio.run(work())
    assert done == 300 and 24 < seen.highest <= 32 and 0 < seen.refused <= 16
    (line,) = told
    assert line.startswith("automatic concurrency of http://127.0.0.1:") and " 16 calls at once at the end" in line
    assert line.endswith(", 32 at most; halved 1 time, the last time because of: the server answered 429")


class _Yes:
    async def generate(self, prompt: str, **options: Any) -> str:
        return '{"rating": "positive"}'


def test_runs_take_auto_and_tell_what_it_came_to(caplog: pytest.LogCaptureFixture) -> None:
    auto: dict[str, Any] = {"llm": _Yes(), "max_concurrency": "auto"}
    evals.run_sync(SEED, gold_rows(), contexts=contexts(), **auto)
    seed.collect_sync(seed.load(SEED), contexts(), cache=False, **auto)
    lwt.run_sync('(final)=LLM("Hello")', **auto)
    line = "automatic concurrency of the custom client: 8 calls at once at the end, 8 at most"
    assert [each.message for each in caplog.records] == [line] * 3
    answered = answers.generate_answer_sync("Say yes", judges=0, checks=["words:1..9"], iter_max=1, **auto)
    assert line in answered.warnings
    heard, events = list[Any](), Events()
    events.subscribe(heard.append)
    planner.rank_sync(["Milk", "Tea"], "hot", events=events, **auto)
    assert [each.message for each in heard if isinstance(each, Warned)][-1:] == [line]


@pytest.mark.slow
def test_each_has_more_than_eight_calls_at_once() -> None:
    async def work() -> int:
        async with busy_server(200) as (spec, seen):
            script = '(final)=EACH({(input)}, LLM("{(item)}?"))'
            run = await lwt.run(script, input=list(range(150)), llm=spec, max_concurrency="auto")
            assert run.status == "complete", run
        return seen.highest

    assert asyncio.run(work()) > 8


def test_what_can_not_adapt_is_refused(folder: Path) -> None:
    for wrong in (0, True, "many", 2.5):
        with pytest.raises(RequestError, match="neither a whole number above 0 nor 'auto'"):
            evals.run_sync(SEED, gold_rows(), contexts=contexts(), llm=_Yes(), max_concurrency=wrong)
    with pytest.raises(RequestError, match="neither a whole number above 0 nor 'auto'"):
        seed.collect_sync(seed.load(SEED), contexts(), llm=_Yes(), cache=False, max_concurrency="many")
    url = "http://127.0.0.1:9/v1#m"
    given: dict[str, Any] = {"llm": url, "cache": False, "workers": 2, "max_concurrency": "auto"}
    with pytest.raises(RequestError, match="each sees only its own calls"):
        seed.collect_sync(seed.load(SEED), contexts(), **given)
    with pytest.raises(RequestError, match="each sees only its own calls"):
        evals.run_sync(SEED, gold_rows(), contexts=contexts(), **given)
    with pytest.raises(RequestError, match="given as a spec"):
        gasl.open("nx:karate_club", llm=_Yes(), max_concurrency="auto")
    (folder / "a.lwt").write_text('(final)=LLM("Hello")')
    for wrong_text in ("0", "fast", "-3"):
        done = call("run", "a.lwt", "--llm", url, "--max-concurrency", wrong_text)
        assert done.code == 2 and "neither a whole number above 0 nor 'auto'" in done.err


def test_the_command_says_what_it_came_to(folder: Path) -> None:
    (folder / "a.lwt").write_text('(final)=LLM("Hello")')
    (folder / "a.jsonl").write_text(
        '{"cassette": 1, "made_by": "knotwork", "model": "m"}\n'
        '{"request": {"prompt_contains": "Hello"}, "answer": {"text": "Hi", "usage": {"prompt_tokens": 1, "completion_tokens": 1}}}\n'
    )
    done = call("run", "a.lwt", "--llm", "replay:a.jsonl", "--max-concurrency", "auto")
    assert done.code == 0 and "automatic concurrency of replay:a.jsonl: 8 calls at once at the end" in done.err, (
        done.err
    )
