"""Whatever a client sends, a tool answers in its own schema: a result, a refusal, an error of the caller's. Never an internal one."""

import asyncio
import json
from functools import partial
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.runtime.interfaces.mcp.resources import card
from knotwork.runtime.interfaces.mcp.server import TOOLS, call_tool
from support.agents import opened
from support.cafe_seed import SEED

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_PIECES = [
    "FIND nodes WHERE degree > 3 AS x", "TRY", "END", "BRANCH IF", "${x}", "UPDATE found WITH x", "ON ERROR x THEN",
    *"\n\"'{}[]\x00\u2028", "é名", '(final)=GASL("RESET found {(a)}")', "(a)=CONST(1)\n", '(f)=EXPR("1/0")',
    '(final)=LLM("{(a)}["b"]", when="{(a)} > 1")', '{"plan_id": "p", "why": "w", "commands": [', json.dumps(SEED),
    *card("gasl").splitlines(), *card("lwt").splitlines(),
]  # fmt: skip
_texts = st.lists(st.sampled_from(_PIECES) | st.text(max_size=10), max_size=8).map("".join)


@st.composite
def _damaged(draw: st.DrawFn) -> Any:
    """Draw a seed in which something is not as it should be."""
    seed = json.loads(json.dumps(SEED))
    place = draw(st.sampled_from(["filter", "extract", "compute", "output", "task_name", "more"]))
    seed[place] = draw(_json)
    return seed


async def answered(tool: str, arguments: dict[str, Any], read_only: bool) -> dict[str, Any]:
    async def tell(done: float, total: float | None, message: str) -> None:
        assert done >= 0 and message

    async with opened(read_only=read_only) as workspace:
        told = await call_tool(tool, arguments, workspace, "local", tell)
    assert json.loads(told.text) == told.structure
    jsonschema.validate(told.structure, TOOLS[tool].output_schema)
    assert told.structure.get("error", {}).get("kind") != "internal", told.structure
    return told.structure


pytestmark = pytest.mark.slow


@pytest.mark.parametrize("tool", TOOLS)
@settings(max_examples=15)
@given(data=st.data())
def test_any_json_as_arguments(tool: str, data: st.DataObject) -> None:
    names = list(TOOLS[tool].takes.model_fields)
    arguments = data.draw(st.dictionaries(st.sampled_from([*names, "more"]), _json, max_size=4))
    asyncio.run(answered(tool, arguments, data.draw(st.booleans())))


@settings(max_examples=60)
@given(_texts, st.sampled_from(["lwt", "gasl", "plan", "seed"]), st.booleans(), st.sampled_from(["check", "explain"]))
def test_any_text_is_checked_and_explained(text: str, language: str, read_only: bool, tool: str) -> None:
    asyncio.run(answered(tool, {"language": language, "text": text}, read_only))


@settings(max_examples=40)
@given(_texts, st.booleans())
def test_any_text_is_run_or_refused(text: str, read_only: bool) -> None:
    for tool, arguments in (
        ("execute", {"program": text}),
        ("run_plan", {"plan": text}),
        ("run_lwt", {"script": text, "input": [1]}),
    ):
        asyncio.run(answered(tool, arguments, read_only))


@settings(max_examples=40)
@given(
    _damaged(),
    st.lists(
        st.fixed_dictionaries({"extraction": st.dictionaries(st.text(max_size=6), _json, max_size=3)}) | _json,
        max_size=3,
    ),
)
def test_any_seed_is_checked_and_computed_or_refused(seed: Any, rows: list[Any]) -> None:
    both = partial(answered, read_only=False)
    asyncio.run(both("seed_check", {"seed": seed, "contexts": rows}))
    asyncio.run(both("seed_compute", {"seed": seed, "extractions": rows, "sensitivity": True}))
    asyncio.run(both("seed_compute", {"seed": SEED, "extractions": rows, "sensitivity": True, "explain": "SCORE"}))
