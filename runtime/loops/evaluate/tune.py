"""Tunes a seed: tries descriptions and examples on labelled items, and tests the best variant once. See ``docs/reference/tune.md``.

Tuning has four steps. The seed answers the training items. A model writes descriptions from the wrong answers, and sets of
examples are chosen. Trials on the dev items compare the variants in rounds: the better half of them goes on to twice as many
items (successive halving). One paired test compares the best variant with the original. All decisions depend only on the
answers and on ``random_state``, so a resumed run makes the same decisions without new calls.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Literal

import numpy as np
from attrs import define, evolve, field

from ....adapters.llm.budget import Ledger, Price
from ....lang.trees.seed import FormulaSeed
from ...events import Events
from ...models.caller import HOPELESS, Caller, Request
from ...results import StepFailed, Trace
from ...seeds.cost_estimate import estimate
from ...seeds.reviews import Context
from .call_record import CallFigures, EvaluationRecorder, RecordedCalls
from .comparison import Comparison, compare
from .field_scores import LOWER_IS_BETTER, METRICS, Answer, FieldScores, score_field
from .gold import Gold, GoldItem
from .intervals import Score, interval
from .metrics import mean_of
from .seed_target import SeedTarget
from .splits import Split
from .targets import AskSettings
from .tune_results import Reserve, Status, Trial, Tuned, TuneSettings
from .tune_store import TrialLog
from .variants import (
    EXAMPLE_SIZES,
    LONGEST_EXAMPLE,
    Description,
    LabelledText,
    example_set,
    labelled_text,
    read_descriptions,
    variant,
    writer_prompt,
    writer_schema,
)

SMALLEST_ROUND = 15
"""Minimum number of dev items in the first round of the trials."""


class Stopped(Exception):
    """Raised if no more calls can be made. ``reason`` says why; ``kind`` is budget, cancelled or model."""

    def __init__(self, kind: Literal["budget", "cancelled", "model"], reason: str) -> None:
        super().__init__(reason)
        self.kind, self.reason = kind, reason


@define
class Tuner:
    """A tuning in progress.

    ``client`` is the model of the seed, ``writer`` is the model that writes descriptions (None: none are written). ``ledger``
    has the limits of the run. ``recorder`` saves the calls, and ``log`` saves the trials. ``told`` is called with sentences
    about the progress.
    """

    seed: FormulaSeed
    contexts: Sequence[Context]
    gold: Gold
    split: Split
    settings: TuneSettings
    client: Any
    writer: Any
    ledger: Ledger
    spec: str = ""
    reserve: Reserve = field(factory=Reserve)
    recorder: EvaluationRecorder | None = None
    log: TrialLog = field(factory=TrialLog)
    events: Events | None = None
    cancel: asyncio.Event | None = None
    told: Callable[[str], None] = lambda text: None
    figures: CallFigures = field(factory=CallFigures, init=False)
    notes: list[str] = field(factory=list, init=False)
    trials: list[Trial] = field(factory=list, init=False)
    written: list[Description] = field(factory=list, init=False)
    _answers: dict[tuple[int, int], dict[str, Answer]] = field(factory=dict, init=False)
    """Maps each pair of a trial and an item to a mapping from fields to answers."""
    _calls: Any = field(default=None, init=False)
    _limits: tuple[int | None, int | None, float | None] = field(default=(None, None, None), init=False)
    """The limits of the whole run."""
    _target: SeedTarget = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._target = SeedTarget(self.seed, self.contexts)

    async def run(self) -> Tuned:
        """Tune the seed.

        The limits of the trials are lowered by the reserve for the test, so that the test can always be made.
        """
        began = perf_counter()
        self._calls = RecordedCalls(self.client, self.recorder, self.figures, "model", samples=self._target.samples)
        limits = self._limits = self.ledger.max_calls, self.ledger.max_tokens, self.ledger.max_cost
        reason = ""
        self.log.write("split", **self.split.as_json())
        try:
            original = Trial(0, 0, None, self.seed)
            self.trials.append(original)
            self._keep()
            try:
                await self._trials(original)
            except Stopped as stop:
                if stop.kind != "budget" or not any(trial.scores for trial in self.trials[1:]):
                    raise
                reason = f"the trials ended early, because the test is reserved: {stop.reason}"
            self.ledger.max_calls, self.ledger.max_tokens, self.ledger.max_cost = limits
            best = self._best()
            tuned = await self._test(original, best)
        except Stopped as stop:
            status: Status = (
                "cancelled" if stop.kind == "cancelled" else "partial" if stop.kind == "budget" else "failed"
            )
            tuned = Tuned(status, reason=stop.reason)
        finally:
            self.ledger.max_calls, self.ledger.max_tokens, self.ledger.max_cost = limits
            self.figures.seconds = round(perf_counter() - began, 3)
        return evolve(
            tuned, trials=tuple(self.trials), descriptions=tuple(self.written), metric=self.settings.metric or "share right",
            split=self.split.as_json(), figures=self.figures, notes=(*self.notes, *tuned.notes), reason=tuned.reason or reason,
        )  # fmt: skip

    def _keep(self) -> None:
        """Lower the limits by the amounts that are reserved for the test."""
        calls, tokens, cost = self._limits
        self.ledger.max_calls = None if calls is None else max(0, calls - self.reserve.calls)
        self.ledger.max_tokens = None if tokens is None else max(0, tokens - self.reserve.tokens)
        self.ledger.max_cost = None if cost is None else max(0.0, cost - self.reserve.cost)

    # Answers and scores.

    async def _ask(self, trial: Trial, items: Sequence[GoldItem]) -> None:
        """Let the model answer the items that it has not yet answered with this variant. Raises ``Stopped``."""
        fields = dict.fromkeys(each.name for each in self.seed.fields)
        missing = [evolve(item, labels=fields) for item in items if (trial.number, item.number) not in self._answers]
        if not missing:
            return
        found: dict[int, dict[str, Answer]] = {}
        settings = AskSettings(
            self.spec,
            {},
            self.settings.max_concurrency,
            self.settings.strict_types,
            self.settings.options,
            self.events,
            self.cancel,
        )
        target = evolve(self._target, seed=trial.seed)
        await target.answer(
            missing,
            self._calls,
            settings,
            lambda number, column, answer: found.setdefault(number, {}).update({column: answer}),
        )
        if self.cancel is not None and self.cancel.is_set():
            raise Stopped("cancelled", "the run was cancelled")
        unanswered = [each for answers in found.values() for each in answers.values() if each.status == "unanswered"]
        for number, answers in found.items():
            if not any(each.status == "unanswered" for each in answers.values()):
                self._answers[trial.number, number] = answers
        if unanswered or len(found) < len(missing):
            reason = next((each.error for each in unanswered if each.error), "the budget is used up")
            raise Stopped("budget", reason.removeprefix("budget: "))

    def _failure(self, trial: Trial, items: Sequence[GoldItem]) -> str:
        """If every answer failed, return the reason of the first failure; otherwise return ""."""
        answers = [each for item in items for each in self._answers[trial.number, item.number].values()]
        return answers[0].error if answers and all(each.status == "failed" for each in answers) else ""

    def _scores(self, trial: Trial, items: Sequence[GoldItem], column: str, resamples: int = 1) -> FieldScores | None:
        """Return the scores of a variant for a field; None if no item is labelled."""
        labelled = [item for item in items if column in item.labels]
        if not labelled:
            return None
        return score_field(
            self.gold.columns[column], [item.labels[column] for item in labelled],
            [self._answers[trial.number, item.number][column] for item in labelled], [item.group for item in labelled],
            tolerance=self.settings.tolerance, resamples=resamples,
        )  # fmt: skip

    def _score(self, trial: Trial, items: Sequence[GoldItem]) -> float | None:
        """Return the score of a variant: the metric of the tuned field, or else the share of right values. Higher is better."""
        scores = [
            found for column in self.settings.columns if (found := self._scores(trial, items, column)) is not None
        ]
        if not scores:
            return None
        if not self.settings.metric:
            right = [ok for each in scores for ok in each.right]
            return sum(right) / len(right)
        value = scores[0].metrics[self.settings.metric].value
        return None if value is None else -value if self.settings.metric in LOWER_IS_BETTER else value

    # The steps.

    async def _trials(self, original: Trial) -> None:
        """Answer the training items, create the variants, and try the variants. Raises ``Stopped``."""
        self.told(f"train: the original seed reads {len(self.split.train)} items")
        ledger = self.ledger
        before = ledger.calls, ledger.usage.total, ledger.cost
        await self._ask(original, self.split.train)
        if calls := ledger.calls - before[0]:  # none if an earlier process has made them
            self.reserve = self.reserve.measured(
                (ledger.usage.total - before[1]) / calls, (ledger.cost - before[2]) / calls
            )
            self._keep()
        if reason := self._failure(original, self.split.train):
            raise Stopped("model", reason)
        texts = [found for item in self.split.train if (found := self._labelled(original, item)) is not None]
        if dropped := len(self.split.train) - len(texts):
            self.notes.append(f"the filter of the seed drops {dropped} of {len(self.split.train)} training items")
        wrong = [each for each in texts if not each.is_right]
        self.told(f"train: {len(wrong)} of {len(texts)} items are wrong")
        await self._write_descriptions(wrong)
        self._plan(texts)
        await self._halve(original)

    def _labelled(self, original: Trial, item: GoldItem) -> LabelledText | None:
        """Return a training item with the original's answer; None if the item has no answer because the filter drops it."""
        answers = self._answers[original.number, item.number]
        if any(each.status == "filtered" for each in answers.values()):
            return None
        right = [
            found.right[0]
            for column in self.settings.columns
            if (found := self._scores(original, [item], column)) is not None
        ]
        valid = {name: each.value for name, each in answers.items() if each.status == "answered"}
        return labelled_text(self.seed, item, self._target.text(item), self.settings.columns, valid, all(right))

    async def _write_descriptions(self, wrong: Sequence[LabelledText]) -> None:
        """Let the writer write descriptions from wrong answers. If an answer of the writer can't be used, a note says why."""
        if self.writer is None or not self.settings.descriptions:
            return
        if not wrong or self.seed.prompt is not None:
            why = "no training item is wrong" if not wrong else "the seed has its own prompt, which does not show them"
            self.notes.append(f"no descriptions were written: {why}")
            return
        columns, schema = self.settings.columns, writer_schema(self.seed, self.settings.columns)
        caller = Caller(RecordedCalls(self.writer, self.recorder, self.figures, "writer"), {}, self.events, Trace(), 1)
        for number in range(self.settings.descriptions):
            if self.cancel is not None and self.cancel.is_set():
                raise Stopped("cancelled", "the run was cancelled")
            prompt = writer_prompt(self.seed, columns, wrong, self.written, self.settings.random_state)
            options: dict[str, Any] = {"schema": schema, "sample": number, "max_tokens": 4_096}
            try:
                outcome = await caller.ask("descriptions", Request(prompt, "json", options=options))
                made = read_descriptions(outcome.value, self.seed, columns, self.written)
            except StepFailed as error:
                if error.failed.kind in HOPELESS:
                    self.notes.append(f"no more descriptions were written: {error.failed.message}")
                    return
                made = error.failed.message
            if isinstance(made, Description):
                self.written.append(made)
                self.log.write("description", description=made.number, fields=made.as_json())
            else:
                self.notes.append(f"a set of descriptions can't be used: {made}")
                self.log.write("description", description=None, fields=None, reason=made)
        self.told(f"descriptions: {len(self.written)} written")

    def _plan(self, texts: Sequence[LabelledText]) -> None:
        """Create the trials.

        Every set of descriptions gets one trial before any set gets a second one; the numbers of examples alternate.
        """
        sets = {}
        for size in EXAMPLE_SIZES:
            chosen = example_set(texts, self.settings.columns, size, self.settings.random_state)
            sets[len(chosen)] = chosen
        for size, chosen in sets.items():
            self.log.write("example_set", size=size, items=[dict(each.item.keys) for each in chosen])
        if max(sets) < max(EXAMPLE_SIZES):
            self.notes.append(f"only {max(sets)} training items can be examples")
        sizes, every = list(sets), [Description(0, {}), *self.written]
        for shift in range(len(sizes)):
            for description in every:
                size = sizes[(description.number + shift) % len(sizes)]
                if (description.number, size) == (0, 0) and not self.seed.examples:
                    continue  # this is the original
                if len(self.trials) >= self.settings.trials:
                    self.notes.append(
                        f"{len(sizes) * len(every)} variants are possible, {len(self.trials)} were tried: --trials"
                    )
                    return
                try:
                    made = variant(self.seed, description, sets[size])
                except ValueError as error:
                    self.notes.append(f"descriptions {description.number} with {size} examples can't be used: {error}")
                    continue
                self.trials.append(Trial(len(self.trials), description.number, size, made))

    async def _halve(self, original: Trial) -> None:
        """Try all variants on a part of the dev items, the better half of the variants on twice as many items, and so on.

        The original takes part in every round.
        """
        order = dev_order(self.split.dev, self.settings.random_state)
        left = self.trials[1:]
        if not left:
            return
        rounds = rounds_of(len(left), len(order))
        for number, size in enumerate(rounds):
            items = order[:size]
            self.told(f"dev, round {number + 1} of {len(rounds)}: {len(left) + 1} trials on {size} items")
            for trial in (original, *left):
                await self._ask(trial, items)
                trial.scores.append(self._score(trial, items))
                trial.items = size
            ranked = sorted(left, key=_rank, reverse=True)
            kept = ranked if number + 1 == len(rounds) else ranked[: math.ceil(len(ranked) / 2)]
            for trial in (original, *left):
                trial.is_left = trial is original or trial in kept
                self.log.write("trial", **trial.as_json(), round=number + 1, kept=trial.is_left)
            left = kept

    def _best(self) -> Trial:
        """Return the trial that is furthest ahead of the original on the same dev items; the original if none is ahead.

        Only trials that no round has eliminated count. If the limits ended a round, some of these trials have answered fewer
        items than others.
        """
        original = self.trials[0]

        def gain(trial: Trial) -> float:
            mine, other = trial.scores[-1], original.scores[len(trial.scores) - 1]
            return -math.inf if mine is None else math.inf if other is None else mine - other

        left = [trial for trial in self.trials[1:] if trial.is_left and trial.scores]
        best = max(left, key=lambda trial: (gain(trial), *_rank(trial)[1:]), default=original)
        return best if best is not original and gain(best) > 0 else original

    async def _test(self, original: Trial, best: Trial) -> Tuned:
        """Let the original and the best variant answer the test items once, and compare the answers. Raises ``Stopped``."""
        if best is original:
            self.told("no trial is better than the original on the dev items: there is nothing to test")
            self.log.write("test", trial=0, comparison=None, original=None, tuned=None)
            return Tuned(
                "complete",
                self.seed,
                notes=("no trial is better than the original on the dev items, so no test was made",),
            )
        items = self.split.test
        self.told(f"test: trial {best.number} and the original on {len(items)} items")
        for trial in (original, best):
            await self._ask(trial, items)
        comparison, first, second = self._compared(original, best, items)
        self.log.write(
            "test", trial=best.number, comparison=comparison.as_json(), original=first.as_json(), tuned=second.as_json()
        )
        return Tuned("complete", best.seed, best.number, original=first, tuned=second, comparison=comparison)

    def _compared(self, original: Trial, best: Trial, items: Sequence[GoldItem]) -> tuple[Comparison, Score, Score]:
        metric = self.settings.metric
        pairs = [
            (one, two, [item.group for item in items if column in item.labels])
            for column in self.settings.columns
            if (one := self._scores(original, items, column, 2_000)) is not None
            and (two := self._scores(best, items, column, 2_000)) is not None
        ]
        groups = [group for _, _, each in pairs for group in each]
        before = [ok for scores, _, _ in pairs for ok in scores.right]
        after = [ok for _, scores, _ in pairs for ok in scores.right]
        if not metric:
            original_score, best_score = (interval(mean_of(right), groups, right=right) for right in (before, after))
            return compare(after, before, groups), original_score, best_score
        one, two, _ = pairs[0]
        if is_share(metric):
            found = compare(after, before, groups)
        else:
            found = compare(
                after, before, groups, metric_a=two.functions[metric], metric_b=one.functions[metric],
                higher_is_better=metric not in LOWER_IS_BETTER,
            )  # fmt: skip
        return found, one.metrics[metric], two.metrics[metric]


def is_share(metric: str) -> bool:
    """Return whether a metric is the share of right values, so that McNemar's test applies."""
    return metric in ("accuracy", "within", "equal")


_NOT_TUNED = frozenset({"answered_accuracy", "spearman"})
"""Metrics that a seed is not tuned for: the first would reward a seed that does not answer, the second has no test."""


def metrics_of(gold: Gold, column: str) -> list[str]:
    """Return the metrics that a field can be tuned for, the default one first."""
    return [name for name in METRICS[gold.columns[column].kind] if name not in _NOT_TUNED]


def _rank(trial: Trial) -> tuple[float, int, int]:
    """Return the sort key of a trial: the higher score is better, then fewer examples, then the earlier set of descriptions."""
    score = trial.scores[-1] if trial.scores else None
    return (-math.inf if score is None else score, -(trial.examples or 0), -trial.description)


def dev_order(items: Sequence[GoldItem], random_state: int) -> list[GoldItem]:
    """Return the dev items with their groups in a random order, so that a prefix of the items divides at most one group."""
    groups = list(dict.fromkeys(item.group for item in items))
    order = np.random.default_rng((random_state, 4)).permutation(len(groups)).tolist()
    place = {groups[number]: rank for rank, number in enumerate(order)}
    return sorted(items, key=lambda item: place[item.group])


def rounds_of(trials: int, items: int) -> list[int]:
    """Return the number of dev items in each round: all in the last round, half as many in each earlier round.

    The first of several rounds has at least 15 items (``SMALLEST_ROUND``).
    """
    count = 1
    while 2**count < trials and items // 2**count >= SMALLEST_ROUND:
        count += 1
    return [items // 2 ** (count - 1 - number) for number in range(count)]


def reserve_for_test(
    seed: FormulaSeed, contexts: Sequence[Context], split: Split, spec: str, price: Price | None
) -> Reserve:
    """Return what the test may need: calls of the original and of a seed with the longest possible examples on the test items.

    Each call is counted one and a half times, for repairs and longer answers. The upper bound of the largest call is added,
    because a call is made only if its upper bound fits into the limits.
    """
    texts = SeedTarget(seed, contexts)
    wanted: dict[int, set[int]] = {}
    for item in split.test:
        wanted.setdefault(item.place[0], set()).add(item.place[1] or 0)
    asked = [
        evolve(
            context, reviews=tuple(review for number, review in enumerate(context.reviews) if number in wanted[place])
        )
        for place, context in enumerate(contexts)
        if place in wanted
    ]
    made = estimate(evolve(seed, steps=(), outputs=()), asked, model=spec, price=price)
    longest = sorted((min(len(texts.text(item)), LONGEST_EXAMPLE) for item in split.train), reverse=True)[
        : max(EXAMPLE_SIZES)
    ]
    more = sum(longest) + 200 * len(longest)  # characters of the examples in one prompt
    largest = max(len(texts.text(item).encode("utf-8", "replace")) for item in split.test)
    bound = largest + 4 * more + 4_096  # a budget counts a token for each byte of a prompt
    prompt = 1.5 * (2 * made.prompt_tokens + made.calls * more / 3) + bound
    completion = 1.5 * 2 * made.completion_tokens + 1_024
    cost = 0.0 if price is None else (prompt * price.prompt + completion * price.completion) / 1e6
    calls = max(1, made.calls)
    return Reserve(
        math.ceil(1.5 * 2 * made.calls_at_most), math.ceil(prompt + completion), cost,
        (made.prompt_tokens + made.completion_tokens) / calls, (made.cost or 0.0) / calls,
    )  # fmt: skip
