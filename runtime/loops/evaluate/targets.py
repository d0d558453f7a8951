"""The interface of an evaluation to its targets (seeds, scripts, rankings, questions, answers), and a pool of workers.

A target says which columns it can be scored on, finds the place of a gold item in its data, and answers items with a model.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from attrs import define, field

from ...events import Events
from ...models.chunk_queue import Workers
from ...results import Failed
from .field_scores import Answer, Status
from .gold import Binding, Expected, Gold, GoldItem

OnAnswer = Callable[[int, str, Answer], None]
"""A function that receives each answer: the number of the item, the column, and the answer."""


@define
class AskSettings:
    """How a candidate calls its model. ``options`` are further settings of the candidate; each target defines its own.

    ``spec`` is the spec of the model ("" for a custom client), ``models`` the named models of a script. ``events`` receives events.
    """

    spec: str = ""
    models: Mapping[str, Any] = field(factory=dict)
    max_concurrency: int = 8
    strict_types: bool = False
    options: Mapping[str, Any] = field(factory=dict)
    events: Events | None = None
    cancel: asyncio.Event | None = None
    record: Callable[[Any, str], Any] = lambda client, name: client
    """Wraps a further client of the candidate; the calls of this client are recorded under the given name."""
    workers: Callable[[int], Workers | None] = lambda number: None
    """Returns the workers of a run of a seed, by the number of the run in ``SeedTarget.runs`` (None: no workers)."""


class Target(Protocol):
    """A target of an evaluation."""

    kind: str
    """seed, script, rank, ask or answer."""
    name: str
    """The name of the target for people, such as its file."""
    source: str
    """A text that identifies the target: its document, script or items."""

    @property
    def samples(self) -> int:
        """The maximum number of samples that the target itself requests of one prompt; repeats use the samples after these."""
        ...

    def expected(self, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Expected]:
        """Map names to the columns that can be scored, which may include columns that the gold table does not have."""
        ...

    def keys(self, columns: Sequence[str]) -> Sequence[str]:
        """Return the columns of a gold table that identify an item."""
        ...

    def bind(self, keys: Mapping[str, Any]) -> Binding:
        """Return the place of an item with these keys in the data."""
        ...

    def faults(self, gold: Gold) -> list[str]:
        """Return the faults that can be found only when both the keys and the labels of the gold items are known."""
        ...

    def text(self, item: GoldItem) -> str:
        """Return the text that the item is about, for the page."""
        ...

    async def answer(self, items: Sequence[GoldItem], client: Any, settings: AskSettings, on_answer: OnAnswer) -> None:
        """Answer the items; report each answer to ``on_answer``. Items for which nothing is reported are unanswered."""
        ...


async def each_item(
    items: Sequence[GoldItem], work: Callable[[GoldItem], Awaitable[None]], limit: int, cancel: asyncio.Event | None
) -> None:
    """Await ``work`` for each item, with at most ``limit`` items at once. When ``cancel`` is set, running items are cancelled."""
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    workers = [asyncio.ensure_future(worker()) for _ in range(min(limit, len(items)))]
    stop = None if cancel is None else asyncio.ensure_future(cancel.wait())
    try:
        left: set[asyncio.Future[Any]] = set(workers)
        while left:
            watched = left if stop is None else {*left, stop}
            done, _ = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            if stop is not None and stop in done:
                return
            left -= done
            for task in done:
                task.result()
    finally:
        tasks = [*workers, *(() if stop is None else (stop,))]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def failed(kind: str, message: str, **figures: Any) -> Answer:
    """Return the answer for a failure of ``kind``. If the call was not made, the item is unanswered."""
    status: Status = "unanswered" if Failed(kind, message).is_unasked else "failed"
    return Answer(None, status, f"{kind}: {message}" if kind else message, **figures)
