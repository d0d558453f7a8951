"""The patterns of ``FIND patterns``: chains of nodes and edges, as in GQL. See ``docs/design/gasl.md#patterns``."""

from typing import Literal

from attrs import frozen

from . import Node
from .conditions import Constant, Variable


@frozen
class PatternNode(Node):
    """``(name:LABEL|LABEL {field: constant})``; each part is optional."""

    name: str | None = None
    labels: tuple[str, ...] = ()
    properties: tuple[tuple[str, Constant | Variable], ...] = ()


@frozen
class PatternEdge(Node):
    """``-[name:TYPE|TYPE]->``, ``<-[...]-`` or ``-[...]-``; name and types are optional."""

    direction: Literal["out", "in", "either"]
    name: str | None = None
    labels: tuple[str, ...] = ()


@frozen
class Pattern(Node):
    """A chain of nodes and edges: ``edges[i]`` connects ``nodes[i]`` and ``nodes[i + 1]``."""

    nodes: tuple[PatternNode, ...]
    edges: tuple[PatternEdge, ...] = ()
