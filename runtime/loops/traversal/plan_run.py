"""Checks and runs the plan of a step. An interrupted plan is continued: committed commands are not repeated, the others are run.

Progress is counted in commands of the outermost level, as in the state's journal: the change made by a command, its history
entry and its text in ``replay`` are one record. To continue after the last committed command, the plan's variables are needed.
Therefore the earlier commands run once more on a fork of the state at the plan's start, with the recorded model answers. The
history, and therefore a replay, contains every command once.
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
from ....lang.catalogue.commands import COMMANDS
from ....lang.diagnostic import Diagnostic, Edit, all_as_json, apply_edits, has_errors, is_slip, is_spelling, picture
from ....lang.linter.gasl.graph import BUILT_IN, HAS_THIS_VALUE
from ....lang.parse.gasl import parse_gasl
from ....lang.printer.gasl_printer import format_gasl
from ....lang.source import Source
from ....lang.trees import walk
from ....lang.trees.gasl import Cancel
from ...events import PlanFinished, PlanStarted, Warned
from ...excerpts import cut, storable
from ...gasl import GASLExecutor, PlanError
from ...gasl.dispatcher import CommandDispatcher
from ...gasl.flow import Flow, watched
from ...gasl.prepare import Ready, checked
from ...gasl.record_writer import AnswerRecorder, Turns
from ...gasl.records import ContextStore, ExecutionRecord, Session, plan_status
from ...models.caller import HOPELESS
from .plan_answer import NO_REASON, Draft
from .prompt import trail_view
from .traversal_results import Step

# A proposed plan is checked against grammar, graph, state and limits before it runs; faults with a certain fix are fixed at once.

# A fix is made without a call only if its edits keep every command and every meaningful word. An edit that turns a line into a
# comment, or that only removes meaningful words, would make the plan do less than intended. An edit that replaces a name with
# another name would make the plan answer another question. Such a fault is returned to the model.

_WORD = re.compile(r"\w+")
_ESCAPE = re.compile(r'\\[nrtbf"\\/]')
_COMMAND = re.compile(rf"\b(?:{'|'.join(COMMANDS)})\b")
_FILLERS = frozenset({"a", "all", "an", "every", "key", "of", "state", "the", "then", "variable"})
"""Filler words that are not part of the language and carry no meaning. DISTINCT and UNIQUE carry meaning."""
_SPARE = {
    "GASL005": frozenset({"try", "block"}),  # END TRY
    "GASL014": frozenset({"from", "order", "ordered", "sort", "sorted"}),  # SELECT * FROM x; RANK x ORDER BY f
}
"""Maps a code to the words of other languages that its edits may remove."""
_LAYOUT = frozenset({"GASL029", "GASL030", "GASL060"})
"""Codes for a fence, a bullet, and a field listed twice: the removed text is not part of a command, or occurs twice."""


_OF_THE_GRAPH = frozenset({"GASL070", "GASL071", "GASL073"})
"""Codes whose edits replace names or values with similar ones from the graph. This may be wrong: ``country`` is not ``county``.

A typo is still fixed if the field with the corrected name has the requested value, or the name belongs to the language.
"""
_OF_THE_PLAN = frozenset({"GASL050", "GASL055", "GASL061", "GASL062", "GASL064", "GASL091", "PLAN002"})
"""Codes whose edits replace a name with a name from the plan itself, the state, or the settings."""
_NEVER = frozenset({"GASL056"})
"""Codes whose edits choose between two interpretations."""
_NAME = re.compile(r"""["'`]*[^\W\d][\w.\- ]*["'`]*""")


def certain_fixes(found: Sequence[Diagnostic], text: str) -> list[Diagnostic]:
    """Return the errors of ``text`` whose edits preserve the meaning and don't overlap, so that all can be made together."""
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
    """Return whether a diagnostic about ``text`` has edits that keep every command and every meaningful word."""
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
    """Return whether every inserted name only corrects the spelling of the name that it replaces."""
    if diagnostic.code in _NEVER:
        return False
    if diagnostic.code not in _OF_THE_GRAPH | _OF_THE_PLAN:
        return True
    for edit in diagnostic.edits:
        old, new = text[edit.span.start : edit.span.end], edit.text
        if not (_NAME.fullmatch(old) and _NAME.fullmatch(new)):
            continue  # the edit inserts text, such as a DECLARE, or rewrites a number
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
    """Return the text between ``at`` and the end of the line."""
    end = text.find("\n", at)
    return text[at : end if end >= 0 else len(text)]


def _touch(one: Edit, other: Edit) -> bool:
    a, b = one.span, other.span
    return (a.start < b.end and b.start < a.end) or a == b


_ROUNDS = 4
"""Maximum number of rounds of edits: one edit may reveal the next fault."""
_FAULTS, _FAULTS_LENGTH = 8, 3_000


@frozen
class Action:
    """A plan that passed the check, with the model's confidence and rationale. ``mended`` are the faults that were fixed."""

    plan: Mapping[str, Any]
    confidence: float = 1.0
    rationale: str = ""
    mended: tuple[str, ...] = ()
    ready: Ready | None = field(default=None, eq=False, repr=False)
    """The plan as it was checked; None if it comes from a stored run."""

    @property
    def plan_id(self) -> str:
        """The plan's id, unique in the loop."""
        return str(self.plan["plan_id"])

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands as strings."""
        return tuple(each["command"] if isinstance(each, Mapping) else str(each) for each in self.plan["commands"])

    def as_json(self) -> dict[str, Any]:
        """Return the next action as JSON, with the fixes."""
        told = {"plan": dict(self.plan), "confidence": self.confidence, "rationale": self.rationale}
        return {**told, "mended": list(self.mended)} if self.mended else told


@frozen
class Refusal:
    """A plan that can't run, and why: ``diagnostics`` are JSON objects with spans in ``written``, the plan as the model wrote it."""

    written: str
    diagnostics: tuple[dict[str, Any], ...] = field(repr=False)
    told: str = ""


def check_draft(draft: Draft, why: str, session: Session, given: ContextStore, plan_id: str) -> Action | Refusal:
    """Check a plan that is to start in ``session`` with the variables ``given``, without running the plan.

    ``plan_id`` is used for a plan without an id, and ``why`` for a plan without a reason.
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
    first = error  # the report shows the plan as the model wrote it
    for _ in range(_ROUNDS):
        if isinstance(error, Ready):
            break
        made = certain_fixes(error.diagnostics, text)
        mended_text = apply_edits(text, (edit for each in made for edit in each.edits))
        if mended_text == text:
            break
        mended += [each.message for each in made]
        text = mended_text
        error = _faults(text, fresh)
    if isinstance(error, Ready):
        return Action(json.loads(text), draft.confidence, draft.rationale, tuple(dict.fromkeys(mended)), error)
    assert isinstance(first, PlanError)  # noqa: S101 - a plan that was ready at first is still ready
    source = first.source
    found = tuple(all_as_json(first.diagnostics, source))
    return Refusal(source.text, found, _all_faults(first, error))


def _faults(text: str, session: Session) -> Ready | PlanError:
    try:
        ready = checked(Source(text, "<plan>"), session)
    except PlanError as error:
        return error
    if ready.statements:
        return ready
    hint = "a plan needs at least one command, such as FIND nodes AS x; a line that starts with # is a comment"
    return PlanError(
        [Diagnostic("PLAN006", "error", "the plan contains no command that runs", hints=(hint,))],
        Source(text, "<plan>"),
    )


def _all_faults(first: PlanError, left: PlanError) -> str:
    """Render the faults of the plan as the model wrote it, and the faults that remain after the fixes."""
    told = render_faults(first.diagnostics, first.source)
    known = {each.message for each in first.diagnostics}
    later = [each.message for each in left.diagnostics if each.severity == "error" and each.message not in known]
    if not later:
        return told
    return cut(f"{told}\nafter all certain fixes, these faults remain: {'; '.join(later[:_FAULTS])}", _FAULTS_LENGTH)


def render_faults(diagnostics: Sequence[Diagnostic], source: Source) -> str:
    """Render the first errors for the model, each with its hints."""
    errors = [each for each in diagnostics if each.severity == "error"]
    pictures = [cut(picture(each, source), 700) for each in errors[:_FAULTS]]
    if len(errors) > _FAULTS:
        pictures.append(f"and {len(errors) - _FAULTS} more")
    return cut("\n".join(pictures), _FAULTS_LENGTH)


def renamed(action: Action, used: "frozenset[str] | set[str]", number: int) -> Action:
    """Return the action with a plan id that is unique in the loop. The id stays if the plan's commands use it (``CANCEL PLAN``)."""
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
    """Raised when all committed commands have been repeated on the fork and the plan has further commands."""


def committed(state: StateStore, plan_id: str, since: int) -> int:
    """Return the number of a plan's commands that the state has committed, counted in the history entries from ``since`` on.

    A command that was cancelled, or whose model could not be called, is not counted if it ended the plan or was run again.
    """
    own = [each for each in state.history[since:] if each.get("plan_id") == plan_id and "part" not in each]
    done = 0
    for at, entry in enumerate(own):
        again = at + 1 == len(own) or own[at + 1].get("command") == entry.get("command")
        done += not (
            again and (entry.get("status") == "cancelled" or (entry.get("error") or {}).get("kind") in HOPELESS)
        )
    return done


async def continue_plan(
    executor: GASLExecutor,
    clients: Mapping[str, LLM],
    plan: Mapping[str, Any],
    since: int,
    before: str,
    given: ContextStore,
    cancel: asyncio.Event | None,
) -> list[ExecutionRecord]:
    """Run the remaining commands of a plan, and return the records of the complete plan.

    ``clients`` maps the model names used in plans to clients ("" is the default model). ``since`` is the length of the history and
    ``before`` the hash of the state at the plan's start. The executor must not have run anything yet. Raises ``PlanError`` or
    ``StoreError``.
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
    ):  # the past state was compacted: commands read the current state instead, and the findings remain
        if executor.events:
            executor.events.emit(
                Warned(
                    "",
                    "the state before the plan is no longer stored; the plan's variables are bound in the current state",
                )
            )
    session = evolve(
        executor.session, state=past, llm=clients.get(""), models={name: each for name, each in clients.items() if name},
        context=given.copy(), options=dict(executor.session.options), events=None, plan_id=plan_id, label="",
    )  # fmt: skip
    ready = checked(plan, session)
    flow, records, over = await _replay_commands(ready, session, done)
    if over or done >= len(ready.statements):
        return records
    return records + await _run_rest(executor, clients, ready, flow, done, cancel)


async def _replay_commands(ready: Ready, session: Session, done: int) -> tuple[Flow, list[ExecutionRecord], bool]:
    """Run the first ``done`` commands on the fork. Return the running plan, its records, and whether these ended the plan."""
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


async def _run_rest(
    executor: GASLExecutor,
    clients: Mapping[str, LLM],
    ready: Ready,
    before: Flow,
    done: int,
    cancel: asyncio.Event | None,
) -> list[ExecutionRecord]:
    """Run the commands after the first ``done`` in the executor's state, as a continuation of the same plan."""
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

    def recorder(name: str) -> LLM:
        return AnswerRecorder(clients[name], name, state, turns, warn)

    models = {name: recorder(name) for name in clients if name}
    session = evolve(
        before.session,
        state=state,
        llm=recorder("") if "" in clients else None,
        models=models,
        events=executor.events,
        cancel=None,
    )
    flow = Flow(
        session, CommandDispatcher(), next_step, ready.stop_on_error, ready.continue_on_empty, ready.program.source,
        before.statuses, settings_noted=True,
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


# A plan that already ran in the same state is returned to the model once, because its result would be the same. If the plan is run
# again anyway, with the same result, this counts as a repetition. The next repetition in a row ends the loop.

_SHOWN = 800
_LONGEST = 20_000


def repeated(action: Action, state: str, steps: Sequence[Step]) -> str:
    """Return a message if the same commands already ran in the state with the hash ``state``; "" if they did not.

    Only the latest step with these commands is considered, and only if the state has not changed since that step.
    """
    for step in reversed(steps):
        if step.state == state and _same(step, action):
            return (
                f"this plan was run in step {step.number}, and the state has not changed since:\n{trail_view([step], _SHOWN)}\n"
                "plan something else, or answer the question; if you repeat this plan, it is run again, and then the loop ends"
            )
    return ""


def repetitions(steps: Sequence[Step]) -> int:
    """Return how many of the last steps, without a gap, repeated an earlier plan with the same result."""
    count = 0
    for at in range(len(steps) - 1, -1, -1):
        step = steps[at]
        if not any(_same(each, step) and _results_of(each) == _results_of(step) for each in steps[:at]):
            break
        count += 1
    return count


def _same(step: Step, other: Step | Action) -> bool:
    return (
        bool(step.commands)
        and step.plan.get("config") == other.plan.get("config")
        and _normalized(step.commands) == _normalized(other.commands)
    )


@cache
def _normalized(commands: tuple[str, ...]) -> str:
    """Return the commands in the printer's form, so that differences in case and white space do not matter."""
    text = "\n".join(commands)
    program = parse_gasl(Source(text, "<plan>")) if len(text) <= _LONGEST else None
    return text if program is None or has_errors(program.diagnostics) else format_gasl(program)


def _results_of(step: Step) -> list[Any]:
    """Return the results of the commands, but not their changes to the state.

    A counter that counts the same items again changes the state, but is no progress.
    """
    return [_result(entry) for entry in step.entries]


def _result(entry: Mapping[str, Any]) -> Any:
    count = (entry.get("summary") or {}).get("count") if entry.get("variable") else None
    return entry.get("status"), entry.get("variable"), count, entry.get("output")
