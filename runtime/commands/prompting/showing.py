"""How items are shown to a model: a line each after a short reference, in batches of bounded size."""

import re
from collections.abc import Sequence
from typing import Any, TypeGuard

from attrs import frozen

from ....adapters.graph import NodeId
from ..excerpts import excerpt
from ..items import is_node_id, item_kind

__all__ = ["Shown", "batches", "own_id", "shown"]

_BATCH_ITEMS = 20
_BATCH_CHARACTERS = 6_000
_LONGEST_ID = 200


@frozen
class Shown:
    """Items as a model sees them. ``references[i]`` is the text before item ``i``; ``ids[i]`` is what evidence calls it: its
    own id; ``[source, target]`` and the key of an edge, the ends of a path; of anything else its place, ``variable[3]``.
    """

    items: Sequence[Any]
    references: tuple[str, ...]
    ids: tuple[Any, ...]
    own: tuple[Any, ...]
    """What of ``ids`` an answer may cite in a reference's place; None for what the items do not say themselves."""

    def line(self, index: int) -> str:
        """Return an item's line. It is made anew each time: all lines of a large variable would take too much memory."""
        return f"{self.references[index]} {excerpt(self.items[index])}"

    def known(self, among: Sequence[int]) -> dict[str, int]:
        """Return the items at the indices ``among`` by what may be cited: the reference, or their own id if it is theirs alone."""
        known: dict[str, int] = {}
        twice: set[str] = set()
        for index in among:
            if self.own[index] is None:
                continue
            own = str(self.own[index])
            if own in known:
                twice.add(own)
            known[own] = index
        for own in twice:
            del known[own]
        known.update((self.references[index], index) for index in among)
        return known


def shown(items: Sequence[Any], ids: Sequence[Any] | None = None, *, name: str = "") -> Shown:
    """Return ``items`` as a model is to see them; ``ids`` are what evidence calls them, by default as ``Shown`` says.

    ``name`` is the variable's. The references are ``i1`` and so on, unless the ids look like that.
    """
    own = tuple(own_id(item) for item in items) if ids is None else tuple(ids)
    looks = {match[1] for each in own if isinstance(each, str) and (match := _REFERENCE.fullmatch(each))}
    prefix = "i"
    while prefix in looks:
        prefix += "i"
    references = tuple(f"{prefix}{index + 1}" for index in range(len(items)))
    named = tuple(
        each if each is not None else _ends(item) or f"{name}[{index}]"
        for index, (each, item) in enumerate(zip(own, items, strict=True))
    )
    return Shown(items, references, named, own)


def _ends(item: Any) -> list[NodeId] | None:
    """Return an edge's ends and key, or a path's ends; None for what is neither, and for ends that are no ids."""
    kind = item_kind(item)
    if kind not in ("edge", "path"):
        return None
    ends = [item["source"], item["target"]]
    if kind == "edge" and "key" in item:
        ends.append(item["key"])
    return ends if all(_is_short_id(end) for end in ends) else None


_REFERENCE = re.compile(r"(i+)[0-9]+")


def own_id(item: Any) -> NodeId | None:
    """Return an item's own id: its ``id``, or itself if it is a text or an integer; None for none and for a long text."""
    own = item.get("id") if isinstance(item, dict) else item
    return own if _is_short_id(own) else None


def _is_short_id(value: Any) -> TypeGuard[NodeId]:
    return is_node_id(value) and not (isinstance(value, str) and len(value) > _LONGEST_ID)


def batches(shown: Shown) -> list[range]:
    """Return the ranges of items that go to the model together: at least one, at most 20, some 6,000 characters of lines."""
    found: list[range] = []
    start = size = 0
    for index in range(len(shown.items)):
        length = len(shown.line(index))
        if index > start and (index - start == _BATCH_ITEMS or size + length > _BATCH_CHARACTERS):
            found.append(range(start, index))
            start, size = index, 0
        size += length
    if shown.items:
        found.append(range(start, len(shown.items)))
    return found
