"""The server: the documents, checks and grounds of one client, and what it is told."""

import asyncio
import gc
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, TypeVar, cast

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from .... import __version__
from ....lang.diagnostic import Edit, printable
from ....lang.service import Known, Language, complete
from .documents import Document, Documents, Encoding, Snapshot, path_of
from .protocol import Protocol, lsp_diagnostic, text_edits
from .published import Findings, Publisher, most_telling
from .workspace import Grounds, Problem, Settings, read_settings

__all__ = ["KnotworkServer", "Worker"]


# A thread that works for the server, one piece of work after the other, and holds up nobody's end.
# The pool of the standard library is waited for when the interpreter ends: a graph that is still being loaded, or the tokens of a
# huge line, would keep the process of an editor that has long gone.


_P = ParamSpec("_P")
_T = TypeVar("_T")
_Work = tuple["Future[Any]", Callable[[], Any]]


class Worker(Executor):
    """One thread that begins with the first work given to it, and dies with the process."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._thread: Thread | None = None

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> "Future[_T]":
        """Have something done when all that was given before is; cancelled before its turn, it is not begun."""
        future: Future[_T] = Future()
        self._queue.put((future, lambda: fn(*args, **kwargs)))
        if self._thread is None:
            self._thread = Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = True) -> None:
        """Begin nothing more. What is under way goes on as long as the process does, and is not waited for."""
        while not self._queue.empty():
            work = self._queue.get()
            if work is not None:
                work[0].cancel()
        self._queue.put(None)

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            future, call = work
            if not future.set_running_or_notify_cancel():
                continue
            try:
                made = call()
            except BaseException as error:  # whatever it was, whoever waits for it is told
                future.set_exception(error)
            else:
                future.set_result(made)


class KnotworkServer(LanguageServer):
    """One client's server. All of it runs on the event loop; checks, answers and loading each have a thread of their own."""

    def __init__(self) -> None:
        super().__init__("knotwork", __version__, protocol_cls=Protocol)
        self.stream = cast("Protocol", self.protocol)
        self.documents = Documents()
        self.settings = Settings()
        self.folder: Path | None = None
        self.asking = Worker("lsp-asking")
        self.checking = Worker("lsp-checking")
        self.loading = Worker("lsp-loading")
        self.grounds = Grounds(self.loading, self.check_all, self.complain)
        self.publisher = Publisher(
            self.checking,
            self.known,
            self._tell,
            self._failed,
            lambda: self.settings.delay,
            lambda: self._answering > 0,
        )
        self._answering = 0
        self._said: dict[str, None] = {}
        self._ready: set[Language] = set()

    def begin(self, params: types.InitializeParams) -> None:
        """Take over what the client says of itself and of the workspace."""
        encoding = self.workspace.position_encoding
        self.documents.encoding = _ENCODINGS.get(str(getattr(encoding, "value", encoding)), "utf-16")
        uri = params.workspace_folders[0].uri if params.workspace_folders else params.root_uri
        self.folder = path_of(uri) if uri else Path(params.root_path) if params.root_path else None
        self.configure(params.initialization_options)

    def configure(self, given: Any) -> None:
        """Take over settings; what can't be used is told, and the rest counts."""
        self.settings, faults = read_settings(given, self.folder, Settings())
        for fault in faults:
            self.complain(Problem(fault))
        self.check_all()

    def settings_of(self, document: Document) -> Settings:
        """Return the settings that count for a document."""
        return self.settings.beside(document.path, document.language)

    def known(self, document: Document) -> Known:
        """Return what is known beside a document."""
        return self.grounds.known(self.settings_of(document))

    def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        """Keep and check a document, from now on as it is said here."""
        self.publisher.closed(params.text_document.uri)
        document = self.documents.open(params.text_document)
        if document is not None:
            self.publisher.changed(document, at_once=True)
            if document.language not in self._ready:
                self._ready.add(document.language)
                asyncio.get_running_loop().call_later(_SOON, self.asking.submit, _make_ready, document.language)

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        """Change a document and have it checked."""
        document = self.documents.get(params.text_document.uri)
        if document is not None:
            document.change(params.text_document.version, params.content_changes)
            self.publisher.changed(document)

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        """Forget a document, and what was told of it."""
        uri = params.text_document.uri
        if self.documents.get(uri) is None:
            return
        self.documents.close(uri)
        self.publisher.closed(uri)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def check_all(self) -> None:
        """Have every open document checked, by the files beside them as they are."""
        self.grounds.look()
        for document in self.documents:
            self.publisher.changed(document, at_once=True)

    def docs(self) -> str | None:
        """Return the address of the page of rules; None where nobody knows one."""
        if self.settings.docs is not None:
            return self.settings.docs
        page = Path(__file__).parents[3] / "docs" / "reference" / "rules.md"
        return page.as_uri() if page.is_file() else None

    def changes(self, snapshot: Snapshot, edits: Iterable[Edit]) -> types.WorkspaceEdit:
        """Return edits of a text as it was looked at; a client that has changed it meanwhile does not make them, if it knows versions."""
        made = text_edits(edits, snapshot.text)
        workspace = self.client_capabilities.workspace
        if workspace is None or workspace.workspace_edit is None or not workspace.workspace_edit.document_changes:
            return types.WorkspaceEdit(changes={snapshot.uri: made})
        named = types.OptionalVersionedTextDocumentIdentifier(uri=snapshot.uri, version=snapshot.version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(named, [*made])])

    async def ask(self, function: Callable[..., Any], *given: Any) -> Any:
        """Have something worked out beside the loop. Cancelled before its turn has come, it is not begun."""
        self._answering += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.asking, partial(function, *given))
        finally:
            self._answering -= 1

    def complain(self, problem: Problem) -> None:
        """Show a person what can't be used; the same only once until it is something else."""
        message = str(problem)
        if message not in self._said and self.protocol.writer is not None:
            self._said = dict.fromkeys([*list(self._said)[-_REMEMBERED:], message])
            self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"knotwork: {message}"))

    def _tell(self, findings: Findings) -> None:
        snapshot, docs = findings.snapshot, self.docs()
        shown = [lsp_diagnostic(each, snapshot.text, docs) for each in most_telling(findings.diagnostics)]
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(snapshot.uri, shown, version=snapshot.version)
        )

    def _failed(self, error: BaseException) -> None:
        self.log(f"internal error: {type(error).__name__}: {error}")

    def log(self, message: str) -> None:
        """Write a line into the client's log."""
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, printable(message)[:2000]))

    def end(self) -> None:
        """Leave off whatever was to be worked out."""
        for worker in (self.asking, self.checking, self.loading):
            worker.shutdown()

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log what went wrong, but for refusals: with these a request is answered, and nothing is wrong with the server."""
        if not isinstance(error, JsonRpcException):
            self._failed(error)


_REMEMBERED = 100
"""Complaints that are not made again, the last ones."""
_SOON = 0.1
"""Seconds after a document was opened: what is first wrong with it is told before."""
_BEGINNINGS: dict[Language, str] = {"lwt": '(a)=LLM("x", ', "gasl": "COUNT ", "seed": '{"compute": [{"expr": "1 + '}


def _make_ready(language: Language) -> None:
    """Have made what the first completion of a language makes, so that nobody waits for it."""
    text = _BEGINNINGS.get(language, "")
    complete(language, text, len(text))
    gc.freeze()  # that, and all that was loaded before, stays for good: nobody needs to look whether it still lives


_ENCODINGS: dict[str, Encoding] = {"utf-8": "utf-8", "utf-16": "utf-16", "utf-32": "utf-32"}
