"""A client for batches: answers calls from the batches that have ended, and collects the calls that no batch has answered yet.

A run with this client under its layers fills the cache: its first pass collects all requests, a batch answers them, and the next pass
validates and caches the answers. Repeated calls, such as repairs of invalid answers, are collected for the next batch.
"""

import asyncio
import copy
from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol, Unpack

from . import BadRequest, Completion, LLMError, Options, Usage
from .batches import BatchLine
from .budget import bound_of
from .cache import request_key
from .middleware import Client, Granted, Layer, Own

__all__ = ["BatchModel", "BatchedModel", "Collected", "NotAnswered", "Open", "Unanswered"]


_TEMPORARY = frozenset((408, 409, 429))
"""Statuses below 500 of requests that may succeed later."""
_REFUSALS = frozenset((400, 404, 422))
"""Statuses with which a service may refuse a parameter."""


class BatchedModel(Protocol):
    """An adapter whose requests can be sent in batches."""

    model: str

    def batch_line(self, key: str, prompt: str, options: Options) -> Mapping[str, Any]:
        """Return the line of a batch's file for a call."""
        ...

    def batch_answer(self, status: int, body: Mapping[str, Any], options: Options) -> Completion:
        """Return the complete answer in a response of a batch; raise the matching ``LLMError`` otherwise."""
        ...

    def batch_usage(self, body: Mapping[str, Any]) -> Usage:
        """Return the tokens that a response of a batch reports."""
        ...

    def batch_refusal(self, status: int, body: Mapping[str, Any], prompt: str, options: Options) -> None:
        """If a response refuses a parameter of a request, omit this parameter from later requests."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


class Collected(LLMError):
    """Raised if a call has no answer yet. Its request is collected for the next batch; nothing was sent."""

    kind = "collected"

    def __init__(self, fault: str) -> None:
        super().__init__(f"the call waits for a batch{fault and f'; the last batch failed: {fault}'}", attempts=0)
        self.fault = fault


class NotAnswered(LLMError):
    """Raised if the batches of a run did not answer a call."""

    kind = "not_answered"


class BatchModel(Own):
    """Answers calls from batches that have ended, and collects the others in ``pending``, the lines of the next batch by key.

    ``identity`` is the model's spec, as in ``Cached``: the key of a request is its key in the cache. A pass makes all calls of a run;
    ``begin`` begins the next pass. If a pass makes a request twice, because its first answer can't be used, the second time gets the answer
    of a later batch. Requests that expired, were lost or failed for a temporary reason are collected again, and so are requests with a
    parameter that the service refused, without this parameter.

    ``bounds`` maps the keys in ``pending`` to upper bounds of their tokens. With ``is_limited``, requests without ``max_tokens`` get the
    default of a budget.
    """

    def __init__(self, model: BatchedModel, identity: str, *, is_limited: bool = False) -> None:
        self._model = model
        self._identity = identity
        self._is_limited = is_limited
        self.pending: dict[str, Mapping[str, Any]] = {}
        self.bounds: dict[str, Usage] = {}
        self._answers: dict[str, list[BatchLine]] = {}
        self._sent: dict[str, Mapping[str, Any]] = {}  # the refused requests, by key
        self._faults: dict[str, str] = {}
        self._used: Counter[str] = Counter()  # answers used in this pass, by key

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the answer that a batch gave; raise its error, or ``Collected`` if no batch has answered this call."""
        key = _key(self._identity, prompt, options).hex()
        if not key:
            raise BadRequest("the request can't be written as JSON", attempts=0)
        bound = bound_of(prompt, options)
        if self._is_limited and "max_tokens" not in options:
            options["max_tokens"] = Granted(bound.completion_tokens)
        answers = self._answers.get(key, ())
        turn = self._used[key]
        while turn < len(answers) and self._is_refused(key, answers[turn], prompt, options):
            turn += 1
        if turn < len(answers):
            self._used[key] = turn + 1
            return self._model.batch_answer(answers[turn].status, answers[turn].body, options)
        self.pending[key] = self._model.batch_line(key, prompt, options)
        self.bounds[key] = bound
        await asyncio.sleep(0)  # calls that were started together are all collected before the first of them fails
        raise Collected(self._faults.get(key, ""))

    def take(self, lines: Mapping[str, BatchLine], requests: Mapping[str, Mapping[str, Any]]) -> None:
        """Add the answers of a batch that has ended. ``requests`` are the lines of its file by key."""
        for key, request in requests.items():
            line = lines.get(key, BatchLine(key, 0, fault="the batch has no answer to it"))
            if line.status and line.status not in _TEMPORARY and line.status < 500:
                self._answers.setdefault(key, []).append(line)
                if line.status in _REFUSALS:
                    self._sent[key] = request
            else:
                self._faults[key] = line.fault or f"the status {line.status}"

    def usages(self, lines: Mapping[str, BatchLine]) -> list[Usage]:
        """Return the tokens of each answer in ``lines``."""
        return [self._model.batch_usage(line.body) for line in lines.values() if line.status == 200]

    def begin(self) -> None:
        """Begin the next pass."""
        self.pending.clear()
        self.bounds.clear()
        self._used.clear()

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()

    def _is_refused(self, key: str, line: BatchLine, prompt: str, options: Options) -> bool:
        """Return whether an answer refuses a parameter that the request would no longer have."""
        if line.status not in _REFUSALS or key not in self._sent:
            return False
        self._model.batch_refusal(line.status, line.body, prompt, options)
        return self._model.batch_line(key, prompt, options) != self._sent[key]


def _key(identity: str, prompt: str, options: Options) -> bytes:
    """Return the key of a request; b"" for a request that has none, such as a prompt with a lone surrogate."""
    try:
        return request_key(identity, prompt, options)
    except (TypeError, ValueError):
        return b""


class Open(Layer):
    """Collects the ``failures`` of a pass by key: the calls that no batch has answered, or whose answers can't be used."""

    def __init__(self, inner: Client, identity: str) -> None:
        super().__init__(inner)
        self._identity = identity
        self.failures: dict[bytes, LLMError] = {}

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the inner client's answer."""
        try:
            return await self._inner.generate(prompt, **options)
        except LLMError as error:
            if key := _key(self._identity, prompt, options):
                self.failures[key] = error
            raise


class Unanswered(Layer):
    """Fails the calls in ``failures``, which batches were asked and did not answer. All other calls are made."""

    def __init__(self, inner: Client, identity: str, failures: Mapping[bytes, LLMError]) -> None:
        super().__init__(inner)
        self._identity, self._failures = identity, failures

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the inner client's answer; raise the failure of a call that no batch has answered."""
        if self._failures and (found := self._failures.get(_key(self._identity, prompt, options))) is not None:
            error = copy.copy(found)
            if isinstance(found, Collected):
                why = found.fault or "it was requested after the last batch"
                error = NotAnswered(f"no batch has answered this call: {why}", hint="make it live with --finish-live")
            error.usage, error.cost, error.attempts = Usage(), 0.0, 0  # the batches count them
            raise error
        return await self._inner.generate(prompt, **options)
