"""Stopping a run over many contexts: no call goes on, no connection stays open, and what came back is not lost."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from knotwork import seed
from knotwork.runtime.models.factory import open_model
from knotwork.runtime.seeds import seed_store
from knotwork.runtime.seeds.seed_run import run_many
from support.review_server import contexts
from support.seeds import SEED
from support.served import served, until


@pytest.mark.slow
@pytest.mark.parametrize("how", ["cancel", "event", "error"])
def test_a_run_that_is_stopped_leaves_no_socket_and_keeps_what_came_back(tmp_path: Path, how: str) -> None:
    fs, given = seed.load(SEED), contexts(50, 4)
    recorder = seed_store.start(fs, contexts=seed_store.contexts_hash(given), base=tmp_path)

    async def work(spec: str) -> None:
        model, cancel, done = open_model(spec), asyncio.Event(), asyncio.Event()

        def take(result: Any) -> None:
            if result.index == 4:
                done.set()
                if how == "error":
                    raise OSError("no space")

        running = asyncio.create_task(
            run_many(fs, given, model, on_result=take, max_concurrency=6, record=recorder, cancel=cancel)
        )
        await done.wait()
        if how == "event":
            cancel.set()
            assert (await running).status == "cancelled"
        else:
            running.cancel()
            with pytest.raises((asyncio.CancelledError, OSError)):
                await running
        await model.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with served(tmp_path, "--delay", "0.01", module="support.review_server") as server:
        asyncio.run(work(server.spec))
        until(lambda: server.closed == 6)
        asked = sum(server.asked.values())
    recorder.close()
    stored = seed_store.load(recorder.path)
    assert asked - 6 <= stored.extracted <= asked
    assert stored.extracted >= 20
