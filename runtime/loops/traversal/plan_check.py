"""A proposed plan before it runs: checked against grammar, graph, state and ceiling; what a fix is known for is fixed on the spot."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from attrs import evolve, field, frozen

from ....lang.diagnostic import Diagnostic, Edit, all_as_json, apply_edits, is_slip, is_spelling, picture
from ....lang.linter.gasl.graph import BUILT_IN, HAS_THIS_VALUE
from ....lang.parse.gasl.lines import COMMANDS
from ....lang.source import Source
from ....lang.trees.gasl import Cancel
from ....lang.trees.node import walk
from ...gasl import PlanError
from ...gasl.prepare import Ready, checked
from ...gasl.records import cut, storable
from ...gasl.session import Session
from ...gasl.variables import ContextStore
from .plan_answer import NO_REASON, Draft

__all__ = ["Action", "Refusal", "check_draft", "keeping", "renamed", "told_faults"]


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
            if old.strip() != "#:" and (not old.strip() or _COMMAND.search(_rest(text, edit.span.end))):
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


def _rest(text: str, at: int) -> str:
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
