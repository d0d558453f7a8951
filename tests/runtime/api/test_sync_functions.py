"""Every public async function has a twin for code that is not async: ``x`` and ``x_sync``."""

import asyncio
import inspect
from typing import Any

import pytest
from knotwork import answers, gasl, lwt, planner, seed
from knotwork.runtime.api import ask

MODULES = (answers, ask, lwt, planner, seed)
CONTEXT = {"name": "x", "reviews": [{"text": "ill"}]}
SEED = (
    '{"task_name": "t", "filter": {"keywords": ["ill"]}, "extract": {"fields": [{"name": "bad", "type": "bool"}]}, '
    '"compute": [{"name": "N", "op": "count", "where": {"extraction.bad": true}}], "output": ["N"]}'
)


class Client:
    async def generate(self, prompt: str, **options: Any) -> str:
        return '{"bad": true}'


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_async_function_has_its_twin(module: Any) -> None:
    for name in module.__all__:
        work = getattr(module, name)
        if inspect.iscoroutinefunction(work) or inspect.isasyncgenfunction(work):
            twin = getattr(module, f"{name}_sync")
            assert f"{name}_sync" in module.__all__
            assert not inspect.iscoroutinefunction(twin)


def test_gasl_has_the_names_of_its_methods() -> None:
    assert {"areplay", "replay", "run_plan"} <= set(gasl.__all__)


def test_results_of_many_contexts_come_one_by_one() -> None:
    found = seed.run_many_sync(seed.load(SEED), [CONTEXT] * 3, llm=Client())
    assert next(found).outputs == {"N": 1}
    assert [each.index for each in found] == [1, 2]
    left = seed.run_many_sync(seed.load(SEED), [CONTEXT] * 3, llm=Client())
    next(left)
    left.close()

    async def inside() -> None:
        next(seed.run_many_sync(seed.load(SEED), [CONTEXT], llm=Client()))

    with pytest.raises(RuntimeError, match=r"await seed\.run_many"):
        asyncio.run(inside())


def test_a_script_arrives_in_code_that_is_not_async() -> None:
    assert lwt.run_stream_sync(['(a)=CONST("x")\n(fin', 'al)=EXPR("a + a", a={(a)})\n']).output == "xx"
