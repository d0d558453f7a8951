"""What a ranking comes to: the items, best first, and how each phase got there. See ``docs/design/loops.md#ranking``.

Rankings count from 1, as the seed prints them; indices in scripts and in ``REMAINING`` count from 0. Costs are US dollars, None where
no call's cost is known.
"""

from typing import Any, Literal

from attrs import field, frozen

from ...adapters.llm import Usage
from ..results import NO_USAGE, Run
from ..spending import Spent

__all__ = ["Phase", "Ranked", "Repair", "Status", "ToolUse"]

Status = Literal["complete", "partial", "failed", "cancelled"]


@frozen
class Repair:
    """A plan that went back: what was written, and what was said of it (diagnostics as JSON objects that point into it)."""

    attempt: int
    written: str
    diagnostics: tuple[dict[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {"attempt": self.attempt, "written": self.written, "diagnostics": list(self.diagnostics)}


@frozen
class ToolUse:
    """A tool's call, or what was taken for one: ``call`` as it is written, ``result`` what the model was told."""

    iteration: int
    call: str
    ok: bool
    result: str

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {"iteration": self.iteration, "call": self.call, "ok": self.ok, "result": self.result}


@frozen
class Phase:
    """One of the three phases: ``status`` is done, pass-through, unfinished (an expansion without ``done()``), failed or cancelled;
    ``reason`` says why it is not done."""

    name: Literal["plan", "expand", "execute"]
    status: str
    seconds: float
    spent: Spent = field(factory=Spent)
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {
            "phase": self.name, "status": self.status, "reason": self.reason, "seconds": round(self.seconds, 3),
            **_figures(self.spent.calls, self.spent.usage, self.spent.cost),
        }  # fmt: skip


@frozen
class Ranked:
    """The ranking of a request.

    ``ranking``: positions of items from 1, the best first; empty where ``status`` is failed or cancelled, and ``reason`` says why then.
    ``status`` is partial where a step of the script failed, or where the script was not completed: ``reason`` says so.
    ``conditions`` and ``remaining`` (indices from 0) are what the plan said; ``skeleton`` is the planned script, ``script`` the one
    that ran.
    ``names`` are what the ranked items are called, where they have names. ``none_fits``: the result is that no item fits; ``ranking`` is
    empty then.
    """

    request: str
    number: int
    status: Status
    ranking: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    reason: str = ""
    output: str | None = None
    conditions: str = ""
    remaining: tuple[int, ...] = ()
    skeleton: str = ""
    script: str = ""
    message: str = ""
    phases: tuple[Phase, ...] = ()
    repairs: tuple[Repair, ...] = ()
    tools: tuple[ToolUse, ...] = ()
    run: Run | None = field(default=None, repr=False)
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    none_fits: bool = False

    @property
    def best(self) -> int | None:
        """The best item's position from 1; None where there is no ranking."""
        return self.ranking[0] if self.ranking else None

    @property
    def calls(self) -> int:
        """Requests to models, those that failed too."""
        return self.spent.calls

    @property
    def usage(self) -> Usage:
        """Tokens of all calls."""
        return self.spent.usage

    @property
    def cost(self) -> float | None:
        """US dollars; None where no call's cost is known."""
        return self.spent.cost

    @property
    def spent(self) -> Spent:
        """What all phases cost together."""
        total = Spent(0, NO_USAGE, None)
        for phase in self.phases:
            total.add(phase.spent.calls, phase.spent.usage, phase.spent.cost)
        return total

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {
            "request": self.request, "number": self.number, "status": self.status, "ranking": list(self.ranking),
            "none_fits": self.none_fits, "names": list(self.names), "reason": self.reason, "output": self.output,
            "conditions": self.conditions,
            "remaining": list(self.remaining), "skeleton": self.skeleton, "script": self.script, "message": self.message,
            "phases": [phase.as_json() for phase in self.phases], "repairs": [each.as_json() for each in self.repairs],
            "tools": [each.as_json() for each in self.tools], "usage": _figures(self.calls, self.usage, self.cost),
            "seconds": round(self.seconds, 3), "warnings": list(self.warnings),
        }  # fmt: skip


def _figures(calls: int, usage: Usage, cost: float | None) -> dict[str, Any]:
    tokens = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
    return {"calls": calls, **tokens, "cost": cost}
