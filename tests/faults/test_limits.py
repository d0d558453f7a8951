"""--max-calls, --max-tokens and --max-cost against a server that counts: never exceeded, whatever goes wrong."""

import asyncio
import json
from pathlib import Path

import pytest
from knotwork import lwt
from knotwork.runtime.models.factory import Ledger, ModelSettings, Price, open_model
from support.command import process
from support.model_server import AGAIN, ModelServer
from support.served import served

EACH = '(final)=EACH({(input)}, LLM("item {(item)}", max_tokens=20, type=int, retries=3), max_concurrency=20, on_error=keep)'
CHARGED, FREE = 18, ("408", "409", "429", "429_seconds", "500", "503", "529", "html_502")
"""What the server says a request took, and the faults for which nobody is charged."""
FAULTS = (*FREE, "reset", "close", "headers_cut", "body_cut", *(f for f in AGAIN if f not in ("huge", "bomb")))


async def spent(ledger: Ledger, price: Price | None = None) -> tuple[int, int, lwt.Run]:
    """Run with every second prompt meeting a fault, every answer in need of repair: requests, most tokens, the run."""
    async with ModelServer(rate=0.5, mix=FAULTS, seed=3) as server:
        client = open_model(ModelSettings(f"{server.url}#m", ledger=ledger, price=price, max_concurrency=20), {})
        try:
            run = await lwt.run(EACH, input=list(range(60)), llm=client, max_concurrency=20)
        finally:
            await client.aclose()
        return len(server.requests), (len(server.requests) - server.faulted) * CHARGED, run


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 1, 17, 90])
def test_the_server_gets_no_request_beyond_max_calls(limit: int) -> None:
    ledger = Ledger(max_calls=limit)
    requests, _, run = asyncio.run(spent(ledger))
    assert requests == limit == ledger.calls
    assert any(failed.kind == "budget" for failed in run.steps["final"].failed_items)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [100, 1500, 6000])
def test_the_server_charges_no_more_than_max_tokens(limit: int) -> None:
    ledger = Ledger(max_tokens=limit)
    _, tokens, _ = asyncio.run(spent(ledger))
    assert 0 < tokens + 1 <= limit
    assert ledger.usage.total <= limit


@pytest.mark.slow
def test_the_server_charges_no_more_than_max_cost() -> None:
    ledger = Ledger(max_cost=0.004)
    _, tokens, _ = asyncio.run(spent(ledger, Price(1.0, 1.0)))
    assert 0 < tokens / 1e6 <= 0.004
    assert ledger.cost <= 0.004


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "stream"),
    [
        *((fault, False) for fault in ("close", "body_cut", "json_cut", "no_finish")),
        *((fault, True) for fault in ("stream_reset", "stream_closed", "stream_error", "stream_reset_as_json")),
    ],
)
def test_answers_that_may_have_been_lost_on_the_way_count_as_answered(fault: str, stream: bool) -> None:
    async def whole() -> tuple[int, int]:
        async with ModelServer(always=fault) as server:
            ledger = Ledger(max_tokens=400)
            client = open_model(ModelSettings(f"{server.url}#m", ledger=ledger, stream=stream), {})
            await lwt.run('(a)=LLM("hi", max_tokens=50)', llm=client)
            await client.aclose()
            return len(server.requests), ledger.usage.total

    requests, used = asyncio.run(whole())
    assert requests * CHARGED <= used <= 400


@pytest.mark.slow
def test_a_resumed_run_has_limits_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "s.lwt").write_text('(final)=EACH({(input)}, LLM("item {(item)}"))')
    (tmp_path / "in.json").write_text(json.dumps(list(range(30))))
    with served(tmp_path) as server:
        words = ("run", "s.lwt", "--input", "in.json", "--llm", server.spec, "--max-calls", "20", "--no-cache")
        first = process(*words, home=tmp_path)
        assert (first.code, sum(server.asked.values())) == (1, 20)
        (folder,) = (tmp_path / "knotwork" / "runs").iterdir()
        again = process(*words, "--resume", folder.name, home=tmp_path)
        assert again.code == 0, again.err
        assert sum(server.asked.values()) == 30
