"""A persistent vector: a list that never changes; appending gives another, which shares all but the path to what is new.

The tree's shape follows from the length alone (all is full but the right edge), so equal vectors have equal digests, and
every node keeps its digest: after a small change only the path is hashed again.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeAlias

from attrs import field, frozen
from blake3 import blake3

from .tables import canonical_list, digest

__all__ = ["EMPTY", "WIDTH", "Vector"]

_BITS = 5

WIDTH = 1 << _BITS
"""Elements in a leaf and children of a branch. Larger ones copy and hash more for a small change, smaller ones make it deep."""


@frozen(eq=False)
class _Leaf:
    items: tuple[Any, ...]
    _begun: list[tuple[blake3, int]] = field(factory=list)  # a hash over the first so many items, not yet ended

    @property
    def size(self) -> int:
        return len(self.items)

    @cached_property
    def digest(self) -> bytes:
        """The digest of ``leaf`` and the list's canonical text. What the leaf that this one extends has hashed is not hashed again."""
        hasher, done = _last(self._begun) or (blake3(b"leaf["), 0)
        more = canonical_list(self.items[done:])[1:-1]
        hasher.update(b"," + more if done and more else more)
        if 0 < len(self.items) < WIDTH:
            self._begun.append((hasher.copy(), len(self.items)))
        return hasher.update(b"]").digest()

    def extended(self, items: tuple[Any, ...]) -> "_Leaf":
        """Return it with more items. The hash begun is handed on: only the newest version needs it, and it is 2 KB."""
        begun = _last(self._begun)
        return _Leaf(self.items + items, [begun] if begun else [])


def _last(begun: list[tuple[blake3, int]]) -> tuple[blake3, int] | None:
    """Take the entry out in one step: versions may be used in several threads."""
    if begun:
        with suppress(IndexError):
            return begun.pop()
    return None


@frozen(eq=False)
class _Branch:
    children: "tuple[_Node, ...]"
    height: int
    size: int

    @cached_property
    def digest(self) -> bytes:
        return digest(b"branch", *[child.digest for child in self.children])


_Node: TypeAlias = _Leaf | _Branch


def _branch(children: Sequence[_Node], height: int) -> _Branch:
    return _Branch(tuple(children), height, sum(child.size for child in children))


def _height(node: _Node) -> int:
    return node.height if isinstance(node, _Branch) else 0


def _room(height: int) -> int:
    """How many elements a full node of this height has."""
    return 1 << (_BITS * (height + 1))


def _built(height: int, items: Sequence[Any], start: int) -> _Node:
    if not height:
        return _Leaf(tuple(items[start : start + WIDTH]))
    end, step = min(len(items), start + _room(height)), _room(height - 1)
    return _branch([_built(height - 1, items, at) for at in range(start, end, step)], height)


def _filled(node: _Node, items: Sequence[Any], start: int) -> tuple[_Node, int]:
    """Return the node with as many of ``items`` from ``start`` on as it has room for, and where the rest begins."""
    if isinstance(node, _Leaf):
        end = min(len(items), start + WIDTH - node.size)
        return node.extended(tuple(items[start:end])), end
    children, full, at = list(node.children), _room(node.height - 1), start
    if children[-1].size < full:
        children[-1], at = _filled(children[-1], items, at)
    while at < len(items) and len(children) < WIDTH:
        children.append(_built(node.height - 1, items, at))
        at += children[-1].size
    return _Branch(tuple(children), node.height, node.size + at - start), at


def _changed(node: _Node, changes: Mapping[int, Any], start: int) -> _Node:
    """Return the node with new elements at some indices; ``start`` is the index of its first element."""
    if isinstance(node, _Leaf):
        items = list(node.items)
        for index, item in changes.items():
            items[index - start] = item
        return _Leaf(tuple(items))
    step = _room(node.height - 1)
    groups: dict[int, dict[int, Any]] = {}
    for index, item in changes.items():
        groups.setdefault((index - start) // step, {})[index] = item
    children = list(node.children)
    for at, group in groups.items():
        children[at] = _changed(children[at], group, start + at * step)
    return _Branch(tuple(children), node.height, node.size)


def _taken(node: _Node, count: int) -> _Node:
    if count >= node.size:
        return node
    if isinstance(node, _Leaf):
        return _Leaf(node.items[:count])
    whole, rest = divmod(count, _room(node.height - 1))
    children = list(node.children[:whole])
    if rest:
        children.append(_taken(node.children[whole], rest))
    return _branch(children, node.height)


def _differing(one: _Node, other: _Node, start: int) -> Iterator[int]:
    """Yield the indices that both have and at which they differ. What both share is not looked into."""
    if one is other:
        return
    while isinstance(one, _Branch) and one.height > _height(other):
        one = one.children[0]
    while isinstance(other, _Branch) and other.height > _height(one):
        other = other.children[0]
    if isinstance(one, _Branch) and isinstance(other, _Branch):
        for a, b in zip(one.children, other.children, strict=False):
            yield from _differing(a, b, start)
            start += _room(one.height - 1)
    elif isinstance(one, _Leaf) and isinstance(other, _Leaf):
        yield from (start + at for at, (a, b) in enumerate(zip(one.items, other.items, strict=False)) if a != b)


@frozen(eq=False)
class Vector:
    """Elements are JSON texts, or tuples of canonical ones (evidence). Cost is the logarithm of the length, or what is asked for."""

    root: _Node

    def __len__(self) -> int:
        return self.root.size

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < self.root.size:
            raise IndexError(index)
        node = self.root
        while isinstance(node, _Branch):
            at, index = divmod(index, _room(node.height - 1))
            node = node.children[at]
        return node.items[index]

    def __iter__(self) -> Iterator[Any]:
        return self.from_index(0)

    def from_index(self, start: int) -> Iterator[Any]:
        """Yield the elements from an index on."""
        waiting: list[tuple[_Node, int]] = [(self.root, start)]
        while waiting:
            node, skip = waiting.pop()
            if isinstance(node, _Leaf):
                yield from node.items[skip:] if skip else node.items
                continue
            whole, rest = divmod(skip, _room(node.height - 1))
            later = [(child, 0) for child in node.children[whole + 1 :]]
            waiting.extend(reversed(later))
            if whole < len(node.children):
                waiting.append((node.children[whole], rest))

    def extended(self, items: Sequence[Any]) -> "Vector":
        """Return the vector with ``items`` at its end."""
        if not items:
            return self
        root, start = self.root, 0
        if root.size < _room(_height(root)):
            root, start = _filled(root, items, 0)
        while start < len(items):
            root = _branch([root], _height(root) + 1)
            root, start = _filled(root, items, start)
        return Vector(root)

    def changed(self, changes: Mapping[int, Any]) -> "Vector":
        """Return the vector with other elements at the indices given, all of which it has."""
        return Vector(_changed(self.root, changes, 0)) if changes else self

    def taken(self, count: int) -> "Vector":
        """Return the first ``count`` elements."""
        if count >= len(self):
            return self
        if not count:
            return EMPTY
        root = _taken(self.root, count)
        while isinstance(root, _Branch) and len(root.children) == 1:
            root = root.children[0]
        return Vector(root)

    def differing(self, other: "Vector") -> list[int]:
        """Return the indices that both have and at which they differ (JSON texts: as texts); cost is what differs."""
        return list(_differing(self.root, other.root, 0))

    @property
    def digest(self) -> bytes:
        """The digest of the elements in their order."""
        return digest(b"vector", b"%d" % len(self), self.root.digest)


EMPTY = Vector(_Leaf(()))
"""The vector without elements."""
