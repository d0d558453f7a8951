"""What a search asks of others: what to do next, how good a state is, and how to go on cheaply from one."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from random import Random
from typing import Any, Protocol, TypeAlias

from attrs import define, field, frozen
from blake3 import blake3

from ....adapters.llm.answers import read_json
from ....lang.answers import read_object
from ....lang.literals import Unreadable
from ...answers.generator import Asker
from ...answers.judges import read_score
from ...excerpts import excerpt, fenced
from ...models.caller import Caller, Spent
from ...templates import fill, read_prompt
from .nodes import Action, Node

__all__ = ["JUDGED", "Filled", "Judged", "Proposer", "Rollout", "Untaken", "Value", "kept_going", "told", "valued"]


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


# A model as a search's value: it sees the question, the state in brief and the answer, if there is one, and gives 0.0 to 1.0.

JUDGED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "maxLength": 2_000},
        "score": {"type": "number", "minimum": 0, "maximum": 1},
    },
    "required": ["reason", "score"],
    "additionalProperties": False,
}
"""What a model answers."""

_KEYS = 40
_SAMPLES = 5
_STATE = 8_000
"""Characters of a state that are shown."""


@define
class Judged:
    """Asks ``caller``'s model (or the one that it knows as ``model``) how far a state has come in answering ``query``.

    ``spent`` is to be the search's own, so that its budget holds for these calls too. Where the caller has a record each
    judgement is kept in it, under the way to the state, and found again: a model's answer in a state has its time there, and so
    its hash is another one when the same plans are run once more.
    """

    caller: Caller
    query: str
    spent: Spent = field(factory=Spent)
    step: str = "value"
    model: str | None = None
    _asker: Asker = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._asker = Asker(self.caller, self.step, self.caller.events, self.spent)

    async def value(self, node: Node) -> float:
        """Return the score. Raises ``StepFailed``."""
        options = {"schema": JUDGED, "temperature": 0.0, "tidy": _tidied}
        text = await self._asker.ask(_place(node), self.prompt(node), options, self.model)
        return float(read_json(text)["score"]) + 0.0

    def prompt(self, node: Node) -> str:
        """Return what is asked; its size does not grow with the state's."""
        values = {
            "query": fenced(self.query),
            "state": fenced(_brief(node)),
            "answer": fenced(node.answer[:_STATE]) if node.answer is not None else "(none yet)",
        }
        return fill(read_prompt(__package__, "value"), values)


def _tidied(text: str) -> str:
    """Return the one judgement in ``text``. Raises ``ValueError`` with a clause for the judge."""
    found = read_object(text, ("score",))
    if isinstance(found, Unreadable):
        raise ValueError(found.reason)
    score = read_score(found.value["score"])
    if isinstance(score, str):
        raise ValueError(score)
    return json.dumps({"reason": found.value.get("reason", ""), "score": score}, ensure_ascii=False)


def _brief(node: Node) -> str:
    declared = node.snapshot.declared()
    told: list[Any] = [
        {
            "key": each.key,
            "type": each.type,
            "size": each.size,
            "description": each.description,
            "sample": node.snapshot.sample(each.key, _SAMPLES)[1],
        }
        for each in declared[:_KEYS]
    ]
    if len(declared) > _KEYS:
        told.append(f"… {len(declared) - _KEYS} more keys")
    return "\n".join(excerpt(each, _STATE // (len(told) or 1)) for each in told) or "nothing is declared yet"


def _place(node: Node) -> int:
    """Return the call's number: a way's own, in every run."""
    named = "\n".join(action.does for action in node.path).encode("utf-8", "backslashreplace")
    return int.from_bytes(blake3(named).digest(length=6), "big")
