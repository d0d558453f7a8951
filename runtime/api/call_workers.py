"""Workers for the calls of programs and loops, for the models of a ``ModelOpener``. ``call_worker`` is the code in the workers."""

from typing import TYPE_CHECKING

from ..models.distributed_client import CallWorkers
from . import warning_reporter
from .call_worker import CallSetup
from .seed_workers import WorkerOptions, open_workers

if TYPE_CHECKING:
    from ..events import Events
    from .clients import ModelOpener


def distribute(
    opener: "ModelOpener", given: WorkerOptions, max_concurrency: int, events: "Events | None" = None
) -> None:
    """Let workers make the calls of all specs that ``opener`` opens from now on. Without workers in ``given``, do nothing.

    ``max_concurrency`` is the number of concurrent calls of all workers together. ``events`` receives the events of chunks and warnings.
    The workers start with the first call, or with ``opener.workers.start()``, and end with the first client that is closed.
    """
    if given.workers is None:
        return
    setup = CallSetup(opener.opening, opener.cache, max_concurrency)
    opener.workers = CallWorkers(
        lambda: open_workers(given, setup, opener.ledger, "call_worker"), given.workers, max_concurrency, opener.ledger,
        opener.warn or warning_reporter(None), events,
    )  # fmt: skip
