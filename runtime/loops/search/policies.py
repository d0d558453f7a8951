"""The replaceable parts of a search: proposing actions, rating states, and rollouts that continue cheaply from a state."""

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

from ....adapters.llm.json_schema import read_json
from ....lang.answers import read_object
from ....lang.literals import Unreadable
from ...answers.generator import ask_text
from ...answers.judges import read_score
from ...excerpts import clipped, excerpt, fenced, fill, read_prompt
from ...models.caller import Asker, Caller, Spent
from .nodes import Action, Node


@contextmanager
def cancellation_as_error() -> Iterator[None]:
    """Convert a ``CancelledError`` into an ordinary error, if a custom part raises it although its task was not cancelled."""
    try:
        yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("it raised CancelledError without being cancelled") from error


class Proposer(Protocol):
    """Proposes actions in a state, usually with a model. A proposer may raise an exception; the state then gets no branches."""

    async def propose(self, node: Node) -> Sequence[Action]:
        """Return the state's next actions, in any order; an empty sequence if nothing is left to do."""
        ...


class Value(Protocol):
    """Rates a state. ``value`` may raise an exception; the state's value then counts as 0, and a warning is emitted."""

    async def value(self, node: Node) -> float:
        """Return a value from 0 (nothing achieved) to 1 (everything achieved)."""
        ...


class Rollout(Protocol):
    """Chooses cheaply how to continue from a state, in order to estimate the potential of the state."""

    async def choose(self, node: Node, known: Sequence[Action], random: Random) -> Action | None:
        """Return the action to execute in ``node``, or None to stop.

        ``known`` are actions that were proposed on the path to ``node`` but not taken. Implementations must use ``random`` as
        their only source of randomness.
        """
        ...


@frozen
class AsValue:
    """A user's function as a ``Value``; it may be async."""

    function: Callable[[Node], float | Awaitable[float]]

    async def value(self, node: Node) -> float:
        """Call the function with ``node`` and return its result."""
        said = self.function(node)
        return await said if inspect.isawaitable(said) else said


Valued: TypeAlias = Value | Callable[[Node], "float | Awaitable[float]"]


def valued(value: Valued) -> Value:
    """Return ``value`` as a ``Value``; a function is wrapped."""
    if hasattr(value, "value"):
        return value
    if callable(value):
        return AsValue(value)
    raise TypeError("a value must be a function of a node, or have `async value(node)`")


async def checked_value(value: Value, node: Node) -> float:
    """Return the value of ``node``. Raises ``ValueError`` unless the value is a number from 0 to 1."""
    with cancellation_as_error():
        said = await value.value(node)
    if isinstance(said, bool) or not isinstance(said, int | float) or not isfinite(said) or not 0 <= said <= 1:
        raise ValueError(f"a value must be a number from 0 to 1, not {said!r:.60}")
    return float(said)


@frozen
class Filled:
    """Rates a state by the share of ``keys`` that are not empty; None means all keys that the state declares. Calls no model."""

    keys: tuple[str, ...] | None = None

    async def value(self, node: Node) -> float:
        """Return the share; 0 if there are no keys."""
        sizes = {each.key: each.size for each in node.snapshot.declared()}
        wanted = self.keys if self.keys is not None else tuple(sizes)
        return sum(sizes.get(key, 0) > 0 for key in wanted) / len(wanted) if wanted else 0.0


@frozen
class Untaken:
    """A rule-based rollout: picks one of the proposed but untaken actions on the path, at random, weighted by confidence."""

    async def choose(self, node: Node, known: Sequence[Action], random: Random) -> Action | None:
        """Return one of ``known``; None if it is empty."""
        if not known:
            return None
        return random.choices(list(known), [action.confidence + 0.01 for action in known])[0]


# A model that rates states: it receives the question, a summary of the state, and the answer if any, and returns 0.0 to 1.0.

JUDGED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "maxLength": 2_000},
        "score": {"type": "number", "minimum": 0, "maximum": 1},
    },
    "required": ["reason", "score"],
    "additionalProperties": False,
}
"""The JSON Schema of the model's answer."""

_KEYS = 40
_SAMPLES = 5
_REASON = 300
"""Maximum characters of a plan's reason in the prompt."""
_STATE = 8_000
"""Maximum characters of the state in the prompt."""


@define
class Judged:
    """Asks ``caller``'s model (or the model named ``model``) how much of ``query`` a state has answered.

    ``spent`` should be the object that the search uses, so that its budget covers these calls. If the caller has a record, each
    judgement is stored in the record under the path to the state, and reused. The state's hash would not work as a key: the state
    stores the time of each model answer, so the hash differs when the same plans are run again.
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
        options = {"schema": JUDGED, "temperature": 0.0, "tidy": _normalised}
        named = "\n".join(action.does for action in node.path).encode("utf-8", "backslashreplace")
        number = int.from_bytes(blake3(named).digest(length=6), "big")  # from the path, so the same in every run
        text = await ask_text(self._asker, number, self.prompt(node), options, self.model)
        return float(read_json(text)["score"]) + 0.0

    def prompt(self, node: Node) -> str:
        """Return the prompt; its size does not grow with the state."""
        values = {
            "query": fenced(self.query),
            "state": fenced(_state_summary(node)),
            "plans": fenced(_plans(node)),
            "answer": fenced(node.answer[:_STATE]) if node.answer is not None else "(none yet)",
        }
        return fill(read_prompt(__package__, "value"), values)


def _normalised(text: str) -> str:
    """Return the one judgement in ``text``. Raises ``ValueError`` with a clause that explains the fault to the model."""
    found = read_object(text, ("score",))
    if isinstance(found, Unreadable):
        raise ValueError(found.reason)
    score = read_score(found.value["score"])
    if isinstance(score, str):
        raise ValueError(score)
    return json.dumps({"reason": found.value.get("reason", ""), "score": score}, ensure_ascii=False)


_PLANS = 12
"""Maximum number of plans in the prompt; the latest plans are shown."""


def _plans(node: Node) -> str:
    taken = [action for action in node.path if action.answer is None]
    lines = [
        f"{action.brief} ({clipped(action.rationale, _REASON) or 'no reason was given'})" for action in taken[-_PLANS:]
    ]
    return "\n".join(lines) or "no plan was run"


def _state_summary(node: Node) -> str:
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
