"""The protocol as pygls has it, less what an editor's user should not meet: tracebacks in answers, and a second copy of each text."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, cast
from typing import Protocol as Port

from lsprotocol import types
from pygls.protocol import LanguageServerProtocol, lsp_method

from ....lang.catalogue.rules import RULES
from ....lang.diagnostic import Diagnostic, Edit, Severity, printable
from ....lang.service import Completion, Fold, Hover, Symbol, Token
from .documents import Text

__all__ = [
    "TOKEN_TYPES",
    "Protocol",
    "completion_item",
    "document_symbol",
    "folding_range",
    "hover_of",
    "lsp_diagnostic",
    "text_edits",
    "token_data",
]

INTERNAL = -32603
"""JSON-RPC's code for a fault of the server's own."""


class TakesTexts(Port):
    """What the protocol hands documents to."""

    process_id: int | None

    def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        """Take a document that was opened."""

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        """Take changes of a document."""

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        """Take notice that a document was closed."""

    def log(self, message: str) -> None:
        """Write a line into the client's log."""


class Protocol(LanguageServerProtocol):
    """Keeps documents in ``server.documents`` alone, where positions are counted as the protocol says.

    The server is one that ``TakesTexts``.
    """

    @property
    def is_shut_down(self) -> bool:
        """Say whether the client has asked for the end; only ``exit`` is taken then."""
        return self._shutdown

    @property
    def is_initialized(self) -> bool:
        """Say whether the client has introduced itself."""
        return self._workspace is not None

    def knows(self, method: str) -> bool:
        """Say whether a method is one that is answered here."""
        return method in self.fm.builtin_features or method in self.fm.features

    @property
    def client_process(self) -> int | None:
        """The number of the client's process, where it said one."""
        return self._own.process_id

    @property
    def _own(self) -> TakesTexts:
        return cast("TakesTexts", self._server)

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        """Keep a document."""
        self._own.opened(params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Change a document."""
        self._own.changed(params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        """Forget a document."""
        self._own.closed(params)

    def complain(self, message: str) -> None:
        """Say in the client's log what is wrong with a notification, which has no answer."""
        self._own.log(message)

    def refuse(self, msg_id: Any, code: int, message: str) -> None:
        """Answer a request, or what was perhaps one (its id is None then), with an error."""
        self._send_data({"jsonrpc": "2.0", "id": msg_id, "error": {"code": code, "message": printable(message)[:500]}})

    def _check_handler_result(self, future: "Future[Any]") -> None:
        super()._check_handler_result(future)
        # pygls keeps what came of notifications as if somebody would ask for it.
        for key in [key for key, kept in self._request_futures.items() if kept is future]:
            del self._request_futures[key]

    def _send_response(
        self, msg_id: str | int, result: Any | None = None, error: types.ResponseError | None = None
    ) -> None:
        if error is not None:
            message = printable(error.message or "the request failed")[:500]
            if error.code == INTERNAL and not message.startswith("internal error"):
                message = f"internal error: {message}"
            error = types.ResponseError(code=error.code, message=message)  # without pygls' traceback
        super()._send_response(msg_id, result, error)


# The service's values in the protocol's words.


SOURCE = "knotwork"

_SEVERITIES: Mapping[Severity, types.DiagnosticSeverity] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}
_Item = types.CompletionItemKind
_ITEMS: Mapping[str, types.CompletionItemKind] = {
    "keyword": _Item.Keyword, "command": _Item.Keyword, "operation": _Item.Function, "function": _Item.Function,
    "method": _Item.Method, "option": _Item.Property, "value": _Item.Value, "variable": _Item.Variable, "step": _Item.Reference,
    "key": _Item.Property, "field": _Item.Field, "measure": _Item.Function, "model": _Item.Constant, "setting": _Item.Property,
    "property": _Item.Property, "name": _Item.Text, "punctuation": _Item.Operator,
}  # fmt: skip
_Symbol = types.SymbolKind
_SYMBOLS: Mapping[str, types.SymbolKind] = {
    "step": _Symbol.Function, "variable": _Symbol.Variable, "key": _Symbol.Key, "command": _Symbol.Event,
    "block": _Symbol.Namespace, "field": _Symbol.Field, "computation": _Symbol.Function, "condition": _Symbol.Boolean,
    "output": _Symbol.Property,
}  # fmt: skip
_TOKENS: Mapping[str, str] = {
    "keyword": "keyword", "command": "macro", "variable": "variable", "step": "class", "function": "function",
    "string": "string", "number": "number", "operator": "operator", "comment": "comment", "property": "property", "type": "type",
}  # fmt: skip
TOKEN_TYPES: Sequence[str] = tuple(_TOKENS.values())
"""The protocol's names for what ``token_data`` tells apart, in the order of their numbers."""
_NUMBERS: Mapping[str, int] = {name: number for number, name in enumerate(_TOKENS)}


def lsp_diagnostic(found: Diagnostic, text: Text, docs: str | None) -> types.Diagnostic:
    """Return a diagnostic: message and hints as its text, its code a link into the reference where ``docs`` says where that is."""
    span = found.span
    where = types.Range(types.Position(0, 0), types.Position(0, 0)) if span is None else text.range(span)
    message = "\n".join((found.message, *(f"help: {hint}" for hint in found.hints)))
    link = types.CodeDescription(href=f"{docs}#{found.code.lower()}") if docs and found.code in RULES else None
    return types.Diagnostic(where, message, _SEVERITIES[found.severity], found.code, link, SOURCE)


def text_edits(edits: Iterable[Edit], text: Text) -> list[types.TextEdit]:
    """Return edits of a text."""
    return [types.TextEdit(text.range(edit.span), edit.text) for edit in edits]


def completion_item(found: Completion, text: Text, *, markdown: bool) -> types.CompletionItem:
    """Return a completion. What typing filters by begins as the text under its span does, or clients would drop it."""
    edit = types.TextEdit(text.range(found.span), found.text)
    kind = types.MarkupKind.Markdown if markdown else types.MarkupKind.PlainText
    is_quoted = text.text[found.span.start : found.span.end][:1] in ('"', "'", "`")
    return types.CompletionItem(
        label=found.text,
        kind=_ITEMS.get(found.kind),
        detail=found.detail or None,
        documentation=types.MarkupContent(kind, found.documentation) if found.documentation else None,
        sort_text=f"{found.rank:04d}",
        filter_text=found.text if is_quoted else found.match or None,
        insert_text_format=types.InsertTextFormat.PlainText,
        text_edit=edit,
    )


def hover_of(found: Hover, text: Text, *, markdown: bool) -> types.Hover:
    """Return a hover."""
    kind = types.MarkupKind.Markdown if markdown else types.MarkupKind.PlainText
    return types.Hover(types.MarkupContent(kind, found.text), text.range(found.span))


def document_symbol(found: Symbol, text: Text) -> types.DocumentSymbol:
    """Return a symbol with what is in it; its name lies within it, as clients demand."""
    whole = found.span | found.name_span
    return types.DocumentSymbol(
        name=found.name or "(no name)",
        kind=_SYMBOLS[found.kind],
        range=text.range(whole),
        selection_range=text.range(found.name_span),
        detail=found.detail or None,
        children=[document_symbol(child, text) for child in found.children] or None,
    )


def folding_range(found: Fold) -> types.FoldingRange:
    """Return a fold; the protocol counts lines from 0."""
    kind = types.FoldingRangeKind.Comment if found.kind == "comment" else types.FoldingRangeKind.Region
    return types.FoldingRange(found.first_line - 1, found.last_line - 1, kind=kind)


def token_data(found: Iterable[Token], text: Text) -> list[int]:
    """Return tokens as the protocol packs them: five numbers each, line and column from the token before."""
    data: list[int] = []
    starts, last = text.starts, len(text.starts)
    number = line = column = 0
    is_plain = text.counts_code_points
    for token in found:
        while number + 1 < last and starts[number + 1] <= token.start:
            number += 1
        end = min(token.end, starts[number + 1]) if number + 1 < last else token.end
        if end <= token.start:
            continue
        begin = token.start - starts[number] if is_plain else text.column(number, token.start)
        size = end - token.start if is_plain else text.column(number, end) - begin
        data += (number - line, begin - column if number == line else begin, size, _NUMBERS[token.type], 0)
        line, column = number, begin
    return data
