"""The server: the documents, checks and workspace data of one client, and the messages to this client."""

import asyncio
import gc
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from time import perf_counter
from typing import Any, ParamSpec, TypeVar, cast

from attrs import define, field, frozen
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from .... import __version__
from ....lang.diagnostic import Diagnostic, Edit, printable, sort_key
from ....lang.service import Known, Language, complete
from ....lang.source import Span
from ...api.checks import check_reading
from .documents import Document, Documents, Encoding, Snapshot, path_of
from .protocol import Protocol, lsp_diagnostic, text_edits
from .workspace import Problem, Settings, WorkspaceData, read_settings

# Checks open documents once typing pauses, and publishes the diagnostics. The result is discarded if the text has changed meanwhile.

MOST = 500
"""Maximum number of diagnostics reported for one text. More would slow down editors, and nobody would read them."""
_MOMENT = 0.1
"""If the last check of a text took fewer seconds than this, the next check does not wait for a pause in typing."""
_BREATH = 0.003
"""Seconds between a change and its check. Requests that arrive in this time are answered first, because users wait for them."""
_GIVES_WAY = 0.05
"""For this many seconds after a change, its check waits while requests are being answered."""
_POSTPONED = 5
"""If a change is older than the delay multiplied by this number, its check no longer waits for a pause in typing."""


@frozen
class Findings:
    """The result of checking one snapshot. ``items`` are the spans of the steps or commands in the snapshot."""

    snapshot: Snapshot
    diagnostics: tuple[Diagnostic, ...]
    items: tuple[Span, ...] = ()


@define(eq=False)
class _PublishedText:
    """The state of the checks for one document.

    ``cost`` is the duration of the last check in seconds. ``since`` is the time of the first change since the last check began.
    """

    cost: float = 0.0
    since: float | None = None
    timer: asyncio.TimerHandle | None = None
    running: bool = False
    again: bool = False
    findings: Findings | None = None
    waiting: "list[asyncio.Future[Findings]]" = field(factory=list)

    def give_up(self, error: BaseException | None) -> None:
        """End all waits for findings: raise ``error`` in the waiting calls, or cancel them if ``error`` is None."""
        for waiter in self.waiting:
            if not waiter.done():
                waiter.cancel() if error is None else waiter.set_exception(error)
        self.waiting.clear()


@define(eq=False)
class Publisher:
    """Runs checks one at a time in ``executor``, and passes the findings to ``tell``.

    ``known`` returns the data for a check. ``failed`` is called with the error if a check fails. ``delay`` is called for each
    check and returns the number of seconds without typing before the check. ``is_answering`` returns whether requests are being
    answered. All methods run on the event loop.
    """

    executor: Executor
    known: Callable[[Document], Known]
    tell: Callable[[Findings], None]
    failed: Callable[[BaseException], None]
    delay: Callable[[], float]
    is_answering: Callable[[], bool]
    _work: dict[str, _PublishedText] = field(factory=dict, init=False)

    def changed(self, document: Document, *, at_once: bool = False) -> None:
        """Schedule a check of a document: after a delay, or almost at once if ``at_once`` is set or the last check was fast."""
        work = self._work.get(document.uri)
        if work is None:
            work = self._work[document.uri] = _PublishedText()
        now = perf_counter()
        work.since = now if work.since is None else work.since
        delay = self.delay()
        if at_once or work.cost < _MOMENT or now - work.since > _POSTPONED * delay:
            delay = _BREATH
        if work.timer is not None:
            work.timer.cancel()
        work.timer = asyncio.get_running_loop().call_later(delay, self._begin, document, work)

    def closed(self, uri: str) -> None:
        """Remove a document, and cancel calls that wait for its findings."""
        work = self._work.pop(uri, None)
        if work is None:
            return
        if work.timer is not None:
            work.timer.cancel()
        work.give_up(None)

    async def findings(self, document: Document) -> Findings:
        """Wait until the findings for the document's current text are available, and return them."""
        work = self._work.get(document.uri)
        if work is None:
            self.changed(document, at_once=True)
            work = self._work[document.uri]
        if work.findings is not None and work.findings.snapshot is document.snapshot():
            return work.findings
        waiter: asyncio.Future[Findings] = asyncio.get_running_loop().create_future()
        work.waiting.append(waiter)
        self.changed(document, at_once=True)
        return await waiter

    def _begin(self, document: Document, work: _PublishedText) -> None:
        work.timer = None
        if work.running:
            work.again = True
            return
        if work.since is not None and perf_counter() - work.since < _GIVES_WAY and self.is_answering():
            work.timer = asyncio.get_running_loop().call_later(_BREATH, self._begin, document, work)
            return
        work.running, work.again, work.since = True, False, None
        snapshot, known = document.snapshot(), self.known(document)
        future = asyncio.get_running_loop().run_in_executor(self.executor, _check, work, snapshot, known)
        future.add_done_callback(lambda done: self._check_finished(document, work, snapshot, done))

    def _check_finished(
        self, document: Document, work: _PublishedText, snapshot: Snapshot, done: "asyncio.Future[Findings]"
    ) -> None:
        work.running = False
        if done.cancelled() or self._work.get(document.uri) is not work:
            return
        if (error := done.exception()) is not None:
            self.failed(error)
            work.give_up(error)
            return
        if document.snapshot() is snapshot:
            work.findings = done.result()
            self.tell(work.findings)
            for waiter in work.waiting:
                if not waiter.done():
                    waiter.set_result(work.findings)
            work.waiting.clear()
        elif work.waiting:
            work.again = True
        if work.again and work.timer is None:
            self._begin(document, work)


def _check(work: _PublishedText, snapshot: Snapshot, known: Known) -> Findings:
    """Check one snapshot, in the thread for checks, which runs one check at a time."""
    begun = perf_counter()
    reading = snapshot.read()
    found = check_reading(reading, known)
    if work.findings is not None:  # the first check is not measured, because it also loads the parser
        work.cost = perf_counter() - begun
    return Findings(snapshot, found, reading.items)


def reportable(found: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """Return the diagnostics to report.

    If there are too many, errors take precedence, and the last diagnostic says how many are omitted.
    """
    if len(found) <= MOST:
        return found
    errors = [each for each in found if each.severity == "error"][:MOST]
    others = [each for each in found if each.severity != "error"][: MOST - len(errors)]
    shown = tuple(sorted((*errors, *others), key=sort_key))
    more = f"and {len(found) - len(shown):,} more; knotwork check lists all"
    return (*shown, Diagnostic("", "info", more))


# A worker thread that runs tasks in order and does not delay the end of the process. At interpreter exit, Python waits for the
# thread pools of the standard library, so a graph that is still loading, or a huge line, would keep the server process alive after
# the editor has ended.

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Work = tuple["Future[Any]", Callable[[], Any]]


class Worker(Executor):
    """A thread that starts with its first task and ends with the process."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._thread: Thread | None = None

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> "Future[_T]":
        """Schedule a call after all earlier calls. A call that is cancelled before its turn is not started."""
        future: Future[_T] = Future()
        self._queue.put((future, lambda: fn(*args, **kwargs)))
        if self._thread is None:
            self._thread = Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = True) -> None:
        """Start no further tasks.

        A running task continues, at most until the process ends; this method does not wait for it.
        """
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
            except BaseException as error:  # the waiting caller receives every kind of error
                future.set_exception(error)
            else:
                future.set_result(made)


class KnotworkServer(LanguageServer):
    """The server of one client. The methods run on the event loop. Checks, answers and loading have one thread each."""

    def __init__(self) -> None:
        super().__init__("knotwork", __version__, protocol_cls=Protocol)
        self.stream = cast("Protocol", self.protocol)
        self.documents = Documents()
        self.settings = Settings()
        self.folder: Path | None = None
        self.asking = Worker("lsp-asking")
        self.checking = Worker("lsp-checking")
        self.loading = Worker("lsp-loading")
        self.grounds = WorkspaceData(self.loading, self.check_all, self.complain)
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
        """Process the information in ``initialize`` about the client and the workspace."""
        encoding = self.workspace.position_encoding
        self.documents.encoding = _ENCODINGS.get(str(getattr(encoding, "value", encoding)), "utf-16")
        uri = params.workspace_folders[0].uri if params.workspace_folders else params.root_uri
        self.folder = path_of(uri) if uri else Path(params.root_path) if params.root_path else None
        self.configure(params.initialization_options)

    def configure(self, given: Any) -> None:
        """Apply the valid settings in ``given``, and report the invalid ones to the user."""
        self.settings, faults = read_settings(given, self.folder, Settings())
        for fault in faults:
            self.complain(Problem(fault))
        self.check_all()

    def settings_of(self, document: Document) -> Settings:
        """Return the settings that apply to a document."""
        return self.settings.for_file(document.path, document.language)

    def known(self, document: Document) -> Known:
        """Return the workspace data for a document."""
        return self.grounds.known(self.settings_of(document))

    def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        """Store and check a document that the client has opened."""
        self.publisher.closed(params.text_document.uri)
        document = self.documents.open(params.text_document)
        if document is not None:
            self.publisher.changed(document, at_once=True)
            if document.language not in self._ready:
                self._ready.add(document.language)
                asyncio.get_running_loop().call_later(_SOON, self.asking.submit, _make_ready, document.language)

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        """Change a document and schedule its check."""
        document = self.documents.get(params.text_document.uri)
        if document is not None:
            document.change(params.text_document.version, params.content_changes)
            self.publisher.changed(document)

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        """Remove a document and its published diagnostics."""
        uri = params.text_document.uri
        if self.documents.get(uri) is None:
            return
        self.documents.close(uri)
        self.publisher.closed(uri)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def check_all(self) -> None:
        """Schedule checks of all open documents against the current files."""
        self.grounds.look()
        for document in self.documents:
            self.publisher.changed(document, at_once=True)

    def docs(self) -> str | None:
        """Return the address of the rules' reference page; None if the address is unknown."""
        if self.settings.docs is not None:
            return self.settings.docs
        page = Path(__file__).parents[3] / "docs" / "reference" / "rules.md"
        return page.as_uri() if page.is_file() else None

    def changes(self, snapshot: Snapshot, edits: Iterable[Edit]) -> types.WorkspaceEdit:
        """Return edits of a snapshot, with its version if the client supports versions.

        A client that supports versions rejects the edits if the text has changed meanwhile.
        """
        made = text_edits(edits, snapshot.text)
        workspace = self.client_capabilities.workspace
        if workspace is None or workspace.workspace_edit is None or not workspace.workspace_edit.document_changes:
            return types.WorkspaceEdit(changes={snapshot.uri: made})
        named = types.OptionalVersionedTextDocumentIdentifier(uri=snapshot.uri, version=snapshot.version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(named, [*made])])

    async def ask(self, function: Callable[..., Any], *given: Any) -> Any:
        """Run a computation in the thread for answers. A computation that is cancelled before its turn is not started."""
        self._answering += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.asking, partial(function, *given))
        finally:
            self._answering -= 1

    def complain(self, problem: Problem) -> None:
        """Show the user a problem with the settings or their files. A repeated problem is shown only once."""
        message = str(problem)
        if message not in self._said and self.protocol.writer is not None:
            self._said = dict.fromkeys([*list(self._said)[-_REMEMBERED:], message])
            self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"knotwork: {message}"))

    def _tell(self, findings: Findings) -> None:
        snapshot, docs = findings.snapshot, self.docs()
        shown = [lsp_diagnostic(each, snapshot.text, docs) for each in reportable(findings.diagnostics)]
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(snapshot.uri, shown, version=snapshot.version)
        )

    def _failed(self, error: BaseException) -> None:
        self.log(f"internal error: {type(error).__name__}: {error}")

    def log(self, message: str) -> None:
        """Write a line to the client's log."""
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, printable(message)[:2000]))

    def end(self) -> None:
        """Cancel all pending computations."""
        for worker in (self.asking, self.checking, self.loading):
            worker.shutdown()

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log an error unless it is a ``JsonRpcException``, which answers a request and is not a fault of the server."""
        if not isinstance(error, JsonRpcException):
            self._failed(error)


_REMEMBERED = 100
"""Number of recently shown problems that are remembered, so that they are not shown again."""
_SOON = 0.1
"""Seconds between opening a document and ``_make_ready``. In this time, the document's first diagnostics can be published."""
_BEGINNINGS: dict[Language, str] = {"lwt": '(a)=LLM("x", ', "gasl": "COUNT ", "seed": '{"compute": [{"expr": "1 + '}


def _make_ready(language: Language) -> None:
    """Prepare the data that a language's first completion needs, so that no user waits for it."""
    text = _BEGINNINGS.get(language, "")
    complete(language, text, len(text))
    gc.freeze()  # excludes all objects loaded so far from garbage collection, because they live until the process ends


_ENCODINGS: dict[str, Encoding] = {"utf-8": "utf-8", "utf-16": "utf-16", "utf-32": "utf-32"}
