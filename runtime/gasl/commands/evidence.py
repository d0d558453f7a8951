"""The evidence of items: their source in the graph, the rows from which they were derived, or the data shown to a model.

Evidence is computed on access, so the evidence of a million found nodes costs nothing until the nodes are stored.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeGuard, overload

from ....adapters.graph import NodeId
from ....adapters.state import Evidence
from ....lang.evaluate.conditions import identity
from ...excerpts import clipped
from ..records import Value
from ..relation import FoundRows

# The kind of a graph item, inferred from its fields. See ``docs/design/gasl.md#items``.

ItemKind = Literal["node", "edge", "path", "subgraph"]


def item_kind(item: Any) -> ItemKind | None:
    """Return whether an object is a node, an edge, a path or a subgraph; None for any other object.

    The first field decides, because a node may have attributes ``source`` and ``target``, and an edge may have an attribute ``id``.
    """
    if not isinstance(item, dict):
        return None
    joins = "source" in item and "target" in item
    if "id" in item and not (joins and next(iter(item)) != "id"):
        return "node"
    nodes = item.get("nodes")
    if joins:
        return "path" if isinstance(nodes, list) and isinstance(item.get("edges"), list) else "edge"
    return "subgraph" if isinstance(nodes, list) else None


def is_node_id(value: Any) -> TypeGuard[NodeId]:
    """Return whether a value can be the id of a node: a string or an integer."""
    return isinstance(value, str | int) and not isinstance(value, bool)


MOST = 64
"""Maximum number of pieces of evidence per derived item, and of ids per piece. ``more`` in the last piece counts the rest."""

_LOOKED_AT = 1_000
"""If one item represents many items, the evidence of at most this many of them is read."""
_EXPECTED = 600
"""Number of items whose evidence a record reads, or somewhat more."""
_DEEPEST = 32
"""Maximum nesting depth of lazy evidence."""
_SNIPPET = 240
_SOURCES = ("source_id", "doc_id", "file_path")
_SEPARATOR = "<SEP>"
"""Separator between several sources in one string, as GraphRAG tools write it."""

Pieces = Sequence[Evidence]
Chunks = Callable[[str], str | None]


class Lazy(Sequence[Pieces]):
    """A sequence of evidence, which is computed on each access.

    ``depth`` is the number of nested lazy sequences that an access passes through. ``counts`` returns the number of pieces at an
    index without computing them; it is None if this number is unknown, or if a piece may name a source. If ``is_own``, each element
    has one piece, and the pieces differ.
    """

    __slots__ = ("_length", "_make", "counts", "depth", "is_own")

    def __init__(self, length: int, make: Callable[[int], Pieces], depth: int = 1) -> None:
        self._length = length
        self._make = make
        self.depth = depth
        self.counts: Callable[[int], int] | None = None
        self.is_own = False

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Pieces: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Pieces]: ...
    def __getitem__(self, index: int | slice) -> Pieces | Sequence[Pieces]:
        if isinstance(index, slice):
            return [self._make(at) for at in range(self._length)[index]]
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._make(index % self._length)

    def __iter__(self) -> Iterator[Pieces]:
        return map(self._make, range(self._length))


def graph_evidence(items: Sequence[Any], chunks: Chunks) -> Lazy:
    """Return the evidence of graph items: their ids, the sources named in the graph, and a snippet."""
    made = Lazy(len(items), lambda index: (graph_piece(items[index], chunks),))
    possible = items.possible_fields() if isinstance(items, FoundRows) else None
    if possible is not None and possible.isdisjoint(_SOURCES):
        made.counts, made.is_own = (lambda index: 1), True
    return made


def graph_piece(item: Mapping[str, Any], chunks: Chunks) -> Evidence:
    """Return the provenance of a node, an edge, a path or a subgraph.

    ``source_id``, ``doc_id`` and ``file_path`` are lists; a string with several values is split. ``snippet`` has at most 240
    characters. It is taken from the first chunk that ``chunks`` finds, around the item's name if the name occurs in the chunk.
    Without a chunk, it is taken from the item's description.
    """
    piece: dict[str, Any] = {"kind": "graph"}
    nodes, edges, parts = _inside(item)
    if nodes:
        piece["nodes"] = nodes[:MOST]
    if edges:
        piece["edges"] = [_ends(edge) for edge in edges[:MOST]]
    if more := max(len(nodes) - MOST, 0) + max(len(edges) - MOST, 0):
        piece["more"] = more
    for name in _SOURCES:
        if len(parts) == 1 and name not in item:
            continue
        if sources := [source for part in parts if name in part for source in _sources(part[name])]:
            piece[name] = list(dict.fromkeys(sources))[:MOST]
    if snippet := _snippet(item, piece.get("source_id", ()), chunks):
        piece["snippet"] = snippet
    return piece


def _inside(item: Mapping[str, Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """Return an item's node ids, its edges, and the objects that may name sources.

    These objects are the item itself, and at most ``MOST`` nodes and ``MOST`` edges.
    """
    kind = item_kind(item)
    if kind == "node":
        return [item["id"]], [], [item]
    if kind == "edge":
        return [], [item], [item]
    if kind is None:
        return [], [], [item]
    nodes = item["nodes"]
    edges = [edge for edge in item.get("edges", ()) if isinstance(edge, dict)]
    ids = [node.get("id") if isinstance(node, dict) else node for node in nodes]
    parts = [part for part in (*nodes[:MOST], *edges[:MOST]) if isinstance(part, dict)]
    return ids, edges, [item, *parts]


def _ends(edge: Mapping[str, Any]) -> list[Any]:
    ends = [edge.get("source"), edge.get("target")]
    return [*ends, edge["key"]] if "key" in edge else ends


def _sources(value: Any) -> list[str]:
    found: list[str] = []
    for each in value[:MOST] if isinstance(value, list) else (value,):
        if isinstance(each, str):
            found += [source for part in each.split(_SEPARATOR) if (source := part.strip())]
        elif isinstance(each, int | float) and not isinstance(each, bool):
            found.append(str(each))
    return found


def _snippet(item: Mapping[str, Any], sources: Iterable[str], chunks: Chunks) -> str:
    for source in sources:
        if text := chunks(source):
            name = item.get("id")
            return clipped(text, _SNIPPET, around=name if isinstance(name, str) else "")
    description = item.get("description")
    if description is None:
        return ""
    if isinstance(description, list):
        description = next((text for text in description if isinstance(text, str)), None)
    return clipped(description, _SNIPPET) if isinstance(description, str) else ""


def chosen(positions: Sequence[int], indices: Sequence[int]) -> Sequence[int]:
    """Return the positions at ``indices``; positions and indices may be arrays."""
    if isinstance(indices, range) and indices == range(len(positions)):
        return positions
    if hasattr(positions, "dtype") and hasattr(indices, "dtype"):
        return positions[indices]  # type: ignore[call-overload,no-any-return]  # two arrays
    return [positions[at] for at in indices]


class _SelectedEvidence(Lazy):
    """The evidence of the items that were selected from a value.

    To limit the depth, a selection from a selection refers directly to the original value.
    """

    __slots__ = ("indices", "value")

    indices: Sequence[int]
    value: Value

    def __init__(self, value: Value, indices: Sequence[int]) -> None:
        inner = value.evidence
        if isinstance(inner, _SelectedEvidence):
            value, indices = inner.value, chosen(inner.indices, indices)
        super().__init__(len(indices), lambda at: value.evidence_at(int(indices[at])), _depth([value]) + 1)
        self.value = value
        self.indices = indices
        counts = _counts(value)
        if counts is not None:
            self.counts = lambda at: counts(int(indices[at]))


class _CombinedEvidence(Lazy):
    """The combined evidence of several items, computed once for each row.

    Without this cache, the evidence of a variable that is joined with itself 20 times would be read a million times.
    """

    __slots__ = ()

    def __init__(self, length: int, make: Callable[[int], Pieces], values: Iterable[Value]) -> None:
        kept: dict[int, Pieces] = {}

        def once(at: int) -> Pieces:
            if at not in kept:
                kept[at] = make(at)
            return kept[at]

        super().__init__(length, once, _depth(values) + 1)
        if self.depth > _DEEPEST:
            for _ in self:  # compute everything now, to limit the depth and free the inputs
                pass
            self._make, self.depth = kept.__getitem__, 1


def _depth(values: Iterable[Value]) -> int:
    return max((getattr(value.evidence, "depth", 0) for value in values), default=0)


def _counts(value: Value) -> Callable[[int], int] | None:
    """Return ``Lazy.counts`` of the evidence of a value."""
    return value.evidence.counts if isinstance(value.evidence, Lazy) else None


def picked(value: Value, indices: Sequence[int]) -> Lazy:
    """Return the evidence of the items at ``indices``, in that order."""
    return _SelectedEvidence(value, indices)


def derived(length: int, make: Callable[[int], Pieces], values: Iterable[Value]) -> Lazy:
    """Return evidence that ``make`` computes from the evidence of ``values``, lazily for each row, or immediately if nested too deep."""
    return _CombinedEvidence(length, make, values)


def grouped(value: Value, members: Sequence[Sequence[int]], sizes: Sequence[int] | None = None) -> Lazy:
    """Return the evidence of rows that were made from items of ``value``.

    ``members`` has the positions of each row's items, ``sizes`` their number.
    """

    def make(at: int) -> Pieces:
        positions = members[at]
        return united(Lazy(len(positions), lambda member: value.evidence_at(int(positions[member]))))

    made = _CombinedEvidence(len(members), make, [value])
    if sizes is not None and isinstance(value.evidence, Lazy) and value.evidence.is_own:
        made.counts = lambda at: min(sizes[at], MOST)
    return made


def first_members(members: Sequence[Sequence[int]]) -> list[int]:
    """Return the positions of the items whose evidence a record counts: of the first groups, the first items of each."""
    found: list[int] = []
    for at in range(len(members)):
        if len(found) >= _EXPECTED:
            break
        found += map(int, members[at][:MOST])
    return found


def one(value: Value, length: int) -> Lazy:
    """Return the evidence of a single result that was made from all ``length`` items of ``value``."""
    made = _CombinedEvidence(1, lambda _: united(Lazy(length, value.evidence_at)), [value])
    if isinstance(value.evidence, Lazy) and value.evidence.is_own:
        made.counts = lambda at: min(length, MOST)
    return made


def computed_piece(label: str, columns: Mapping[str, str], over: int) -> Evidence:
    """Return the piece of evidence that all rows of one command share. It says how their computed columns were made.

    ``columns`` maps each column to the text of its value, ``over`` is the number of items from which they were computed, and
    ``label`` is the number of the command ("3", or "3.1" for a nested command).
    """
    return {
        "kind": "computed",
        "step": int(label) if label.isdigit() else label,
        "columns": dict(columns),
        "over": over,
    }


def with_shared(
    evidence: Lazy, piece: Evidence, values: Iterable[Value], over: Callable[[int], int] | None = None
) -> Lazy:
    """Return the evidence with ``piece`` added to the pieces of each row: at the end, or before a last piece that counts omitted pieces.

    ``over`` returns the number of items from which a row was computed; if ``over`` is None, the number in ``piece`` is used.
    """

    def make(at: int) -> Pieces:
        pieces = bounded(evidence[at], MOST - 1)
        own = piece if over is None else {**piece, "over": over(at)}
        if pieces and "more" in pieces[-1]:
            return [*pieces[:-1], own, pieces[-1]]
        return [*pieces, own]

    made, counts = derived(len(evidence), make, values), evidence.counts
    if counts is not None and piece.get("kind") == "computed":  # such a piece names no source
        made.counts = lambda at: min(counts(at), MOST - 1) + 1
    return made


def narrowed(value: Value, indices: Sequence[int], sources: Sequence[Any], chunks: Chunks) -> Lazy:
    """Return the evidence of the items at ``indices``, each narrowed to one source: the string at the same index in ``sources``.

    Evidence that does not name this source is not changed. The snippet is from the chunk of this source; if this chunk has no text,
    a snippet from another chunk is omitted.
    """

    def of_source(piece: Evidence, source: Any) -> Evidence:
        listed = piece.get("source_id") or ()
        if source not in listed and not (len(listed) == MOST and isinstance(source, str)):
            return piece
        made = {**piece, "source_id": [source]}
        nodes = piece.get("nodes") or []
        name = str(nodes[0]) if len(nodes) == 1 else ""
        if text := chunks(source):
            made["snippet"] = clipped(text, _SNIPPET, around=name)
        elif any(chunks(other) for other in listed if other != source):
            made.pop("snippet", None)
        return made

    def make(at: int) -> Pieces:
        source = str(sources[at]) if is_node_id(sources[at]) else sources[at]
        return [of_source(piece, source) for piece in value.evidence_at(indices[at])]

    return derived(len(indices), make, [value])


def bounded(pieces: Pieces, most: int) -> Pieces:
    """Return at most ``most`` pieces of an item's evidence; ``more`` in the last piece counts the omitted pieces."""
    if len(pieces) <= most:
        return pieces
    more = len(pieces) - most + int(pieces[-1].get("more", 0)) + int(pieces[most - 1].get("more", 0))
    return [*pieces[: most - 1], {**pieces[most - 1], "more": more}]


def united(evidence: Sequence[Pieces]) -> Pieces:
    """Return the distinct pieces of the first items, at most ``MOST``.

    If items are omitted, ``more`` in the last piece is their number. The time does not depend on the number of items.
    """
    kept: dict[Hashable, Evidence] = {}
    looked = 0
    while looked < min(len(evidence), _LOOKED_AT) and len(kept) < MOST:
        for piece in evidence[looked]:
            kept.setdefault(identity(piece), piece)
        looked += 1
    listed = list(kept.values())[:MOST]
    if listed and looked < len(evidence):
        left = len(evidence) - looked
        listed[-1] = {**listed[-1], "more": left + int(listed[-1].get("more", 0))}
    return listed
