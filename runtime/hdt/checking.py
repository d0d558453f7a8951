"""A proposed plan before it runs: checked against grammar, graph, state and ceiling; what a fix is known for is fixed on the spot."""

import json
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from attrs import evolve, field, frozen

from ...lang.diagnostic import Diagnostic, all_as_json, apply_edits, picture
from ...lang.source import Source
from ...lang.trees.gasl import Cancel
from ...lang.trees.node import walk
from ..context import ContextStore
from ..executor import PlanError
from ..executor.planning import Ready, checked
from ..records import cut, storable
from ..session import Session
from .mending import keeping
from .reading import NO_REASON, Draft

__all__ = ["Action", "Refusal", "check_draft", "renamed", "told_faults"]

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
    from ...lang.parse.gasl import parse_gasl

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
