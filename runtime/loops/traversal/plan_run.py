"""Runs a step's plan, also one that a kill cut short: what was committed is not done again, the rest is.

The unit is a command of the outermost level, as in the state's journal: its change, its entry in the history and its text in ``replay``
are one record. To go on behind the last one, its variables are needed: the commands before are run once more on a fork of the state
as it was when the plan began, with the models' answers that were kept. The history, and so a replay, has every command once.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import count
from time import perf_counter
from typing import Any

from attrs import evolve, field, frozen

from ....adapters.llm import LLM
from ....adapters.state import StateError, StateStore, StoreError
from ....lang.diagnostic import Diagnostic, Edit, all_as_json, apply_edits, has_errors, is_slip, is_spelling, picture
from ....lang.linter.gasl.graph import BUILT_IN, HAS_THIS_VALUE
from ....lang.parse.gasl import parse_gasl
from ....lang.parse.gasl.lines import COMMANDS
from ....lang.printer.gasl_printer import format_gasl
from ....lang.source import Source
from ....lang.trees import walk
from ....lang.trees.gasl import Cancel
from ...events import PlanFinished, PlanStarted, Warned
from ...gasl import GASLExecutor, PlanError
from ...gasl.dispatcher import CommandDispatcher
from ...gasl.flow import Flow, watched
from ...gasl.prepare import Ready, checked
from ...gasl.record_writer import Remembering, Turns
from ...gasl.records import ContextStore, ExecutionRecord, Session, cut, plan_status, storable
from ...models.caller import HOPELESS
from .plan_answer import NO_REASON, Draft
from .prompt import trail_view
from .traversal_results import Step

__all__ = [
    "Action",
    "Refusal",
    "check_draft",
    "continue_plan",
    "keeping",
    "renamed",
    "repeated",
    "repetitions",
    "told_faults",
]


# A proposed plan before it runs: checked against grammar, graph, state and ceiling; what a fix is known for is fixed on the spot.

# Which edits of a plan are made without asking: those that keep every command, and every word that says something.
# An edit that makes a remark of a line, or only takes words away, leads to a plan that runs and does less than was meant. An edit
# that puts one name in the place of another leads to a plan that answers another question. Such a fault goes back to the model
# instead.

_WORD = re.compile(r"\w+")
_ESCAPE = re.compile(r'\\[nrtbf"\\/]')
_COMMAND = re.compile(rf"\b(?:{'|'.join(COMMANDS)})\b")
_FILLERS = frozenset({"a", "all", "an", "every", "key", "of", "state", "the", "then", "variable"})
"""Words that the language does not have, and that mean nothing more in it. DISTINCT and UNIQUE mean something."""
_SPARE = {
    "GASL005": frozenset({"try", "block"}),  # END TRY
    "GASL014": frozenset({"from", "order", "ordered", "sort", "sorted"}),  # SELECT * FROM x; RANK x ORDER BY f
}
"""By code: words of other languages that stand beside the one that is kept."""
_LAYOUT = frozenset({"GASL029", "GASL030", "GASL060"})
"""A fence, a bullet, a field that is listed twice: what is removed is no part of a command, or stands there still."""


_OF_THE_GRAPH = frozenset({"GASL070", "GASL071", "GASL073"})
"""Whose edits put a name or value of the graph in the place of another: ``county`` may be in the graph, and ``country`` be meant.

A slip of the hand is mended all the same where the field that was meant has the very value that is asked for, or is the language's own."""
_OF_THE_PLAN = frozenset({"GASL050", "GASL055", "GASL061", "GASL062", "GASL064", "PLAN002"})
"""Whose edits put a name of the plan itself, of the state, or of the settings in the place of another."""
_NEVER = frozenset({"GASL056"})
"""Whose edits decide between two readings."""
_NAME = re.compile(r"""["'`]*[^\W\d][\w.\- ]*["'`]*""")


def keeping(found: Sequence[Diagnostic], text: str) -> list[Diagnostic]:
    """Return the errors of ``text`` whose edits may be made together: each keeps all that was said, none touches another's."""
    made: list[Diagnostic] = []
    taken: list[Edit] = []
    for each in found:
        if each.severity != "error" or not keeps_all(each, text) or not names_the_same(each, text):
            continue
        if not any(_touch(edit, other) for edit in each.edits for other in taken):
            made.append(each)
            taken += each.edits
    return made


def keeps_all(diagnostic: Diagnostic, text: str) -> bool:
    """Say whether a diagnostic of ``text`` has edits, and these leave every command, and every word with a meaning, in it."""
    before, after = Counter[str](), Counter[str]()
    for edit in diagnostic.edits:
        old = text[edit.span.start : edit.span.end]
        if edit.text.strip() == "#":
            if old.strip() != "#:" and (not old.strip() or _COMMAND.search(_rest_of_plan(text, edit.span.end))):
                return False
            continue
        before.update(_words(old))
        after.update(_words(edit.text))
    lost, gained = before - after, after - before
    spare = _FILLERS | _SPARE.get(diagnostic.code, frozenset())
    return bool(diagnostic.edits) and (bool(gained) or diagnostic.code in _LAYOUT or set(lost) <= spare)


def names_the_same(diagnostic: Diagnostic, text: str) -> bool:
    """Say whether a name that the edits put for another is that name, spelt as it has to be."""
    if diagnostic.code in _NEVER:
        return False
    if diagnostic.code not in _OF_THE_GRAPH | _OF_THE_PLAN:
        return True
    for edit in diagnostic.edits:
        old, new = text[edit.span.start : edit.span.end], edit.text
        if not (_NAME.fullmatch(old) and _NAME.fullmatch(new)):
            continue  # something is put in, as a DECLARE, or a number is written as one
        one, other = old.strip("\"'`"), new.strip("\"'`")
        same_end = diagnostic.code == "GASL061" and one.rpartition(".")[2] == other.rpartition(".")[2]
        of_language = any(other in names for names in BUILT_IN.values())
        may_slip = (
            of_language
            or diagnostic.code in _OF_THE_PLAN - {"GASL062"}
            or any(HAS_THIS_VALUE in each for each in diagnostic.hints)
        )
        slip = may_slip and is_slip(one, other)
        if not (is_spelling(one, other) or slip or same_end):
            return False
    return True


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(_ESCAPE.sub(" ", text))]


def _rest_of_plan(text: str, at: int) -> str:
    """Return what stands between ``at`` and the end of the line."""
    end = text.find("\n", at)
    return text[at : end if end >= 0 else len(text)]


def _touch(one: Edit, other: Edit) -> bool:
    a, b = one.span, other.span
    return (a.start < b.end and b.start < a.end) or a == b


_ROUNDS = 4
"""How often edits are made: one may uncover the next fault."""
_FAULTS, _FAULTS_LENGTH = 8, 3_000


@frozen
class Action:
    """A plan that may run: the plan object, how sure the model is of it and why. ``mended`` are faults that were put right."""

    plan: Mapping[str, Any]
    confidence: float = 1.0
    rationale: str = ""
    mended: tuple[str, ...] = ()
    ready: Ready | None = field(default=None, eq=False, repr=False)
    """The plan as it was checked; None where it comes from a kept run."""

    @property
    def plan_id(self) -> str:
        """The plan's id, which no other plan of the loop has."""
        return str(self.plan["plan_id"])

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands as texts."""
        return tuple(each["command"] if isinstance(each, Mapping) else str(each) for each in self.plan["commands"])

    def as_json(self) -> dict[str, Any]:
        """Return a next action as JSON, and what was mended."""
        told = {"plan": dict(self.plan), "confidence": self.confidence, "rationale": self.rationale}
        return {**told, "mended": list(self.mended)} if self.mended else told


@frozen
class Refusal:
    """A plan that can't run, and why: ``diagnostics`` as JSON, pointing into ``written``, the plan's own."""

    written: str
    diagnostics: tuple[dict[str, Any], ...] = field(repr=False)
    told: str = ""


def check_draft(draft: Draft, why: str, session: Session, given: ContextStore, plan_id: str) -> Action | Refusal:
    """Check a plan that would begin now in ``session`` with the variables ``given``. Nothing runs.

    ``plan_id`` is for a plan without one; ``why`` for one without a reason.
    """
    document = {
        "plan_id": draft.plan.get("plan_id") or plan_id,
        "why": draft.plan.get("why") or why or draft.rationale or NO_REASON,
        **{name: draft.plan[name] for name in ("commands", "config") if name in draft.plan},
    }
    text = json.dumps(storable(document), ensure_ascii=False, indent=1)
    fresh = evolve(session, context=given.copy())
    mended: list[str] = []
    error = _faults(text, fresh)
    first = error  # what is told is about the plan as the model wrote it
    for _ in range(_ROUNDS):
        if isinstance(error, Ready):
            break
        made = keeping(error.diagnostics, text)
        mended_text = apply_edits(text, (edit for each in made for edit in each.edits))
        if mended_text == text:
            break
        mended += [each.message for each in made]
        text = mended_text
        error = _faults(text, fresh)
    if isinstance(error, Ready):
        return Action(json.loads(text), draft.confidence, draft.rationale, tuple(dict.fromkeys(mended)), error)
    assert isinstance(first, PlanError)  # noqa: S101 - what is ready at first stays so
    source = first.source
    found = tuple(all_as_json(first.diagnostics, source))
    return Refusal(source.text, found, _told_all(first, error))


def _faults(text: str, session: Session) -> Ready | PlanError:
    try:
        ready = checked(Source(text, "<plan>"), session)
    except PlanError as error:
        return error
    if ready.statements:
        return ready
    hint = "a plan has at least one command, as FIND nodes AS x; a line that starts with # is a remark"
    return PlanError(
        [Diagnostic("PLAN006", "error", "no command of this plan does anything", hints=(hint,))], Source(text, "<plan>")
    )


def _told_all(first: PlanError, left: PlanError) -> str:
    """Picture the faults of the plan as it was written, and say what else there is when those with a fix are put right."""
    told = told_faults(first.diagnostics, first.source)
    known = {each.message for each in first.diagnostics}
    later = [each.message for each in left.diagnostics if each.severity == "error" and each.message not in known]
    if not later:
        return told
    return cut(
        f"{told}\nwith what can be mended put right, there is still: {'; '.join(later[:_FAULTS])}", _FAULTS_LENGTH
    )


def told_faults(diagnostics: Sequence[Diagnostic], source: Source) -> str:
    """Picture the errors for the model, the first ones, each with its hints."""
    errors = [each for each in diagnostics if each.severity == "error"]
    pictures = [cut(picture(each, source), 700) for each in errors[:_FAULTS]]
    if len(errors) > _FAULTS:
        pictures.append(f"and {len(errors) - _FAULTS} more")
    return cut("\n".join(pictures), _FAULTS_LENGTH)


def renamed(action: Action, used: "frozenset[str] | set[str]", number: int) -> Action:
    """Return the action under an id that no other plan of the loop has, unless its own commands name it (``CANCEL PLAN``)."""
    if action.plan_id not in used:
        return action
    from ....lang.parse.gasl import parse_gasl

    program = parse_gasl(Source("\n".join(action.commands), "<plan>"))
    if any(isinstance(node, Cancel) and node.plan == action.plan_id for item in program.items for node in walk(item)):
        return action
    plan_id = f"{action.plan_id[:180]}-{number}"
    tries = count(2)
    made = plan_id
    while made in used:
        made = f"{plan_id}-{next(tries)}"
    ready = None if action.ready is None else evolve(action.ready, plan_id=made)
    return evolve(action, plan={**action.plan, "plan_id": made}, ready=ready)


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
