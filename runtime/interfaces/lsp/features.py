"""The protocol's methods. Each method asks the language service about the state of the document at the time of the request."""

import asyncio
import gc
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from attrs import evolve
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from ....lang import service
from ....lang.diagnostic import Diagnostic, Edit, compatible, printable
from ....lang.service import Known, Reading
from ....lang.source import Span
from ...api.files import SCRIPT_FILES, files_beside
from .documents import Document, Snapshot
from .protocol import (
    TOKEN_TYPES,
    completion_item,
    converse,
    document_symbol,
    folding_range,
    hover_of,
    lsp_diagnostic,
    text_edits,
    token_data,
)
from .server import Findings, KnotworkServer

# Offers quick fixes: the edits of each diagnostic, the edits of all diagnostics at once, and comments that suppress a diagnostic.

_FIX_ALL = "source.fixAll.knotwork"
_MOST = 50
_LONGEST, _MOST_EDITS = 40, 2
"""In the title of an action: the maximum length of a quoted text in characters, and the maximum number of described edits."""
_INDENT = re.compile(r"[ \t]*")


def code_actions(
    findings: Findings,
    span: Span,
    wanted: Sequence[str] | None,
    docs: str | None,
    changes: Callable[[Snapshot, Iterable[Edit]], types.WorkspaceEdit],
) -> Iterator[types.CodeAction]:
    """Yield the code actions for the diagnostics that touch ``span``.

    ``wanted`` are the kinds of actions that the client requests (None: all kinds). ``docs`` is the address of the rules' reference
    page. ``changes`` converts edits of a text to the form that the client supports.
    """
    snapshot, text = findings.snapshot, findings.snapshot.text
    touched = [each for each in findings.diagnostics if _touches(each, span)][:_MOST]
    if _is_wanted(types.CodeActionKind.QuickFix, wanted):
        for found in touched:
            if found.edits:
                diagnostic = lsp_diagnostic(found, text, docs)
                change = changes(snapshot, found.edits)
                yield types.CodeAction(
                    action_title(found.edits, text.text),
                    types.CodeActionKind.QuickFix,
                    [diagnostic],
                    is_preferred=True,
                    edit=change,
                )
        for found in touched:
            if snapshot.language != "seed" and (edit := _ignore(findings, found)) is not None:
                diagnostic = lsp_diagnostic(found, text, docs)
                title = f"suppress {found.code} here"
                yield types.CodeAction(
                    title, types.CodeActionKind.QuickFix, [diagnostic], edit=changes(snapshot, (edit,))
                )
    if _is_wanted(_FIX_ALL, wanted) and (edits := fix_all(findings.diagnostics)):
        yield types.CodeAction("apply all fixes", _FIX_ALL, edit=changes(snapshot, edits))


def action_title(edits: Sequence[Edit], text: str) -> str:
    """Return a title that describes what ``edits`` change in ``text``."""
    done = [_action(edit, text) for edit in edits]
    more = len(done) - _MOST_EDITS
    return "; ".join(done[:_MOST_EDITS]) + (f"; and {more} more" if more > 0 else "")


def _action(edit: Edit, text: str) -> str:
    old, new = text[edit.span.start : edit.span.end], edit.text
    if not old:
        return f"insert {_short_text(new)}"
    return f"replace {_short_text(old)} with {_short_text(new)}" if new else f"remove {_short_text(old)}"


def _short_text(text: str) -> str:
    if not text.strip():
        return "a line break" if "\n" in text else "a space"
    flat = " ".join(text.split())
    return printable(flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 1]}…")


def fix_all(found: Iterable[Diagnostic]) -> list[Edit]:
    """Return the edits of all diagnostics whose fixes can be applied together, in source order."""
    taken = [edit for each in compatible(found) for edit in each.edits]
    return sorted(taken, key=lambda edit: (edit.span.start, edit.span.end))


def _touches(found: Diagnostic, span: Span) -> bool:
    where = found.span or Span(0, 0)
    return where.start <= span.end and span.start <= where.end


def _is_wanted(kind: str, wanted: Sequence[str] | None) -> bool:
    """Return whether a client that requests ``wanted`` accepts ``kind``. Kinds form a hierarchy with dots between the levels."""
    return wanted is None or any(kind == each or kind.startswith(f"{each}.") for each in wanted)


def _ignore(findings: Findings, found: Diagnostic) -> Edit | None:
    """Return the edit that inserts an ignore comment above the item of ``found``; None if ``found`` can't be suppressed."""
    if found.span is None or found.severity == "error" or not service.has_rule(found.code):
        return None
    source = findings.snapshot.source
    item = next((each for each in findings.items if each.start <= found.span.start < each.end), None)
    if item is None:
        return None
    line = source.line_span(source.position(item.start)[0])
    indent = _INDENT.match(source.text, line.start, line.end)
    text = f"{indent[0] if indent else ''}# knotwork: ignore[{found.code}]\n"
    return Edit(Span(line.start, line.start), text)


# Formats a text with the printers, as one edit that replaces only the changed lines.


def format_edit(reading: Reading) -> Edit | None:
    """Return the edit that formats a text; None if it is already formatted, has errors, or is JSON (which editors format themselves)."""
    source, text = reading.source, service.formatted(reading)
    if text is None or text == source.text:
        return None
    before, after = source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    most = min(len(before), len(after))
    first = next((index for index in range(most) if before[index] != after[index]), most)
    same = next((index for index in range(most - first) if before[-1 - index] != after[-1 - index]), most - first)
    start = sum(map(len, before[:first]))
    end = len(source.text) - sum(map(len, before[len(before) - same :]))
    return Edit(Span(start, end), "".join(after[first : len(after) - same]))


_TRIGGERS = (" ", "(", ".", "{", '"', "'", "[", ",", "=", "$", "|", ":", "`")
_MODIFIED, _FAILED = -32801, -32803
"""The protocol's error codes for "content modified" and "request failed", in this order."""


def _require_unchanged(document: Document, snapshot: Snapshot) -> None:
    """Raise ``JsonRpcException`` if the text changed while edits for it were computed."""
    if document.snapshot() is not snapshot:
        raise JsonRpcException("the text changed meanwhile", _MODIFIED)


def _call(function: Callable[..., Any], snapshot: Snapshot, *arguments: Any) -> Any:
    """Call the language service for a parsed text. The call runs in the thread for answers, because parsing a large text takes a moment."""
    return function(snapshot.language, snapshot.read(), *arguments)


def _complete(snapshot: Snapshot, offset: int, known: Known, path: Path | None) -> Any:
    """Return the completions. For a script in a file, the files that it may name are known, too."""
    if snapshot.language == "lwt" and path is not None:
        known = evolve(known, files=files_beside(path, SCRIPT_FILES))
    return service.complete(snapshot.language, snapshot.source, offset, known)


def _refusal(found: Diagnostic) -> JsonRpcException:
    return JsonRpcException("; ".join((found.message, *found.hints)), _FAILED)


def _accepts_markdown(formats: Sequence[Any] | None) -> bool:
    return formats is None or types.MarkupKind.Markdown in formats


def register(server: KnotworkServer) -> None:
    """Register all methods that ``server`` supports."""
    _register_workspace(server)
    _register_position_queries(server)
    _register_text_queries(server)
    _register_edits(server)


def _register_workspace(server: KnotworkServer) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.begin(params)

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configured(params: types.DidChangeConfigurationParams) -> None:
        if params.settings:  # clients that expect the server to request the settings send none
            server.configure(params.settings)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def files_changed(params: types.DidChangeWatchedFilesParams) -> None:
        server.check_all()

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        server.check_all()  # the checks of other texts may depend on the saved file


def _register_position_queries(server: KnotworkServer) -> None:
    """Register the requests about a position in a text: completion, hover, definitions, references, renaming."""

    async def query(params: Any, function: Callable[..., Any], *arguments: Any) -> tuple[Snapshot | None, Any]:
        """Return a snapshot and the service's result for the position; ``(None, None)`` if the document is not open."""
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return None, None
        snapshot, known = document.snapshot(), server.known(document)
        offset = snapshot.text.offset(params.position)
        if function is service.complete:  # needs only the text before the position, so it does not wait for a parse
            return snapshot, await server.ask(_complete, snapshot, offset, known, document.path)
        return snapshot, await server.ask(_call, function, snapshot, offset, *arguments, known)

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=list(_TRIGGERS)))
    async def complete(params: types.CompletionParams) -> types.CompletionList | None:
        snapshot, found = await query(params, service.complete)
        if snapshot is None:
            return None
        capability = server.client_capabilities.text_document
        item = capability.completion.completion_item if capability and capability.completion else None
        markdown = _accepts_markdown(item.documentation_format if item else None)
        items = [completion_item(each, snapshot.text, markdown=markdown) for each in found]
        # Completions depend on the typed prefix. A client that only filters the list would miss some after a deletion.
        is_part = len(items) >= 200 or any(each.span.end > each.span.start for each in found)
        return types.CompletionList(is_incomplete=is_part, items=items)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        snapshot, found = await query(params, service.hover)
        capability = server.client_capabilities.text_document
        markdown = _accepts_markdown(capability.hover.content_format if capability and capability.hover else None)
        return hover_of(found, snapshot.text, markdown=markdown) if snapshot is not None and found is not None else None

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def definition(params: types.DefinitionParams) -> types.Location | None:
        snapshot, found = await query(params, service.definition)
        if snapshot is None or found is None:
            return None
        return types.Location(snapshot.uri, snapshot.text.range(found.span))

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    async def references(params: types.ReferenceParams) -> list[types.Location] | None:
        snapshot, found = await query(params, service.references)
        if snapshot is None:
            return None
        wanted = [each for each in found if params.context.include_declaration or not each.defines]
        return [types.Location(snapshot.uri, snapshot.text.range(each.span)) for each in wanted]

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    async def highlights(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight] | None:
        snapshot, found = await query(params, service.references)
        if snapshot is None:
            return None
        kinds = types.DocumentHighlightKind
        return [
            types.DocumentHighlight(snapshot.text.range(each.span), kinds.Write if each.defines else kinds.Read)
            for each in found
        ]

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    async def prepare(params: types.PrepareRenameParams) -> types.Range | None:
        snapshot, found = await query(params, service.renamable)
        if snapshot is None or (isinstance(found, Diagnostic) and found.span is None):
            return None  # the position is not on a name; the editor then shows its own message
        if isinstance(found, Diagnostic):
            raise _refusal(found)
        return snapshot.text.range(found.span)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    async def rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
        if (document := server.documents.get(params.text_document.uri)) is None:
            return None
        before = document.snapshot()
        # A rename depends on the diagnostics of the current text. They are available or being computed.
        await server.publisher.findings(document)
        _require_unchanged(document, before)
        _, found = await query(params, service.rename, params.new_name)
        if isinstance(found, Diagnostic):
            raise _refusal(found)
        _require_unchanged(document, before)
        return server.changes(before, found)


def _register_text_queries(server: KnotworkServer) -> None:
    """Register the requests about an entire text: symbols, folding ranges, tokens."""

    async def query(params: Any, convert: Callable[[Snapshot], Any]) -> Any:
        document = server.documents.get(params.text_document.uri)
        return None if document is None else await server.ask(convert, document.snapshot())

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol] | None:
        def convert(snapshot: Snapshot) -> list[types.DocumentSymbol]:
            return [document_symbol(each, snapshot.text) for each in _call(service.symbols, snapshot)]

        return cast("list[types.DocumentSymbol] | None", await query(params, convert))

    @server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
    async def folds(params: types.FoldingRangeParams) -> list[types.FoldingRange] | None:
        def convert(snapshot: Snapshot) -> list[types.FoldingRange]:
            return [folding_range(each) for each in _call(service.folds, snapshot)]

        return cast("list[types.FoldingRange] | None", await query(params, convert))

    legend = types.SemanticTokensLegend(token_types=list(TOKEN_TYPES), token_modifiers=[])

    @server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, legend)
    async def tokens(params: types.SemanticTokensParams) -> types.SemanticTokens | None:
        def convert(snapshot: Snapshot) -> types.SemanticTokens:
            return types.SemanticTokens(data=token_data(_call(service.tokens, snapshot), snapshot.text))

        return cast("types.SemanticTokens | None", await query(params, convert))


def _register_edits(server: KnotworkServer) -> None:
    kinds = [types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll]

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))
    async def actions(params: types.CodeActionParams) -> list[types.CodeAction] | None:
        if (document := server.documents.get(params.text_document.uri)) is None:
            return None
        span = document.snapshot().text.span(params.range)
        findings = await server.publisher.findings(document)
        only = params.context.only
        wanted = None if only is None else [str(getattr(each, "value", each)) for each in only]
        return list(code_actions(findings, span, wanted, server.docs(), server.changes))

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    async def formatted(params: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
        if (document := server.documents.get(params.text_document.uri)) is None:
            return None
        snapshot = document.snapshot()
        edit = await server.ask(lambda: format_edit(snapshot.read()))
        _require_unchanged(document, snapshot)
        return [] if edit is None else text_edits([edit], snapshot.text)


# Assembles, runs and ends the server.


def serve(stdin: BinaryIO, stdout: BinaryIO, *, log: bool = False) -> bool:
    """Serve one client until it disconnects. Return whether the shutdown was orderly. If ``log``, log all messages to stderr."""
    # A check creates many small values and keeps few of them. Frequent scans of all live objects would take a third of the time.
    gc.set_threshold(100_000, 20, 100)
    logging.getLogger("pygls").setLevel(logging.DEBUG if log else logging.CRITICAL + 1)
    server = KnotworkServer()
    register(server)

    async def run() -> int:
        return await converse(server.stream, stdin, stdout)

    try:
        return asyncio.run(run()) == 0
    finally:
        server.end()
