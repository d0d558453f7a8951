"""All that a store holds at one moment, as one immutable value, and how a record of the journal takes it to the next."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import orjson
from attrs import evolve, field, frozen

from ..state import StateError
from .values.nodes import NOTHING, DictNode
from .values.values import parsed
from .values.vectors import EMPTY, Vector

__all__ = ["About", "Commits", "Entries", "Moment", "flagged", "with_about"]


@frozen
class About:
    """What the run is about. Times are ISO 8601 in UTC."""

    query: str = ""
    config: Mapping[str, Any] = field(factory=dict)  # never written after it is made
    seed: int = 0
    created_at: str = ""
    updated_at: str = ""


@frozen(eq=False)
class Moment:
    """``root`` are variables and provenance; the vectors hold JSON texts."""

    root: DictNode = NOTHING
    history: Vector = EMPTY
    answers: Vector = EMPTY
    commands: Vector = EMPTY
    about: About = field(factory=About)


def with_about(moment: Moment, **changes: Any) -> Moment:
    """Return the moment with some of ``about`` changed."""
    return evolve(moment, about=evolve(moment.about, **changes))


def flagged(history: Vector, indices: Sequence[int]) -> Vector:
    """Return the history with these entries marked as rolled back."""
    entries = {at: orjson.dumps(parsed(history[at]) | {"rolled_back": True}) for at in indices}
    return history.changed(entries)


class Entries(Sequence[Mapping[str, Any]]):
    """A vector of JSON texts, read one by one when they are asked for."""

    def __init__(self, texts: Vector) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, Any]]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [parsed(self._texts[at]) for at in range(*index.indices(len(self)))]
        return parsed(self._texts[index if index >= 0 else index + len(self)])

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return (parsed(text) for text in self._texts)


# The commits of a session by hash. They share all that they have in common; the oldest are let go of.


MOST = 1000
"""Commits that are surely at hand; at most twice as many are held."""

_HASH = re.compile(r"[0-9a-fA-F]{4,64}\Z")


@frozen(eq=False)
class _Commit:
    root: DictNode
    before: "_Commit | None"
    count: int


@frozen(eq=False)
class Commits:
    """An immutable chain, newest first, so that a fork has it for nothing."""

    _last: _Commit | None = None

    def with_commit(self, root: DictNode) -> "Commits":
        """Return the commits with one more."""
        if self._last is not None and self._last.root is root:
            return self
        count = self._last.count if self._last is not None else 0
        if count < 2 * MOST:
            return Commits(_Commit(root, self._last, count + 1))
        kept, each = list[DictNode](), self._last
        while each is not None and len(kept) < MOST:
            kept.append(each.root)
            each = each.before
        last = None
        for at, old in enumerate(reversed(kept), 1):
            last = _Commit(old, last, at)
        return Commits(_Commit(root, last, MOST + 1))

    def find(self, prefix: str) -> DictNode | None:
        """Return the state of the commit whose hash begins so; None where none does.

        Raises ``StateError`` for what is no hash, and where more than one begins so.
        """
        if not _HASH.match(prefix):
            raise StateError(f"{prefix[:70]!r} is no hash: 4 to 64 hexadecimal digits", status="error")
        wanted, found = prefix.lower(), dict[str, DictNode]()
        each = self._last
        while each is not None:
            own = each.root.digest.hex()
            if own.startswith(wanted):
                found[own] = each.root
            each = each.before
        if len(found) == 1:
            return next(iter(found.values()))
        if found:
            raise StateError(f"{len(found)} commits have a hash that begins with {prefix}", status="error")
        return None
