"""Several readings of each review: a vote of several models, or a cascade in which a stronger model decides open fields.

A field is open if the readings do not determine its value. Each reading is a separate extraction: it is cached under its model,
saved in the run's record, and counted in the budget. See ``docs/design/seed.md#several-models``.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from attrs import define, evolve, field, frozen
from blake3 import blake3

from ...adapters.llm import Usage
from ...lang.trees.seed import Extracted, FormulaSeed
from ..models.caller import Asker, Spent
from ..results import NO_USAGE, Failed, Outcome, Record
from .extraction import Extractor, ReviewExtraction, extraction_of, rare_fields, stored_extraction
from .extraction_prompts import is_same_value
from .reviews import Review
from .seed_results import Extraction

Trigger = Literal["differ", "invalid", "failed"]
TRIGGERS: tuple[Trigger, ...] = ("differ", "invalid", "failed")
MOST_VOTERS = 9


@frozen
class Model:
    """A model that reads reviews.

    ``name`` is its name in the votes, ``identity`` is its spec in the extraction cache ("": none).
    """

    name: str
    client: Any
    identity: str = ""


@frozen
class Panel:
    """The models that read each review: ``vote`` (empty: the run's model), and ``escalate``, which decides open fields.

    ``when`` says which open fields ``escalate`` decides: those on which the readings differ ("differ"), those with an invalid
    value ("invalid"), and those for which a reading failed ("failed").
    """

    vote: tuple[Model, ...] = ()
    escalate: Model | None = None
    when: frozenset[Trigger] = frozenset(TRIGGERS)


@frozen
class Verdict:
    """The result of several readings: the values, the open fields with reasons, and the number of readings with each value."""

    values: Mapping[str, Any] = field(factory=dict)
    open: Mapping[str, Trigger] = field(factory=dict)
    agree: Mapping[str, int] = field(factory=dict)


def verdict(fields: Sequence[Extracted], readings: Sequence[Extraction], *, majority: bool) -> Verdict:
    """Return the values on which ``readings`` agree.

    With ``majority``, the most frequent value of the valid readings is the result, and a tie leaves the field open ("differ").
    Otherwise, all readings must be valid and equal.
    """
    values: dict[str, Any] = {}
    left: dict[str, Trigger] = {}
    agree: dict[str, int] = {}
    for each in fields:
        groups: list[list[Any]] = []
        for reading in readings:
            if reading.failed or each.name in reading.invalid:
                continue
            value = reading.extraction.get(each.name)
            same = next((group for group in groups if is_same_value(group[0], value)), None)
            if same is None:
                groups.append([value])
            else:
                same.append(value)
        sizes = sorted((len(group) for group in groups), reverse=True)
        is_clear = bool(sizes) and (len(sizes) == 1 or sizes[0] > sizes[1])
        if is_clear if majority else sizes == [len(readings)]:
            best = max(groups, key=len)
            values[each.name], agree[each.name] = best[0], len(best)
        else:
            left[each.name] = _trigger(each.name, readings, groups, majority)
    return Verdict(values, left, agree)


def _trigger(name: str, readings: Sequence[Extraction], groups: Sequence[Any], majority: bool) -> Trigger:
    if majority and groups:
        return "differ"
    failed = [bool(reading.failed) for reading in readings]
    if all(failed) if majority else any(failed):
        return "failed"
    return "invalid" if majority or any(name in reading.invalid for reading in readings) else "differ"


@define
class PanelExtractor:
    """Extracts the fields of a seed with several readings of each review. It has the interface of ``Extractor``.

    ``main`` is the extractor of the run's model. ``readers`` are the extractors of the readings, and ``settler`` is the
    extractor of the stronger model, each with its name in the votes.
    """

    panel: Panel
    main: Extractor
    readers: tuple[tuple[str, Extractor], ...]
    settler: tuple[str, Extractor] | None
    fallback: Extractor | None
    """With ``passes: 2``: a third reading by the run's model, which decides open fields that the stronger model is not asked
    about."""
    record: Record | None = None

    @classmethod
    def of(cls, main: Extractor, panel: Panel, name: str, record: Record | None = None) -> "PanelExtractor":
        """Return the extractor for ``panel``; ``main`` is the extractor of the run's model, called ``name`` in the votes."""
        seed = evolve(main.seed, passes=1)

        def like(model: Model | None, sample: int | None = None) -> Extractor:
            client, identity = (main.llm, main.model) if model is None else (model.client, model.identity)
            made = Extractor(
                seed, client, identity, main.limit, main.ask, main.given, main.events, strict=main.strict, sample=sample
            )
            made.share(main)
            return made

        if panel.vote:
            readers = tuple((each.name, like(each)) for each in panel.vote)
        elif main.seed.passes == 2:
            readers = tuple((name, like(None, sample)) for sample in (0, 1))
        else:
            readers = ((name, like(None)),)
        settler = None if panel.escalate is None else (panel.escalate.name, like(panel.escalate))
        fallback = like(None, 2) if main.seed.passes == 2 and not panel.vote else None
        return cls(panel, main, readers, settler, fallback, record)

    @property
    def extractors(self) -> tuple[Extractor, ...]:
        """All extractors."""
        more = [] if self.settler is None else [self.settler[1]]
        more += [] if self.fallback is None else [self.fallback]
        return (self.main, *(each for _, each in self.readers), *more)

    @property
    def seed(self) -> FormulaSeed:
        """The seed of the run."""
        return self.main.seed

    @property
    def strict(self) -> bool:
        """Whether answers must match exactly."""
        return self.main.strict

    @property
    def spent(self) -> Spent:
        """The cost of all readings."""
        total = Spent()
        for each in self.extractors:
            total.include(each.spent)
        return total

    @property
    def stopped(self) -> Failed | None:
        """The failure that ended further calls of a model; None if all models are still called."""
        return next((each.stopped for each in self.extractors if each.stopped is not None), None)

    def asker(self, record: Record | None) -> Asker:
        """Return an asker of the run's model for calls about several reviews."""
        return self.main.asker(record)

    def digest(self, review: Review) -> str:
        """Return a hash of everything except the models' answers that can change the extraction from ``review``."""
        named = [*self.readers, *([] if self.settler is None else [self.settler])]
        parts = [f"{name}\0{each.digest(review)}" for name, each in named]
        return blake3("\n".join([*parts, *sorted(self.panel.when)]).encode()).hexdigest(length=16)

    async def extract(self, step: str, review: Review, context: int = 0) -> ReviewExtraction:
        """Return the extraction from one review; ``context`` is the index of its context."""
        fields, spent, unsaved = self.seed.fields, Spent(), Spent()

        async def read(
            name: str,
            by: Extractor,
            wanted: Sequence[Extracted] | None = None,
            earlier: Sequence[Mapping[str, Any]] = (),
        ) -> ReviewExtraction:
            found, saved = await self._read(step, review, context, name, by, wanted, earlier)
            spent.include(found.spent)
            if not saved:
                unsaved.include(found.spent)
            return found

        reads = await asyncio.gather(*(read(name, by) for name, by in self.readers))
        readings = [each.extraction for each in reads]
        decided = verdict(fields, readings, majority=bool(self.panel.vote))
        votes = [_vote(name, each) for (name, _), each in zip(self.readers, readings, strict=True)]
        earlier = [each.extraction for each in readings if not each.failed]
        settled: dict[str, Any] = {}
        invalid: dict[str, str] = {}
        refused: str = ""
        others: list[Extraction] = []
        for (name, by), asked in self._settlers(decided):
            wanted = [each for each in fields if each.name in asked]
            found = (await read(name, by, wanted, earlier if len(earlier) > 1 else ())).extraction
            votes.append({**_vote(name, found), "settles": [each.name for each in wanted]})
            refused = refused or found.failed
            invalid |= found.invalid
            if not found.failed:
                settled |= {each.name: found.extraction[each.name] for each in wanted if each.name not in found.invalid}
            others.append(found)
        made = self._composed(review, readings, others, decided, settled, invalid, refused)
        known = all(each.known for each in reads) and not spent.calls
        return ReviewExtraction(evolve(made, votes=tuple(votes)), spent, self.digest(review), known, unsaved)

    def _settlers(self, decided: Verdict) -> list[tuple[tuple[str, Extractor], frozenset[str]]]:
        """Return the extractors that are to decide open fields, each with the names of its fields."""
        made = []
        strong = frozenset(name for name, why in decided.open.items() if why in self.panel.when)
        if self.settler is not None and strong:
            made.append((self.settler, strong))
        else:
            strong = frozenset()
        rest = frozenset(name for name, why in decided.open.items() if name not in strong and why != "failed")
        if self.fallback is not None and rest:
            made.append(((self.readers[0][0], self.fallback), rest))
        return made

    def _composed(
        self, review: Review, readings: Sequence[Extraction], others: Sequence[Extraction], decided: Verdict,
        settled: Mapping[str, Any], invalid: Mapping[str, str], refused: str,
    ) -> Extraction:  # fmt: skip
        values = {**decided.values, **settled}
        failed = [each.failed for each in readings if each.failed]
        is_lost = len(failed) == len(readings) or (bool(failed) and not self.panel.vote)
        if is_lost and not values:
            return extraction_of(review, failed=refused or failed[0])
        base = next((each for each in (*readings, *others) if not each.failed), extraction_of(review))
        confidence: dict[str, float] = {}
        wrong: dict[str, str] = {}
        for each in self.seed.fields:
            name = each.name
            if name in settled:
                same = sum(
                    not reading.failed and name not in reading.invalid
                    and is_same_value(reading.extraction.get(name), settled[name])
                    for reading in readings
                )  # fmt: skip
                confidence[name] = round((same + 1) / (len(readings) + 1), 4)
            elif name in decided.values:
                confidence[name] = round(decided.agree[name] / len(readings), 4)
            else:
                wrong[name] = invalid.get(name) or _reason(name, decided.open[name], readings)
        coerced = {
            name: reading.coerced[name]
            for reading in (*readings, *others)
            for name, value in values.items()
            if name in reading.coerced and is_same_value(reading.extraction.get(name), value)
        }
        return evolve(
            base, extraction={each.name: values.get(each.name) for each in self.seed.fields}, invalid=wrong, coerced=coerced,
            confidence=confidence, decided={name: parts for name, parts in base.decided.items() if name in values},
        )  # fmt: skip

    async def _read(
        self, step: str, review: Review, context: int, name: str, by: Extractor, wanted: Sequence[Extracted] | None,
        earlier: Sequence[Mapping[str, Any]],
    ) -> tuple[ReviewExtraction, bool]:  # fmt: skip
        """Return a reading, and whether the record has it as a separate entry. A recorded reading is not repeated."""
        digest = f"{review.index}-{by.digest(review, wanted, earlier)}"
        label = f"reading by {name}"
        if self.record is not None and (kept := self.record.recall(label, context, digest)) is not None:
            found = stored_extraction(review, kept.value["extraction"], kept.value["invalid"], kept.value)
            return ReviewExtraction(found, Spent(), digest, known=True), True
        made = await by.extract(step, review, wanted=wanted, earlier=earlier)
        if self.record is None or made.extraction.failed:
            return made, False
        found = made.extraction
        value = {"extraction": dict(found.extraction), "invalid": dict(found.invalid), **rare_fields(found)}
        usage: Usage = made.spent.usage if made.spent.calls else NO_USAGE
        outcome = Outcome("", value, usage, made.spent.cost, made.spent.calls, made.spent.calls, input_hash=digest)
        self.record.item_done(label, context, outcome, 0.0)
        return made, True


def _vote(name: str, found: Extraction) -> dict[str, Any]:
    made: dict[str, Any] = {"by": name}
    if found.failed:
        return {**made, "failed": found.failed}
    made["extraction"] = dict(found.extraction)
    return {**made, "invalid": dict(found.invalid)} if found.invalid else made


def _reason(name: str, why: Trigger, readings: Sequence[Extraction]) -> str:
    """Return the text for a field without a value: what the model wrote, or "no majority", or "no reading"."""
    if why == "invalid":
        return next((each.invalid[name] for each in readings if name in each.invalid), "")
    return "no majority" if why == "differ" else "no reading"
