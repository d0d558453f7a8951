"""Answers a question by a search over plans, and adopts the found state as one commit, even after a kill.

The state changes only if an answer was found. If a limit stops a search, the next attempt rebuilds the search from the recorded
model answers and continues after the search's last plan; this requires the same initial state.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import asdict, define, field, frozen
from blake3 import blake3

from ....adapters.state import StateStore
from ....lang.literals import Reading, read
from ...events import (
    BudgetReached,
    CallFinished,
    CallRetried,
    CallStarted,
    Event,
    Events,
    HypothesisFormed,
    RepairAsked,
    Warned,
)
from ...excerpts import clipped
from ...gasl import GASLExecutor
from ...gasl.prepare import is_document
from ...gasl.records import plan_status
from ...results import Failed, StepFailed
from ..search import Action as Branch
from ..search import Budget, Judged, Node, Value, adopt, search
from ..search.nodes import way_to
from ..search.search_run import Searched
from .plan_answer import NO_REASON, Completed
from .plan_run import Action, renamed, repeated, repetitions
from .planner import Place, Planner, PlannerCalls, Proposal, RecordedModel
from .prompt import entry_summary
from .question_store import AskRecorder
from .traversal_results import Explored, Hypothesis, SearchRequest, Step, Stopped

# The calls of a search over plans: the planner proposes plans in each state of the tree, plans run on forks, and the judge rates the
# progress. Every model answer is stored under the path to its state, which is the sequence of plans that lead there, identified by
# their effect. The state's hash can't be the key, because the state contains the time of each answer. So a search that is run again,
# after a kill or with a larger budget, finds every paid answer and grows the same tree.

_TOLD = (BudgetReached, CallFinished, CallRetried, CallStarted, RepairAsked, Warned)


def calls_and_warnings(events: Events) -> Events:
    """Return an event stream for parallel plans that forwards calls and warnings to ``events``, but no command events."""

    def forward(event: Event) -> None:
        if isinstance(event, _TOLD):
            events.emit(event)

    made = Events()
    if events:
        made.subscribe(forward)
    return made


@define
class Branching:
    """Proposes and opens plans for the search of one question: the ``Proposer`` and ``Opening`` of ``search``.

    ``base`` is the loop's executor, whose state is the root of the search; ``earlier`` are the steps already done in that state.
    ``began`` identifies graph and state at the start; all paths begin with it. ``wanted`` is the number of plans per planner call.
    """

    planner: Planner
    base: GASLExecutor
    clients: Mapping[str, RecordedModel]
    earlier: tuple[Step, ...]
    began: str
    wanted: int
    record: AskRecorder | None = None
    lost: Failed | None = field(default=None, init=False)
    """The failure of the last planner call that failed."""
    refused: list[str] = field(factory=list, init=False)
    """The faults of planner answers without a runnable plan, one entry per state."""
    ungrounded: list[Proposal] = field(factory=list, init=False)
    """Proposals with unsupported answers, which are reported only if no other answer is found."""
    proposals: dict[int, Proposal] = field(factory=dict, init=False)
    """Maps the number of a state to the planner's proposal in that state."""
    _actions: dict[str, tuple[Action, Hypothesis]] = field(factory=dict, init=False)
    _events: Events = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._events = calls_and_warnings(self.base.events)

    async def propose(self, node: Node) -> Sequence[Branch]:
        """Return the planner's next actions in a state, or its answer. Raises ``StepFailed``."""
        steps = self.steps(node)
        executor = self._executor(node.fork(), self.clients)  # only checks plans, runs nothing
        number, at = len(steps) + 1, Place(self._way(node), node.number)
        try:
            proposal = await self.planner.propose(
                executor, number, steps, at=at, branches=self.wanted, tree=tree_lines(node)
            )
        except StepFailed as error:
            self.lost = error.failed
            raise
        self.proposals[node.number] = proposal
        if proposal.completed is not None and not proposal.support.fault:
            return [Branch(answer=proposal.completed.answer, rationale=proposal.completed.why)]
        if not proposal.actions:
            if proposal.completed is not None:
                self.ungrounded.append(proposal)
            else:
                self.refused.append(proposal.faults)
            if self.record is not None:
                asker = self.planner.asker
                self.record.in_vain([asker.record_key(number, turn, at) for turn in range(proposal.repairs + 1)])
        used = {str(step.plan.get("plan_id")) for step in steps}
        made, tried, repeats = [], _fruitless_actions(node), repetitions(steps) >= 2
        for action in proposal.actions:
            action = renamed(action, used, len(steps) + 1)
            branch = Branch(dict(action.plan), action.confidence, action.rationale)
            if branch.does in tried or (repeats and repeated(action, node.snapshot.hash, steps)):
                continue
            self._actions.setdefault(branch.does, (action, proposal.supposed))
            made.append(branch)
        return made

    def open(self, state: StateStore, node: Node, action: Branch) -> GASLExecutor:
        """Return the executor for a plan. The executor stores model answers under the plan's path."""
        way = self._way(node, action.does)
        taken, supposed = self._plan_of(action)
        events = self.base.events
        if events:
            at, others = len(self.earlier) + node.depth + 1, len(node.branches) - 1
            events.emit(
                HypothesisFormed(at, supposed.hypothesis, taken.plan_id, taken.commands, action.confidence, others)
            )
        return self._executor(state, {name: client.at(way) for name, client in self.clients.items()})

    def steps(self, node: Node) -> list[Step]:
        """Return the earlier steps and the steps on the path to a state, in the form that the planner and the user see."""
        steps = list(self.earlier)
        for each in way_to(node):
            if each.parent is None or each.action is None or each.action.answer is not None:
                continue
            taken, supposed = self._plan_of(each.action)
            ran = next((record.plan_id for record in each.records), taken.plan_id)
            proposal = self.proposals.get(each.parent.number)
            steps.append(
                Step(
                    len(steps) + 1, supposed if proposal is None else proposal.supposed, plan_status(each.records),
                    {**taken.plan, "plan_id": ran}, tuple(each.entries), each.action.confidence, each.action.rationale, taken.mended,
                    tuple(other.action.as_json() for other in each.parent.branches if other.child is not each),
                    0 if proposal is None else proposal.repairs, seconds=sum(record.duration for record in each.records),
                    state=each.snapshot.hash,
                )
            )  # fmt: skip
        return steps

    def _plan_of(self, action: Branch) -> tuple[Action, Hypothesis]:
        """Return the checked plan of a branch and its hypothesis; for a plan that only a rollout proposed, build both."""
        found = self._actions.get(action.does)
        if found is None:
            made = action.as_plan("rollout")
            if isinstance(made, str):
                said = read(made) if is_document(made) else None
                made = (
                    said.value
                    if isinstance(said, Reading) and isinstance(said.value, Mapping)
                    else {"commands": [made]}
                )
            listed = made.get("commands")
            commands = list(listed) if isinstance(listed, list | tuple) else [str(listed)]
            plan = {"plan_id": "rollout", "why": action.rationale or NO_REASON, **made, "commands": commands}
            found = Action(plan, action.confidence, action.rationale), Hypothesis("continue", action.rationale)
            self._actions[action.does] = found
        return found

    def _way(self, node: Node, *more: str) -> str:
        told = "\n".join([self.began, *(action.does for action in node.path), *more])
        return blake3(told.encode("utf-8", "backslashreplace")).hexdigest(length=16)

    def _executor(self, state: StateStore, clients: Mapping[str, RecordedModel]) -> GASLExecutor:
        base, session = self.base, self.base.session
        return GASLExecutor(
            base.adapter, clients.get(""), state, self.planner.given.copy(),
            models={name: client for name, client in clients.items() if name}, caps=session.caps, ceiling=session.ceiling,
            options=session.options, max_concurrency=session.max_concurrency, chunks=session.chunks, events=self._events,
        )  # fmt: skip


_SIBLINGS = 8
"""Maximum number of siblings in a prompt."""


def tree_lines(node: Node) -> list[str]:
    """Describe the branch that led to ``node``, and its siblings: rationale, value, and what the siblings found; empty for the root."""
    if node.parent is None or node.action is None:
        return []
    lines = [f"this branch: {_worth(node)}; rationale: {_rationale(node.action)}"]
    siblings = [each for each in node.parent.branches if each.child is not node and each.action.answer is None]
    for sibling in siblings[:_SIBLINGS]:
        head = f"- {_rationale(sibling.action)}"
        if sibling.child is None:
            why = (
                "not tried yet"
                if sibling.status == "open"
                else f"{sibling.status}: {sibling.message or sibling.outcome}"
            )
            lines.append(f"{head} -> {clipped(why, 200)}")
            continue
        done = "; ".join(entry_summary(entry) for entry in sibling.child.entries[-3:])
        lines.append(f"{head} -> {sibling.outcome}, {_worth(sibling.child)}: {clipped(done, 400)}")
    if len(siblings) > _SIBLINGS:
        lines.append(f"- … {len(siblings) - _SIBLINGS:,} more branches")
    return lines


def _worth(node: Node) -> str:
    return "value unknown" if node.value is None else f"value {node.value:.2f}"


def _rationale(action: Branch) -> str:
    return clipped(action.rationale or action.brief, 200)


def _fruitless_actions(node: Node) -> set[str]:
    """Return the actions on the path since the state last changed; repeating such an action would give the same result."""
    tried = set[str]()
    while node.parent is not None and node.action is not None and node.parent.snapshot.hash == node.snapshot.hash:
        tried.add(node.action.does)
        node = node.parent
    return tried


@frozen
class SelectiveJudge:
    """Calls its judge only for states with an answer or new findings."""

    judge: Value

    async def value(self, node: Node) -> float:
        """Return the judge's value; 0 without findings, the previous value if nothing changed."""
        if node.answer is None:
            if not any(each.size for each in node.snapshot.declared()):
                return 0.0
            parent = node.parent
            if parent is not None and parent.value is not None and parent.snapshot.hash == node.snapshot.hash:
                return parent.value
        return await self.judge.value(node)


@frozen
class SearchOutcome:
    """The result of a search.

    ``proposal`` contains the answer. If ``proposal`` is None, ``stopped`` and ``reason`` say why, and ``ungrounded`` may be a proposal
    with an unsupported answer. ``steps`` are the loop's earlier steps and the steps on the path to the best state; ``best`` is None
    if nothing has to be adopted, because the state already is the best state.
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
    """One search. ``left`` is the maximum number of plans that the search may execute. ``stop`` ends work in progress."""

    question: str
    branching: Branching
    asker: PlannerCalls
    searching: SearchRequest
    left: int
    stop: asyncio.Event

    async def run(self, record: AskRecorder | None) -> SearchOutcome:
        """Search, store the tree, and return the result; the state is unchanged."""
        base, wanted = self.branching.base, self.searching
        judge = wanted.value
        if judge is None:
            judge = SelectiveJudge(Judged(self.asker.caller, self.question, self.asker.spent, model=self.asker.model))
        searched = await search(
            base.state, self.branching, self.branching, judge, settings=wanted.settings, rollout=wanted.rollout,
            budget=Budget(max_steps=self.left, max_calls=None, cancel=self.stop), events=base.events,
        )  # fmt: skip
        return self._outcome(searched, record)

    def _outcome(self, searched: Searched, record: AskRecorder | None) -> SearchOutcome:
        best, warnings = searched.best, list(searched.warnings)
        if self.searching.value is None and any(each.value is None for each in searched.nodes):
            warnings.append("use --value filled to rate states without a judge")
        tree = searched.tree
        if record is not None and (unkept := record.keep_tree(tree)):
            warnings.append(unkept)
        explored = Explored(searched.settings.strategy, searched.stopped, best.value, searched.steps, tree)
        steps = tuple(self.branching.steps(best))
        proposal, unjudged = self._answered(best), self._unjudged(searched)
        if proposal is None or searched.stopped == "model" or unjudged:
            stopped, reason = self._why(searched)
            if unjudged and stopped == "budget":
                reason = f"an answer was found, but the judge has not rated it yet: {reason}"
            ungrounded = next(reversed(self.branching.ungrounded), None)
            if ungrounded is not None and ungrounded.completed is not None and stopped not in ("exhausted", "refused"):
                warnings.append(f"an answer was not used: {ungrounded.support.fault}")
                ungrounded = None
            return SearchOutcome(steps, explored, None, best, stopped, reason, tuple(warnings), ungrounded)
        enough = searched.settings.enough
        if enough is not None and best.worth < enough:
            told = "is unknown" if best.value is None else f"is {best.value:.2f}"
            warnings.append(f"the value of this answer {told}; the required value is {enough:g}")
        return SearchOutcome(steps, explored, proposal, best, warnings=tuple(warnings))

    def _answered(self, best: Node) -> Proposal | None:
        """Return the proposal with the best state's answer, from the planner or from a rollout; None without an answer."""
        if best.answer is None or best.parent is None:
            return None
        made = self.branching.proposals.get(best.parent.number)
        if made is not None and made.completed is not None and made.completed.answer == best.answer:
            return made
        why = "" if best.action is None else best.action.rationale
        return Proposal(Hypothesis("terminate", why), Completed(best.answer, why=why))

    def _unjudged(self, searched: Searched) -> bool:
        """Return whether the search was stopped before an answer was rated; the next attempt then repeats the rating."""
        if searched.stopped not in ("budget", "cancelled") or searched.status == "found":
            return False
        return any(each.answer is not None and each.value is None for each in searched.nodes)

    def _why(self, searched: Searched) -> tuple[Stopped, str]:
        """Return why a search found no answer; the caller explains a cancellation."""
        lost, plans = self.branching.lost, f"{searched.steps} plan{'' if searched.steps == 1 else 's'}"
        match searched.stopped:
            case "steps":
                return "steps", f"no answer after {plans}"
            case "budget":
                return "budget", failure_text(lost) if lost is not None else "the budget is used up"
            case "model":
                told = lost or next(iter(self._failures(searched)), None)
                if told is None:
                    return "model", "a model can't be called"
                return "model", failure_text(told)
            case "exhausted":
                refused = self.branching.refused
                if not searched.steps and refused:
                    return "refused", f"none of the plans that the model wrote could run: {refused[-1].splitlines()[0]}"
                if not searched.steps and lost is not None:
                    return "model", failure_text(lost)
                return (
                    "exhausted",
                    f"nothing is left to try after {plans}",
                )
        return "", ""

    def _failures(self, searched: Searched) -> list[Any]:
        return [branch for node in searched.nodes for branch in node.branches if branch.status == "failed"]


def failure_text(told: Any) -> str:
    """Return one sentence that says why a model call or a branch failed, with a hint."""
    hint = getattr(told, "hint", "")
    return f"{told.message} ({hint})" if hint else str(told.message)


def adopt_outcome(found: SearchOutcome, earlier: int, state: StateStore, record: AskRecorder | None) -> None:
    """Adopt the found state; the first ``earlier`` steps were done before the search. Raises ``StoreError``."""
    proposal, best = found.proposal, found.best
    if proposal is None or best is None or proposal.completed is None:
        return
    if record is not None:
        fresh = found.steps[earlier:]
        record.search_found(
            {
                "history": len(state.history), "state": state.hash, "commands": _commands(fresh),
                "steps": [step.as_json() for step in fresh], "supposed": asdict(proposal.supposed),
                "answer": proposal.completed.answer, "cited": list(proposal.completed.cited), "search": found.explored.as_json(False),
            }
        )  # fmt: skip
    adopt(state, best)
    state.sync()


def _commands(steps: "tuple[Step, ...]") -> list[list[Any]]:
    return [_command_key(entry) for step in steps for entry in step.entries]


def _command_key(entry: Mapping[str, Any]) -> list[Any]:
    return [entry.get("plan_id"), entry.get("command"), entry.get("started_at")]


def is_adopted(told: Mapping[str, Any], state: StateStore) -> bool:
    """Return whether ``state`` has adopted the search result of a ``found`` record."""
    begin, commands = told["history"], told["commands"]
    since = state.history[begin : begin + len(commands)]
    return bool([_command_key(entry) for entry in since] == commands)


def found_before(told: Mapping[str, Any], record: AskRecorder) -> SearchOutcome:
    """Return the result of an attempt that was killed before it reported. Raises ``KeyError`` or ``TypeError`` for a damaged record."""
    completed = Completed(str(told["answer"]), tuple(told["cited"]))
    steps = (*record.kept.steps, *(Step.of(each) for each in told["steps"]))
    by_number = {step.number: step for step in steps}  # some steps may already be stored as done
    return SearchOutcome(
        tuple(by_number[number] for number in sorted(by_number)),
        Explored(**told["search"], tree=record.kept.tree),
        Proposal(Hypothesis(**told["supposed"]), completed),
    )
