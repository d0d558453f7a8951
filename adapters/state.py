"""The interface to the state: the results that a run accumulates and saves. See ``docs/design/state.md#state-store``.

A state has declared keys (``network.authors``) of type LIST, DICT or COUNTER, with provenance for the items, a history
and the data needed for replay. Only ``Change`` values change a state. A store stages changes, records events, and commits
both as one record. After a crash, a committed record is complete, and an uncommitted record leaves no trace.
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
[id], ``cited``: [id]). In a COUNTER with a count for each key, ``key`` names the count that the evidence supports. ``more`` is
the number of source items that are not listed."""


def counted_label(row: Any) -> str | None:
    """Return the COUNTER key that a row of ``COUNT BY`` counts; None if ``row`` is not such a row."""
    names = [name for name in row if name != "count"] if isinstance(row, Mapping) and "count" in row else []
    if len(names) != 1:
        return None
    label = row[names[0]]
    if isinstance(label, str):
        return label
    return None if isinstance(label, list | dict) else json.dumps(label)


class StateError(KnotworkError):
    """Raised if the state refuses a change; nothing is changed. ``status`` is the command's status, ``hint`` names the command to add."""

    def __init__(
        self, message: str, *, status: Literal["binding_failure", "schema_mismatch", "error"], hint: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.hint = hint


class StoreError(KnotworkError):
    """Raised if the store can't be opened, read or written (locked, damaged, disk full). Acknowledged data is not lost."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@frozen
class DeclareKey:
    """Create a key in a declared DICT. If the key exists with the same type, nothing changes; another type is refused."""

    key: str
    type: StateType
    description: str | None = None


@frozen
class ResetKey:
    """Empty a key and discard its provenance. The key stays declared; the keys declared in a DICT also stay declared and are emptied."""

    key: str


@frozen
class MergeInto:
    """Add ``value`` to a key, with the ``evidence`` for ``value``.

    ``evidence`` contains the pieces of evidence: for a LIST, a sequence for each index in ``value``; for a DICT, a mapping from
    fields to sequences; for a COUNTER, one or several sequences. A piece for a single count of a COUNTER names this count in
    ``key``.

    LIST: an item is appended unless the list already contains an equal item, or an item that has the same ``id`` (not null) and
    all fields of the new item with the same values. In these cases, only the evidence is merged. Items are compared as JSON: 1,
    1.0 and true differ. DICT: deep merge, later values win. COUNTER: a number is added, or one number per key. ``incomplete``
    are the reasons why ``value`` is not the complete answer; they are added to the reasons that the key already has. If
    ``by_id`` is true, an item with the ``id`` of an existing item is never appended, whatever its other fields are. Only
    journals of earlier versions contain such changes.
    """

    key: str
    value: Any
    evidence: "Sequence[Sequence[Evidence]] | Mapping[str, Sequence[Evidence]]" = field(factory=tuple)
    incomplete: tuple[str, ...] = ()
    by_id: bool = False


@frozen
class ReplaceWith:
    """Replace the content of a key by ``value``. Keys declared in a DICT are kept. ``evidence`` is the same as in ``MergeInto``.

    The reasons in ``incomplete`` replace the key's existing reasons.
    """

    key: str
    value: Any
    evidence: "Sequence[Sequence[Evidence]] | Mapping[str, Sequence[Evidence]]" = field(factory=tuple)
    incomplete: tuple[str, ...] = ()


Change: TypeAlias = DeclareKey | ResetKey | MergeInto | ReplaceWith


@frozen
class Declaration:
    """A declared key: its type, description, and number of items, fields or counts.

    ``incomplete`` are the reasons why the content is not the complete answer; empty if the content is complete.
    """

    key: str
    type: StateType
    description: str | None
    size: int
    incomplete: tuple[str, ...] = ()


@frozen
class Difference:
    """One difference between two states.

    ``kind`` is "declared", "removed" (a key, items or fields), "added" (items or fields), "changed" (``{index: item}``, fields,
    or ``{"_meta": ...}``), "count" or "provenance".
    """

    key: str
    kind: str
    before: Any = None
    after: Any = None


class Snapshot(Protocol):
    """An immutable state at one moment.

    Taking a snapshot costs no time or memory. Comparing two snapshots takes time only for their differences.
    """

    @property
    def hash(self) -> str:
        """The hash (blake3, hex) of variables and provenance. Equal states have equal hashes, whatever their histories."""
        ...

    def get(self, key: str) -> Any:
        """Return a key's value as plain JSON: a LIST's items, a DICT's fields and nested declared keys, or a COUNTER's value.

        Raises ``StateError`` (binding_failure) if the key is not declared.
        """
        ...

    def evidence(self, key: str) -> Any:
        """Return the evidence: a list for each index of a LIST or each field of a DICT, or a single list for a COUNTER."""
        ...

    def declared(self, key: str | None = None) -> Sequence[Declaration]:
        """Return all declared keys, or ``key`` and the keys below ``key``; parents first, in the order of declaration."""
        ...

    def kind(self, key: str) -> StateType | None:
        """Return a key's type; None if the key is not declared."""
        ...

    def sample(self, key: str, most: int) -> tuple[int, list[Any]]:
        """Return a LIST's length and up to ``most`` items spread over the LIST. The time depends only on ``most``."""
        ...

    def variables(self) -> dict[str, Any]:
        """Return the state object's ``variables``: ``{key: {"_meta": {...}, "items": [...]}}`` and so on, nested."""
        ...

    def provenance(self) -> dict[str, Any]:
        """Return ``{key: evidence}`` for every key that has evidence."""
        ...


class StateStore(Protocol):
    """A stored state with one writer. ``snapshot`` includes staged changes; other readers see them only after ``commit``."""

    def stage(self, change: Change) -> None:
        """Apply a change to the working state. After a ``StateError`` the state is unchanged."""
        ...

    def note(self, entry: Mapping[str, Any]) -> None:
        """Add an entry to the history.

        The entry has the keys ``step command why summary provenance_summary started_at finished_at`` and further keys of the
        record (``status``, ``metrics``, ``error`` ...).
        """
        ...

    def answered(self, answer: Mapping[str, Any]) -> None:
        """Store a model's answer for replay: ``{"request": hash, "text": ...}`` and any additional data of the caller."""
        ...

    def ran(self, command: str) -> None:
        """Add a command's exact text to ``replay.commands``."""
        ...

    def mark(self) -> object:
        """Return a mark of the working state. ``back`` can restore the state at the mark. No data is copied."""
        ...

    def back(self, mark: object) -> None:
        """Restore the variables and provenance at a mark. Later history entries are kept, and get ``"rolled_back": true``."""
        ...

    def commit(self, *, found: bool = True) -> str:
        """Make all staged changes and entries durable as one record, and return the state's hash.

        After a ``StoreError`` the state is that of the last commit: staged changes and entries are lost and must be staged again. Values
        set by ``configure`` are kept. If ``found`` is false, ``source`` is not recorded as the graph of the findings.

        A record that changes no variable is written without waiting for the disk. Such a record survives if the process is killed, but not
        a power cut.
        """
        ...

    def sync(self) -> None:
        """Wait until all commits are on the disk. Raises ``StoreError``.

        This is called at the end of a plan if commits don't wait for the disk.
        """
        ...

    def get(self, key: str) -> Any:
        """Return ``snapshot().get(key)``."""
        ...

    def merge(self, key: str, value: Any) -> None:
        """Merge ``value`` into the key and commit."""
        ...

    def replace(self, key: str, value: Any) -> None:
        """Replace the key's content by ``value`` and commit."""
        ...

    def summary(self, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """Return ``{key: {"type", "size", "description", "incomplete"?, "sample"}}`` of bounded size, for prompts and users."""
        ...

    def append_history(self, record: Mapping[str, Any]) -> None:
        """Add an entry to the history and commit."""
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
        """Set the query, the configuration (merged with the old one) and the random seed. The next commit saves these values.

        ``source`` describes the current graph. The next commit that changes variables or provenance stores ``source`` as the
        configuration's ``adapter``, because ``adapter`` names the graph that the findings come from.
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
        """Return an independent in-memory store that begins as a copy of this store. Forking takes tens of microseconds."""
        ...

    def diff(self, before: "Snapshot | str", after: "Snapshot | str") -> list[Difference]:
        """Return the differences between two states of this store, given as snapshots or as hashes of commits."""
        ...

    def rollback(self, to: "Snapshot | str") -> None:
        """Restore the variables and provenance of a snapshot, or of the commit with this hash or hash prefix, and commit.

        The configuration stays unchanged: ``source`` is not recorded as the graph from which the findings come.
        """
        ...

    def restore(self, to: "Snapshot | str") -> None:
        """Do the same as ``rollback``, but do not commit: the caller adds a history entry and commits with ``found`` false."""
        ...

    def as_json(self) -> dict[str, Any]:
        """Return the state object.

        The state object contains version, created_at, updated_at, query, config, variables, history, replay and, if not empty, provenance.
        """
        ...

    def persist(self) -> None:
        """Write ``state.json`` next to the journal (does nothing for an in-memory store)."""
        ...

    def close(self) -> None:
        """Commit pending changes and entries, write ``state.json``, release the lock. Afterwards only ``close`` may be called."""
        ...
