"""What is not an error of the server is not called one: places that have no name, renames that can't be, changes that are none."""

from pathlib import Path

import pytest
from lsprotocol import types
from support.editor import Editor, editor

LWT = '(a)=LLM("x {(input)}")\n(final)=EACH({(a)}, LLM("{(item)}"))\n'
GASL = "DECLARE story AS LIST\nFIND nodes AS a\nUPDATE story WITH a\n"


def asked(here: Editor, name: str, what: str) -> types.PrepareRenameParams:
    return types.PrepareRenameParams(here.named(name), here.at(name, here.offset(name, what)))


@pytest.mark.slow
async def test_what_is_no_name_and_what_keeps_its_name_can_not_be_renamed(tmp_path: Path) -> None:
    async with editor(tmp_path) as here:
        await here.open("a.lwt", LWT)
        await here.open("a.gasl", GASL)
        prepare = here.client.text_document_prepare_rename_async
        for name, what in (
            ("a.lwt", "(a)"),
            ("a.lwt", "LLM"),
            ("a.lwt", "x {"),
            ("a.gasl", "FIND"),
            ("a.gasl", "AS LIST"),
        ):
            assert await prepare(asked(here, name, what)) is None
        assert isinstance(await prepare(asked(here, "a.lwt", "a)=")), types.Range)
        for name, what, why in (
            ("a.lwt", "input", "input is not a step"),
            ("a.lwt", "item", "item is not a step"),
            ("a.gasl", "story", "can't be renamed"),
        ):
            with pytest.raises(Exception, match=why):
                await prepare(asked(here, name, what))
            where = here.at(name, here.offset(name, what))
            with pytest.raises(Exception, match=why):
                await here.client.text_document_rename_async(types.RenameParams(here.named(name), where, "other"))
        with pytest.raises(Exception, match="has the name of a keyword"):
            where = here.at("a.gasl", len(GASL) - 2)
            await here.client.text_document_rename_async(types.RenameParams(here.named("a.gasl"), where, "where"))
        assert here.messages == [], "a refusal is not a fault of the server"


@pytest.mark.slow
async def test_a_change_that_can_not_be_read_is_told_of(tmp_path: Path) -> None:
    async with editor(tmp_path) as here:
        await here.open("a.lwt", LWT)
        where = {"start": {"line": "x", "character": 0}, "end": {"line": 0, "character": 0}}
        change = {
            "textDocument": {"uri": here.uri("a.lwt"), "version": 2},
            "contentChanges": [{"range": where, "text": 3}],
        }
        here.client.protocol._send_data(  # the client itself makes no such message
            {"jsonrpc": "2.0", "method": "textDocument/didChange", "params": change}
        )
        await here.until(lambda: here.messages)
        assert "invalid parameters of textDocument/didChange" in here.messages[0]


def test_a_title_says_what_a_fix_does() -> None:
    from knotwork.lang.diagnostic import Edit
    from knotwork.lang.source import Span
    from knotwork.runtime.interfaces.lsp.features import action_title

    text = "ab cd ef gh"
    assert action_title([Edit(Span(0, 2), "x\ny")], text) == "replace ab with x y"
    assert action_title([Edit(Span(2, 3), "")], text) == "remove a space"
    assert action_title([Edit(Span(2, 2), '"')], text) == 'insert "'
    edits = [Edit(Span(at, at + 2), "") for at in (0, 3, 6, 9)]
    assert action_title(edits, text) == "remove ab; remove cd; and 2 more"
    assert action_title([Edit(Span(0, 2), "z" * 90)], text) == f"replace ab with {'z' * 39}…"
