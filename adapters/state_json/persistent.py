"""Persistent tables and vectors: immutable objects and lists.

A changed copy shares all parts with the original, except the path to the changes.

A table is a trie over the hashes of its keys, with buckets. A part with at most ``BUCKET`` keys is a bucket; larger parts are
split. Therefore the shape of a table, and with it the digest, depends only on the keys. Keys are listed in the order in which
they were first set.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeAlias

import orjson
from attrs import field, frozen
from blake3 import blake3

# Digests of values. Values that are equal as JSON have the same digest, whatever the key order of objects and their history.


def digest(*parts: bytes) -> bytes:
    """Return the blake3 hash (32 bytes) of the joined parts."""
    return blake3(b"".join(parts)).digest()


def canonical(written: bytes) -> bytes:
    """Return the JSON text with sorted keys in all objects. Numbers stay as written, so 1 and 1.0 differ."""
    if b"{" not in written:
        return written
    return orjson.dumps(orjson.loads(written), option=orjson.OPT_SORT_KEYS)


def canonical_list(elements: Sequence[Any]) -> bytes:
    """Return the canonical text of a list. An element is JSON text, or a tuple of canonical texts, which represents a list."""
    if elements and isinstance(elements[0], tuple):
        return b"[%b]" % b",".join([b"[%b]" % b",".join(texts) for texts in elements])
    return canonical(b"[%b]" % b",".join(elements))


def digest_of(value: Any) -> bytes:
    """Return the bytes that represent a value inside the digest of its container.

    A value is JSON text (bytes), a number, a tuple of canonical JSON texts, or an object with a ``digest``. The first byte
    distinguishes these kinds.
    """
    if isinstance(value, bytes):
        return b"j" + canonical(value)
    if isinstance(value, int | float):
        return b"n" + orjson.dumps(value)
    if isinstance(value, tuple):
        return b"t[" + b",".join(value) + b"]"
    own: bytes = value.digest
    return b"d" + own


BUCKET = 32
"""Maximum number of keys in a bucket; larger buckets are split."""

_BITS = 5
_LAST = 60  # shift after which the hash has no more bits to split by

_Entry: TypeAlias = tuple[int, Any]  # the key's insertion number, and its value


@frozen(eq=False)
class _Bucket:
    entries: dict[str, _Entry]  # never modified after creation

    @property
    def size(self) -> int:
        return len(self.entries)

    @cached_property
    def digest(self) -> bytes:
        parts = [b"bucket"]
        for key in sorted(self.entries):
            name, value = key.encode(), digest_of(self.entries[key][1])
            parts += [b"%d:%d:" % (len(name), len(value)), name, value]
        return digest(*parts)


@frozen(eq=False)
class _Division:
    children: "tuple[_Part, ...]"
    size: int

    @cached_property
    def digest(self) -> bytes:
        return digest(b"division", *(child.digest for child in self.children))


_Part: TypeAlias = _Bucket | _Division

_NOTHING = _Bucket({})


def _spread(key: str) -> int:
    """Return a strong hash, because keys are untrusted.

    A key must have the same hash in every process, because the digest depends on the shape of the table.
    """
    return int.from_bytes(blake3(key.encode()).digest(8), "little")


def _at(key: str, shift: int) -> int:
    return (_spread(key) >> shift) & ((1 << _BITS) - 1)


def _part(entries: dict[str, _Entry], shift: int) -> _Part:
    if len(entries) <= BUCKET or shift >= _LAST:
        return _Bucket(entries) if entries else _NOTHING
    groups: list[dict[str, _Entry]] = [{} for _ in range(1 << _BITS)]
    for key, entry in entries.items():
        groups[_at(key, shift)][key] = entry
    return _Division(tuple(_part(group, shift + _BITS) for group in groups), len(entries))


def _set(part: _Part, batch: Mapping[str, _Entry], shift: int) -> _Part:
    if isinstance(part, _Bucket):
        entries = dict(part.entries)
        for key, entry in batch.items():
            old = entries.get(key)
            entries[key] = entry if old is None else (old[0], entry[1])
        return _part(entries, shift)
    groups: dict[int, dict[str, _Entry]] = {}
    for key, entry in batch.items():
        groups.setdefault(_at(key, shift), {})[key] = entry
    children = list(part.children)
    for at, group in groups.items():
        children[at] = _set(children[at], group, shift + _BITS)
    return _Division(tuple(children), sum(child.size for child in children))


def _without(part: _Part, keys: Iterable[str], shift: int) -> _Part:
    if isinstance(part, _Bucket):
        gone = set(keys)
        return _part({key: entry for key, entry in part.entries.items() if key not in gone}, shift)
    groups: dict[int, list[str]] = {}
    for key in keys:
        groups.setdefault(_at(key, shift), []).append(key)
    children = list(part.children)
    for at, group in groups.items():
        children[at] = _without(children[at], group, shift + _BITS)
    size = sum(child.size for child in children)
    if size <= BUCKET:
        return _part({key: entry for child in children for key, entry in _entries(child)}, shift)
    return _Division(tuple(children), size)


def _entries(part: _Part) -> Iterator[tuple[str, _Entry]]:
    waiting = [part]
    while waiting:
        each = waiting.pop()
        if isinstance(each, _Bucket):
            yield from each.entries.items()
        else:
            waiting.extend(reversed(each.children))


def _differing(one: _Part, other: _Part) -> Iterator[str]:
    """Yield the keys whose two values are neither the same object nor equal texts. Shared parts are skipped."""
    if one is other:
        return
    if isinstance(one, _Division) and isinstance(other, _Division):
        for a, b in zip(one.children, other.children, strict=True):
            yield from _differing(a, b)
        return
    before, after = dict(_entries(one)), dict(_entries(other))
    for key, (_, value) in before.items():
        if key not in after or (value is not after[key][1] and not _same(value, after[key][1])):
            yield key
    yield from (key for key in after if key not in before)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and isinstance(one, bytes | int | float | tuple) and bool(one == other)


@frozen(eq=False)
class Table:
    """A persistent table; values have the types of ``digest_of``.

    Each method takes time logarithmic in the table's size or proportional to the result's size.
    """

    root: _Part
    turn: int

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Table":
        """Return a table of these keys and values, in order."""
        if not values:
            return EMPTY_TABLE
        return cls(_part({key: (turn, value) for turn, (key, value) in enumerate(values.items())}, 0), len(values))

    def __len__(self) -> int:
        return self.root.size

    def __contains__(self, key: str) -> bool:
        return self._entry(key) is not None

    def get(self, key: str) -> Any:
        """Return the value under ``key``; None if the key is missing (values are never None)."""
        entry = self._entry(key)
        return None if entry is None else entry[1]

    def _entry(self, key: str) -> _Entry | None:
        part, shift = self.root, 0
        while isinstance(part, _Division):
            part, shift = part.children[_at(key, shift)], shift + _BITS
        return part.entries.get(key)

    def items(self) -> list[tuple[str, Any]]:
        """Return the keys and values in the order in which the keys were first set."""
        return [(key, entry[1]) for key, entry in sorted(_entries(self.root), key=lambda pair: pair[1][0])]

    def some(self, most: int) -> list[tuple[str, Any]]:
        """Return up to ``most`` arbitrary keys with their values. The time depends only on ``most``."""
        found: list[tuple[str, Any]] = []
        for key, (_, value) in _entries(self.root):
            if len(found) >= most:
                break
            found.append((key, value))
        return found

    def updated(self, values: Mapping[str, Any]) -> "Table":
        """Return the table with these keys set."""
        if not values:
            return self
        batch = {key: (self.turn + at, value) for at, (key, value) in enumerate(values.items())}
        return Table(_set(self.root, batch, 0), self.turn + len(batch))

    def without(self, keys: Iterable[str]) -> "Table":
        """Return the table without these keys."""
        return Table(_without(self.root, list(keys), 0), self.turn)

    def differing(self, other: "Table") -> list[str]:
        """Return the keys that are in only one table or whose values differ; the time depends on the differences."""
        return list(_differing(self.root, other.root))

    @property
    def digest(self) -> bytes:
        """The digest of keys and values, independent of their order."""
        return self.root.digest


EMPTY_TABLE = Table(_NOTHING, 0)
"""The empty table."""


# A persistent vector is an immutable list; appending returns a new vector that shares all parts except the path to the new elements.
# The tree's shape depends only on the length (all nodes except those at the right edge are full), so equal vectors have equal
# digests. Every node caches its digest, so after a small change only the path is hashed again.

_VECTOR_BITS = 5

WIDTH = 1 << _VECTOR_BITS
"""Elements of a leaf and children of a branch. A larger width makes changes slower; a smaller width makes the tree deeper."""


@frozen(eq=False)
class _Leaf:
    items: tuple[Any, ...]
    _begun: list[tuple[blake3, int]] = field(factory=list)  # an unfinished hash, and the number of items hashed so far

    @property
    def size(self) -> int:
        return len(self.items)

    @cached_property
    def digest(self) -> bytes:
        """The digest of the leaf's canonical text. If this leaf extends another leaf, the unfinished hash of that leaf is continued."""
        hasher, done = _last(self._begun) or (blake3(b"leaf["), 0)
        more = canonical_list(self.items[done:])[1:-1]
        hasher.update(b"," + more if done and more else more)
        if 0 < len(self.items) < WIDTH:
            self._begun.append((hasher.copy(), len(self.items)))
        return hasher.update(b"]").digest()

    def extended(self, items: tuple[Any, ...]) -> "_Leaf":
        """Return the leaf with more items. It takes over the unfinished hash (2 KB), because only the newest leaf needs it."""
        begun = _last(self._begun)
        return _Leaf(self.items + items, [begun] if begun else [])


def _last(begun: list[tuple[blake3, int]]) -> tuple[blake3, int] | None:
    """Remove and return the entry atomically, because versions may be used in several threads."""
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


def _capacity(height: int) -> int:
    """Return the number of elements of a full node of this height."""
    return 1 << (_VECTOR_BITS * (height + 1))


def _built(height: int, items: Sequence[Any], start: int) -> _Node:
    if not height:
        return _Leaf(tuple(items[start : start + WIDTH]))
    end, step = min(len(items), start + _capacity(height)), _capacity(height - 1)
    return _branch([_built(height - 1, items, at) for at in range(start, end, step)], height)


def _filled(node: _Node, items: Sequence[Any], start: int) -> tuple[_Node, int]:
    """Return the node after adding ``items`` from ``start`` on, and the index of the first item that did not fit."""
    if isinstance(node, _Leaf):
        end = min(len(items), start + WIDTH - node.size)
        return node.extended(tuple(items[start:end])), end
    children, full, at = list(node.children), _capacity(node.height - 1), start
    if children[-1].size < full:
        children[-1], at = _filled(children[-1], items, at)
    while at < len(items) and len(children) < WIDTH:
        children.append(_built(node.height - 1, items, at))
        at += children[-1].size
    return _Branch(tuple(children), node.height, node.size + at - start), at


def _changed(node: _Node, changes: Mapping[int, Any], start: int) -> _Node:
    """Return the node with new elements at some indices; ``start`` is the index of the node's first element."""
    if isinstance(node, _Leaf):
        items = list(node.items)
        for index, item in changes.items():
            items[index - start] = item
        return _Leaf(tuple(items))
    step = _capacity(node.height - 1)
    groups: dict[int, dict[int, Any]] = {}
    for index, item in changes.items():
        groups.setdefault((index - start) // step, {})[index] = item
    children = list(node.children)
    for at, group in groups.items():
        children[at] = _changed(children[at], group, start + at * step)
    return _Branch(tuple(children), node.height, node.size)


def _prefix(node: _Node, count: int) -> _Node:
    if count >= node.size:
        return node
    if isinstance(node, _Leaf):
        return _Leaf(node.items[:count])
    whole, rest = divmod(count, _capacity(node.height - 1))
    children = list(node.children[:whole])
    if rest:
        children.append(_prefix(node.children[whole], rest))
    return _branch(children, node.height)


def _differing_items(one: _Node, other: _Node, start: int) -> Iterator[int]:
    """Yield the common indices at which the nodes differ. Shared parts are skipped."""
    if one is other:
        return
    while isinstance(one, _Branch) and one.height > _height(other):
        one = one.children[0]
    while isinstance(other, _Branch) and other.height > _height(one):
        other = other.children[0]
    if isinstance(one, _Branch) and isinstance(other, _Branch):
        for a, b in zip(one.children, other.children, strict=False):
            yield from _differing_items(a, b, start)
            start += _capacity(one.height - 1)
    elif isinstance(one, _Leaf) and isinstance(other, _Leaf):
        yield from (start + at for at, (a, b) in enumerate(zip(one.items, other.items, strict=False)) if a != b)


@frozen(eq=False)
class Vector:
    """A persistent vector; elements are JSON texts, or tuples of canonical JSON texts (evidence).

    Each method takes time logarithmic in the vector's length or proportional to the result's length.
    """

    root: _Node

    def __len__(self) -> int:
        return self.root.size

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < self.root.size:
            raise IndexError(index)
        node = self.root
        while isinstance(node, _Branch):
            at, index = divmod(index, _capacity(node.height - 1))
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
            whole, rest = divmod(skip, _capacity(node.height - 1))
            later = [(child, 0) for child in node.children[whole + 1 :]]
            waiting.extend(reversed(later))
            if whole < len(node.children):
                waiting.append((node.children[whole], rest))

    def extended(self, items: Sequence[Any]) -> "Vector":
        """Return the vector with ``items`` appended."""
        if not items:
            return self
        root, start = self.root, 0
        if root.size < _capacity(_height(root)):
            root, start = _filled(root, items, 0)
        while start < len(items):
            root = _branch([root], _height(root) + 1)
            root, start = _filled(root, items, start)
        return Vector(root)

    def changed(self, changes: Mapping[int, Any]) -> "Vector":
        """Return the vector with the elements at the given indices replaced; the indices must exist."""
        return Vector(_changed(self.root, changes, 0)) if changes else self

    def prefix(self, count: int) -> "Vector":
        """Return the first ``count`` elements."""
        if count >= len(self):
            return self
        if not count:
            return EMPTY
        root = _prefix(self.root, count)
        while isinstance(root, _Branch) and len(root.children) == 1:
            root = root.children[0]
        return Vector(root)

    def differing(self, other: "Vector") -> list[int]:
        """Return the common indices with different elements, compared as text; the time depends on the differences."""
        return list(_differing_items(self.root, other.root, 0))

    @property
    def digest(self) -> bytes:
        """The digest of the elements in order."""
        return digest(b"vector", b"%d" % len(self), self.root.digest)


EMPTY = Vector(_Leaf(()))
"""The empty vector."""
