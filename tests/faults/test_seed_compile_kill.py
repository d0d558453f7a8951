"""``knotwork seed compile`` ended by kill -9 under a call, and run again: what was answered is not asked for a second time."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
from support.command import environment
from support.compiling import ASKED_AGAIN, GOOD, PHASES, TASK, phase_of, written
from support.model_server import ModelServer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]


def answer(prompt: str) -> str:
    """Answer each step well, but for the graph: there the first answer has to be repaired."""
    phase = phase_of(prompt)
    if phase == "graph" and ASKED_AGAIN not in prompt:
        return written({"nodes": GOOD["graph"]["nodes"][:-1]})
    return written(GOOD[phase])


async def started(folder: Path, url: str) -> asyncio.subprocess.Process:
    words = ("-m", "knotwork", "seed", "compile", "task.md", "-o", "x.json", "--llm", f"{url}#m")
    nothing = asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(
        sys.executable, *words, cwd=folder, env=environment(folder), stdin=nothing, stdout=nothing, stderr=nothing
    )


async def killed_at(folder: Path, server: ModelServer, number: int) -> None:
    """Start it, and kill it once its request ``number`` has come in, which gets no answer."""
    before = len(server.requests)
    running = await started(folder, server.url)
    try:
        for _ in range(3_000):
            if len(server.requests) - before >= number:
                break
            await asyncio.sleep(0.02)
        assert len(server.requests) - before == number
    finally:
        running.kill()
        await running.wait()


def test_no_finished_call_is_paid_for_twice(folder: Path) -> None:
    """Killed under the repair of the second step, then under the third step, then left to its end."""
    (folder / "task.md").write_text(TASK, encoding="utf-8")

    async def main() -> list[str]:
        faults = [None, None, "hang", None, "hang"]
        async with ModelServer(answer=answer, ignores_format=True, faults=faults) as server:
            await killed_at(folder, server, 3)
            assert not (folder / "x.json").exists()
            await killed_at(folder, server, 2)
            assert not (folder / "x.json").exists()
            running = await started(folder, server.url)
            assert await asyncio.wait_for(running.wait(), 60) == 0
            return [request.prompt for request in server.requests]

    asked = asyncio.run(main())
    assert json.loads((folder / "x.json").read_text(encoding="utf-8")) == GOOD["seed"]
    assert [(phase_of(prompt), ASKED_AGAIN in prompt) for prompt in asked] == [
        ("conditions", False), ("graph", False), ("graph", True),  # killed
        ("graph", True), ("seed", False),  # killed
        ("seed", False),
    ]  # fmt: skip
    assert (asked[2], asked[4]) == (asked[3], asked[5])
    assert len(set(asked)) == len(PHASES) + 1
