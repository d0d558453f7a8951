"""``from knotwork import lwt``: what a user of the library sees."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
from knotwork import lwt
from knotwork.adapters.llm import NotConfigured
from support.clients import Scripted

SCRIPT = '# a comment\n(final)=LLM(  "Hello {(input)}["who"]" )\n'


def test_parse_check_format_run() -> None:
    script = lwt.parse(SCRIPT)
    assert [step.id for step in script.steps] == ["final"]
    assert lwt.check(script, input={"who": "Ada"}) == []
    assert [found.code for found in lwt.check(script, input={"what": 1})]
    text = lwt.format(script)
    assert text.startswith("# a comment\n")
    assert lwt.parse(lwt.format(lwt.parse(text))) == lwt.parse(text)
    result = asyncio.run(lwt.run(script, input={"who": "Ada"}, llm=Scripted({"Hello Ada": "Hi"})))
    assert result.output == "Hi"


def test_format_refuses_what_it_can_not_read() -> None:
    with pytest.raises(lwt.ScriptError):
        lwt.format('(a)=LLM("x')


def test_a_script_that_can_not_run_leaves_no_run_behind(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("KNOTWORK_HOME", str(home))
    with pytest.raises(lwt.ScriptError):
        asyncio.run(lwt.run('(a)=LLM("{(b)}")', llm=Scripted(), record=True))
    assert not (home / "runs").exists()


def test_a_model_may_be_a_spec() -> None:
    with pytest.raises(NotConfigured, match="names no model"):
        asyncio.run(lwt.run(SCRIPT, input={"who": "Ada"}, llm="nonsense:x"))


def test_what_is_no_client_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="no model client"):
        asyncio.run(lwt.run(SCRIPT, input={"who": "Ada"}, llm=5))


@pytest.mark.parametrize("name", lwt.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(lwt, name)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        lwt.nothing  # noqa: B018


def test_checking_brings_no_model_or_graph_library() -> None:
    code = (
        "import sys; from knotwork import lwt; lwt.check('(a)=LLM(\"x\")');"
        "print(sorted({'openai', 'anthropic', 'networkx', 'asyncio', 'jsonschema', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_stream_can_not_be_kept() -> None:
    async def chunks() -> AsyncIterator[str]:
        yield '(final)=LLM("x")'

    with pytest.raises(TypeError, match="still arriving"):
        asyncio.run(lwt.run_stream(chunks(), llm=Scripted(), record=True))
