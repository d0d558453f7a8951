"""What all trees have in common: nodes with a place in the text, compared without it, and a way to walk them."""

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from ..source import NOWHERE, Span

__all__ = ["Node", "walk"]


@attrs.frozen
class Node:
    """A tree node. ``span`` says where it was read; it takes no part in equality or hashing."""

    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False, kw_only=True)


def walk(root: Node, enter: Callable[[Node], bool] = lambda _: True) -> Iterator[Node]:
    """Yield ``root`` and all nodes below it, parents first, in source order; skip what is below where ``enter`` is false."""
    stack: list[Any] = [root]
    while stack:
        current = stack.pop()
        if isinstance(current, tuple):
            stack.extend(reversed(current))
        elif isinstance(current, Node):
            yield current
            if enter(current):
                stack.extend(getattr(current, name) for name in reversed(_children(type(current))))


_CHILDREN: dict[type, tuple[str, ...]] = {}


def _children(kind: type) -> tuple[str, ...]:
    """Name the fields of ``kind`` that can hold nodes. Computed once for each class."""
    names = _CHILDREN.get(kind)
    if names is None:
        names = tuple(a.name for a in attrs.fields(kind) if a.name != "span" and a.eq)
        _CHILDREN[kind] = names
    return names
