"""The contract of engines, with real workers: processes, and tasks of a real local Ray cluster."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from knotwork.adapters.engine import Engine, EngineError, Setup, WorkerDied
from knotwork.adapters.engine.processes import ProcessEngine
from support.served import until

pytestmark = pytest.mark.slow
Work = Callable[[Engine], Awaitable[Any]]
SETUP = Setup("support.engine_handlers:speaking", b"hello")


def on_processes(work: Work, workers: int = 1, setup: Setup = SETUP) -> Any:
    async def whole() -> Any:
        engine = ProcessEngine(setup, workers)
        await engine.start()
        try:
            return await work(engine)
        finally:
            await engine.aclose()
            assert engine.alive == 0

    return asyncio.run(whole())


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A local cluster, which the engines of this module use and leave running."""
    found = pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    path = os.pathsep.join(place for place in __import__("sys").path if place)
    found.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": path}})
    yield found
    found.shutdown()


@pytest.fixture(params=["processes", "ray"])
def run(request: pytest.FixtureRequest) -> Callable[..., Any]:
    if request.param == "processes":
        return on_processes
    request.getfixturevalue("ray")
    from knotwork.adapters.engine.ray_tasks import RayEngine

    def on_ray(work: Work, workers: int = 1, setup: Setup = SETUP) -> Any:
        async def whole() -> Any:
            engine = RayEngine(setup, workers)
            await engine.start()
            try:
                return await work(engine)
            finally:
                await engine.aclose()

        return asyncio.run(whole())

    return on_ray


@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_chunks_of_one_worker_use_one_handler(run: Callable[..., Any]) -> None:
    async def work(engine: Engine) -> list[bytes]:
        return [await engine.run(f"echo:{word}".encode()) for word in ("a", "b")]

    assert run(work, setup=Setup(SETUP.factory, b"alone")) == [b"alone 1 a", b"alone 2 b"]


@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_dies_costs_only_its_chunk(run: Callable[..., Any]) -> None:
    async def work(engine: Engine) -> tuple[str, bytes]:
        with pytest.raises(WorkerDied) as died:
            await engine.run(b"die")
        return str(died.value), await engine.run(b"echo:again")

    reason, after = run(work)
    assert reason and after.endswith(b" again")


@pytest.mark.filterwarnings("ignore")
def test_an_exception_in_a_worker_is_an_error_of_the_engine(run: Callable[..., Any]) -> None:
    async def work(engine: Engine) -> bytes:
        with pytest.raises(EngineError, match="ValueError: the fault"):
            await engine.run(b"raise:the fault")
        return await engine.run(b"echo:again")

    assert run(work).endswith(b"again")


@pytest.mark.filterwarnings("ignore")
def test_results_may_be_large_and_workers_may_print(run: Callable[..., Any]) -> None:
    async def work(engine: Engine) -> tuple[int, bytes]:
        return len(await engine.run(b"size:9000000")), await engine.run(b"print")

    assert run(work) == (9_000_000, b"printed")


def test_a_death_names_the_signal_or_the_last_words() -> None:
    async def work(engine: Engine) -> list[str]:
        reasons = []
        for chunk in (b"die", b"exit"):
            with pytest.raises(WorkerDied) as died:
                await engine.run(chunk)
            reasons.append(str(died.value))
        return reasons

    assert on_processes(work) == ["killed by signal 9", "it ended with exit code 3: memory is full"]


def test_chunks_run_in_as_many_processes_as_there_are_workers() -> None:
    async def work(engine: Engine) -> set[bytes]:
        await asyncio.gather(*(engine.run(b"size:1") for _ in range(8)))
        return {await engine.run(b"pid") for _ in range(8)}

    assert len(on_processes(work, workers=3)) <= 3
    assert len(on_processes(work, workers=1)) == 1


def test_a_cancelled_engine_returns_what_is_finished() -> None:
    async def work(engine: Engine) -> tuple[bytes, bytes]:
        await engine.run(b"echo:first")
        waiting = asyncio.create_task(engine.run(b"wait"))
        await asyncio.sleep(0.2)
        await engine.cancel()
        return await waiting, await engine.run(b"echo:next")

    assert on_processes(work) == (b"what is finished", b"hello 3 next")


def test_a_cancelled_caller_ends_its_worker() -> None:
    async def work(engine: Engine) -> bytes:
        first = await engine.run(b"pid")
        waiting = asyncio.create_task(engine.run(b"wait"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await engine.run(b"pid") != first
        return await engine.run(b"echo:next")

    assert on_processes(work) == b"hello 2 next"


def test_workers_close_their_handlers(tmp_path: Path) -> None:
    async def work(engine: Engine) -> bytes:
        return await engine.run(b"echo:x")

    place = tmp_path / "closed"
    on_processes(work, setup=Setup(SETUP.factory, str(place).encode()))
    assert place.read_text() == "closed"


def test_an_unknown_handler_is_an_error_of_the_engine() -> None:
    async def work(engine: Engine) -> None:
        with pytest.raises(EngineError, match="No module named"):
            await engine.run(b"echo:x")

    on_processes(work, setup=Setup("support.no_such_module:handler", b""))


def test_workers_end_when_their_driver_is_killed(tmp_path: Path) -> None:
    import subprocess
    import sys
    import textwrap

    import psutil

    program = textwrap.dedent(
        """
        import asyncio
        from knotwork.adapters.engine import Setup
        from knotwork.adapters.engine.processes import ProcessEngine

        async def main():
            engine = ProcessEngine(Setup("support.engine_handlers:speaking", b""), 1)
            await engine.start()
            print((await engine.run(b"pid")).decode(), flush=True)
            await engine.run(b"wait")

        asyncio.run(main())
        """
    )
    path = os.pathsep.join(place for place in sys.path if place)
    driver = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert driver.stdout is not None
    pid = int(driver.stdout.readline())
    assert psutil.pid_exists(pid)
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
