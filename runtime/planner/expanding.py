"""Phase 2 of a ranking: a model completes the script with tools, until it calls ``done()``. Where the plan needs nothing, nobody is asked.

Each answer may have several calls; they are carried out in order up to the first that can't be, and the model is told what came of each.
"""

from attrs import define, field, frozen

from ...lang.diagnostic import Diagnostic
from ...lang.source import Source
from ...lang.trees.lwt import Script
from ..commands.excerpts import fenced
from ..ending import Repetition
from ..events import ToolCalled
from ..prompting import fill, read_prompt
from ..spending import Spent
from .asking import Job
from .faults import as_lines, as_objects, excerpts, fault
from .native import TOOLS
from .planning import Planned
from .reading import read_path
from .results import ToolUse
from .skeleton import Edited, Skeleton
from .tools import Call, read_calls

__all__ = ["MAX_ITERATIONS", "Expanded", "expand"]

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
