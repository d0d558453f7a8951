"""The record of an evaluation: each answered call is saved at once, so that a resumed evaluation pays for no answer twice.

``runtime.runs.journal`` creates the folder of the run. Its records::

    {"record": "run_started", "kind": "eval", "script": the evaluation as JSON, "script_hash", "input_hash": the gold hash, ...}
    {"record": "call_done", "candidate", "repeat", "key", "text", "finish_reason", "model", "raw", "cached", "attempts", "usage", "cost"}
    {"record": "call_failed", "candidate", "repeat", "error", "attempts", "usage", "cost"}, for bad answers also "key", "text", "message"
    {"record": "candidate_done", "candidate", "items", "answered"}
    {"record": "batch", "candidate", "model", "batch_run", "number", "step", ...} (``runtime.models.cache_batches``)
    {"record": "run_finished", "status", "seconds", "usage", "cost", "calls"}

At the end, the folder has ``report.json`` and ``items.jsonl``. The records describe calls, not items, so all targets use the
same records.
"""

import json
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from attrs import define, field, frozen

from ....adapters.llm import BadAnswer, Completion, LLMError, Usage
from ....adapters.llm.cache import request_key
from ....adapters.llm.middleware import Layer
from ...models.caller import Spent
from ...runs.journal import EVAL, RunRecorder, StoredRun, begin, stored_usage

CallKey = tuple[str, int, str]
"""The name of the candidate, the number of the repeat, and the hash of the request."""


@define
class EvaluationRecorder(RunRecorder):
    """Writes the records of an evaluation, and returns the answers that an earlier process saved."""

    _calls: dict[CallKey, deque[dict[str, Any]]] = field(factory=dict, repr=False)
    _failed: dict[tuple[str, int], Spent] = field(factory=dict, repr=False)
    batches: Sequence[Mapping[str, Any]] = ()
    """The records about batches of earlier processes."""

    def recall_call(self, key: CallKey) -> Completion | BadAnswer | None:
        """Return a saved answer to this request, and remove it from the waiting answers; None if no answer is left.

        An answer in an invalid form counts as an answer, because it was paid for.
        """
        waiting = self._calls.get(key)
        return _completion(waiting.popleft()) if waiting else None

    def earlier_failures(self, candidate: str, repeat: int) -> Spent:
        """Return the cost of the failed calls of earlier processes."""
        return self._failed.get((candidate, repeat), Spent())

    def call_done(self, key: CallKey, answer: Completion) -> None:
        """Save an answer."""
        self.append(_done(key, answer))

    def call_failed(self, candidate: str, repeat: int, digest: str, error: LLMError) -> None:
        """Save the cost of a failed call.

        A resumed evaluation repeats the call, unless the model gave an answer in an invalid form; this answer is reused.
        """
        if error.attempts:
            self.append(_failed(candidate, repeat, digest, error))

    def saved(self, candidate: str, repeat: int) -> dict[CallKey, tuple[dict[str, Any], ...]]:
        """Return the saved answers of a candidate's repeat that have not been recalled, as records, for its workers."""
        return {key: tuple(kept) for key, kept in self._calls.items() if kept and key[:2] == (candidate, repeat)}

    def candidate_done(self, candidate: str, items: int, answered: int) -> None:
        """Record that the candidate has been asked for all items."""
        self.append({"record": "candidate_done", "candidate": candidate, "items": items, "answered": answered})


@define
class StoredEvaluation(StoredRun):
    """A recorded evaluation."""

    kind = EVAL
    candidates_done: dict[str, int] = field(factory=dict)
    batches: list[dict[str, Any]] = field(factory=list, repr=False)
    """The records about batches."""
    _calls: dict[CallKey, deque[dict[str, Any]]] = field(factory=dict, repr=False)
    _failed: dict[tuple[str, int], Spent] = field(factory=dict, repr=False)

    @property
    def document(self) -> dict[str, Any]:
        """The evaluation as a document, as in a ``.eval.json`` file; empty if it can't be written as a document."""
        found = json.loads(self.head["script"])
        return dict(found.get("document") or {})

    @property
    def strict_types(self) -> bool:
        """Whether answers had to match their types exactly."""
        return bool((json.loads(self.head["script"]).get("settings") or {}).get("strict_types"))

    @property
    def uses_batches(self) -> bool:
        """Whether the evaluation began with batches."""
        return bool(self.head.get("options", {}).get("batch"))

    @property
    def answered_calls(self) -> int:
        """Number of saved answers."""
        return sum(map(len, self._calls.values()))

    def resume(self, identity: str, gold_hash: str, *, force: bool = False) -> EvaluationRecorder:
        """Open the run to continue it, and return its recorder.

        Raises ``RunError`` if the target, the candidates or the gold table have changed, or if a record is damaged. With
        ``force``, changes and damage are accepted; a call is then made again if its request has changed or its record is lost.
        """
        changed = []
        if identity != self.head["script_hash"]:
            changed.append("the target, its data or the candidates changed")
        if gold_hash != self.head["input_hash"]:
            changed.append("the gold table changed")
        return self.reopen(
            lambda journal, stored: EvaluationRecorder(
                self.run_id, self.path, journal, calls=stored._calls, failed=stored._failed, batches=tuple(stored.batches)
            ),
            changed, force,
        )  # fmt: skip

    def take(self, record: dict[str, Any]) -> None:
        """Add a record. Raises ``KeyError``, ``TypeError`` or ``ValueError`` if the record has an unknown form."""
        super().take(record)
        match record["record"]:
            case "call_done" | "call_failed" if "key" in record:
                _completion(record)
                key = (str(record["candidate"]), int(record["repeat"]), str(record["key"]))
                self._calls.setdefault(key, deque()).append(record)
            case "call_failed":
                spent = self._failed.setdefault((str(record["candidate"]), int(record["repeat"])), Spent())
                spent.add(int(record["attempts"]), _usage(record), record["cost"])
            case "batch":
                if not (isinstance(record["number"], int) and isinstance(record["step"], str)):
                    raise TypeError("not a batch")
                str(record["candidate"])
                self.batches.append(record)
            case "candidate_done":
                self.candidates_done[str(record["candidate"])] = int(record["items"])
            case "run_resumed":
                self.candidates_done.clear()


load = StoredEvaluation.load


def start(
    description: Mapping[str, Any],
    identity: str,
    gold_hash: str,
    *,
    name: str,
    model: str,
    items: int,
    base: Path | None = None,
    batch: bool = False,
) -> EvaluationRecorder:
    """Create the folder of an evaluation and return its recorder. ``batch``: it makes its calls by batches. Raises ``RunError``."""
    script = json.dumps(description, ensure_ascii=False, indent=1)
    options = {"items": items, "steps": items, **({"batch": True} if batch else {})}
    return EvaluationRecorder(
        *begin(
            base, kind=EVAL, script=script, script_hash=identity, input_hash=gold_hash, model=model, name=name, options=options
        )
    )  # fmt: skip


@define
class CallFigures:
    """Totals of a candidate's calls: sent requests (``calls``), cached answers, tokens, cost in US dollars (None: unknown).

    ``reused`` counts the answers that an earlier process saved; their tokens and cost are included.
    """

    calls: int = 0
    cached: int = 0
    reused: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False
    cost: float | None = None
    seconds: float = 0.0

    @property
    def usage(self) -> Usage:
        """The tokens."""
        return Usage(self.prompt_tokens, self.completion_tokens, self.estimated)

    def add(self, calls: int, usage: Usage, cost: float | None) -> None:
        """Add a number of requests, their tokens and their cost."""
        self.calls += calls
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self.estimated = self.estimated or usage.estimated
        if cost is not None:
            self.cost = (self.cost or 0.0) + cost

    def reuse(self, kept: Completion | BadAnswer) -> None:
        """Count an answer that an earlier process saved."""
        self.reused += 1
        self.add(kept.attempts, kept.usage, kept.cost)
        self.cached += isinstance(kept, Completion) and kept.cached


class CallRecorder(Protocol):
    """Saves the calls of an evaluation: on disk (``EvaluationRecorder``), or for the driver of a worker (``CollectedCalls``)."""

    def recall_call(self, key: CallKey) -> Completion | BadAnswer | None:
        """Return a saved answer to this request; None if no answer is left."""
        ...

    def call_done(self, key: CallKey, answer: Completion) -> None:
        """Save an answer."""
        ...

    def call_failed(self, candidate: str, repeat: int, digest: str, error: LLMError) -> None:
        """Save the cost of a failed call."""
        ...


@define
class CollectedCalls:
    """The calls that a worker has made for a chunk; the driver saves and counts them with ``include``.

    ``saved`` are the answers that an earlier process saved. ``reused`` lists the requests that such an answer was used for.
    """

    saved: Mapping[CallKey, Sequence[dict[str, Any]]] = field(factory=dict)
    records: list[dict[str, Any]] = field(factory=list)
    reused: list[CallKey] = field(factory=list)
    _recalled: Counter[CallKey] = field(factory=Counter)

    def recall_call(self, key: CallKey) -> Completion | BadAnswer | None:
        """Return a saved answer to this request; None if no answer is left."""
        kept, place = self.saved.get(key, ()), self._recalled[key]
        if place >= len(kept):
            return None
        self._recalled[key] += 1
        self.reused.append(key)
        return _completion(kept[place])

    def call_done(self, key: CallKey, answer: Completion) -> None:
        """Collect an answer."""
        self.records.append(_done(key, answer))

    def call_failed(self, candidate: str, repeat: int, digest: str, error: LLMError) -> None:
        """Collect the cost of a failed call."""
        if error.attempts:
            self.records.append(_failed(candidate, repeat, digest, error))

    def returned(self) -> "CollectedCalls":
        """Return the calls without the answers that the driver has already."""
        return CollectedCalls(records=self.records, reused=self.reused)

    def include(self, figures: CallFigures, recorder: EvaluationRecorder | None) -> None:
        """Count the calls in ``figures``, and save them with ``recorder``. Called by the driver.

        If two workers used the same saved answer, it is counted once; the second use counts as a cached answer.
        """
        for record in self.records:
            figures.add(record["attempts"], _usage(record), record["cost"])
            figures.cached += record.get("cached", False)
            if recorder is not None:
                recorder.append(record)
        for key in self.reused:
            kept = None if recorder is None else recorder.recall_call(key)
            if kept is None:
                figures.cached += 1
            else:
                figures.reuse(kept)


@frozen
class CallScope:
    """The part of an evaluation that a worker's calls belong to; ``saved`` are the answers that an earlier process saved for it."""

    candidate: str
    repeat: int
    samples: int
    saved: Mapping[CallKey, Sequence[dict[str, Any]]] = field(factory=dict)

    def recorded(self, client: Any, calls: CollectedCalls, name: str = "") -> "RecordedCalls":
        """Return ``client`` with its calls collected in ``calls``; ``name`` distinguishes several models of a candidate."""
        return RecordedCalls(client, calls, CallFigures(), self.candidate, self.repeat, self.samples, name)


class RecordedCalls(Layer):
    """Returns saved answers; saves and counts new answers. A repeat asks for further samples of the same prompts.

    ``samples`` is the number of samples of one prompt that the target itself asks for. ``model`` distinguishes several models
    of one candidate ("" is its main model).
    """

    def __init__(
        self, inner: Any, recorder: CallRecorder | None, figures: CallFigures, candidate: str, repeat: int = 0, samples: int = 1,
        model: str = "",
    ) -> None:  # fmt: skip
        super().__init__(inner)
        self._recorder, self._figures = recorder, figures
        self._candidate, self._repeat, self._samples, self._model = candidate, repeat, samples, model

    async def generate(self, prompt: str, **options: Any) -> Completion:
        """Return the saved answer to this request or, without one, the answer of the inner client."""
        if self._repeat:
            options["sample"] = options.get("sample", 0) + self._repeat * self._samples
        recorder = self._recorder
        key: CallKey | None = None
        if recorder is not None:
            try:
                key = (self._candidate, self._repeat, request_key(self._model, prompt, options).hex())
            except (TypeError, ValueError):  # a lone surrogate or an invalid schema: the inner layers report the fault
                key = None
            if key is not None and (kept := recorder.recall_call(key)) is not None:
                self._figures.reuse(kept)
                if isinstance(kept, BadAnswer):
                    raise kept
                return kept
        try:
            answer = await self._inner.generate(prompt, **options)
        except LLMError as error:
            self._figures.add(error.attempts, error.usage, error.cost)
            if recorder is not None:
                recorder.call_failed(self._candidate, self._repeat, "" if key is None else key[2], error)
            raise
        self._figures.add(answer.attempts, answer.usage, answer.cost)
        self._figures.cached += answer.cached
        if recorder is not None and key is not None:
            recorder.call_done(key, answer)
        return answer

    async def aclose(self) -> None:
        """Do nothing: the inner client is shared by all repeats, and closed by its opener."""


def _done(key: CallKey, answer: Completion) -> dict[str, Any]:
    candidate, repeat, digest = key
    return {
        "record": "call_done", "candidate": candidate, "repeat": repeat, "key": digest, "text": answer.text,
        "finish_reason": answer.finish_reason, "model": answer.model, "raw": answer.raw, "cached": answer.cached,
        "repaired": answer.repaired, **_figures(answer.attempts, answer.usage, answer.cost),
    }  # fmt: skip


def _failed(candidate: str, repeat: int, digest: str, error: LLMError) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    if isinstance(error, BadAnswer) and digest:
        answer = {"key": digest, "text": error.text, "message": error.message}
    figures = _figures(error.attempts, error.usage, error.cost)
    return {
        "record": "call_failed", "candidate": candidate, "repeat": repeat, "error": error.kind, **answer, **figures,
    }  # fmt: skip


def _figures(attempts: int, usage: Usage, cost: float | None) -> dict[str, Any]:
    return {"attempts": attempts, **stored_usage(usage), "cost": cost}


def _usage(record: Mapping[str, Any]) -> Usage:
    prompt, completion = record["usage"]
    return Usage(int(prompt), int(completion), bool(record.get("estimated")))


def _completion(record: Mapping[str, Any]) -> Completion | BadAnswer:
    """Return the answer in a record or, for an answer in an invalid form, the error that was raised for it.

    Raises ``KeyError``, ``TypeError`` or ``ValueError`` if the record has an unknown form.
    """
    usage, text = _usage(record), record["text"]
    if not isinstance(text, str):
        raise TypeError("the text is not a string")
    if record["record"] == "call_failed":
        error = BadAnswer(str(record["message"]), text=text, attempts=int(record["attempts"]), usage=usage)
        error.cost = record["cost"]
        return error
    return Completion(
        text, str(record["finish_reason"]), usage, int(record["attempts"]), str(record["model"]),
        bool(record["cached"]), bool(record["repaired"]), record["cost"], str(record["raw"]),
    )  # fmt: skip
