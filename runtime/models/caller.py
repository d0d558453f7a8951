"""Calls a model for a step: limits concurrency, emits events, checks the answer's type, and repairs an invalid answer once."""

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

# The texts that the runtime itself adds to prompts.

_SHOWN = 600
"""Maximum code points of an invalid answer in the repair prompt: enough to see the fault, too few to distract from the task."""


def answer_form(kind: str | Sequence[str]) -> str:
    """Return a description, for a prompt, of an answer of type ``kind``."""
    if not isinstance(kind, str):
        return f"exactly one of these and nothing else: {', '.join(map(short, kind))}"
    return {
        "json": "one JSON value and nothing else",
        "list": 'a JSON list, for example ["a", "b"], and nothing else',
        "int": "a whole number in digits and nothing else",
        "float": "a number in digits and nothing else",
        "bool": "true or false and nothing else",
    }.get(kind, "the text that was asked for")


def repair_prompt(prompt: str, answer: str, reason: str, kind: str | Sequence[str]) -> str:
    """Return the repair prompt: the original prompt, the invalid answer, its fault, and the required form."""
    shown = answer if len(answer) <= _SHOWN else f"{answer[: _SHOWN // 2]} … {answer[-_SHOWN // 2 :]}"
    return (
        f"{prompt}\n\nYour last answer was:\n{shown}\n\nThat can't be used: {reason}.\nAnswer with {answer_form(kind)}."
    )


HOPELESS = frozenset({"budget", "wrong_key", "quota", "model_not_found", "model", "not_configured"})
"""Kinds of failures that the next call would have too, so that no further call is made."""

_SAID = 300
"""Maximum code points that are saved of a coerced answer's text."""
_LONGEST = 2_000
"""Maximum code points of a message from an exception that a client raised."""


def refuse_keys(script: Script) -> None:
    """Raise ``NotConfigured`` if a script has a key in place of a model's name: scripts are printed and saved with their runs."""
    for step in script.steps:
        for call in walk(step):
            if isinstance(call, Call):
                for name in ("model", "judge"):
                    value = call.option(name)
                    if isinstance(value, Template) and value.constant:
                        refuse_key(value.constant, os.environ)


@frozen
class Request:
    """A request: the prompt, the type of the answer, the model's name (None: the run's default), the options for the LLM port."""

    prompt: str
    kind: Type = "text"
    model: str | None = None
    options: Mapping[str, Any] = field(factory=dict)

    def digest(self) -> str:
        """Return a hash of everything that can change the answer; the options timeout and retries are not included."""
        from blake3 import blake3

        told = {name: value for name, value in self.options.items() if name not in ("timeout", "retries")}
        canonical = json.dumps(["LLM", self.prompt, self.kind, self.model, told], sort_keys=True)
        return blake3(canonical.encode()).hexdigest(length=16)


@define
class Spent:
    """The account of calls: requests sent, tokens, US dollars. A cancelled request or an answer from the cache counts as one call."""

    calls: int = 0
    usage: Usage = NO_USAGE
    cost: float | None = None
    attempts: int = 0

    def add(self, calls: int, usage: Usage, cost: float | None, attempts: int = 0) -> None:
        """Add further costs."""
        self.calls += calls
        self.usage += usage
        self.cost = add_costs(self.cost, cost)
        self.attempts += attempts

    def include(self, other: "Spent | Outcome | StepFailed") -> None:
        """Add the costs of another account, an outcome or a failure."""
        attempts = 0 if isinstance(other, StepFailed) else other.attempts
        self.add(other.calls, other.usage, other.cost, attempts)


@define
class Caller:
    """Calls the run's models, with at most ``limit`` calls running at once over all steps."""

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
        """Return the answer to ``request``, converted to the requested type. Raises ``StepFailed``.

        ``output`` is the text for other prompts. For text, it is the answer's text, and for a choice, the label. For json and list,
        it is the answer's text if that is JSON, else the value as JSON. For numbers and booleans, it is the value as JSON.
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
        client, spent, kind = self.client(request), Spent(), request.kind
        answer = await self._generate(client, step, request, request.prompt, item, spent)
        if kind == "text":
            output: str = answer.text
            value: Any = output
        else:
            fit = self._fit(answer, kind)
            if isinstance(fit, Unfit) and not answer.repaired:
                if self.events:
                    self.events.emit(CallRetried(step, "repair", 2, fit.reason, item))
                prompt = repair_prompt(request.prompt, answer.text, fit.reason, kind)
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
        """Record how a typed answer was read. If the answer was coerced, also emit an event."""
        if fit.coerced:
            self.note(step, item, kind, fit.how or "", fit.coerced, output)
        else:
            self.trace.note(Access(step, f"type={kind}", fit.how or ""))

    def note(self, step: str, item: int | None, kind: str, how: str, said: str, output: str) -> None:
        """Record that ``said`` was coerced to ``output``, and emit an event."""
        said, output = (text if len(text) <= _SAID else f"{text[:_SAID]}…" for text in (said, output))
        self.trace.note(Access(step, f"type={kind}", how, said, item, output))
        if self.events:
            self.events.emit(AnswerRead(step, kind, how, said, output, item))

    def _fit(self, answer: Completion, kind: Type) -> Fit | Unfit:
        """Return the value of a typed answer. If a layer has already coerced the answer, the result also has the raw text."""
        fit = as_type(answer.text, kind, strict=self.strict_types)
        if answer.raw and isinstance(fit, Fit):
            came = as_type(answer.raw, kind, strict=self.strict_types)
            same = isinstance(came, Fit) and came.value == fit.value
            fit = came if same else Fit(fit.value, "embedded", answer.raw)
        return fit

    def item_done(self, step: str, item: int, outcome: Outcome, seconds: float) -> None:
        """Save the answer for one item of EACH, if the run is saved."""
        if self.record is not None:
            self.record.item_done(step, item, outcome, seconds)
            self.tell_damage()

    def tell_damage(self) -> None:
        """Warn once if the run can no longer be saved, because the user may then want to stop the run."""
        if self.record is not None and self.record.damage and not self._told:
            self._told = True
            self.warn("", self.record.damage)

    def client(self, request: Request) -> LLM:
        """Return the model for the request. Raises ``StepFailed``."""
        if request.model is None:
            if self.llm is None:
                raise StepFailed(Failed("not_configured", "the run has no model", "pass one as llm="))
            return self.llm
        client = self.models.get(request.model)
        if client is None:
            like = nearest(request.model, self.models)
            offered = (
                f"the models are {', '.join(sorted(self.models))}" if self.models else "the run has no named models"
            )
            hint = f"did you mean {like!r}?" if like else offered
            raise StepFailed(Failed("model", f"unknown model {mask_keys(request.model, typed=True)!r}", hint))
        return client

    async def _generate(
        self, client: LLM, step: str, request: Request, prompt: str, item: int | None, spent: Spent
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
                failed = Failed("empty", "the answer is empty")
            elif answer.finish_reason == "length":
                failed = Failed("truncated", "the answer was cut off at the token limit", "raise max_tokens=")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            answer, failed = Completion(""), Failed("error", "the client cancelled the call")
        except LLMError as error:
            answer = Completion("", usage=error.usage, attempts=error.attempts, cost=error.cost)
            failed = Failed(error.kind, error.message, error.hint)
            if isinstance(error, BudgetExceeded):
                is_sent = error.attempts > 0
                if self.events:
                    self.events.emit(BudgetReached(step, error.message, error.limit))
        except TimeoutError as error:
            answer, failed = Completion(""), Failed("timeout", str(error) or "the call took too long")
        except Exception as error:  # a client may raise anything; the step fails, not the run
            answer, failed = Completion(""), Failed("error", f"{type(error).__name__}: {error}"[:_LONGEST])
        finally:
            self.gate.release()
        if is_sent:  # a call rejected by the budget was not sent
            calls = max(answer.attempts, int(answer.cached))
            spent.add(calls, answer.usage, answer.cost, answer.attempts)
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

    def _failed(self, failed: Failed, spent: Spent) -> StepFailed:
        return StepFailed(failed, usage=spent.usage, cost=spent.cost, calls=spent.calls)

    def _options(self, step: str, request: Request, item: int | None) -> Any:
        """Return the options for the LLM port. ``notify`` is included only if there are subscribers."""
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
    """Return the output text and the value of a valid answer."""
    if not isinstance(kind, str):
        return fit.value, fit.value
    if kind in ("json", "list") and is_json(text):
        return text, fit.value
    return json.dumps(fit.value, ensure_ascii=False), fit.value


class Counted(Layer):
    """Counts the requests of each call when they are sent: in ``tally`` or, if ``tally`` is None, in the additional option ``tally``.

    ``own``: whether the client belongs to this project. Its ``BudgetExceeded`` does not count the request that was not sent; from the
    count of a custom client, one request is subtracted.
    """

    def __init__(self, inner: Client, own: bool, tally: Spent | None = None) -> None:
        super().__init__(inner)
        self._unsent = 0 if own else 1
        self._tally = tally

    async def generate(self, prompt: str, **options: Any) -> Completion:
        """Return the inner client's answer."""
        tally: Spent = options.pop("tally") if self._tally is None else self._tally
        tally.calls += 1
        try:
            answer = await self._inner.generate(prompt, **options)
        except LLMError as error:
            tally.calls += error.attempts - 1 - (self._unsent if isinstance(error, BudgetExceeded) else 0)
            raise
        tally.calls += answer.attempts - 1
        return answer


def counted(client: Any, *layers: Callable[[Client], Client], tally: Spent | None = None) -> Counted:
    """Return ``client`` (anything that ``as_client`` accepts) inside ``layers``, the innermost layer first, inside ``Counted``."""
    inner: Client = as_client(client)
    for layer in layers:
        inner = layer(inner)
    return Counted(inner, isinstance(client, Own), tally)


@define
class Losses:
    """Failures that the next call would have too: one failure for each model name (None: the run's model), and the exhausted budget."""

    models: dict[str | None, Failed] = field(factory=dict)
    budget: Failed | None = None

    def of(self, model: str | None) -> Failed | None:
        """Return the reason why ``model`` can't be called, or None."""
        return self.budget or self.models.get(model)

    def add(self, model: str | None, failed: Failed) -> None:
        """Save a failure of ``model`` if later calls would fail in the same way."""
        if failed.kind == "budget":
            self.budget = self.budget or failed
        elif failed.kind in HOPELESS:
            self.models.setdefault(model, failed)


@define
class Asker:
    """Asks a run's models: looks the answer up in the run's record, calls the model, counts the cost and records the answer.

    Answers, rankings, compilations, questions and extractions use this class. ``layers`` wrap the client of each model. ``spent`` is
    the cost of all calls, including cancelled calls. ``losses`` collects failures that later calls would have too; a model with such
    a failure is not called again. If ``losses`` is None, the model is called again.
    """

    caller: Caller
    step: str
    events: Events | None
    spent: Spent = field(factory=Spent)
    losses: Losses | None = field(factory=Losses)
    layers: Sequence[Callable[[Client], Client]] = (Validated,)
    strict_types: bool = False
    _callers: dict[str | None, Caller] = field(factory=dict, init=False)

    async def ask(
        self, item: int, prompt: str, options: Mapping[str, Any], digest: Callable[[], str] = str, *, model: str | None = None,
        step: str | None = None, recorded_item: int | None = None, value: Callable[[], Any] | None = None,
        round: Spent | None = None,
    ) -> Outcome:  # fmt: skip
        """Return the answer. Raises ``StepFailed``. The cost is added to ``spent`` and to ``round``.

        ``item`` is the number of the call in events; ``recorded_item`` is the number in the record (None: the same number). If ``step``
        is None, the asker's ``step`` is used. ``digest`` returns a hash of everything that can change the answer. ``value`` returns
        the value to record (None: the answer's text is recorded).
        """
        record, kept_as = self.caller.record, item if recorded_item is None else recorded_item
        step = self.step if step is None else step
        input_hash = digest() if record is not None else ""
        if record is not None and (earlier := record.recall(step, kept_as, input_hash)) is not None:
            return earlier.again(input_hash)
        if self.losses is not None and (lost := self.losses.of(model)) is not None:
            raise StepFailed(Failed(lost.kind, f"not called: {lost.message}", lost.hint))
        tally, began = Spent(), perf_counter()
        try:
            request = Request(prompt, options={**options, "tally": tally})
            outcome = await self._caller(model).ask(step, request, item)
            tally.add(0, outcome.usage, outcome.cost)
        except StepFailed as error:
            tally.add(0, error.usage, error.cost)
            if self.losses is not None:
                self.losses.add(model, error.failed)
            raise
        finally:
            self.spent.include(tally)
            if round is not None:
                round.include(tally)
        if record is not None:
            kept = outcome.output if value is None else value()
            paid = Outcome(
                outcome.output, kept, tally.usage, tally.cost, tally.calls, tally.calls, input_hash=input_hash
            )
            self.caller.item_done(step, kept_as, paid, perf_counter() - began)
        return outcome

    def _caller(self, model: str | None) -> Caller:
        """Return a caller for ``model`` only; its calls count towards the run's limit on concurrent calls. Raises ``StepFailed``."""
        if model not in self._callers:
            run = self.caller
            client = counted(run.client(Request("", model=model)), *self.layers)
            made = Caller(client, {}, self.events, run.trace, run.limit, strict_types=self.strict_types, warn=run.warn)
            made.gate = run.gate
            self._callers[model] = made
        return self._callers[model]
