"""Runs a search from its first state to its result: sets up the parts, runs a strategy, and leaves no task running."""

import asyncio
from collections.abc import Coroutine, Mapping
from math import inf
from typing import Any, Literal, TypeAlias, get_args

from attrs import field, fields_dict, frozen

from ....adapters.llm import Usage
from ....adapters.state import StateStore
from ....lang.errors import KnotworkError
from ...errors import RequestError, is_number, or_none, share, short_repr, whole_number_validator
from ...events import Events
from ...limits import Deadline
from ...models.caller import Spent
from .growth import GrowingTree, Opener, Steps, as_opening
from .nodes import Action, Budget, Meter, Node, Stopped, way_to
from .policies import Proposer, Rollout, Untaken, Valued, valued
from .strategies import MCTS, beam, greedy
from .trees import Tree, tree_of

Strategy: TypeAlias = Literal["greedy", "beam", "mcts"]


def _strategy_name(settings: "Settings", attribute: Any, value: Any) -> None:
    if value not in get_args(Strategy):
        raise RequestError(
            "strategy", f"unknown strategy {short_repr(value)}", f"one of {', '.join(get_args(Strategy))}"
        )


def _exploration(settings: "Settings", attribute: Any, value: Any) -> None:
    if not (is_number(value) and 0 <= value < inf):
        raise RequestError("exploration", f"expected a number, 0 or greater, not {short_repr(value)}")


def _boolean(settings: "Settings", attribute: Any, value: Any) -> None:
    if type(value) is not bool:
        raise RequestError(attribute.name, f"expected True or False, not {short_repr(value)}")


@frozen
class Settings:
    """The settings of a search.

    ``width`` is the number of states that beam keeps. ``branching`` is the maximum number of branches of a state, most
    confident first. ``max_depth`` is the maximum number of consecutive plans. ``enough`` is the value that ends the search;
    None means that no value ends it. ``seed``, ``exploration``, ``batch`` and ``rollout_depth`` are settings of MCTS; see
    ``strategies``. The same settings, budget and proposals give the same tree, whatever the parallelism (``at_once``).

    If ``answers`` is true, the search looks for an answer: only a state with an answer can be good enough, and the best of
    these states is the best state. If ``outcomes`` is true, the proposer sees the results of plans: a plan that failed or
    changed nothing then leads to a separate state, from which the search may continue; otherwise such a branch is closed.
    """

    strategy: Strategy = field(default="greedy", validator=_strategy_name)
    width: int = field(default=3, validator=whole_number_validator(1))
    branching: int = field(default=8, validator=whole_number_validator(1))
    max_depth: int = field(default=20, validator=whole_number_validator(1))
    enough: float | None = field(default=1.0, validator=or_none(share))
    seed: int = field(default=0, validator=whole_number_validator(-(2**63)))
    exploration: float = field(default=0.5, validator=_exploration)
    batch: int = field(default=1, validator=whole_number_validator(1))
    rollout_depth: int = field(default=0, validator=whole_number_validator(0))
    at_once: int = field(default=4, validator=whole_number_validator(1))
    answers: bool = field(default=False, validator=_boolean)
    outcomes: bool = field(default=False, validator=_boolean)


@frozen
class Searched:
    """The result of a search. ``best`` and ``nodes`` still hold their states: use ``best.snapshot`` or ``adopt(state, best)``.

    ``status`` is "found" if a state is good enough, "best" if the best state is better than the first, otherwise "failed".
    """

    status: Literal["found", "best", "failed"]
    stopped: Stopped
    best: Node
    nodes: tuple[Node, ...] = field(repr=False)
    steps: int
    calls: int
    usage: Usage
    cost: float | None
    seconds: float
    settings: Settings
    warnings: tuple[str, ...] = ()

    @property
    def path(self) -> tuple[Action, ...]:
        """The actions that lead to the best state."""
        return self.best.path

    @property
    def answer(self) -> str | None:
        """The answer given in the best state, if any."""
        return self.best.answer

    @property
    def tree(self) -> Tree:
        """The tree as data, for printing, saving and drawing."""
        return tree_of(self.nodes, self.best)

    def as_json(self) -> dict[str, Any]:
        """Return the result, including the tree, as a JSON object."""
        settings = self.settings
        return {
            "status": self.status,
            "stopped": self.stopped,
            "value": self.best.value,
            "answer": self.answer,
            "hash": self.best.snapshot.hash,
            "path": [action.as_json() for action in self.path],
            "strategy": settings.strategy,
            "seed": settings.seed,
            "steps": self.steps,
            "calls": self.calls,
            "tokens": {
                "prompt": self.usage.prompt_tokens,
                "completion": self.usage.completion_tokens,
                **({"estimated": True} if self.usage.estimated else {}),
            },
            "cost": self.cost,
            "seconds": round(self.seconds, 3),
            "warnings": list(self.warnings),
            "tree": self.tree.as_json(),
        }


async def search(
    state: StateStore,
    opener: Opener,
    proposer: Proposer,
    value: Valued,
    *,
    settings: Settings | Mapping[str, Any] | None = None,
    budget: Budget | None = None,
    rollout: Rollout | None = None,
    spent: Spent | None = None,
    events: Events | None = None,
) -> Searched:
    """Search for the best state that plans can reach from ``state``. ``state`` is only read; ``adopt`` applies the result to it.

    ``opener`` returns an executor over a fork (an ``Opening`` also receives the node and the action); the executors of all branches
    share graph, models and caches. ``value`` rates a state from 0 to 1: a ``Value``, or a function of a node. ``spent`` collects
    the cost of a proposer, value or rollout that calls models, so that the budget covers it. An error raised by a custom part closes a
    branch. No task is running when this function returns or raises. Raises ``ValueError`` for invalid settings, before any call.
    """
    chosen = _settings(settings)
    if budget is not None and not isinstance(budget, Budget):
        raise RequestError("budget", f"expected a Budget, not {short_repr(budget)}")
    if rollout is not None and not hasattr(rollout, "choose"):
        raise RequestError("rollout", f"{short_repr(rollout)} has no method `async choose(node, known, random)`")
    meter = Meter(budget or Budget(), spent if spent is not None else Spent())
    # Proposers and plans have separate limits on parallelism, because a proposer may wait for a plan that it runs itself.
    steps = Steps(as_opening(opener), meter, asyncio.Semaphore(chosen.at_once), chosen.outcomes)
    asking = asyncio.Semaphore(chosen.at_once)
    growing = GrowingTree(
        steps, proposer, valued(value), asking, chosen.max_depth, chosen.branching, chosen.enough, chosen.answers, events
    )  # fmt: skip
    await _bounded(meter, _strategy(growing, state, chosen, rollout or Untaken()))
    if not growing.nodes:
        raise RuntimeError("internal error: the search has no root")
    best = growing.best
    found = growing.is_enough(best)
    better = best is not growing.root and best.worth > growing.root.worth
    return Searched(
        "found" if found else "best" if better else "failed",
        meter.reason or "exhausted",
        best,
        tuple(growing.nodes),
        meter.steps,
        meter.spent.calls,
        meter.spent.usage,
        meter.spent.cost,
        meter.seconds,
        chosen,
        tuple(growing.warnings),
    )


def _settings(given: Settings | Mapping[str, Any] | None) -> Settings:
    if isinstance(given, Settings):
        return given
    if given is not None and not isinstance(given, Mapping):
        raise RequestError("settings", f"expected Settings or settings by name, not {short_repr(given)}")
    if unknown := sorted(set(map(str, given or {})) - set(fields_dict(Settings))):
        raise RequestError("settings", f"unknown setting {', '.join(unknown)}")
    return Settings(**(given or {}))


async def _strategy(growing: GrowingTree, state: StateStore, settings: Settings, rollout: Rollout) -> None:
    await growing.begin(state)
    if settings.strategy == "greedy":
        await greedy(growing)
    elif settings.strategy == "beam":
        await beam(growing, settings.width)
    else:
        await MCTS(growing, settings.seed, settings.exploration, settings.batch, rollout, settings.rollout_depth).run()


async def _bounded(meter: Meter, work: Coroutine[Any, Any, None]) -> None:
    """Run a strategy until it ends, its time is up or it is cancelled; then stop its tasks and wait until they end."""
    budget = meter.budget
    ending = Deadline(budget.cancel, budget.time_limit)
    task = asyncio.ensure_future(work)  # started even if time is already up, so that the tree has a root
    try:
        await ending.wait_for(task)
        if ending.by:
            meter.stop(ending.by)
        else:
            task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


# Applies a state that a search found to the state where the search began, as one commit. No command and no model call is repeated.
# The commit contains the changed variables with their provenance, the history entries of every command on the path, the command texts
# for ``replay``, and the model answers. So an adopted state can be replayed and reported like a state in which the commands ran.


class AdoptError(KnotworkError):
    """Raised if the state has changed since the search began; ``adopt`` then leaves the state unchanged."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def adopt(state: StateStore, node: Node) -> str:
    """Apply the state of ``node`` to ``state``, in which the search began; return the new hash.

    The complete change is one record of the journal: after a crash, the record is either complete or absent. Adopting the root, or
    a node that is already adopted, changes nothing. Raises ``AdoptError`` if ``state`` has changed since the search began,
    ``StoreError`` if ``state`` can't be written.
    """
    began, found = way_to(node)[0].fork(), node.fork()
    seen, known = len(state.history), len(began.history)
    if state.hash == found.hash and seen == len(found.history):
        return state.hash
    if state.hash != began.hash or seen != known:
        raise AdoptError(
            "the state has changed since the search began", hint="repeat the search from the current state"
        )
    mark = state.mark()
    before, after = began.replay_info(), found.replay_info()
    try:
        for entry in list(found.history)[known:]:
            state.note(entry)
        for command in after["commands"][len(before["commands"]) :]:
            state.ran(command)
        for answer in after.get("answers", [])[len(before.get("answers", [])) :]:
            state.answered(answer)
        state.configure(config=after["config"])  # the configuration names the graph that the findings now come from
        state.rollback(found.snapshot())  # copies the found commits with their notes
    except BaseException:
        state.back(mark)
        state.configure(config=before["config"])
        raise
    return state.hash
