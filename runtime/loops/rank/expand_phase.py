"""Phase 2 of a ranking: a model completes the script with tools, until it calls ``done()``. Where the plan needs nothing, nobody is asked.

Each answer may have several calls; they are carried out in order up to the first that can't be, and the model is told what came of each.
"""

import re
from collections.abc import Mapping
from typing import Any

from attrs import define, field, frozen

from ....lang.diagnostic import Diagnostic, nearest
from ....lang.literals import kind_of
from ....lang.source import Source
from ....lang.trees.lwt import Script
from ...events import ToolCalled
from ...excerpts import excerpt, fenced
from ...limits import Repetition
from ...models.usage import Spent
from ...prompt_files import fill, read_prompt
from .draft_script import Edited, Skeleton, as_lines, as_objects, excerpts, fault
from .phase_context import Job
from .plan_phase import Planned
from .ranking_results import ToolUse
from .tools import PARAMETERS, Call, read_calls

__all__ = ["MAX_ITERATIONS", "SHOWN", "TOOLS", "Expanded", "expand", "read_path"]


# The tools as a model's own means of calling them take them.


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
"""As the port's option ``tools`` has them."""


# ``read(path)``: a part of the input, bounded. See ``docs/design/loops.md#ranking``.
# A path is ``items[5].item_data``, with keys in brackets too: ``items[5]["a b"]``, ``items[0:3]``.


SHOWN = 4_000
"""Characters that one reading gives at most."""
_LONGEST = 400
_DEEPEST = 20
_ROOT = re.compile(r"\s*(?:\{\(input\)\}|input(?=[.\[])|query(?=[.\[])|\$)?\.?")
_PART = re.compile(
    r"""(?:\.?(?P<name>[A-Za-z_][\w-]*) | \[\s*(?P<index>-?\d{1,9})\s*\] | \[\s*(?P<from>\d{0,9})\s*:\s*(?P<to>\d{0,9})\s*\]
      | \[\s*"(?P<double>[^"]*)"\s*\] | \[\s*'(?P<single>[^']*)'\s*\] | \[\s*(?P<bare>[A-Za-z_][\w -]*)\s*\])""",
    re.VERBOSE,
)


def read_path(data: Mapping[str, Any], path: str) -> tuple[bool, str] | Diagnostic:
    """Return whether all of what stands at ``path`` is shown, and it as JSON; or why there is nothing there. Never raises."""
    if len(path) > _LONGEST:
        return fault("RANK006", f"the path has {len(path):,} characters; {_LONGEST} is the most")
    at = _ROOT.match(path).end()  # type: ignore[union-attr]
    value: Any = data
    path = path.rstrip()
    for _ in range(_DEEPEST):
        if at >= len(path):
            return _shown(value)
        part = _PART.match(path, at)
        if part is None:
            return fault(
                "RANK006",
                f"the path can't be read from {path[at : at + 40]!r} on",
                'a path is items[5].item_data or items[5]["a b"]',
            )
        stepped = _step(value, part, path[: part.end()])
        if isinstance(stepped, Diagnostic):
            return stepped
        (value,) = stepped
        at = part.end()
    return _shown(value) if at >= len(path) else fault("RANK006", f"the path has more than {_DEEPEST} parts")


def _shown(value: Any) -> tuple[bool, str]:
    text = excerpt(value, SHOWN)
    return "… [" not in text, text


def _step(value: Any, part: "re.Match[str]", path: str) -> tuple[Any] | Diagnostic:
    if part["index"] is not None or part["from"] is not None:
        if not isinstance(value, list | tuple):
            return fault("RANK006", f"{path}: what stands there is {kind_of(value)}, not a list")
        if part["from"] is not None:
            return (value[int(part["from"] or 0) : int(part["to"]) if part["to"] else None],)
        index = int(part["index"])
        if not -len(value) <= index < len(value):
            return fault("RANK006", f"{path}: there is no element {index}; the list has {len(value):,}")
        return (value[index],)
    key = next(part[name] for name in ("name", "double", "single", "bare") if part[name] is not None)
    if not isinstance(value, Mapping):
        return fault("RANK006", f"{path}: what stands there is {kind_of(value)}, not an object")
    if key not in value:
        like = nearest(key, map(str, value))
        listed = ", ".join([str(each)[:40] for each in value][:20])
        return fault(
            "RANK006",
            f"{path}: there is no {key[:60]!r}",
            f"did you mean {like!r}?" if like else f"there are: {listed}",
        )
    return (value[key],)


MAX_ITERATIONS = 10
"""Answers of the model, where the caller says nothing."""
_HISTORY = 24_000
"""Characters of earlier calls and what they gave that a prompt repeats; older ones are left out."""
_CALL, _RESULT, _MESSAGE = 6_000, 12_000, 6_000
"""Characters of one call, of what one gave, and of the plan's message that a prompt repeats."""


@frozen
class Expanded:
    """The script that will run. ``iterations`` counts answers: 0 where the plan was passed through.

    ``unfinished`` says why the expansion ended without ``done()``: the script may lack what the plan wanted; "" where it is complete.
    """

    script: Script
    text: str
    iterations: int = 0
    unfinished: str = ""


async def expand(job: Job, planned: Planned, spent: Spent, max_iterations: int = MAX_ITERATIONS) -> Expanded:
    """Return the script, completed. Raises ``StepFailed`` where a call to the model fails."""
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
    return work.unfinished(max_iterations, f"the expansion did not end by done() in {max_iterations} iterations")


@define
class _Work:
    """An expansion under way."""

    job: Job
    planned: Planned
    skeleton: Skeleton
    repetition: Repetition = field(factory=Repetition)

    def unfinished(self, iterations: int, why: str) -> Expanded:
        """Return the script as it is, with why it may lack something."""
        self.job.warn(f"{why}; the script is used as it is")
        return Expanded(self.skeleton.script, self.skeleton.text, iterations, why)

    def prompt(self) -> str:
        """Return the prompt of the next iteration: the script as it is now, and what was done so far."""
        return fill(
            read_prompt(__package__, "expand"),
            {
                "context": fenced(self.job.request), "message": fenced(excerpts(self.planned.read.message, (), _MESSAGE)),
                "lwt_skeleton": fenced(self.skeleton.listed()), "history": self._history(),
            },
        )  # fmt: skip

    def carry_out(self, text: str, iteration: int) -> bool:
        """Carry out the calls in an answer and say whether ``done()`` is among them."""
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
            self._note(ToolUse(iteration, str(call), made.done, made.told))
            if not made.done:  # what follows was written as if this had worked
                return False
        wrong = read.fault
        if wrong is None and not read.calls:
            wrong = fault("RANK004", "there is no call of a tool", "a call stands alone on its line, such as done()")
        if wrong is not None:
            self._note(ToolUse(iteration, "", False, _said(wrong)))
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
                    return Edited(False, _said(found))
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
        """Return the latest calls and what they gave, in a bounded length."""
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


def _said(found: Diagnostic) -> str:
    return as_lines(as_objects([found], Source("", "<plan>")))
