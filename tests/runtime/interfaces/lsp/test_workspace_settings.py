"""What a text is checked against: settings of the client, files beside the text, and what happens when they change or can't be used."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from knotwork import gasl
from knotwork.runtime.interfaces.lsp.workspace import Settings, language_of, read_settings
from lsprotocol import types
from support.editor import Editor, editor

GRAPH = json.dumps(
    {
        "directed": False, "multigraph": False, "graph": {},
        "nodes": [{"id": "a", "label": "PERSON"}, {"id": "b", "label": "PLACE"}, {"id": "c", "label": "PERSON"}],
        "links": [{"source": "a", "target": "b"}],
    }
)  # fmt: skip


def with_editor(folder: Path, act: Callable[[Editor], Awaitable[None]], options: Any = None) -> None:
    async def run() -> None:
        async with editor(folder, options) as here:
            await act(here)

    asyncio.run(run())


def codes(found: Any) -> list[Any]:
    return [each.code for each in found]


@pytest.mark.slow
def test_programs_are_checked_against_the_graph_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(GRAPH)

    async def act(here: Editor) -> None:
        await here.open("a.gasl", 'FIND nodes WHERE lable = "PERSON" AS people\nCOUNT people AS n\n')
        uri = here.uri("a.gasl")
        await here.until(lambda: here.told[uri].diagnostics)
        (found,) = here.told[uri].diagnostics
        assert "label" in found.message
        hover = await here.client.text_document_hover_async(
            types.HoverParams(here.named("a.gasl"), here.at("a.gasl", here.offset("a.gasl", "lable")))
        )
        del hover
        here.replace("a.gasl", (at := here.offset("a.gasl", "lable")), at + 5, "label")
        assert await here.diagnostics("a.gasl") == ()
        told = await here.client.text_document_hover_async(
            types.HoverParams(here.named("a.gasl"), here.at("a.gasl", at + 1))
        )
        assert told is not None and isinstance(told.contents, types.MarkupContent) and "PERSON" in told.contents.value
        here.replace("a.gasl", (at := here.offset("a.gasl", '"PERSON"')), at + 8, '"PE')
        asked = types.CompletionParams(here.named("a.gasl"), here.at("a.gasl", at + 3))
        offered = await here.client.text_document_completion_async(asked)
        assert isinstance(offered, types.CompletionList)
        assert '"PERSON"' in [each.label for each in offered.items]

    with_editor(tmp_path, act, {"graph": "g.json"})


@pytest.mark.slow
def test_a_state_and_an_input_beside_a_text_count_without_a_word(tmp_path: Path) -> None:
    with gasl.open("nx:les_miserables", state=str(tmp_path / "hubs.state")) as session:
        session.execute_one("DECLARE found AS LIST")
    (tmp_path / "a.input.json").write_text('{"name": "Ada"}')
    (tmp_path / "a.lwt").write_text("")

    async def act(here: Editor) -> None:
        await here.open("hubs.gasl", "FIND nodes AS all_of_them\nUPDATE fuond WITH all_of_them\n")
        uri = here.uri("hubs.gasl")
        await here.until(lambda: here.told[uri].diagnostics and "found" in here.told[uri].diagnostics[0].message)
        await here.open("a.lwt", '(final)=LLM("{(input)}[nmae]")')
        uri = here.uri("a.lwt")
        await here.until(lambda: here.told[uri].diagnostics)
        assert "name" in here.told[uri].diagnostics[0].message
        (tmp_path / "a.input.json").write_text('{"nmae": "Ada", "more": 1}')
        here.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([]))
        await here.until(lambda: not here.told[uri].diagnostics)

    with_editor(tmp_path, act)


@pytest.mark.slow
def test_what_can_not_be_loaded_is_told_once_and_checks_go_on(tmp_path: Path) -> None:
    async def act(here: Editor) -> None:
        await here.open("a.gasl", "FIND nodes AS n\nCOUNT m AS x\n")
        await here.until(lambda: any("graph:" in each for each in here.messages))
        here.replace("a.gasl", 0, 0, "# x\n")
        assert codes(await here.diagnostics("a.gasl")) == ["GASL050"]
        assert len([each for each in here.messages if "graph:" in each]) == 1
        assert any("did you mean graph?" in each for each in here.messages)

    with_editor(tmp_path, act, {"graph": "missing.json", "grahp": "x"})


@pytest.mark.slow
def test_settings_that_change_are_taken_over(tmp_path: Path) -> None:
    async def act(here: Editor) -> None:
        text = '(final)=LLM("x", model="small")'
        assert await here.open("a.lwt", text) == ()
        uri = here.uri("a.lwt")
        for given, is_told in (({"models": ["large"]}, True), ({"knotwork": {"models": ["small"]}}, False)):
            here.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(given))
            await here.until(lambda wanted=is_told: bool(here.told[uri].diagnostics) == wanted)

    with_editor(tmp_path, act)


def test_settings_are_read_with_what_is_wrong_in_them(tmp_path: Path) -> None:
    given = {
        "graph": "nx:karate",
        "state": "s",
        "input": 3,
        "delay": -1,
        "models": "one",
        "docs": "https://x/rules",
        "stat": "x",
    }
    made, faults = read_settings(given, tmp_path, Settings())
    assert (made.graph, made.state, made.docs) == ("nx:karate", str(tmp_path / "s"), "https://x/rules")
    assert faults == (
        "the setting input must be a string",
        "the setting delay must be a number of milliseconds, 0 to 10000",
        "the setting models must be a list of names",
        "unknown setting stat; did you mean state?",
    )
    assert read_settings(None, None, made) == (made, ())
    assert read_settings([], None, Settings())[1] == ("the knotwork settings must be an object",)
    assert read_settings({"graph": "a\0b", "server": ["x"]}, None, Settings()) == (
        Settings(),
        ("the setting graph must be a string",),
    )


@pytest.mark.parametrize(
    ("uri", "said", "language"),
    [
        ("file:///a.lwt", "plaintext", "lwt"), ("file:///a.GASL", "", "gasl"), ("file:///a.seed.json", "json", "seed"),
        ("untitled:Untitled-1", "gasl", "gasl"), ("file:///a.json", "json", None), ("file:///a.py", "python", None),
        ("untitled:Untitled-2", "formula-seed", "seed"),
    ],
)  # fmt: skip
def test_documents_are_told_apart_by_name_then_by_what_the_client_calls_them(
    uri: str, said: str, language: str | None
) -> None:
    assert language_of(uri, said) == language
