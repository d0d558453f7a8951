"""An editor without a screen: the official client of the protocol, driving ``knotwork lsp`` over stdio."""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from attrs import define, field
from knotwork.runtime.interfaces.lsp.documents import Encoding, Text
from lsprotocol import types
from pygls.lsp.client import LanguageClient

__all__ = ["CAPABILITIES", "Desk", "Editor", "editor", "made"]

T = TypeVar("T")
PATIENCE = 60.0
"""Seconds that anything may take on a slow machine; all of it takes a moment."""

CAPABILITIES = types.ClientCapabilities(
    workspace=types.WorkspaceClientCapabilities(
        workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
    ),
    text_document=types.TextDocumentClientCapabilities(
        rename=types.RenameClientCapabilities(prepare_support=True),
    ),
)


def made(text: str, edits: Sequence[types.TextEdit], encoding: Encoding = "utf-16") -> str:
    """Return the text with the server's edits made, as an editor makes them: all at once, from the end."""
    counted = Text(text, encoding)
    placed = sorted(
        ((counted.span(edit.range), edit.new_text) for edit in edits), key=lambda each: each[0], reverse=True
    )
    for span, new in placed:
        text = text[: span.start] + new + text[span.end :]
    return text


@define(eq=False)
class Editor:
    """A client with open documents. Names are of files in ``folder``; offsets count code points of the document as it is."""

    client: LanguageClient
    folder: Path
    encoding: Encoding = "utf-16"
    texts: dict[str, str] = field(factory=dict)
    versions: dict[str, int] = field(factory=dict)
    told: "dict[str, types.PublishDiagnosticsParams]" = field(factory=dict)
    messages: list[str] = field(factory=list)
    news: asyncio.Event = field(factory=asyncio.Event)

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def named(self, name: str) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri(name))

    def at(self, name: str, offset: int) -> types.Position:
        return Text(self.texts[name], self.encoding).position(offset)

    def offset(self, name: str, what: str, behind: bool = False) -> int:
        """Return where ``what`` stands in a document, or where it ends."""
        return self.texts[name].index(what) + (len(what) if behind else 0)

    async def open(self, name: str, text: str, language: str = "") -> Sequence[types.Diagnostic]:
        """Open a document (again) and return what is told of it."""
        if name in self.texts:
            self.client.text_document_did_close(types.DidCloseTextDocumentParams(self.named(name)))
            await self.until(lambda: self.told[self.uri(name)].version is None)
        self.told.pop(self.uri(name), None)
        self.texts[name], self.versions[name] = text, 1
        item = types.TextDocumentItem(self.uri(name), language or name.rpartition(".")[2], 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return await self.diagnostics(name)

    def replace(self, name: str, start: int, end: int, new: str) -> None:
        """Type: replace a part of a document by another text."""
        text = self.texts[name]
        where = types.Range(self.at(name, start), self.at(name, end))
        self.texts[name] = text[:start] + new + text[end:]
        self.versions[name] += 1
        named = types.VersionedTextDocumentIdentifier(self.versions[name], self.uri(name))
        change = types.TextDocumentContentChangePartial(where, new)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(named, [change]))

    async def diagnostics(self, name: str) -> Sequence[types.Diagnostic]:
        """Return what is told of a document as it is now."""
        uri = self.uri(name)
        await self.until(lambda: uri in self.told and self.told[uri].version == self.versions[name])
        return self.told[uri].diagnostics

    async def until(self, holds: Any) -> None:
        """Wait until something that the server tells makes ``holds()`` true."""
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self.news.clear()
                await self.news.wait()


class Desk:
    """One editor for many tests, on a loop of its own: to start a server takes longer than most of them."""

    def __init__(self, folder: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._context = editor(folder)
        self.editor = self.run(self._context.__aenter__())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine beside the editor and return what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(4 * PATIENCE)

    def close(self) -> None:
        """Say good-bye."""
        self.run(self._context.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@asynccontextmanager
async def editor(
    folder: Path,
    options: Any = None,
    encodings: Sequence[types.PositionEncodingKind] | None = None,
    capabilities: types.ClientCapabilities = CAPABILITIES,
) -> AsyncIterator[Editor]:
    """Start a server and introduce a client to it; at the end both say good-bye."""
    client = LanguageClient("knotwork-tests", "1")
    this = Editor(client, folder)

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def publish(params: types.PublishDiagnosticsParams) -> None:
        this.told[params.uri] = params
        this.news.set()

    @client.feature(types.WINDOW_SHOW_MESSAGE)
    def show(params: types.ShowMessageParams) -> None:
        this.messages.append(params.message)
        this.news.set()

    @client.feature(types.WINDOW_LOG_MESSAGE)
    def log(params: types.LogMessageParams) -> None:
        this.messages.append(params.message)
        this.news.set()

    environment = {**os.environ, "KNOTWORK_DEBUG": "0"}
    await client.start_io(sys.executable, "-m", "knotwork", "lsp", env=environment)
    if encodings is not None:
        import attrs

        capabilities = attrs.evolve(capabilities, general=types.GeneralClientCapabilities(position_encodings=encodings))
    async with asyncio.timeout(PATIENCE):
        answer = await client.initialize_async(
            types.InitializeParams(
                capabilities=capabilities,
                process_id=os.getpid(),
                initialization_options=options,
                root_uri=folder.as_uri(),
            )
        )
    this.encoding = str(getattr(answer.capabilities.position_encoding, "value", answer.capabilities.position_encoding))  # type: ignore[assignment]
    client.initialized(types.InitializedParams())
    try:
        yield this
        async with asyncio.timeout(PATIENCE):
            await client.shutdown_async(None)
            client.exit(None)
            await client._server.wait()  # type: ignore[union-attr]
        assert client._server.returncode == 0  # type: ignore[union-attr]
    finally:
        server = client._server
        if server is not None and server.returncode is None:
            server.kill()
        async with asyncio.timeout(PATIENCE):
            await client.stop()
