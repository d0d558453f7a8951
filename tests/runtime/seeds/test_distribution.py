"""Runs with workers give the results, the record and the limits of a run without; real worker processes and a real server."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from knotwork import seed
from knotwork.adapters.engine import EngineError, Setup
from knotwork.adapters.engine.processes import ProcessEngine
from knotwork.adapters.llm.budget import Ledger
from knotwork.runtime.errors import RequestError
from knotwork.runtime.events import CallFinished, Event, Events
from knotwork.runtime.seeds.distribution import Workers
from knotwork.runtime.seeds.seed_run import run_many
from knotwork.runtime.seeds.seed_store import StoredSeed
from support.review_server import contexts, marked
from support.seeds import SEED
from support.served import served
from support.worker_kills import Killer

pytestmark = pytest.mark.slow
SERVER = "support.review_server"


def read_seed(**changes: Any) -> Any:
    return seed.load({**SEED, **changes})


def documents(results: Any) -> list[dict[str, Any]]:
    return [result.as_json() for result in results]


def collected(spec: str, given: Any, fs: Any = None, **options: Any) -> list[dict[str, Any]]:
    settings: dict[str, Any] = {"max_concurrency": 8, "cache": False, **options}
    return documents(seed.collect_sync(fs or read_seed(), given, llm=spec, **settings))


def test_results_equal_those_of_one_process(tmp_path: Path) -> None:
    given = contexts(30, 5)
    given[3]["reviews"][1]["text"] = "food " + marked(severity="none such", people="many")
    given[7]["reviews"][2]["text"] = 5
    given[9] = {"name": "no reviews"}
    with served(tmp_path, module=SERVER) as server:
        alone = collected(server.spec, given)
        calls = sum(server.asked.values())
        shared = collected(server.spec, given, workers=2)
        assert sum(server.asked.values()) == 2 * calls
    assert shared == alone
    assert {result["status"] for result in alone} == {"complete", "partial", "failed"}


def test_votes_and_cascades_run_in_workers(tmp_path: Path) -> None:
    given = contexts(2, 3)
    with served(tmp_path, module=SERVER) as server:
        url = server.spec.partition("#")[0]
        for options in (
            {"vote": [f"{url}#a", f"{url}#b", f"{url}#c"]},
            {"escalate": f"{url}#strong", "fs": read_seed(passes=2)},
        ):
            alone, shared = (
                collected(server.spec, given, **options),
                collected(server.spec, given, workers=2, **options),
            )
            assert shared == alone and alone[0]["extractions"][0]["votes"]


def test_events_of_the_calls_reach_the_driver(tmp_path: Path) -> None:
    heard: list[Event] = []
    events = Events()
    events.subscribe(heard.append)
    with served(tmp_path, module=SERVER) as server:
        collected(server.spec, contexts(6, 5), workers=2, events=events)
    calls = [event for event in heard if isinstance(event, CallFinished)]
    assert len(calls) == 30 and {event.item for event in calls} == set(range(5))
    assert len({event.call for event in calls}) == 30
    assert heard[0].at <= calls[0].at <= heard[-1].at + 1


@pytest.mark.parametrize("calls", [0, 37])
def test_the_limit_on_calls_is_used_up_and_kept(tmp_path: Path, calls: int) -> None:
    with served(tmp_path, module=SERVER) as server:
        found = collected(server.spec, contexts(20, 5), workers=2, max_calls=calls)
        assert sum(server.asked.values()) == calls
    extracted = sum(result["counts"]["extracted"] for result in found)
    assert extracted == calls and sum(result["usage"]["calls"] for result in found) == calls
    messages = [error["message"] for result in found for error in result["errors"]]
    assert any(f"the budget of {calls} call" in message for message in messages)


@pytest.mark.parametrize("limits", [{"max_tokens": 2_000}, {"max_cost": 0.002, "price": (1, 2)}])
def test_limits_on_tokens_and_cost_are_kept(tmp_path: Path, limits: dict[str, Any]) -> None:
    options = {"options": {"max_tokens": 40}, **limits}
    with served(tmp_path, module=SERVER) as server:
        alone = collected(server.spec, contexts(20, 5), **options)
        shared = collected(server.spec, contexts(20, 5), workers=2, **options)
    for found in (alone, shared):
        tokens = sum(result["usage"]["prompt_tokens"] + result["usage"]["completion_tokens"] for result in found)
        cost = sum(result["cost"] or 0 for result in found)
        assert tokens <= limits.get("max_tokens", tokens) and cost <= limits.get("max_cost", cost)
    done = [sum(result["counts"]["extracted"] for result in found) for found in (alone, shared)]
    assert 0 < done[1] < 100 and done[1] >= done[0] / 2


def test_a_wrong_key_ends_all_calls_as_in_one_process(tmp_path: Path) -> None:
    with served(tmp_path, "--always", "401", module=SERVER) as server:
        alone = collected(server.spec, contexts(50, 5))
        before = sum(server.asked.values())
        shared = collected(server.spec, contexts(50, 5), workers=1)
        assert sum(server.asked.values()) - before <= 8
    for found in (alone, shared):
        assert {result["status"] for result in found} == {"failed"}
        assert "wrong_key: not asked: 401" in found[-1]["extractions"][-1]["failed"]


@pytest.mark.parametrize(
    ("options", "parameter", "words"),
    [
        ({"workers": 0}, "workers", "from 1 to 1,024"),
        ({"workers": True}, "workers", "not True"),
        ({"engine": "dask", "workers": 2}, "engine", "processes, ray"),
        ({"engine": "processes"}, "engine", "give workers"),
        ({"ray_address": "auto"}, "ray_address", "give workers"),
        ({"ray_address": "auto", "engine": "processes", "workers": 2}, "ray_address", "has no address"),
        ({"workers": 9}, "max_concurrency", "8 concurrent calls can't be divided among 9 workers"),
        ({"workers": 2, "llm": "record:a.json,openai:m"}, "workers", "can't record one cassette"),
        ({"workers": 2, "engine": "ray", "llm": "replay:a.json"}, "engine", "a file of this machine"),
        ({"workers": 2, "llm": object()}, "workers", "give the model as a spec"),
        ({"workers": 2, "escalate": object()}, "workers", "give the model as a spec"),
    ],
)
def test_commands_that_can_not_be_distributed_are_refused(options: dict[str, Any], parameter: str, words: str) -> None:
    options = {"llm": "http://127.0.0.1:9/v1#m", "cache": False, **options}
    with pytest.raises(RequestError) as refused:
        seed.collect_sync(read_seed(), contexts(1, 1), **options)
    assert refused.value.parameter == parameter and words in str(refused.value)


def test_a_review_that_kills_its_workers_fails_alone(tmp_path: Path) -> None:
    given = contexts(1, 2)
    given[0]["reviews"][1]["text"] = "food with poison"
    with served(tmp_path, "--delay", "0.3", module=SERVER) as server:
        killer = Killer(lambda: sum(count for text, count in server.asked.items() if "poison" in text))
        killer.start()
        found = collected(server.spec, given, workers=1, max_concurrency=1)
        killer.is_over.set()
        killer.join()
    failed = [each for result in found for each in result["extractions"] if each.get("failed")]
    assert [each["review"] for each in failed] == [1] and found[0]["counts"]["extracted"] == 1
    assert failed[0]["failed"] == "worker: its worker died 4 times (killed by signal 9)" and killer.kills == 4


def test_workers_that_only_die_end_the_run() -> None:
    async def work() -> None:
        engine = ProcessEngine(Setup("support.engine_handlers:dying", b""), 1)
        await engine.start()
        try:
            await run_many(
                read_seed(), contexts(4, 20), Unused(), on_result=lambda result: None, workers=Workers(engine, Ledger())
            )
        finally:
            await engine.aclose()

    with pytest.raises(EngineError, match="23 workers died one after the other; the last one: killed by signal 9"):
        asyncio.run(work())


class Unused:
    """A client for the driver, which makes no call."""

    async def generate(self, prompt: str, **options: Any) -> str:
        raise AssertionError


def test_a_cancelled_run_keeps_the_extractions_that_are_finished(tmp_path: Path) -> None:
    async def work(spec: str) -> int:
        cancel = asyncio.Event()

        def cancel_after_sixty_calls() -> None:
            if server.reached(60)():
                cancel.set()
            else:
                asyncio.get_running_loop().call_later(0.02, cancel_after_sixty_calls)

        cancel_after_sixty_calls()
        options = {"workers": 2, "max_concurrency": 8, "cache": False, "cancel": cancel}
        return len(await seed.collect(read_seed(), contexts(20, 20), llm=spec, record=True, **options))

    with served(tmp_path, "--delay", "0.05", module=SERVER) as server:
        count = asyncio.run(work(server.spec))
        asked = sum(server.asked.values())
        (folder,) = (tmp_path / "home" / "runs").iterdir()
        stored = StoredSeed.load(folder)
        assert count < 20 and asked - 16 <= stored.extracted <= asked
        whole = collected(server.spec, contexts(20, 20), resume=folder)  # without workers
        assert sum(server.asked.values()) == asked + 400 - stored.extracted
    assert len(whole) == 20 and all(result["status"] == "complete" for result in whole)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))


def test_workers_share_the_cache_of_extractions(tmp_path: Path) -> None:
    with served(tmp_path, module=SERVER) as server:
        first = collected(server.spec, contexts(10, 5), workers=1, cache=True)
        again = collected(server.spec, contexts(10, 5), workers=1, cache=True)
        assert sum(server.asked.values()) == 50
    assert [result["outputs"] for result in again] == [result["outputs"] for result in first]
    assert sum(result["usage"]["calls"] for result in again) == 0
