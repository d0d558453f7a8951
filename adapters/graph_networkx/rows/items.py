"""Items: what a node, an edge and a path of the graph look like outside. See ``docs/design/gasl.md#items``."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

from ...graph import Item
from .fields import reserved
from .jsonable import item_value, node_id

__all__ = ["Items", "edge_item", "node_item", "path_item"]

_NODE = reserved("nodes", False)
_IDS = frozenset({str, int})
_SIMPLE = frozenset({str, int, bool, type(None)})
_EDGE, _KEYED_EDGE = reserved("edges", False), reserved("edges", True)


def node_item(node: Any, attributes: Mapping[Any, Any]) -> Item:
    """Return ``{"id", ...attributes}``; an attribute called ``id`` or after a degree is kept as ``attr.id``, ``attr.degree``."""
    item: Item = {"id": node if node.__class__ in _IDS else node_id(node)}
    _add(item, attributes, _NODE)
    return item


def edge_item(source: Any, target: Any, key: Any, attributes: Mapping[Any, Any]) -> Item:
    """Return ``{"source", "target", "key"?, ...attributes}``; ``key`` is None where the graph has no parallel edges."""
    item: Item = {
        "source": source if source.__class__ in _IDS else node_id(source),
        "target": target if target.__class__ in _IDS else node_id(target),
    }
    if key is not None:
        item["key"] = node_id(key)
    _add(item, attributes, _EDGE if key is None else _KEYED_EDGE)
    return item


def _add(item: Item, attributes: Mapping[Any, Any], own: frozenset[str]) -> None:
    """Put the attributes into an item. Most are of simple types, under names that no item has of its own."""
    for name, value in attributes.items():
        if value.__class__ is float:
            value = value if value - value == 0 else None
        elif value.__class__ not in _SIMPLE:
            value = item_value(value)
        if name in own:
            item[f"attr.{name}"] = value
        else:
            item[name if name.__class__ is str else str(name)] = value


def path_item(nodes: Sequence[Any], edges: Sequence[Item]) -> Item:
    """Return ``{"source", "target", "length", "nodes": [id...], "edges": [edge...]}``."""
    ids = [node_id(node) for node in nodes]
    return {"source": ids[0], "target": ids[-1], "length": len(edges), "nodes": ids, "edges": list(edges)}


class Items(Sequence[Item]):
    """What a search found, as a sequence of items that are built when asked for.

    The length is known at once. ``rows`` are what was found, ``build`` makes an item of one. ``settle``, if given, looks at
    rows once more and returns those that hold; it sees every row before its item is handed out. If one fails, all are looked
    at: a graph that was written past NetworkX's methods can so shorten the sequence, but never show an item that does not
    fit.
    """

    def __init__(
        self,
        rows: Sequence[Any],
        build: Callable[[Any], Item],
        settle: Callable[[Sequence[Any]], Sequence[Any]] | None = None,
    ) -> None:
        self._rows = rows
        self._build = build
        self._settle = settle

    def _settled(self) -> Sequence[Any]:
        if self._settle is not None:
            self._rows, self._settle = self._settle(self._rows), None
        return self._rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> Item: ...

    @overload
    def __getitem__(self, at: slice) -> list[Item]: ...

    def __getitem__(self, at: int | slice) -> Item | list[Item]:
        if not isinstance(at, slice):
            if not -len(self) <= at < len(self):
                raise IndexError("there are not so many items")
            at %= len(self)
            return self[at : at + 1][0]
        rows = self._rows[at]
        if self._settle is not None:
            chosen = self._settle(rows)
            rows = chosen if len(chosen) == len(rows) else self._settled()[at]
        return [self._build(row) for row in rows]

    def __iter__(self) -> Iterator[Item]:
        return map(self._build, self._settled())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sequence) and not isinstance(other, str):
            return len(self._settled()) == len(other) and all(
                mine == its for mine, its in zip(self, other, strict=True)
            )
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as a list's

    def __repr__(self) -> str:
        return f"<{len(self._rows):,} items>"
