"""What is known beside texts, however often its files change: always what was loaded last, and looked for only now and then."""

import asyncio
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from knotwork.lang.service import StateKey
from knotwork.runtime.interfaces.lsp import workspace
from knotwork.runtime.interfaces.lsp.server import KnotworkServer, Worker
from knotwork.runtime.interfaces.lsp.workspace import Problem, Settings, WorkspaceData


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(30_000):
        if holds():
            return
        await asyncio.sleep(0.001)
    raise TimeoutError


@pytest.mark.slow
def test_a_state_that_is_loaded_again_and_again_is_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    stamps, numbers = count(), count()
    monkeypatch.setattr(workspace, "_stamp", lambda place: next(stamps))
    monkeypatch.setattr(workspace, "_load", lambda kind, place: ({f"key{next(numbers)}": StateKey("LIST")}, None))

    async def run() -> None:
        loads = 0

        def changed() -> None:
            nonlocal loads
            loads += 1

        beside = WorkspaceData(Worker("test"), changed, lambda problem: None)
        settings = Settings(state="x")
        for number in range(300):
            beside.look()
            beside.known(settings)
            await until(lambda wanted=number + 1: loads == wanted)  # type: ignore[misc]
            state = beside.known(settings).state
            assert state is not None and list(state) == [f"key{number}"]

    asyncio.run(run())


async def test_files_are_not_looked_at_with_every_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    monkeypatch.setattr(workspace, "_stamp", lambda place: looked.append(place) or "same")
    monkeypatch.setattr(workspace, "_GLANCE", 3600.0)
    (tmp_path / "in.json").write_text("{}")

    beside = WorkspaceData(Worker("test"), lambda: None, lambda problem: None)
    settings = Settings(input=str(tmp_path / "in.json"))
    await until(lambda: beside.known(settings).input == {})
    for _ in range(50):
        beside.known(settings)
    assert len(looked) == 1
    beside.look()
    beside.known(settings)
    assert len(looked) == 2


def test_the_same_complaint_is_made_once_among_many(monkeypatch: pytest.MonkeyPatch) -> None:
    server = KnotworkServer()
    told: list[str] = []
    monkeypatch.setattr(server.protocol, "writer", object())
    monkeypatch.setattr(server, "window_show_message", lambda params: told.append(params.message))
    for number in range(300):
        server.complain(Problem(f"problem {number}"))
    for number in range(299, 250, -1):
        server.complain(Problem(f"problem {number}"))
    assert len(told) == 300
