"""Which items a list has: an index from identity to position that versions of the list share.

Versions that follow each other share one dictionary: an entry counts for a version only if its position lies below the
version's length. A version that is extended a second time (a fork, a rolled-back block) gets a layer of its own above. So a
fork costs nothing, and appending costs what is appended.
"""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import orjson
from attrs import field, frozen
from blake3 import blake3

from .vectors import EMPTY, Vector

__all__ = ["Items", "identity", "identity_of", "whole"]

_LAYERS = 8  # a look-up goes through as many at most


def identity(written: bytes) -> bytes:
    """Return an item's identity as a key: its ``id`` where it is an object that has one other than null, else all of it.

    Both are canonical JSON as written: 1, 1.0, true and "1" are four identities.
    """
    return identity_of(orjson.loads(written))


def identity_of(value: Any) -> bytes:
    """Return ``identity`` of an item that is at hand as a value."""
    if isinstance(value, dict) and value.get("id") is not None:
        key = b"i" + orjson.dumps(value["id"], option=orjson.OPT_SORT_KEYS)
    else:
        key = b"j" + orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return key if len(key) <= 32 else b"#" + blake3(key).digest()


def whole(written: bytes) -> bytes:
    """Return the identity of what is the same only if all of it is; ``written`` is canonical."""
    return written if len(written) <= 32 else b"#" + blake3(written).digest()


class _Layer:
    """Positions by identity, for versions at least ``bound`` long; below that what ``under`` says."""

    __slots__ = ("_end", "_lock", "bound", "depth", "own", "under")

    def __init__(self, under: "_Layer | None", bound: int) -> None:
        self.own: dict[bytes, int] = {}
        self.under = under
        self.bound = bound
        self.depth: int = under.depth + 1 if under is not None else 0
        self._end = bound
        self._lock = Lock()  # forks may be used in other threads

    def find(self, key: bytes, length: int) -> int | None:
        layer: _Layer | None = self
        while layer is not None:
            position = layer.own.get(key)
            if position is not None and position < length:
                return position
            length, layer = min(length, layer.bound), layer.under
        return None

    def extended(self, keys: Sequence[bytes], length: int) -> "_Layer":
        """Return the index for a version of ``length`` with ``keys`` appended."""
        with self._lock:
            if self._end == length:
                for position, key in enumerate(keys, length):
                    self.own.setdefault(key, position)
                self._end = length + len(keys)
                return self
        return self._above(length).extended(keys, length)

    def _above(self, length: int) -> "_Layer":
        if self.depth < _LAYERS:
            return _Layer(self, length)
        layers, bound = list[tuple[_Layer, int]](), length
        layer: _Layer = self
        while layer.under is not None:
            layers.append((layer, bound))
            bound, layer = min(bound, layer.bound), layer.under
        flat = _Layer(layer, min(bound, length))
        if sum(len(each.own) for each, _ in layers) > len(layer.own) // 2:
            layers.append((layer, bound))
            flat = _Layer(None, 0)
        for each, most in reversed(layers):
            for key, position in list(each.own.items()):
                if position < most:
                    flat.own.setdefault(key, position)
        flat._end = length
        return flat


@frozen(eq=False)
class Items:
    """JSON texts in their order, and an index of them by identity, made when it is first needed."""

    vector: Vector = EMPTY
    identify: Callable[[bytes], bytes] = identity
    _index: list[_Layer] = field(factory=list)

    def __len__(self) -> int:
        return len(self.vector)

    def _layer(self) -> _Layer:
        if not self._index:
            layer = _Layer(None, 0)
            layer.extended([self.identify(written) for written in self.vector], 0)
            self._index.append(layer)
        return self._index[0]

    def merged(self, texts: Sequence[bytes], keys: Sequence[bytes]) -> "tuple[Items, list[int]]":
        """Return the items with those appended that are not there, and the position of each of ``texts``.

        ``keys`` are what ``identify`` gives for each.
        """
        layer, length = self._layer(), len(self.vector)
        new: dict[bytes, int] = {}
        written: list[bytes] = []
        positions = []
        for text, key in zip(texts, keys, strict=True):
            position = layer.find(key, length)
            if position is None:
                position = new.setdefault(key, length + len(new))
                if position == length + len(written):
                    written.append(text)
            positions.append(position)
        if not written:
            return self, positions
        return Items(self.vector.extended(written), self.identify, [layer.extended(list(new), length)]), positions

    def spliced(self, keep: int, texts: Sequence[bytes]) -> "Items":
        """Return the first ``keep`` items and ``texts`` after them, as they are."""
        vector = self.vector.taken(keep).extended(texts)
        if not self._index or not keep:
            return Items(vector, self.identify)
        return Items(vector, self.identify, [self._index[0].extended([self.identify(t) for t in texts], keep)])

    @property
    def digest(self) -> bytes:
        """The digest of the items in their order."""
        return self.vector.digest
