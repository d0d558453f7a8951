"""``from knotwork import lwt``: what a user of the library sees."""

import asyncio
import importlib
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
    with pytest.raises(NotConfigured, match="is not a model"):
        asyncio.run(lwt.run(SCRIPT, input={"who": "Ada"}, llm="nonsense:x"))


def test_what_is_no_client_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="not a model client"):
        asyncio.run(lwt.run(SCRIPT, input={"who": "Ada"}, llm=5))


@pytest.mark.parametrize("name", lwt.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(lwt, name)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        lwt.nothing  # noqa: B018


@pytest.mark.slow
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


SPELLINGS = [
    *(
        f"import knotwork.{name}; assert knotwork.{name}.__all__"
        for name in ("answers", "expr", "gasl", "lwt", "planner", "seed")
    ),
    *(f"from knotwork.{name} import *" for name in ("answers", "expr", "gasl", "lwt", "planner", "seed")),
    "import knotwork.gasl as g; import knotwork; assert g is knotwork.gasl",
    "from knotwork import gasl; import knotwork.gasl as g; assert g is gasl",
    "import knotwork.gasl as g; from knotwork import gasl; assert g is gasl and g.GASLExecutor is gasl.GASLExecutor",
    "import importlib; from knotwork import lwt; assert importlib.import_module('knotwork.lwt') is lwt",
    "import importlib.util; assert importlib.util.find_spec('knotwork.seed'); assert importlib.util.find_spec('knotwork.none') is None",
    "from knotwork.lwt import run, check, parse, format, run_stream",
    "from knotwork.gasl import GASLExecutor, GASLParser, StateStore, ContextStore, GraphAdapter, NetworkXAdapter, LLMClient",
    "from knotwork.gasl import ExecutionResult, ExecutionRecord, ParseError, ConditionError, ExecutionError, AdapterError",
    "from knotwork import GASLExecutor, GASLParser, StateStore, ContextStore, GraphAdapter, NetworkXAdapter, LLMClient",
    "from knotwork import ExecutionResult, ExecutionRecord, gasl; assert ExecutionRecord is gasl.ExecutionRecord",
    "from knotwork.answers import generate_answer; import knotwork; assert knotwork.generate_answer is generate_answer",
    "from knotwork.planner import rank; import knotwork; assert knotwork.rank is rank",
    "from knotwork import ask, rank, generate_answer; assert callable(ask) and callable(rank) and callable(generate_answer)",
    "import knotwork; assert knotwork.__version__; assert {'gasl', 'ask'} <= set(dir(knotwork))",
    "import knotwork.gasl; assert 'open' in dir(knotwork.gasl)",
    "import pydoc, knotwork; assert 'run_plan' in pydoc.render_doc(knotwork.gasl)",
    "import pickle; from knotwork.lwt import run; assert pickle.loads(pickle.dumps(run)) is run",
    "import pickle, copy; from knotwork.gasl import parse; p = parse('FIND nodes AS x'); "
    "assert pickle.loads(pickle.dumps(p)) == copy.deepcopy(p) == copy.copy(p) == p",
    "import pickle; from knotwork import gasl; c = gasl.parse_condition('a = 1'); assert pickle.loads(pickle.dumps(c)) == c",
    "from knotwork import *; assert gasl and ask",
]


@pytest.mark.slow
@pytest.mark.parametrize("statement", SPELLINGS)
def test_what_is_public_is_imported_in_every_spelling(statement: str) -> None:
    run = subprocess.run([sys.executable, "-c", statement], capture_output=True, text=True, cwd="/")
    assert run.returncode == 0, run.stderr


def test_a_module_that_is_not_there_is_the_usual_error() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"knotwork\.nothing"):
        importlib.import_module("knotwork.nothing")
    with pytest.raises(ImportError, match="nothing"):
        exec("from knotwork.gasl import nothing")
