"""One model call for a step: concurrency limit, events, the answer's type, one repair, failures as values."""

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

from attrs import define, field, frozen

from ...adapters.llm import LLM, BadAnswer, BudgetExceeded, Completion, LLMError, Notice, Usage
from ...adapters.llm.keys import mask_keys, refuse_key
from ...adapters.llm.middleware import Client, Layer, Own, Validated, as_client
from ...lang.coercion import Fit, Type, Unfit, as_type
from ...lang.diagnostic import nearest
from ...lang.literals import is_json, short
from ...lang.trees import walk
from ...lang.trees.lwt import Call, Script, Template
from ..events import AnswerRead, BudgetReached, CallFinished, CallRetried, CallStarted, Events
from ..results import NO_USAGE, Access, Failed, Outcome, Record, StepFailed, Trace, add_costs

# The prompt texts that the runtime itself adds.

_SHOWN = 600
"""Maximum code points of a bad answer in the repair prompt: enough to see the fault, too few to distract from the task."""


def wanted(kind: str | Sequence[str]) -> str:
    """Return the description of an answer of type ``kind``."""
    if not isinstance(kind, str):
        return f"exactly one of these and nothing else: {', '.join(map(short, kind))}"
    return {
        "json": "one JSON value and nothing else",
        "list": 'a JSON list, for example ["a", "b"], and nothing else',
        "int": "a whole number in digits and nothing else",
        "float": "a number in digits and nothing else",
        "bool": "true or false and nothing else",
    }.get(kind, "the text that was asked for")


def repair(prompt: str, answer: str, reason: str, kind: str | Sequence[str]) -> str:
    """Return the repair prompt: the task again, the answer, its fault, and the required form."""
    shown = answer if len(answer) <= _SHOWN else f"{answer[: _SHOWN // 2]} … {answer[-_SHOWN // 2 :]}"
    return f"{prompt}\n\nYour last answer was:\n{shown}\n\nThat can't be used: {reason}.\nAnswer with {wanted(kind)}."


HOPELESS = frozenset({"budget", "wrong_key", "quota", "model_not_found", "model", "not_configured"})
"""Kinds of failures that the next call would share, so that no further call is made."""

_SAID = 300
"""Maximum code points of the saved text of a coerced answer."""
_LONGEST = 2_000
"""Maximum code points of a client's exception message."""


def refuse_keys(script: Script) -> None:
    """Raise ``NotConfigured`` if a key is in place of a model's name: scripts are printed and saved with their runs."""
    for step in script.steps:
        for call in walk(step):
            if isinstance(call, Call):
                for name in ("model", "judge"):
                    value = call.option(name)
                    if isinstance(value, Template) and value.constant:
                        refuse_key(value.constant, os.environ)


@frozen
class Request:
    """A request: the prompt, the type of the answer, the model's name (None: the run's default), the port's options."""

    prompt: str
    kind: Type = "text"
    model: str | None = None
    options: Mapping[str, Any] = field(factory=dict)

    def digest(self) -> str:
        """Return a hash of everything that can change the answer, so without timeout and retries."""
        from blake3 import blake3

        told = {name: value for name, value in self.options.items() if name not in ("timeout", "retries")}
        canonical = json.dumps(["LLM", self.prompt, self.kind, self.model, told], sort_keys=True)
        return blake3(canonical.encode()).hexdigest(length=16)


@define
class _Spent:
    """Total cost of the calls for one request."""

    usage: Usage = NO_USAGE
    cost: float | None = None
    calls: int = 0
    attempts: int = 0

    def add(self, usage: Usage, cost: float | None, attempts: int, *, cached: bool) -> None:
        """Add an answer. Each request that was sent is a call, and so is an answer from the cache."""
        self.usage = usage if self.calls == 0 else self.usage + usage
        self.calls += max(attempts, int(cached))
        self.cost = add_costs(self.cost, cost)
        self.attempts += attempts


@define
class Caller:
    """Calls the run's models, with at most ``limit`` calls in flight over all steps."""

    llm: LLM | None
    models: Mapping[str, LLM]
    events: Events | None
    trace: Trace
    limit: int
    record: Record | None = None
    strict_types: bool = False
    """Whether a typed answer must match exactly: nothing is coerced, and no value is extracted from prose."""
    warn: Callable[[str, str], None] = lambda step, message: None
    gate: asyncio.Semaphore = field(init=False)
    """Each running call holds one slot."""
    _told: bool = field(default=False, init=False)  # whether it was reported that the run can no longer be saved

    def __attrs_post_init__(self) -> None:
        self.gate = asyncio.Semaphore(self.limit)

    async def ask(self, step: str, request: Request, item: int | None = None) -> Outcome:
        """Return the answer to ``request``, of its type; raise ``StepFailed``.

        ``output`` is the text for other prompts: the answer's text; a label; for json and list the text if it is JSON, else
        the value's JSON; for numbers and booleans their JSON.
        """
        digest = ""
        if self.trace.prompts is not None:
            self.trace.prompts[step if item is None else f"{step}[{item}]"] = request.prompt
        if self.record is not None:
            digest = request.digest()
            if self.strict_types and request.kind != "text":
                digest = f"{digest}-strict"  # answers that were coerced before are requested again
            earlier = self.record.recall(step, item, digest)
            if earlier is not None:
                return Outcome(earlier.output, earlier.value, reused=True, input_hash=digest)
        client, spent, kind = self.client(request), _Spent(), request.kind
        answer = await self._generate(client, step, request, request.prompt, item, spent)
        if kind == "text":
            output: str = answer.text
            value: Any = output
        else:
            fit = self._fit(answer, kind)
            if isinstance(fit, Unfit) and not answer.repaired:
                if self.events:
                    self.events.emit(CallRetried(step, "repair", 2, fit.reason, item))
                prompt = repair(request.prompt, answer.text, fit.reason, kind)
                answer = await self._generate(client, step, request, prompt, item, spent)
                fit = self._fit(answer, kind)
            if isinstance(fit, Unfit):
                raise self._failed(Failed("bad_answer", f"the answer does not fit: {fit.reason}", item=item), spent)
            output, value = _typed(answer.text, fit, kind)
            if fit.how is not None:
                self._note(step, item, type_written(kind), fit, output)
        return Outcome(
            output, value, spent.usage, spent.cost, spent.calls, spent.attempts, answer.finish_reason, False, digest,
            raw=answer.raw,
        )  # fmt: skip

    def _note(self, step: str, item: int | None, kind: str, fit: Fit, output: str) -> None:
        """Record how a typed answer was read, and report it if it was coerced."""
        if fit.coerced:
            self.note(step, item, kind, fit.how or "", fit.coerced, output)
        else:
            self.trace.note(Access(step, f"type={kind}", fit.how or ""))

    def note(self, step: str, item: int | None, kind: str, how: str, said: str, output: str) -> None:
        """Record that ``said`` was coerced to ``output``, and report it."""
        said, output = (text if len(text) <= _SAID else f"{text[:_SAID]}…" for text in (said, output))
        self.trace.note(Access(step, f"type={kind}", how, said, item, output))
        if self.events:
            self.events.emit(AnswerRead(step, kind, how, said, output, item))

    def _fit(self, answer: Completion, kind: Type) -> Fit | Unfit:
        """Return the value of a typed answer; if a layer has already coerced it, together with the raw text."""
        fit = as_type(answer.text, kind, strict=self.strict_types)
        if answer.raw and isinstance(fit, Fit):
            came = as_type(answer.raw, kind, strict=self.strict_types)
            same = isinstance(came, Fit) and came.value == fit.value
            fit = came if same else Fit(fit.value, "embedded", answer.raw)
        return fit

    def item_done(self, step: str, item: int, outcome: Outcome, seconds: float) -> None:
        """Save the answer for one of EACH's items, if the run is saved."""
        if self.record is not None:
            self.record.item_done(step, item, outcome, seconds)
            self.tell_damage()

    def tell_damage(self) -> None:
        """Warn once as soon as the run can't be saved: its user may want to stop it then."""
        if self.record is not None and self.record.damage and not self._told:
            self._told = True
            self.warn("", self.record.damage)

    def client(self, request: Request) -> LLM:
        """Return the model for the request. Raises ``StepFailed``."""
        if request.model is None:
            if self.llm is None:
                raise StepFailed(Failed("not_configured", "the run has no model to ask", "pass one as llm="))
            return self.llm
        client = self.models.get(request.model)
        if client is None:
            like = nearest(request.model, self.models)
            offered = f"there are: {', '.join(sorted(self.models))}" if self.models else "the host offers none by name"
            hint = f"did you mean {like!r}?" if like else offered
            raise StepFailed(
                Failed("model", f"no model is offered under the name {mask_keys(request.model, typed=True)!r}", hint)
            )
        return client

    async def _generate(
        self, client: LLM, step: str, request: Request, prompt: str, item: int | None, spent: _Spent
    ) -> Completion:
        """Send one prompt and return a complete answer; any error becomes a ``StepFailed``."""
        options = self._options(step, request, item)
        began, failed, is_sent = 0.0, None, True
        await self.gate.acquire()
        try:
            if self.events:
                self.events.emit(CallStarted(step, prompt, item))
                began = perf_counter()
            answer = await client.generate(prompt, **options)
            if type(answer) is not Completion:
                answer = _as_completion(answer)
            text = answer.text
            if not text or text.isspace():
                failed = Failed("empty", "the model answered nothing")
            elif answer.finish_reason == "length":
                failed = Failed("truncated", "the answer is cut off at the token limit", "raise max_tokens=")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            answer, failed = Completion(""), Failed("error", "the client cancelled its own call")
        except LLMError as error:
            answer = Completion("", usage=error.usage, attempts=error.attempts, cost=error.cost)
            failed = Failed(error.kind, error.message, error.hint)
            if isinstance(error, BudgetExceeded):
                is_sent = error.attempts > 0
                if self.events:
                    self.events.emit(BudgetReached(step, error.message, error.limit))
        except TimeoutError as error:
            answer, failed = Completion(""), Failed("timeout", str(error) or "the call took too long")
        except Exception as error:  # a client may raise anything; it fails its step, not the run
            answer, failed = Completion(""), Failed("error", f"{type(error).__name__}: {error}"[:_LONGEST])
        finally:
            self.gate.release()
        if is_sent:  # a call rejected by the budget was not sent
            spent.add(answer.usage, answer.cost, answer.attempts, cached=answer.cached)
        if self.events:
            self.events.emit(
                CallFinished(
                    step, answer.text, answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.cost,
                    answer.cached, perf_counter() - began, failed.kind if failed else "", item, answer.attempts,
                )
            )  # fmt: skip
        if failed is not None:
            raise self._failed(failed, spent)
        return answer

    def _failed(self, failed: Failed, spent: _Spent) -> StepFailed:
        return StepFailed(failed, usage=spent.usage, cost=spent.cost, calls=spent.calls)

    def _options(self, step: str, request: Request, item: int | None) -> Any:
        """Return the options for the port. ``notify`` is included only if there are subscribers."""
        if isinstance(request.kind, str) and not self.events and not self.strict_types:
            return request.options
        options = dict(request.options)
        if self.strict_types:
            options["strict_types"] = True
        if not isinstance(request.kind, str):
            options["choices"] = list(request.kind)
        if events := self.events:

            def notify(notice: Notice) -> None:
                events.emit(CallRetried(step, notice.kind, notice.attempt, notice.reason, item))

            options["notify"] = notify
        return options


def _as_completion(answer: Any) -> Completion:
    if isinstance(answer, Completion):
        return answer
    if isinstance(answer, str):
        return Completion(answer)
    raise BadAnswer(f"generate() returned {type(answer).__name__}, not a Completion or a str")


def type_written(kind: Type) -> str:
    """Return a type in script notation."""
    return kind if isinstance(kind, str) else " | ".join(json.dumps(label, ensure_ascii=False) for label in kind)


def _typed(text: str, fit: Fit, kind: Type) -> tuple[str, Any]:
    """Return output text and value of a valid answer."""
    if not isinstance(kind, str):
        return fit.value, fit.value
    if kind in ("json", "list") and is_json(text):
        return text, fit.value
    return json.dumps(fit.value, ensure_ascii=False), fit.value


# The total cost of calls, counted when they are sent, including failed and cancelled ones.


@define
class Spent:
    """Requests sent, tokens, US dollars. A cancelled request counts as one."""

    calls: int = 0
    usage: Usage = NO_USAGE
    cost: float | None = None

    def add(self, calls: int, usage: Usage, cost: float | None) -> None:
        """Add further costs."""
        self.calls += calls
        self.usage += usage
        self.cost = add_costs(self.cost, cost)


class Counted(Layer):
    """Counts the requests of a call in ``tally``, an additional option.

    ``own``: whether the client is one of this project's, whose ``BudgetExceeded`` excludes the request that was not sent; for
    a custom client, one is subtracted.
    """

    def __init__(self, inner: Client, own: bool) -> None:
        super().__init__(inner)
        self._unsent = 0 if own else 1

    async def generate(self, prompt: str, **options: Any) -> Completion:
        """Return the inner client's answer."""
        tally: Spent = options.pop("tally")
        tally.calls += 1
        try:
            answer = await self._inner.generate(prompt, **options)
        except LLMError as error:
            tally.calls += error.attempts - 1 - (self._unsent if isinstance(error, BudgetExceeded) else 0)
            raise
        tally.calls += answer.attempts - 1
        return answer


def checked(client: Any) -> Counted:
    """Return ``client`` (as ``as_client`` accepts it) with its requests counted and its answers checked against their schema."""
    return Counted(Validated(as_client(client)), isinstance(client, Own))
