"""The protocol as pygls has it, less what an editor's user should not meet: tracebacks in answers, and a second copy of each text."""

from concurrent.futures import Future
from typing import Any, cast
from typing import Protocol as Port

from lsprotocol import types
from pygls.protocol import LanguageServerProtocol, lsp_method

from ....lang.diagnostic import printable

__all__ = ["Protocol", "TakesTexts"]

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
