"""The result of a compilation: the seed (or the best draft with its errors), and a report of each step."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from attrs import asdict, field, frozen

from ....adapters.llm import Usage
from ....adapters.llm.budget import Price
from ....lang.diagnostic import Diagnostic, all_as_json
from ....lang.source import Source
from ....lang.trees.seed import FormulaSeed
from ...results import NO_USAGE, prices_json, usage_json

Phase = Literal["conditions", "graph", "seed"]
PHASES: tuple[Phase, ...] = ("conditions", "graph", "seed")
"""The three steps, in order. See ``docs/design/seed.md#compiler``."""
Status = Literal["done", "failed"]
Stopped = Literal["", "cancelled", "time", "budget", "model", "no_progress"]
"""The reason why compiling ended early: the run was cancelled, the time or the budget is used up, the model can't be called, or
the model keeps repeating the same faulty answer; "" for any other end."""


@frozen
class CheckedAnswer:
    """An answer that was read and checked. ``value`` is None if there are errors.

    ``offered`` are diagnostics whose edits are only one of several options; only a model or a person can choose an option.
    ``rewritten`` is a pair: the complete text in an equivalent form, and the reason why it was rewritten.
    """

    value: Any
    diagnostics: tuple[Diagnostic, ...]
    source: Source
    offered: frozenset[Diagnostic] = frozenset()
    rewritten: tuple[str, str] | None = None

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The errors, all of which must be fixed."""
        return tuple(each for each in self.diagnostics if each.severity == "error")


@frozen
class Fix:
    """A fault that was fixed without a model call: its code, its message, and a description of the fix."""

    code: str
    message: str
    how: str = ""


@frozen
class CompiledStep:
    """The result of one step.

    ``text`` is the last good answer or, without one, the best draft; the spans of ``diagnostics`` refer to this text.
    ``repairs`` is the number of repairs that were requested from the model, and ``mended`` lists the fixes that were made
    without a call. ``notes`` are remarks.
    """

    phase: Phase
    status: Status
    text: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    repairs: int = 0
    mended: tuple[Fix, ...] = ()
    notes: tuple[str, ...] = ()
    calls: int = 0
    usage: Usage = NO_USAGE
    cost: float | None = None
    seconds: float = 0.0
    reason: str = ""

    @property
    def source(self) -> Source:
        """The source to which the spans of the diagnostics refer."""
        return Source(self.text, f"<{self.phase}>")

    def as_json(self) -> dict[str, Any]:
        """Return the step as a JSON object."""
        return {
            "phase": self.phase, "status": self.status, "text": self.text,
            "diagnostics": all_as_json(self.diagnostics, self.source),
            "repairs": self.repairs, "mended": [asdict(each) for each in self.mended], "notes": list(self.notes),
            "usage": usage_json(self.usage, self.calls), "cost": self.cost, "seconds": round(self.seconds, 3),
            "reason": self.reason,
        }  # fmt: skip


@frozen
class Compiled:
    """The result of compiling a task.

    If ``status`` is "done", ``document`` is a Formula Seed in the declarative form that passes ``check``, ``text`` is the JSON of the
    document, and ``seed`` is the parsed seed. If ``status`` is "failed", all three are empty, ``reason`` says why, and the last of
    ``steps`` contains the best draft with its diagnostics. ``cached`` is true if the result comes from the cache, without any call.
    ``usage`` is in tokens, ``cost`` in US dollars (None if unknown).
    """

    status: Status
    seed: FormulaSeed | None = None
    document: Mapping[str, Any] | None = None
    text: str = ""
    steps: tuple[CompiledStep, ...] = ()
    repairs: int = 0
    usage: Usage = NO_USAGE
    calls: int = 0
    cost: float | None = None
    seconds: float = 0.0
    cached: bool = False
    stopped: Stopped = ""
    reason: str = ""
    hint: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Warnings and remarks about the seed, with spans in ``text``; for a failed compilation, the diagnostics of the best draft."""
    warnings: tuple[str, ...] = field(default=())
    path: Path | None = None
    """The folder of the stored run; None if the run is not stored."""
    prices: Mapping[str, Price] = field(factory=dict)
    """Maps the specs of models to their known prices."""

    @property
    def draft(self) -> CompiledStep | None:
        """The step that failed, with its best draft; None if no step failed or the failed step has no draft."""
        last = self.steps[-1] if self.steps else None
        return last if last is not None and last.status == "failed" and last.text else None

    def as_json(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        draft = self.draft
        source = Source(self.text, "<seed>") if draft is None else draft.source
        return {
            "status": self.status, "seed": None if self.document is None else dict(self.document),
            "steps": [each.as_json() for each in self.steps], "repairs": self.repairs, "cached": self.cached,
            "stopped": self.stopped, "reason": self.reason, "hint": self.hint,
            "diagnostics": all_as_json(self.diagnostics, source),
            "usage": usage_json(self.usage, self.calls), "cost": self.cost, "seconds": round(self.seconds, 3),
            "warnings": list(self.warnings), **prices_json(self.prices),
        }  # fmt: skip
