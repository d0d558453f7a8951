"""Phases 2 and 3 of a ranking.

In phase 2 a model completes the script with tools until it calls ``done()``. A plan that is already complete needs no model call.
An answer may contain several tool calls; they run in order up to the first failure, and the model receives the result of each call.
In phase 3 the script runs, and its output becomes the ranking.
"""

import asyncio
import re
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from attrs import define, evolve, field, frozen

from ....lang.diagnostic import Diagnostic, nearest
from ....lang.literals import kind_of
from ....lang.source import Source
from ....lang.trees.lwt import Script
from ...events import RepairAsked, ToolCalled
from ...excerpts import clipped, excerpt, fenced, fill, read_prompt
from ...limits import Deadline, Repetition
from ...lwt.operations.llm_call import parse_call
from ...lwt.runner import run as run_script
from ...models.caller import Caller, Request, Spent, counted
from ...results import Outcome, Record, Recorded, Run, StepFailed, StepResult, Trace
from .draft_script import Edited, Skeleton, as_lines, as_objects, excerpts, ranking_error
from .item_names import name_of
from .plan_phase import Planned
from .ranking_parser import Order, read_order
from .ranking_results import Job, ToolUse, with_budget_hint
from .tools import PARAMETERS, Call, read_calls

# The tools in the form that a model's tool-calling interface expects.

_ABOUT = {
    "done": "Finish: the script is complete.",
    "lwt_list": "Show the current steps with their indices.",
    "lwt_insert": "Add a step before the one at idx, or at the end.",
    "lwt_set": "Replace the step at idx.",
    "lwt_delete": "Remove the step at idx.",
    "read": 'Get the data at a path such as items[5].item_data or items[5]["a b"].',
}
_SCHEMAS: dict[type, dict[str, Any]] = {int: {"type": "integer", "minimum": 0}, str: {"type": "string"}}

TOOLS: tuple[dict[str, Any], ...] = tuple(
    {
        "name": name,
        "description": _ABOUT[name],
        "parameters": {
            "type": "object",
            "properties": {parameter: _SCHEMAS[kind] for parameter, kind in parameters},
            "required": [parameter for parameter, _ in parameters],
            "additionalProperties": False,
        },
    }
    for name, parameters in PARAMETERS.items()
)
"""The tools in the form of the port's option ``tools``."""


# ``read(path)`` returns a bounded part of the input. See ``docs/design/loops.md#ranking``. Examples of a path:
# ``items[5].item_data``, ``items[5]["a b"]``, ``items[0:3]``.

SHOWN = 4_000
"""Maximum characters returned by one ``read``."""
_LONGEST = 400
_DEEPEST = 20
_ROOT = re.compile(r"\s*(?:\{\(input\)\}|input(?=[.\[])|query(?=[.\[])|\$)?\.?")
_PART = re.compile(
    r"""(?:\.?(?P<name>[A-Za-z_][\w-]*) | \[\s*(?P<index>-?\d{1,9})\s*\] | \[\s*(?P<from>\d{0,9})\s*:\s*(?P<to>\d{0,9})\s*\]
      | \[\s*"(?P<double>[^"]*)"\s*\] | \[\s*'(?P<single>[^']*)'\s*\] | \[\s*(?P<bare>[A-Za-z_][\w -]*)\s*\])""",
    re.VERBOSE,
)


def read_path(data: Mapping[str, Any], path: str) -> tuple[bool, str] | Diagnostic:
    """Return a flag and the JSON of the value at ``path``; the flag is false if the JSON was shortened.

    Return a diagnostic if the path has no value. Never raises.
    """
    if len(path) > _LONGEST:
        return ranking_error("RANK006", f"the path has {len(path):,} characters; at most {_LONGEST} are allowed")
    at = _ROOT.match(path).end()  # type: ignore[union-attr]
    value: Any = data
    path = path.rstrip()
    for _ in range(_DEEPEST):
        if at >= len(path):
            return _value_excerpt(value)
        part = _PART.match(path, at)
        if part is None:
            return ranking_error(
                "RANK006",
                f"the path is invalid from {path[at : at + 40]!r} on",
                'write a path such as items[5].item_data or items[5]["a b"]',
            )
        stepped = _step(value, part, path[: part.end()])
        if isinstance(stepped, Diagnostic):
            return stepped
        (value,) = stepped
        at = part.end()
    return (
        _value_excerpt(value)
        if at >= len(path)
        else ranking_error("RANK006", f"the path has more than {_DEEPEST} parts")
    )


def _value_excerpt(value: Any) -> tuple[bool, str]:
    text = excerpt(value, SHOWN)
    return "… [" not in text, text


def _step(value: Any, part: "re.Match[str]", path: str) -> tuple[Any] | Diagnostic:
    if part["index"] is not None or part["from"] is not None:
        if not isinstance(value, list | tuple):
            return ranking_error("RANK006", f"{path}: the value is {kind_of(value)}, not a list")
        if part["from"] is not None:
            return (value[int(part["from"] or 0) : int(part["to"]) if part["to"] else None],)
        index = int(part["index"])
        if not -len(value) <= index < len(value):
            return ranking_error(
                "RANK006", f"{path}: index {index} is out of range; the list has {len(value):,} elements"
            )
        return (value[index],)
    key = next(part[name] for name in ("name", "double", "single", "bare") if part[name] is not None)
    if not isinstance(value, Mapping):
        return ranking_error("RANK006", f"{path}: the value is {kind_of(value)}, not an object")
    if key not in value:
        like = nearest(key, map(str, value))
        listed = ", ".join([str(each)[:40] for each in value][:20])
        return ranking_error(
            "RANK006",
            f"{path}: unknown key {key[:60]!r}",
            f"did you mean {like!r}?" if like else f"the keys are {listed}",
        )
    return (value[key],)


MAX_ITERATIONS = 10
"""Default maximum number of model answers in an expansion."""
_HISTORY = 24_000
"""Maximum characters of the earlier calls and results that a prompt repeats; the oldest are omitted."""
_CALL, _RESULT, _MESSAGE = 6_000, 12_000, 6_000
"""Maximum characters of one call, of one result, and of the plan's message in a prompt."""


@frozen
class Expanded:
    """The script to run. ``iterations`` counts model answers: 0 if the plan was already complete.

    If the expansion ended without ``done()``, ``unfinished`` says why, and the script may be incomplete; otherwise it is "".
    """

    script: Script
    text: str
    iterations: int = 0
    unfinished: str = ""


async def expand(job: Job, planned: Planned, spent: Spent, max_iterations: int = MAX_ITERATIONS) -> Expanded:
    """Return the completed script. Raises ``StepFailed`` if a call to the model fails."""
    work = _Work(job, planned, Skeleton(planned.script, job.data, job.models))
    if not planned.read.expand:
        return Expanded(planned.script, work.skeleton.text)
    for iteration in range(1, max_iterations + 1):
        offered = {"tools": TOOLS} if job.means.tools else {}
        text = await job.ask("expand", iteration - 1, work.prompt(), spent, **offered)
        if work.carry_out(text, iteration):
            return Expanded(work.skeleton.script, work.skeleton.text, iteration)
        if work.repetition.is_over:
            why = f"the expansion ended in iteration {iteration} without done(): the last 3 answers changed nothing and found nothing new"
            return work.unfinished(iteration, why)
    return work.unfinished(max_iterations, f"the expansion did not call done() in {max_iterations} iterations")


@define
class _Work:
    """An expansion in progress."""

    job: Job
    planned: Planned
    skeleton: Skeleton
    repetition: Repetition = field(factory=Repetition)

    def unfinished(self, iterations: int, why: str) -> Expanded:
        """Return the current script, with the reason why it may be incomplete."""
        self.job.warn(f"{why}; the script is used as it is")
        return Expanded(self.skeleton.script, self.skeleton.text, iterations, why)

    def prompt(self) -> str:
        """Return the prompt of the next iteration, with the current script and the calls so far."""
        return fill(
            read_prompt(__package__, "expand"),
            {
                "context": fenced(self.job.request), "message": fenced(excerpts(self.planned.read.message, (), _MESSAGE)),
                "lwt_skeleton": fenced(self.skeleton.listed()), "history": self._history(),
            },
        )  # fmt: skip

    def carry_out(self, text: str, iteration: int) -> bool:
        """Run the calls of an answer and return whether ``done()`` is among them."""
        before = len(self.job.tools)
        if self._is_done(text, iteration):
            return True
        self.repetition.take(*((use.call, use.ok, use.result) for use in self.job.tools[before:]))
        return False

    def _is_done(self, text: str, iteration: int) -> bool:
        read = read_calls(text)
        for call in read.calls:
            if call.tool == "done":
                self._note(ToolUse(iteration, "done()", True, ""))
                return True
            made = self._call(call)
            self._note(ToolUse(iteration, str(call), made.done, made.message))
            if not made.done:  # the following calls assume that this call succeeded
                return False
        wrong = read.fault
        if wrong is None and not read.calls:
            wrong = ranking_error(
                "RANK004", "the answer has no tool call", "write each call on a separate line, such as done()"
            )
        if wrong is not None:
            self._note(ToolUse(iteration, "", False, _as_line(wrong)))
        return False

    def _call(self, call: Call) -> Edited:
        given, skeleton = call.arguments, self.skeleton
        match call.tool:
            case "lwt_insert":
                return skeleton.insert(given["idx"], given["step"])
            case "lwt_set":
                return skeleton.set(given["idx"], given["step"])
            case "lwt_delete":
                return skeleton.delete(given["idx"])
            case "read":
                found = read_path(self.job.data, given["path"])
                if isinstance(found, Diagnostic):
                    return Edited(False, _as_line(found))
                whole, text = found
                return Edited(True, text if whole else f"{text}\n(shortened; read a part of it for more)")
            case _:
                return Edited(True, skeleton.listed())

    def _note(self, use: ToolUse) -> None:
        self.job.tools.append(use)
        if self.job.events:
            told = ToolCalled("rank", use.call, use.ok, use.result, use.iteration, self.job.number)
            self.job.events.emit(told)

    def _history(self) -> str:
        """Return the latest calls and their results, bounded in length."""
        kept: list[str] = []
        left = _HISTORY
        for use in reversed(self.job.tools):
            how = "" if use.ok else " (refused; nothing was changed)"
            call = excerpts(use.call, (), _CALL) or "your answer"
            text = f"{call}{how}\n{fenced(excerpts(use.result, (), _RESULT))}"
            left -= len(text)
            if left < 0 and kept:
                kept.append("(earlier calls are left out)")
                break
            kept.append(text)
        if self.repetition.is_told:
            kept.insert(0, _NOTHING_NEW.format(self.repetition.count))
        return "\n".join(["[WHAT YOU DID SO FAR]", *reversed(kept)]) if kept else ""


_NOTHING_NEW = (
    "Your last {} answers changed nothing and found nothing new. Call a tool that does, or done(): one more answer like these ends "
    "the expansion."
)


def _as_line(found: Diagnostic) -> str:
    return as_lines(as_objects([found], Source("", "<plan>")))


# Phase 3 of a ranking: the script runs, and the output of its last step becomes the ranking. If that output can't be read as a
# ranking, only the last step is repeated.


@frozen
class Executed:
    """The run of the script, the items that its output names, and the number of requests sent.

    ``output`` is the last step's text; ``spent`` is the cost of repeating that step, in addition to the run. ``unsure`` says
    why the ranking may be incomplete.
    """

    run: Run
    order: Order
    sent: int
    output: str | None = None
    spent: Spent = field(factory=Spent)
    unsure: str = ""


async def execute(job: Job, script: Script, cancel: asyncio.Event | None, max_concurrency: int) -> Executed:
    """Run ``script`` and read its output. A failed step is reported in the result."""
    caller = job.caller
    record = None if caller.record is None else _RequestRecord(caller.record, job.label)
    sent = Spent()
    models = {name: counted(client, tally=sent) for name, client in caller.models.items()}
    llm = None if caller.llm is None else counted(caller.llm, tally=sent)
    run = await run_script(
        script, input=job.data, llm=llm, models=models,
        max_concurrency=max_concurrency, events=job.events, record=record, cancel=cancel, prompts=True, refuses_options=False,
    )  # fmt: skip
    made = Executed(run, _order(job, run), sent.calls, run.output)
    if (
        run.status == "cancelled"
        or run.output is None
        or (made.order.none or (made.order.indices and not made.order.unknown))
    ):
        return made
    events = job.events if job.events is not None else caller.events
    asking = Caller(llm, models, events, Trace(), max_concurrency, record)
    asking.gate = caller.gate
    work = asyncio.ensure_future(_ask_again(job, script, made, asking))
    ending = Deadline(cancel, None)
    try:
        await ending.wait_for(work)
        return (
            evolve(await work, sent=sent.calls)
            if work.done()
            else evolve(made, order=Order(reason="cancelled"), sent=sent.calls)
        )
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def _ask_again(job: Job, script: Script, made: Executed, caller: Caller) -> Executed:
    """Repeat the last step with its own prompt and the reason why its output is not a ranking."""
    run, order, spent = made.run, made.order, Spent()
    why = order.reason or f"the output names items that do not exist: {', '.join(order.unknown[:5])}"
    written = made.output or ""
    if job.events:
        job.events.emit(RepairAsked("rank", "execute", 1, written, (), job.number, why))
    step = next((each for each in script.steps if each.id == run.final), None)
    if (
        step is not None
        and step.call.operation == "LLM"
        and (prompt := (run.trace.prompts or {}).get(run.final)) is not None
    ):
        own = parse_call(step.call).request
        request = Request("", "text", own.model, own.options)
    else:
        prompt, request = _about(job), Request("")
    values = {
        "prompt": prompt, "output": fenced(clipped(written, _SHOWN)), "why": clipped(why, _LONGEST_OUTPUT), "last": str(len(job.items) - 1)
    }  # fmt: skip
    request = evolve(request, prompt=fill(read_prompt(__package__ or "", "unread"), values))
    began = perf_counter()
    try:
        outcome = await caller.ask(run.final, request, _TURN)
    except StepFailed as error:
        spent.add(0, error.usage, error.cost)
        reason = _with_budget(run, f"{why}; the last step could not be repeated: {error.failed.message}")
        kept = evolve(order, reason="" if order.indices else with_budget_hint(reason))
        return evolve(made, order=kept, spent=spent, unsure=reason if order.indices else "")
    spent.add(0, outcome.usage, outcome.cost)
    if not outcome.reused:
        caller.item_done(run.final, _TURN, outcome, perf_counter() - began)
    again = read_order(outcome.output, job.items)
    if again.none or (again.indices and not again.unknown):
        job.warn(f"the last step was repeated: {why}")
        return evolve(made, order=again, output=outcome.output, spent=spent)
    if again.indices or order.indices:
        best, output = (again, outcome.output) if again.indices else (order, made.output)
        unsure = f"the output names items that do not exist: {', '.join(best.unknown[:5])}"
        return evolve(made, order=best, output=output, spent=spent, unsure=unsure)
    reason = f"{again.reason}; the last step was called twice"
    return evolve(made, order=evolve(again, reason=_with_budget(run, reason)), output=outcome.output, spent=spent)


def _about(job: Job) -> str:
    """Return the prompt used to repeat a last step that calls no model: the request and the item names."""
    listed = [f"{index}: {clipped(name_of(item), 80)}" for index, item in enumerate(job.items[:_ITEMS])]
    more = f"\n… and {len(job.items) - _ITEMS:,} more" if len(job.items) > _ITEMS else ""
    return (
        f"Rank items for a request.\n{fenced(job.request)}\nThe items by index:\n{fenced(chr(10).join(listed) + more)}"
    )


_TURN = 1
"""The number of the repeated call in records and events."""
_SHOWN, _LONGEST_OUTPUT, _ITEMS = 4_000, 400, 200


def _order(job: Job, run: Run) -> Order:
    if run.status == "cancelled":
        return Order(reason="cancelled")
    if run.output is None:
        return Order(reason=_with_budget(run, _failure_reason(run)))
    order = read_order(run.output, job.items)
    return evolve(order, reason=_with_budget(run, order.reason)) if order.reason else order


def _failure_reason(run: Run) -> str:
    """Return why the last step has no output: its own failure reason, or the reason of the first failed step before it."""
    failed = next((step for step in run.steps.values() if step.status == "failed"), None) or run.steps.get(run.final)
    if failed is None:
        return f"({run.final}) failed: it did not run"
    return f"({failed.id}) failed: {failed.reason}"


def _with_budget(run: Run, reason: str) -> str:
    """Return ``reason`` with the budget that was used up and the option that raises this budget."""
    failures = (each for step in run.steps.values() for each in (step.failed, *step.failed_items) if each is not None)
    spent = next((each.message for each in failures if each.kind == "budget"), "")
    if not spent:
        return reason
    return with_budget_hint(reason if "budget" in reason else f"{reason}; {spent}")


class _RequestRecord(Record):
    """The record of one request's script in a run folder that several requests share; step names begin with the request's label."""

    def __init__(self, record: Record, label: str) -> None:
        self._record = record
        self._label = label
        self.run_id = record.run_id

    @property
    def damage(self) -> str:
        return self._record.damage

    def recall(self, step: str, item: int | None, input_hash: str) -> Recorded | None:
        return self._record.recall(f"{self._label}.{step}", item, input_hash)

    def item_done(self, step: str, item: int | None, outcome: Outcome, seconds: float) -> None:
        self._record.item_done(f"{self._label}.{step}", item, outcome, seconds)

    def step_done(self, result: StepResult, outcome: Outcome | None) -> None:
        self._record.step_done(evolve(result, id=f"{self._label}.{result.id}"), outcome)

    def finished(self, run: Run) -> None:
        """Do nothing: other requests may still be writing to the folder."""

    def close(self) -> None:
        """Do nothing: the owner of the folder closes it."""
