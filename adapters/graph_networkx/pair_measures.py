"""Measures of node pairs, computed from their common neighbours, like ``networkx.jaccard_coefficient``."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..graph import AdapterError
from .measured_graph import Array, MeasuredGraph
from .tables import Adjacency

_BLOCK = 1 << 20
"""Number of pairs of neighbours that are examined in one step."""

PairRow = tuple[int, int, float]
"""The positions of two nodes, and the value of this pair."""


def measured_pairs(
    task: MeasuredGraph,
    algorithm: str,
    given: Sequence[tuple[int, int]] | None,
    among: Sequence[int] | None,
    most: int,
    examined: int,
) -> list[PairRow]:
    """Return at most ``most`` pairs with their values.

    The pairs are ``given``, or all pairs of ``among`` in their order, or all pairs of nodes that have a common neighbour but no
    edge between them. Raises ``AdapterError`` if more pairs than ``examined`` would have to be examined.
    """
    task.say_simple(directed=False, loops=False)
    near = task.neighbours
    if given is not None:
        return _of_pairs(task, algorithm, near, np.array(given, np.int64).reshape(-1, 2)[:most])
    if among is not None:
        return _of_all(task, algorithm, near, np.array(among, np.int64), most, examined)
    return _unlinked(task, algorithm, near, most, examined)


def _refused(count: int, what: str, examined: int) -> AdapterError:
    return AdapterError(
        f"{count:,} {what}; at most {examined:,} are examined",
        hint="measure a variable with source and target, or with fewer nodes: MEASURE pairs USING ...",
    )


def _of_all(
    task: MeasuredGraph, algorithm: str, near: Adjacency, among: Array, most: int, examined: int
) -> list[PairRow]:
    count = len(among) * (len(among) - 1) // 2
    if min(count, most) > examined:
        raise _refused(count, f"pairs of {len(among):,} nodes", examined)
    rows: list[PairRow] = []
    for at in range(len(among) - 1):
        if len(rows) >= most or task.deadline.passed():
            break
        others = among[at + 1 :][: most - len(rows)]
        rows += _of_pairs(task, algorithm, near, np.stack([np.full(len(others), among[at]), others], axis=1))
    return rows


def _of_pairs(task: MeasuredGraph, algorithm: str, near: Adjacency, pairs: Array) -> list[PairRow]:
    """Return the value of each pair. The shorter list of neighbours is looked up in the longer list."""
    size, degrees = len(task.nodes), np.diff(near.first)
    tails = np.repeat(np.arange(size), degrees)
    keys = tails * size + near.heads
    rows: list[PairRow] = []
    for begin, end in _blocks(np.minimum(degrees[pairs[:, 0]], degrees[pairs[:, 1]])):
        if task.deadline.passed():
            break
        some = pairs[begin:end]
        fewer = degrees[some[:, 0]] <= degrees[some[:, 1]]
        small, large = np.where(fewer, some[:, 0], some[:, 1]), np.where(fewer, some[:, 1], some[:, 0])
        owner, place = near.expand(small)
        third = near.heads[place].astype(np.int64)
        wanted = large[owner] * size + third
        if len(keys):
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            common = (keys[at] == wanted) & (third != large[owner])
        else:
            common = np.zeros(len(wanted), np.bool_)
        shared = np.bincount(owner[common], minlength=len(some))
        values = _values(algorithm, degrees, some, shared, owner[common], third[common])
        rows += zip(some[:, 0].tolist(), some[:, 1].tolist(), values.tolist(), strict=True)
    return rows


def _values(algorithm: str, degrees: Array, pairs: Array, shared: Array, owner: Array, third: Array) -> Array:
    if algorithm == "common_neighbors":
        return shared
    if algorithm == "jaccard":
        either = degrees[pairs[:, 0]] + degrees[pairs[:, 1]] - shared
        either = np.where(pairs[:, 0] == pairs[:, 1], degrees[pairs[:, 0]], either)
        shares: Array = np.divide(shared, either, out=np.zeros(len(pairs)), where=either > 0)
        return shares
    # A common neighbour has at least two neighbours, except when a node is paired with itself.
    many = np.maximum(degrees[third], 2)
    part = 1 / np.log(many) if algorithm == "adamic_adar" else 1 / many
    total: Array = np.bincount(owner, part, minlength=len(pairs))
    return total


def _unlinked(task: MeasuredGraph, algorithm: str, near: Adjacency, most: int, examined: int) -> list[PairRow]:
    """Return the pairs of nodes with a common neighbour but no edge between them, and their values, in the graph's order."""
    size, degrees = len(task.nodes), np.diff(near.first)
    total = int((degrees * (degrees - 1) // 2).sum())
    if total > examined:
        raise _refused(total, "pairs of nodes have a common neighbour", examined)
    tails = np.repeat(np.arange(size), degrees)
    keys = tails * size + near.heads
    wedges = np.bincount(tails, degrees[near.heads], minlength=size).astype(np.int64)
    rows: list[PairRow] = []
    for begin, end in _blocks(wedges):
        if len(rows) >= most or task.deadline.passed():
            break
        nodes = np.arange(begin, end)
        owner, place = near.expand(nodes)
        middle = near.heads[place]
        again, place = near.expand(middle)
        first, last = nodes[owner[again]], near.heads[place].astype(np.int64)
        ahead = last > first
        pairs = np.unique(first[ahead] * size + last[ahead])
        pairs = pairs[~_in(keys, pairs)]
        found = np.stack([pairs // size, pairs % size], axis=1)[: most - len(rows)]
        rows += _of_pairs(task, algorithm, near, found)
    return rows


def _in(keys: Array, wanted: Array) -> Array:
    if not len(keys):
        return np.zeros(len(wanted), np.bool_)
    found: Array = keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted
    return found


def _blocks(widths: Array) -> Iterator[tuple[int, int]]:
    """Yield ranges of indices. The ``widths`` in a range sum to at most the size of a block, unless it has only one index."""
    total = np.cumsum(widths)
    begin = 0
    while begin < len(widths):
        before = int(total[begin - 1]) if begin else 0
        end = min(
            len(widths), max(begin + 1, int(np.searchsorted(total, before + _BLOCK, side="right"))), begin + _BLOCK
        )
        yield begin, end
        begin = end


def positions_of_pairs(places: Any, pairs: Sequence[tuple[Any, Any]]) -> list[tuple[int, int]]:
    """Return the positions of the pairs whose nodes are both known; ``places`` maps a node's id to its position, or to None."""
    found = ((places(source), places(target)) for source, target in pairs)
    return [(source, target) for source, target in found if source is not None and target is not None]
