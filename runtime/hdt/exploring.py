"""A question answered by a search over plans, and the state that it found made the question's own: one commit, after a kill too.

The state changes only where an answer was found. A search that a bound ended is grown again by the next attempt, from the answers of
models that are kept, and goes on behind its last plan: that needs the state to be the one that it began with.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from attrs import asdict, define, field, frozen

from ...adapters.state import StateStore
from ..search import Budget, Judged, Node, adopt, search
from ..search.running import Searched
from .asking import Asker
from .branching import Branching, Held
from .keeping import AskRecorder
from .planning import Proposal
from .reading import Completed
from .results import Explored, Step, Stopped, Supposed
from .settings import Searching

__all__ = ["Explorer", "Found", "found_before", "is_adopted", "keep", "sentence"]


@frozen
class Found:
    """What a search came to: ``proposal`` is the one with the answer, None where there is none: ``stopped`` and ``reason`` say why,
    or ``ungrounded`` is the one whose answer rests on nothing.

    ``steps`` are those on the way to the best state, with the loop's before them; ``best`` is None where it is the state's already.
    """

    steps: tuple[Step, ...]
    explored: Explored
    proposal: Proposal | None = None
    best: Node | None = field(default=None, repr=False)
    stopped: Stopped = ""
    reason: str = ""
    warnings: tuple[str, ...] = ()
    ungrounded: Proposal | None = None


@define
class Explorer:
    """One search. ``left``: how many plans it may execute; ``stop`` ends what is under way."""

    question: str
    branching: Branching
    asker: Asker
    searching: Searching
    left: int
    stop: asyncio.Event

    async def run(self, record: AskRecorder | None) -> Found:
        """Search, keep the tree, and return what was found; the state is as it was."""
        base, wanted = self.branching.base, self.searching
        judge = wanted.value
        if judge is None:
            judge = Held(Judged(self.asker.caller, self.question, self.asker.spent, model=self.asker.model))
        searched = await search(
            base.state, self.branching, self.branching, judge, settings=wanted.settings, rollout=wanted.rollout,
            budget=Budget(max_steps=self.left, max_calls=None, cancel=self.stop), events=base.events,
        )  # fmt: skip
        return self._found(searched, record)

    def _found(self, searched: Searched, record: AskRecorder | None) -> Found:
        best, warnings = searched.best, list(searched.warnings)
        if self.searching.value is None and any(each.value is None for each in searched.nodes):
            warnings.append("without a judge the value can be told by rule: --value filled")
        tree = searched.tree
        if record is not None and (unkept := record.keep_tree(tree)):
            warnings.append(unkept)
        explored = Explored(searched.settings.strategy, searched.stopped, best.value, searched.steps, tree)
        steps = tuple(self.branching.steps(best))
        proposal, unjudged = self._answered(best), self._unjudged(searched)
        if proposal is None or searched.stopped == "model" or unjudged:
            stopped, reason = self._why(searched)
            if unjudged and stopped == "budget":
                reason = f"there is an answer, and its value is still to be asked for: {reason}"
            ungrounded = next(reversed(self.branching.ungrounded), None)
            if ungrounded is not None and ungrounded.completed is not None and stopped not in ("exhausted", "refused"):
                warnings.append(f"an answer was left out: {ungrounded.grounds.fault}")
                ungrounded = None
            return Found(steps, explored, None, best, stopped, reason, tuple(warnings), ungrounded)
        enough = searched.settings.enough
        if enough is not None and best.worth < enough:
            told = "could not be told" if best.value is None else f"is {best.value:.2f}"
            warnings.append(f"the value of this answer {told}; {enough:g} would be enough")
        return Found(steps, explored, proposal, best, warnings=tuple(warnings))

    def _answered(self, best: Node) -> Proposal | None:
        """Return the proposal whose answer the best state has; one that a rollout said itself is as good as the planner's."""
        if best.answer is None or best.parent is None:
            return None
        made = self.branching.proposals.get(best.parent.number)
        if made is not None and made.completed is not None and made.completed.answer == best.answer:
            return made
        why = "" if best.action is None else best.action.rationale
        return Proposal(Supposed("terminate", why), Completed(best.answer, why=why))

    def _unjudged(self, searched: Searched) -> bool:
        """Say whether the budget, or the time, ended before the value of an answer was told: the next attempt asks for it."""
        if searched.stopped not in ("budget", "cancelled") or searched.status == "found":
            return False
        return any(each.answer is not None and each.value is None for each in searched.nodes)

    def _why(self, searched: Searched) -> tuple[Stopped, str]:
        """Say why a search came to no answer. A cancellation is told by who cancelled."""
        lost, plans = self.branching.lost, f"{searched.steps} plan{'' if searched.steps == 1 else 's'}"
        match searched.stopped:
            case "steps":
                return "steps", f"there was no answer after {plans}"
            case "budget":
                return "budget", sentence(lost) if lost is not None else "the budget is used up"
            case "model":
                told = lost or next(iter(self._failures(searched)), None)
                if told is None:
                    return "model", "a model can't be asked"
                return "model", sentence(told)
            case "exhausted":
                refused = self.branching.refused
                if not searched.steps and refused:
                    return "refused", f"the model gave no plan that can run: {refused[-1].splitlines()[0]}"
                if not searched.steps and lost is not None:
                    return "model", sentence(lost)
                return (
                    "exhausted",
                    f"nothing is left to try after {plans}",
                )
        return "", ""

    def _failures(self, searched: Searched) -> list[Any]:
        return [branch for node in searched.nodes for branch in node.branches if branch.status == "failed"]


def sentence(told: Any) -> str:
    """Say why a model could not be asked, or a branch failed, with what to do about it."""
    hint = getattr(told, "hint", "")
    return f"{told.message} ({hint})" if hint else str(told.message)


def keep(found: Found, earlier: int, state: StateStore, record: AskRecorder | None) -> None:
    """Make the state the one that was found; the first ``earlier`` steps are not the search's. Raises ``StoreError``."""
    proposal, best = found.proposal, found.best
    if proposal is None or best is None or proposal.completed is None:
        return
    if record is not None:
        fresh = found.steps[earlier:]
        record.found(
            {
                "history": len(state.history), "state": state.hash, "commands": _commands(fresh),
                "steps": [step.as_json() for step in fresh], "supposed": asdict(proposal.supposed),
                "answer": proposal.completed.answer, "cited": list(proposal.completed.cited), "search": found.explored.as_json(False),
            }
        )  # fmt: skip
    adopt(state, best)
    state.sync()


def _commands(steps: "tuple[Step, ...]") -> list[list[Any]]:
    return [_named(entry) for step in steps for entry in step.entries]


def _named(entry: Mapping[str, Any]) -> list[Any]:
    return [entry.get("plan_id"), entry.get("command"), entry.get("started_at")]


def is_adopted(told: Mapping[str, Any], state: StateStore) -> bool:
    """Say whether a state has become what a search found, by the ``found`` record of it."""
    begin, commands = told["history"], told["commands"]
    since = state.history[begin : begin + len(commands)]
    return bool([_named(entry) for entry in since] == commands)


def found_before(told: Mapping[str, Any], record: AskRecorder) -> Found:
    """Return what an attempt found that ended before it could say so. Raises ``KeyError`` and ``TypeError`` for a damaged record."""
    completed = Completed(str(told["answer"]), tuple(told["cited"]))
    steps = (*record.kept.steps, *(Step.of(each) for each in told["steps"]))
    by_number = {step.number: step for step in steps}  # some of them may have been kept as done already
    return Found(
        tuple(by_number[number] for number in sorted(by_number)),
        Explored(**told["search"], tree=record.kept.tree),
        Proposal(Supposed(**told["supposed"]), completed),
    )
