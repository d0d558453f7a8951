"""The evidence of items: their source in the graph, the rows from which they were derived, the data shown to a model.

Evidence is computed on access, so the evidence of a million found nodes costs nothing until the nodes are stored.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeGuard, overload

from ....adapters.graph import NodeId
from ....adapters.state import Evidence
from ....lang.evaluate.conditions import identity
from ...excerpts import clipped
from ..records import Value

# The kind of a graph item, inferred from its fields. See ``docs/design/gasl.md#items``.

ItemKind = Literal["node", "edge", "path", "subgraph"]


def item_kind(item: Any) -> ItemKind | None:
    """Return whether an object is a node, an edge, a path or a subgraph; None for any other object.

    A node may have attributes ``source`` and ``target``, and an edge may have an attribute ``id``, so the first field decides.
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
    """Return whether a value can be the id of a node: a text or an integer."""
    return isinstance(value, str | int) and not isinstance(value, bool)


MOST = 64
"""Maximum pieces of evidence per derived item, and ids per piece. ``more`` in the last piece counts what is omitted."""

_LOOKED_AT = 1_000
"""Maximum number of items whose evidence is read for one item that represents many items."""
_DEEPEST = 32
"""Maximum nesting depth of lazy evidence."""
_SNIPPET = 240
_SOURCES = ("source_id", "doc_id", "file_path")
_SEPARATOR = "<SEP>"
"""Separator of several sources in one text, as in GraphRAG-style graphs."""

Pieces = Sequence[Evidence]
Chunks = Callable[[str], str | None]


class Lazy(Sequence[Pieces]):
    """Evidence by index that is computed on each access.

    ``depth`` is the number of nested lazy sequences that an access passes through.
    """

    __slots__ = ("_length", "_make", "depth")

    def __init__(self, length: int, make: Callable[[int], Pieces], depth: int = 1) -> None:
        self._length = length
        self._make = make
        self.depth = depth

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
    return Lazy(len(items), lambda index: (graph_piece(items[index], chunks),))


def graph_piece(item: Mapping[str, Any], chunks: Chunks) -> Evidence:
    """Return the provenance of a node, an edge, a path or a subgraph.

    ``source_id``, ``doc_id`` and ``file_path`` are lists; a text with several values is split. ``snippet`` has at most 240
    characters. It comes from the first chunk that ``chunks`` finds, around the item's name if the name occurs there, or else from
    the item's description.
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
    """Return the node ids, the edges, and the objects that may name sources: the item, and at most ``MOST`` nodes and edges each."""
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


class _SelectedEvidence(Lazy):
    """The evidence of selected items of a value. A selection from a selection refers to the original value, to limit the depth."""

    __slots__ = ("indices", "value")

    indices: Sequence[int]
    value: Value

    def __init__(self, value: Value, indices: Sequence[int]) -> None:
        inner = value.evidence
        if isinstance(inner, _SelectedEvidence):
            value, indices = inner.value, [inner.indices[at] for at in indices]
        super().__init__(len(indices), lambda at: value.evidence_at(indices[at]), _depth([value]) + 1)
        self.value = value
        self.indices = indices


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


def picked(value: Value, indices: Sequence[int]) -> Lazy:
    """Return the evidence of the items at ``indices``, in that order."""
    return _SelectedEvidence(value, indices)


def derived(length: int, make: Callable[[int], Pieces], values: Iterable[Value]) -> Lazy:
    """Return evidence that ``make`` computes from the evidence of ``values``, lazily per row, or at once if nested too deep."""
    return _CombinedEvidence(length, make, values)


def gathered(groups: Sequence[Sequence[tuple[Value, int]]]) -> Lazy:
    """Return, for each row, the combined evidence of the items (value and index) from which the row was made."""

    def make(at: int) -> Pieces:
        members = groups[at]
        return united(Lazy(len(members), lambda member: members[member][0].evidence_at(members[member][1])))

    values = {id(value): value for members in groups for value, _ in members}
    return _CombinedEvidence(len(groups), make, values.values())


def one(value: Value, length: int) -> Lazy:
    """Return the evidence of a single result that was made from all ``length`` items of ``value``."""
    return _CombinedEvidence(1, lambda _: united(Lazy(length, value.evidence_at)), [value])


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
