"""Runs a step's plan, also one that a kill cut short: what was committed is not done again, the rest is.

The unit is a command of the outermost level, as in the state's journal: its change, its entry in the history and its text in ``replay``
are one record. To go on behind the last one, its variables are needed: the commands before are run once more on a fork of the state
as it was when the plan began, with the models' answers that were kept. The history, and so a replay, has every command once.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from time import perf_counter
from typing import Any

from attrs import evolve

from ....adapters.llm import LLM
from ....adapters.state import StateError, StateStore, StoreError
from ....lang.diagnostic import has_errors
from ....lang.parse.gasl import parse_gasl
from ....lang.printer.gasl import format_gasl
from ....lang.source import Source
from ...events import PlanFinished, PlanStarted, Warned
from ...gasl import GASLExecutor
from ...gasl.dispatcher import CommandDispatcher
from ...gasl.flow import Flow, watched
from ...gasl.prepare import Ready, checked
from ...gasl.recorded_answers import Remembering, Turns
from ...gasl.records import ExecutionRecord, plan_status
from ...gasl.session import Session
from ...gasl.variables import ContextStore
from ...models.caller import HOPELESS
from .plan_check import Action
from .prompt import trail_view
from .traversal_results import Step

__all__ = ["continue_plan", "repeated", "repetitions"]


class _Reached(Exception):
    """The commands that were committed have all been run once more, and the plan goes on behind them."""


def committed(state: StateStore, plan_id: str, since: int) -> int:
    """Return how many commands of a plan the state has, whose entries stand from ``since`` on.

    One that was cancelled, or whose model could not be asked, is not done where it ended the plan, or was run again.
    """
    own = [each for each in state.history[since:] if each.get("plan_id") == plan_id and "part" not in each]
    done = 0
    for at, entry in enumerate(own):
        again = at + 1 == len(own) or own[at + 1].get("command") == entry.get("command")
        done += not (again and _is_undone(entry))
    return done


def _is_undone(entry: Mapping[str, Any]) -> bool:
    return entry.get("status") == "cancelled" or (entry.get("error") or {}).get("kind") in HOPELESS


async def continue_plan(
    executor: GASLExecutor,
    clients: Mapping[str, LLM],
    plan: Mapping[str, Any],
    since: int,
    before: str,
    given: ContextStore,
    cancel: asyncio.Event | None,
) -> list[ExecutionRecord]:
    """Run what is left of a plan, and return the records of all of it.

    ``clients`` are the models by the plans' names ("" is their own). ``since`` and ``before`` are the history's length and the
    state's hash when the plan began. The executor must not have run anything yet. Raises ``PlanError`` and ``StoreError``.
    """
    state, plan_id = executor.state, str(plan["plan_id"])
    done = committed(state, plan_id, since)
    if not done:
        return await executor.arun_plan(plan, cancel=cancel)
    await asyncio.to_thread(lambda: executor.adapter.schema)
    past = state.fork()
    try:
        past.rollback(before)
    except (
        StateError,
        StoreError,
    ):  # compacted away: what the plan read of the state may differ, what it found does not
        if executor.events:
            executor.events.emit(
                Warned("", "the state of before the plan is no longer kept: its variables are bound in that of now")
            )
    session = evolve(
        executor.session, state=past, llm=clients.get(""), models={name: each for name, each in clients.items() if name},
        context=given.copy(), options=dict(executor.session.options), events=None, plan_id=plan_id, label="",
    )  # fmt: skip
    ready = checked(plan, session)
    flow, records, over = await _again(ready, session, done)
    if over or done >= len(ready.statements):
        return records
    return records + await _rest(executor, clients, ready, flow, done, cancel)


async def _again(ready: Ready, session: Session, done: int) -> tuple[Flow, list[ExecutionRecord], bool]:
    """Run the first ``done`` commands on the fork. Return the plan under way, its records, and whether it ended with them."""
    begun = 0

    def next_step() -> int:
        nonlocal begun
        begun += 1
        if begun > done:
            raise _Reached
        return begun

    flow = Flow(session, CommandDispatcher(), next_step, ready.stop_on_error, ready.continue_on_empty)
    flow.source = ready.program.source
    records: list[ExecutionRecord] = []
    try:
        await flow.run(ready.statements, ready.texts, ready.why, records.append)
    except _Reached:
        return flow, records, False
    return flow, records, True


async def _rest(
    executor: GASLExecutor,
    clients: Mapping[str, LLM],
    ready: Ready,
    before: Flow,
    done: int,
    cancel: asyncio.Event | None,
) -> list[ExecutionRecord]:
    """Run the commands behind the first ``done`` in the state itself, as one plan with them."""
    state, turns = executor.state, Turns()
    number = _last_step(state)

    def next_step() -> int:
        nonlocal number
        number += 1
        turns.begin(number)
        return number

    def warn(message: str) -> None:
        if executor.events:
            executor.events.emit(Warned("", message))

    def kept(name: str) -> LLM:
        return Remembering(clients[name], name, state, turns, warn)

    models = {name: kept(name) for name in clients if name}
    session = evolve(
        before.session,
        state=state,
        llm=kept("") if "" in clients else None,
        models=models,
        events=executor.events,
        cancel=None,
    )
    flow = Flow(
        session, CommandDispatcher(), next_step, ready.stop_on_error, ready.continue_on_empty, ready.program.source,
        before.statuses, told=True,
    )  # fmt: skip
    records: list[ExecutionRecord] = []
    left: Sequence[Any] = ready.statements[done:]
    flow.emit(PlanStarted(ready.plan_id, len(left), ready.why or ""))
    began, status = perf_counter(), "error"
    try:
        async with watched(flow, cancel):
            await flow.run(left, ready.texts[done:], ready.why, records.append)
        state.sync()
        status = plan_status(records)
    finally:
        flow.emit(PlanFinished(ready.plan_id, status, perf_counter() - began))
    if flow.cancelled_by_task:
        raise asyncio.CancelledError
    return records


def _last_step(state: StateStore) -> int:
    """Return the number of the state's last command."""
    last = state.history[-1].get("step") if len(state.history) else 0
    return last if isinstance(last, int) else len(state.history)


# A plan that was run before, and nothing has changed since: it goes back to the model once, for it would come to the same.
# A plan that is run again all the same, and comes to the same, is a repetition; the next one in a row ends the loop.


_SHOWN = 800
_LONGEST = 20_000


def repeated(action: Action, state: str, steps: Sequence[Step]) -> str:
    """Say of a plan that would be run in the state with the hash ``state`` that it was run already; "" where it was not.

    The latest step with these commands counts, where it left the state as it is now.
    """
    for step in reversed(steps):
        if step.state == state and _same(step, action):
            return (
                f"this plan was run in step {step.number}, and the state has not changed since:\n{trail_view([step], _SHOWN)}\n"
                "plan something else, or answer the question; the same plan once more is run as it is, and then ends the loop"
            )
    return ""


def repetitions(steps: Sequence[Step]) -> int:
    """Return how many of the last steps in a row ran a plan that was run before, and came to the same."""
    count = 0
    for at in range(len(steps) - 1, -1, -1):
        step = steps[at]
        if not any(_same(each, step) and _came_to(each) == _came_to(step) for each in steps[:at]):
            break
        count += 1
    return count


def _same(step: Step, other: Step | Action) -> bool:
    return (
        bool(step.commands)
        and step.plan.get("config") == other.plan.get("config")
        and _written(step.commands) == _written(other.commands)
    )


@cache
def _written(commands: tuple[str, ...]) -> str:
    """Return commands as the printer writes them: case and blanks do not matter."""
    text = "\n".join(commands)
    program = parse_gasl(Source(text, "<plan>")) if len(text) <= _LONGEST else None
    return text if program is None or has_errors(program.diagnostics) else format_gasl(program)


def _came_to(step: Step) -> list[Any]:
    """Return what the commands gave; how it changed the state is left out: a counter that counts the same again is no progress."""
    return [_result(entry) for entry in step.entries]


def _result(entry: Mapping[str, Any]) -> Any:
    count = (entry.get("summary") or {}).get("count") if entry.get("variable") else None
    return entry.get("status"), entry.get("variable"), count, entry.get("output")
