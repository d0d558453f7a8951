"""A run as the history has it: the row that lists show, and the whole with its request and iterations."""

from typing import Any

import orjson
from attrs import astuple, fields, frozen

from ...http.writing import written

__all__ = ["COLUMNS", "Kept", "Part", "Row", "read_kept", "read_row", "written"]


@frozen
class Row:
    """What a list shows of a run. ``created``: seconds since 1970; ``best``: the index of the best iteration, None for none.

    ``status``: running, accepted, best, failed, or interrupted (the server ended before the run did). ``instruct`` is whole.
    ``score``, ``seconds``, ``calls``, tokens and ``cost`` are those of the finished iterations, at the end of the run.
    ``last_event``: the number of the last event that was told.
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

    def values(self) -> tuple[Any, ...]:
        """Return the values in the order of ``COLUMNS``."""
        return astuple(self)

    def changing(self) -> tuple[Any, ...]:
        """Return the values that a run changes while it goes."""
        return (self.status, self.stopped, *astuple(self)[9:])


COLUMNS = ", ".join(attribute.name for attribute in fields(Row))


@frozen
class Part:
    """A finished iteration: its number, the number of the event that tells it, its JSON object."""

    number: int
    event: int
    body: dict[str, Any]

    def values(self) -> tuple[Any, ...]:
        """Return number, event and the object's bytes."""
        return self.number, self.event, written(self.body)


@frozen
class Kept:
    """A run with all that is known of it. ``metadata`` is that of its response, empty before the end."""

    row: Row
    request: dict[str, Any]
    metadata: dict[str, Any]
    parts: tuple[Part, ...] = ()


def read_row(found: tuple[Any, ...]) -> Row:
    """Return the row of ``SELECT`` ``COLUMNS``."""
    return Row(*found)


def read_kept(found: tuple[Any, ...], parts: list[tuple[Any, ...]]) -> Kept:
    """Return the run of a row with request and metadata, and of its iterations' rows."""
    *row, request, metadata = found
    read = tuple(Part(number, event, orjson.loads(body)) for number, event, body in parts)
    return Kept(read_row(tuple(row)), orjson.loads(request), orjson.loads(metadata), read)
