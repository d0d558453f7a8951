"""The states of a search in progress, and the branches between them.

A node's state never changes: to continue from a state, create a fork. The strategy maintains the statistics in a node.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from time import perf_counter
from typing import Any, Literal

from attrs import define, field, frozen

from ....adapters.llm import LLMError, Usage
from ....adapters.state import Snapshot, StateStore
from ....lang.diagnostic import json_words
from ....lang.errors import KnotworkError
from ...errors import RequestError, is_number, or_none, short_repr, whole_number_validator
from ...excerpts import clipped
from ...gasl.records import ExecutionRecord
from ...models.caller import HOPELESS, Spent
from ...results import StepFailed

# The possible next actions in a state: plans with their confidence and rationale. See ``docs/design/loops.md#search``.

_BRIEF = 200
_MOST = 100
"""Maximum number of actions in one proposal."""


class ActionError(KnotworkError, ValueError):
    """Raised for text that is not a list of next actions; the message says where the fault is and what was expected."""


def _sure(action: "Action", attribute: Any, value: float) -> None:
    if not isfinite(value) or not 0 <= value <= 1:
        raise ActionError(f"the confidence must be a number from 0 to 1, not {value}")


@frozen
class Action:
    """One of a state's ``next_actions``.

    ``plan`` is the plan object, its JSON text, a program's text, or a list of commands, as in the seed's ``next_actions``.
    ``confidence`` is 0 to 1. ``answer``, if given, is an answer based on the current state: no plan is run for it, and the search
    may end here.
    """

    plan: Any = None
    confidence: float = field(default=1.0, validator=_sure, converter=float)
    rationale: str = ""
    answer: str | None = None

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands as strings, for any form of plan; a JSON text or a program counts as one command."""
        plan = self.plan.get("commands", ()) if isinstance(self.plan, Mapping) else self.plan
        if plan is None:
            return ()
        listed = plan if isinstance(plan, Sequence) and not isinstance(plan, str) else [plan]
        return tuple(str(each.get("command", "")) if isinstance(each, Mapping) else str(each) for each in listed)

    @property
    def brief(self) -> str:
        """A bounded one-line summary: the commands, or the answer."""
        if self.answer is not None:
            return f"answer: {clipped(' '.join(self.answer.split()), _BRIEF)}"
        each = max(40, _BRIEF // (len(self.commands) or 1))
        return clipped("; ".join(clipped(" ".join(text.split()), each) for text in self.commands), _BRIEF)

    @property
    def does(self) -> str:
        """The effect of an action: its commands, config and answer, without ids and reasons; independent of the plan's form."""
        config = self.plan.get("config") if isinstance(self.plan, Mapping) else None
        return json.dumps([self.commands, config or {}, self.answer], sort_keys=True, default=str)

    def as_plan(self, plan_id: str) -> Any:
        """Return the plan for the executor; a list of commands becomes a plan with the id ``plan_id`` and the rationale as ``why``."""
        if isinstance(self.plan, Mapping):
            return {"plan_id": plan_id, "why": self.rationale or "no reason was given", **self.plan}
        if isinstance(self.plan, Sequence) and not isinstance(self.plan, str):
            return {"plan_id": plan_id, "why": self.rationale or "no reason was given", "commands": list(self.plan)}
        return self.plan

    def as_json(self) -> dict[str, Any]:
        """Return the action as JSON: ``{"plan", "confidence", "rationale"}``, and ``answer`` if it is given."""
        form = {"plan": self.plan, "confidence": self.confidence, "rationale": self.rationale}
        return form if self.answer is None else {**form, "answer": self.answer}


def read_actions(document: Any) -> tuple[Action, ...]:
    """Return the actions in ``{"next_actions": [...]}`` or in a bare list; either may be JSON text. Raises ``ActionError``.

    Only the form is checked here. A plan is checked when it is run, and a faulty plan closes only its own branch.
    """
    if isinstance(document, str):
        try:
            document = json.loads(document)
        except (ValueError, RecursionError) as error:
            why = json_words(error) if isinstance(error, json.JSONDecodeError) else str(error)
            raise ActionError(f"the text is not JSON: {why}"[:300]) from None
    listed = document.get("next_actions") if isinstance(document, Mapping) else document
    if not isinstance(listed, list):
        raise ActionError('expected {"next_actions": [{"plan", "confidence", "rationale"}, ...]}')
    if len(listed) > _MOST:
        raise ActionError(f"{len(listed)} next actions are too many; the maximum is {_MOST}")
    return tuple(_action(at, each) for at, each in enumerate(listed))


def _action(at: int, each: Any) -> Action:
    where = f"next_actions[{at}]"
    if not isinstance(each, Mapping):
        raise ActionError(f"{where} is not an object")
    unknown = _others(each, ("plan", "confidence", "rationale", "answer"))
    if unknown:
        raise ActionError(f"{where}: unknown key {unknown}; the keys are plan, confidence, rationale, answer")
    plan, answer, sure = each.get("plan"), each.get("answer"), each.get("confidence")
    if answer is not None and not isinstance(answer, str):
        raise ActionError(f"{where}.answer must be a string")
    if answer is None and (not isinstance(plan, str | list | Mapping) or not plan):
        raise ActionError(f"{where}.plan must be a list of commands or a plan object")
    if isinstance(sure, bool) or not isinstance(sure, int | float) or not 0 <= sure <= 1:
        raise ActionError(f"{where}.confidence must be a number from 0 to 1")
    return Action(plan, sure, str(each.get("rationale") or ""), answer)


def _others(given: Iterable[str], known: Iterable[str]) -> str:
    return ", ".join(sorted(set(map(str, given)) - set(known)))


BranchStatus = Literal["open", "done", "merged", "failed", "dropped"]
"""``open``: not tried; ``done``: led to a new state; ``merged``: led to a known state; ``failed``: the plan was refused or failed;
``dropped``: no time or budget was left to try the branch."""


@define(eq=False)
class Branch:
    """One action in one state. ``outcome`` is the plan's status, ``message`` is the reason for a failure.

    MCTS maintains ``visits`` and ``total``. ``simulated`` is true if a rollout found the branch.
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
    """A state, and how the search first reached it: ``records`` are the records of the plan that led here (empty for the root).

    ``number`` is the number of the node, 0 for the root; it is -1 for a state that a rollout visits but that is not in the
    tree.

    ``value`` is 0 to 1, None if it is not known yet or could not be determined. ``proposed`` means that the branches of the state
    have been proposed. ``path`` contains the actions that lead from the root to the state.

    ``key`` identifies the state by its hash and ``origin``. The state stores the time of each model answer, so two equal states may
    have different hashes. ``origin`` therefore identifies the path up to the last plan that called a model ("" if no plan did).
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
        """The answer that led to this node, or None; a node with an answer has no branches."""
        return None if self.action is None else self.action.answer

    @property
    def worth(self) -> float:
        """The value, or 0 if it could not be determined."""
        return 0.0 if self.value is None else self.value

    @property
    def path(self) -> tuple[Action, ...]:
        """The actions that lead here from the root."""
        return tuple(node.action for node in way_to(self) if node.action is not None)

    @property
    def entries(self) -> list[Mapping[str, Any]]:
        """The history entries of the plan that led here, with abbreviated outputs."""
        known = 0 if self.parent is None else len(self.parent._store.history)
        return [] if self.parent is None else list(self._store.history[known:])

    def fork(self) -> StateStore:
        """Return an in-memory copy of the state to continue from; the state itself never changes."""
        return self._store.fork()


def way_to(node: Node) -> list[Node]:
    """Return the nodes from the root to ``node``, along the path on which the search first reached it."""
    way, each = list[Node](), node
    while True:
        way.append(each)
        if each.parent is None:
            return way[::-1]
        each = each.parent


def best_of(nodes: Sequence[Node], answers: bool = False) -> Node:
    """Return the node with the highest value.

    Among equal values, a node with an answer is preferred, then the node nearest to the root, then the first node.
    If ``answers`` is true and nodes with an answer exist, only these nodes count.
    """
    return min(
        nodes,
        key=lambda node: (answers and node.answer is None, -node.worth, node.answer is None, node.depth, node.number),
    )


# The budget of a search and how much of it has been spent: plans, calls, tokens, money, time.

Stopped = Literal["", "found", "exhausted", "steps", "calls", "tokens", "cost", "time", "cancelled", "budget", "model"]
"""Why a search ended: a state is good enough ("found"), nothing is left to try ("exhausted"), a limit was reached ("steps",
"calls", "tokens", "cost" or "time"), the search was cancelled ("cancelled"), the run's own budget is used up ("budget"), or a
model will not answer any further call ("model")."""


MOST_CALLS = 500
"""Default number of calls of one search or question."""


def _positive(budget: "Budget", attribute: Any, value: Any) -> None:
    if value is not None and not (is_number(value) and value >= 0):
        raise RequestError(attribute.name, f"expected a number, 0 or greater, not {short_repr(value)}")


def _event(budget: "Budget", attribute: Any, value: Any) -> None:
    if value is not None and not isinstance(value, asyncio.Event):
        raise RequestError(attribute.name, f"expected an asyncio.Event, not {short_repr(value)}")


@frozen
class Budget:
    """The limits of one search. None means no limit.

    ``max_steps`` is the maximum number of executed plans, including those of rollouts; it is never exceeded. ``max_calls``,
    ``max_tokens`` and ``max_cost`` (US dollars) are checked before each round: a round that has begun makes all its calls, as
    far as the models' own limits allow. ``time_limit`` (seconds) and ``cancel`` stop work in progress.
    """

    max_steps: int | None = field(default=50, validator=or_none(whole_number_validator(0)))
    max_calls: int | None = field(default=MOST_CALLS, validator=or_none(whole_number_validator(0)))
    max_tokens: int | None = field(default=None, validator=or_none(whole_number_validator(0)))
    max_cost: float | None = field(default=None, validator=_positive)
    time_limit: float | None = field(default=None, validator=_positive)
    cancel: asyncio.Event | None = field(default=None, eq=False, validator=_event)


@define
class Meter:
    """Measures how much of its budget a search has spent. ``spent`` may be shared with a proposer or value that calls models itself."""

    budget: Budget
    spent: Spent = field(factory=Spent)
    steps: int = 0
    began: float = field(factory=perf_counter)
    reason: Stopped = ""
    """The first reason to stop; once set, no further work begins."""

    @property
    def seconds(self) -> float:
        """Seconds since the search began."""
        return perf_counter() - self.began

    @property
    def steps_left(self) -> int | None:
        """Number of plans that may still be executed; None if there is no limit."""
        most = self.budget.max_steps
        return None if most is None else max(0, most - self.steps)

    def over(self) -> bool:
        """Return whether no further work may begin; ``reason`` says why."""
        if not self.reason:
            self.reason = self._limit()
        return bool(self.reason)

    def stop(self, reason: Stopped) -> None:
        """Prevent further work from beginning."""
        self.reason = self.reason or reason

    def failed(self, error: BaseException) -> None:
        """Stop if a model failed in a way that the next call would repeat."""
        if isinstance(error, LLMError):
            self._hopeless(error.kind)
        elif isinstance(error, StepFailed):
            self._hopeless(error.failed.kind)

    def count(self, records: Iterable[ExecutionRecord]) -> None:
        """Add the cost of a plan's commands; stop if a model failed permanently."""
        for record in records:
            if record.nested:  # the cost of a block or branch is the cost of its commands
                self.count(record.nested)
                continue
            metrics: Mapping[str, Any] = record.metrics
            tokens = metrics.get("tokens") or {}
            usage = Usage(tokens.get("prompt", 0), tokens.get("completion", 0), "estimated" in tokens)
            self.spent.add(metrics.get("calls", 0), usage, metrics.get("cost"))
            self._hopeless(str((record.error or {}).get("kind", "")))

    def _hopeless(self, kind: str) -> None:
        if kind in HOPELESS:
            self.stop("budget" if kind == "budget" else "model")

    def _limit(self) -> Stopped:
        budget, spent = self.budget, self.spent
        if budget.cancel is not None and budget.cancel.is_set():
            return "cancelled"
        if budget.time_limit is not None and self.seconds >= budget.time_limit:
            return "time"
        if self.steps_left == 0:
            return "steps"
        if budget.max_calls is not None and spent.calls >= budget.max_calls:
            return "calls"
        if budget.max_tokens is not None and spent.usage.total >= budget.max_tokens:
            return "tokens"
        if budget.max_cost is not None and (spent.cost or 0.0) >= budget.max_cost:
            return "cost"
        return ""
