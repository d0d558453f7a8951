"""The states of a search under way, and the branches between them.

A node's state never changes: whoever wants to go on from it takes a fork. Statistics are the strategy's.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, Literal

from attrs import define, field, frozen

from ....adapters.llm.answers import json_words
from ....adapters.state import Snapshot, StateStore
from ....lang.errors import KnotworkError
from ...excerpts import clipped
from ...gasl.records import ExecutionRecord

__all__ = ["Action", "ActionError", "Branch", "Node", "best_of", "read_actions", "way_to"]


# What may be done next in a state: a plan with how sure its author is and why. See ``docs/design/loops.md#search``.


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


BranchStatus = Literal["open", "done", "merged", "failed", "dropped"]
"""``open``: not tried; ``done``: led to a state that was new; ``merged``: to one that was there; ``failed``: its plan was refused
or failed; ``dropped``: there was no time or money left to try it."""


@define(eq=False)
class Branch:
    """One action in one state. ``outcome`` is the plan's status, ``message`` what was not as wanted.

    ``visits`` and ``total`` are MCTS's; ``simulated`` says that a rollout found it.
    """

    action: Action
    status: BranchStatus = "open"
    child: "Node | None" = None
    outcome: str = ""
    message: str = ""
    visits: int = 0
    total: float = 0.0
    simulated: bool = False


@define(eq=False)
class Node:
    """A state, and how the search first came to it: ``records`` are those of the plan that led here (none for the root).

    ``number`` counts from 0, the root; -1 where a rollout looks at a state that is not in the tree.

    ``value`` is 0 to 1, None while it is not known or where it could not be told. ``proposed`` says that its branches are
    there. ``path`` are the actions from the root.

    ``key`` tells states apart: it is the state's hash, and ``origin``. A model's answer has its time in the state, so that whether
    two of them are the same would be chance: ``origin`` is the way to the last plan on it that asked a model, "" where none did.
    """

    number: int
    depth: int
    key: str
    _store: StateStore
    parent: "Node | None" = None
    action: Action | None = None
    records: Sequence[ExecutionRecord] = ()
    value: float | None = None
    branches: list[Branch] = field(factory=list)
    proposed: bool = False
    visits: int = 0
    origin: str = ""

    @property
    def snapshot(self) -> Snapshot:
        """The state."""
        return self._store.snapshot()

    @property
    def answer(self) -> str | None:
        """The answer that was said here; nothing follows then."""
        return None if self.action is None else self.action.answer

    @property
    def worth(self) -> float:
        """The value, 0 where it could not be told."""
        return 0.0 if self.value is None else self.value

    @property
    def path(self) -> tuple[Action, ...]:
        """The actions that lead here from the root."""
        return tuple(node.action for node in way_to(self) if node.action is not None)

    @property
    def entries(self) -> list[Mapping[str, Any]]:
        """What the plan that led here put into the history, with outputs in brief."""
        known = 0 if self.parent is None else len(self.parent._store.history)
        return [] if self.parent is None else list(self._store.history[known:])

    def fork(self) -> StateStore:
        """Return a state in memory that begins as this one; this one never changes."""
        return self._store.fork()


def way_to(node: Node) -> list[Node]:
    """Return the nodes from the root to ``node``, as the search first went."""
    way, each = list[Node](), node
    while True:
        way.append(each)
        if each.parent is None:
            return way[::-1]
        each = each.parent


def best_of(nodes: Sequence[Node], answers: bool = False) -> Node:
    """Return the node of the highest value; of several one that has an answer, then the nearest to the root, then the first.

    ``answers``: only nodes that have an answer count, where there is one.
    """
    return min(
        nodes,
        key=lambda node: (answers and node.answer is None, -node.worth, node.answer is None, node.depth, node.number),
    )
