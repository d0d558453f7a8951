"""The protocol's methods: each queries the language service about the document at the time of the request."""

import asyncio
import gc
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, cast

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from ....lang import service
from ....lang.catalogue.rules import RULES
from ....lang.diagnostic import Diagnostic, Edit, compatible, has_errors, printable
from ....lang.service import Known, Reading
from ....lang.source import Source, Span
from ...runs.debug_log import level
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

# Quick fixes: the edits of diagnostics, one by one and all at once, and comments that suppress a diagnostic.

_FIX_ALL = "source.fixAll.knotwork"
_MOST = 50
_LONGEST, _TOLD = 40, 2
"""Maximum characters of a text, and number of edits, described in a title."""
_INDENT = re.compile(r"[ \t]*")


def code_actions(
    findings: Findings,
    span: Span,
    wanted: Sequence[str] | None,
    docs: str | None,
    changes: Callable[[Snapshot, Iterable[Edit]], types.WorkspaceEdit],
) -> Iterator[types.CodeAction]:
    """Yield the code actions for the diagnostics in ``span``; ``wanted`` are the kinds that the client requests.

    ``changes`` converts edits of a text to the client's form.
    """
    snapshot, text = findings.snapshot, findings.snapshot.text
    touched = [each for each in findings.diagnostics if _touches(each, span)][:_MOST]
    if _is_wanted(types.CodeActionKind.QuickFix, wanted):
        for found in touched:
            if found.edits:
                said = lsp_diagnostic(found, text, docs)
                change = changes(snapshot, found.edits)
                yield types.CodeAction(
                    action_title(found.edits, text.text),
                    types.CodeActionKind.QuickFix,
                    [said],
                    is_preferred=True,
                    edit=change,
                )
        for found in touched:
            if snapshot.language != "seed" and (edit := _ignore(findings, found)) is not None:
                said = lsp_diagnostic(found, text, docs)
                title = f"silence {found.code} here"
                yield types.CodeAction(title, types.CodeActionKind.QuickFix, [said], edit=changes(snapshot, (edit,)))
    if _is_wanted(_FIX_ALL, wanted) and (edits := fix_all(findings.diagnostics)):
        yield types.CodeAction("fix all that has a sure fix", _FIX_ALL, edit=changes(snapshot, edits))


def action_title(edits: Sequence[Edit], text: str) -> str:
    """Return a description of edits of a text. A hint suggests what to consider; a title says what happens."""
    done = [_action(edit, text) for edit in edits]
    more = len(done) - _TOLD
    return "; ".join(done[:_TOLD]) + (f"; and {more} more" if more > 0 else "")


def _action(edit: Edit, text: str) -> str:
    old, new = text[edit.span.start : edit.span.end], edit.text
    if not old:
        return f"insert {_said(new)}"
    return f"replace {_said(old)} by {_said(new)}" if new else f"remove {_said(old)}"


def _said(text: str) -> str:
    if not text.strip():
        return "a line break" if "\n" in text else "a blank"
    flat = " ".join(text.split())
    return printable(flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 1]}…")


def fix_all(found: Iterable[Diagnostic]) -> list[Edit]:
    """Return the edits of all diagnostics that can be applied together, in source order."""
    taken = [edit for each in compatible(found) for edit in each.edits]
    return sorted(taken, key=lambda edit: (edit.span.start, edit.span.end))


def _touches(found: Diagnostic, span: Span) -> bool:
    where = found.span or Span(0, 0)
    return where.start <= span.end and span.start <= where.end


def _is_wanted(kind: str, wanted: Sequence[str] | None) -> bool:
    """Return whether a client that requests ``wanted`` accepts ``kind``: kinds are a hierarchy, written with dots."""
    return wanted is None or any(kind == each or kind.startswith(f"{each}.") for each in wanted)


def _ignore(findings: Findings, found: Diagnostic) -> Edit | None:
    """Return the edit that inserts an ignore comment above the item of ``found``; None if it can't be suppressed."""
    if found.span is None or found.severity == "error" or found.code not in RULES:
        return None
    source = findings.snapshot.source
    item = next((each for each in findings.items if each.start <= found.span.start < each.end), None)
    if item is None:
        return None
    line = source.line_span(source.position(item.start)[0])
    indent = _INDENT.match(source.text, line.start, line.end)
    text = f"{indent[0] if indent else ''}# knotwork: ignore[{found.code}]\n"
    return Edit(Span(line.start, line.start), text)


# Formatting with the printers, as one edit of only the changed lines.


def format_edit(reading: Reading) -> Edit | None:
    """Return the edit that formats a text; None if it is formatted, has errors, or is JSON, which editors format themselves."""
    source, text = reading.source, _formatting_edits(reading)
    if text is None or text == source.text:
        return None
    before, after = source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    most = min(len(before), len(after))
    first = next((index for index in range(most) if before[index] != after[index]), most)
    same = next((index for index in range(most - first) if before[-1 - index] != after[-1 - index]), most - first)
    start = sum(map(len, before[:first]))
    end = len(source.text) - sum(map(len, before[len(before) - same :]))
    return Edit(Span(start, end), "".join(after[first : len(after) - same]))


def _formatting_edits(reading: Reading) -> str | None:
    """Return the formatted text. Raises if its meaning has changed, which is an internal error."""
    if reading.language not in ("lwt", "gasl") or has_errors(reading.faults):
        return None
    if reading.language == "lwt":
        from ....lang.printer.lwt_printer import format_lwt

        text = format_lwt(reading.script)
    else:
        from ....lang.printer.gasl_printer import format_gasl

        text = format_gasl(reading.program)
    again = Reading(reading.language, Source(text, reading.source.name))
    is_same = (
        again.script.items == reading.script.items
        if reading.language == "lwt"
        else again.program.items == reading.program.items
    )
    if not is_same:
        raise RuntimeError(f"formatting {reading.source.name} would change what it says")
    return text


_TRIGGERS = (" ", "(", ".", "{", '"', "'", "[", ",", "=", "$", "|", ":", "`")
_MODIFIED, _FAILED = -32801, -32803
"""The protocol's error codes: content modified meanwhile; request understood but failed."""


def register(server: KnotworkServer) -> None:
    """Register all methods that ``server`` answers."""
    _register_workspace(server)
    _register_words(server)
    _register_names(server)
    _register_shapes(server)
    _register_edits(server)


def _at(server: KnotworkServer, given: Any) -> Document | None:
    return server.documents.get(given.text_document.uri)


def _unchanged(document: Document, snapshot: Snapshot) -> None:
    """Raise an error if the text changed while edits of it were computed."""
    if document.snapshot() is not snapshot:
        raise JsonRpcException("the text changed meanwhile", _MODIFIED)


# The following functions run in the thread of answers: a large text or a long line takes a moment, during which the event loop
# must run.


def _asked(function: Callable[..., Any], snapshot: Snapshot, *given: Any) -> Any:
    """Call the language service for a text that was parsed."""
    return function(snapshot.language, snapshot.read(), *given)


def _places(snapshot: Snapshot, offset: int, known: Known) -> list[tuple[types.Range, bool]]:
    """Return the occurrences of the name at an offset, and whether each is its definition."""
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
        if params.settings:  # a client that must be queried for them sends none
            server.configure(params.settings)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def files_changed(params: types.DidChangeWatchedFilesParams) -> None:
        server.check_all()

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        server.check_all()  # another text may refer to the saved file


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
        # Completions depend on the typed prefix: a client that only filters would miss some after a deletion.
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
        if found.span is None:  # not a name: the editor has its own message for that
            return None
        raise _refusal(found)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    async def rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
        if (document := _at(server, params)) is None:
            return None
        snapshot, known = document.snapshot(), server.known(document)
        offset = snapshot.text.offset(params.position)
        # A rename depends on the diagnostics of the present text; their computation is done or under way.
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


# Assembles and runs the server: its methods, its connection, its end.


def serve(stdin: BinaryIO, stdout: BinaryIO) -> bool:
    """Serve one client over a pair of streams until it leaves. Return whether it shut down in order."""
    # A check makes many small values and keeps few: scanning all live objects each time would cost a third of the check's time.
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
