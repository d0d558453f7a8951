"""The graph's nodes and edges by position: lists and arrays that columns, indexes and the search for paths refer to.

A position is the place of a node or an edge in the graph's own order, from 0. The tables hold the live attribute mappings,
not copies: what an attribute holds is read when it is asked for.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from ..rows.scan import Kind

__all__ = ["EdgeTable", "NodeTable", "Positions", "Table"]

Positions = NDArray[np.int32]
_LOOK = 8192
"""Rows that are read between two looks at the clock."""


@define
class NodeTable:
    """All nodes: ``nodes[i]`` with the attributes ``data[i]``."""

    kind: Kind
    nodes: list[Any]
    data: list[Mapping[Any, Any]]
    _positions: dict[Any, int] = field(factory=dict)

    @classmethod
    def of(cls, graph: Any) -> "NodeTable":
        """Read the nodes of ``graph``."""
        nodes = list(graph.nodes)
        return cls("nodes", nodes, [graph.nodes[node] for node in nodes])

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def positions(self) -> dict[Any, int]:
        """The position of each node."""
        if not self._positions:
            self._positions = {node: at for at, node in enumerate(self.nodes)}
        return self._positions

    def rows(self, positions: Iterable[int]) -> list[tuple[Any, ...]]:
        """Return ``(node, attributes)`` for each position."""
        nodes, data = self.nodes, self.data
        return [(nodes[at], data[at]) for at in positions]


@define
class EdgeTable:
    """All edges: from ``sources[i]`` to ``targets[i]`` (positions of nodes), with the key and the attributes ``data[i]``."""

    kind: Kind
    ends: NodeTable
    sources: Positions
    targets: Positions
    keys: list[Any] | None
    data: list[Mapping[Any, Any]]

    @classmethod
    def of(cls, graph: Any, ends: NodeTable, look: Callable[[], None] = lambda: None) -> "EdgeTable":
        """Read the edges of ``graph``, whose nodes are ``ends``. ``look`` is called now and then, and may raise to end the reading."""
        at = ends.positions
        if graph.is_directed() and not graph.is_multigraph():
            targets: list[int] = []
            data: list[Mapping[Any, Any]] = []
            counts: list[int] = []
            numbered = ends.nodes == list(range(len(ends)))  # then a node is its own position
            for number, (_, neighbours) in enumerate(graph.adjacency()):
                if number % _LOOK == 0:
                    look()
                counts.append(len(neighbours))
                targets.extend(neighbours if numbered else map(at.__getitem__, neighbours))
                data.extend(neighbours.values())
            look()
            sources = np.repeat(np.arange(len(ends), dtype=np.int32), counts)
            return cls("edges", ends, sources, np.array(targets, np.int32), None, data)
        several = graph.is_multigraph()
        edges = iter(graph.edges(keys=True, data=True) if several else graph.edges(data=True))
        tails: list[int] = []
        heads: list[int] = []
        keys: list[Any] = []
        attributes: list[Mapping[Any, Any]] = []
        while rows := list(islice(edges, _LOOK)):
            look()
            tails.extend([at[row[0]] for row in rows])
            heads.extend([at[row[1]] for row in rows])
            attributes.extend([row[-1] for row in rows])
            if several:
                keys.extend([row[2] for row in rows])
        look()
        return cls(
            "edges", ends, np.array(tails, np.int32), np.array(heads, np.int32), keys if several else None, attributes
        )

    def __len__(self) -> int:
        return len(self.data)

    def rows(self, positions: Sequence[int] | Positions) -> list[tuple[Any, ...]]:
        """Return ``(source, target, key, attributes)`` for each position; key None in a graph without parallel edges."""
        nodes, data, keys = self.ends.nodes, self.data, self.keys
        chosen = np.asarray(positions, np.int64)
        sources, targets = self.sources[chosen].tolist(), self.targets[chosen].tolist()
        return [
            (nodes[source], nodes[target], None if keys is None else keys[at], data[at])
            for source, target, at in zip(sources, targets, chosen.tolist(), strict=True)
        ]


Table = NodeTable | EdgeTable
