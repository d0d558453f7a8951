"""The language server through every feature, over stdio, by the official client."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from knotwork.lang.catalogue.rules import RULES
from knotwork.lang.diagnostic import apply_edits
from lsprotocol import types
from support.editor import Desk, Editor, editor, made
from support.folders import DOCS

LWT = '(mood)=LLM("Glad or sad? {(input)}", type="glad" | "sad")\n(final)=LLM("Why {(mood)}? 🙂 {(mood)}")\n'
GASL = """# who knows whom
FIND nodes WHERE label = "PERSON" AS people

TRY
  COUNT people AS n
CATCH ANY
  RANK people BY degree DESC AS ranked
END
"""
SEED = json.dumps(
    {
        "task_name": "t",
        "filter": {"keywords": ["coffee"]},
        "extract": {"fields": [{"name": "sentiment", "type": "enum", "values": {"positive": "a", "negative": "b"}}]},
        "compute": [
            {"name": "N", "op": "count", "where": {"extraction.sentiment": "positive"}},
            {"name": "SCORE", "op": "expr", "expr": "N / 2"},
        ],
        "output": ["SCORE"],
    },
    indent=1,
)
TEXTS = {"a.lwt": LWT, "a.gasl": GASL, "a.seed.json": SEED}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    made = Desk(tmp_path_factory.mktemp("desk"))
    yield made
    made.close()


def at(desk: Desk, act: Callable[[Editor], Awaitable[None]]) -> None:
    """Do something with the shared editor, which has all three texts open as they are above."""

    async def run() -> None:
        for name, text in TEXTS.items():
            await desk.editor.open(name, text)
        await act(desk.editor)

    desk.run(run())


def with_editor(folder: Path, act: Callable[[Editor], Awaitable[None]], **given: Any) -> None:
    """Do the same with an editor of its own."""

    async def run() -> None:
        async with editor(folder, **given) as here:
            for name, text in TEXTS.items():
                await here.open(name, text)
            await act(here)

    asyncio.run(run())


def edits_of(change: types.WorkspaceEdit | None) -> list[types.TextEdit]:
    assert change is not None and change.document_changes is not None
    (document,) = change.document_changes
    assert isinstance(document, types.TextDocumentEdit)
    return [edit for edit in document.edits if isinstance(edit, types.TextEdit)]


@pytest.mark.slow
def test_diagnostics_come_with_codes_links_and_places_and_go_when_mended(desk: Desk) -> None:
    async def act(here: Editor) -> None:
        assert await here.diagnostics("a.lwt") == ()
        start = here.offset("a.lwt", "{(mood)}")
        here.replace("a.lwt", start, start + 8, "{(moood)}")
        (found,) = await here.diagnostics("a.lwt")
        assert (found.code, found.source, found.severity) == ("LWT012", "knotwork", types.DiagnosticSeverity.Error)
        assert "help: did you mean" in found.message
        assert found.code_description and found.code_description.href.endswith("/rules.md#lwt012")
        assert found.range.start == here.at("a.lwt", start + 2)
        here.replace("a.lwt", start, start + 9, "{(mood)}")
        assert await here.diagnostics("a.lwt") == ()
        assert (await here.diagnostics("a.gasl")) == ()

    at(desk, act)


@pytest.mark.slow
def test_a_quick_fix_makes_the_edits_of_the_diagnostic(desk: Desk) -> None:
    async def act(here: Editor) -> None:
        start = here.offset("a.gasl", "WHERE")
        here.replace("a.gasl", start, start + 5, "WHRE")
        here.replace("a.gasl", (at := here.offset("a.gasl", "people BY")), at + 9, "people BI")
        assert len(await here.diagnostics("a.gasl")) == 2
        cursor = types.Range(here.at("a.gasl", start), here.at("a.gasl", start))
        asked = types.CodeActionParams(here.named("a.gasl"), cursor, types.CodeActionContext([]))
        actions = await here.client.text_document_code_action_async(asked)
        quick = [each for each in actions or () if isinstance(each, types.CodeAction) and each.kind == "quickfix"]
        assert [(each.title, each.is_preferred) for each in quick] == [("replace WHRE with WHERE", True)]
        assert "WHERE" in made(here.texts["a.gasl"], edits_of(quick[0].edit))
        only = types.CodeActionContext([], only=["source.fixAll"])
        all_of_it = await here.client.text_document_code_action_async(
            types.CodeActionParams(here.named("a.gasl"), cursor, only)
        )
        (fix,) = all_of_it or ()
        assert isinstance(fix, types.CodeAction)
        assert made(here.texts["a.gasl"], edits_of(fix.edit)) == GASL

    at(desk, act)


@pytest.mark.slow
def test_a_remark_can_be_silenced_where_it_stands(desk: Desk) -> None:
    async def act(here: Editor) -> None:
        remark = '(x)=CONST("b")\n(x_used)=LLM("c {(mood)}")\n'
        here.replace("a.lwt", len(LWT), len(LWT), remark)
        found = [each for each in await here.diagnostics("a.lwt") if each.severity != types.DiagnosticSeverity.Error]
        assert found
        asked = types.CodeActionParams(here.named("a.lwt"), found[0].range, types.CodeActionContext([]))
        actions = await here.client.text_document_code_action_async(asked)
        suppress = next(
            each for each in actions or ()
            if isinstance(each, types.CodeAction) and each.title == f"suppress {found[0].code} here"
        )  # fmt: skip
        text = made(here.texts["a.lwt"], edits_of(suppress.edit))
        here.replace("a.lwt", 0, len(here.texts["a.lwt"]), text)
        left = [each for each in await here.diagnostics("a.lwt") if each.code == found[0].code]
        assert len(left) == len([each for each in found if each.code == found[0].code]) - 1

    at(desk, act)


@pytest.mark.slow
def test_completion_offers_the_files_that_a_script_may_name(tmp_path: Path) -> None:
    for name in ("prompts/mood.txt", "tone.md", "inner.lwt", ".hidden.txt", "a/b/c/deep.txt", "data.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")

    async def act(here: Editor) -> None:
        for text, names in (
            ('(a)=LLM(file="', ['"prompts/mood.txt"', '"tone.md"']),
            ('(a)=RUN(file="', ['"inner.lwt"']),
        ):
            await here.open("b.lwt", text)
            position = types.Position(0, len(text))
            asked = types.CompletionParams(types.TextDocumentIdentifier(here.uri("b.lwt")), position)
            found = await here.client.text_document_completion_async(asked)
            assert [each.label.strip('"') for each in found.items if each.label != '"'] == [
                each.strip('"') for each in names
            ]

    with_editor(tmp_path, act)


def test_completion_offers_what_the_grammar_takes_and_the_names_that_fit(desk: Desk) -> None:
    async def act(here: Editor) -> None:
        end = len(GASL)
        here.replace("a.gasl", end, end, "COUNT peo")
        asked = types.CompletionParams(here.named("a.gasl"), here.at("a.gasl", end + 9))
        found = await here.client.text_document_completion_async(asked)
        assert isinstance(found, types.CompletionList)
        (people,) = [each for each in found.items if each.label == "people"]
        assert isinstance(people.text_edit, types.TextEdit)
        assert made(here.texts["a.gasl"], [people.text_edit]).endswith("COUNT people")
        here.replace("a.lwt", (at := len(LWT)), at, "(third)=L")
        asked = types.CompletionParams(here.named("a.lwt"), here.at("a.lwt", at + 9))
        found = await here.client.text_document_completion_async(asked)
        assert isinstance(found, types.CompletionList)
        assert "LLM" in [each.label for each in found.items]

    at(desk, act)


@pytest.mark.parametrize(
    ("name", "what", "says"), [("a.gasl", "FIND", "FIND"), ("a.lwt", "LLM", "LLM"), ("a.lwt", "mood)}", "mood")]
)
def test_hover_tells_what_stands_there(desk: Desk, name: str, what: str, says: str) -> None:
    async def act(here: Editor) -> None:
        asked = types.HoverParams(here.named(name), here.at(name, here.offset(name, what) + 1))
        found = await here.client.text_document_hover_async(asked)
        assert found is not None and isinstance(found.contents, types.MarkupContent)
        assert says in found.contents.value
        assert found.range is not None and found.range.start.line <= asked.position.line

    at(desk, act)


@pytest.mark.parametrize(
    ("name", "used", "defined", "times"),
    [
        ("a.lwt", "Why {(mood", "(mood", 3),
        ("a.gasl", "COUNT people", 'label = "PERSON" AS people', 3),
        ("a.seed.json", '"expr": "N', '"name": "N', 2),
    ],
)
def test_definition_references_and_highlights_of_a_name(
    desk: Desk, name: str, used: str, defined: str, times: int
) -> None:
    async def act(here: Editor) -> None:
        use = here.at(name, here.offset(name, used, behind=True) - 1)
        found = await here.client.text_document_definition_async(types.DefinitionParams(here.named(name), use))
        assert isinstance(found, types.Location)
        ends = here.at(name, here.offset(name, defined, behind=True))
        assert (
            found.range.start.line == ends.line
            and found.range.start.character <= ends.character <= found.range.end.character
        )
        context = types.ReferenceContext(include_declaration=True)
        asked = types.ReferenceParams(context, here.named(name), use)
        places = await here.client.text_document_references_async(asked) or ()
        assert len(places) == times
        asked = types.ReferenceParams(types.ReferenceContext(False), here.named(name), use)
        assert len(await here.client.text_document_references_async(asked) or ()) == times - 1
        lit = await here.client.text_document_document_highlight_async(
            types.DocumentHighlightParams(here.named(name), use)
        )
        assert [each.kind for each in lit or ()].count(types.DocumentHighlightKind.Write) == 1

    at(desk, act)


def test_rename_changes_every_place_and_refuses_what_would_clash(desk: Desk) -> None:
    async def act(here: Editor) -> None:
        where = here.at("a.lwt", here.offset("a.lwt", "mood"))
        ready = await here.client.text_document_prepare_rename_async(
            types.PrepareRenameParams(here.named("a.lwt"), where)
        )
        assert isinstance(ready, types.Range) and ready.start == where
        asked = types.RenameParams(here.named("a.lwt"), where, "tone")
        change = await here.client.text_document_rename_async(asked)
        assert made(LWT, edits_of(change)) == LWT.replace("(mood)", "(tone)")
        with pytest.raises(Exception, match="final"):
            await here.client.text_document_rename_async(types.RenameParams(here.named("a.lwt"), where, "final"))

    at(desk, act)


@pytest.mark.slow
def test_a_client_without_versions_gets_plain_changes(tmp_path: Path) -> None:
    async def act(here: Editor) -> None:
        where = here.at("a.lwt", here.offset("a.lwt", "mood"))
        change = await here.client.text_document_rename_async(types.RenameParams(here.named("a.lwt"), where, "tone"))
        assert change is not None and change.changes is not None and list(change.changes) == [here.uri("a.lwt")]

    with_editor(tmp_path, act, capabilities=types.ClientCapabilities())


def test_symbols_folds_and_tokens(desk: Desk) -> None:
    async def act(here: Editor) -> None:
        names = {}
        for name in TEXTS:
            found = await here.client.text_document_document_symbol_async(types.DocumentSymbolParams(here.named(name)))
            names[name] = [each.name for each in found or ()]
            for each in found or ():
                assert isinstance(each, types.DocumentSymbol)
                assert (each.range.start.line, each.range.start.character) <= (
                    each.selection_range.start.line, each.selection_range.start.character,
                )  # fmt: skip
        assert names["a.lwt"] == ["mood", "final"]
        assert "people" in names["a.gasl"]
        folds = await here.client.text_document_folding_range_async(types.FoldingRangeParams(here.named("a.gasl")))
        assert (3, 7) in [(each.start_line, each.end_line) for each in folds or ()]
        told = await here.client.text_document_semantic_tokens_full_async(
            types.SemanticTokensParams(here.named("a.lwt"))
        )
        assert told is not None
        words = unpacked(LWT, list(told.data))
        assert ("LLM", "function") in words
        assert ("mood", "class") in words

    at(desk, act)


def unpacked(text: str, data: list[int]) -> list[tuple[str, str]]:
    """Return the words and their types that the server's numbers say; columns count UTF-16."""
    legend = [
        "keyword",
        "macro",
        "variable",
        "class",
        "function",
        "string",
        "number",
        "operator",
        "comment",
        "property",
        "type",
    ]
    lines = [line.encode("utf-16-le") for line in text.split("\n")]
    found, line, column = [], 0, 0
    for at in range(0, len(data), 5):
        down, right, length, kind, _ = data[at : at + 5]
        line, column = line + down, right if down else column + right
        found.append((lines[line][2 * column : 2 * (column + length)].decode("utf-16-le"), legend[kind]))
    return found


def test_formatting_edits_only_the_lines_that_change(desk: Desk) -> None:
    async def act(here: Editor) -> None:
        options = types.FormattingOptions(2, True)
        asked = types.DocumentFormattingParams(here.named("a.gasl"), options)
        assert list(await here.client.text_document_formatting_async(asked) or ()) == []
        here.replace("a.gasl", (at := here.offset("a.gasl", "COUNT people")), at + 12, "count   people")
        edits = await here.client.text_document_formatting_async(asked) or ()
        assert made(here.texts["a.gasl"], list(edits)) == GASL
        assert edits[0].range.start.line == edits[0].range.end.line - 1 == 4
        here.replace("a.gasl", 0, 0, 'FIND "')
        assert list(await here.client.text_document_formatting_async(asked) or ()) == []

    at(desk, act)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", list(types.PositionEncodingKind))
def test_positions_are_counted_as_agreed(tmp_path: Path, encoding: types.PositionEncodingKind) -> None:
    async def act(here: Editor) -> None:
        assert here.encoding == encoding.value
        here.replace("a.lwt", (at := here.offset("a.lwt", "? 🙂 {(mood)}")) + 6, at + 10, "moood")
        found = await here.diagnostics("a.lwt")
        assert len(found) == 1
        line = here.texts["a.lwt"].split("\n")[1]
        before = line[: line.index("🙂 {(moood") + 2]
        units = {"utf-8": len(before.encode()), "utf-16": len(before.encode("utf-16-le")) // 2, "utf-32": len(before)}
        assert found[0].range.start.character == units[encoding.value] + len("{(")

    with_editor(tmp_path, act, encodings=[encoding])


def test_every_link_leads_to_a_heading_of_the_reference() -> None:
    page = (DOCS / "reference/rules.md").read_text()
    headings = {line.removeprefix("## ").lower() for line in page.splitlines() if line.startswith("## ")}
    assert {code.lower() for code in RULES} <= headings


def test_documents_in_other_languages_are_left_alone(desk: Desk) -> None:
    async def act(here: Editor) -> None:
        item = types.TextDocumentItem("file:///x.py", "python", 1, "import os")
        here.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        named = types.TextDocumentIdentifier("file:///x.py")
        assert await here.client.text_document_hover_async(types.HoverParams(named, types.Position(0, 0))) is None
        assert "file:///x.py" not in here.told

    at(desk, act)


def test_fixes_that_meet_are_made_whole_or_not_at_all() -> None:
    from knotwork.lang.diagnostic import Diagnostic, Edit
    from knotwork.lang.source import Span
    from knotwork.runtime.interfaces.lsp.features import fix_all

    first = Diagnostic("A", "error", "", edits=(Edit(Span(0, 1), "x"), Edit(Span(4, 5), "y")))
    second = Diagnostic("B", "error", "", edits=(Edit(Span(4, 6), "z"), Edit(Span(8, 9), "w")))
    third = Diagnostic("C", "error", "", edits=(Edit(Span(7, 8), "!"),))
    assert apply_edits("abcdefghi", fix_all([first, second, third])) == "xbcdyfg!i"
