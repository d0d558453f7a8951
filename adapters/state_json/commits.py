"""The commits of a session by hash. They share all that they have in common; the oldest are let go of."""

import re

from attrs import frozen

from ..state import StateError
from .values.nodes import DictNode

__all__ = ["MOST", "Commits"]

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
