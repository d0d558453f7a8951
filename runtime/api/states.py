"""Graphs and durable states: load a graph; open, compare, fork, roll back, export and verify a state.

The graph library and the store are loaded on first use.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import asdict

from ...adapters.state import Snapshot as Snapshot
from ...adapters.state import StateError as StateError
from ...lang.diagnostic import nearest
from ..errors import Misused

if TYPE_CHECKING:
    from ...adapters.graph import GraphAdapter
    from ...adapters.state import Difference, StateStore
    from ...lang.catalogue.schema import Attribute as Attribute
    from ...lang.catalogue.schema import Schema
    from ..gasl.surroundings import Surroundings
    from ..models.factory import CopyEntry
    from ..models.factory import Loaded as Loaded


def find(folder: str) -> Path:
    """Return the path of an existing state. If the state does not exist, raises ``Misused``, which suggests a similar name."""
    path = Path(folder)
    if path.exists():
        return path
    try:
        names = [entry.name for entry in path.absolute().parent.iterdir()]
    except OSError:
        names = []
    near = nearest(path.name, names) if path.name else None
    hint = f"did you mean {path.with_name(near)}?" if near else "knotwork run FILE --state DIR creates one"
    raise Misused(f"state {folder} does not exist", hint)


@contextmanager
def reading(folder: str, warn: Callable[[str], None]) -> "Iterator[StateStore]":
    """Open a state for reading; ``warn`` receives messages about the opening. Raises ``StoreError`` and ``Misused``."""
    from ..models.factory import open_state

    store = open_state(find(folder), read_only=True)
    for notice in store.notices:
        warn(notice)
    try:
        yield store
    finally:
        store.close()


def graph_of(folder: str | None, warn: Callable[[str], None]) -> str | None:
    """Return the name of the graph that a state records; None if the state does not exist yet. Raises ``StoreError``."""
    from . import workspace

    if folder is None or not Path(folder).exists():
        return None
    with reading(folder, warn) as store:
        return workspace.graph_of(store.replay_info())


def surroundings(graph: str | None, state: str | None, raw: bool, warn: Callable[[str], None]) -> "Surroundings":
    """Return the data that programs are checked against: the schema of a graph and the keys of a state.

    Raises ``AdapterError``, ``StoreError`` and ``Misused``.
    """
    from ..gasl.surroundings import Surroundings

    schema = None if graph is None else load_graph(graph, raw, warn).schema
    if state is None:
        return Surroundings(schema)
    with reading(state, warn) as store:
        return Surroundings(schema, {key.key: key.type for key in store.snapshot().declared()})


def graph_surroundings(graph: str | None, raw: bool) -> "Surroundings | None":
    """Return the schema of a graph as the data that programs are checked against; None if the graph can't be loaded."""
    from ...adapters.graph import AdapterError

    try:
        return surroundings(graph, None, raw, lambda warning: None)
    except (AdapterError, Misused):
        return None


def diff(folder: str, before: str, after: str | None, warn: Callable[[str], None]) -> "list[Difference]":
    """Return the differences between two states. Each state is a hash from the history of ``folder``, or the folder of another state.

    ``after`` is the current state by default. Raises ``Misused`` for an unknown hash, and ``StoreError``.
    """

    def state(name: str) -> Snapshot | str:
        if not Path(name).exists():
            if "/" in name:
                find(name)
            return name
        with reading(name, warn) as other:
            return other.snapshot()

    with reading(folder, warn) as store:
        try:
            return list(store.diff(state(before), store.snapshot() if after is None else state(after)))
        except StateError as error:
            raise Misused(error.message, error.hint or f"knotwork state log {folder} lists the hashes") from None


def fork(folder: str, into: str, warn: Callable[[str], None]) -> str:
    """Copy a state into the new folder ``into``, and return its hash. Raises ``Misused`` and ``StoreError``.

    ``warn`` receives messages about the opening of ``folder``.
    """
    from ..models.factory import fork_state

    if Path(into).exists():
        raise Misused(f"{into} already exists", "name a new folder for the fork")
    return fork_state(find(folder), into, warn)


def roll_back(folder: str, to: str, command: str, warn: Callable[[str], None]) -> tuple[str, str]:
    """Restore the state of an earlier commit as a new commit. Return the hashes before and after (equal if nothing changed).

    ``command`` is the command that the history shows; ``warn`` receives messages about the opening. Raises ``StateError`` for an
    unknown hash, ``Misused`` and ``StoreError``.
    """
    from ..gasl import surroundings
    from ..models.factory import open_state

    if find(folder).is_file():
        hint = f"knotwork state fork {folder} NEW creates a state folder from it"
        raise Misused(f"{folder} is a file, which can only be read", hint)
    store = open_state(folder)
    for notice in store.notices:
        warn(notice)
    try:
        before = store.hash
        surroundings.roll_back(store, to, command)
        return before, store.hash
    finally:
        store.close()


def export(folder: str, warn: Callable[[str], None]) -> dict[str, Any]:
    """Return a state as one JSON object, with a checksum. Raises ``StoreError`` and ``Misused``."""
    from ..models.factory import with_check

    with reading(folder, warn) as store:
        return with_check(store.as_json())


def verify(folder: str) -> dict[str, Any]:
    """Check every byte of each file of a state, and check the files against each other; return the result as JSON.

    Raises ``StoreError`` if the folder has no state, and ``Misused``.
    """
    from ..models.factory import verify_state

    find(folder)
    found = verify_state(folder)
    document: dict[str, Any] = {"state": folder, "ok": found.ok, "hash": found.hash, "steps": found.steps}
    if (report := found.report) is not None:
        document |= {
            "records": report.records, "journal_bytes": report.journal_bytes, "snapshot_bytes": report.snapshot_bytes,
            "closed": report.closed,
        }  # fmt: skip
    return document | {
        "damage": [{"file": each.file, "position": each.position, "reason": each.reason} for each in found.damage],
        "files": [
            {"file": each.name, "bytes": each.size, "status": each.status, "why": each.why} for each in found.files
        ],
        "notices": found.notices,
    }


def object_of(folder: str, warn: Callable[[str], None]) -> Mapping[str, Any]:
    """Return the state object of a folder or a ``state.json``. Raises ``StoreError`` and ``Misused``.

    ``warn`` receives messages about the opening.
    """
    with reading(folder, warn) as store:
        return store.as_json()


def has_rollback(state: Mapping[str, Any]) -> bool:
    """Return whether a state was rolled back by anything other than its commands. A replay can't repeat such a rollback."""
    from ..gasl.surroundings import ROLLBACK

    return any(entry.get("part") == ROLLBACK for entry in state.get("history") or ())


# Graphs.


def open_graph(
    source: str,
    raw: bool = False,
    *,
    cache: bool = True,
    verify: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> "Loaded":
    """Load a graph from a file or from ``nx:NAME``; return the graph and a report on its loading. Raises ``AdapterError``.

    With ``cache``, an unchanged file is opened from its prepared copy, and a copy of a large file is kept. With ``verify``, the file's
    content is compared with the copy's. ``progress`` receives the number of bytes read and the file size.
    """
    from ..models import factory

    return factory.open_graph(source, raw=raw, cache=cache, verify=verify, progress=progress)


def graph_copies() -> "list[CopyEntry]":
    """Return the prepared copies of graph files, the last used first."""
    from ..models import factory

    return factory.graph_copies().entries()


def clear_graph_copies() -> tuple[int, int]:
    """Delete all prepared copies of graph files; return their number and their bytes. Raises ``Misused``."""
    from ..models import factory

    copies = factory.graph_copies()
    try:
        return copies.clear()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Misused(f"{copies.path} can't be cleared: {reason}", "change its permissions, or delete it") from None


def load_graph(source: str, raw: bool, warn: Callable[[str], None], *, cache: bool = True) -> "GraphAdapter":
    """Return a graph. ``warn`` receives messages about values that were changed during loading. Raises ``AdapterError``.

    See ``open_graph`` for ``cache``.
    """
    found = open_graph(source, raw, cache=cache)
    for note in found.report.notes:
        warn(note)
    for line in found.report.messages:
        warn(f"graph {source}: {line}")
    return found.adapter


def schema_document(schema: "Schema") -> dict[str, Any]:
    """Return a schema as JSON. Attributes are listed in the graph's order; each frequent value is ``{"value", "count"}``."""

    def attributes(known: "Mapping[str, Attribute]") -> list[dict[str, Any]]:
        return [
            {**asdict(found), "values": [{"value": value, "count": count} for value, count in found.values]}
            for found in known.values()
        ]

    document = asdict(schema, recurse=False)
    del document["all_ids"]
    return {
        **document,
        "labels": dict(schema.labels),
        "relations": dict(schema.relations),
        "node_attributes": attributes(schema.node_attributes),
        "edge_attributes": attributes(schema.edge_attributes),
    }
