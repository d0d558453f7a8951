"""The same text has the same diagnostics in every interface, and all of their edits can be made together."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from knotwork import gasl, lwt, seed
from knotwork.lang.diagnostic import Diagnostic, all_as_json, apply_edits
from knotwork.lang.service import Known, read
from knotwork.lang.source import Source
from knotwork.runtime.api.checks import check_reading as check_in_editor
from knotwork.runtime.api.session import PieceQueue
from knotwork.runtime.api.session_runs import check as check_at_prompt
from knotwork.runtime.interfaces.notebook.cells import Cell, check_cell
from knotwork.runtime.models.factory import open_graph
from support.agents import GRAPH, connected, told
from support.command import call
from support.sessions import new_session
from support.web import application, settings_in

Fault = tuple[str, str, int, int]
"""Code, message, and the span's start and end (-1: no place) of an error or a warning."""
Runner = Callable[[Path, str, str], list[Fault] | None]
"""Checks a text: (folder, language, text). None: the interface does not take it."""

SUFFIXES = {"lwt": "x.lwt", "gasl": "x.gasl", "plan": "plan.json", "seed": "x.seed.json"}
TEXTS = {
    "a misspelt operation": ("lwt", '(a)=LLN("x")\n(final)=LLM("{(a)}")\n'),
    "an unknown step": ("lwt", '(first)=LLM("x")\n(final)=LLM("{(frist)}")\n'),
    "a name twice in an expression": ("lwt", '(kin)=CONST(1)\n(b)=CONST({(kin)})\n(final)=EXPR("kin + kin + b", b={(b)})\n'),
    "a file that is missing": ("lwt", '(final)=GASL(file="missing.gasl")\n'),
    "a misspelt attribute": ("gasl", "FIND nodes WHERE degre > 3 AS n\nCOUNT n AS c\n"),
    "an unbound variable": ("gasl", "FIND nodes WHERE degree > 3 AS some\nCOUNT sme AS c\n"),
    "a misspelt command in a plan": (
        "plan", '{"plan_id": "p", "why": "w", "commands": ["FND nodes AS x", "CONT x AS n"]}',
    ),
    "a misspelt field of a seed": (
        "seed",
        json.dumps({
            "task_name": "t", "filter": {"keywords": ["ill"]},
            "extract": {"fields": [{"name": "severity", "type": "enum", "values": ["none", "mild", "severe"]}]},
            "compute": [
                {"name": "N", "op": "count", "where": {"extraction.severty": "severe"}},
                {"name": "M", "op": "count", "where": {"extraction.severity": "sever"}},
            ],
            "output": ["N", "M"],
        }),
    ),
}  # fmt: skip


def faults(found: list[dict[str, Any]]) -> list[Fault]:
    return [
        (each["code"], each["message"], *((-1, -1) if (span := each["span"]) is None else (span["start"], span["end"])))
        for each in found
        if each["severity"] != "info"
    ]


def of_values(found: Any, text: str = "") -> list[Fault]:
    return faults(all_as_json(found, Source(text)))


def python(folder: Path, language: str, text: str) -> list[Fault] | None:
    return of_values(checked_in_python(folder, language, text))


def checked_in_python(folder: Path, language: str, text: str) -> list[Diagnostic]:
    path = folder / SUFFIXES[language]
    path.write_text(text, encoding="utf-8")
    if language == "lwt":
        return lwt.check(lwt.parse(Source(text, str(path))))
    if language == "seed":
        return seed.check(path)
    schema = open_graph(GRAPH).adapter.schema
    if language == "gasl":
        return gasl.check(text, schema=schema)
    try:
        with gasl.open(GRAPH) as executor:
            executor.run_plan(text)
    except gasl.PlanError as error:
        return list(error.diagnostics)
    return []


def cli(folder: Path, language: str, text: str) -> list[Fault] | None:
    path = folder / SUFFIXES[language]
    path.write_text(text, encoding="utf-8")
    graph = ["--graph", GRAPH] if language in ("gasl", "plan") else []
    return faults(json.loads(call("check", str(path), *graph, "--format", "json").out))


def mcp(folder: Path, language: str, text: str) -> list[Fault] | None:
    if "file=" in text:
        return None

    async def work() -> Any:
        async with connected() as client:
            return await told(client, "check", language=language, text=text)

    return faults(asyncio.run(work())["diagnostics"])


def lsp(folder: Path, language: str, text: str) -> list[Fault] | None:
    if language == "plan":
        return None
    path = folder / SUFFIXES[language]
    path.write_text(text, encoding="utf-8")
    schema = open_graph(GRAPH).adapter.schema if language == "gasl" else None
    reading = read(language, Source(text, str(path)))  # type: ignore[arg-type]
    return of_values(check_in_editor(reading, Known(schema=schema)), text)


def repl(folder: Path, language: str, text: str) -> list[Fault] | None:
    if language not in ("lwt", "gasl") or "file=" in text or text.count("\n") > 1:
        return None
    place = new_session(GRAPH)
    asyncio.run(place.schema())
    piece = PieceQueue(text, stop=False).next()
    assert piece is not None
    return of_values(check_at_prompt(piece, place).diagnostics, text)


def http(folder: Path, language: str, text: str) -> list[Fault] | None:
    if language != "lwt" or "file=" in text:
        return None

    async def work() -> Any:
        async with application(settings_in(folder)) as client:
            return (await client.post("/scripts/run", json={"script": text})).json()

    return faults(asyncio.run(work())["diagnostics"])


def notebook(folder: Path, language: str, text: str) -> list[Fault] | None:
    if language not in ("lwt", "gasl") or "file=" in text:
        return None
    place = new_session(GRAPH)
    asyncio.run(place.schema())
    cell = Cell(text, "In[1]", magic=language)  # type: ignore[arg-type]
    return of_values(asyncio.run(check_cell(cell, place)).diagnostics, text)


INTERFACES: dict[str, Runner] = {
    "python": python,
    "cli": cli,
    "mcp": mcp,
    "lsp": lsp,
    "repl": repl,
    "http": http,
    "notebook": notebook,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_every_interface_says_the_same(tmp_path: Path, name: str) -> None:
    language, text = TEXTS[name]
    said = {}
    for interface, runner in INTERFACES.items():
        folder = tmp_path / interface
        folder.mkdir()
        if (found := runner(folder, language, text)) is not None:
            said[interface] = found
    assert said["python"], "the text has a fault"
    assert len(said) >= 3
    assert {name: found for name, found in said.items() if found != said["python"]} == {}


def test_a_seed_with_errors_is_not_run_from_python(tmp_path: Path) -> None:
    loaded = seed.load(TEXTS["a misspelt field of a seed"][1])
    context = {"name": "x", "reviews": [{"text": "ill"}]}

    class Client:
        async def generate(self, prompt: str, **options: Any) -> str:
            raise AssertionError("a seed with errors asks nothing")

    async def many() -> None:
        async for _ in seed.run_many(loaded, [context], llm=Client()):
            pass

    for work in (
        lambda: seed.run_sync(loaded, context, llm=Client()), lambda: asyncio.run(many()), lambda: seed.compute(loaded, extractions=[]),
    ):  # fmt: skip
        with pytest.raises(seed.SeedError) as refused:
            work()
        assert [each.code for each in refused.value.diagnostics if each.severity == "error"]


@pytest.mark.parametrize("name", [name for name in TEXTS if TEXTS[name][0] != "plan"])
def test_all_edits_together_mend_what_has_edits(tmp_path: Path, name: str) -> None:
    language, text = TEXTS[name]
    found = checked_in_python(tmp_path, language, text)
    edits = [edit for each in found for edit in each.edits]
    mended = apply_edits(text, edits)
    assert mended != text or not edits
    again = {(each.code, each.message) for each in checked_in_python(tmp_path, language, mended) if each.edits}
    assert not again, mended


def test_two_equal_insertions_leave_once(tmp_path: Path) -> None:
    language, text = TEXTS["a name twice in an expression"]
    path = tmp_path / SUFFIXES[language]
    path.write_text(text, encoding="utf-8")
    found = json.loads(call("check", str(path), "--format", "json").out)
    insertions = [tuple(edit.values()) for each in found for edit in each["edits"]]
    assert len(insertions) == len(set(insertions)) == 1
