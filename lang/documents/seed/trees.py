"""Changes trees of expressions. As deep as they are, nothing recurses."""

from collections.abc import Callable
from typing import TypeVar

import attrs

from ...node import Node, walk

__all__ = ["rebuilt"]

_N = TypeVar("_N", bound=Node)


def rebuilt(root: _N, change: Callable[[Node, Node], Node]) -> _N:
    """Return the tree made anew from its leaves up.

    ``change`` is given each node as it was and as it is with its changed children, and returns what is to stand there.
    """
    done: dict[int, Node] = {}
    for each in reversed(list(walk(root))):
        children = {
            name: _with_done(value, done)
            for name, value in ((one.name, getattr(each, one.name)) for one in attrs.fields(type(each)))
            if name != "span"
        }
        done[id(each)] = change(each, type(each)(**children, span=each.span))
    return done[id(root)]  # type: ignore[return-value]  # where ``change`` keeps kinds


def _with_done(value: object, done: dict[int, Node]) -> object:
    if isinstance(value, tuple):
        return tuple(_with_done(inner, done) for inner in value)
    return done[id(value)] if isinstance(value, Node) else value
