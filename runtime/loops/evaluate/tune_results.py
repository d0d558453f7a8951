"""The settings, the trials and the result of tuning a seed."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from attrs import define, evolve, field, frozen

from ....adapters.llm.budget import Price
from ....lang.trees.seed import FormulaSeed
from ...results import usage_json
from .call_record import CallFigures
from .comparison import Comparison
from .intervals import Score
from .variants import Description

Status = Literal["complete", "partial", "failed", "cancelled"]
MOST_TRIALS = 24


@frozen
class TuneSettings:
    """The settings of a tuning.

    ``columns`` are the tuned fields. ``metric`` is the metric by which trials are ranked; "" stands for the share of right
    values of several fields. ``descriptions`` is the number of sets of descriptions to write. ``trials`` is the maximum number
    of trials.
    """

    columns: tuple[str, ...]
    metric: str
    trials: int = MOST_TRIALS
    descriptions: int = 4
    random_state: int = 0
    max_concurrency: int = 8
    strict_types: bool = False
    tolerance: float = 0.0
    options: Mapping[str, Any] = field(factory=dict)


@define
class Trial:
    """A variant of the seed.

    ``description`` is the number of its set of descriptions (0: the seed's own), ``examples`` is the number of its examples
    (None: the seed's own). ``scores`` has the score in each round on the dev items (higher is better), ``items`` is the number
    of items in the last round.
    """

    number: int
    description: int
    examples: int | None
    seed: FormulaSeed
    scores: list[float | None] = field(factory=list)
    items: int = 0
    is_left: bool = True
    """False if the trial was eliminated after a round."""

    def as_json(self) -> dict[str, Any]:
        """Return the trial as a JSON object."""
        return {
            "trial": self.number, "description": self.description, "examples": self.examples, "items": self.items, "scores": self.scores
        }  # fmt: skip


@frozen
class Tuned:
    """The result of a tuning.

    ``seed`` is the tuned seed, with ``tuned_from`` in its document; None unless ``status`` is "complete". ``winner`` is the
    number of the trial that is best on the dev items; 0 is the original. ``original`` and ``tuned`` are the scores of both seeds
    in the test; ``comparison`` compares the tuned seed with the original. All three are None if the original is the best, or if
    the test is incomplete. ``reason`` says why the run is not complete, or why the trials ended early.
    """

    status: Status
    seed: FormulaSeed | None = None
    winner: int = 0
    trials: tuple[Trial, ...] = ()
    descriptions: tuple[Description, ...] = ()
    metric: str = ""
    original: Score | None = None
    tuned: Score | None = None
    comparison: Comparison | None = None
    split: Mapping[str, Any] = field(factory=dict)
    figures: CallFigures = field(factory=CallFigures)
    notes: tuple[str, ...] = ()
    reason: str = ""
    run_id: str = ""
    path: Path | None = None
    warnings: tuple[str, ...] = ()
    prices: Mapping[str, Price] = field(factory=dict)

    @property
    def verdict(self) -> str:
        """The verdict of the test: better, worse or no difference shown; "" if the tuning is not complete.

        If there was no test, because no trial is better than the original, the verdict is "no difference shown".
        """
        if self.status != "complete":
            return ""
        return self.comparison.verdict if self.comparison is not None else "no difference shown"

    def as_json(self) -> dict[str, Any]:
        """Return the result as a JSON object, without the seed."""
        return {
            "status": self.status, "verdict": self.verdict or None, "metric": self.metric, "winner": self.winner,
            "original": None if self.original is None else self.original.as_json(),
            "tuned": None if self.tuned is None else self.tuned.as_json(),
            "comparison": None if self.comparison is None else self.comparison.as_json(), "split": dict(self.split),
            "trials": [each.as_json() for each in self.trials],
            "calls": self.figures.calls, "cached": self.figures.cached, "reused": self.figures.reused,
            **usage_json(self.figures.usage),
            "cost": self.figures.cost, "seconds": self.figures.seconds, "notes": list(self.notes), "reason": self.reason,
            "run": self.run_id,
        }  # fmt: skip


@frozen
class Reserve:
    """The part of the limits that is kept for the test.

    ``call_tokens`` and ``call_cost`` are the estimated tokens and US dollars of a call of the original seed.
    """

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    call_tokens: float = 0.0
    call_cost: float = 0.0

    def measured(self, tokens: float, cost: float) -> "Reserve":
        """Return the reserve, enlarged if the measured ``tokens`` or ``cost`` of a call are well above their estimates.

        The estimate has a margin of one half; the enlarged reserve has a margin of one fifth over the measured values.
        """
        more = max(1.0, 0.8 * tokens / self.call_tokens if self.call_tokens else 1.0)
        dearer = max(1.0, 0.8 * cost / self.call_cost if self.call_cost else 1.0)
        return evolve(self, tokens=math.ceil(self.tokens * more), cost=self.cost * dearer)
