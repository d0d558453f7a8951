"""What a search asks of others: what to do next, how good a state is, and how to go on cheaply from one."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from random import Random
from typing import Protocol, TypeAlias

from attrs import frozen

from .actions import Action
from .nodes import Node

__all__ = ["AsValue", "Filled", "Proposer", "Rollout", "Untaken", "Value", "kept_going", "told", "valued"]


@contextmanager
def kept_going() -> Iterator[None]:
    """Make of a ``CancelledError`` that somebody's part raises by itself, while nobody cancelled, an error as any other."""
    try:
        yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("it raised CancelledError, and nobody had cancelled it") from error


class Proposer(Protocol):
    """Says what may be done in a state; a model, usually. It may raise: that state is then left as it is."""

    async def propose(self, node: Node) -> Sequence[Action]:
        """Return the state's next actions, in any order; none where there is nothing left to do."""
        ...


class Value(Protocol):
    """Says how good a state is. It may raise: that state then counts as 0, and a warning says so."""

    async def value(self, node: Node) -> float:
        """Return 0 (nothing of what is wanted) to 1 (all of it)."""
        ...


class Rollout(Protocol):
    """Says cheaply how to go on from a state, to see what it may come to."""

    async def choose(self, node: Node, known: Sequence[Action], random: Random) -> Action | None:
        """Return what to do in ``node``, or None to stop there.

        ``known`` are actions that were proposed on the way and not taken on it. Chance is to come from ``random`` alone.
        """
        ...


@frozen
class AsValue:
    """A user's function as a ``Value``; it may be async."""

    function: Callable[[Node], float | Awaitable[float]]

    async def value(self, node: Node) -> float:
        """Return what the function says."""
        said = self.function(node)
        return await said if inspect.isawaitable(said) else said


Valued: TypeAlias = Value | Callable[[Node], "float | Awaitable[float]"]


def valued(value: Valued) -> Value:
    """Return ``value``, or a function as one."""
    if hasattr(value, "value"):
        return value
    if callable(value):
        return AsValue(value)
    raise TypeError("a value is a function of a node, or has `async value(node)`")


async def told(value: Value, node: Node) -> float:
    """Return what ``value`` says of ``node``. Raises ``ValueError`` for what is no number from 0 to 1."""
    with kept_going():
        said = await value.value(node)
    if isinstance(said, bool) or not isinstance(said, int | float) or not isfinite(said) or not 0 <= said <= 1:
        raise ValueError(f"a value is a number from 0 to 1, not {said!r:.60}")
    return float(said)


@frozen
class Filled:
    """The share of ``keys`` (all that the state declares at its root, if None) that hold something. It asks no model."""

    keys: tuple[str, ...] | None = None

    async def value(self, node: Node) -> float:
        """Return the share; 0 where nothing is asked for."""
        sizes = {each.key: each.size for each in node.snapshot.declared()}
        wanted = self.keys if self.keys is not None else tuple(sizes)
        return sum(sizes.get(key, 0) > 0 for key in wanted) / len(wanted) if wanted else 0.0


@frozen
class Untaken:
    """The rollout by rule: one of the actions that were proposed on the way and not taken, the surer the more often."""

    async def choose(self, node: Node, known: Sequence[Action], random: Random) -> Action | None:
        """Return one of ``known``; None where there is none."""
        if not known:
            return None
        return random.choices(list(known), [action.confidence + 0.01 for action in known])[0]
