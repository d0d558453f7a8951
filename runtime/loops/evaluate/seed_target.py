"""The target of an evaluation that is a Formula Seed: fields of reviews, and outputs of contexts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field

from ....lang.trees.seed import Extracted, FormulaSeed, Keep
from ....lang.unicode_forms import canonical, caseless
from ...events import CallFinished, Event, Events
from ...limits import call_options
from ...models.chunk_queue import Workers
from ...results import NOT_ASKED
from ...seeds.readers import Model, Panel
from ...seeds.reviews import Context, Review, ReviewFilter
from ...seeds.seed_results import Extraction, SeedResult, is_unasked
from ...seeds.seed_run import run_many
from .field_scores import Answer
from .gold import Binding, Expected, Gold, GoldItem, shown_key, unknown
from .targets import AskSettings, OnAnswer

KEYS = ("context", "id", "review")
_KINDS = {"enum": "label", "bool": "flag", "int": "number", "float": "number", "text": "text", "list": "set"}

Place = tuple[int, int | None]
"""The position of a context among the contexts, and the position of a review in the context (None: the context itself)."""


@define
class SeedTarget:
    """A seed and the contexts that the gold items come from.

    With ``use_filter``, the filter of the seed is used. To score the results of a finished run without its data, the contexts
    can be made from these results (``finished_results.contexts_of``).
    """

    seed: FormulaSeed
    contexts: Sequence[Context]
    name: str = ""
    source: str = ""
    use_filter: bool = True
    kind: str = "seed"
    _by_name: dict[str, list[int]] = field(factory=dict, init=False)
    _by_id: dict[str, list[Place]] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        for place, context in enumerate(self.contexts):
            self._by_name.setdefault(canonical(context.name), []).append(place)
            for number, review in enumerate(context.reviews):
                if review.id is not None:
                    self._by_id.setdefault(canonical(str(review.id)), []).append((place, number))

    @property
    def samples(self) -> int:
        """The maximum number of samples that the seed requests of one prompt."""
        return 3 if self.seed.passes == 2 else 1

    def expected(self, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Expected]:
        """Return the fields and outputs of the seed. The kind of an output follows from its labels."""
        found = {each.name: of_field(each) for each in self.seed.fields}
        for name in self.seed.outputs:
            if name in columns and name not in found:
                found[name] = inferred(name, [row.get(name) for row in rows])
            else:
                found.setdefault(name, Expected(name, "text"))
        return found

    def keys(self, columns: Sequence[str]) -> Sequence[str]:
        """Return the key columns: context, id, review."""
        return KEYS

    def bind(self, keys: Mapping[str, Any]) -> Binding:
        """Return the place of a context or a review."""
        if "context" in keys:
            name = str(keys["context"])
            found = self._by_name.get(canonical(name))
            if found is None:
                return Binding(fault=unknown("context", name, self._by_name))
            if len(found) > 1 and "id" not in keys:
                return Binding(fault=f"{len(found)} contexts have the name {name}; add a column id")
            places = found
        elif "id" in keys:
            reviews = self._by_id.get(canonical(str(keys["id"])), [])
            if not reviews:
                return Binding(fault=unknown("review id", keys["id"], self._by_id))
            if len(reviews) > 1:
                return Binding(fault=f"{len(reviews)} reviews have the id {keys['id']}; add a column context")
            return self._bound(reviews[0])
        else:
            return Binding(fault="the context and the id are both empty")
        if "id" in keys:
            return self._with_id(places, keys["id"], str(keys["context"]))
        if "review" in keys:
            return self._with_number(places[0], keys["review"])
        return self._bound((places[0], None))

    def _with_id(self, places: Sequence[int], own: Any, name: str) -> Binding:
        reviews = [each for each in self._by_id.get(canonical(str(own)), []) if each[0] in places]
        if len(reviews) == 1:
            return self._bound(reviews[0])
        if reviews:
            return Binding(fault=f"{len(reviews)} reviews of {name} have the id {own}")
        ids = [review.id for place in places for review in self.contexts[place].reviews if review.id is not None]
        if not ids:
            return Binding(
                fault=f"the reviews of {name} have no ids; use a column review, the number of the review from 0"
            )
        return Binding(fault=f"{name}: {unknown('review id', own, ids)}")

    def _with_number(self, place: int, number: Any) -> Binding:
        count = len(self.contexts[place].reviews)
        try:
            index = int(number)
        except (TypeError, ValueError):
            return Binding(fault=f"review {number!r:.40} is not a number")
        if isinstance(number, float) and number != index:
            return Binding(fault=f"review {number!r:.40} is not a whole number")
        if not 0 <= index < count:
            return Binding(
                fault=f"review {index} does not exist; {self.contexts[place].name} has the reviews 0 to {count - 1}"
            )
        return self._bound((place, index))

    def _bound(self, place: Place) -> Binding:
        context = self.contexts[place[0]]
        return Binding(place, context.name or f"context {context.index}")

    def faults(self, gold: Gold) -> list[str]:
        """Return the faults of items whose key does not suit their labels.

        For a field, the key must name a review; for an output, it must name only a context.
        """
        fields = self.seed.field_by_name
        found = []
        for item in gold.items:
            place, review = item.place
            count = len(self.contexts[place].reviews)
            if count == 1:
                continue
            for column in item.labels:
                if column in fields and review is None:
                    where = f"{shown_key(item.keys)} has {count} reviews"
                    found.append(f"row {item.row:,}: {column} is a field of a review, and {where}; add a column id")
                elif column not in fields and review is not None:
                    found.append(
                        f"row {item.row:,}: {column} is an output of a context; leave id and review empty in this row"
                    )
        return found

    def text(self, item: GoldItem) -> str:
        """Return the text of the review; for a context with several reviews, a sentence that states their number."""
        place, review = item.place
        reviews = self.contexts[place].reviews
        if review is None:
            return reviews[0].text if len(reviews) == 1 else f"{len(reviews):,} reviews of {self.contexts[place].name}"
        return str(reviews[review].text)

    async def answer(self, items: Sequence[GoldItem], client: Any, settings: AskSettings, on_answer: OnAnswer) -> None:
        """Run the seed for the labelled reviews only; for a context with labelled outputs, run it for all reviews."""
        seed = self._filtered()
        reading = _Reading(seed, self.contexts, _by_context(items), on_answer, ReviewFilter.of(seed))
        for number, (run, contexts, places) in enumerate(self.runs(items)):
            if settings.cancel is None or not settings.cancel.is_set():
                await reading.run(run, contexts, places, client, settings, settings.workers(number))

    def runs(self, items: Sequence[GoldItem]) -> list[tuple[FormulaSeed, list[Context], list[int]]]:
        """Return the runs that answer the items: for each, a seed, its contexts, and their positions among all contexts."""
        seed, by_context = self._filtered(), _by_context(items)
        fields = seed.field_by_name
        whole = sorted(
            place
            for place, each in by_context.items()
            if any(name not in fields for item in each for name in item.labels)
        )
        rest = sorted(set(by_context) - set(whole))
        only_fields = evolve(seed, steps=(), outputs=(), resolve=())
        reduced = [_with_labelled_reviews(self.contexts[place], by_context[place]) for place in rest]
        runs = [(seed, [self.contexts[place] for place in whole], whole), (only_fields, reduced, rest)]
        return [run for run in runs if run[1]]

    def _filtered(self) -> FormulaSeed:
        """Return the seed, without its filter if the filter is not used."""
        return self.seed if self.use_filter else evolve(self.seed, keep=Keep())


def _by_context(items: Sequence[GoldItem]) -> dict[int, list[GoldItem]]:
    """Return a mapping from the position of each context to its items."""
    found: dict[int, list[GoldItem]] = {}
    for item in items:
        found.setdefault(item.place[0], []).append(item)
    return found


def _with_labelled_reviews(context: Context, items: Sequence[GoldItem]) -> Context:
    """Return the context with its labelled reviews only. Reviews keep their indices."""
    wanted = {0 if item.place[1] is None else item.place[1] for item in items}
    return evolve(context, reviews=tuple(review for number, review in enumerate(context.reviews) if number in wanted))


@define
class _Reading:
    """A run of the seed for gold items: reports the answer for each item as soon as its context is finished."""

    seed: FormulaSeed
    contexts: Sequence[Context]
    items: Mapping[int, Sequence[GoldItem]]
    on_answer: OnAnswer
    keeper: ReviewFilter
    _seconds: dict[tuple[int, int], float] = field(factory=dict, init=False)
    _cost: dict[tuple[int, int], float] = field(factory=dict, init=False)

    async def run(
        self, seed: FormulaSeed, contexts: Sequence[Context], places: Sequence[int], client: Any, settings: AskSettings,
        workers: Workers | None,
    ) -> None:  # fmt: skip
        """Run ``seed`` for ``contexts``, which are at ``places`` among all contexts; ``workers`` extract the reviews."""
        numbered = [evolve(context, index=number) for number, context in enumerate(contexts)]
        events = Events()

        def count(event: Event) -> None:
            if isinstance(event, CallFinished) and event.item is not None:
                key = (places[int(event.step.split(" ", 1)[0])], event.item)
                self._seconds[key] = self._seconds.get(key, 0.0) + event.seconds
                if event.cost is not None:
                    self._cost[key] = self._cost.get(key, 0.0) + event.cost
            if settings.events is not None:
                settings.events.emit(event)

        def take(result: SeedResult) -> None:
            self._take(places[result.index], result)

        events.subscribe(count)
        options = dict(settings.options)
        more = {name: options.pop(name) for name in SETTINGS if name in options}
        panel: Panel | None = options.pop("panel", None)
        if panel is not None:
            more["panel"] = recorded_panel(panel, settings.record)
        await run_many(
            seed, numbered, client, on_result=take, model=settings.spec, max_concurrency=settings.max_concurrency, events=events,
            ordered=False, cancel=settings.cancel, strict_types=settings.strict_types, options=call_options(options), workers=workers,
            **more,
        )  # fmt: skip

    def _take(self, place: int, result: SeedResult) -> None:
        extractions = {found.review: found for found in result.extractions}
        for item in self.items[place]:
            for column in item.labels:
                if column in self.seed.field_by_name:
                    number = 0 if item.place[1] is None else item.place[1]
                    answer = field_answer(column, self.contexts[place].reviews[number], extractions, self.keeper)
                    answer.seconds = self._seconds.get((place, number), 0.0)
                    answer.cost = self._cost.get((place, number))
                else:
                    answer = output_answer(column, result)
                self.on_answer(item.number, column, answer)


def recorded_panel(panel: Panel, record: Callable[[Any, str], Any]) -> Panel:
    """Return the panel with clients whose calls are recorded by ``record``."""

    def recorded(model: Model, place: str) -> Model:
        return evolve(model, client=record(model.client, f"{place} {model.name}"))

    voters = tuple(recorded(model, f"vote {number}") for number, model in enumerate(panel.vote))
    return evolve(panel, vote=voters, escalate=None if panel.escalate is None else recorded(panel.escalate, "escalate"))


SETTINGS = ("ask", "allow_invalid")
"""Options of a candidate that are not options of its calls."""


def field_answer(
    column: str, review: Review, extractions: Mapping[int, Extraction], keeper: ReviewFilter | None
) -> Answer:
    """Return the answer for a field of ``review``.

    A review without an extraction is unanswered if ``keeper`` keeps it; otherwise it counts as dropped by the filter.
    """
    found = extractions.get(review.index)
    if found is None:
        is_kept = keeper is not None and (bool(review.fault) or keeper.keeps(review.text))
        return Answer(status="unanswered" if is_kept else "filtered")
    return extraction_answer(column, found)


def extraction_answer(column: str, found: Extraction) -> Answer:
    """Return the answer for a field of an extraction."""
    if found.failed:
        return Answer(None, "unanswered" if is_unasked(found.failed) else "failed", found.failed)
    confidence = (getattr(found, "confidence", None) or {}).get(column)
    if column in found.invalid:
        return Answer(None, "invalid", found.invalid[column], confidence)
    return Answer(found.extraction.get(column), "answered", "", confidence)


def output_answer(column: str, result: SeedResult) -> Answer:
    """Return the answer for an output. The outputs of a partial result count as answered, too."""
    if column in result.outputs:
        return Answer(result.outputs[column])
    errors = [error for error in result.errors if error.step in ("", column)] or list(result.errors)
    reason = errors[0].message if errors else "the output has no value"
    unasked = any("budget:" in error.message or NOT_ASKED in error.message for error in errors)
    return Answer(None, "unanswered" if unasked else "failed", reason)


def of_field(wanted: Extracted) -> Expected:
    """Return how a field of a seed is scored."""
    kind: Any = _KINDS[wanted.type]
    ordered = bool(getattr(wanted, "ordered", False))
    return Expected(wanted.name, kind, tuple(wanted.values), ordered, wanted.type == "int")


MOST_LABELS = 20
"""A column of texts is scored as labels if it has at most this many different values, and a value occurs twice on average.

Values that differ only in letter case are one label, in the form that occurs first.
"""


def inferred(name: str, values: Sequence[Any]) -> Expected:
    """Infer from its values how a column without a declared type is scored: as numbers, truth values, sets, labels or texts."""
    given = [value for value in values if value is not None and not (isinstance(value, str) and not value.strip())]
    if given and all(isinstance(value, bool) or str(value).strip().lower() in ("true", "false") for value in given):
        return Expected(name, "flag")
    if given and all(_is_number(value) for value in given):
        return Expected(name, "number")
    if any(isinstance(value, list) or str(value).lstrip().startswith("[") for value in given):
        return Expected(name, "set")
    texts = {caseless(text): text for value in reversed(given) if (text := str(value).strip())}
    if texts and len(texts) <= MOST_LABELS and 2 * len(texts) <= len(given):
        return Expected(name, "label", tuple(sorted(texts.values())))
    return Expected(name, "text")


def _is_number(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        return True
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
