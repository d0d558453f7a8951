"""Every option of the command is in Python, under the same name."""

import ast
import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from knotwork import answers, expr, gasl, lwt, planner, seed
from knotwork.runtime import api
from knotwork.runtime.api import ask

OTHERWISE = {
    "file": "script", "input_file": "input", "model": "models", "lenient": "mode", "no_cache": "cache", "run_id": "run",
    "resume": "run", "judge_llm": "judges", "task_name": "name", "requests": "request", "branching": "search",
    "depth": "search", "enough": "search", "width": "search", "column": "columns", "stream": "events",
    "each": "table", "each_query": "query",
}  # fmt: skip
"""Options that are part of a value in Python: a model's name is a key of ``models``, a search's width a field of ``search``."""
OF_PROGRAMS = {"parameters", "workers", "engine", "ray_address"}
"""Options of ``run`` for programs, which are keywords of ``gasl.run_plan``."""
OF_THE_TERMINAL = {"output_format", "out", "brief", "tree", "limit", "dry_run", "request"}
"""Options about what is read from and written to files and the terminal, and the dry run, which ``plan`` and ``estimate`` are for."""


def fields(module: str, name: str) -> set[str]:
    """The keys of a typed dict that only type checkers see."""
    tree = ast.parse((Path(api.__file__).parent / f"{module}.py").read_text(encoding="utf-8"))
    found = next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name)
    return {
        node.target.id for node in found.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def parameters(*functions: Callable[..., Any]) -> set[str]:
    return {name for function in functions for name in inspect.signature(function).parameters}


PYTHON = {
    ("run", "run"): lambda: parameters(lwt.run, lwt.run_each, lwt.resume) | fields("lwt", "RunOptions"),
    ("seed", "run"): lambda: (
        parameters(seed.run, seed.run_many, seed.collect, seed.contexts, seed.export, seed.measure)
        | fields("seed", "RunOptions")
    ),
    ("seed", "compile_task"): lambda: parameters(seed.compile) | fields("seed", "CompileOptions") | {"output", "force"},
    ("rank", "rank"): lambda: parameters(planner.rank) | fields("planner", "Settings"),
    ("ask", "ask"): lambda: parameters(ask.ask),
    ("answer", "answer"): lambda: parameters(answers.generate_answer) | fields("answers", "Settings"),
}


@pytest.mark.parametrize("command", PYTHON, ids=" ".join)
def test_every_option_of_the_command_is_in_python(command: tuple[str, str]) -> None:
    module, function = command
    typed = importlib.import_module(f"knotwork.runtime.interfaces.cli.commands.{module}")
    wanted = parameters(getattr(typed, function)) - OF_THE_TERMINAL - OF_PROGRAMS
    there = PYTHON[command]()
    assert {name for name in wanted if name not in there and OTHERWISE.get(name) not in there} == set()


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda: lwt.parse("(a)=CONST(1)", "lenint"), ValueError, "mode must be \"strict\" or \"lenient\", not 'lenint'"),
        (lambda: lwt.run_sync("(a)=CONST(1)", mode="lenint"), ValueError, "mode must be"),
        (lambda: lwt.run_sync("(a)=CONST(1)", schedule="x"), ValueError, "schedule is \"eager\" or \"layered\", not 'x'"),
        (lambda: lwt.check(Path("a.lwt")), TypeError, "expected the text of a script, not PosixPath"),
        (lambda: lwt.run_sync(None), TypeError, "expected the text of a script, not NoneType"),
        (lambda: gasl.check(3), TypeError, "expected the text of a program, not int"),
        (lambda: expr.evaluate(3), TypeError, "expected the text of an expression, not int"),
        (lambda: seed.run_sync("a.seed.json", {}, llm=None), TypeError, "expected a seed (seed.load returns one), not str"),
    ],
)  # fmt: skip
def test_an_argument_of_another_kind_is_named(call: Callable[[], object], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=re.escape(told)):
        call()
