"""What may be done next in a state: a plan with how sure its author is and why. See ``docs/design/loops.md#search``."""

import json
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from attrs import field, frozen

from ...adapters.llm.answers import json_words
from ...lang.errors import KnotworkError
from ..commands.excerpts import clipped

__all__ = ["Action", "ActionError", "read_actions"]

_BRIEF = 200
_MOST = 100
"""Actions that one proposal may have."""


class ActionError(KnotworkError, ValueError):
    """Text that is no list of next actions; the message says where and what was expected."""


def _sure(action: "Action", attribute: Any, value: float) -> None:
    if not isfinite(value) or not 0 <= value <= 1:
        raise ActionError(f"a confidence is a number from 0 to 1, not {value}")


@frozen
class Action:
    """One of a state's ``next_actions``.

    ``plan``: the plan object, its JSON text, a program's text, or a list of commands, as the seed's ``next_actions`` have
    it. ``confidence`` is 0 to 1. ``answer``, where there is one, says that the search may end here: the state that it is said in
    holds what it says, and no plan is run for it.
    """

    plan: Any = None
    confidence: float = field(default=1.0, validator=_sure, converter=float)
    rationale: str = ""
    answer: str | None = None

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands as texts, whatever form the plan has; a JSON text and a program are one."""
        plan = self.plan.get("commands", ()) if isinstance(self.plan, Mapping) else self.plan
        if plan is None:
            return ()
        listed = plan if isinstance(plan, Sequence) and not isinstance(plan, str) else [plan]
        return tuple(str(each.get("command", "")) if isinstance(each, Mapping) else str(each) for each in listed)

    @property
    def brief(self) -> str:
        """What it does, in a line that is bounded: its commands, or the answer that it says."""
        if self.answer is not None:
            return f"answer: {clipped(' '.join(self.answer.split()), _BRIEF)}"
        each = max(40, _BRIEF // (len(self.commands) or 1))
        return clipped("; ".join(clipped(" ".join(text.split()), each) for text in self.commands), _BRIEF)

    @property
    def does(self) -> str:
        """What tells two actions apart: commands, config and answer, but neither ids nor reasons, however the plan is written."""
        config = self.plan.get("config") if isinstance(self.plan, Mapping) else None
        return json.dumps([self.commands, config or {}, self.answer], sort_keys=True, default=str)

    def as_plan(self, plan_id: str) -> Any:
        """Return what the executor runs; a list of commands becomes a plan with this id and the rationale as its why."""
        if isinstance(self.plan, Mapping):
            return {"plan_id": plan_id, "why": self.rationale or "no reason was given", **self.plan}
        if isinstance(self.plan, Sequence) and not isinstance(self.plan, str):
            return {"plan_id": plan_id, "why": self.rationale or "no reason was given", "commands": list(self.plan)}
        return self.plan

    def as_json(self) -> dict[str, Any]:
        """Return its JSON form: ``{"plan", "confidence", "rationale"}``, and ``answer`` where there is one."""
        form = {"plan": self.plan, "confidence": self.confidence, "rationale": self.rationale}
        return form if self.answer is None else {**form, "answer": self.answer}


def read_actions(document: Any) -> tuple[Action, ...]:
    """Return the actions of ``{"next_actions": [...]}`` or of the list alone, which may be JSON text. Raises ``ActionError``.

    Only the form is looked at here; a plan is checked where it is run, and a faulty one closes its own branch only.
    """
    if isinstance(document, str):
        try:
            document = json.loads(document)
        except (ValueError, RecursionError) as error:
            why = json_words(error) if isinstance(error, json.JSONDecodeError) else str(error)
            raise ActionError(f"this is no JSON: {why}"[:300]) from None
    listed = document.get("next_actions") if isinstance(document, Mapping) else document
    if not isinstance(listed, list):
        raise ActionError('next actions are {"next_actions": [{"plan", "confidence", "rationale"}, ...]}')
    if len(listed) > _MOST:
        raise ActionError(f"{len(listed)} next actions are too many: at most {_MOST}")
    return tuple(_action(at, each) for at, each in enumerate(listed))


def _action(at: int, each: Any) -> Action:
    where = f"next_actions[{at}]"
    if not isinstance(each, Mapping):
        raise ActionError(f"{where} is no object")
    unknown = _others(each, ("plan", "confidence", "rationale", "answer"))
    if unknown:
        raise ActionError(f"{where}: there is no key {unknown}; the keys are plan, confidence, rationale, answer")
    plan, answer, sure = each.get("plan"), each.get("answer"), each.get("confidence")
    if answer is not None and not isinstance(answer, str):
        raise ActionError(f"{where}.answer is no text")
    if answer is None and (not isinstance(plan, str | list | Mapping) or not plan):
        raise ActionError(f"{where}.plan is no plan: a list of commands or a plan object")
    if isinstance(sure, bool) or not isinstance(sure, int | float) or not 0 <= sure <= 1:
        raise ActionError(f"{where}.confidence is a number from 0 to 1")
    return Action(plan, sure, str(each.get("rationale") or ""), answer)


def _others(given: Iterable[str], known: Iterable[str]) -> str:
    return ", ".join(sorted(set(map(str, given)) - set(known)))
