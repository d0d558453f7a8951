"""A persistent table: an object that never changes; setting keys gives another, which shares all but the path to them.

A trie over hashes of the keys, in buckets. A part is a bucket exactly while it has no more than ``BUCKET`` keys, so the shape,
and with it the digest, follows from the keys alone. Keys are listed in the order in which they were first set.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import orjson
from attrs import frozen
from blake3 import blake3

__all__ = ["EMPTY_TABLE", "Table", "canonical", "canonical_list", "digest"]


# Digests of values. What is equal as JSON has one digest, whatever the order of an object's keys and whatever led to it.


def digest(*parts: bytes) -> bytes:
    """Return the 32 bytes of blake3 over the parts, joined."""
    return blake3(b"".join(parts)).digest()


def canonical(written: bytes) -> bytes:
    """Return the JSON text with the keys of its objects sorted. Numbers stay as written: 1 is not 1.0."""
    if b"{" not in written:
        return written
    return orjson.dumps(orjson.loads(written), option=orjson.OPT_SORT_KEYS)


def canonical_list(elements: Sequence[Any]) -> bytes:
    """Return the canonical text of a list. An element is JSON text, or a tuple of canonical texts, which stands for a list."""
    if elements and isinstance(elements[0], tuple):
        return b"[%b]" % b",".join([b"[%b]" % b",".join(texts) for texts in elements])
    return canonical(b"[%b]" % b",".join(elements))


def digest_of(value: Any) -> bytes:
    """Return what stands for a value inside the digest of what holds it.

    A value is JSON text (bytes), a number, a tuple of canonical JSON texts, or has a ``digest`` of its own. The first byte
    keeps the kinds apart.
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
"""Keys in a bucket; what has more is divided."""

_BITS = 5
_LAST = 60  # the hash has no more bits to divide by

_Entry: TypeAlias = tuple[int, Any]  # the key's turn, and its value


@frozen(eq=False)
class _Bucket:
    entries: dict[str, _Entry]  # never written after it is made

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
    """A hash that is the same in every process: the shape is part of the digest. Keys are untrusted, so it is a strong one."""
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
    """Yield the keys whose values are not the same object or text. What both share is not looked into."""
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
    """Values are as ``hashing.digest_of`` takes them. Cost is the logarithm of the size, or what is asked for."""

    root: _Part
    turn: int

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Table":
        """Return a table of these keys and values, in their order."""
        if not values:
            return EMPTY_TABLE
        return cls(_part({key: (turn, value) for turn, (key, value) in enumerate(values.items())}, 0), len(values))

    def __len__(self) -> int:
        return self.root.size

    def __contains__(self, key: str) -> bool:
        return self._entry(key) is not None

    def get(self, key: str) -> Any:
        """Return the value under ``key``; None where there is none (no value is None)."""
        entry = self._entry(key)
        return None if entry is None else entry[1]

    def _entry(self, key: str) -> _Entry | None:
        part, shift = self.root, 0
        while isinstance(part, _Division):
            part, shift = part.children[_at(key, shift)], shift + _BITS
        return part.entries.get(key)

    def items(self) -> list[tuple[str, Any]]:
        """Return keys and values, in the order in which the keys were first set."""
        return [(key, entry[1]) for key, entry in sorted(_entries(self.root), key=_turn)]

    def some(self, most: int) -> list[tuple[str, Any]]:
        """Return up to ``most`` keys and values, whichever; cost grows with ``most`` only."""
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
        """Return the keys that one has and the other has not, or with another value; cost is what differs."""
        return list(_differing(self.root, other.root))

    @property
    def digest(self) -> bytes:
        """The digest of keys and values, whatever their order."""
        return self.root.digest


def _turn(entry: tuple[str, _Entry]) -> int:
    return entry[1][0]


EMPTY_TABLE = Table(_NOTHING, 0)
"""The table without keys."""
