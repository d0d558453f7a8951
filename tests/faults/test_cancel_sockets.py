"""Cancelling with calls in flight, through the real SDK and real sockets: nothing is left, and the server sees it."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from knotwork import lwt
from support.command import environment
from support.cpu_time import pace
from support.served import Served, served, until

pytestmark = pytest.mark.slow

FIFTY = (
    "".join(f'(s{i})=LLM("{i}")\n' for i in range(50))
    + '(final)=LLM("'
    + "".join(f"{{(s{i})}}" for i in range(50))
    + '")'
)
EACH = '(final)=EACH({(input)}, LLM("{(item)}"), max_concurrency=50)'


def sockets() -> int:
    """Count this process's connections to models."""
    return sum(c.type == socket.SOCK_STREAM and bool(c.raddr) for c in psutil.Process().net_connections())


@pytest.mark.parametrize("script", [FIFTY, EACH], ids=["steps", "items"])
@pytest.mark.parametrize("how", ["task", "event", "timeout"])
def test_cancel_with_50_calls_in_flight_leaves_no_task_and_no_socket(tmp_path: Path, script: str, how: str) -> None:
    async def whole(server: Served) -> float:
        before, cancel = sockets(), asyncio.Event()
        run = lwt.run(script, input=list(range(80)), llm=server.spec, max_concurrency=50, cancel=cancel)
        limit = asyncio.timeout(None)

        async def limited() -> None:
            async with limit:
                await run

        running = asyncio.ensure_future(limited())
        while not server.reached(50)():
            assert not running.done()
            await asyncio.sleep(0.01)
        assert sockets() == before + 50
        began = time.perf_counter()
        if how == "task":
            running.cancel()
        elif how == "event":
            cancel.set()
        else:
            limit.reschedule(asyncio.get_running_loop().time())
        await asyncio.gather(running, return_exceptions=True)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert sockets() == before
        assert running.cancelled() == (how == "task")
        return time.perf_counter() - began

    with served(tmp_path, "--always", "hang") as server:
        assert asyncio.run(whole(server)) < 1
        until(lambda: server.closed == 50)
        assert server.reached(50)() and not server.reached(51)()


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_an_interrupted_process_keeps_what_is_finished_and_closes_its_connections(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "s.lwt").write_text('(a)=CONST("kept")\n(b)=LLM("ask {(a)}")\n' + EACH.replace("final", "m") +
                                    '\n(final)=LLM("{(b)}{(m)}")\n')  # fmt: skip
    (tmp_path / "in.json").write_text(str(list(range(80))))
    with served(tmp_path, "--always", "hang") as server:
        words = ["run", "s.lwt", "--input", "in.json", "--llm", server.spec, "--max-concurrency", "40"]
        running = subprocess.Popen(
            [sys.executable, "-m", "knotwork", *words], cwd=tmp_path, env=environment(tmp_path),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        until(server.reached(40))
        began = time.perf_counter()
        running.send_signal(number)
        out, err = running.communicate(timeout=20)
        assert time.perf_counter() - began < 3 * pace()
        until(lambda: server.closed == 40)
    assert (running.returncode, out) == (130, "")
    assert "resume with: knotwork run" in err
    assert "Traceback" not in err
    (folder,) = (tmp_path / "knotwork" / "runs").iterdir()
    records = [json.loads(line) for line in (folder / "run.jsonl").read_bytes().splitlines()]
    assert [r["output"] for r in records if r["record"] == "step_done"] == ["kept"]
    assert records[-1]["status"] == "cancelled"
