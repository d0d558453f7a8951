"""The protocol's methods, each a question to the language service about a document as it is when the question comes."""

import asyncio
import gc
import logging
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, cast

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from ....lang import service
from ....lang.diagnostic import Diagnostic, Edit
from ....lang.service import Known
from ...runs.debug_log import level
from .actions import code_actions, format_edit
from .documents import Document, Snapshot
from .protocol import TOKEN_TYPES, completion_item, document_symbol, folding_range, hover_of, text_edits, token_data
from .server import KnotworkServer
from .stream import converse

__all__ = ["serve"]

_TRIGGERS = (" ", "(", ".", "{", '"', "'", "[", ",", "=", "$", "|", ":", "`")
_MODIFIED, _FAILED = -32801, -32803
"""The protocol's codes: the text changed meanwhile; the request was understood and can't be met."""


def register(server: KnotworkServer) -> None:
    """Give ``server`` all methods that it answers."""
    _register_workspace(server)
    _register_words(server)
    _register_names(server)
    _register_shapes(server)
    _register_edits(server)


def _at(server: KnotworkServer, given: Any) -> Document | None:
    return server.documents.get(given.text_document.uri)


def _unchanged(document: Document, snapshot: Snapshot) -> None:
    """Raise where the text changed while edits of it were worked out."""
    if document.snapshot() is not snapshot:
        raise JsonRpcException("the text changed meanwhile", _MODIFIED)


# What follows runs in the thread of answers, wording and all: of a large text or a long line it takes a moment, in which the loop hears.


def _asked(function: Callable[..., Any], snapshot: Snapshot, *given: Any) -> Any:
    """Ask the service about a text that was read."""
    return function(snapshot.language, snapshot.read(), *given)


def _places(snapshot: Snapshot, offset: int, known: Known) -> list[tuple[types.Range, bool]]:
    """Return where what stands at a place is named, and whether it is defined there."""
    found: Sequence[service.Place] = _asked(service.references, snapshot, offset, known)
    return [(snapshot.text.range(each.span), each.defines) for each in found]


def _symbols(snapshot: Snapshot) -> list[types.DocumentSymbol]:
    return [document_symbol(each, snapshot.text) for each in _asked(service.symbols, snapshot)]


def _folds(snapshot: Snapshot) -> list[types.FoldingRange]:
    return [folding_range(each) for each in _asked(service.folds, snapshot)]


def _tokens(snapshot: Snapshot) -> types.SemanticTokens:
    return types.SemanticTokens(data=token_data(_asked(service.tokens, snapshot), snapshot.text))


def _formatted(snapshot: Snapshot) -> Edit | None:
    return format_edit(snapshot.read())


def _refusal(found: Diagnostic) -> JsonRpcException:
    return JsonRpcException("; ".join((found.message, *found.hints)), _FAILED)


def _takes_markdown(formats: Sequence[Any] | None) -> bool:
    return formats is None or types.MarkupKind.Markdown in formats


def _register_workspace(server: KnotworkServer) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.begin(params)

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configured(params: types.DidChangeConfigurationParams) -> None:
        if params.settings:  # a client that is to be asked for them sends none
            server.configure(params.settings)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def files_changed(params: types.DidChangeWatchedFilesParams) -> None:
        server.check_all()

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        server.check_all()  # another text may name the file that was saved


def _register_words(server: KnotworkServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=list(_TRIGGERS)))
    async def complete(params: types.CompletionParams) -> types.CompletionList | None:
        if (document := _at(server, params)) is None:
            return None
        snapshot, known = document.snapshot(), server.known(document)
        offset = snapshot.text.offset(params.position)
        found = await server.ask(service.complete, snapshot.language, snapshot.source, offset, known)
        capability = server.client_capabilities.text_document
        item = capability.completion.completion_item if capability and capability.completion else None
        markdown = _takes_markdown(item.documentation_format if item else None)
        items = [completion_item(each, snapshot.text, markdown=markdown) for each in found]
        # What is offered depends on what is typed already: a client that only filters it would miss what fits when some is deleted.
        is_part = len(items) >= 200 or any(each.span.end > each.span.start for each in found)
        return types.CompletionList(is_incomplete=is_part, items=items)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        if (document := _at(server, params)) is None:
            return None
        snapshot, known = document.snapshot(), server.known(document)
        offset = snapshot.text.offset(params.position)
        found = await server.ask(_asked, service.hover, snapshot, offset, known)
        capability = server.client_capabilities.text_document
        markdown = _takes_markdown(capability.hover.content_format if capability and capability.hover else None)
        return hover_of(found, snapshot.text, markdown=markdown) if found is not None else None


def _register_names(server: KnotworkServer) -> None:
    async def places(params: Any) -> tuple[Snapshot, list[tuple[types.Range, bool]]] | None:
        if (document := _at(server, params)) is None:
            return None
        snapshot, known = document.snapshot(), server.known(document)
        return snapshot, await server.ask(_places, snapshot, snapshot.text.offset(params.position), known)

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def definition(params: types.DefinitionParams) -> types.Location | None:
        if (document := _at(server, params)) is None:
            return None
        snapshot, known = document.snapshot(), server.known(document)
        offset = snapshot.text.offset(params.position)
        found = await server.ask(_asked, service.definition, snapshot, offset, known)
        return types.Location(snapshot.uri, snapshot.text.range(found.span)) if found is not None else None

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    async def references(params: types.ReferenceParams) -> list[types.Location] | None:
        if (found := await places(params)) is None:
            return None
        snapshot, named = found
        all_of_them = params.context.include_declaration
        return [types.Location(snapshot.uri, where) for where, defines in named if all_of_them or not defines]

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    async def highlights(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight] | None:
        if (found := await places(params)) is None:
            return None
        kinds = types.DocumentHighlightKind
        return [types.DocumentHighlight(where, kinds.Write if defines else kinds.Read) for where, defines in found[1]]

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    async def prepare(params: types.PrepareRenameParams) -> types.Range | None:
        if (document := _at(server, params)) is None:
            return None
        snapshot, known = document.snapshot(), server.known(document)
        offset = snapshot.text.offset(params.position)
        found = await server.ask(_asked, service.renamable, snapshot, offset, known)
        if not isinstance(found, Diagnostic):
            return snapshot.text.range(found.span)
        if found.span is None:  # no name at all: the editor has words of its own for that
            return None
        raise _refusal(found)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    async def rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
        if (document := _at(server, params)) is None:
            return None
        snapshot, known = document.snapshot(), server.known(document)
        offset = snapshot.text.offset(params.position)
        # What is said of the text as it is counts for a rename; it is being worked out, or was.
        await server.publisher.findings(document)
        _unchanged(document, snapshot)
        found = await server.ask(_asked, service.rename, snapshot, offset, params.new_name, known)
        if isinstance(found, Diagnostic):
            raise _refusal(found)
        _unchanged(document, snapshot)
        return server.changes(snapshot, found)


def _register_shapes(server: KnotworkServer) -> None:
    async def asked(params: Any, function: Callable[[Snapshot], Any]) -> Any:
        document = _at(server, params)
        return None if document is None else await server.ask(function, document.snapshot())

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol] | None:
        return cast("list[types.DocumentSymbol] | None", await asked(params, _symbols))

    @server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
    async def folds(params: types.FoldingRangeParams) -> list[types.FoldingRange] | None:
        return cast("list[types.FoldingRange] | None", await asked(params, _folds))

    legend = types.SemanticTokensLegend(token_types=list(TOKEN_TYPES), token_modifiers=[])

    @server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, legend)
    async def tokens(params: types.SemanticTokensParams) -> types.SemanticTokens | None:
        return cast("types.SemanticTokens | None", await asked(params, _tokens))


def _register_edits(server: KnotworkServer) -> None:
    kinds = [types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll]

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))
    async def actions(params: types.CodeActionParams) -> list[types.CodeAction] | None:
        if (document := _at(server, params)) is None:
            return None
        span = document.snapshot().text.span(params.range)
        findings = await server.publisher.findings(document)
        only = params.context.only
        wanted = None if only is None else [str(getattr(each, "value", each)) for each in only]
        return list(code_actions(findings, span, wanted, server.docs(), server.changes))

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    async def formatted(params: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
        if (document := _at(server, params)) is None:
            return None
        snapshot = document.snapshot()
        edit = await server.ask(_formatted, snapshot)
        _unchanged(document, snapshot)
        return [] if edit is None else text_edits([edit], snapshot.text)


# The server put together and run: its methods, its connection, its end.


def serve(stdin: BinaryIO, stdout: BinaryIO) -> bool:
    """Serve one client over a pair of streams until it leaves. Return whether it said good-bye in order."""
    # A check makes many small values and keeps few: looking through all that lives each time would cost a third of it.
    gc.set_threshold(100_000, 20, 100)
    logging.getLogger("pygls").setLevel(logging.DEBUG if level() >= 3 else logging.CRITICAL + 1)
    server = KnotworkServer()
    register(server)

    async def run() -> int:
        return await converse(server.stream, stdin, stdout)

    try:
        return asyncio.run(run()) == 0
    finally:
        server.end()
