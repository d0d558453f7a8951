"""The common base of all trees: nodes with spans, and a function to walk a tree. Nodes are compared without their spans."""

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from ..source import NOWHERE, Span

__all__ = ["Node", "walk"]


@attrs.frozen
class Node:
    """A node of a tree. ``span`` is the place of the node in the text. Equality and hashing ignore it."""

    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False, kw_only=True)


def walk(root: Node, enter: Callable[[Node], bool] | None = None) -> Iterator[Node]:
    """Yield ``root`` and all nodes below it, in source order; parents come before their children.

    If ``enter(node)`` is false, the children are skipped. By default, all children are visited.
    """
    stack: list[Any] = [root]
    while stack:
        current = stack.pop()
        if isinstance(current, tuple):
            stack.extend(reversed(current))
        elif isinstance(current, Node):
            yield current
            if enter is None or enter(current):
                for name in _children(type(current)):
                    child = getattr(current, name)
                    if isinstance(child, tuple | Node):
                        stack.append(child)


_CHILDREN: dict[type, tuple[str, ...]] = {}


def _children(kind: type) -> tuple[str, ...]:
    """Return the fields of the class ``kind`` that can hold nodes, the last first. The fields are computed once for each class."""
    names = _CHILDREN.get(kind)
    if names is None:
        names = tuple(a.name for a in reversed(attrs.fields(kind)) if a.name != "span" and a.eq)
        _CHILDREN[kind] = names
    return names
