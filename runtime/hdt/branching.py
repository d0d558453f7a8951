"""What a search over plans asks: the planner proposes in each state of the tree, plans run on forks, the judge says how far it is.

All answers of models are kept under the way to where they were asked for: the plans that lead there, by what they do. The state's hash
would not do: an answer's time stands in the state. So a search that is run once more, after a kill or with a larger budget, finds
everything that was paid for, and grows the same tree.
"""

from collections.abc import Mapping, Sequence

from attrs import define, field, frozen
from blake3 import blake3

from ...adapters.state import StateStore
from ...lang.literals import Reading, read
from ..events import (
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
from ..executor import GASLExecutor
from ..executor.planning import is_document
from ..records import plan_status
from ..results import Failed, StepFailed
from ..search import Action as Branch
from ..search import Node, Value
from ..search.nodes import way_to
from .asking import Paid, Place
from .checking import Action, renamed
from .keeping import AskRecorder
from .planning import Planner, Proposal
from .reading import NO_REASON
from .repeating import repeated, repetitions
from .results import Step, Supposed

__all__ = ["Branching", "Held", "beside"]

_TOLD = (BudgetReached, CallFinished, CallRetried, CallStarted, RepairAsked, Warned)


def beside(events: Events) -> Events:
    """Return a stream for plans that run side by side: ``events`` hears of calls and warnings, not of each command."""

    def told(event: Event) -> None:
        if isinstance(event, _TOLD):
            events.emit(event)

    made = Events()
    if events:
        made.subscribe(told)
    return made


@define
class Branching:
    """``search``'s proposer and opener for one question.

    ``base`` is the loop's executor, whose state is the search's first; ``earlier`` are the steps that were done in it. ``began`` names
    what the ways begin with: graph and state. ``wanted``: how many plans the planner is asked for at once.
    """

    planner: Planner
    base: GASLExecutor
    clients: Mapping[str, Paid]
    earlier: tuple[Step, ...]
    began: str
    wanted: int
    record: AskRecorder | None = None
    lost: Failed | None = field(default=None, init=False)
    """The last failure of a call for a proposal."""
    refused: list[str] = field(factory=list, init=False)
    """Of the states without a plan that can run, what was wrong."""
    ungrounded: list[Proposal] = field(factory=list, init=False)
    """The answers that rest on nothing: they end no branch, and are told where there is no other."""
    proposals: dict[int, Proposal] = field(factory=dict, init=False)
    """By the number of the state that they are for."""
    _actions: dict[str, tuple[Action, Supposed]] = field(factory=dict, init=False)
    _events: Events = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._events = beside(self.base.events)

    async def propose(self, node: Node) -> Sequence[Branch]:
        """Return what the planner would do next in a state, or its answer. Raises ``StepFailed``."""
        steps = self.steps(node)
        executor = self._executor(node.fork(), self.clients)  # it runs nothing: plans are checked with it
        number, at = len(steps) + 1, Place(self._way(node), node.number)
        try:
            proposal = await self.planner.propose(executor, number, steps, at=at, branches=self.wanted)
        except StepFailed as error:
            self.lost = error.failed
            raise
        self.proposals[node.number] = proposal
        if proposal.completed is not None and not proposal.grounds.fault:
            return [Branch(answer=proposal.completed.answer, rationale=proposal.completed.why)]
        if not proposal.actions:
            if proposal.completed is not None:
                self.ungrounded.append(proposal)
            else:
                self.refused.append(proposal.faults)
            if self.record is not None:
                asker = self.planner.asker
                self.record.in_vain([asker.kept_at(number, turn, at) for turn in range(proposal.repairs + 1)])
        used = {str(step.plan.get("plan_id")) for step in steps}
        made, tried, repeats = [], _in_vain(node), repetitions(steps) >= 2
        for action in proposal.actions:
            action = renamed(action, used, len(steps) + 1)
            branch = Branch(dict(action.plan), action.confidence, action.rationale)
            if branch.does in tried or (repeats and repeated(action, node.snapshot.hash, steps)):
                continue
            self._actions.setdefault(branch.does, (action, proposal.supposed))
            made.append(branch)
        return made

    def open(self, state: StateStore, node: Node, action: Branch) -> GASLExecutor:
        """Return the executor of a plan: what its models answer is kept under the plan's way."""
        way = self._way(node, action.does)
        taken, supposed = self._taken(action)
        events = self.base.events
        if events:
            at, others = len(self.earlier) + node.depth + 1, len(node.branches) - 1
            events.emit(
                HypothesisFormed(at, supposed.hypothesis, taken.plan_id, taken.commands, action.confidence, others)
            )
        return self._executor(state, {name: client.at(way) for name, client in self.clients.items()})

    def steps(self, node: Node) -> list[Step]:
        """Return the steps of the loop and those on the way to a state, as the planner and a person are told of them."""
        steps = list(self.earlier)
        for each in way_to(node):
            if each.parent is None or each.action is None or each.action.answer is not None:
                continue
            taken, supposed = self._taken(each.action)
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

    def _taken(self, action: Branch) -> tuple[Action, Supposed]:
        """Return what is known of a branch's plan; of one that is not the planner's, but a rollout's own, what it says itself."""
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
            found = Action(plan, action.confidence, action.rationale), Supposed("continue", action.rationale)
            self._actions[action.does] = found
        return found

    def _way(self, node: Node, *more: str) -> str:
        told = "\n".join([self.began, *(action.does for action in node.path), *more])
        return blake3(told.encode("utf-8", "backslashreplace")).hexdigest(length=16)

    def _executor(self, state: StateStore, clients: Mapping[str, Paid]) -> GASLExecutor:
        base, session = self.base, self.base.session
        return GASLExecutor(
            base.adapter, clients.get(""), state, self.planner.given.copy(),
            models={name: client for name, client in clients.items() if name}, caps=session.caps, ceiling=session.ceiling,
            options=session.options, max_concurrency=session.max_concurrency, chunks=session.chunks, events=self._events,
        )  # fmt: skip


def _in_vain(node: Node) -> set[str]:
    """Return what was tried on the way to a state since it last changed: once more it would come to the same."""
    tried = set[str]()
    while node.parent is not None and node.action is not None and node.parent.snapshot.hash == node.snapshot.hash:
        tried.add(node.action.does)
        node = node.parent
    return tried


@frozen
class Held:
    """A judge that is asked only where there is something new to judge: an answer, or findings that were not there before."""

    judge: Value

    async def value(self, node: Node) -> float:
        """Return what the judge says; 0 where nothing is found, the value of before where nothing changed."""
        if node.answer is None:
            if not any(each.size for each in node.snapshot.declared()):
                return 0.0
            parent = node.parent
            if parent is not None and parent.value is not None and parent.snapshot.hash == node.snapshot.hash:
                return parent.value
        return await self.judge.value(node)
