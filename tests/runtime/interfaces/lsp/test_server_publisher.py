"""When a text is checked: answers come first, for a moment; whoever waits for what is found is told, whatever happens."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import define, field
from knotwork.lang.service import Known
from knotwork.runtime.interfaces.lsp import server
from knotwork.runtime.interfaces.lsp.documents import Document, Text
from knotwork.runtime.interfaces.lsp.server import Findings, Publisher, Worker


@define
class Here:
    """A publisher, and what it told."""

    answering: bool = False
    told: list[Findings] = field(factory=list)
    failures: list[BaseException] = field(factory=list)
    known: Callable[[Document], Known] = lambda _: Known()

    def publisher(self) -> Publisher:
        return Publisher(
            Worker("test"), self.known, self.told.append, self.failures.append, lambda: 0.0, lambda: self.answering
        )

    async def until(self, holds: Callable[[], bool]) -> None:
        for _ in range(30_000):
            if holds():
                return
            await asyncio.sleep(0.001)
        raise TimeoutError


def document(text: str = '(final)=LLM("x")') -> Document:
    return Document("file:///a.lwt", "lwt", 1, Text(text), Path("/a.lwt"))


async def test_answers_come_before_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_GIVES_WAY", 60.0)
    here = Here(answering=True)

    here.publisher().changed(document(), at_once=True)
    await asyncio.sleep(0.05)
    assert here.told == []
    here.answering = False
    await here.until(lambda: bool(here.told))


async def test_a_check_waits_for_answers_only_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_GIVES_WAY", 0.01)
    here = Here(answering=True)

    here.publisher().changed(document(), at_once=True)
    await here.until(lambda: bool(here.told))


def test_whoever_waits_for_a_check_that_fails_is_told_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("seven")

    monkeypatch.setattr(server, "check_reading", fail)
    here = Here()

    async def run() -> None:
        with pytest.raises(ZeroDivisionError, match="seven"):
            await here.publisher().findings(document())

    asyncio.run(run())
    assert [str(each) for each in here.failures] == ["seven"]


async def test_whoever_waits_for_a_text_that_is_closed_is_not_left_waiting() -> None:
    here = Here()

    publisher, text = here.publisher(), document()
    waiting = asyncio.ensure_future(publisher.findings(text))
    await asyncio.sleep(0)
    publisher.closed(text.uri)
    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_a_worker_tells_what_came_of_each_work_and_begins_none_that_was_cancelled() -> None:
    worker = Worker("test")
    assert worker.submit(divmod, 7, 2).result(30) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        worker.submit(divmod, 7, 0).result(30)
    done: list[int] = []
    gate = worker.submit(asyncio.run, asyncio.sleep(0.05))
    second, third = worker.submit(done.append, 2), worker.submit(done.append, 3)
    assert second.cancel()
    gate.result(30)
    third.result(30)
    assert done == [3]
    worker.shutdown()
