"""The state store: a working moment, the last committed moment, and a log on the disk. See ``state.StateStore``."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import orjson
from attrs import define, evolve, field, frozen

from ..state import Change, Difference, Evidence, MergeInto, ReplaceWith, Snapshot, StateError, StoreError
from .changes import encode_change
from .journal_records import applied, past, patch, record
from .log.durable import Log
from .log.files import Files
from .nodes import DictNode, parsed, whole_copy, whole_text
from .snapshot import About, Commits, Entries, JSONSnapshot, Moment, differences, flagged, summary, with_about
from .state_object import NAME as STATEFILE
from .state_object import as_json, replay_of, write_state

Durability = Literal["command", "plan"]


def utc_now() -> str:
    """Return the time as ISO 8601 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@frozen(eq=False)
class _Mark:
    moment: Moment
    staged: int
    commits: int


@define(eq=False)
class JSONStateStore:
    """A state store, created by ``open_state.open_store``. A store in memory has no log.

    With ``durability`` "plan", a commit does not wait for the disk; only ``sync`` waits, at the end of a plan. ``notices`` are
    messages for the user about opening and compaction.
    """

    _now: Moment
    _committed: Moment
    _log: Log | None = None
    _directory: Path | None = None
    _durability: Durability = "command"
    _clock: Callable[[], str] = utc_now
    _commits: Commits = field(factory=Commits)
    _read_only: bool = False
    notices: list[str] = field(factory=list)
    _staged: list[bytes] = field(factory=list)
    _rolled_back: set[int] = field(factory=set)
    _number: int = 0
    _closed: bool = False
    _source: Mapping[str, Any] = field(factory=dict)
    _files: Files = field(factory=Files)
    _beside: Mapping[str, str] = field(factory=dict)

    # Changing

    def stage(self, change: Change) -> None:
        """See ``state.StateStore``."""
        self._stage(*encode_change(change))

    def _stage(self, text: bytes, change: Mapping[str, Any]) -> None:
        self._check_writable()
        root = applied(self._now.root, change)
        if root is not self._now.root:
            self._now = evolve(self._now, root=root)
            if self._log is not None:
                self._staged.append(text)

    def note(self, entry: Mapping[str, Any]) -> None:
        """See ``state.StateStore``. Raises ``StateError`` if ``entry`` is not a JSON object."""
        self._check_writable()
        self._now = evolve(self._now, history=self._now.history.extended([_object("an entry of the history", entry)]))

    def answered(self, answer: Mapping[str, Any]) -> None:
        """See ``state.StateStore``. Raises ``StateError`` if ``answer`` is not a JSON object."""
        self._check_writable()
        self._now = evolve(self._now, answers=self._now.answers.extended([_object("an answer", answer)]))

    def ran(self, command: str) -> None:
        """See ``state.StateStore``. Raises ``StateError`` if ``command`` is not a string."""
        self._check_writable()
        if not isinstance(command, str):
            raise StateError("a command must be a string", status="error")
        self._now = evolve(self._now, commands=self._now.commands.extended([whole_text("a command", command)]))

    def configure(
        self,
        *,
        query: str | None = None,
        config: Mapping[str, Any] | None = None,
        seed: int | None = None,
        source: Mapping[str, Any] | None = None,
    ) -> None:
        """See ``state.StateStore``. Raises ``StateError`` for arguments of the wrong type."""
        self._check_writable()
        changes: dict[str, Any] = {}
        if query is not None:
            changes["query"] = query
        if config is not None:
            changes["config"] = {**self._now.about.config, **config}
        if seed is not None:
            changes["seed"] = seed
        for name, kind in (("query", str), ("seed", int)):
            if type(changes.get(name, kind())) is not kind:
                raise StateError(f"the {name} must be {'a string' if kind is str else 'an integer'}", status="error")
        fresh = parsed(whole_text("the configuration", changes))
        if source is not None:
            self._source = parsed(_object("the source", source))
        if any(getattr(self._now.about, name) != value for name, value in fresh.items()):
            self._now = with_about(self._now, **fresh)

    def mark(self) -> object:
        """See ``state.StateStore``."""
        self._check()
        return _Mark(self._now, len(self._staged), self._number)

    def back(self, mark: object) -> None:
        """See ``state.StateStore``. If the mark is older than the last commit, the restoration is a staged change."""
        self._check_writable()
        if not isinstance(mark, _Mark):
            raise TypeError("back() needs the result of mark()")
        noted = range(len(mark.moment.history), len(self._now.history))
        self._rolled_back.update(at for at in noted if at < len(self._committed.history))
        self._now = evolve(self._now, root=mark.moment.root, history=flagged(self._now.history, noted))
        if mark.commits == self._number:
            del self._staged[mark.staged :]
        elif self._log is not None:
            self._staged = [orjson.dumps(each) for each in patch(self._committed.root, mark.moment.root)]

    # Saving

    def commit(self, *, found: bool = True) -> str:
        """See ``state.StateStore``. Values set by ``configure`` are kept for the next commit, even if this commit fails."""
        self._check_writable()
        about = self._now.about
        if found and self._source and self._now.root.digest != self._committed.root.digest:
            self.configure(config={"adapter": self._source})
        return self._commit(about)

    @property
    def source(self) -> Mapping[str, Any]:
        """See ``state.StateStore``."""
        return self._source

    def _commit(self, about: About) -> str:
        """Commit. After a failure, nothing of the commit remains in memory or on the disk; only ``about`` is kept."""
        state = self.hash
        if not self._pending:
            return state
        changed = bool(self._staged) or self._now.about != self._committed.about
        self._now = with_about(self._now, updated_at=self._clock())
        if self._log is not None:
            try:
                line = record(self._committed, self._now, self._staged, sorted(self._rolled_back))
                self._log.append(line, sync=changed and self._durability == "command")
            except BaseException:  # a later ``back`` to an earlier mark is staged as changes
                self._settle(evolve(self._committed, about=about))
                raise
        self._committed = self._now
        self._settle(self._now)
        self._commits = self._commits.with_commit(self._now.root)
        if self._log is not None and self._log.wants_compaction:
            deferred = self._log.compact({"hash": state, "state": as_json(self._now, raw=True)})
            self.notices += [deferred] if deferred else []
        return state

    def _settle(self, now: Moment) -> None:
        """Make ``now`` the working moment, without staged changes."""
        self._now = now
        self._staged = []
        self._rolled_back = set()
        self._number += 1

    @property
    def _pending(self) -> bool:
        now, kept = self._now, self._committed
        same = now.root is kept.root and now.history is kept.history and now.answers is kept.answers
        return not (same and now.commands is kept.commands and now.about == kept.about)

    def sync(self) -> None:
        """Wait until all commits are on the disk. Raises ``StoreError``."""
        self._check_writable()
        if self._log is not None:
            self._log.sync()

    def persist(self) -> None:
        """See ``state.StateStore``. Staged changes are not included."""
        self._check_writable()
        if self._directory is not None:
            self._beside = {STATEFILE: write_state(self._files, self._directory / STATEFILE, self._committed)}

    def close(self) -> None:
        """See ``state.StateStore``; repeated calls are allowed. The lock is released even if something fails."""
        if self._closed:
            return
        try:
            if not self._read_only:
                self.commit()
                if self._log is not None:
                    self._log.sync()
                self._beside = {}
                self.persist()
        finally:
            self._closed = True
            if self._log is not None:
                self._log.close(self._beside)

    # The documented methods

    def merge(self, key: str, value: Any) -> None:
        """See ``state.StateStore``."""
        self.stage(MergeInto(key, value))
        self.commit()

    def replace(self, key: str, value: Any) -> None:
        """See ``state.StateStore``."""
        self.stage(ReplaceWith(key, value))
        self.commit()

    def append_history(self, record: Mapping[str, Any]) -> None:
        """See ``state.StateStore``."""
        self.note(record)
        self.commit()

    def attach_provenance(self, key: str, indices: Sequence[int], provenance_items: Sequence[Evidence]) -> None:
        """See ``state.StateStore``. Each piece of evidence is for the index at the same position. Raises ``StateError``."""
        pieces = [dict(piece) for piece in provenance_items]
        change = {"do": "attach", "key": key, "indices": list(indices), "evidence": pieces}
        self._stage(*whole_copy(f"the evidence for {key}", change))
        self.commit()

    # Reading

    def get(self, key: str) -> Any:
        """See ``state.StateStore``."""
        return self.snapshot().get(key)

    def summary(self, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """See ``state.StateStore``."""
        return summary(self.snapshot(), keys)

    def replay_info(self) -> dict[str, Any]:
        """See ``state.StateStore``."""
        self._check()
        return replay_of(self._now)

    @property
    def history(self) -> Sequence[Mapping[str, Any]]:
        """See ``state.StateStore``; entries are read on access."""
        self._check()
        return Entries(self._now.history)

    @property
    def hash(self) -> str:
        """See ``state.StateStore``."""
        return self.snapshot().hash

    def snapshot(self) -> JSONSnapshot:
        """See ``state.StateStore``."""
        self._check()
        return JSONSnapshot(self._now.root)

    def as_json(self) -> dict[str, Any]:
        """See ``state.StateStore``."""
        self._check()
        return as_json(self._now)

    # Other states

    def fork(self) -> "JSONStateStore":
        """See ``state.StateStore``. Changes staged here are staged in the fork too."""
        self._check()
        return JSONStateStore(self._now, self._committed, clock=self._clock, commits=self._commits, source=self._source)

    def diff(self, before: Snapshot | str, after: Snapshot | str) -> list[Difference]:
        """See ``state.StateStore``. Raises ``StateError`` (error) for a hash that matches no available commit."""
        return differences(self._root(before), self._root(after))

    def rollback(self, to: Snapshot | str) -> None:
        """See ``state.StateStore``. Raises ``StateError`` (error) for a hash that matches no available commit."""
        self.restore(to)
        self.commit(found=False)

    def restore(self, to: Snapshot | str) -> None:
        """See ``state.StateStore``. Raises ``StateError`` (error) for a hash that matches no available commit."""
        self._check_writable()
        root = self._root(to)
        if root.digest != self._now.root.digest:
            if self._log is not None:
                self._staged += [orjson.dumps(each) for each in patch(self._now.root, root)]
            self._now = evolve(self._now, root=root)

    def _root(self, which: Snapshot | str) -> DictNode:
        self._check()
        if isinstance(which, JSONSnapshot):
            return which.root
        if not isinstance(which, str):
            raise TypeError("expected a snapshot of this store or the hash of a commit")
        found = self._commits.find(which)
        if found is None and self._directory is not None:
            found = past(self._directory, which)
        if found is None:
            raise StateError(
                f"no available commit has a hash that begins with {which}",
                status="error",
                hint="the latest commits and the commits since the last compaction of the journal are available",
            )
        return found

    def _check(self) -> None:
        if self._closed:
            raise StoreError("the state is closed")

    def _check_writable(self) -> None:
        self._check()
        if self._read_only:
            raise StoreError("the state is open read-only")


def _object(what: str, value: Mapping[str, Any]) -> bytes:
    if not isinstance(value, Mapping):
        raise StateError(f"{what} must be an object", status="error")
    return whole_text(what, value if isinstance(value, dict) else dict(value))
