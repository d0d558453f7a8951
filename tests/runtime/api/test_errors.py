"""One error tree: every public error is a ``KnotworkError`` with a message, a hint and the diagnostics of the text."""

import inspect
from pathlib import Path
from typing import Any

import knotwork
import pytest
from knotwork import KnotworkError, answers, expr, gasl, lwt, planner, seed
from knotwork.runtime.api import ask

MODULES = (answers, ask, expr, gasl, lwt, planner, seed)
ERRORS = {
    getattr(module, name)
    for module in MODULES
    for name in module.__all__
    if inspect.isclass(getattr(module, name)) and issubclass(getattr(module, name), BaseException)
}
SEED = '{"task_name": "t", "filtr": {}}'


class Client:
    async def generate(self, prompt: str, **options: Any) -> str:
        raise AssertionError("nothing is asked")


@pytest.mark.parametrize("error", sorted(ERRORS, key=lambda error: error.__name__), ids=lambda error: error.__name__)
def test_every_public_error_is_of_the_tree(error: type) -> None:
    assert issubclass(error, knotwork.KnotworkError)


def test_there_are_errors() -> None:
    assert {
        "ScriptError",
        "SeedError",
        "ParseError",
        "PlanError",
        "AdapterError",
        "StoreError",
        "RequestError",
        "RunError",
    } <= {error.__name__ for error in ERRORS}


CASES = {
    "a script": lambda folder: lwt.run_sync('(a)=LLN("x")'),
    "a text that can't be formatted": lambda folder: lwt.format("(a)=LLM("),
    "a seed that can't be read": lambda folder: seed.load(SEED),
    "a condition": lambda folder: gasl.parse_condition("n >"),
    "a program": lambda folder: gasl.format("FIND"),
    "a plan": lambda folder: gasl.run_plan("FIND node AS x", "nx:les_miserables"),
    "an expression": lambda folder: expr.evaluate("1 +"),
    "a graph that is not there": lambda folder: gasl.open(str(folder / "none.graphml")),
    "a run that is not there": lambda folder: lwt.resume_sync("20200101-000000-none"),
    "a request": lambda folder: planner.rank_sync([], "x", llm=Client()),
    "a limit": lambda folder: lwt.run_sync('(a)=CONST("x")', max_calls=-1),
    "an answer": lambda folder: answers.generate_answer_sync("x", iter_max=0, model=Client()),
    "a question": lambda folder: ask.ask_sync("nx:les_miserables", "", llm=Client()),
}  # fmt: skip
WITH_DIAGNOSTICS = {
    "a script", "a text that can't be formatted", "a seed that can't be read", "a program", "a plan", "an expression",
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_whoever_catches_the_base_reads_message_and_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path))
    with pytest.raises(KnotworkError) as caught:
        CASES[name](tmp_path)
    error = caught.value
    assert error.message and isinstance(error.hint, str)
    assert bool(error.diagnostics) == (name in WITH_DIAGNOSTICS)
