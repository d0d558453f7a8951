"""The common base of all trees: nodes with spans, and a function to walk a tree. Nodes are compared without their spans."""

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from ..source import NOWHERE, Span

__all__ = ["Node", "walk"]


@attrs.frozen
class Node:
    """A tree node. ``span`` is the place of the node in the text; equality and hashing ignore the span."""

    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False, kw_only=True)


def walk(root: Node, enter: Callable[[Node], bool] = lambda _: True) -> Iterator[Node]:
    """Yield ``root`` and all nodes below it, parents first, in source order; the children of a node only if ``enter(node)``."""
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
    """Return the fields of ``kind`` that can hold nodes. Computed once per class."""
    names = _CHILDREN.get(kind)
    if names is None:
        names = tuple(a.name for a in attrs.fields(kind) if a.name != "span" and a.eq)
        _CHILDREN[kind] = names
    return names
