"""Checks what is open once typing pauses, and tells the client what was found. A check whose text has changed meanwhile tells nothing."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from time import perf_counter

from attrs import define, field, frozen

from ....lang.diagnostic import Diagnostic, sort_key
from ....lang.service import Known, Reading, diagnose
from ....lang.source import Span
from ....lang.trees.lwt import MISSING
from .documents import Document, Snapshot

__all__ = ["Findings", "Publisher", "check", "most_telling"]


# Says what is wrong with a text: by the parsers and linters that everything here uses, of what was read already.


def check(reading: Reading, known: Known) -> tuple[Diagnostic, ...]:
    """Return what is wrong with a text, in the order of place.

    That of a text which was read from one before is what a check of the text alone returns: a property test holds the two equal.
    """
    match reading.language:
        case "lwt":
            return _check_script(reading, known)
        case "seed":
            return _check_seed(reading, known)
    return diagnose(reading.language, reading, known)


def _check_script(reading: Reading, known: Known) -> tuple[Diagnostic, ...]:
    from ...api.checked import check_script

    return check_script(reading.script, input=known.input, models=known.models, given=known.variables).found


def _check_seed(reading: Reading, known: Known) -> tuple[Diagnostic, ...]:
    from ...api.checked import check_seed
    from ...seeds.reviews import ContextError

    if known.input is not MISSING:
        try:
            return check_seed(reading.seed, known.input).found
        except ContextError:  # the input beside the seed is no context: that is a fault of the input
            pass
    found = diagnose("seed", reading, known)
    return tuple(sorted(dict.fromkeys((*found, *reading.seed.diagnostics)), key=sort_key))


MOST = 500
"""Diagnostics told of one text: nobody reads more, and editors grow slow."""
_MOMENT = 0.1
"""Seconds: what takes no longer is checked at once."""
_BREATH = 0.003
"""Seconds in which an editor asks what it asks after a change: its answers come first, a person waits for them."""
_GIVES_WAY = 0.05
"""Seconds after a change for which a check waits for answers."""
_POSTPONED = 5
"""Delays after which a check is no longer put off, however much is typed."""


@frozen
class Findings:
    """What a check of one snapshot found, and where its steps or commands stand."""

    snapshot: Snapshot
    diagnostics: tuple[Diagnostic, ...]
    items: tuple[Span, ...] = ()


@define(eq=False)
class _Work:
    """What is going on for one document."""

    cost: float = 0.0
    since: float | None = None
    timer: asyncio.TimerHandle | None = None
    running: bool = False
    again: bool = False
    findings: Findings | None = None
    waiting: "list[asyncio.Future[Findings]]" = field(factory=list)

    def give_up(self, error: BaseException | None) -> None:
        """Tell whoever waits that there will be no findings, and why where something failed."""
        for waiter in self.waiting:
            if not waiter.done():
                waiter.cancel() if error is None else waiter.set_exception(error)
        self.waiting.clear()


@define(eq=False)
class Publisher:
    """Runs checks one after the other in ``executor`` and hands what they find to ``tell``; ``known`` says what a check goes by.

    Runs on the event loop; ``delay`` is asked for anew each time.
    """

    executor: Executor
    known: Callable[[Document], Known]
    tell: Callable[[Findings], None]
    failed: Callable[[BaseException], None]
    delay: Callable[[], float]
    is_answering: Callable[[], bool]
    _work: dict[str, _Work] = field(factory=dict, init=False)

    def changed(self, document: Document, *, at_once: bool = False) -> None:
        """Have a document checked: soon, or at once where the last check took but a moment."""
        work = self._work.get(document.uri)
        if work is None:
            work = self._work[document.uri] = _Work()
        now = perf_counter()
        work.since = now if work.since is None else work.since
        delay = self.delay()
        if at_once or work.cost < _MOMENT or now - work.since > _POSTPONED * delay:
            delay = _BREATH
        if work.timer is not None:
            work.timer.cancel()
        work.timer = asyncio.get_running_loop().call_later(delay, self._begin, document, work)

    def closed(self, uri: str) -> None:
        """Forget a document; who waits for its findings is told that there will be none."""
        work = self._work.pop(uri, None)
        if work is None:
            return
        if work.timer is not None:
            work.timer.cancel()
        work.give_up(None)

    async def findings(self, document: Document) -> Findings:
        """Return what a check of the document as it is now finds, once there is one."""
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

    def _begin(self, document: Document, work: _Work) -> None:
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
        future.add_done_callback(lambda done: self._done(document, work, snapshot, done))

    def _done(self, document: Document, work: _Work, snapshot: Snapshot, done: "asyncio.Future[Findings]") -> None:
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


def _check(work: _Work, snapshot: Snapshot, known: Known) -> Findings:
    """Check one snapshot; in the thread of checks, where no two meet."""
    begun = perf_counter()
    reading = snapshot.read()
    found = check(reading, known)
    if work.findings is not None:  # the first reads all of the text; those that follow, only what changed
        work.cost = perf_counter() - begun
    return Findings(snapshot, found, reading.items)


def most_telling(found: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """Return the diagnostics that are told: errors before what is cut off, and one that says how many there are more."""
    if len(found) <= MOST:
        return found
    errors = [each for each in found if each.severity == "error"][:MOST]
    others = [each for each in found if each.severity != "error"][: MOST - len(errors)]
    told = tuple(sorted((*errors, *others), key=sort_key))
    more = f"and {len(found) - len(told):,} more; knotwork check has them all"
    return (*told, Diagnostic("", "info", more))
