"""An interactive session: a workspace with named values and undo, which runs one piece of text at a time. A session displays nothing.

The executor runs a GASL command as one commit of the state, as ``knotwork gasl`` does. Steps are run as a script that may refer to all
present values. An expression may use all present values. A piece is checked before any part of it is run. The REPL and the notebook
use sessions, and add their own dot commands.
"""

import asyncio
import json
import os
import sys
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from attrs import define, evolve, field, frozen

from ...adapters.graph import AdapterError
from ...adapters.llm import LLMError
from ...adapters.llm.keys import has_key, mask_keys
from ...adapters.state import Snapshot, StateError, StoreError
from ...lang.diagnostic import has_errors
from ...lang.parse.expr import parse_expr
from ...lang.parse.lwt import parse_lwt
from ...lang.service import Language, diagnose
from ...lang.source import Source
from ...lang.trees import walk
from ...lang.trees.expr import Clause, Name
from ..events import BudgetReached, Event, Warned
from ..gasl.surroundings import roll_back
from ..models.factory import SPECS
from ..runs.event_log import level
from .pieces import Piece, expression_of, is_complete, pieces
from .session_data import NOTHING, Ledger, Outcome, Price, SessionData, SessionModel, SharedCaches, Values
from .session_runs import normalize, run_command, run_expression, run_steps
from .workspace import Models, OpeningCallbacks, WorkspaceOptions, open_workspace

__all__ = [
    "MODES", "SPECS", "DisplaySettings", "Entry", "Mode", "Moment", "PieceQueue", "Session", 
    "SessionText", "has_api_key", "level", "open_session", "session_text",
]  # fmt: skip


@frozen(eq=False)
class Moment:
    """The session's data before ``text`` was run. ``entries`` is the number of earlier pieces, ``latest`` the value of ``_``."""

    text: str
    state: Snapshot
    values: Values
    entries: int
    latest: Any = NOTHING


_MOST_MOMENTS = 100
"""Maximum number of commands that can be undone. The values that these commands replaced stay in memory."""

Mode = Literal["auto", "table", "json", "csv", "md"]
MODES: tuple[Mode, ...] = ("auto", "table", "json", "csv", "md")


@define
class DisplaySettings:
    """Display settings.

    ``mode`` "auto" means a table on a terminal, the format named by the extension for a file, and JSON elsewhere.
    """

    mode: Mode = "auto"
    timer: bool = False
    output: Path | None = None


@frozen
class Entry:
    """A piece that was run, and the names that it bound."""

    piece: Piece
    names: tuple[str, ...] = ()


DotCommands = Callable[[Piece, "Session", asyncio.Event], Awaitable[Outcome]]
"""A function that runs a dot command of an interface."""


@define(eq=False, kw_only=True)
class Session(SessionData):
    """A workspace of one user, who runs one piece at a time.

    ``last_fault`` is the latest outcome with diagnostics, None after a successful run.
    ``moments`` are the points to which undo can return, the latest last; ``ran`` are the pieces that were run and not undone.
    """

    settings: DisplaySettings = field(factory=DisplaySettings)
    moments: list[Moment] = field(factory=list)
    ran: list[Entry] = field(factory=list)
    last_fault: Outcome | None = None
    dot_commands: DotCommands | None = None

    async def run(self, piece: Piece, cancel: asyncio.Event | None = None) -> Outcome:
        """Run a piece and return its outcome. Errors in the piece or during its run are not raised; the outcome reports them.

        Setting ``cancel`` ends the run: the outcome has the status "cancelled", earlier commits remain, and the session continues.
        """
        notes, began, limit = list[str](), perf_counter(), ""

        def on_event(event: Event) -> None:
            nonlocal limit
            if isinstance(event, BudgetReached):
                limit = event.limit or "calls"
            if isinstance(event, Warned):
                is_step = event.step and piece.language == "lwt"
                notes.append(f"({event.step}): {event.message}" if is_step else event.message)

        self.events.subscribe(on_event)
        try:
            outcome = await self._run(normalize(piece, self), cancel or asyncio.Event())
        except (AdapterError, LLMError, StateError, StoreError) as error:
            outcome = Outcome("failed", message=error.message, hint=error.hint)
        except Exception as error:  # an internal error in one command must not end the session
            is_debugging = level() >= 3
            if is_debugging:
                traceback.print_exception(error, file=sys.stderr)
            message = f"internal error: {type(error).__name__}: {' '.join(str(error).split())}"
            hint = "" if is_debugging else "set KNOTWORK_DEBUG=3 for the traceback"
            outcome = Outcome("failed", message=message, hint=hint)
        finally:
            self.events.unsubscribe(on_event)
        known = {*outcome.notes, *(d.message for d in outcome.diagnostics)}
        new = [note for note in dict.fromkeys(notes) if note not in known] + _absorbed_lines(piece, outcome)
        if limit and outcome.message and not outcome.hint:
            change = f".budget {limit}={'USD' if limit == 'cost' else 'N'} changes the limit, {limit}=none removes it"
            outcome = evolve(outcome, hint=f".budget shows the cost so far; {change}")
        outcome = evolve(outcome, seconds=perf_counter() - began, notes=(*outcome.notes, *new))
        if outcome.diagnostics:
            self.last_fault = outcome
        elif piece.language != "dot":
            self.last_fault = None
        return outcome

    async def _run(self, piece: Piece, cancel: asyncio.Event) -> Outcome:
        """Run a piece, and record the data needed to undo the piece and to save the session."""
        if piece.language == "dot":
            return Outcome() if self.dot_commands is None else await self.dot_commands(piece, self, cancel)
        before = self.moment(piece.text)
        match piece.language:
            case "gasl":
                outcome = await run_command(piece, self, cancel)
            case "lwt":
                outcome = await run_steps(piece, self, cancel)
            case "expr":
                outcome = await run_expression(piece, self)
            case _:
                return Outcome()
        self.record(before)
        if outcome.is_good:
            self.ran.append(Entry(piece, outcome.names))
            if outcome.value is not NOTHING:
                self.last_value = outcome.value
        return outcome

    # Undo

    def moment(self, text: str) -> Moment:
        """Return the present data of the session, before ``text`` is run."""
        return Moment(text, self.state.snapshot(), self.values.copy(), len(self.ran), self.last_value)

    def record(self, before: Moment) -> None:
        """Add ``before`` to the undo history if the state or a value has changed since then."""
        then, now = before.values.all(), self.values.all()
        are_values_same = list(then) == list(now) and all(now[name] is value for name, value in then.items())
        if before.state.hash != self.state.hash or not are_values_same:
            self.moments = [*self.moments[-_MOST_MOMENTS + 1 :], before]

    def undo(self, count: int, command: str) -> tuple[Moment, int]:
        """Undo the latest ``count`` commands; return the restored moment and the number of changes to the state.

        ``command`` is the text that the state's history shows for the undo.
        """
        moment = self.moments[-count]
        changed = roll_back(self.state, moment.state, command)
        self.values.restore(moment.values)
        self.last_value = moment.latest
        del self.moments[-count:], self.ran[moment.entries :]
        return moment, changed

    def roll_back(self, to: str, text: str, command: str) -> int:
        """Restore the state with the hash ``to``, and return the number of changes. Values are not restored. Raises ``StateError``.

        The undo history shows this rollback as ``text``, the state's history shows it as ``command``.
        """
        before = self.moment(text)
        changed = roll_back(self.state, to, command)
        if changed:
            self.record(before)
        return changed


def has_api_key(text: str) -> bool:
    """Return whether a text contains an API key and therefore must not be stored."""
    return mask_keys(text) != text or (text.lstrip().startswith(".llm") and has_key(text, os.environ))


def open_session(
    options: WorkspaceOptions,
    llm: str | None = None,
    models: Mapping[str, str] | None = None,
    *,
    ledger: Ledger | None = None,
    price: Price | None = None,
    cache: bool | str = True,
    callbacks: OpeningCallbacks | None = None,
    **fields: Any,
) -> Session:
    """Open a session. A stored state records its graph and chunks, which may therefore be omitted the next time.

    ``llm`` is the spec of the default model (None: the user's default model, opened on first use). ``models`` maps names to
    specs; ``model=`` and ``SET llm.model`` may use these names. ``fields`` are further attributes of the session. Raises
    ``AdapterError``, ``StoreError``, ``NotConfigured`` and ``OpeningCancelled``.
    """
    callbacks, shared, caches = callbacks or OpeningCallbacks(), ledger or Ledger(), SharedCaches()

    def model(spec: str) -> SessionModel:
        return SessionModel(spec, shared, price=price, cache=cache, warn=callbacks.warn, caches=caches)

    def clients() -> Models:
        default = model("")
        if llm is not None:
            default.choose(llm)
        return Models(default.spec, default, {name: model(spec) for name, spec in (models or {}).items()}, shared)

    opened = open_workspace(options, clients, callbacks)
    return Session(
        adapter=opened.adapter, graph=opened.graph, state=opened.state, chunks=opened.chunks, models=opened.models,
        is_borrowed=opened.is_borrowed, **fields,
    )  # fmt: skip


def _absorbed_lines(piece: Piece, outcome: Outcome) -> list[str]:
    """Return a note about lines that a refused piece absorbed because of an unclosed bracket or quote; [] if there are none."""
    first = next((d.span for d in outcome.diagnostics if d.severity == "error" and d.span is not None), None)
    if outcome.status != "refused" or first is None or is_complete(piece.text):
        return []
    count = sum(1 for line in piece.text[first.start :].split("\n")[1:] if line.strip())
    lines = "the next line was" if count == 1 else f"the next {count:,} lines were"
    return [f"{lines} read as part of this text and not run"] if count else []


# The queue of the pieces of a text. If a piece reads a file, the pieces of the file are run before the remaining pieces.

_MOST_FILES = 100
"""Maximum number of files that one text may read. The limit stops a file that reads itself."""


@define
class PieceQueue:
    """The queue of the pieces of a text. If ``stop`` is true, no piece is run after a piece that fails."""

    text: str
    name: str = "<input>"
    stop: bool = True
    first_line: int = 1
    left: deque[Piece] = field(init=False)
    is_over: bool = field(default=False, init=False)
    _files: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.left = deque(pieces(self.text, self.name, self.first_line))

    def next(self) -> Piece | None:
        """Return the next piece; None if no piece is left, or if an outcome ended the queue."""
        return self.left.popleft() if self.left and not self.is_over else None

    def settle(self, outcome: Outcome) -> Outcome:
        """Process the outcome of the latest piece, and return the outcome."""
        read = outcome.reads
        if read is not None:
            self._files += 1
            if self._files > _MOST_FILES:
                message = f"more than {_MOST_FILES} files are read at once"
                outcome = evolve(outcome, status="misused", reads=None, message=message)
            else:
                self.left.extendleft(reversed(list(pieces(read.text, read.name))))
        self.is_over = outcome.ends or outcome.status == "cancelled" or (self.stop and not outcome.is_good)
        return outcome


# The text of a session: either all pieces as they were typed, or the pieces in one language, with the reasons why ``knotwork run``
# would refuse the text.

_LANGUAGES: dict[str, Language] = {".gasl": "gasl", ".lwt": "lwt"}


@frozen
class SessionText:
    """The text of a session. ``comments`` is the number of pieces that became comments.

    ``faults`` are the reasons why ``knotwork run`` would refuse the text.
    """

    text: str
    pieces: int
    comments: int
    faults: tuple[str, ...] = ()


def session_text(ran: list[Entry], suffix: str) -> SessionText:
    """Return the pieces of a session as the text of a file whose name ends in ``suffix``.

    In ``.gasl`` and ``.lwt`` files, pieces in another language become comments, so that ``knotwork run`` accepts the file. If several
    steps have the same id, all except the last become comments. Any other file has all pieces as typed, so that ``.read`` can run them.
    """
    wanted = _LANGUAGES.get(suffix)
    texts = [_text_in(wanted, entry.piece) for entry in ran]
    last = {name: number for number, entry in enumerate(ran) if texts[number] is not None for name in entry.names}
    lines, comments = [], 0
    for number, (entry, text) in enumerate(zip(ran, texts, strict=True)):
        if text is not None and (wanted != "lwt" or any(last[name] == number for name in entry.names)):
            lines.append(text)
            continue
        comments += 1
        lines += [f"# {line}".rstrip() for line in entry.piece.text.strip("\n").split("\n")]
    source = Source("\n".join(lines) + "\n")
    errors = [] if wanted is None else [d for d in diagnose(wanted, source.text) if d.severity == "error"]
    faults = (
        f"line {source.position(each.span.start)[0]}: {each.message}" if each.span is not None else each.message
        for each in errors
    )
    return SessionText(source.text, len(ran), comments, tuple(faults))


def _text_in(wanted: Language | None, piece: Piece) -> str | None:
    """Return a piece as text in the language ``wanted``; None if that is impossible. An expression becomes an EXPR step."""
    if wanted is None or piece.language == wanted:
        return piece.text.strip("\n")
    name, written = expression_of(piece.text)
    expr = parse_expr(written).expr if wanted == "lwt" and piece.language == "expr" else None
    if name is None or expr is None:
        return None
    own = {name for node in walk(expr) if isinstance(node, Clause) for name in node.names}
    names = sorted({node.name for node in walk(expr) if isinstance(node, Name)} - own)
    options = "".join(f", {each}={{({each})}}" for each in names)
    step = f"({name})=EXPR({json.dumps(' '.join(written.split()), ensure_ascii=False)}{options})"
    return None if "{(" in written or "_" in names or has_errors(parse_lwt(step).diagnostics) else step
