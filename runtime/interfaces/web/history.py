"""The history of runs: its data, and the interface of its two implementations, in SQLite and in PostgreSQL.

The row of a run is committed before the first call; each iteration and the end are committed before they are reported. If the
server of a run stopped before the run's end, the run counts as interrupted; its finished iterations remain. Every query
specifies an owner, so that no client sees the runs of another client.
"""

from collections.abc import Collection, Mapping
from typing import Any, Literal, Protocol

import orjson
from attrs import Attribute, astuple, evolve, field, fields, frozen

from ...api.gasl import StoreError
from ..http.problems import json_bytes

# A stored run: the row for lists, and the complete run with its request and its iterations.


@frozen
class Row:
    """The entry of a run in a list. ``created`` is in seconds since 1970; ``best`` is the index of the best iteration, or None.

    ``status`` is running, accepted, best, failed, or interrupted (the server stopped before the run ended). ``instruct`` is the full
    instruction. ``score``, ``seconds``, ``calls``, tokens and ``cost`` cover the finished iterations or, after the end, the entire run.
    ``last_event`` is the number of the last event. ``is_elsewhere`` is not stored: it is True if another server has the run active.
    """

    id: str
    owner: str
    created: float
    status: str
    stopped: str
    model: str
    instruct: str
    iter_max: int
    score_threshold: float
    score: float | None = None
    best: int | None = None
    iterations: int = 0
    seconds: float = 0.0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    last_event: int = 1
    is_elsewhere: bool = field(default=False, metadata={"is_stored": False})

    def values(self) -> tuple[Any, ...]:
        """Return the values in the order of ``COLUMNS``."""
        return astuple(self, filter=_is_stored)

    def changing(self) -> tuple[Any, ...]:
        """Return the values that change during the run, in the order of ``CHANGING``."""
        return (self.status, self.stopped, *self.values()[9:])


def _is_stored(attribute: "Attribute[Any]", value: object = None) -> bool:
    return bool(attribute.metadata.get("is_stored", True))


_NAMES = [attribute.name for attribute in fields(Row) if _is_stored(attribute)]
COLUMNS = ", ".join(_NAMES)
CHANGING = ("status", "stopped", *_NAMES[9:])


@frozen
class StoredIteration:
    """A finished iteration: its number, the number of its event, and its JSON object."""

    number: int
    event: int
    body: dict[str, Any]

    def values(self) -> tuple[Any, ...]:
        """Return the number, the number of the event, and the JSON object as bytes."""
        return self.number, self.event, json_bytes(self.body)


@frozen
class StoredRun:
    """A run with its request and its iterations.

    ``metadata`` is the metadata of the response; it is empty before the end of the run.
    """

    row: Row
    request: dict[str, Any]
    metadata: dict[str, Any]
    parts: tuple[StoredIteration, ...] = ()


def read_row(found: tuple[Any, ...]) -> Row:
    """Convert a database row with the columns ``COLUMNS`` (and ``is_elsewhere``) to a ``Row``."""
    return Row(*found)


def read_kept(found: tuple[Any, ...], parts: list[tuple[Any, ...]]) -> StoredRun:
    """Return the run for a database row (``COLUMNS``, request, metadata) and the rows of its iterations."""
    *row, request, metadata = found
    read = tuple(StoredIteration(number, event, orjson.loads(body)) for number, event, body in parts)
    return StoredRun(read_row(tuple(row)), orjson.loads(request), orjson.loads(metadata), read)


def with_final_status(run: StoredRun) -> StoredRun:
    """Return the run. Its status is "interrupted" if it is active at no server, and its end could not be written."""
    return evolve(run, row=final_row(run.row))


def final_row(row: Row) -> Row:
    """Return the row of a run that is not active here; its status is "interrupted" if no other server has the run active."""
    return evolve(row, status="interrupted") if row.status == "running" and not row.is_elsewhere else row


@frozen
class StoredEvaluation:
    """A finished evaluation. ``created`` is in seconds since 1970, ``target`` says what was evaluated.

    ``body`` is the JSON object that the client received; None in lists.
    """

    id: str
    owner: str
    created: float
    status: str
    target: str
    body: dict[str, Any] | None = None

    def values(self) -> tuple[Any, ...]:
        """Return the values in the order of ``EVALUATION_COLUMNS``; the target as bytes, because it may contain NUL."""
        return self.id, self.owner, self.created, self.status, self.target.encode("utf-8", "replace")


EVALUATION_COLUMNS = "id, owner, created, status, target"


def read_evaluation(found: tuple[Any, ...]) -> StoredEvaluation:
    """Convert a database row with the columns ``EVALUATION_COLUMNS``, and perhaps the body, to a ``StoredEvaluation``."""
    run, owner, created, status, target, *body = found
    return StoredEvaluation(
        run, owner, created, status, bytes(target).decode(), orjson.loads(bytes(body[0])) if body else None
    )


class HistoryError(StoreError):
    """Raised if the history can't be opened, read or written."""


class LocalRuns(Protocol):
    """The active runs of this server, as a shared history sees them. The methods are called in the server's event loop."""

    def active(self) -> Collection[str]:
        """Return the ids of the active runs."""

    def obey(self, run: str, wish: Literal["cancel", "delete"]) -> None:
        """Cancel the run, or cancel and delete it, because a client asked another server to do so. May be called repeatedly."""

    async def restore(self) -> None:
        """Store active runs again: the history was unreachable for a while, or other servers considered this one stopped."""


class RunHistory(Protocol):
    """The runs of all owners. An instance belongs to one event loop; methods that read or write raise ``HistoryError``.

    At most ``keep`` runs of each owner are stored; the oldest finished runs are deleted. If a row is read with the status
    "running" and without ``is_elsewhere``, its run belongs to this server, or the run's server has stopped.
    """

    async def open(self) -> int:
        """Open the history, mark runs of stopped servers as interrupted, and return their number."""

    def attend(self, local: LocalRuns) -> None:
        """Begin to carry out what other servers ask of ``local``, and to tell them that this server is alive."""

    async def add_run(self, row: Row, request: Mapping[str, Any]) -> None:
        """Store a new run, and delete the owner's oldest runs beyond the limit."""

    async def add_iteration(self, row: Row, part: StoredIteration) -> None:
        """Store a finished iteration and the updated row of the run."""

    async def finish_run(self, row: Row, metadata: Mapping[str, Any]) -> None:
        """Store the end of a run."""

    async def replace_run(self, run: StoredRun, *, is_new: bool) -> None:
        """Store all of a run in one transaction; this replaces earlier data about the run.

        Without ``is_new``, the run has been stored before. A shared history then refuses a run that another server has deleted.
        """

    async def delete_run(self, owner: str, run: str) -> bool:
        """Delete a run and return whether it existed."""

    async def find(self, owner: str, run: str) -> StoredRun | None:
        """Return the run with its iterations; None if the owner has no run with this id."""

    async def page(self, owner: str, limit: int, before: str | None = None) -> tuple[list[Row], bool]:
        """Return the newest ``limit`` runs of the owner, older than ``before`` if it is given, and whether more runs follow."""

    async def add_evaluation(self, evaluation: StoredEvaluation) -> None:
        """Store a finished evaluation, and delete the owner's oldest evaluations beyond the limit ``keep``."""

    async def evaluations(
        self, owner: str, limit: int, before: str | None = None
    ) -> tuple[list[StoredEvaluation], bool]:
        """Return the newest ``limit`` evaluations of the owner without their bodies, and whether more follow; see ``page``."""

    async def find_evaluation(self, owner: str, evaluation: str) -> StoredEvaluation | None:
        """Return an evaluation; None if the owner has no evaluation with this id."""

    async def delete_evaluation(self, owner: str, evaluation: str) -> bool:
        """Delete an evaluation and return whether it existed."""

    async def ask(self, owner: str, run: str, wish: Literal["cancel", "delete"]) -> bool:
        """Ask the server of a run to cancel or delete it. Return False if no other server has the run active.

        From then on, a run to be deleted can't be found at other servers. The method waits a while until the run is deleted.
        """

    async def changed(self, run: str, known: tuple[str, int], patience: float) -> bool:
        """Wait until the status and the last event of a run differ from ``known``, at most ``patience`` seconds; return whether they do.

        A run that does not exist has the status "". Raises ``FollowsEnded`` after ``end_follows``.
        """

    def end_follows(self) -> None:
        """End every wait in ``changed``, because the server stops."""

    async def aclose(self) -> None:
        """Finish pending writes and close the history; may be called more than once."""


class FollowsEnded(Exception):
    """Raised to end the streams of runs at other servers, because this server stops."""
