"""Operations that a plugin adds through the entry point group ``knotwork.operations``."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from knotwork import lwt
from support.clients import Scripted, echo
from support.installed_plugin import install_plugin

PLUGIN = """
from knotwork.lang.catalogue.operations import OptionSpec, Parameter, Signature
from knotwork.runtime.lwt.operations import Operation, read_options
from knotwork.runtime.results import Outcome
from knotwork.runtime.templates import render

SIGNATURE = Signature(
    "SHOUT", "The text in capitals.", (Parameter("text", "template", "What is said."),),
    {"times": OptionSpec("times", "int", "How often.", minimum=1, maximum=3)},
)

async def shout(call, context):
    times = read_options(call, SIGNATURE).get("times", 1)
    text = render(call.arguments[0], context.scope)
    if text == "bad":
        raise KeyError("oh")
    return Outcome(text.upper() * times, text.upper() * times)

SHOUT = Operation(SIGNATURE, shout)
BROKEN = 5
"""


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"SHOUT": "shouting_plugin:SHOUT", "BROKEN": "shouting_plugin:BROKEN", "GONE": "no_such_module:X"}
    install_plugin(tmp_path, monkeypatch, "shouting_plugin", PLUGIN, "knotwork.operations", points)


def run(script: str) -> Any:
    return asyncio.run(lwt.run(script, llm=Scripted(default=echo)))


def test_a_script_calls_it_like_any_other() -> None:
    assert run('(a)=LLM("hey")\n(b)=SHOUT("{(a)} you", times=2)').output == "HEY YOUHEY YOU"


def test_its_options_are_checked() -> None:
    assert "error" in [found.severity for found in lwt.check('(a)=SHOUT("x", times=9)')]
    assert "error" not in [found.severity for found in lwt.check('(a)=SHOUT("x", times=3)')]


def test_what_it_raises_fails_its_step() -> None:
    assert run('(a)=SHOUT("bad")').steps["a"].reason == "SHOUT raised KeyError: 'oh'"


@pytest.mark.parametrize("name", ["BROKEN", "GONE", "NOBODY"])
def test_what_is_no_operation_stops_before_any_call(name: str) -> None:
    with pytest.raises(lwt.ScriptError, match=name):
        run(f'(a)={name}("x")')
