"""The protocol's methods, each a question to the language service about a document as it is when the question comes."""

from collections.abc import Callable, Sequence
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from ....lang import service
from ....lang.diagnostic import Diagnostic
from .actions import code_actions
from .documents import Document, Snapshot
from .formatting import format_edit
from .server import KnotworkServer
from .wording import (
    TOKEN_TYPES,
    completion_item,
    document_symbol,
    folding_range,
    hover_of,
    text_edits,
    token_data,
)

__all__ = ["register"]

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
        found = await server.ask(service.hover, snapshot.language, snapshot.source, offset, known)
        capability = server.client_capabilities.text_document
        markdown = _takes_markdown(capability.hover.content_format if capability and capability.hover else None)
        return hover_of(found, snapshot.text, markdown=markdown) if found is not None else None


def _register_names(server: KnotworkServer) -> None:
    async def places(params: Any) -> tuple[Snapshot, tuple[service.Place, ...]] | None:
        if (document := _at(server, params)) is None:
            return None
        snapshot, known = document.snapshot(), server.known(document)
        offset = snapshot.text.offset(params.position)
        return snapshot, await server.ask(service.references, snapshot.language, snapshot.source, offset, known)

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def definition(params: types.DefinitionParams) -> types.Location | None:
        if (document := _at(server, params)) is None:
            return None
        snapshot, known = document.snapshot(), server.known(document)
        offset = snapshot.text.offset(params.position)
        found = await server.ask(service.definition, snapshot.language, snapshot.source, offset, known)
        return types.Location(snapshot.uri, snapshot.text.range(found.span)) if found is not None else None

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    async def references(params: types.ReferenceParams) -> list[types.Location] | None:
        if (found := await places(params)) is None:
            return None
        snapshot, named = found
        kept = (each for each in named if params.context.include_declaration or not each.defines)
        return [types.Location(snapshot.uri, snapshot.text.range(each.span)) for each in kept]

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    async def highlights(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight] | None:
        if (found := await places(params)) is None:
            return None
        snapshot, named = found
        kinds = types.DocumentHighlightKind
        return [
            types.DocumentHighlight(snapshot.text.range(each.span), kinds.Write if each.defines else kinds.Read)
            for each in named
        ]

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    async def prepare(params: types.PrepareRenameParams) -> types.Range | None:
        if (document := _at(server, params)) is None:
            return None
        snapshot, known = document.snapshot(), server.known(document)
        offset = snapshot.text.offset(params.position)
        found = await server.ask(service.renamable, snapshot.language, snapshot.source, offset, known)
        return snapshot.text.range(found.span) if found is not None else None

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    async def rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
        if (document := _at(server, params)) is None:
            return None
        snapshot, known = document.snapshot(), server.known(document)
        offset = snapshot.text.offset(params.position)
        found = await server.ask(service.rename, snapshot.language, snapshot.source, offset, params.new_name, known)
        if isinstance(found, Diagnostic):
            raise JsonRpcException("; ".join((found.message, *found.hints)), _FAILED)
        _unchanged(document, snapshot)
        return server.changes(snapshot, found)


def _register_shapes(server: KnotworkServer) -> None:
    async def asked(params: Any, function: Callable[..., Any]) -> tuple[Snapshot, Any] | None:
        if (document := _at(server, params)) is None:
            return None
        snapshot = document.snapshot()
        return snapshot, await server.ask(function, snapshot.language, snapshot.source)

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol] | None:
        if (found := await asked(params, service.symbols)) is None:
            return None
        return [document_symbol(each, found[0].text) for each in found[1]]

    @server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
    async def folds(params: types.FoldingRangeParams) -> list[types.FoldingRange] | None:
        if (found := await asked(params, service.folds)) is None:
            return None
        return [folding_range(each) for each in found[1]]

    legend = types.SemanticTokensLegend(token_types=list(TOKEN_TYPES), token_modifiers=[])

    @server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, legend)
    async def tokens(params: types.SemanticTokensParams) -> types.SemanticTokens | None:
        if (found := await asked(params, service.tokens)) is None:
            return None
        return types.SemanticTokens(data=token_data(found[1], found[0].text))


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
        edit = await server.ask(format_edit, snapshot.language, snapshot.source)
        _unchanged(document, snapshot)
        return [] if edit is None else text_edits([edit], snapshot.text)
