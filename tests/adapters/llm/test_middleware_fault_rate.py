"""The figures on faults in ``docs/benchmarks.md``: one-off faults on 30 % of 400 calls, and a cancel with 50 calls in flight."""

import asyncio
import os
import subprocess
import sys
import time

import psutil
import pytest
from knotwork.adapters.llm import LLMError
from knotwork.adapters.llm.anthropic import AnthropicModel
from knotwork.adapters.llm.middleware import Again
from knotwork.adapters.llm.openai import OpenAIModel
from knotwork.adapters.llm.throttled import Throttled
from support.folders import TESTS
from support.model_server import AGAIN, BROKEN, KEY, RETRIED, SLOW, STREAMED, ModelServer, answer_to

WHOLE = RETRIED + AGAIN + ("hang", "trickle", "endless")
STREAM = RETRIED + AGAIN + STREAMED + SLOW
CONNECTION = tuple(name for name in RETRIED if not name.startswith("5")) + BROKEN


def campaign(make, mix, seed, over=Again):
    """Return how many of 400 calls were answered rightly, how many wrongly, and how many met a fault."""

    async def main():
        async with ModelServer(rate=0.3, mix=mix, seed=seed) as server:
            model = make(server)
            client = over(Throttled(model, max_concurrency=50))

            async def call(n):
                try:
                    answer = await client.generate(f"call {n}", timeout=5)
                except LLMError:
                    return None
                return answer.text == answer_to(f"call {n}")

            came = await asyncio.gather(*(call(n) for n in range(400)))
            await model.aclose()
            return came.count(True), came.count(False), server.faulted

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("make", "mix"),
    [
        pytest.param(lambda s: OpenAIModel("m", base_url=s.url), WHOLE, id="direct"),
        pytest.param(lambda s: OpenAIModel("m", base_url=s.url, direct=False), WHOLE, id="openai"),
        pytest.param(lambda s: OpenAIModel("m", base_url=s.url, stream=True), STREAM, id="openai-stream"),
        pytest.param(lambda s: AnthropicModel("m", base_url=s.root), WHOLE, id="anthropic"),
        pytest.param(
            lambda s: AnthropicModel("m", base_url=s.root, stream=True),
            STREAM,
            id="anthropic-stream",
        ),
    ],
)
@pytest.mark.slow
def test_one_off_faults_on_30_percent_of_400_calls(make, mix):
    right, wrong, faulted = campaign(make, mix, seed=7)
    assert wrong == 0
    assert right >= 399
    assert faulted > 90


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda s: OpenAIModel("m", base_url=s.url, stream=True), id="openai"),
        pytest.param(lambda s: AnthropicModel("m", base_url=s.root, stream=True), id="anthropic"),
    ],
)
@pytest.mark.slow
def test_an_adapter_alone_gets_over_a_connection_that_breaks_inside_a_stream(make):
    right, wrong, faulted = campaign(make, CONNECTION, seed=11, over=lambda client: client)
    assert wrong == 0
    assert right >= 399
    assert faulted > 90


@pytest.fixture(params=["", "stream_trickle", "trickle"])
def slow_server(request):
    """A server in a process of its own that never gets done; its port."""
    options = ["--rate", "1", "--faults", request.param] if request.param else ["--delay", "3600"]
    process = subprocess.Popen(
        [sys.executable, "-m", "support.model_server", *options],
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


@pytest.mark.slow
def test_cancelling_50_calls_in_flight_leaves_no_task_and_no_socket(slow_server):
    port = int(slow_server.rpartition(":")[2].split("/")[0])

    def sockets():
        connections = psutil.Process().net_connections("inet")
        return [c for c in connections if c.raddr and c.raddr.port == port and c.status == "ESTABLISHED"]

    async def main():
        models = [
            OpenAIModel("m", base_url=slow_server, api_key=KEY, stream=True),
            AnthropicModel("m", base_url=slow_server.removesuffix("/v1"), api_key=KEY),
            OpenAIModel("m", base_url=slow_server, api_key=KEY),
        ]
        calls = [asyncio.create_task(Again(models[n % 3]).generate(f"call {n}")) for n in range(50)]
        async with asyncio.timeout(20):
            while len(sockets()) < 50:  # noqa: ASYNC110 - the kernel tells, there is no event
                await asyncio.sleep(0.02)
        started = time.monotonic()
        for call in calls:
            call.cancel()
        came = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in came)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert sockets() == []
        assert time.monotonic() - started < 10, "the answers take longer"
        for model in models:
            await model.aclose()

    asyncio.run(main())
