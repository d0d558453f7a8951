"""The loop: hypothesise, plan, execute and evaluate until the question is answered or a limit is reached.

Model output never raises an exception here: the result reports faults in the output. See ``docs/design/loops.md#traversal``.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import nullcontext
from inspect import isawaitable
from time import perf_counter
from typing import Any, TypeVar

from attrs import asdict, define, evolve, field

from ....adapters.llm import LLM
from ....adapters.llm.strict_schema import capabilities_of
from ...errors import short_repr
from ...events import DecisionMade, Event, HypothesisFormed, PhaseFinished, PhaseStarted, Warned
from ...gasl import GASLExecutor, PlanError
from ...gasl.records import ContextStore, ExecutionRecord, as_history, plan_status
from ...gasl.surroundings import is_of_another
from ...limits import Deadline
from ...models.caller import HOPELESS, Caller
from ...results import StepFailed, Trace
from ...runs.event_log import logged
from ...runs.journal import stored_usage
from .findings import Support, findings, incomplete, results_of
from .plan_run import Action, continue_plan, renamed, render_faults
from .plan_search import Branching, Explorer, SearchOutcome, adopt_outcome, failure_text, found_before, is_adopted
from .planner import Choose, Planner, PlannerCalls, Position, Proposal, RecordedModel, highest
from .question_store import AskRecorder, QuestionRequest, StoredQuestion, open_asks, other_graph, stored_answer
from .traversal_results import (
    LOCAL_CHARACTERS,
    MOST_CHARACTERS,
    Asked,
    Bounds,
    Hypothesis,
    SearchRequest,
    Step,
    Stopped,
)

T = TypeVar("T")

_REFUSED = 3
"""Number of consecutive steps without a runnable plan after which the loop fails."""


@define
class Loop:
    """One question in progress. ``clients`` are the models that plans may call, as they were passed to the executor.

    ``record`` stores the question; None means that it is not stored. ``cancel`` and ``bounds.time_limit`` stop work in progress.
    With ``searching``, several plans are tried in parallel and the result is adopted at the end; otherwise, one plan runs at a time.
    """

    question: str
    executor: GASLExecutor
    asker: PlannerCalls
    clients: Mapping[str, RecordedModel]
    bounds: Bounds = field(factory=Bounds)
    record: AskRecorder | None = None
    choose: Choose = highest
    cancel: asyncio.Event | None = None
    searching: SearchRequest | None = None
    steps: list[Step] = field(factory=list, init=False)
    warnings: list[str] = field(factory=list, init=False)
    _stopped: Stopped = field(default="", init=False)
    _reason: str = field(default="", init=False)
    _began: float = field(factory=perf_counter, init=False)
    _stop: asyncio.Event = field(factory=asyncio.Event, init=False)
    _ids: set[str] = field(factory=set, init=False)
    _found: SearchOutcome | None = field(default=None, init=False)
    _earlier: int = field(default=0, init=False)

    async def run(self) -> Asked:
        """Run to the end. Raises ``StoreError`` if the state can't be written."""
        self._emit(lambda: PhaseStarted("ask", "traversal", detail=self.question))
        given = self.executor.context.copy()
        kept = 0 if self.record is None else len(self.record.kept.steps)
        planner = Planner(self.asker, self.question, self.bounds, given, self._emit_now, kept)
        begun = None
        if self.record is not None:
            self.steps += self.record.kept.steps
            self._ids |= {str(step.plan.get("plan_id")) for step in self.steps}
            begun = self.record.kept.begun
        self._earlier = earlier = len(self.steps)
        watching = [asyncio.create_task(self._watch())]
        try:
            proposal = await self._turns(planner, given, begun)
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
        made = self._result(proposal, earlier)
        if self.record is not None and made.status != "cancelled":
            self.record.ended(_end_record(made))
        elif self.record is not None:
            self.record.close()
        if self.record is not None and (damage := self.record.damage):
            told = () if damage in made.warnings else (damage,)
            made = evolve(made, unkept=damage, warnings=(*made.warnings, *told))
        self._emit(
            lambda: PhaseFinished("ask", "traversal", made.status, made.seconds, detail=made.answer or made.reason)
        )
        return made

    # Turns

    async def _turns(self, planner: Planner, given: ContextStore, begun: Mapping[str, Any] | None) -> Proposal | None:
        """Take turns until a turn ends the loop; return the proposal that contains the answer, or None."""
        before = self._found_before()
        if before is not None:
            return self._adopted(before)
        if begun is not None and begun["number"] == len(self.steps) + 1 and not await self._go_on(begun, given):
            return None
        if self.searching is not None:
            return await self._explored(planner, self.searching)
        while not self._is_over():
            number = len(self.steps) + 1
            began = perf_counter()
            for client in self.clients.values():
                client.begin(number)
            try:
                proposal = await self._in_time(planner.propose(self.executor, number, self.steps))
            except StepFailed as error:
                failed = error.failed
                self._end("budget" if failed.kind == "budget" else "model", failure_text(failed))
                return None
            if proposal is None:
                return None
            self._emit_decision(number, proposal)
            if proposal.completed is not None:
                if proposal.support.fault and self.record is not None:  # the next attempt repeats this call
                    self.record.in_vain([self.asker.record_key(number, turn) for turn in range(proposal.repairs + 1)])
                return proposal
            if proposal.stalled:
                self._end("no_progress", proposal.stalled)
                if self.record is not None:
                    self.record.in_vain([self.asker.record_key(number, turn) for turn in range(proposal.repairs + 1)])
                return None
            if not proposal.actions:
                self._take(
                    Step(
                        number, proposal.supposed, "refused", repairs=proposal.repairs, faults=proposal.faults,
                        seconds=perf_counter() - began,
                    )
                )  # fmt: skip
                continue
            if not await self._act(number, proposal, planner, began):
                return None
        return None

    # A search

    async def _explored(self, planner: Planner, searching: SearchRequest) -> Proposal | None:
        """Search for the answer; return the proposal that contains it, or None. Without an answer the state is unchanged."""
        if self._is_over():
            return None
        executor, earlier = self.executor, len(self.steps)
        began = f"{executor.adapter.schema.hash} {executor.state.hash} {earlier}"
        wanted = (
            1 if self.asker.small_fields is not None else searching.settings.branching
        )  # the small grammar allows one plan
        branching = Branching(planner, executor, self.clients, tuple(self.steps), began, wanted, self.record)
        left = self.bounds.max_steps - earlier
        found = await Explorer(self.question, branching, self.asker, searching, left, self._stop).run(self.record)
        for message in found.warnings:
            self.warn(message)
        if found.proposal is None or self._stopped == "cancelled":
            self._found = found
            self.steps[earlier:] = found.steps[earlier:]
            if found.ungrounded is not None and self._stopped != "cancelled":
                self._emit_decision(len(self.steps) + 1, found.ungrounded)
                return found.ungrounded
            if found.stopped:
                self._end(found.stopped, found.reason)
            return None
        adopt_outcome(found, earlier, executor.state, self.record)
        return self._adopted(found)

    def _found_before(self) -> SearchOutcome | None:
        """Return the result of an earlier attempt, if the state adopted the result but the attempt was killed before reporting it."""
        told = None if self.record is None else self.record.kept.found
        if self.record is None or told is None:
            return None
        try:
            return found_before(told, self.record) if is_adopted(told, self.executor.state) else None
        except (KeyError, TypeError, AttributeError):  # another version wrote the record; repeat the search
            return None

    def _adopted(self, found: SearchOutcome) -> Proposal | None:
        self._found = found
        for step in found.steps[len(self.steps) :]:
            self._take(step)
        if found.proposal is not None:
            self._emit_decision(len(self.steps) + 1, found.proposal)
        return found.proposal

    # One plan after the other

    async def _act(self, number: int, proposal: Proposal, planner: Planner, began: float) -> bool:
        """Run the chosen action; return whether the loop continues."""
        chosen: Any = self.choose(proposal.actions, Position(self.executor, planner, tuple(self.steps), number))
        if isawaitable(chosen):
            told = await self._in_time(_awaited(chosen))
            if self._stop.is_set():
                return False
            chosen = told
        if type(chosen) is not int or not 0 <= chosen < len(proposal.actions):
            self.warn(
                f"step {number}: choose returned {short_repr(chosen)}, which is not the index of one of {len(proposal.actions)} plans; "
                "the most confident plan is used"
            )
            chosen = highest(proposal.actions, Position(self.executor, planner, tuple(self.steps), number))
        action = renamed(proposal.actions[chosen], self._ids, number)
        others = [each.as_json() for at, each in enumerate(proposal.actions) if at != chosen]
        self._ids.add(action.plan_id)
        state = self.executor.state
        begun = {
            "number": number, "supposed": asdict(proposal.supposed), "action": action.as_json(), "alternatives": others,
            "repairs": proposal.repairs, "history": len(state.history), "state": state.hash,
        }  # fmt: skip
        if self.record is not None:
            self.record.step_begun(begun)
        self._emit(
            lambda: HypothesisFormed(
                number, proposal.supposed.hypothesis, action.plan_id, action.commands, action.confidence, len(others)
            )
        )
        if proposal.remark:
            self.warn(f"step {number}: {proposal.remark}")
        for message in action.mended:
            self.warn(f"step {number}: fixed: {message}")
        for faults in proposal.left_out:
            self.warn(f"step {number}: a plan was omitted: {faults.splitlines()[0]}")
        return await self._executed(
            begun, action, began, lambda: self.executor.arun_plan(action.ready or action.plan, cancel=self._stop)
        )

    async def _go_on(self, begun: Mapping[str, Any], given: ContextStore) -> bool:
        """Continue the interrupted plan; return whether the loop continues."""
        told, began = begun["action"], perf_counter()
        action = Action(told["plan"], told["confidence"], told["rationale"], tuple(told.get("mended", ())))
        self._ids.add(action.plan_id)
        for client in self.clients.values():
            client.begin(begun["number"])
        supposed = Hypothesis(**begun["supposed"])
        self._emit(
            lambda: HypothesisFormed(
                begun["number"], supposed.hypothesis, action.plan_id, action.commands, action.confidence,
                len(begun["alternatives"]), resumed=True,
            )
        )  # fmt: skip
        clients: Mapping[str, LLM] = self.clients
        return await self._executed(
            begun,
            action,
            began,
            lambda: continue_plan(
                self.executor, clients, action.plan, begun["history"], begun["state"], given, self._stop
            ),
        )

    async def _executed(
        self,
        begun: Mapping[str, Any],
        action: Action,
        began: float,
        run: Callable[[], Coroutine[Any, Any, list[ExecutionRecord]]],
    ) -> bool:
        """Run a plan and store its result; the next attempt continues a cancelled plan."""
        step = Step(
            begun["number"], Hypothesis(**begun["supposed"]), "refused", action.plan, (), action.confidence, action.rationale,
            action.mended, tuple(begun["alternatives"]), begun["repairs"],
        )  # fmt: skip
        try:
            records = await run()
        except PlanError as error:  # state or graph changed since the plan was checked
            self._take(
                evolve(step, faults=render_faults(error.diagnostics, error.source), seconds=perf_counter() - began)
            )
            return True
        status = plan_status(records)
        entries = tuple(as_history(each) for record in records for each in (record, *_failed_records(record)))
        seconds = perf_counter() - began
        step = evolve(step, status=status, entries=entries, seconds=seconds, state=self.executor.state.hash)
        if status == "cancelled" and self._stop.is_set():
            self.steps.append(step)
            return False
        lost = next((kind for record in records if (kind := _kind(record)) in HOPELESS), "")
        if lost and _kind(records[-1]) == lost:
            self.steps.append(step)  # not stored as done, so that the next attempt continues the plan
            self._end("budget" if lost == "budget" else "model", _message(records[-1]))
            return False
        self._take(step)
        return True

    def _take(self, step: Step) -> None:
        self.steps.append(step)
        if self.record is not None:
            self.record.turn_done(step)
            if self.record.damage and self.record.damage not in self.warnings:
                self.warn(self.record.damage)

    # Conditions that end the loop

    def _is_over(self) -> bool:
        if self._stop.is_set():
            return True
        refused = 0
        for step in reversed(self.steps[self._earlier :]):  # earlier attempts may have used another model
            if step.status != "refused":
                break
            refused += 1
        if refused >= _REFUSED:
            first = self.steps[-1].faults.splitlines()
            self._end("refused", f"no plan of the model could run in {refused} steps: {first[0] if first else ''}")
        elif len(self.steps) >= self.bounds.max_steps:
            self._end("steps", f"no answer after {len(self.steps)} step{'' if len(self.steps) == 1 else 's'}")
        return self._stop.is_set()

    def _end(self, stopped: Stopped, reason: str) -> None:
        if not self._stopped:
            self._stopped, self._reason = stopped, reason
        self._stop.set()

    async def _watch(self) -> None:
        """Stop the loop when its time is up or it is cancelled."""
        ending = Deadline(self.cancel, self.bounds.time_limit)
        await ending.wait_for(asyncio.get_running_loop().create_future())
        if ending.by == "cancelled":
            self._end("cancelled", "the question was cancelled")
        elif ending.by:
            self._end("time", f"the time limit of {self.bounds.time_limit:g} seconds passed")

    async def _in_time(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Return the result of ``work``; None if the loop is stopped first."""
        if self.cancel is not None and self.cancel.is_set():
            self._end("cancelled", "the question was cancelled")
        return await Deadline(self._stop, None).within(work)

    # Results and events

    def _result(self, proposal: Proposal | None, earlier: int) -> Asked:
        spent, found, snapshot = self.asker.spent, self._found, self.executor.state.snapshot()
        seen = found.best.snapshot if found is not None and found.best is not None else snapshot
        completed, rests = None, Support()
        if proposal is not None:
            completed, rests = proposal.completed, proposal.support
        status: Any = "ungrounded" if rests.fault else "complete"
        if completed is None:
            status = {"cancelled": "cancelled", "model": "failed", "refused": "failed"}.get(self._stopped, "stopped")
        elif rests.unknown and not rests.fault:
            self.warn(rests.advice.partition(";")[0])
        cited = rests.cited
        parts = incomplete(seen, cited) if completed is not None else ()
        for reason in parts:
            self.warn(f"the answer may be incomplete: {reason}")
        supposed = proposal.supposed if proposal is not None else self.steps[-1].supposed if self.steps else None
        broken = self.executor.events.broken
        evidence = () if rests.fault else findings(seen, cited)
        if completed is not None and not rests.fault and not any(each.item for each in evidence):
            evidence += results_of(self.steps)
        return Asked(
            self.question, status, completed.answer if completed is not None else "",
            "" if completed is not None else self._stopped, rests.fault if completed is not None else self._reason, supposed,
            cited, evidence, tuple(self.steps), earlier, spent.usage, spent.calls, spent.cost,
            perf_counter() - self._began, (*self.warnings, *broken), self.record.run_id if self.record is not None else "",
            snapshot.hash, None if found is None else found.explored, uncited=rests.unknown,
            incomplete=parts,
        )  # fmt: skip

    def _emit_decision(self, number: int, proposal: Proposal) -> None:
        supposed = proposal.supposed
        answer = proposal.completed.answer if proposal.completed is not None else ""
        fault = proposal.support.fault
        self._emit(lambda: DecisionMade(number, supposed.decision, supposed.why, supposed.by, answer, fault))

    def _emit(self, event: Callable[[], Event]) -> None:
        if self.executor.events:
            self.executor.events.emit(event())

    def _emit_now(self, event: Event) -> None:
        self._emit(lambda: event)

    def warn(self, message: str) -> None:
        """Emit a warning and store it for the result."""
        self.warnings.append(message)
        self._emit(lambda: Warned("", message))


async def _awaited(chosen: Any) -> Any:
    return await chosen


def _kind(record: ExecutionRecord) -> str:
    """Return the kind of the model failure in a record or in its nested records."""
    own = str((record.error or {}).get("kind", ""))
    return own or next((kind for inner in record.nested if (kind := _kind(inner))), "")


def _message(record: ExecutionRecord) -> str:
    own = str((record.error or {}).get("message", ""))
    return own or next((text for inner in record.nested if (text := _message(inner))), "a model can't be called")


def _failed_records(record: ExecutionRecord) -> Sequence[ExecutionRecord]:
    """Return the failed records nested in a record; the model needs them in order to correct its plan."""
    found: list[ExecutionRecord] = []
    for inner in record.nested[:50]:
        found += [inner] if inner.error is not None else []
        found += _failed_records(inner)
    return found


def _end_record(made: Asked) -> dict[str, Any]:
    """Return the record of the question's end. With this record and the stored steps, the result can be rebuilt without a call."""
    return {
        "status": made.status, "answer": made.answer, "cited": list(made.cited), "uncited": list(made.uncited),
        "stopped": made.stopped, "reason": made.reason,
        "supposed": None if made.supposed is None else asdict(made.supposed), "state": made.state,
        "evidence": [each.as_json() for each in made.evidence], "seconds": round(made.seconds, 3), "calls": made.calls,
        **stored_usage(made.usage), "cost": made.cost,
        "search": None if made.search is None else made.search.as_json(False), "incomplete": list(made.incomplete),
    }  # fmt: skip


def room_for(spec: str) -> int:
    """Return the maximum number of characters in a prompt for the model with this spec."""
    return LOCAL_CHARACTERS if spec == "local" or spec.startswith("local:") else MOST_CHARACTERS


async def traverse(
    wanted: QuestionRequest,
    opened: GASLExecutor,
    llm: Any,
    models: Mapping[str, Any] | None = None,
    *,
    cancel: asyncio.Event | None = None,
) -> Asked:
    """Answer a question with the graph, state, caps, chunks and events of the executor ``opened``, which runs nothing itself.

    ``llm`` and ``models`` are the clients that were passed to ``opened``: they write plans and answer the commands of plans. An
    earlier attempt at the question in the same state is continued. Raises ``RunError`` if the question can't be stored,
    ``StoreError`` if the state can't be written, and ``RequestError`` if the state's findings come from another graph.
    """
    base, named = opened.session, dict(models or {})
    await asyncio.to_thread(lambda: opened.adapter.schema)  # summarizes a large graph once, outside the event loop
    if not wanted.force and is_of_another(opened.state, opened.adapter):
        raise other_graph(wanted, "")
    record = _recorder(wanted, opened)
    if isinstance(record, StoredQuestion):
        return stored_answer(record)
    if record is not None:
        record.priced(wanted.prices)
    caller = Caller(llm, named, opened.events, Trace(), base.max_concurrency, record)
    means = capabilities_of(wanted.spec)
    fields = tuple(opened.adapter.schema.node_attributes) if means.small and wanted.as_json else None
    asker = PlannerCalls(caller, wanted.question, wanted.model, wanted.options, wanted.as_json, fields, wanted.spec)
    clients = {
        name: RecordedModel(client, name, record, asker.spent)
        for name, client in {"": llm, **named}.items()
        if client is not None
    }
    executor = GASLExecutor(
        opened.adapter, clients.get(""), opened.state, opened.context.copy(),
        models={name: client for name, client in clients.items() if name}, caps=base.caps, ceiling=base.ceiling,
        options=base.options, max_concurrency=base.max_concurrency, chunks=base.chunks, events=opened.events,
    )  # fmt: skip
    loop = Loop(
        wanted.question, executor, asker, clients, wanted.bounds, record, wanted.choose, cancel, wanted.searching
    )
    if fields is not None:
        loop.warn(means.remark)
    if record is not None:
        graph, before = opened.adapter.schema.hash, record.kept.head.get("input_hash")
        if before and before != graph:
            loop.warn("the graph has changed since the question was first asked")
        for damage in record.kept.damage:
            loop.warn(damage)
    opened.state.configure(query=wanted.question)
    try:
        with logged(opened.events, record.kept.path) if record is not None else nullcontext():
            return evolve(await loop.run(), prices=wanted.prices)
    finally:
        if record is not None:
            record.close()


def _recorder(wanted: QuestionRequest, opened: GASLExecutor) -> AskRecorder | StoredQuestion | None:
    if wanted.folder is None:
        return None
    return open_asks(
        wanted.folder, wanted.question, graph=opened.adapter.schema.hash, model=wanted.spec, again=wanted.again,
        options={"graph": wanted.graph},
    )  # fmt: skip
