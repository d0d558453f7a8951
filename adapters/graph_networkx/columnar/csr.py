"""Adjacency as compressed sparse rows: the edges that leave (or enter) each node, side by side in one array."""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from .tables import EdgeTable, Positions

__all__ = ["Adjacency", "distinct", "incoming", "outgoing"]


@frozen(eq=False)
class Adjacency:
    """The edges of node ``i`` are ``edges[first[i]:first[i + 1]]``; they lead to the ``heads`` at the same places.

    They stand in the graph's own order. In an undirected graph each edge stands with both of its ends.
    """

    first: NDArray[np.int64]
    heads: Positions
    edges: Positions

    def degrees(self, nodes: NDArray[Any]) -> NDArray[np.int64]:
        """Return how many edges each of ``nodes`` has here."""
        degrees: NDArray[np.int64] = self.first[nodes + 1] - self.first[nodes]
        return degrees

    def expand(self, nodes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return, for every edge of every one of ``nodes``, which of them it belongs to, and its place in ``heads``, ``edges``."""
        counts = self.degrees(nodes)
        before = np.cumsum(counts) - counts
        owner = np.repeat(np.arange(len(nodes)), counts)
        return owner, np.arange(len(owner)) + (self.first[nodes] - before)[owner]

    def reached(self, nodes: NDArray[Any]) -> NDArray[Any]:
        """Return the nodes that an edge of ``nodes`` leads to, each once, by position."""
        return distinct(self.heads[self.expand(nodes)[1]])


def distinct(positions: NDArray[Any]) -> NDArray[Any]:
    """Return each of ``positions`` once, rising. (For a few thousand, ``np.unique`` takes ten times as long.)"""
    ordered = np.sort(positions)
    keep = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]


def outgoing(table: EdgeTable, directed: bool, look: Callable[[], None] = lambda: None) -> Adjacency:
    """Return the edges that leave each node. ``look`` is called between the steps, and may raise to end the work."""
    return _adjacency(table, table.sources, table.targets, directed, look)


def incoming(table: EdgeTable, directed: bool, look: Callable[[], None] = lambda: None) -> Adjacency:
    """Return the edges that enter each node, with the nodes they come from as heads. ``look``: see ``outgoing``."""
    return _adjacency(table, table.targets, table.sources, directed, look)


def _adjacency(
    table: EdgeTable, tails: Positions, heads: Positions, directed: bool, look: Callable[[], None]
) -> Adjacency:
    look()
    edges = np.arange(len(table), dtype=np.int32)
    if not directed:
        other = tails != heads  # a loop stands once
        tails, heads, edges = (
            np.concatenate([tails, heads[other]]),
            np.concatenate([heads, tails[other]]),
            np.concatenate([edges, edges[other]]),
        )
    if len(tails) and (np.diff(tails) < 0).any():
        # By node, then by the edge's own place: lexsort's last key is the first to sort by.
        look()
        order = np.lexsort((edges, tails))
        look()
        tails, heads, edges = tails[order], heads[order], edges[order]
    first = np.zeros(len(table.ends) + 1, np.int64)
    np.cumsum(np.bincount(tails, minlength=len(table.ends)), out=first[1:])
    return Adjacency(first, heads, edges)
