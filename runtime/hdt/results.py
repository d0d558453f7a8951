"""What a loop gives: its steps with what was supposed, done and decided, and how it ended."""

from collections.abc import Mapping
from typing import Any, Literal

from attrs import asdict, field, frozen

from ...adapters.llm import Usage
from ..search import Tree

__all__ = ["Asked", "Decision", "Explored", "Finding", "Step", "Stopped", "Supposed"]

Decision = Literal["start", "continue", "refine", "pivot", "terminate"]
Stopped = Literal["", "steps", "budget", "time", "cancelled", "model", "refused", "exhausted", "no_progress"]


@frozen
class Supposed:
    """What a step begins with: what was made of the step before, and what is supposed now.

    ``by`` is "model" where the model decided, "rule" where it said nothing and the outcome of the step before decided.
    """

    decision: Decision
    why: str = ""
    hypothesis: str = ""
    by: Literal["model", "rule"] = "model"


@frozen
class Step:
    """One turn of the loop. ``status`` is the plan's as a whole, or "refused" where no plan could be run: ``faults`` say why.

    ``plan`` is the plan object, ``entries`` the records of its commands as the history has them. ``alternatives`` are the next
    actions that were not taken. ``repairs`` counts answers that went back to the model. ``state`` is the state's hash behind it, ""
    where it is not known.
    """

    number: int
    supposed: Supposed
    status: str
    plan: Mapping[str, Any] = field(factory=dict)
    entries: tuple[Mapping[str, Any], ...] = ()
    confidence: float = 1.0
    rationale: str = ""
    mended: tuple[str, ...] = ()
    alternatives: tuple[Mapping[str, Any], ...] = ()
    repairs: int = 0
    faults: str = ""
    seconds: float = 0.0
    state: str = ""

    @property
    def commands(self) -> tuple[str, ...]:
        """The plan's commands as texts."""
        listed = self.plan.get("commands", ())
        return tuple(str(each["command"]) if isinstance(each, Mapping) else str(each) for each in listed)

    def as_json(self) -> dict[str, Any]:
        """Return the step as a JSON object."""
        told = asdict(self, recurse=False)
        return {
            **told, "supposed": asdict(self.supposed), "plan": dict(self.plan), "entries": [dict(each) for each in self.entries],
            "mended": list(self.mended), "alternatives": [dict(each) for each in self.alternatives],
        }  # fmt: skip

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> "Step":
        """Return the step that ``as_json`` gave."""
        lists = {name: tuple(kept[name]) for name in ("entries", "mended", "alternatives")}
        return cls(**{**kept, **lists, "supposed": Supposed(**kept["supposed"])})


@frozen
class Finding:
    """One thing that the state holds, and the evidence beside it (``adapters.state.Evidence``), in brief."""

    key: str
    item: Any
    evidence: tuple[Mapping[str, Any], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the finding as a JSON object."""
        return {"key": self.key, "item": self.item, "evidence": [dict(each) for each in self.evidence]}


@frozen
class Explored:
    """How a search went: ``value`` is that of the best state (None where it could not be told), ``plans`` were executed.

    ``stopped`` is the search's own reason, see ``search.budget.Stopped``. ``tree`` is None where it was not kept.
    """

    strategy: str
    stopped: str
    value: float | None
    plans: int
    tree: Tree | None = field(default=None, repr=False)

    def as_json(self, tree: bool = True) -> dict[str, Any]:
        """Return it as a JSON object; ``tree``: with the whole tree."""
        told = {"strategy": self.strategy, "stopped": self.stopped, "value": self.value, "plans": self.plans}
        return {**told, "tree": None if self.tree is None else self.tree.as_json()} if tree else told


@frozen
class Asked:
    """How a question was answered, or why not.

    ``status``: complete; ungrounded (there is an answer, and it rests on nothing: ``reason`` says why); stopped (a bound ended it:
    ``stopped`` says which; asking again goes on); failed (the model can't be asked, or no plan of it could be run); cancelled.
    ``supposed`` is the last decision. ``usage``, ``calls`` and ``cost`` are of this attempt, the models' work in plans included;
    ``earlier``: the steps before it were done in an attempt before.

    ``cited`` are the citations of the answer that name something in the state or in a command's result, ``uncited`` those that name
    nothing.

    ``search`` is there where plans were searched: ``steps`` are then those on the way to the best state.
    """

    question: str
    status: Literal["complete", "ungrounded", "stopped", "failed", "cancelled"]
    answer: str = ""
    stopped: Stopped = ""
    reason: str = ""
    supposed: Supposed | None = None
    cited: tuple[str, ...] = ()
    evidence: tuple[Finding, ...] = ()
    steps: tuple[Step, ...] = ()
    earlier: int = 0
    usage: Usage = field(factory=Usage)
    calls: int = 0
    cost: float | None = None
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = field(default=(), kw_only=True)
    """Why what the answer rests on is not the whole: a cap cut a search short, say."""
    run_id: str = ""
    state: str = ""
    """The state's hash."""
    search: Explored | None = None
    unkept: str = ""
    """Why the question could not be kept to its end; "" where it is, or was not to be."""
    uncited: tuple[str, ...] = ()

    @property
    def tree(self) -> Tree | None:
        """The tree of the search, where there was one."""
        return None if self.search is None else self.search.tree

    def as_json(self) -> dict[str, Any]:
        """Return the result as the JSON document of ``--format json``."""
        return {
            "question": self.question,
            "status": self.status,
            "answer": self.answer if self.status in ("complete", "ungrounded") else None,
            "stopped": self.stopped,
            "reason": self.reason,
            "decision": None if self.supposed is None else asdict(self.supposed),
            "cited": list(self.cited),
            "uncited": list(self.uncited),
            "evidence": [each.as_json() for each in self.evidence],
            "steps": [each.as_json() for each in self.steps],
            "earlier": self.earlier,
            "usage": {
                "calls": self.calls, "prompt_tokens": self.usage.prompt_tokens,
                "completion_tokens": self.usage.completion_tokens, "cost": self.cost, "seconds": round(self.seconds, 3),
            },
            "warnings": list(self.warnings),
            "incomplete": list(self.incomplete),
            "run": self.run_id,
            "state": self.state,
            "search": None if self.search is None else self.search.as_json(),
        }  # fmt: skip
