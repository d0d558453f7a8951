"""Asking a model on behalf of a command: many prompts, a few at a time, metered, stopped when asking on makes no sense."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from attrs import define, evolve, field, frozen

from ....adapters.llm import LLM, Completion, LLMError, Usage
from ....lang.coercion import Type
from ...events import CallRetried
from ...models.caller import HOPELESS, Caller, Request
from ...results import Failed, StepFailed, Trace, add_costs
from ..records import ExecutionResult
from ..session import Session

__all__ = ["MOST_RECALLED", "Answer", "Asker", "Unanswered"]

MOST_RECALLED = 10_000
"""Answers of runs with open items that a session keeps; the oldest go first."""


@frozen
class Answer:
    """A whole answer, and how it came to be: what its evidence says.

    ``repaired``: a layer below asked for a repair already, or gave it up after one. ``free``: it is an answer that was there already,
    in a cache or from the run before.
    """

    text: str
    model: str
    prompt_hash: str
    at: str
    repaired: bool = False
    free: bool = False

    def evidence(self, temperature: Any, shown: Sequence[Any], cited: Sequence[Any]) -> dict[str, Any]:
        """Return the piece of evidence for something that this answer says (``adapters.state.Evidence``)."""
        return {
            "kind": "model", "model": self.model, "temperature": temperature, "prompt_hash": self.prompt_hash,
            "at": self.at, "shown": list(shown), "cited": list(cited),
        }  # fmt: skip


class Unanswered(Exception):
    """There is no usable answer. ``answer`` is one that a layer below refused, where one came: a part of it may fit."""

    def __init__(self, failed: Failed, answer: Answer | None = None) -> None:
        super().__init__(failed.message)
        self.failed = failed
        self.answer = answer


@define
class _Noted:
    """A client that notes what came back, for the meter and the evidence: a ``Caller`` passes on the text alone.

    ``recalled`` answers the first request instead of the model. The client below records it like any other answer, because a replay
    has nothing but that record.
    """

    inner: LLM
    completion: Completion | None = None
    unfit: str = ""
    cached: int = 0
    recalled: Completion | None = None

    async def generate(self, prompt: str, **options: Any) -> Completion:
        self.completion, self.unfit = None, ""
        recalled, self.recalled = self.recalled, None
        try:
            if recalled is None:
                answer = await self.inner.generate(prompt, **options)
            else:
                answer = evolve(recalled, cached=True)
                record = getattr(self.inner, "record", None)  # a client without a state has none
                if record is not None:
                    record(prompt, answer, options)
        except LLMError as error:
            text = getattr(error, "text", "")
            self.unfit = text if error.kind == "bad_answer" and isinstance(text, str) else ""
            raise
        if isinstance(answer, str):  # a client of the host's own may answer in plain text
            answer = Completion(answer)
        if isinstance(answer, Completion):
            self.completion = answer
            self.cached += answer.cached
        return answer


@define
class Asker:
    """Asks the model of the plan for one command. What it cost is in ``calls``, ``usage``, ``cost`` and ``cached``.

    The temperature is 0 unless it was SET: the same question has the same answer as far as the model can help it.
    """

    session: Session
    calls: int = 0
    usage: Usage = field(factory=Usage)
    cost: float | None = None
    cached: int = 0
    stopped: Failed | None = None
    _answers: dict[Any, tuple[Answer, Completion]] = field(factory=dict, init=False)
    _options: dict[str, Any] = field(init=False)
    _model: str | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        options = dict(self.session.options)
        named = options.pop("model", None)
        self._model = named if isinstance(named, str) else None
        options.setdefault("temperature", 0.0)
        self._options = options

    @property
    def temperature(self) -> Any:
        """The temperature that is asked for."""
        return self._options["temperature"]

    async def ask(self, prompt: str, item: int | None = None, *, kind: Type = "text", **options: Any) -> Answer:
        """Return one answer; raise ``Unanswered``. After a failure that others would share, nothing more is asked."""
        key = (prompt, repr(kind), repr(self._model), repr(self._options))
        recalled: tuple[Answer, Completion] | None = self.session.recalled.get(key)
        if self.stopped is not None and recalled is None:
            raise Unanswered(self.stopped)
        session, name = self.session, self._model
        client = session.llm if name is None else session.models.get(name)
        noted = None if client is None else _Noted(client, recalled=None if recalled is None else recalled[1])
        models = {**session.models, name: noted} if name is not None and noted is not None else session.models
        caller = Caller(noted if name is None else None, models, session.events, Trace(), 1)
        request = Request(prompt, kind, name, {**self._options, **options})
        try:
            outcome = await caller.ask(session.label, request, item)
        except StepFailed as failed:
            self._spent(failed.calls, failed.usage, failed.cost, noted)
            if failed.failed.kind in HOPELESS:
                self.stopped = failed.failed
            text = noted.unfit if noted is not None else ""
            answer = evolve(self._answer(text, prompt, noted), repaired=True) if text else None
            raise Unanswered(failed.failed, answer) from None
        self._spent(outcome.calls, outcome.usage, outcome.cost, noted)
        answer = self._answer(outcome.output, prompt, noted)
        if recalled is not None and answer.free:
            answer = evolve(answer, at=recalled[0].at)
        if noted is not None and noted.completion is not None:
            self._answers[key] = (answer, noted.completion)
        return answer

    def settle(self, whole: bool) -> None:
        """Keep what was answered for the next run of the same command if items are open still; forget it if none is."""
        for key, answer in self._answers.items():
            if whole:
                self.session.recalled.pop(key, None)
            else:
                self.session.recalled[key] = answer
        while len(self.session.recalled) > MOST_RECALLED:
            del self.session.recalled[next(iter(self.session.recalled))]

    def metered(self, result: ExecutionResult) -> ExecutionResult:
        """Return ``result`` with what was asked so far."""
        return evolve(
            result, calls=self.calls, usage=self.usage, cost=self.cost, cached=self.cached, used="model"
        )  # fmt: skip

    def retried(self, reason: str, item: int | None = None) -> None:
        """Tell whoever listens that a question is asked once more."""
        if self.session.events:
            self.session.events.emit(CallRetried(self.session.label, "repair", 2, reason, item))

    def _answer(self, text: str, prompt: str, noted: _Noted | None) -> Answer:
        from blake3 import blake3

        completion = noted.completion if noted is not None else None
        model = (completion.model if completion is not None else "") or self._model or ""
        return Answer(
            text, model, blake3(prompt.encode("utf-8", "replace")).hexdigest(length=16),
            datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            completion is not None and completion.repaired, completion is not None and completion.cached,
        )  # fmt: skip

    def _spent(self, calls: int, usage: Usage, cost: float | None, noted: _Noted | None) -> None:
        self.calls += calls
        self.usage += usage
        self.cost = add_costs(self.cost, cost)
        self.cached += noted.cached if noted is not None else 0

    async def each(self, count: int, work: Callable[[int], Awaitable[None]]) -> None:
        """Do ``work(0)`` to ``work(count - 1)``, at most ``max_concurrency`` at once. Cancelled, it leaves nothing under way."""
        indices = iter(range(count))

        async def worker() -> None:
            for index in indices:
                await work(index)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(count, max(1, self.session.max_concurrency))):
                group.create_task(worker())
