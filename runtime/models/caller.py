"""Calls a model for a step: limits concurrency, emits events, checks the answer's type, and repairs an invalid answer once."""

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from time import perf_counter
from typing import Any

from attrs import define, field, frozen

from ...adapters.llm import LLM, BadAnswer, BudgetExceeded, Completion, LLMError, Notice, Usage, with_usage
from ...adapters.llm.answers import without_thoughts
from ...adapters.llm.conversation import refusal
from ...adapters.llm.keys import mask_keys, refuse_key
from ...adapters.llm.middleware import Client, Layer, Own, Validated, as_client, model_spec, with_floats
from ...lang.coercion import Fit, Type, Unfit
from ...lang.diagnostic import nearest
from ...lang.literals import is_json
from ...lang.thoughts import answer_after_thoughts
from ...lang.trees.lwt import Script, Template
from ..events import AnswerRead, BudgetReached, CallFinished, CallRetried, CallStarted, Events, next_call
from ..results import NO_USAGE, Access, Failed, Outcome, Record, StepFailed, Trace, add_costs, unasked
from .answer_shape import Shape, shape_of
from .shown_answer import ShownAnswer

# The text that the runtime itself adds to prompts.

_SHOWN = 600
"""Maximum code points of an invalid answer in the repair prompt: enough to see the fault, too few to distract from the task."""


def repair_prompt(prompt: str, answer: str, reason: str, words: str) -> str:
    """Return the repair prompt: the original prompt, the invalid answer, its fault, and the form in ``words``."""
    shown = answer if len(answer) <= _SHOWN else f"{answer[: _SHOWN // 2]} … {answer[-_SHOWN // 2 :]}"
    return f"{prompt}\n\nYour last answer was:\n{shown}\n\nThat can't be used: {reason}.\nAnswer with {words}."


HOPELESS = frozenset({"budget", "wrong_key", "quota", "model_not_found", "model", "not_configured"})
"""Kinds of failures that would also occur in the next call. After such a failure, no further call is made."""

_SHAPED = frozenset(("schema", "choices", "tools"))
"""Options with which a layer takes the value from the answer. Without them, ``raw`` differs from the text by the thoughts only."""
_SAID = 300
"""Maximum code points to save from the text of a coerced answer."""
_LONGEST = 2_000
"""Maximum code points of the message of an exception that a client raised."""


def refuse_keys(script: Script) -> None:
    """Raise ``NotConfigured`` if a script has a key instead of a model's name, because scripts are printed and saved with their runs."""
    for _, call in script.calls:
        for option in call.options:
            if option.name in ("model", "judge") and isinstance(option.value, Template) and option.value.constant:
                refuse_key(option.value.constant, os.environ)


@frozen(slots=False)
class Request:
    """A request: the prompt, the type of the answer, the model's name (None: the run's default), and the options for the LLM port."""

    prompt: str
    kind: Type = "text"
    model: str | None = None
    options: Mapping[str, Any] = field(factory=dict)
    shape: Shape | None = None
    """The shape of the answer; None: the one that ``kind`` alone determines."""
    is_shown: bool = False
    """Whether a plain text may be shown to the reader while it arrives."""

    @property
    def form(self) -> Shape:
        """The shape of the answer."""
        return self.shape or shape_of(self.kind)

    def digest(self) -> str:
        """Return a hash of everything that can change the answer; the options timeout and retries are not included."""
        from blake3 import blake3

        told = with_floats({name: value for name, value in self.options.items() if name not in ("timeout", "retries")})
        if "images" in told:
            told["images"] = [image.digest for image in told["images"]]
        if self.shape is not None and self.shape.is_checked:
            told["schema"] = self.shape.schema
        canonical = json.dumps(["LLM", self.prompt, self.kind, self.model, told], sort_keys=True)
        return blake3(canonical.encode()).hexdigest(length=16)


@define
class Spent:
    """The cost of calls: requests sent, tokens, US dollars. A cancelled request or an answer from the cache counts as one call."""

    calls: int = 0
    usage: Usage = NO_USAGE
    cost: float | None = None
    attempts: int = 0

    def add(self, calls: int, usage: Usage, cost: float | None, attempts: int = 0) -> None:
        """Add further costs."""
        self.calls += calls
        self.usage = usage if self.usage is NO_USAGE else self.usage + usage
        self.cost = add_costs(self.cost, cost)
        self.attempts += attempts

    def include(self, other: "Spent | Outcome | StepFailed") -> None:
        """Add the costs of another ``Spent``, an outcome or a failure."""
        attempts = 0 if isinstance(other, StepFailed) else other.attempts
        self.add(other.calls, other.usage, other.cost, attempts)


@define
class Caller:
    """Calls the run's models. At most ``limit`` calls, counting those of all steps, run at the same time."""

    llm: LLM | None
    models: Mapping[str, LLM]
    events: Events | None
    trace: Trace
    limit: int
    record: Record | None = None
    strict_types: bool = False
    """Whether a typed answer must match exactly: nothing is coerced, and no value is extracted from prose."""
    warn: Callable[[str, str], None] = lambda step, message: None
    lost: Spent = field(factory=Spent, init=False)
    """The cost of steps and calls that were cancelled, so that no result has it."""
    gate: asyncio.Semaphore = field(init=False)
    """A semaphore; each running call holds one of its slots."""
    _told: bool = field(default=False, init=False)  # whether it was reported that the run can no longer be saved

    def __attrs_post_init__(self) -> None:
        self.gate = asyncio.Semaphore(self.limit)

    def with_record(self, record: Record) -> "Caller":
        """Return a copy that saves its answers in ``record``. Both share the limit of concurrent calls."""
        made = copy(self)
        made.record = record
        return made

    async def ask(
        self, step: str, request: Request, item: int | None = None, read_as: "ReadAs | None" = None
    ) -> Outcome:  # fmt: skip
        """Return the answer to ``request``, converted to the requested type. Raises ``StepFailed``.

        ``output`` is the text to insert into other prompts: for text, the answer's text; for a choice, the label; for json and list,
        the answer's text if it is JSON, else the value as JSON; for numbers and booleans, the value as JSON. If ``read_as`` is given,
        it reads the answer of a request for text, for the event ``call.finished``; it is called only if there are subscribers.
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
        if request.options and (reason := refusal(client, request.options)):
            raise StepFailed(Failed("bad_request", f"the model can't be called: {reason}"))
        events = self.events or None
        call = 0 if events is None else next_call()
        answer, seconds = await self._generate(client, step, request, request.prompt, item, spent, call)
        if kind == "text":
            output: str = answer.text
            value: Any = output
            has_thoughts = bool(answer.raw) and not _SHAPED.intersection(request.options)
            if events is not None:
                how = ("thinking" if has_thoughts else "") if read_as is None else read_as(answer.text, answer.raw)
                events.emit(call_finished(step, answer, seconds, item, call, how))
            if has_thoughts and read_as is None:
                self.note(step, item, "text", "thinking", answer.raw, output)
        else:
            fit = self._fit(answer, request.form)
            if isinstance(fit, Unfit) and not answer.repaired:
                if events is not None:
                    events.emit(call_finished(step, answer, seconds, item, call, "unfit", repaired=True))
                    events.emit(CallRetried(step, "repair", 2, fit.reason, item, call))
                prompt = repair_prompt(request.prompt, answer.text, fit.reason, request.form.words())
                answer, seconds = await self._generate(client, step, request, prompt, item, spent, call)
                fit = self._fit(answer, request.form)
            if events is not None:
                how = "unfit" if isinstance(fit, Unfit) else fit.how or "exact"
                events.emit(call_finished(step, answer, seconds, item, call, how))
            if isinstance(fit, Unfit):
                raise self._failed(Failed("bad_answer", f"the answer is invalid: {fit.reason}", item=item), spent)
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

    def _fit(self, answer: Completion, shape: Shape) -> Fit | Unfit:
        """Return the value of a typed answer. If a layer has already coerced the answer, the result also contains the raw text."""
        fit = shape.fit(answer.text, strict=self.strict_types)
        if answer.raw and isinstance(fit, Fit):
            came = shape.fit(answer.raw, strict=self.strict_types)
            same = isinstance(came, Fit) and came.value == fit.value
            how = "thinking" if answer_after_thoughts(answer.raw) == answer.text else "embedded"
            fit = came if same else Fit(fit.value, how, answer.raw)
        return fit

    def item_done(self, step: str, item: int | None, outcome: Outcome, seconds: float) -> None:
        """Save the answer for one item of EACH, or for one sample of a step, if the run is saved."""
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
                raise StepFailed(Failed("not_configured", "the run has no model", "pass a model as llm="))
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
        self, client: LLM, step: str, request: Request, prompt: str, item: int | None, spent: Spent, call: int
    ) -> tuple[Completion, float]:
        """Send one prompt; return a complete answer and the seconds it took. Any error becomes a ``StepFailed``.

        The event ``call.finished`` is emitted here only for an error: the caller knows how an answer was read.
        """
        shown, events = None, self.events or None
        if events is not None and request.is_shown and request.kind == "text" and events.streams(step):
            shown = ShownAnswer(events, step, item, call)
        options = self._options(step, request, item, call, shown)
        began, failed, is_sent = 0.0, None, True
        await self.gate.acquire()
        try:
            if events is not None:
                events.emit(CallStarted(step, prompt, item, call, model_spec(client)))
                began = perf_counter()
            answer = await client.generate(prompt, **options)
            if type(answer) is not Completion:
                answer = _as_completion(answer, prompt, options)
            answer = without_thoughts(answer)
            text = answer.text
            if not text or text.isspace():
                failed = Failed("empty", "the answer is empty")
            elif answer.finish_reason == "length":
                failed = Failed("truncated", "the answer was cut off at the token limit", "raise max_tokens=")
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                self.lost.include(spent)
                self.lost.calls += not getattr(error, "is_unsent", False)
                raise
            answer, failed = Completion(""), Failed("error", "the client cancelled the call")
        except LLMError as error:
            answer = Completion(error.text, usage=error.usage, attempts=error.attempts, cost=error.cost)
            failed = Failed(error.kind, error.message, error.hint)
            if isinstance(error, BudgetExceeded):
                is_sent = error.attempts > 0
                if events is not None:
                    events.emit(BudgetReached(step, error.message, error.limit))
        except TimeoutError as error:
            answer, failed = Completion(""), Failed("timeout", str(error) or "the call took too long")
        except Exception as error:  # a client may raise anything; the step fails, not the run
            answer, failed = Completion(""), Failed("error", f"{type(error).__name__}: {error}"[:_LONGEST])
        finally:
            self.gate.release()
            if shown is not None:
                shown.is_closed = True
        if shown is not None and failed is None:
            shown.complete(answer.text)
        if is_sent:  # a call rejected by the budget was not sent
            calls = answer.attempts or int(answer.cached)
            spent.add(calls, answer.usage, answer.cost, answer.attempts)
        seconds = perf_counter() - began
        if failed is not None:
            if events is not None:
                events.emit(call_finished(step, answer, seconds, item, call, error=failed.kind))
            raise self._failed(failed, spent)
        return answer, seconds

    def _failed(self, failed: Failed, spent: Spent) -> StepFailed:
        return StepFailed(failed, usage=spent.usage, cost=spent.cost, calls=spent.calls)

    def _options(
        self, step: str, request: Request, item: int | None, call: int, shown: ShownAnswer | None = None
    ) -> Any:
        """Return the options for the LLM port. ``notify`` is included only if there are subscribers, ``on_delta`` only with ``shown``."""
        if request.kind == "text" and not self.events and not self.strict_types:
            return request.options
        options = dict(request.options)
        if self.strict_types:
            options["strict_types"] = True
        if not isinstance(request.kind, str):
            options["choices"] = list(request.kind)
        elif request.kind != "text":
            shape = request.form
            options["schema"] = shape.schema
            options["tidy"] = partial(shape.as_json, strict=self.strict_types)
            options["form"] = shape.words()
        if self.events:
            options["notify"] = partial(_notify, self.events, step, item, call, shown)
        if shown is not None:
            options["on_delta"] = shown.add
        return options


def _notify(events: Events, step: str, item: int | None, call: int, shown: ShownAnswer | None, notice: Notice) -> None:
    is_void = shown is not None and shown.void()
    events.emit(CallRetried(step, notice.kind, notice.attempt, notice.reason, item, call, is_void))


ReadAs = Callable[[str, str], str]
"""A function of the text of an answer and its raw text. It returns how the value was found, or "unfit"."""


def call_finished(
    step: str, answer: Completion, seconds: float, item: int | None = None, call: int = 0, read_as: str = "", *,
    error: str = "", repaired: bool = False,
) -> CallFinished:  # fmt: skip
    """Return the event for an answer. ``error`` is the kind of the failure; the other arguments are fields of the event."""
    usage = answer.usage
    return CallFinished(
        step, answer.text, usage.prompt_tokens, usage.completion_tokens, answer.cost, answer.cached, seconds, error, item,
        answer.attempts, call, answer.model, answer.finish_reason, read_as, repaired, answer.raw, usage.estimated,
    )  # fmt: skip


def _as_completion(answer: Any, prompt: str, options: Mapping[str, Any]) -> Completion:
    if isinstance(answer, Completion):
        return answer
    if isinstance(answer, str):
        return with_usage(Completion(answer), prompt, options)
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
    """Counts the requests of each call when they are sent.

    The count is in ``tally``. If ``tally`` is None, each call has an additional option ``tally`` for its count. ``own`` is true
    for a client of knotwork: when it raises ``BudgetExceeded``, it does not count the request that was not sent. For a custom
    client, one request is subtracted from the count.
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
    """Return ``client`` (anything that ``as_client`` accepts) wrapped in ``layers``, the innermost layer first, and then in ``Counted``."""
    inner: Client = as_client(client)
    for layer in layers:
        inner = layer(inner)
    return Counted(inner, isinstance(client, Own), tally)


@define
class Losses:
    """Failures that later calls would repeat: one for each failed model (None: the run's model), and an exhausted budget."""

    models: dict[str | None, Failed] = field(factory=dict)
    budget: Failed | None = None

    def of(self, model: str | None) -> Failed | None:
        """Return the reason why ``model`` can't be called, or None."""
        return self.budget or self.models.get(model)

    def add(self, model: str | None, failed: Failed) -> None:
        """Save a failure of ``model`` if later calls would fail in the same way."""
        if failed.kind == "budget":
            self.budget = self.budget or failed
        elif failed.kind in HOPELESS or failed.is_unasked:
            self.models.setdefault(model, failed)


@define
class Asker:
    """Asks a run's models: looks the answer up in the run's record, calls the model, counts the cost and records the answer.

    Answers, rankings, compilations, questions and extractions use this class. ``layers`` wrap the client of each model.
    ``spent`` is the cost of all calls, including cancelled calls. ``losses`` collects failures that would also occur in later
    calls. A model with such a failure is not called again. If ``losses`` is None, no failures are collected.
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
        round: Spent | None = None, read_as: ReadAs | None = None,
    ) -> Outcome:  # fmt: skip
        """Return the answer. Raises ``StepFailed``. The cost is added to ``spent`` and to ``round``.

        ``item`` is the number of the call in events; ``recorded_item`` is the number in the record (None: the same number). If ``step``
        is None, the asker's ``step`` is used. ``digest`` returns a hash of everything that can change the answer. ``value`` returns
        the value to record; without ``value``, the answer's text is recorded. ``read_as`` is as for ``Caller.ask``.
        """
        record, kept_as = self.caller.record, item if recorded_item is None else recorded_item
        step = self.step if step is None else step
        input_hash = digest() if record is not None else ""
        if record is not None and (earlier := record.recall(step, kept_as, input_hash)) is not None:
            return earlier.again(input_hash)
        if self.losses is not None and (lost := self.losses.of(model)) is not None:
            raise StepFailed(Failed(lost.kind, unasked(lost.message), lost.hint))
        tally, began = Spent(), perf_counter()
        try:
            request = Request(prompt, options={**options, "tally": tally})
            outcome = await self._caller(model).ask(step, request, item, read_as)
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
