"""Every option of the command is in Python, under the same name."""

import ast
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from knotwork import answers, lwt, planner, seed
from knotwork.runtime import api
from knotwork.runtime.api import ask

OTHERWISE = {
    "file": "script", "input_file": "input", "model": "models", "lenient": "mode", "no_cache": "cache", "run_id": "run",
    "resume": "run", "judge_llm": "judges", "task_name": "name", "requests": "request", "branching": "search",
    "depth": "search", "enough": "search", "width": "search",
}  # fmt: skip
"""Options that are part of a value in Python: a model's name is a key of ``models``, a search's width a field of ``search``."""
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
    ("run", "run"): lambda: parameters(lwt.run, lwt.resume) | fields("lwt", "RunOptions"),
    ("seed", "run"): lambda: parameters(seed.run, seed.run_many) | fields("seed", "RunOptions"),
    ("seed", "compile_task"): lambda: parameters(seed.compile) | fields("seed", "CompileOptions") | {"output", "force"},
    ("rank", "rank"): lambda: parameters(planner.rank) | fields("planner", "Settings"),
    ("ask", "ask"): lambda: parameters(ask.ask),
    ("answer", "answer"): lambda: parameters(answers.generate_answer) | fields("answers", "Settings"),
}


@pytest.mark.parametrize("command", PYTHON, ids=" ".join)
def test_every_option_of_the_command_is_in_python(command: tuple[str, str]) -> None:
    module, function = command
    typed = importlib.import_module(f"knotwork.runtime.interfaces.cli.commands.{module}")
    wanted = parameters(getattr(typed, function)) - OF_THE_TERMINAL
    there = PYTHON[command]()
    assert {name for name in wanted if name not in there and OTHERWISE.get(name) not in there} == set()
