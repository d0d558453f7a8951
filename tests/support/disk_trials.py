"""Trials of the state's log on a disk that fails, kills or loses power: what was done, what was acknowledged, what may be found."""

import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from knotwork.adapters.state import StoreError
from knotwork.adapters.state_json.log.durable import Log, Recovered

from .disk import Disk, Killed, Model, State, Unsynced, laid_out

STORE = "a/b/store"


def record(number: int) -> dict[str, Any]:
    """Return a record that is told from all others, some within a sector and some over several pages."""
    return {"n": number, "text": f"{number} " * (5, 60, 300, 2500)[number % 4]}


def values(recovered: Recovered) -> list[int]:
    """Return the numbers of the records that were kept, and see that each is what was written."""
    found = list(recovered.snapshot["numbers"]) if recovered.snapshot is not None else []
    for kept in recovered.records:
        assert kept == record(kept["n"])
        found.append(kept["n"])
    return found


def stored(directory: Path, count: int) -> list[int]:
    """Make a store with records 1 to ``count``, as a kill leaves it, and return their numbers."""
    directory.parent.mkdir(parents=True)
    log, _ = Log.open(directory, files=Unsynced())
    for number in range(1, count + 1):
        log.append(record(number), sync=True)
    log.close(clean=False)
    return list(range(1, count + 1))


@dataclass
class Trial:
    """Steps on a ``Disk``: "sync" and "free" commit, "compact", "close", "kill". A step opens the log if it is not open.

    ``wrong`` says where a new process found something else than what was acknowledged.
    """

    disk: Disk
    numbers: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    _log: Log | None = None
    _next: int = 100
    _flying: int | None = None  # a commit that a kill interrupted: it may be there or not

    def run(self, steps: Sequence[str], *, until_hit: bool = False) -> None:
        """Do the steps, one that fails once, then end the process; ``until_hit``: no more once the disk failed."""
        for step in steps:
            if until_hit and self.disk.hit:
                break
            try:
                self._step(step)
            except Killed:
                self._dead()
            except StoreError:
                if self.disk.fault is None or self.disk.fault[1] != "always":  # a dying disk doesn't take back either
                    self._flying = None
                if self._log is not None and self._log._broken:
                    with suppress(StoreError):
                        self._log.close()
                    self._log = None
        self._dead()

    def _step(self, step: str) -> None:
        log = self._log = self._log or self._opened()
        if step in ("sync", "free"):
            self._commit(log, sync=step == "sync")
        elif step == "compact":
            log.compact({"numbers": self.numbers})
        elif step == "close":
            self._log = None
            log.close()
            self.disk.mark(durable=list(self.numbers))
        else:
            raise Killed

    def _opened(self) -> Log:
        log, recovered = Log.open(self.disk.root / STORE, files=self.disk)
        found = values(recovered)
        if found not in (self.numbers, [*self.numbers, self._flying]):
            self.wrong.append(f"found {found} instead of {self.numbers} (or with {self._flying})")
        self.numbers, self._flying = found, None
        self.disk.mark(versions=list(found))
        return log

    def _commit(self, log: Log, *, sync: bool) -> None:
        self._next += 1
        self._flying = self._next
        self.disk.mark(versions=[*self.numbers, self._next])
        log.append(record(self._next), sync=sync)
        self.numbers.append(self._next)
        self._flying = None
        self.disk.mark(**{"durable" if sync else "versions": list(self.numbers)})

    def _dead(self) -> None:
        self.disk.killed = True
        if self._log is not None:
            with suppress(Killed, StoreError):
                self._log.close()
            self._log = None
        self.disk.restart()


@dataclass(frozen=True)
class Cut:
    """A moment of a trace at which the power went: what the disk may hold, what must be found, and what may be."""

    moment: int
    state: State
    durable: list[int]
    versions: list[list[int]]


def cuts(disk: Disk, *, seed: int, more: int, without: str = "", after: int = 0) -> Iterator[Cut]:
    """Yield power cuts at every moment of a trace from ``after`` on. The syncs of one site can be left out."""
    chance = random.Random(seed)
    model = Model()
    durable: list[int] = []
    versions: list[list[int]] = [[]]
    for moment, op in enumerate(disk.trace):
        if op[0] == "mark":
            durable = op[1].get("durable", durable)
            versions = [*versions, *op[1].values()]
        elif not without or op[-1] != without:
            model.apply(op)
        if moment >= after:
            for state in model.after_power_cut(chance, more):
                yield Cut(moment, state, durable, versions)


def judged(cut: Cut, place: Path) -> str:
    """Open the store that a power cut left, go on with it, and say what is wrong; "" if nothing is."""
    laid_out(cut.state, place)
    directory = place / STORE
    try:
        log, recovered = Log.open(directory, files=Unsynced())
        try:
            found = values(recovered)
            if found[: len(cut.durable)] != cut.durable:
                return f"acknowledged {cut.durable}, found {found}"
            if not any(version[: len(found)] == found for version in cut.versions):
                return f"found {found}, which never was"
            log.append(record(9_999), sync=True)
        finally:
            log.close()
        log, recovered = Log.open(directory, files=Unsynced())
        try:
            if values(recovered) != [*found, 9_999]:
                return "what was committed after the power cut is not there"
        finally:
            log.close()
    except StoreError as error:
        return f"refused: {error}"
    finally:
        shutil.rmtree(place)
    return ""
