"""A writer and a judge in one client, for tests of iterative answers: what each says is a list, or a function of its prompt."""

import asyncio
import copy
import json
from collections.abc import Callable, Sequence
from typing import Any

from knotwork.adapters.llm import Completion, Usage
from knotwork.adapters.llm.middleware import Own
from knotwork.runtime.answers.answer_results import Answered, AnswerRequest
from knotwork.runtime.answers.service import answer
from knotwork.runtime.events import Event, Events
from knotwork.runtime.models.caller import Caller
from knotwork.runtime.results import Trace

Said = Any
Saying = Sequence[Said] | Callable[[str], Said]


def evaluation(score: Any, *suggestions: str, reason: str = "so it is", meets: Any = None, **more: Any) -> str:
    """Return a judge's answer."""
    whole = type(score) is int  # in tenths, so that tests are short to read
    told = {
        "evaluation_reasoning": reason,
        "score": score / 10 if whole else score,
        "meets_criteria": meets,
        "improvement_suggestions": suggestions,
    }
    if meets is None:
        told["meets_criteria"] = not isinstance(score, str) and score >= (5 if whole else 0.5)
    return json.dumps({**told, **more})


_FOR_EVER = 3600.0


class Model(Own):
    """Writes what ``writes`` says and judges as ``judges`` says, each in the order of its calls, the last for ever; exceptions are
    raised. ``wrote`` and ``judged`` are the calls: prompt and options. From call ``stuck_at`` on (0: never) it does not answer.
    """

    def __init__(
        self, writes: Saying = ("an answer",), judges: Saying = (), delay: float = 0.0, cost: float | None = None
    ) -> None:
        self._says = {"write": writes, "judge": judges}
        self.wrote: list[tuple[str, dict[str, Any]]] = []
        self.judged: list[tuple[str, dict[str, Any]]] = []
        self.delay, self.cost = delay, cost
        self.stuck_at = 0
        self.now = self.most = 0
        self.closed = False

    @property
    def calls(self) -> int:
        return len(self.wrote) + len(self.judged)

    async def generate(self, prompt: str, **options: Any) -> Completion:
        judging = "score" in options.get("schema", {}).get("properties", {})
        calls = self.judged if judging else self.wrote
        says = self._says["judge" if judging else "write"]
        turn = len(calls)
        calls.append((prompt, options))
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(_FOR_EVER if self.stuck_at and self.calls >= self.stuck_at else self.delay)
        finally:
            self.now -= 1
        said = says(prompt) if callable(says) else says[min(turn, len(says) - 1)]
        if isinstance(said, Exception):
            raise copy.copy(said)
        if isinstance(said, Completion):
            return said
        text = said if isinstance(said, str) else evaluation(said, f"better than {said}")
        return Completion(text, usage=Usage(10, 5), cost=self.cost)

    async def aclose(self) -> None:
        self.closed = True


def caller_of(client: Any, events: Events | None = None, record: Any = None, **models: Any) -> Caller:
    """Return a caller of ``client``, and of others by name."""
    return Caller(client, models, events, Trace(), 8, record)


def answered(client: Any, request: AnswerRequest | None = None, **options: Any) -> Answered:
    """Answer ``request`` with ``client``; what ``AnswerRequest`` takes may be given by name instead."""
    named = {name: options.pop(name) for name in _REQUEST if name in options}
    asked = request or AnswerRequest(**{"instruct": "Explain it.", "eval_crit": "It is clear.", **named})
    caller = options.pop("caller", None) or caller_of(client, **options.pop("models", {}))
    return asyncio.run(answer(asked, caller, **options))


_REQUEST = (
    "instruct", "resp_format", "eval_crit", "iter_max", "score_threshold", "attempts", "judges", "checks", "template",
)  # fmt: skip


def heard(events: Events) -> list[Event]:
    """Return the list that the events are put into."""
    told: list[Event] = []
    events.subscribe(told.append)
    return told
