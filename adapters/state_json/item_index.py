"""The items of a LIST: JSON texts in order, with an index to find an item by its identity.

The index maps identities to positions and is shared by the versions of the list. Successive versions share one dictionary: an
entry belongs to a version only if its position is below the version's length. If a version is extended a second time (after a
fork or a rolled-back block), the second extension gets its own layer on top. Therefore a fork takes no time, and the time for
appending depends only on the appended items.
"""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, TypeAlias

import orjson
from attrs import define, field, frozen
from blake3 import blake3

from .persistent import EMPTY, Vector

_LAYERS = 8  # maximum number of layers that a look-up searches
_FEW = 8  # up to this number, items with the same id are compared one by one; for more items, a view is built
_VIEWED = 10_000  # the views of a layer may hold this number of positions, or four times its items if these are more

TextAt: TypeAlias = Callable[[int], bytes]
"""Returns the JSON text of the item at a position."""


def identity(written: bytes) -> bytes:
    """Return an item's identity as a key: ``id`` if the item is an object with a non-null ``id``, else the entire item.

    An identity is canonical JSON that keeps the written form of numbers: 1, 1.0, true and "1" are four identities.
    """
    return identity_of(orjson.loads(written))


def identity_of(value: Any) -> bytes:
    """Return the ``identity`` of an item given as a value."""
    if has_id(value):
        return _short(b"i" + orjson.dumps(value["id"], option=orjson.OPT_SORT_KEYS))
    return _short(b"j" + orjson.dumps(value, option=orjson.OPT_SORT_KEYS))


def has_id(value: Any) -> bool:
    """Return whether an item is an object with an ``id`` that is not null."""
    return isinstance(value, dict) and value.get("id") is not None


def content_key(written: bytes) -> bytes:
    """Return the identity of an item that is compared by its entire content. ``written`` is the item as canonical JSON."""
    return _short(written)


def _short(key: bytes) -> bytes:
    return key if len(key) <= 32 else b"#" + blake3(key).digest()


def _projected(written: bytes, names: Sequence[str]) -> bytes | None:
    """Return a key made from the fields ``names`` of a stored object. Return None if the object lacks one of the fields."""
    stored = orjson.loads(written)
    if len(names) != len(stored):
        try:
            stored = {name: stored[name] for name in names}
        except KeyError:
            return None
    return _short(orjson.dumps(stored, option=orjson.OPT_SORT_KEYS))


@define(eq=False)
class _View:
    """An index of the items that share one identity: maps the values of some fields to positions.

    ``done`` is the number of positions in ``_Layer.more`` that the view already has.
    """

    positions: dict[bytes, int] = field(factory=dict)
    done: int = 0


class _Layer:
    """Maps identities to positions from ``bound`` on, for versions of at least ``bound`` items.

    ``own`` has the first position of an identity, ``more`` its later positions, in order. The layer ``under`` has the positions
    before ``bound``.
    """

    __slots__ = ("_end", "_lock", "_viewed", "_views", "bound", "depth", "more", "own", "under")

    def __init__(self, under: "_Layer | None", bound: int) -> None:
        self.own: dict[bytes, int] = {}
        self.more: dict[bytes, list[int]] = {}
        self.under = under
        self.bound = bound
        self.depth: int = under.depth + 1 if under is not None else 0
        self._end = bound
        self._lock = Lock()  # forks may be used in other threads
        self._views: dict[tuple[bytes, tuple[str, ...]], _View] = {}
        self._viewed = 0

    def find(self, key: bytes, length: int) -> int | None:
        layer: _Layer | None = self
        while layer is not None:
            position = layer.own.get(key)
            if position is not None and position < length:
                return position
            length, layer = min(length, layer.bound), layer.under
        return None

    def containing(
        self, key: bytes, value: Mapping[str, Any], written: bytes, length: int, text_at: TextAt
    ) -> int | None:
        """Return the first position of an item with this identity that has all fields of ``value``, with the same values.

        ``written`` is the JSON text of ``value``.
        """
        if self.under is None and key not in self.own:
            return None
        layers = [(self, length)]
        while (under := layers[-1][0].under) is not None:
            layers.append((under, min(layers[-1][1], layers[-1][0].bound)))
        for layer, bound in reversed(layers):
            first = layer.own.get(key)
            if first is None or first >= bound:
                continue
            text = text_at(first)
            if text == written:
                return first
            names = tuple(sorted(value))
            wanted = _short(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
            if _projected(text, names) == wanted:
                return first
            found = layer._later(key, names, wanted, bound, text_at)
            if found is not None:
                return found
        return None

    def _later(self, key: bytes, names: tuple[str, ...], wanted: bytes, length: int, text_at: TextAt) -> int | None:
        later = self.more.get(key)
        if later is None:
            return None
        with self._lock:
            if len(later) <= _FEW:
                each = (at for at in later if at < length and _projected(text_at(at), names) == wanted)
                return next(each, None)
            view = self._views.get((key, names))
            if view is None:
                if self._viewed > max(_VIEWED, 4 * len(self.own)):
                    self._views, self._viewed = {}, 0
                view = self._views[key, names] = _View()
            while view.done < len(later) and later[view.done] < length:
                at = later[view.done]
                projected = _projected(text_at(at), names)
                if projected is not None:
                    view.positions.setdefault(projected, at)
                view.done += 1
                self._viewed += 1
            found = view.positions.get(wanted)
        return found if found is not None and found < length else None

    def extended(self, keys: Sequence[bytes], length: int) -> "_Layer":
        """Return the index after items with the identities ``keys`` are appended to a version of ``length`` items."""
        with self._lock:
            if self._end == length:
                for position, key in enumerate(keys, length):
                    self._add(key, position)
                self._end = length + len(keys)
                return self
        return self._above(length).extended(keys, length)

    def _add(self, key: bytes, position: int) -> None:
        if self.own.setdefault(key, position) != position:
            self.more.setdefault(key, []).append(position)

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
                    flat._add(key, position)
            for key, positions in list(each.more.items()):
                for position in list(positions):
                    if position < most:
                        flat._add(key, position)
        flat._end = length
        return flat


@frozen(eq=False)
class Items:
    """JSON texts in order, with an index by identity that is built on first use."""

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
        """Append the items among ``texts`` whose identity is new. Return the resulting items, and the position of each of ``texts``.

        ``keys`` are the identities of ``texts``.
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

    def united(self, texts: Sequence[bytes], values: Sequence[Any]) -> "tuple[Items, list[int]]":
        """Append the items among ``texts`` that no other item contains. Return the resulting items, and the position of each of ``texts``.

        ``values`` are the values of ``texts``. An object with an ``id`` is contained in an object that has all its fields with the
        same values. Any other item is contained in an equal item only.
        """
        layer, length = self._layer(), len(self.vector)
        written: list[bytes] = []
        positions = []

        def text_at(position: int) -> bytes:
            text: bytes = self.vector[position] if position < length else written[position - length]
            return text

        for text, value in zip(texts, values, strict=True):
            key, end = identity_of(value), length + len(written)
            position = layer.containing(key, value, text, end, text_at) if has_id(value) else layer.find(key, end)
            if position is None:
                layer, position = layer.extended([key], end), end
                written.append(text)
            positions.append(position)
        if not written:
            return self, positions
        return Items(self.vector.extended(written), self.identify, [layer]), positions

    def spliced(self, keep: int, texts: Sequence[bytes]) -> "Items":
        """Return the first ``keep`` items followed by ``texts``, without merging."""
        vector = self.vector.prefix(keep).extended(texts)
        if not self._index or not keep:
            return Items(vector, self.identify)
        return Items(vector, self.identify, [self._index[0].extended([self.identify(t) for t in texts], keep)])

    @property
    def digest(self) -> bytes:
        """Return the digest of the items in order."""
        return self.vector.digest
