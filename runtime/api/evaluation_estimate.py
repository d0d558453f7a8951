"""Estimates the items, calls, tokens and cost of an evaluation, without calling a model. ``evals.dry_run`` is the public function."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from attrs import evolve, frozen

from ...adapters.llm.budget import Price
from ..loops.evaluate.gold import Gold, GoldItem
from ..loops.evaluate.loop_targets import AnswerTarget, AskTarget, RankTarget
from ..loops.evaluate.script_target import ScriptTarget
from ..loops.evaluate.seed_target import SeedTarget
from ..loops.rank.plan_phase import most_calls as most_rank_calls
from ..loops.traversal.traversal_results import Bounds as LoopBounds
from ..models.factory import identity_of
from ..seeds.cost_estimate import ModelEstimate
from ..seeds.stage_estimates import StageEstimate
from .clients import OpenModel, spec_of
from .evaluation_targets import PlannedCandidate

__all__ = ["CandidateEstimate", "EvaluationEstimate", "ModelEstimate", "StageEstimate", "estimate_evaluation"]

Bounds = tuple[int, int | None]
"""A minimum and a maximum; the maximum is None if it is not known before the run."""


@frozen
class CandidateEstimate:
    """The estimated calls of one candidate, for all samples of all items.

    ``calls`` is the smallest possible number of calls, and ``calls_at_most`` is the largest possible number (None: not known
    before the run). ``prompt_tokens`` and ``completion_tokens`` are ranges of estimated tokens (None: not known). ``cost`` is a
    range in US dollars (None: a price or the tokens are not known). ``models`` has figures for each model that reads for a
    seed, and ``prices`` maps specs to known prices. ``stages`` has upper bounds for the numbers of calls that ``resolve`` and
    ``reduce`` make. These calls are not included in the other figures. ``loop_calls_at_most`` is the largest number of calls
    that write plans, scripts and answers in a loop; programs that the model writes may make further calls (None: not a loop, or
    not known). ``note`` says why a figure is not known and what limits it, or why there are no calls.
    """

    name: str
    target: str
    model: str = ""
    calls: int = 0
    calls_at_most: int | None = 0
    prompt_tokens: Bounds | None = (0, 0)
    completion_tokens: Bounds | None = (0, 0)
    cost: tuple[float, float | None] | None = None
    models: tuple[ModelEstimate, ...] = ()
    prices: tuple[tuple[str, Price], ...] = ()
    stages: tuple[StageEstimate, ...] = ()
    loop_calls_at_most: int | None = None
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the estimate as a JSON object."""
        return {
            "target": self.target, "model": self.model, "calls": self.calls, "calls_at_most": self.calls_at_most,
            "prompt_tokens_range": self.prompt_tokens and list(self.prompt_tokens),
            "completion_tokens_range": self.completion_tokens and list(self.completion_tokens),
            "cost_range": self.cost and [None if each is None else round(each, 6) for each in self.cost],
            "models": [each.as_json() for each in self.models],
            "prices": [price.as_json(spec) for spec, price in self.prices],
            "stages": [each.as_json() for each in self.stages], "loop_calls_at_most": self.loop_calls_at_most,
            "note": self.note,
        }  # fmt: skip


@frozen
class EvaluationEstimate:
    """The estimated size of an evaluation.

    ``items`` is the number of labelled items, ``labels`` is the number of their labels, and ``repeat`` is the number of samples
    of each item. ``candidates`` maps the names of the candidates to their estimates. Tokens are estimated from the size of the
    texts; repairs, repeated calls and hidden reasoning are not included. Cached answers are not subtracted. ``max_calls`` and
    ``max_cost`` are the limits of the evaluation (None: no limit); they also bound ``calls_at_most`` and ``cost``.
    """

    target: str
    items: int
    labels: int
    repeat: int
    candidates: dict[str, CandidateEstimate]
    warnings: tuple[str, ...] = ()
    max_calls: int | None = None
    max_cost: float | None = None

    @property
    def calls(self) -> int:
        """The number of calls that are necessary; a limit may end the evaluation earlier."""
        return sum(each.calls for each in self.candidates.values())

    @property
    def calls_at_most(self) -> int | None:
        """The largest number of calls, at most ``max_calls``; None if it is not known before the run and not limited.

        The calls of ``resolve`` and ``reduce`` are not included.
        """
        most = [each.calls_at_most for each in self.candidates.values()]
        return _limited(None if None in most else sum(filter(None, most)), self.max_calls)

    @property
    def cost(self) -> tuple[float, float | None] | None:
        """The range of the cost in US dollars, at most ``max_cost``; None if the cost of a candidate is not known and not limited."""
        found = self._cost
        if self.max_cost is None:
            return found
        low, high = (0.0, None) if found is None else found
        return min(low, self.max_cost), _limited(high, self.max_cost)

    @property
    def _cost(self) -> tuple[float, float | None] | None:
        costs = [each.cost for each in self.candidates.values() if each.calls_at_most != 0]
        known = [each for each in costs if each is not None]
        if len(known) < len(costs):
            return None
        most = [each[1] for each in known]
        return sum(each[0] for each in known), None if None in most else sum(filter(None, most))

    def as_json(self) -> dict[str, Any]:
        """Return the estimate as a JSON object."""
        return {
            "target": self.target, "items": self.items, "labels": self.labels, "repeat": self.repeat, "calls": self.calls,
            "calls_at_most": self.calls_at_most,
            "cost_range": self.cost and [None if each is None else round(each, 6) for each in self.cost],
            "max_calls": self.max_calls, "max_cost": self.max_cost, "tokens": "estimated from the size of the texts",
            "candidates": {name: each.as_json() for name, each in self.candidates.items()}, "warnings": list(self.warnings),
        }  # fmt: skip


_Number = TypeVar("_Number", int, float)


def _limited(most: _Number | None, limit: _Number | None) -> _Number | None:
    """Return the smaller of two upper bounds; None means that there is no bound."""
    return limit if most is None else most if limit is None else min(most, limit)


def estimate_evaluation(
    gold: Gold, planned: Sequence[PlannedCandidate], repeat: int, *, price: Any = None, stored: str = "", warnings: Sequence[str] = (),
    max_calls: int | None = None, max_tokens: int | None = None, max_cost: float | None = None,
) -> EvaluationEstimate:  # fmt: skip
    """Estimate an evaluation.

    ``price`` applies to all models (None: looked up). Candidates without a model have the spec ``stored`` or, if it is "", the
    default model.

    Raises ``RequestError`` and ``NotConfigured``.
    """
    from .clients import default_spec

    default = stored or default_spec(needed=False)
    found: dict[str, CandidateEstimate] = {}
    told = list(warnings)
    for each in planned:
        spec = default if each.llm is None else spec_of(each.llm)
        if each.results:
            found[each.name] = CandidateEstimate(each.name, each.target.name, note="results of a finished run; no call")
            continue
        for model in (spec, *each.models.values()):
            if model and isinstance(model, str):
                identity_of(model)  # refuses a key before a message repeats it
        if isinstance(each.target, SeedTarget):
            limits = {"max_tokens": max_tokens, "max_cost": max_cost}
            made, more = _of_seed(each, each.target, gold.items, spec, price, repeat, limits)
            told += [warning for warning in more if warning not in told]
        elif isinstance(each.target, ScriptTarget):
            made = _of_script(each, each.target, gold.items, spec, price, repeat)
        else:
            made = _of_loop(each, gold.items, spec, price, repeat)
        found[each.name] = _renamed(made, each.llm) if isinstance(each.llm, OpenModel) else made
    name = planned[0].target.name
    labels = sum(len(item.labels) for item in gold.items)
    return EvaluationEstimate(name, len(gold.items), labels, repeat, found, tuple(told), max_calls, max_cost)


def _renamed(made: CandidateEstimate, model: OpenModel) -> CandidateEstimate:
    """Return an estimate for a client, which names a model by its name and not by its spec."""
    return evolve(
        made, model=model.name,
        models=tuple(evolve(each, model=model.name) if each.model == model.spec else each for each in made.models),
        prices=tuple((model.name if spec == model.spec else spec, price) for spec, price in made.prices),
    )  # fmt: skip


def _of_seed(
    planned: PlannedCandidate,
    target: SeedTarget,
    items: Sequence[GoldItem],
    spec: str,
    price: Any,
    repeat: int,
    limits: Mapping[str, Any],
) -> tuple[CandidateEstimate, list[str]]:
    """Return the estimate for a seed's run over the labelled reviews and, if outputs are labelled, over whole contexts."""
    from .seed_estimates import estimate
    from .seed_models import OPTIONS

    options = {name: value for name, value in planned.options.items() if name in (*OPTIONS, "ask")}
    models: dict[tuple[str, str, int], ModelEstimate] = {}
    stages: dict[str, StageEstimate] = {}
    warnings: list[str] = []
    for seed, contexts, _ in target.runs(items):
        part = estimate(seed, contexts, price=price, model=spec, **limits, **options)
        warnings += [warning for warning in part.warnings if not warning.startswith("context ")]
        for number, each in enumerate(part.models):
            whole = models.setdefault(
                (each.model, each.purpose, number), ModelEstimate(each.model, each.purpose, each.price)
            )
            whole.add(each, repeat)
        for stage in part.stages:
            before = stages.get(stage.name, StageEstimate(stage.name, 0, 0, 0, 0.0))
            stages[stage.name] = before.plus(stage, repeat)
    every = tuple(models.values())
    ranges = [(each.prompt_range, each.completion_range) for each in every]
    costs = [each.cost_range for each in every]
    known_costs = [each for each in costs if each is not None]
    cost = (sum(low for low, _ in known_costs), sum(high for _, high in known_costs))
    made = CandidateEstimate(
        planned.name, target.name, spec, sum(each.calls for each in every), sum(each.calls_at_most for each in every),
        (sum(prompt[0] for prompt, _ in ranges), sum(prompt[1] for prompt, _ in ranges)),
        (sum(completion[0] for _, completion in ranges), sum(completion[1] for _, completion in ranges)),
        cost if len(known_costs) == len(costs) else None, every,
        tuple((each.model, each.price) for each in every if each.price is not None),
        tuple(stages.values()),
    )  # fmt: skip
    return made, warnings


def _of_script(
    planned: PlannedCandidate, target: ScriptTarget, items: Sequence[GoldItem], spec: str, price: Any, repeat: int
) -> CandidateEstimate:
    """Return the estimate for a script: the sum of its dry runs for the inputs."""
    from .lwt import dry_run, price_dry_run
    from .seed_estimates import price_of

    named = {name: model for name, model in planned.models.items() if isinstance(model, str)}
    calls, most, is_open, is_priced = 0, 0, False, True
    tokens, cost = [[0, 0], [0, 0]], [0.0, 0.0]
    prices: dict[str, Price] = {}
    given = None if price is None else price_of(price, spec)
    nested = target.plan().nested
    for item in items:
        found = dry_run(target.script, input=item.place, nested=nested)
        bounds, known = price_dry_run(found, spec, named, given)
        prices |= known
        calls, most = calls + found.least, most + found.most
        for total, (low, high) in zip(tokens, (bounds.prompt, bounds.completion), strict=True):
            total[0], total[1] = total[0] + low, total[1] + (high or 0)
        is_open = is_open or bool(found.open_ends) or bounds.prompt[1] is None
        is_priced = is_priced and bounds.cost is not None
        if bounds.cost is not None:
            cost = [cost[0] + bounds.cost[0], cost[1] + (bounds.cost[1] or 0.0)]
    ranges = [(repeat * low, None if is_open else repeat * high) for low, high in tokens]
    return CandidateEstimate(
        planned.name, target.name, spec, repeat * calls, None if is_open else repeat * most, ranges[0], ranges[1],
        (repeat * cost[0], None if is_open else repeat * cost[1]) if is_priced else None, prices=tuple(prices.items()),
        note="the number of calls depends on answers" if is_open else "",
    )  # fmt: skip


def _of_loop(
    planned: PlannedCandidate, items: Sequence[GoldItem], spec: str, price: Any, repeat: int
) -> CandidateEstimate:
    """Return the estimate for a loop: at least one call for each item that asks a model."""
    from .seed_estimates import price_of

    asked = len(items)
    most: int | None = None
    own: int | None = None
    note = ""
    if isinstance(planned.target, RankTarget):
        own = len(items) * most_rank_calls(planned.target.work.max_iterations)
        note = "the script that the model writes may make any number of calls; max_calls and max_cost limit all calls"
    elif isinstance(planned.target, AskTarget):
        own, most, note = _of_questions(planned.options, len(items))
    if isinstance(planned.target, AnswerTarget):
        # A given answer is evaluated by checks alone if the request has no judges.
        asked = sum(answer is None or bool(request.judges) for request, answer in (item.place for item in items))
        most = sum(
            request.most_calls(is_written=answer is not None) for request, answer in (item.place for item in items)
        )
        own = most
        note = (
            "at most all rounds of each answer that is written, and one repair of each call; the length of the answers is not known: "
            "max_tokens and max_cost limit the tokens and the cost of all calls"
        )
    if not asked:
        most, own, note = 0, 0, "no model is called"
    known = price_of(price, spec)
    return CandidateEstimate(
        planned.name, planned.target.name, spec, repeat * asked, None if most is None else repeat * most, None if asked else (0, 0),
        None if asked else (0, 0), prices=() if known is None else ((spec, known),),
        loop_calls_at_most=None if own is None else repeat * own, note=note,
    )  # fmt: skip


def _of_questions(options: Mapping[str, Any], questions: int) -> tuple[int | None, int | None, str]:
    """Return the maximum number of calls that write plans, the maximum number of all calls, and a note.

    Raises ``RequestError`` for an invalid option.
    """
    from ..limits import check_limits

    given = {name: options[name] for name in ("max_steps", "max_repairs") if options.get(name) is not None}
    limit = options.get("max_calls")
    check_limits({"max_calls": limit})
    own = None if options.get("search") is not None else _limited(LoopBounds(**given).most_calls, limit)
    most = None if limit is None else questions * limit
    if most is None:
        note = (
            "commands of a plan may make any number of calls; the option max_calls of the candidate limits the calls of a question, "
            "and max_calls and max_cost of the evaluation limit all calls"
        )
    else:
        note = f"at most {limit:,} calls for each question (max_calls)"
    return None if own is None else questions * own, most, note
