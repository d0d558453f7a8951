"""The protocol as pygls has it, less what an editor's user should not meet: tracebacks in answers, and a second copy of each text."""

import asyncio
import contextlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from typing import Any, BinaryIO, cast
from typing import Protocol as Port

from attrs import define, frozen
from cattrs.errors import BaseValidationError
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol, lsp_method

from ....lang.catalogue.rules import RULES
from ....lang.diagnostic import Diagnostic, Edit, Severity, printable
from ....lang.service import Completion, Fold, Hover, Symbol, Token
from .documents import Text

__all__ = [
    "TOKEN_TYPES",
    "Protocol",
    "completion_item",
    "converse",
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


# The connection: messages read from a stream one by one, each within bounds, and whatever is none answered as JSON-RPC wants it.
# Reading waits in a thread of its own, which dies with the process: a client that goes away without a word ends the server, a
# client that sends rubbish is told so and can go on.

MAX_MESSAGE = 64 << 20
"""Bytes of a message. The largest document has four million characters."""
_MAX_HEADER = 8192
_LENGTH = re.compile(rb"content-length[ \t]*:[ \t]*(\d{1,15})[ \t\r\n]*", re.IGNORECASE)
_PARSE_ERROR, _INVALID_REQUEST, _NOT_INITIALIZED, _NO_METHOD, _INVALID_PARAMS = -32700, -32600, -32002, -32601, -32602
_LOOK = 3.0
"""Seconds between looks whether the client still lives."""


@frozen
class _Bad:
    """Bytes that are no message, and why."""

    why: str


@define(eq=False)
class _Writer:
    """Writes messages out. A client that reads no more has gone: that ends the conversation, and nothing else is said of it."""

    stdout: BinaryIO
    gone: Callable[[], None]
    is_gone: bool = False

    def write(self, data: bytes) -> None:
        """Write one message."""
        if self.is_gone:
            return
        try:
            self.stdout.write(data)
            self.stdout.flush()
        except (OSError, ValueError):
            self.is_gone = True
            self.gone()

    def close(self) -> None:
        """Leave the stream to whoever opened it."""


async def converse(protocol: Protocol, stdin: BinaryIO, stdout: BinaryIO) -> int:
    """Take messages until the client asks for the end or goes away. Return the exit code: 0 where it said good-bye in order."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Any] = asyncio.Queue(maxsize=64)

    def leave() -> None:
        if not queue.full():  # else the next message is looked at soon, and with it whether anybody is there
            queue.put_nowait(None)

    writer = _Writer(stdout, leave)
    protocol.set_writer(writer)

    def read() -> None:
        with contextlib.suppress(RuntimeError, CancelledError):  # the loop has ended; so does this
            while True:
                message = _read(stdin)
                asyncio.run_coroutine_threadsafe(queue.put(message), loop).result()
                if message is None or _is_exit(message):
                    return

    threading.Thread(target=read, name="lsp-stdin", daemon=True).start()
    watcher: asyncio.Task[None] | None = None
    is_named = False
    try:
        while (message := await queue.get()) is not None:
            if _is_exit(message) or writer.is_gone:
                break
            # Looked at before it is answered, while it waits: one that is not there then lives elsewhere, in another container.
            lives_here = not is_named and _is_alive(_client_of(message))
            _take(protocol, message)
            if not is_named and (process := protocol.client_process) is not None:
                is_named = True
                if lives_here:
                    watcher = asyncio.create_task(_watch(process, queue))
            await asyncio.sleep(0)  # what was asked looks at the text as it is now, before the next message changes it
        return 0 if protocol.is_shut_down and not writer.is_gone else 1
    finally:
        if watcher is not None:
            watcher.cancel()


def _is_exit(message: Any) -> bool:
    return isinstance(message, dict) and message.get("method") == "exit"


def _read(stdin: BinaryIO) -> Any:
    """Return the next message: its JSON value, ``_Bad``, or None at the end."""
    length, broken = None, ""
    while True:
        try:
            line = stdin.readline(_MAX_HEADER)
        except (OSError, ValueError):
            return None
        if not line:
            return None
        if line in (b"\r\n", b"\n"):
            if length is not None or broken:
                break
            continue
        found = _LENGTH.fullmatch(line)
        if found:
            length = int(found[1])
        elif b":" not in line or not line.endswith(b"\n"):
            broken = "this is no header of a message"
    if length is None:
        return _Bad(broken or "the message has no Content-Length")
    if length > MAX_MESSAGE:
        while length > 0:
            if not (skipped := stdin.read(min(length, 1 << 20))):
                return None
            length -= len(skipped)
        return _Bad(f"the message has more than {MAX_MESSAGE >> 20} MiB")
    body = stdin.read(length)
    if len(body) < length:
        return None
    try:
        return _value(json.loads(body))
    except (ValueError, RecursionError):
        return _Bad("the message is not JSON")


def _value(message: Any) -> Any:
    return _Bad("the message is null") if message is None else message


def _take(protocol: Protocol, message: Any) -> None:
    """Hand one message to the protocol, or answer that it is none."""
    if isinstance(message, _Bad):
        protocol.refuse(None, _PARSE_ERROR, message.why)
        return
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        protocol.refuse(None, _INVALID_REQUEST, "a message is an object with jsonrpc 2.0")
        return
    asked = message.get("id") if isinstance(message.get("id"), int | str) and "method" in message else None
    method = message.get("method")
    if "method" in message and not isinstance(method, str):
        protocol.refuse(asked, _INVALID_REQUEST, "method is a text")
        return
    if method != "initialize" and not protocol.is_initialized:
        if asked is not None:
            protocol.refuse(asked, _NOT_INITIALIZED, "initialize comes first")
        return
    if asked is not None and (protocol.is_shut_down or (method == "initialize" and protocol.is_initialized)):
        why = "the server was shut down" if protocol.is_shut_down else "initialize comes once"
        protocol.refuse(asked, _INVALID_REQUEST, why)
        return
    if asked is not None and not protocol.knows(message["method"]):
        protocol.refuse(asked, _NO_METHOD, f"there is no method {method}")
        return
    try:
        read = protocol.structure_message(message)
    except (JsonRpcException, BaseValidationError, TypeError, ValueError, KeyError, RecursionError):
        why = f"the parameters of {method} are not as the protocol has them"
        if asked is not None:
            protocol.refuse(asked, _INVALID_PARAMS, why)
        elif protocol.knows(str(method)):  # a change that was not made leaves the text here another than the editor's
            protocol.complain(why)
        return
    protocol.handle_message(read)


async def _watch(process: int, queue: "asyncio.Queue[Any]") -> None:
    """End the conversation when the client's process is gone, though its end of the stream may live on in a child of it."""
    while True:
        await asyncio.sleep(_LOOK)
        if not _is_alive(process):
            await queue.put(None)
            return


def _client_of(message: Any) -> int | None:
    """Return the process that ``initialize`` names, None where this is no such message."""
    params = message.get("params") if isinstance(message, dict) else None
    process = params.get("processId") if isinstance(params, dict) else None
    return process if isinstance(process, int) else None


def _is_alive(process: int | None) -> bool:
    if process is None or os.name != "posix":  # elsewhere signal 0 is not for asking
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError, ValueError):
        return True
    return True
