"""The port to the state: what a run accumulates and keeps. See ``docs/design/state.md#state-store``.

A state is declared keys (``network.authors``), each a LIST, a DICT or a COUNTER, with provenance beside the items, a history
and what is needed to replay it. It changes by ``Change`` values only. A store stages changes, notes what happened, and
commits both as one record: what ``commit`` returned from is there after a crash, all of it or none.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from attrs import field, frozen

from ..lang.errors import KnotworkError
from ..lang.trees.gasl import StateType

__all__ = [
    "Change", "Declaration", "DeclareKey", "Difference", "Evidence", "MergeInto", "ReplaceWith", "ResetKey",
    "Snapshot", "StateError", "StateStore", "StoreError", "counted_label",
]  # fmt: skip

Evidence: TypeAlias = Mapping[str, Any]
"""One piece of evidence, a JSON object. ``kind`` is "graph" (``nodes``: [id], ``edges``: [[source, target, key?]], the graph's own
``source_id``/``doc_id``/``file_path``, ``snippet``) or "model" (``model``, ``temperature``, ``prompt_hash``, ``at``, ``shown``: [id],
``cited``: [id]). In a COUNTER of counts ``key`` names the count that a piece is of. ``more`` counts the items that it was made of and that
are not listed."""


def counted_label(row: Any) -> str | None:
    """Return the key that a row of ``COUNT BY`` counts for in a COUNTER; None where it is no such row."""
    names = [name for name in row if name != "count"] if isinstance(row, Mapping) and "count" in row else []
    if len(names) != 1:
        return None
    label = row[names[0]]
    if isinstance(label, str):
        return label
    return None if isinstance(label, list | dict) else json.dumps(label)


class StateError(KnotworkError):
    """A change that the state refuses; nothing was changed. ``status`` is the command's, ``hint`` the command to add."""

    def __init__(
        self, message: str, *, status: Literal["binding_failure", "schema_mismatch", "error"], hint: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.hint = hint


class StoreError(KnotworkError):
    """The store can't be opened, read or written: locked, damaged, full. What was acknowledged is still there."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@frozen
class DeclareKey:
    """Create a key. Its parent must be a declared DICT. Declared again with the same type: nothing; another: refused."""

    key: str
    type: StateType
    description: str | None = None


@frozen
class ResetKey:
    """Empty a key and forget its provenance; keep its declaration (of a DICT also the keys declared in it, emptied)."""

    key: str


@frozen
class MergeInto:
    """Add ``value`` to a key. ``evidence`` lies beside it: for a LIST by index of ``value``, for a DICT by field, for a COUNTER
    one sequence under index 0, or more: a piece of a count says ``key``.

    LIST: append what is not there (by ``id``, else by canonical JSON; evidence of what is there is united). DICT: deep merge,
    later wins. COUNTER: add a number, or numbers per key. ``incomplete``: why ``value`` is not the whole answer; the key keeps
    these reasons beside those that it has.
    """

    key: str
    value: Any
    evidence: "Sequence[Sequence[Evidence]] | Mapping[str, Sequence[Evidence]]" = field(factory=tuple)
    incomplete: tuple[str, ...] = ()


@frozen
class ReplaceWith:
    """Put ``value`` in the place of what the key holds; keys declared in a DICT stay. ``evidence`` as for ``MergeInto``.

    The key is incomplete for the reasons in ``incomplete``, and for no other any more.
    """

    key: str
    value: Any
    evidence: "Sequence[Sequence[Evidence]] | Mapping[str, Sequence[Evidence]]" = field(factory=tuple)
    incomplete: tuple[str, ...] = ()


Change: TypeAlias = DeclareKey | ResetKey | MergeInto | ReplaceWith


@frozen
class Declaration:
    """A declared key: its type, description, and how many items, fields or counts it has.

    ``incomplete``: why what it holds is not the whole answer; empty where it is.
    """

    key: str
    type: StateType
    description: str | None
    size: int
    incomplete: tuple[str, ...] = ()


@frozen
class Difference:
    """One way in which two states differ. ``kind``: "declared", "removed" (a key, items or fields), "added" (items or fields),
    "changed" (``{index: item}``, fields, or ``{"_meta": ...}``), "count", "provenance".
    """

    key: str
    kind: str
    before: Any = None
    after: Any = None


class Snapshot(Protocol):
    """A state at one moment, immutable; holding one costs nothing, comparing two costs what differs."""

    @property
    def hash(self) -> str:
        """A hash (blake3, hex) of variables and provenance. Equal states have equal hashes, whatever led to them."""
        ...

    def get(self, key: str) -> Any:
        """Return a key's value as plain JSON: a LIST's items, a DICT's fields (declared keys nested), a COUNTER's value.

        Raises ``StateError`` (binding_failure) for what is not declared.
        """
        ...

    def evidence(self, key: str) -> Any:
        """Return the evidence beside the value: LIST: a list by index; DICT: an object by field; COUNTER: a list."""
        ...

    def declared(self, key: str | None = None) -> Sequence[Declaration]:
        """Return the declared keys, or those below ``key`` and itself, parents first, in the order of declaration."""
        ...

    def kind(self, key: str) -> StateType | None:
        """Return a key's type; None where it is not declared."""
        ...

    def sample(self, key: str, most: int) -> tuple[int, list[Any]]:
        """Return a LIST's length and up to ``most`` items spread over it; cost grows with ``most`` only."""
        ...

    def variables(self) -> dict[str, Any]:
        """Return the state object's ``variables``: ``{key: {"_meta": {...}, "items": [...]}}`` and so on, nested."""
        ...

    def provenance(self) -> dict[str, Any]:
        """Return ``{key: evidence}`` for every key that has any."""
        ...


class StateStore(Protocol):
    """A state that is kept. One writer; what is staged is seen by ``snapshot`` at once and by others after ``commit``."""

    def stage(self, change: Change) -> None:
        """Apply a change to the working state. Raises ``StateError``, and then nothing changed."""
        ...

    def note(self, entry: Mapping[str, Any]) -> None:
        """Put an entry into the history: its keys are ``step command why summary provenance_summary started_at finished_at``
        and the record's own (``status``, ``metrics``, ``error`` ...)."""
        ...

    def answered(self, answer: Mapping[str, Any]) -> None:
        """Keep a model's answer for replay: ``{"request": hash, "text": ...}`` and what else the caller wants back."""
        ...

    def ran(self, command: str) -> None:
        """Add a command's exact text to ``replay.commands``."""
        ...

    def mark(self) -> object:
        """Return a mark of the working state, for ``back``. Costs nothing."""
        ...

    def back(self, mark: object) -> None:
        """Take the variables and provenance back to the mark. Entries noted since stay, with ``"rolled_back": true``."""
        ...

    def commit(self, *, found: bool = True) -> str:
        """Make all that is staged and noted durable as one record, and return the state's hash.

        Raises ``StoreError``, and then the state is as it was after the last commit: what was staged and noted is gone, and has to be
        staged again. What ``configure`` set stays. ``found`` false: nothing new was found, so ``source`` is not looked at.

        What changed no variable is written without waiting for the disk (a killed process loses nothing, a power cut may).
        """
        ...

    def sync(self) -> None:
        """Wait until all that was committed is on the disk: what ends a plan where commits don't wait. Raises ``StoreError``."""
        ...

    def get(self, key: str) -> Any:
        """``snapshot().get(key)``."""
        ...

    def merge(self, key: str, value: Any) -> None:
        """Merge and commit."""
        ...

    def replace(self, key: str, value: Any) -> None:
        """Replace and commit."""
        ...

    def summary(self, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """Return ``{key: {"type", "size", "description", "incomplete"?, "sample"}}``, bounded, for prompts and people."""
        ...

    def append_history(self, record: Mapping[str, Any]) -> None:
        """Note and commit."""
        ...

    def attach_provenance(self, key: str, indices: Sequence[int], provenance_items: Sequence[Evidence]) -> None:
        """Put a piece of evidence beside each of the items with these indices, and commit."""
        ...

    def replay_info(self) -> dict[str, Any]:
        """Return ``{"seed", "config", "commands"}``, and ``"answers"`` where a model was asked."""
        ...

    def configure(
        self,
        *,
        query: str | None = None,
        config: Mapping[str, Any] | None = None,
        seed: int | None = None,
        source: Mapping[str, Any] | None = None,
    ) -> None:
        """Set the query, the configuration (merged) and the seed of randomness; durable with the next commit.

        ``source`` is the graph that is worked on. It becomes the configuration's ``adapter`` with each commit that changes variables
        or provenance, and not before: that one names the graph which the findings are of.
        """
        ...

    @property
    def source(self) -> Mapping[str, Any]:
        """The graph that is worked on, as ``configure`` was told; empty where it was not."""
        ...

    @property
    def history(self) -> Sequence[Mapping[str, Any]]:
        """All entries, oldest first."""
        ...

    @property
    def hash(self) -> str:
        """The working state's hash."""
        ...

    def snapshot(self) -> Snapshot:
        """Return the working state as an immutable value."""
        ...

    def fork(self) -> "StateStore":
        """Return a store in memory that begins as this one; neither sees what the other does. Costs tens of microseconds."""
        ...

    def diff(self, before: "Snapshot | str", after: "Snapshot | str") -> list[Difference]:
        """Return the differences of two snapshots, or of hashes of commits of this store."""
        ...

    def rollback(self, to: "Snapshot | str") -> None:
        """Make the variables and provenance those of a snapshot, or of the commit with this hash (a prefix will do), and commit.

        Nothing new is found by that: it leaves the configuration as it is.
        """
        ...

    def restore(self, to: "Snapshot | str") -> None:
        """Do what ``rollback`` does, and leave the commit (``found`` false) to the caller, who notes with it what it was for."""
        ...

    def as_json(self) -> dict[str, Any]:
        """Return the state object: version, created_at, updated_at, query, config, variables, history, replay, and provenance
        where there is any."""
        ...

    def persist(self) -> None:
        """Write ``state.json`` beside the journal (nothing for a store in memory)."""
        ...

    def close(self) -> None:
        """Commit what is noted, write ``state.json``, let go of the lock. A closed store refuses everything else."""
        ...
