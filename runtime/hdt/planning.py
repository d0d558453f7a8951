"""One turn of the planner: a prompt, an answer, what is wrong with it, and the answer that was put right.

See ``docs/design/loops.md#traversal``.
"""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import define, field, frozen

from ..context import ContextStore
from ..events import RepairAsked
from ..executor import GASLExecutor
from ..results import StepFailed
from .asking import Asker, Place, failed_for_good
from .checking import Action, Refusal, check_draft
from .findings import Grounds, grounds
from .reading import MOST_ACTIONS, Completed, Contradictory, Proposed, Unreadable, read_answer
from .repeating import repeated, repetitions
from .results import Step, Supposed
from .settings import Bounds
from .wording import Refused, build_prompt

__all__ = ["Planner", "Proposal", "decided"]


@frozen
class Proposal:
    """What the planner came to: the end, or plans that may run, the most confident first, or neither (``faults`` say why).

    ``supposed``: what it made of the last step, and what it supposes now. ``left_out`` are the plans that can't run, in words;
    ``remark`` is what else a person should know. ``grounds`` is what the answer rests on.
    """

    supposed: Supposed
    completed: Completed | None = None
    actions: tuple[Action, ...] = ()
    left_out: tuple[str, ...] = ()
    faults: str = ""
    repairs: int = 0
    remark: str = ""
    stalled: str = ""
    """Why the loop ends without an answer: the model proposes the same plan again and again."""
    grounds: Grounds = field(factory=Grounds)


@define
class Planner:
    """Asks for what to do next, and for answers to be put right, at most ``bounds.max_repairs`` times a step.

    ``given`` are the variables that every plan begins with, ``earlier`` is the number of steps in attempts before. Search asks it on
    forks: it reads the executor that it is handed.
    """

    asker: Asker
    question: str
    bounds: Bounds
    given: ContextStore = field(factory=ContextStore)
    notify: Callable[[RepairAsked], None] | None = None
    earlier: int = 0

    def prompt(
        self, executor: GASLExecutor, steps: Sequence[Step], refused: Refused | None = None, branches: int = 1
    ) -> str:
        """Return the prompt for the step behind ``steps``; ``branches``: how many plans are wanted side by side."""
        return build_prompt(
            self.question, executor.adapter.schema, executor.session.caps, executor.state, steps, refused,
            self.bounds.prompt_characters, branches,
        )  # fmt: skip

    async def propose(
        self,
        executor: GASLExecutor,
        number: int,
        steps: Sequence[Step],
        *,
        at: Place | None = None,
        branches: int = 1,
    ) -> Proposal:
        """Return what to do in step ``number``, behind ``steps``. Raises ``StepFailed`` where the model can't be asked.

        ``at`` is where a search asks, ``branches`` how many plans it would try side by side.
        """
        refused: Refused | None = None
        last: tuple[dict[str, Any], ...] = ()  # what is wrong with the last answer
        supposed, told_again, ungrounded = decided(None, steps), False, False
        turn, most = -1, self.bounds.max_repairs
        while turn < most:
            turn += 1
            if refused is not None and self.notify is not None:
                self.notify(
                    RepairAsked("ask", "plan", turn, refused.answer, last, number, "" if last else refused.faults)
                )
            try:
                text = await self.asker.ask(number, turn, self.prompt(executor, steps, refused, branches), at)
            except StepFailed as error:
                if failed_for_good(error.failed):
                    raise
                last = ()
                refused = Refused("", error.failed.message)
                continue
            said = read_answer(text)
            if isinstance(said, Completed):
                found = grounds(said, executor.state, steps)
                if found.advice and not ungrounded and self.bounds.max_repairs:  # once in a step, beside the repairs
                    last, ungrounded, most = (), True, most + (turn == most)
                    why = f"{found.fault}; {found.advice}" if found.fault else found.advice
                    refused = Refused(text, why)
                    continue
                return Proposal(Supposed("terminate", said.why), said, repairs=turn, grounds=found)
            if isinstance(said, Unreadable | Contradictory):
                last = ()
                fault = "it can't be read" if isinstance(said, Unreadable) else "it contradicts itself"
                refused = Refused(text, f"{fault}: {said.reason}")
                continue
            supposed = decided(said, steps)
            checked = [
                check_draft(draft, said.why or said.hypothesis, executor.session, self.given, f"step-{number}")
                for draft in said.drafts[:MOST_ACTIONS]
            ]
            actions = tuple(each for each in checked if isinstance(each, Action))
            if at is None and actions and (not told_again or self._stalls(steps)):
                again = [repeated(each, executor.state.hash, steps) for each in actions]
                if all(again) and self._stalls(steps):
                    return Proposal(supposed, repairs=turn, stalled=_STALLED.format(again[0].partition(":")[0]))
                if all(again) and turn < most:  # once in a step: a model that keeps to its plan may have it
                    last, told_again, refused = (), True, Refused(text, again[0])
                    continue
                if not all(again):
                    actions = tuple(each for each, told in zip(actions, again, strict=True) if not told)
            bad = [each for each in checked if isinstance(each, Refusal)]
            if actions:
                more = len(said.drafts) - MOST_ACTIONS
                left_out = (*said.left_out, *(each.told for each in bad))
                if more > 0:
                    left_out += (f"{more} of {len(said.drafts)}: {MOST_ACTIONS} are tried at most, the surest ones",)
                return Proposal(supposed, None, actions, left_out, repairs=turn, remark=said.remark)
            last = bad[0].diagnostics
            refused = Refused(text, bad[0].told)
        return Proposal(supposed, faults=refused.faults if refused is not None else "", repairs=turn)

    def _stalls(self, steps: Sequence[Step]) -> bool:
        """Say whether a plan that was run before would be the third repetition in a row: told, run all the same, and proposed again."""
        return repetitions(steps[self.earlier :]) >= (1 if self.bounds.max_repairs else 2)


_STALLED = "no progress: the same plan was proposed three times more ({})"
_BY_RULE = {"success": "continue", "partial": "refine"}


def decided(said: Proposed | None, steps: Sequence[Step]) -> Supposed:
    """Return the decision that leads to the next plan: the model's, or, where it said none, what the last outcome comes to."""
    why, hypothesis = (said.why, said.hypothesis) if said is not None else ("", "")
    if not steps:
        return Supposed("start", why, hypothesis)
    hypothesis = hypothesis or steps[-1].supposed.hypothesis
    if said is not None and said.decision:
        return Supposed(said.decision, why, hypothesis)  # type: ignore[arg-type]
    status = steps[-1].status
    rule = _BY_RULE.get(status, "pivot")
    return Supposed(rule, why or f"the last plan ended with {status}", hypothesis, "rule")  # type: ignore[arg-type]
