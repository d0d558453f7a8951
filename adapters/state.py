"""The port to the state: the results that a run accumulates and saves. See ``docs/design/state.md#state-store``.

A state has declared keys (``network.authors``), each a LIST, a DICT or a COUNTER, with provenance for the items, a history
and the data needed for replay. It changes only by ``Change`` values. A store stages changes, records events, and
commits both as one record: after a crash, a committed record is present completely, an uncommitted one not at all.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from attrs import field, frozen

from ..lang.errors import KnotworkError
from ..lang.trees.gasl import StateType

Evidence: TypeAlias = Mapping[str, Any]
"""One piece of evidence, a JSON object. ``kind`` is "graph" (``nodes``: [id], ``edges``: [[source, target, key?]], the graph's own
``source_id``/``doc_id``/``file_path``, ``snippet``) or "model" (``model``, ``temperature``, ``prompt_hash``, ``at``, ``shown``:
[id], ``cited``: [id]). In a COUNTER of counts ``key`` names the count it belongs to. ``more`` counts the items it was made from
that are not listed."""


def counted_label(row: Any) -> str | None:
    """Return the key of a COUNTER that a row of ``COUNT BY`` belongs to; None if it is not such a row."""
    names = [name for name in row if name != "count"] if isinstance(row, Mapping) and "count" in row else []
    if len(names) != 1:
        return None
    label = row[names[0]]
    if isinstance(label, str):
        return label
    return None if isinstance(label, list | dict) else json.dumps(label)


class StateError(KnotworkError):
    """The state refused a change; nothing was changed. ``status`` is the command's, ``hint`` the command to add."""

    def __init__(
        self, message: str, *, status: Literal["binding_failure", "schema_mismatch", "error"], hint: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.hint = hint


class StoreError(KnotworkError):
    """The store can't be opened, read or written: locked, damaged, full. Acknowledged data are still present."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@frozen
class DeclareKey:
    """Create a key. Its parent must be a declared DICT. Repeating it with the same type does nothing; another type is refused."""

    key: str
    type: StateType
    description: str | None = None


@frozen
class ResetKey:
    """Empty a key and discard its provenance; keep its declaration (for a DICT also the keys declared in it, emptied)."""

    key: str


@frozen
class MergeInto:
    """Add ``value`` to a key. ``evidence`` belongs to it: for a LIST by index of ``value``, for a DICT by field, for a COUNTER
    one sequence under index 0, or several: a piece of a count names its ``key``.

    LIST: append new items (compared by ``id``, else by canonical JSON; evidence of existing items is united). DICT: deep merge,
    later wins. COUNTER: add a number, or numbers per key. ``incomplete``: why ``value`` is not the whole answer; the key keeps
    these reasons in addition to its existing ones.
    """

    key: str
    value: Any
    evidence: "Sequence[Sequence[Evidence]] | Mapping[str, Sequence[Evidence]]" = field(factory=tuple)
    incomplete: tuple[str, ...] = ()


@frozen
class ReplaceWith:
    """Replace the content of a key by ``value``; keys declared in a DICT stay. ``evidence`` as for ``MergeInto``.

    The reasons in ``incomplete`` replace the key's existing ones.
    """

    key: str
    value: Any
    evidence: "Sequence[Sequence[Evidence]] | Mapping[str, Sequence[Evidence]]" = field(factory=tuple)
    incomplete: tuple[str, ...] = ()


Change: TypeAlias = DeclareKey | ResetKey | MergeInto | ReplaceWith


@frozen
class Declaration:
    """A declared key: its type, description, and number of items, fields or counts.

    ``incomplete``: why its content is not the whole answer; empty if it is.
    """

    key: str
    type: StateType
    description: str | None
    size: int
    incomplete: tuple[str, ...] = ()


@frozen
class Difference:
    """One difference between two states. ``kind``: "declared", "removed" (a key, items or fields), "added" (items or fields),
    "changed" (``{index: item}``, fields, or ``{"_meta": ...}``), "count", "provenance".
    """

    key: str
    kind: str
    before: Any = None
    after: Any = None


class Snapshot(Protocol):
    """An immutable state at one moment; holding one costs nothing, comparing two costs in proportion to their differences."""

    @property
    def hash(self) -> str:
        """The hash (blake3, hex) of variables and provenance. Equal states have equal hashes, whatever their history."""
        ...

    def get(self, key: str) -> Any:
        """Return a key's value as plain JSON: a LIST's items, a DICT's fields (declared keys nested), a COUNTER's value.

        Raises ``StateError`` (binding_failure) if the key is not declared.
        """
        ...

    def evidence(self, key: str) -> Any:
        """Return the evidence of a value: LIST: a list by index; DICT: an object by field; COUNTER: a list."""
        ...

    def declared(self, key: str | None = None) -> Sequence[Declaration]:
        """Return the declared keys, or ``key`` and those below it, parents first, in the order of declaration."""
        ...

    def kind(self, key: str) -> StateType | None:
        """Return a key's type; None if it is not declared."""
        ...

    def sample(self, key: str, most: int) -> tuple[int, list[Any]]:
        """Return a LIST's length and up to ``most`` items spread over it; the cost depends on ``most`` only."""
        ...

    def variables(self) -> dict[str, Any]:
        """Return the state object's ``variables``: ``{key: {"_meta": {...}, "items": [...]}}`` and so on, nested."""
        ...

    def provenance(self) -> dict[str, Any]:
        """Return ``{key: evidence}`` for every key that has evidence."""
        ...


class StateStore(Protocol):
    """A stored state with one writer; staged changes appear in ``snapshot`` at once and for others after ``commit``."""

    def stage(self, change: Change) -> None:
        """Apply a change to the working state. If it raises ``StateError``, nothing changed."""
        ...

    def note(self, entry: Mapping[str, Any]) -> None:
        """Add an entry to the history.

        Its keys are ``step command why summary provenance_summary started_at finished_at`` and the record's own (``status``,
        ``metrics``, ``error`` ...).
        """
        ...

    def answered(self, answer: Mapping[str, Any]) -> None:
        """Store a model's answer for replay: ``{"request": hash, "text": ...}`` and further data of the caller."""
        ...

    def ran(self, command: str) -> None:
        """Add a command's exact text to ``replay.commands``."""
        ...

    def mark(self) -> object:
        """Return a mark of the working state, for ``back``. It costs nothing."""
        ...

    def back(self, mark: object) -> None:
        """Restore the variables and provenance of the mark. Entries noted since then stay, with ``"rolled_back": true``."""
        ...

    def commit(self, *, found: bool = True) -> str:
        """Make all staged changes and entries durable as one record, and return the state's hash.

        If it raises ``StoreError``, the state is that of the last commit: staged changes and entries are lost and must be
        staged again. Values set by ``configure`` stay. ``found`` false: nothing new was found, so ``source`` is not recorded.

        A record that changes no variable is written without waiting for the disk (safe if the process is killed, not on a power
        cut).
        """
        ...

    def sync(self) -> None:
        """Wait until all commits are on the disk; ends a plan if commits don't wait. Raises ``StoreError``."""
        ...

    def get(self, key: str) -> Any:
        """Return ``snapshot().get(key)``."""
        ...

    def merge(self, key: str, value: Any) -> None:
        """Merge and commit."""
        ...

    def replace(self, key: str, value: Any) -> None:
        """Replace and commit."""
        ...

    def summary(self, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """Return ``{key: {"type", "size", "description", "incomplete"?, "sample"}}``, bounded, for prompts and users."""
        ...

    def append_history(self, record: Mapping[str, Any]) -> None:
        """Note and commit."""
        ...

    def attach_provenance(self, key: str, indices: Sequence[int], provenance_items: Sequence[Evidence]) -> None:
        """Add one piece of evidence to each of the items with these indices, and commit."""
        ...

    def replay_info(self) -> dict[str, Any]:
        """Return ``{"seed", "config", "commands"}``, and ``"answers"`` if a model was called."""
        ...

    def configure(
        self,
        *,
        query: str | None = None,
        config: Mapping[str, Any] | None = None,
        seed: int | None = None,
        source: Mapping[str, Any] | None = None,
    ) -> None:
        """Set the query, the configuration (merged) and the random seed; durable with the next commit.

        ``source`` is the current graph. It becomes the configuration's ``adapter`` with the next commit that changes variables
        or provenance, not earlier: ``adapter`` names the graph that the findings come from.
        """
        ...

    @property
    def source(self) -> Mapping[str, Any]:
        """The current graph, as set by ``configure``; empty if not set."""
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
        """Return an independent in-memory store that starts as a copy of this one. It costs tens of microseconds."""
        ...

    def diff(self, before: "Snapshot | str", after: "Snapshot | str") -> list[Difference]:
        """Return the differences between two snapshots, or hashes of commits of this store."""
        ...

    def rollback(self, to: "Snapshot | str") -> None:
        """Restore the variables and provenance of a snapshot, or of the commit with this hash (or hash prefix), and commit.

        The configuration is unchanged, because a rollback finds nothing new.
        """
        ...

    def restore(self, to: "Snapshot | str") -> None:
        """Restore like ``rollback``, but leave the commit (``found`` false) to the caller, who notes its purpose with it."""
        ...

    def as_json(self) -> dict[str, Any]:
        """Return the state object.

        It has version, created_at, updated_at, query, config, variables, history, replay, and provenance if there is any.
        """
        ...

    def persist(self) -> None:
        """Write ``state.json`` next to the journal (does nothing for an in-memory store)."""
        ...

    def close(self) -> None:
        """Commit the noted entries, write ``state.json``, release the lock. A closed store refuses everything else."""
        ...
