"""A running script: runs its steps and collects results, warnings, events and the summary."""

import asyncio
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, get_args

from attrs import define, evolve, field

from ...adapters.llm import LLM, Usage
from ...lang.diagnostic import Diagnostic, has_errors
from ...lang.trees.lwt import Call, Mode, Step
from ..events import Events, RunFinished, StepFinished, StepSkipped, StepStarted, Warned
from ..models.caller import Caller, Spent
from ..results import Before, Failed, Outcome, Record, Run, Status, StepFailed, StepResult, Trace
from ..scheduler import Policy, Scheduler
from ..templates import Scope
from .operations import OPERATIONS, Context, Host, Operation
from .operations.operation import run_operation

if TYPE_CHECKING:
    from .operations.operation import Workshop


@define
class Execution:
    """A running script: the data shared by its steps, and the results so far.

    ``prefix`` is "" for the script of a run. For a script that the step ``a`` of another script runs it is ``a/``: its steps are
    ``a/STEP`` in events, warnings, the trace and the record.
    """

    scope: Scope
    caller: Caller
    events: Events | None
    scheduler: Scheduler = field(init=False)
    results: dict[str, StepResult] = field(factory=dict)
    warnings: list[str] = field(factory=list)
    record: Record | None = None
    workshop: "Workshop | None" = None
    folder: Path | None = None
    spec: str = ""
    host: Host = field(factory=Host)
    scripts: tuple[Path, ...] = ()
    prefix: str = ""
    began: float = field(factory=perf_counter)
    _steps: dict[str, Step] = field(factory=dict)
    _inputs: dict[str, tuple[str, ...]] = field(factory=dict)
    _operations: dict[str, Operation] = field(factory=lambda: dict(OPERATIONS))
    _paths: dict[str, float] = field(factory=dict)  # maps a step to the seconds of the longest chain that ends with it
    _under_way: set[str] = field(factory=set)
    _discarded: list[StepResult] = field(factory=list)  # results of steps that ran again or are not in the final script
    _broken_before: int = 0  # number of subscribers that failed in earlier runs with these events

    @classmethod
    def of(
        cls, input: Any, llm: LLM | None, models: Mapping[str, LLM] | None, mode: Mode, schedule: Policy, limit: int,
        events: Events | None, record: Record | None, prompts: bool, workshop: "Workshop | None" = None,
        folder: Path | None = None, spec: str = "", strict_types: bool = False, host: Host | None = None,
        scripts: tuple[Path, ...] = (),
    ) -> "Execution":  # fmt: skip
        """Create an execution."""
        if limit < 1:
            raise ValueError("max_concurrency must be at least 1")
        if mode not in get_args(Mode):
            raise ValueError(f'mode is "strict" or "lenient", not {mode!r}')
        if schedule not in get_args(Policy):
            raise ValueError(f'schedule is "eager" or "layered", not {schedule!r}')
        trace = Trace(prompts={} if prompts else None)
        results: dict[str, StepResult] = {}
        steps: dict[str, Step] = {}
        scope = Scope("", input, results, trace, lambda step, message: None, mode, steps=steps)
        made = cls(
            scope,
            Caller(llm, models or {}, events, trace, limit, record, strict_types),
            events,
            results,
            record=record,
            workshop=workshop,
            folder=folder,
            spec=spec,
            host=host or Host(),
            scripts=scripts,
            steps=steps,
        )
        made.scope.warn = made.caller.warn = made.warn
        made._broken_before = len(events.broken) if events is not None else 0
        made.scheduler = Scheduler(made.work, made.skip, limit, schedule)
        return made

    @classmethod
    def inside(
        cls, context: Context, input: Any, mode: Mode, scripts: tuple[Path, ...], policy: Policy, limit: int
    ) -> "Execution":
        """Create the execution of a script that the step of ``context`` runs.

        It shares the models, the limit of concurrent calls, the events, the trace, the record and the host with the outer script.
        """
        caller, outer = context.caller, context.scope
        prefix = f"{context.step}/" if context.item is None else f"{context.step}[{context.item}]/"
        results: dict[str, StepResult] = {}
        steps: dict[str, Step] = {}
        scope = Scope("", input, results, outer.trace, outer.warn, mode, steps=steps)
        made = cls(
            scope, caller, caller.events, results, record=caller.record, workshop=context.workshop, folder=scripts[-1].parent,
            spec=context.spec, host=context.host, scripts=scripts, prefix=prefix, steps=steps,
        )  # fmt: skip
        made.scheduler = Scheduler(made.work, made.skip, limit, policy)
        return made

    def warn(self, step: str, message: str) -> None:
        """Save a warning and send it to the subscribers."""
        if self.prefix:
            self.scope.warn(f"{self.prefix}{step}", message)
            return
        self.warnings.append(f"({step}): {message}" if step else message)
        if self.events:
            self.events.emit(Warned(step, message))

    def add(self, step: Step, inputs: tuple[str, ...]) -> None:
        """Add ``step``, which runs after the steps ``inputs``."""
        self._steps[step.id] = step
        self._inputs[step.id] = inputs
        self.scheduler.add(step.id, inputs)

    def know(self, before: Before) -> None:
        """Let steps refer to the results of earlier runs. The names of these results must differ from the step names of this run."""
        self.results.update(before.results)
        self._steps.update({name: step for name, step in before.steps.items() if name in before.results})

    def unneeded(self, step: str, final: str) -> None:
        """Skip ``step`` with a warning, because the step ``final`` does not need it."""
        reason = f"({final}) does not need it"
        self._steps.pop(step, None)
        self.warn(step, f"skipped: {reason}")
        self.skip(step, reason)

    def has_begun(self, step: str) -> bool:
        """Return whether ``step`` is running or has a result."""
        return step in self._under_way or step in self.results

    def call_of(self, step: str) -> Call:
        """Return the call of an added step, as the call was when the step was added."""
        return self._steps[step].call

    def forgo(self, steps: Iterable[str], final: str) -> None:
        """Skip the added steps that the step ``final`` does not need, except steps that are running or done."""
        gone = [step for step in steps if not self.has_begun(step)]
        self.scheduler.drop(gone)
        for step in gone:
            self.unneeded(step, final)

    def exclude(self, step: str, final: str) -> None:
        """Exclude a step that ran, but was not needed, from the run's status; keep the step's result."""
        self.warn(step, f"it ran before it was known that ({final}) does not need it")
        self._steps.pop(step, None)

    def renew(self, kept: Container[str]) -> None:
        """Continue with a new scheduler that knows only the results of ``kept``. Nothing may be running.

        Results of other steps are dropped, but their cost still counts.
        """
        before = self.scheduler
        self.scheduler = Scheduler(self.work, self.skip, before.limit, before.policy)
        for step, result in list(self.results.items()):
            if step in kept and (result.status != "skipped" or result.unmet):
                self.scheduler.settle(step, is_good=result.is_good)
            else:
                self._discard(step)

    def _discard(self, step: str) -> None:
        result = self.results.pop(step)
        self._paths.pop(step, None)
        self._steps.pop(step, None)
        self.scope.readings.pop(step, None)
        self.scope.trace.forget(step)
        if result.status != "skipped":
            self._discarded.append(result)
            self.warn(
                step, "it ran early, and the complete script has another step of this name; its result is dropped"
            )

    async def work(self, step_id: str) -> bool:
        """Run one step and save its result; a failure is saved, not raised. Return False if the step failed."""
        step, began, name = self._steps[step_id], perf_counter(), f"{self.prefix}{step_id}"
        scope, outcome = self.scope.of(name), None
        try:
            if step.call.options and (unmet := self._unmet(step, scope)):
                self._save_unmet(step_id, unmet)
                return True  # not a failure: steps that refer to this step run and see null
            if self.events:
                self.events.emit(StepStarted(name))
            self._under_way.add(step_id)
            operation = self._find(step.call.operation)
            context = Context(
                name, scope, self.caller, self.workshop, self.folder, self.spec, self.host, None, self.scripts
            )
            outcome = await run_operation(operation, step.call, context)
        except StepFailed as error:
            result = self._failure(step, error, began)
        except Exception as error:  # any exception of a plugin's runner fails only its step
            reason = Failed("error", f"{step.call.operation} raised {type(error).__name__}: {error}")
            result = self._failure(step, StepFailed(reason), began)
        else:
            result = StepResult(
                name, "done", outcome.output, outcome.value, None, "", began - self.began, perf_counter() - began,
                outcome.calls, outcome.usage, outcome.cost, outcome.reused, outcome.failed_items,
            )  # fmt: skip
        self._under_way.discard(step_id)
        self._settle(step_id, result, outcome)
        return outcome is not None

    def skip(self, step: str, reason: str) -> None:
        """Save the result of a step that will not run."""
        self.results[step] = StepResult(f"{self.prefix}{step}", "skipped", reason=reason)
        if self.events:
            self.events.emit(StepSkipped(f"{self.prefix}{step}", reason))

    async def run_steps(self, cancel: asyncio.Event | None) -> None:
        """Run until every step has a result or ``cancel`` is set. Subscribers are also notified of a cancellation."""
        try:
            await self.scheduler.run(cancel)
        except (asyncio.CancelledError, Exception):
            self._cancel_rest()
            if self.events and not self.prefix:
                self.events.emit(RunFinished("cancelled"))
            raise
        if self.scheduler.cancelled:
            self._cancel_rest()

    def spent(self) -> Spent:
        """Return the cost of all calls so far, including cancelled calls."""
        asked: list[StepResult | Spent] = [each for each in (*self.results.values(), *self._discarded) if each.calls]
        asked.append(self.caller.lost)
        costs = [each.cost for each in asked if each.cost is not None]
        return Spent(
            sum([each.calls for each in asked]),
            Usage.sum([each.usage for each in asked]),
            sum(costs) if costs else None,
        )

    def finish(self, order: tuple[str, ...], final: str, rule: str, diagnostics: tuple[Diagnostic, ...]) -> Run:
        """Return the finished run: status, cost, duration."""
        self.caller.tell_damage()
        if self.events is not None:
            self.warnings.extend(self.events.broken[self._broken_before :])
        results, spent = self.results, self.spent()
        made = Run(
            self.status(final, has_errors(diagnostics)), final, rule, {step: results[step] for step in order if step in results},
            perf_counter() - self.began, max(self._paths.values(), default=0.0), spent.usage, spent.cost,
            spent.calls,
            self.scope.trace, diagnostics, tuple(self.warnings), self.record.run_id if self.record else "",
        )  # fmt: skip
        if self.record is not None:
            self.record.finished(made)
        if self.events:
            self.events.emit(RunFinished(made.status))
        return made

    def status(self, final: str, flawed: bool) -> Status:
        """Return the status of the script, whose final step is ``final``. ``flawed``: the script has errors."""
        if self.scheduler.cancelled:
            return "cancelled"
        result = self.results.get(final)
        if result is None or not result.is_good:
            return "failed"
        attempted = (r for step, r in self.results.items() if step in self._steps)
        return "partial" if flawed or any(not r.is_good or r.failed_items for r in attempted) else "complete"

    def _find(self, name: str) -> Operation:
        if name not in self._operations:
            self._operations[name] = self.host.find(name)
        return self._operations[name]

    def _unmet(self, step: Step, scope: Scope) -> str:
        """Return the reason if the condition of ``step`` is false; "" if the condition is true or missing."""
        condition = step.call.option("when")
        if condition is None:
            return ""
        if step.call.operation not in OPERATIONS and "when" in self._find(step.call.operation).signature.options:
            return ""  # the plugin defines its own ``when``
        from .operations.basic import unmet  # imported late: the module loads a grammar

        try:
            return unmet(condition, scope)
        except StepFailed:
            if self.events:
                self.events.emit(
                    StepStarted(f"{self.prefix}{step.id}")
                )  # a step that finishes must also emit its start
            raise

    def _save_unmet(self, step: str, reason: str) -> None:
        """Save the result of a step with a false condition: the step is skipped, its value is null, and it has not failed."""
        self._paths[step] = max((self._paths.get(name, 0.0) for name in self._inputs[step]), default=0.0)
        name = f"{self.prefix}{step}"
        self.results[step] = result = StepResult(name, "skipped", "null", reason=reason, unmet=True)
        if self.record is not None:
            self.record.step_done(result, None)
            self.caller.tell_damage()
        if self.events:
            self.events.emit(StepSkipped(name, reason))

    def _failure(self, step: Step, error: StepFailed, began: float) -> StepResult:
        failed = error.failed if error.failed.span is not None else evolve(error.failed, span=step.span)
        reason = f"{failed.message} ({failed.hint})" if failed.hint else failed.message
        return StepResult(
            f"{self.prefix}{step.id}", "failed", failed=failed, reason=reason, started=began - self.began,
            seconds=perf_counter() - began, calls=error.calls, usage=error.usage, cost=error.cost,
        )  # fmt: skip

    def _settle(self, step: str, result: StepResult, outcome: Outcome | None) -> None:
        self.results[step] = result
        inputs = self._inputs[step]
        before = max([self._paths.get(name, 0.0) for name in inputs]) if inputs else 0.0
        self._paths[step] = before + result.seconds
        if self.record is not None:
            self.record.step_done(result, outcome)
            self.caller.tell_damage()
        if self.events:
            self.events.emit(StepFinished(result.id, result.status, result.seconds, result.reason, result.reused))
        for failed in result.failed_items:
            self.warn(step, item_failure(failed))

    def _cancel_rest(self) -> None:
        """Skip every step without a result, with the cancellation as the reason."""
        for step in self._steps:
            if step not in self.results:
                self.skip(step, "cancelled while it ran" if step in self._under_way else "cancelled")


def item_failure(failed: Failed) -> str:
    """Return the message about a failed item, or about an incomplete part of a step's output."""
    if failed.item is None:
        return failed.message
    return f"item {failed.item}{':' if failed.kind == 'partial' else ' failed:'} {failed.message}"
