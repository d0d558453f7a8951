"""The connection to one client: pygls' protocol, changed so that answers contain no tracebacks and pygls stores no documents."""

import asyncio
import contextlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from typing import Any, BinaryIO

from attrs import define, frozen
from cattrs.errors import BaseValidationError
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol, lsp_method

from ....lang.diagnostic import Diagnostic, Edit, Severity, printable
from ....lang.service import Completion, Fold, Hover, Symbol, Token, has_rule
from .documents import Text

INTERNAL = -32603
"""JSON-RPC's code for an internal error."""


class Protocol(LanguageServerProtocol):
    """pygls' protocol. Documents are stored only in ``server.documents``, which counts positions as the protocol requires.

    The server is a ``KnotworkServer``.
    """

    _server: Any  # a KnotworkServer, whose module imports this one

    @property
    def is_shut_down(self) -> bool:
        """Whether the client has requested shutdown. After that, only ``exit`` is accepted."""
        return self._shutdown

    @property
    def is_initialized(self) -> bool:
        """Whether the client has sent ``initialize``."""
        return self._workspace is not None

    def knows(self, method: str) -> bool:
        """Return whether the server supports ``method``."""
        return method in self.fm.builtin_features or method in self.fm.features

    @property
    def client_process(self) -> int | None:
        """The client's process id; None if the client did not send one."""
        process: int | None = self._server.process_id
        return process

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        """Store a document that the client has opened."""
        self._server.opened(params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Change a document."""
        self._server.changed(params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        """Remove a document that the client has closed."""
        self._server.closed(params)

    def complain(self, message: str) -> None:
        """Write an error in a notification to the client's log, because a notification has no answer."""
        self._server.log(message)

    def refuse(self, msg_id: Any, code: int, message: str) -> None:
        """Answer a message with an error. ``msg_id`` is None if the message may not have been a request."""
        self._send_data({"jsonrpc": "2.0", "id": msg_id, "error": {"code": code, "message": printable(message)[:500]}})

    def _check_handler_result(self, future: "Future[Any]") -> None:
        super()._check_handler_result(future)
        # pygls stores the results of notifications although nothing reads them.
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


# Converts values of the language service to protocol values.

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
"""The protocol's name of each token type. ``token_data`` represents a type by its index in this sequence."""
_NUMBERS: Mapping[str, int] = {name: number for number, name in enumerate(_TOKENS)}


def lsp_diagnostic(found: Diagnostic, text: Text, docs: str | None) -> types.Diagnostic:
    """Return a diagnostic in the protocol's form. The text of the result contains the message and the hints.

    ``docs`` is the address of the rules' reference page, to which the code is linked (None: no link).
    """
    span = found.span
    where = types.Range(types.Position(0, 0), types.Position(0, 0)) if span is None else text.range(span)
    message = "\n".join((found.message, *(f"help: {hint}" for hint in found.hints)))
    link = types.CodeDescription(href=f"{docs}#{found.code.lower()}") if docs and has_rule(found.code) else None
    return types.Diagnostic(where, message, _SEVERITIES[found.severity], found.code, link, SOURCE)


def text_edits(edits: Iterable[Edit], text: Text) -> list[types.TextEdit]:
    """Return edits of ``text`` in the protocol's form."""
    return [types.TextEdit(text.range(edit.span), edit.text) for edit in edits]


def completion_item(found: Completion, text: Text, *, markdown: bool) -> types.CompletionItem:
    """Return a completion in the protocol's form. Clients drop completions whose filter text does not match the text of the span."""
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
    """Return a hover in the protocol's form."""
    kind = types.MarkupKind.Markdown if markdown else types.MarkupKind.PlainText
    return types.Hover(types.MarkupContent(kind, found.text), text.range(found.span))


def document_symbol(found: Symbol, text: Text) -> types.DocumentSymbol:
    """Return a symbol with its children in the protocol's form. The symbol's range includes its name, as clients require."""
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
    """Return a fold in the protocol's form, where lines count from 0."""
    kind = types.FoldingRangeKind.Comment if found.kind == "comment" else types.FoldingRangeKind.Region
    return types.FoldingRange(found.first_line - 1, found.last_line - 1, kind=kind)


def token_data(found: Iterable[Token], text: Text) -> list[int]:
    """Return tokens in the protocol's packed form: five numbers for each token, with line and column relative to the previous token."""
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


# Reads messages from a stream one by one, with limits, and answers invalid messages as JSON-RPC requires. Reading blocks a thread,
# which ends with the process. If the client disconnects, the server ends. If the client sends invalid data, it gets an error and
# can continue.

MAX_MESSAGE = 64 << 20
"""Maximum size of a message in bytes. The largest document has four million characters."""
_MAX_HEADER = 8192
_LENGTH = re.compile(rb"content-length[ \t]*:[ \t]*(\d{1,15})[ \t\r\n]*", re.IGNORECASE)
_PARSE_ERROR, _INVALID_REQUEST, _NOT_INITIALIZED, _NO_METHOD, _INVALID_PARAMS = -32700, -32600, -32002, -32601, -32602
_LOOK = 3.0
"""Seconds between checks of whether the client process is alive."""


@frozen
class _Bad:
    """Represents bytes that are not a valid message; ``why`` is the reason."""

    why: str


@define(eq=False)
class _Writer:
    """Writes messages. If writing fails because the client no longer reads, ``gone`` is called, and nothing more is written."""

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
        """Do nothing, because the owner of the stream closes the stream."""


async def converse(protocol: Protocol, stdin: BinaryIO, stdout: BinaryIO) -> int:
    """Process messages until the client sends ``exit`` or disconnects. Return the exit code: 0 after an orderly shutdown, else 1."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Any] = asyncio.Queue(maxsize=64)

    def leave() -> None:
        if not queue.full():  # if it is full, the disconnection is noticed when the next message is processed
            queue.put_nowait(None)

    writer = _Writer(stdout, leave)
    protocol.set_writer(writer)

    def read() -> None:
        with contextlib.suppress(RuntimeError, CancelledError):  # the event loop has ended
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
            # Checked before the answer, while the client is waiting: if its process is not found now, the client runs elsewhere,
            # for example in another container.
            lives_here = not is_named and _is_alive(_client_of(message))
            _take(protocol, message)
            if not is_named and (process := protocol.client_process) is not None:
                is_named = True
                if lives_here:
                    watcher = asyncio.create_task(_watch(process, queue))
            await asyncio.sleep(0)  # lets the request read the current text before the next message changes the text
        return 0 if protocol.is_shut_down and not writer.is_gone else 1
    finally:
        if watcher is not None:
            watcher.cancel()


def _is_exit(message: Any) -> bool:
    return isinstance(message, dict) and message.get("method") == "exit"


def _read(stdin: BinaryIO) -> Any:
    """Return the next message as a JSON value; ``_Bad`` if the message is invalid, None at the end of the stream."""
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
            broken = "invalid message header"
    if length is None:
        return _Bad(broken or "the message has no Content-Length")
    if length > MAX_MESSAGE:
        while length > 0:
            if not (skipped := stdin.read(min(length, 1 << 20))):
                return None
            length -= len(skipped)
        return _Bad(f"the message is larger than {MAX_MESSAGE >> 20} MiB")
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
    """Pass one message to the protocol, or answer that the message is invalid."""
    if isinstance(message, _Bad):
        protocol.refuse(None, _PARSE_ERROR, message.why)
        return
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        protocol.refuse(None, _INVALID_REQUEST, "a message must be an object with jsonrpc 2.0")
        return
    asked = message.get("id") if isinstance(message.get("id"), int | str) and "method" in message else None
    method = message.get("method")
    if "method" in message and not isinstance(method, str):
        protocol.refuse(asked, _INVALID_REQUEST, "method must be a string")
        return
    if method != "initialize" and not protocol.is_initialized:
        if asked is not None:
            protocol.refuse(asked, _NOT_INITIALIZED, "initialize must come first")
        return
    if asked is not None and (protocol.is_shut_down or (method == "initialize" and protocol.is_initialized)):
        why = "the server was shut down" if protocol.is_shut_down else "initialize was already called"
        protocol.refuse(asked, _INVALID_REQUEST, why)
        return
    if asked is not None and not protocol.knows(message["method"]):
        protocol.refuse(asked, _NO_METHOD, f"unknown method {method}")
        return
    try:
        read = protocol.structure_message(message)
    except (JsonRpcException, BaseValidationError, TypeError, ValueError, KeyError, RecursionError):
        why = f"invalid parameters of {method}"
        if asked is not None:
            protocol.refuse(asked, _INVALID_PARAMS, why)
        elif protocol.knows(str(method)):  # after a failed change, the server's text differs from the editor's
            protocol.complain(why)
        return
    protocol.handle_message(read)


async def _watch(process: int, queue: "asyncio.Queue[Any]") -> None:
    """End the conversation when the client's process has ended, even if one of its child processes keeps the stream open."""
    while True:
        await asyncio.sleep(_LOOK)
        if not _is_alive(process):
            await queue.put(None)
            return


def _client_of(message: Any) -> int | None:
    """Return the client's process id if the message is ``initialize`` and contains the id, otherwise None."""
    params = message.get("params") if isinstance(message, dict) else None
    process = params.get("processId") if isinstance(params, dict) else None
    return process if isinstance(process, int) else None


def _is_alive(process: int | None) -> bool:
    if process is None or os.name != "posix":  # signal 0 only tests a process on POSIX systems
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError, ValueError):
        return True
    return True
