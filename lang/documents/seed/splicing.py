"""Reads the JSON of another text of a document, and of it only the values that are new: what stands around is taken over.

Only from text without a fault to text without a fault: then each value means the same wherever it stands. For anything else the
document is read as a whole. What comes out is what ``read_json`` gives, which a property test holds.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from attrs import evolve, frozen

from ...source import Source
from ..json_text import MAX_SIZE, MAX_VALUES, read_json
from ..json_tree import JsonNode, JsonPath, JsonRead
from .moved import moved, moved_all

__all__ = ["Document", "reread_json"]

_Way = list[tuple[JsonNode, str | int]]
_FEW = 4
"""A value that is no smaller than this part of the text is not read by itself: where it has a fault, all is read once more."""


@frozen(eq=False)
class Document:
    """A document that was read, and where its tree was changed since."""

    read: JsonRead
    changed: Sequence[JsonPath] = ()


def reread_json(source: Source, before: Document | None) -> JsonRead:
    """Read a document, as ``read_json`` does; ``before`` is one like it."""
    root = _spliced(source.text, before) if before is not None else None
    return read_json(source) if root is None else JsonRead(root, source)


def _spliced(text: str, before: Document) -> JsonNode | None:
    """Return the tree of the text; None where the document must be read as a whole."""
    old, root = before.read.source.text, _as_written(before)
    if root is None or before.read.diagnostics or len(text) * 4 > MAX_SIZE or _most_values(text) > MAX_VALUES:
        return None
    start, end = _changed(old, text)
    by = len(text) - len(old)
    way = _way_to(root, start, end)
    while len(way) > 1 or (way and isinstance(way[0][0].value, list)):
        node, above = way[-1][0], way[:-1]
        if isinstance(node.value, list):
            made = _with_elements(text, node, start, end, by, len(way))
        elif isinstance(above[-1][0].value, dict) and node.end - node.start < len(text) // _FEW:
            alone = _elements(text, node.start, node.end + by, len(above))
            made = alone[0] if alone is not None and len(alone) == 1 else None
        else:
            made = None
        if made is not None:
            for parent, key in reversed(above):
                made = _with(parent, key, made, by)
            return made
        way.pop()
    return None


def _with_elements(text: str, node: JsonNode, start: int, end: int, by: int, depth: int) -> JsonNode | None:
    """Return a list with the elements anew around which ``[start, end)`` was changed; None where they have a fault, or are most of all."""
    first = max(0, bisect_left(node.items, start, key=_start) - 1)
    last = min(len(node.items), bisect_right(node.items, end, key=_end) + 1)
    begin = node.items[first].start if first < len(node.items) and node.items[first].start < start else node.start + 1
    stop = node.items[last - 1].end if last and node.items[last - 1].end > end else node.end - 1
    made = _elements(text, begin, stop + by, depth)
    if made is None:
        return None
    items = [*node.items[:first], *made, *moved_all(node.items[last:], by)]
    return JsonNode([each.value for each in items], node.start, node.end + by, {}, {}, items)


def _as_written(before: Document) -> JsonNode | None:
    """Return the tree as its text says it: what was changed in an element of a list is read anew, of anything else nothing is known."""
    root, text = before.read.root, before.read.source.text
    changed = {tuple(path[:2]) for path in before.changed}
    for path in changed if root is not None else ():
        node = root.at(path) if root is not None and len(path) == 2 and isinstance(path[1], int) else None
        made = None if node is None else _elements(text, node.start, node.end, 2)
        if root is None or made is None:
            return None
        parent = root.fields[str(path[0])]
        root = _with(root, path[0], _with(parent, path[1], made[0], 0), 0)
    return root


def _most_values(text: str) -> int:
    """Return how many values a text may have."""
    return 1 + text.count(",") + text.count("[") + text.count("{")


def _changed(old: str, new: str) -> tuple[int, int]:
    """Return where ``old`` is not as ``new``: all before is in both, and all behind."""
    most = min(len(old), len(new))
    start = _same(most, lambda size: old[:size] == new[:size])
    behind = _same(most - start, lambda size: old[len(old) - size :] == new[len(new) - size :])
    return start, len(old) - behind


def _way_to(root: JsonNode, start: int, end: int) -> _Way:
    """Return the values around a place, each with the key of the next; the last is what is inmost."""
    way: _Way = []
    node: JsonNode | None = root
    while node is not None and node.start < start and end < node.end:
        keys: Sequence[str | int] = [*node.fields]
        if isinstance(node.value, list):
            at = bisect_left(node.items, start, key=_start) - 1
            keys = [at] if at >= 0 else []
        inner = [(key, each) for key in keys if (each := node.at((key,))) is not None and _is_around(each, start, end)]
        way.append((node, inner[0][0] if inner else ""))
        node = inner[0][1] if inner else None
    return way


def _is_around(node: JsonNode, start: int, end: int) -> bool:
    return node.start < start and end < node.end


def _elements(text: str, start: int, end: int, depth: int) -> Sequence[JsonNode] | None:
    """Return the elements of a list that stand in a range of the text, ``depth`` lists and objects deep; None where it has a fault."""
    read = read_json("[" * depth + text[start:end] + "]" * depth)
    if read.root is None or read.diagnostics:
        return None
    node = read.root
    for _ in range(depth - 1):
        if len(node.items) != 1:
            return None
        node = node.items[0]
    return moved_all(node.items, start - depth)


def _with(parent: JsonNode, key: str | int, node: JsonNode, by: int) -> JsonNode:
    """Return ``parent`` with ``node`` as what stands at ``key``, and all behind it moved."""
    if isinstance(key, int):
        items = [*parent.items[:key], node, *moved_all(parent.items[key + 1 :], by)]
        return evolve(parent, value=[each.value for each in items], end=parent.end + by, items=items)
    after = parent.fields[key].start
    fields = {name: moved(each, by) if each.start > after else each for name, each in parent.fields.items()}
    fields[key] = node
    keys = {name: at.shift(by) if at.start > after else at for name, at in parent.keys.items()}
    value = {name: each.value for name, each in fields.items()}
    return evolve(parent, value=value, end=parent.end + by, fields=fields, keys=keys)


def _start(node: JsonNode) -> int:
    return node.start


def _end(node: JsonNode) -> int:
    return node.end


def _same(most: int, are_same: Callable[[int], bool]) -> int:
    """Return the greatest size, of ``most`` at most, up to which two texts are the same."""
    return bisect_left(range(1, most + 1), True, key=lambda size: not are_same(size))
