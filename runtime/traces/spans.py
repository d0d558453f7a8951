"""The subscriber that turns the events of a run into spans: ``knotwork.run`` → ``knotwork.context`` or ``knotwork.step`` → ``chat MODEL``.

A subscriber is called in the task that emits the event, so a context variable determines the parent of a new span: tasks that a
step starts inherit this variable. Several tasks work on the contexts of a seed at once; a call finds the span of its context by
the context's name.
"""

import json
import os
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from time import perf_counter_ns, time_ns
from typing import Any

from attrs import define, field

from ...adapters.llm.keys import hidden, known_keys, mask_keys
from ...adapters.llm.trace_header import OUTGOING
from .. import events as on
from ..event_stream import Event
from . import conventions as names
from .parents import SpanId, current_parent
from .span import CallTotals, Span, SpanSink, child_of

LONGEST = 4_000
"""Maximum characters of an exported text."""
CANCELLED = "cancelled"
_FAILED = frozenset({"failed", "error", "binding_failure", "schema_mismatch", CANCELLED})
"""Statuses with which the span of a run, a step or a command counts as an error."""


@define(eq=False)
class _Scope:
    """An open span, and its position among the open spans. ``steps`` are the open steps or contexts of a run."""

    span: Span
    outer: "_Scope | None"
    owner: "RunSpans"
    key: tuple[Any, ...]
    kind: str
    is_open: bool = True
    steps: dict[str, "_Scope"] = field(factory=dict)
    totals: CallTotals | None = None


@define(eq=False)
class _Call:
    span: Span
    scope: "_Scope | None"
    model: names.CalledModel
    prompt: str
    began: float
    attempts: int = 0
    input: int = 0
    output: int = 0
    cost: float | None = None


_SCOPE: ContextVar[_Scope | None] = ContextVar("the innermost open span", default=None)


@define(eq=False)
class RunSpans:
    """Builds the spans of one stream of events, and passes finished spans to ``sink``.

    ``parent`` is the parent of runs that have no parent in the current context.
    """

    sink: SpanSink
    parent: SpanId | None = None
    _open: dict[tuple[Any, ...], list[_Scope]] = field(factory=dict, init=False)
    _calls: dict[Any, _Call] = field(factory=dict, init=False)
    _zero: int = field(init=False)
    _keys: tuple[str, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._zero = time_ns() - perf_counter_ns()
        self._keys = known_keys(os.environ)

    def __call__(self, event: Event) -> None:
        """Process one event."""
        handle = _HANDLERS.get(type(event))
        if handle is not None:
            handle(self, event)

    def end(self) -> None:
        """End all spans that are still open, as cancelled. Called at the end of the process or of a subscription."""
        now = perf_counter_ns() / 1e9
        for scopes in list(self._open.values()):
            for scope in reversed(scopes):
                self._end_scope(scope, now, CANCELLED)
        for key in list(self._calls):
            self._end_call(key, now, CANCELLED)

    # Scopes

    def _current(self, *, latest: bool = True) -> _Scope | None:
        """Return the innermost open span of this stream in the current context.

        Without such a span, return the latest open run if ``latest`` is true: the event comes from a thread that the run
        started without its context.
        """
        scope = _SCOPE.get()
        while scope is not None and not (scope.is_open and scope.owner is self):
            scope = scope.outer
        if scope is None and latest:
            scope = next((each for scopes in reversed(self._open.values()) for each in scopes if each.totals), None)
        return scope

    def _enter(
        self, event: Event, key: tuple[Any, ...], name: str, kind: str, attributes: dict[str, Any], *, sets_context: bool = True
    ) -> _Scope:  # fmt: skip
        outer = self._current(latest=name != names.RUN)  # another run that is open at the same time is no parent
        attributes[names.KIND] = kind
        if outer is None:
            parent = current_parent() or self.parent or self.sink.ambient()
            mine = self.sink.root(name, parent)
        else:
            parent = outer.span.id
            mine = child_of(parent)
        span = Span(name, mine, parent, self._time(event.at), attributes)
        scope = _Scope(span, outer, self, key, kind, totals=CallTotals() if name == names.RUN else None)
        self._open.setdefault(key, []).append(scope)
        if sets_context:
            _SCOPE.set(scope)
        return scope

    def _leave(self, event: Event, key: tuple[Any, ...], status: str, **attributes: Any) -> None:
        """End the span ``key`` of the current context or, without one, the latest span ``key``."""
        scope, found = self._current(), None
        while scope is not None:
            if scope.key == key:
                found = scope
                break
            scope = scope.outer
        if found is None:
            scopes = self._open.get(key)
            if not scopes:
                return
            found = scopes[-1]
        found.span.attributes.update((name, value) for name, value in attributes.items() if value not in (None, ""))
        self._end_scope(found, event.at, status)

    def _end_scope(self, scope: _Scope, at: float, status: str) -> None:
        if not scope.is_open:
            return
        scope.is_open = False
        scopes = self._open[scope.key]
        scopes.remove(scope)
        if not scopes:
            del self._open[scope.key]
        current = _SCOPE.get()
        if current is scope:
            _SCOPE.set(scope.outer)
        for step in list(scope.steps.values()):  # a cancelled run leaves its steps open
            self._end_scope(step, at, CANCELLED)
        if self._calls and (scope.totals is not None or scope.outer is None):
            for key in [key for key, call in self._calls.items() if _is_in(call.scope, scope)]:
                self._end_call(key, at, CANCELLED)
        span, totals = scope.span, scope.totals
        span.attributes[names.STATUS] = status
        if status in _FAILED:
            span.is_error = True
            span.attributes[names.ERROR_TYPE] = status
        if totals is not None:
            span.attributes[names.CALLS] = totals.calls
            span.attributes[names.ERRORS] = totals.errors
            span.attributes[names.RUN_INPUT_TOKENS] = totals.input
            span.attributes[names.RUN_OUTPUT_TOKENS] = totals.output
            if totals.cost is not None:
                span.attributes[names.COST] = totals.cost
        self._send(span, at)

    def _send(self, span: Span, at: float) -> None:
        span.end = self._time(at)
        if span.id.is_sampled:
            self.sink.ended(span)

    def _time(self, at: float) -> int:
        return self._zero + int(at * 1e9)

    def _note(self, event: Event, name: str, attributes: dict[str, Any], span: Span | None = None) -> None:
        """Add an event to ``span`` (None: the current one)."""
        if span is None:
            scope = self._current()
            if scope is None:
                return
            span = scope.span
        span.events.append((name, self._time(event.at), attributes))

    # Texts

    @property
    def _has_texts(self) -> bool:
        return self.sink.capture != "NO_CONTENT"

    def _text(self, text: str) -> str:
        """Return a text in the form for export: without API keys, and shortened."""
        return hidden(mask_keys(text[: 2 * LONGEST]), *self._keys)[:LONGEST]

    def _detail(self, attributes: dict[str, Any], name: str, text: str) -> None:
        """Add a text to ``attributes``, if texts are exported."""
        if text and self._has_texts:
            attributes[name] = self._text(text)

    # Runs and steps

    def _run_started(self, event: on.RunStarted) -> None:
        attributes: dict[str, Any] = {names.COUNT: sum(map(len, event.layers))}
        self._enter(
            event, ("run",), names.RUN, event.kind or "script", self._titled(attributes, event.title, event.run)
        )

    def _run_finished(self, event: on.RunFinished) -> None:
        self._leave(event, ("run",), event.status)

    def _titled(self, attributes: dict[str, Any], title: str, run: str) -> dict[str, Any]:
        if title:
            attributes[names.TITLE] = self._text(title)
        if run:
            attributes[names.RUN_ID] = run
        return attributes

    def _run(self) -> _Scope | None:
        """Return the innermost run whose steps are numbered or named."""
        scope = self._current()
        while scope is not None and scope.key != ("run",):
            scope = scope.outer
        return scope

    def _step_started(self, event: on.StepStarted) -> None:
        run = self._run()
        attributes: dict[str, Any]
        if run is not None and run.kind == "seed":  # the name of a context is data: it is a text
            index, _, name = event.step.partition(" ")
            attributes = {names.CONTEXT_INDEX: int(index)} if index.isdecimal() else {}
            self._detail(attributes, names.STEP_NAME, name)
            scope = self._enter(
                event, ("step", id(run), event.step), names.CONTEXT, "context", attributes, sets_context=False
            )
            scope.outer = run
        else:
            attributes = {names.STEP_NAME: event.step}
            scope = self._enter(event, ("step", id(run), event.step), names.STEP, "step", attributes)
        if run is not None:
            run.steps[event.step] = scope

    def _step_finished(self, event: on.StepFinished) -> None:
        run = self._run()
        scope = run.steps.pop(event.step, None) if run is not None else None
        more = {names.REUSED: True} if event.reused else {}
        if event.reason:
            self._detail(more, names.REASON, event.reason)
        if scope is not None:
            scope.span.attributes.update(more)
            self._end_scope(scope, event.at, event.status)
        else:
            self._leave(event, ("step", id(run), event.step), event.status, **more)

    def _loop_started(self, event: on.LoopStarted) -> None:
        attributes = {names.REQUEST: event.request} if event.loop == "rank" else {}
        key = ("loop", event.loop, event.request)
        self._enter(event, key, names.RUN, event.loop, self._titled(attributes, event.title, event.run))

    def _loop_finished(self, event: on.LoopFinished) -> None:
        self._leave(event, ("loop", event.loop, event.request), event.status)

    def _phase_started(self, event: on.PhaseStarted) -> None:
        key = ("phase", event.loop, event.phase, event.request)
        is_run = event.loop == "ask"  # the other loops have ``loop.started``
        attributes: dict[str, Any] = {} if is_run else {names.STEP_NAME: event.phase}
        self._detail(attributes, names.DETAIL, event.detail)
        self._enter(event, key, names.RUN if is_run else names.STEP, "ask" if is_run else "phase", attributes)

    def _phase_finished(self, event: on.PhaseFinished) -> None:
        more: dict[str, Any] = {}
        self._detail(more, names.REASON, event.detail)
        self._leave(event, ("phase", event.loop, event.phase, event.request), event.status, **more)

    def _plan_started(self, event: on.PlanStarted) -> None:
        outer = self._current(latest=False)
        in_loop = outer is not None and outer.kind == "ask"
        attributes: dict[str, Any] = {names.COUNT: event.commands}
        if in_loop:  # a model may choose the id of its plan
            self._detail(attributes, names.STEP_NAME, event.plan)
        name, kind = (names.STEP, "plan") if in_loop else (names.RUN, "program")
        self._enter(event, ("plan", event.plan), name, kind, attributes)

    def _plan_finished(self, event: on.PlanFinished) -> None:
        self._leave(event, ("plan", event.plan), event.status)

    def _command_started(self, event: on.CommandStarted) -> None:
        words = event.command.split(None, 1)
        attributes: dict[str, Any] = {
            names.STEP_NAME: event.step,
            names.COMMAND: words[0].upper()[:20] if words else "",
        }
        self._detail(attributes, names.DETAIL, event.command)
        name = names.RUN if self._current() is None else names.STEP  # a command at the prompt is a separate run
        self._enter(event, ("command", event.plan, event.step), name, "command", attributes)

    def _command_finished(self, event: on.CommandFinished) -> None:
        more: dict[str, Any] = {names.COUNT: event.count}
        self._detail(more, names.REASON, event.message)
        self._leave(event, ("command", event.plan, event.step), event.status, **more)

    def _answer_started(self, event: on.AnswerStarted) -> None:
        self._enter(event, ("answer", event.step), names.RUN, "answer", {})

    def _answer_finished(self, event: on.AnswerFinished) -> None:
        self._leave(event, ("answer", event.step), event.status)

    def _iteration_started(self, event: on.IterationStarted) -> None:
        key = ("iteration", event.step, event.iteration)
        self._enter(event, key, names.STEP, "iteration", {names.STEP_NAME: str(event.iteration)})

    def _iteration_finished(self, event: on.IterationFinished) -> None:
        status = "accepted" if event.accepted else "failed" if event.score is None else "done"
        self._leave(event, ("iteration", event.step, event.iteration), status)

    # Calls

    def _call_started(self, event: on.CallStarted) -> None:
        key = event.call or (event.step, event.item)
        call = self._calls.get(key)
        if call is None:
            scope = self._current()
            run = self._run()
            step = run.steps.get(event.step) if run is not None else None
            if step is not None and not _is_in(scope, step):
                scope = step
            model = names.called_model(event.model)
            parent = scope.span.id if scope is not None else current_parent() or self.parent or self.sink.ambient()
            name = f"{names.CHAT} {model.name}" if model.name else names.CHAT
            mine = child_of(scope.span.id) if scope is not None else self.sink.root(name, parent)
            span = Span(name, mine, parent, self._time(event.at), {}, model.is_remote)
            call = self._calls[key] = _Call(span, scope, model, event.prompt, event.at)
            if event.item is not None:
                span.attributes[names.ITEM] = event.item
        if self.sink.propagate:
            OUTGOING.set(call.span.id.traceparent())

    def _call_retried(self, event: on.CallRetried) -> None:
        attributes: dict[str, Any] = {names.KIND: event.kind, names.ATTEMPT: event.attempt}
        self._detail(attributes, names.REASON, event.reason)
        call = self._calls.get(event.call or (event.step, event.item))
        self._note(event, names.RETRY, attributes, None if call is None else call.span)

    def _call_finished(self, event: on.CallFinished) -> None:
        key = event.call or (event.step, event.item)
        call = self._calls.get(key)
        if call is None:
            return
        call.attempts += event.attempts
        call.input += event.prompt_tokens
        call.output += event.completion_tokens
        if event.estimated:
            call.span.attributes[names.ESTIMATED] = True
        if event.cost is not None:
            call.cost = (call.cost or 0.0) + event.cost
        if not event.repaired:
            error = event.error or ("bad_answer" if event.read_as == "unfit" else "")
            self._end_call(key, event.at, error, event)

    def _end_call(self, key: Any, at: float, error: str, event: on.CallFinished | None = None) -> None:
        call = self._calls.pop(key)
        model, span = call.model, call.span
        attributes = span.attributes
        attributes[names.OPERATION] = names.CHAT
        attributes[names.PROVIDER] = model.provider
        if model.name:
            attributes[names.REQUEST_MODEL] = model.name
        if model.address:
            attributes[names.SERVER_ADDRESS] = model.address
            if model.port is not None:
                attributes[names.SERVER_PORT] = model.port
        attributes[names.INPUT_TOKENS] = call.input
        attributes[names.OUTPUT_TOKENS] = call.output
        is_cached = event is not None and event.cached
        if event is not None:
            if event.model:
                attributes[names.RESPONSE_MODEL] = event.model
            if event.finish_reason and not event.error:
                attributes[names.FINISH_REASONS] = (event.finish_reason,)
            if event.read_as:
                attributes[names.READ_AS] = event.read_as
        attributes[names.CACHED] = is_cached
        attributes[names.ATTEMPTS] = call.attempts
        if call.cost is not None:
            attributes[names.COST] = call.cost
        if error:
            span.is_error = True
            attributes[names.ERROR_TYPE] = error
        self._count(call, error, attributes)
        if not is_cached:
            self.sink.called(attributes, call.input, call.output, at - call.began)
        if self._has_texts:
            self._add_texts(span, call.prompt, event.text if event is not None else "", event, at)
        self._send(span, at)

    def _count(self, call: _Call, error: str, attributes: dict[str, Any]) -> None:
        """Add a call to the totals of its runs; its span gets the id of the innermost recorded run."""
        scope = call.scope
        while scope is not None:
            totals = scope.totals
            if totals is not None:
                totals.calls += 1
                totals.errors += bool(error)
                totals.input += call.input
                totals.output += call.output
                if call.cost is not None:
                    totals.cost = (totals.cost or 0.0) + call.cost
                if (run := scope.span.attributes.get(names.RUN_ID)) is not None:
                    attributes.setdefault(names.RUN_ID, run)
            scope = scope.outer

    def _add_texts(self, span: Span, prompt: str, answer: str, event: on.CallFinished | None, at: float) -> None:
        texts: dict[str, Any] = {names.INPUT_MESSAGES: _messages("user", self._text(prompt))}
        if answer:
            finish = event.finish_reason if event is not None else ""
            texts[names.OUTPUT_MESSAGES] = _messages("assistant", self._text(answer), finish)
        for name, text in ((names.CUT_INPUT, prompt), (names.CUT_OUTPUT, answer)):
            if len(text) > LONGEST:
                texts[name] = len(text)
        if self.sink.capture in ("SPAN_ONLY", "SPAN_AND_EVENT"):
            span.attributes.update(texts)
        if self.sink.capture in ("EVENT_ONLY", "SPAN_AND_EVENT"):
            span.events.append((names.INFERENCE_DETAILS, self._time(at), texts))

    # Span events

    def _scored(self, event: on.EvaluationScored) -> None:
        attributes: dict[str, Any] = {
            names.EVALUATION_NAME: self._text(event.metric),
            names.CANDIDATE: self._text(event.candidate),
        }
        if event.value is not None:
            attributes[names.EVALUATION_VALUE] = float(event.value)
        if event.label:
            attributes[names.EVALUATION_LABEL] = event.label
        self._note(event, names.EVALUATION_RESULT, attributes)

    def _budget_reached(self, event: on.BudgetReached) -> None:
        self._note(event, names.BUDGET, {names.LIMIT: event.limit})

    def _decided(self, event: on.DecisionMade) -> None:
        attributes: dict[str, Any] = {names.STATUS: event.decision, names.STEP_NAME: str(event.step)}
        self._detail(attributes, names.REASON, event.why)
        self._note(event, names.DECISION, attributes)

    def _repair_asked(self, event: on.RepairAsked) -> None:
        self._note(event, names.REPAIR, {names.STEP_NAME: event.phase, names.ATTEMPT: event.attempt})

    def _tool_called(self, event: on.ToolCalled) -> None:
        attributes: dict[str, Any] = {names.STATUS: "done" if event.ok else "refused", names.ATTEMPT: event.iteration}
        self._detail(attributes, names.DETAIL, event.call)
        self._note(event, names.TOOL, attributes)


def current_span() -> SpanId | None:
    """Return the innermost open span in this context."""
    scope = _SCOPE.get()
    while scope is not None and not scope.is_open:
        scope = scope.outer
    return None if scope is None else scope.span.id


def _is_in(scope: _Scope | None, outer: _Scope) -> bool:
    while scope is not None and scope is not outer:
        scope = scope.outer
    return scope is outer


def _messages(role: str, text: str, finish: str = "") -> str:
    """Return one message in the JSON form of the conventions."""
    message: dict[str, Any] = {"role": role, "parts": [{"type": "text", "content": text}]}
    if role == "assistant":
        message["finish_reason"] = finish or "stop"
    return json.dumps([message], ensure_ascii=False)


_HANDLERS: Mapping[type[Event], Callable[[RunSpans, Any], None]] = {
    on.RunStarted: RunSpans._run_started, on.RunFinished: RunSpans._run_finished,
    on.StepStarted: RunSpans._step_started, on.StepFinished: RunSpans._step_finished,
    on.LoopStarted: RunSpans._loop_started, on.LoopFinished: RunSpans._loop_finished,
    on.PhaseStarted: RunSpans._phase_started, on.PhaseFinished: RunSpans._phase_finished,
    on.PlanStarted: RunSpans._plan_started, on.PlanFinished: RunSpans._plan_finished,
    on.CommandStarted: RunSpans._command_started, on.CommandFinished: RunSpans._command_finished,
    on.AnswerStarted: RunSpans._answer_started, on.AnswerFinished: RunSpans._answer_finished,
    on.IterationStarted: RunSpans._iteration_started, on.IterationFinished: RunSpans._iteration_finished,
    on.CallStarted: RunSpans._call_started, on.CallRetried: RunSpans._call_retried, on.CallFinished: RunSpans._call_finished,
    on.EvaluationScored: RunSpans._scored, on.BudgetReached: RunSpans._budget_reached, on.DecisionMade: RunSpans._decided,
    on.RepairAsked: RunSpans._repair_asked, on.ToolCalled: RunSpans._tool_called,
}  # fmt: skip
