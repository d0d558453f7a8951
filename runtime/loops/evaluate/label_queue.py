"""Picks the reviews that a person labels: at random, where two runs disagree, or where a run is unsure.

The order depends only on the random state and on names and positions, so a larger sample begins with the smaller one. Only
reviews picked at random show how often a model is right. Reviews picked for another reason are marked; an evaluation leaves
them out if some reviews were picked at random.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from attrs import evolve, field, frozen
from blake3 import blake3

from ....lang.diagnostic import nearest
from ....lang.errors import KnotworkError
from ....lang.trees.seed import FormulaSeed
from ...seeds.reviews import Context, Review, ReviewFilter
from ...seeds.seed_results import Extraction, SeedResult

Pick = Literal["random", "disagree", "unsure"]


class LabelError(KnotworkError, ValueError):
    """Raised if reviews can't be labelled as requested. ``hint`` suggests a fix."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)


@frozen
class LabelItem:
    """A review to label. ``keys`` are ``context``, ``id`` and ``review`` (its number from 0), as strings; "" if the data have no such key.

    ``about`` are further values to show. ``picked`` says why the review was picked. In a stratified sample, ``stratum`` is the
    value by which the review was assigned to its stratum. ``answers`` maps fields to the model's answers, for the display.
    """

    place: tuple[int, int]
    keys: Mapping[str, str]
    text: str
    about: Mapping[str, Any] = field(factory=dict)
    picked: Pick = "random"
    stratum: str = ""
    answers: Mapping[str, Any] = field(factory=dict)


def label_items(seed: FormulaSeed, contexts: Sequence[Context], *, use_filter: bool = True) -> list[LabelItem]:
    """Return the reviews that can be labelled: those with a text.

    With ``use_filter``, reviews that the seed's filter drops are left out.
    """
    keeper = ReviewFilter.of(seed)
    return [
        LabelItem((place, number), _keys(context, review), review.text, _about(review))
        for place, context in enumerate(contexts)
        for number, review in enumerate(context.reviews)
        if not review.fault and review.text.strip() and (not use_filter or keeper.keeps(review.text))
    ]


def _keys(context: Context, review: Review) -> dict[str, str]:
    own = "" if review.id is None else str(review.id)
    return {"context": context.name, "id": own, "review": str(review.index)}


def _about(review: Review) -> dict[str, Any]:
    return {name: value for name in ("stars", "useful", "date") if (value := review.meta.get(name)) is not None}


def pick_random(
    items: Sequence[LabelItem], count: int, random_state: int = 0, stratum_of: Callable[[LabelItem], str] | None = None
) -> list[LabelItem]:
    """Return ``count`` items in a random order.

    With ``stratum_of``, each stratum gets its share of ``count`` (at least one item, if ``count`` is large enough). The
    accuracy on the picked items then still estimates the accuracy on all items.
    """
    ordered = sorted(items, key=lambda item: _rank(item, random_state))
    if stratum_of is None:
        return ordered[:count]
    strata: dict[str, list[LabelItem]] = {}
    for item in ordered:
        name = stratum_of(item)
        strata.setdefault(name, []).append(evolve(item, stratum=name))
    chosen = [
        item
        for name, size in _sizes({name: len(found) for name, found in strata.items()}, count).items()
        for item in strata[name][:size]
    ]
    return sorted(chosen, key=lambda item: _rank(item, random_state))


def _sizes(strata: Mapping[str, int], count: int) -> dict[str, int]:
    """Return the number of items to pick from each stratum: proportional to its size, but at least one if ``count`` allows it.

    The numbers are rounded by the largest-remainder method.
    """
    total = sum(strata.values())
    count = min(count, total)
    by_size = sorted(strata, key=lambda name: (-strata[name], name))
    exact = {name: count * strata[name] / total for name in by_size}
    sizes = {name: min(strata[name], max(1, int(exact[name]))) for name in by_size}
    for name in reversed(by_size):  # more strata than items, or too many small ones: the smallest lose first
        if sum(sizes.values()) > count and len(strata) > count:
            sizes[name] = 0
    while (missing := count - sum(sizes.values())) != 0:
        open_ones = [name for name in by_size if (sizes[name] < strata[name] if missing > 0 else sizes[name] > 1)]
        if not open_ones:
            break
        name = max(open_ones, key=lambda each: (exact[each] - sizes[each]) * (1 if missing > 0 else -1))
        sizes[name] += 1 if missing > 0 else -1
    return sizes


def stratum_reader(
    column: str, contexts: Sequence[Context], answers: Mapping[tuple[int, int], Extraction]
) -> Callable[[LabelItem], str]:
    """Return a function that finds an item's value in ``column``: a value of the review, of its context, or an extracted field.

    Raises ``LabelError`` if none of these has such a value.
    """
    name = column.removeprefix("meta.").removeprefix("context.").removeprefix("extraction.")

    def value(item: LabelItem) -> Any:
        place, number = item.place
        context = contexts[place]
        raw = context.values.get("reviews")
        written = (
            raw[number] if isinstance(raw, list) and number < len(raw) and isinstance(raw[number], Mapping) else {}
        )
        found = answers.get(item.place)
        for values in (
            context.reviews[number].meta,
            written,
            context.values,
            found.extraction if found is not None else {},
        ):
            if values.get(name) is not None:
                return values[name]
        return None

    def text(item: LabelItem) -> str:
        found = value(item)
        return "" if found is None else str(found)

    known = {
        key
        for context in contexts
        for key in (*context.values, *(key for each in context.reviews for key in each.meta))
    }
    known |= {key for context in contexts for each in _written(context) for key in each}
    known |= {key for found in answers.values() for key in found.extraction}
    if name not in known:
        like = nearest(name, sorted(known - {"reviews", "text"}))
        raise LabelError(
            f"unknown column {column!r}{f'; did you mean {like!r}?' if like else ''}", _columns_hint(known)
        )
    return text


def _written(context: Context) -> list[Mapping[str, Any]]:
    raw = context.values.get("reviews")
    return [each for each in raw if isinstance(each, Mapping)] if isinstance(raw, list) else []


def _columns_hint(known: set[str]) -> str:
    return f"the columns are: {', '.join(sorted(known - {'reviews', 'text'})[:30])}"


def pick_disagreements(
    items: Sequence[LabelItem],
    runs: Sequence[Mapping[tuple[int, int], Extraction]],
    fields: Sequence[str],
    count: int,
    random_state: int = 0,
) -> list[LabelItem]:
    """Return, in random order, at most ``count`` items for which the runs have different values in at least one of ``fields``.

    An invalid value, or one of a failed extraction, differs from every valid value. Items that one of the runs lacks are not
    considered.
    """
    found = [
        item
        for item in items
        if all(item.place in run for run in runs) and _differs([run[item.place] for run in runs], fields)
    ]
    return [evolve(item, picked="disagree") for item in pick_random(found, count, random_state)]


def _differs(found: Sequence[Extraction], fields: Sequence[str]) -> bool:
    values = [
        [repr(each.extraction.get(name)) if _is_answered(each, name) else None for name in fields] for each in found
    ]
    return any(one != values[0] for one in values[1:])


def _is_answered(found: Extraction, name: str) -> bool:
    return not found.failed and name not in found.invalid


def pick_unsure(
    items: Sequence[LabelItem],
    run: Mapping[tuple[int, int], Extraction],
    fields: Sequence[str],
    count: int,
    random_state: int = 0,
) -> list[LabelItem]:
    """Return ``count`` items for which the run is least sure: failed and invalid ones, then those with the lowest confidence.

    The confidence of an item is the lowest confidence of its fields. Raises ``LabelError`` if the run has neither confidences
    nor invalid values.
    """
    scored = [(sureness(run[item.place], fields), item) for item in items if item.place in run]
    unsure = [(score, item) for score, item in scored if score < 1.0]
    if not unsure:
        raise LabelError(
            "the results have no confidence and no invalid value, so no review is less sure than another",
            "run the seed with --vote 3, or pick with --pick disagree --results A,B",
        )
    ordered = sorted(unsure, key=lambda each: (each[0], _rank(each[1], random_state)))
    return [evolve(item, picked="unsure") for _, item in ordered[:count]]


def sureness(found: Extraction, fields: Sequence[str]) -> float:
    """Return the lowest confidence of the fields: from 0 to 1, 0 for a failed or invalid extraction, 1 without confidences."""
    if found.failed or any(name in found.invalid for name in fields):
        return 0.0
    confidence: Mapping[str, float] = getattr(found, "confidence", None) or {}
    return min((float(confidence[name]) for name in fields if confidence.get(name) is not None), default=1.0)


def extractions_by_place(
    results: Sequence[SeedResult], contexts: Sequence[Context], name: str
) -> dict[tuple[int, int], Extraction]:
    """Return a mapping from places of reviews to the extractions of a finished run.

    ``name`` is the file with the results, for messages. A result belongs to the context at its index if the names agree;
    otherwise it belongs to the only context with its name. Raises ``LabelError`` if no result belongs to the contexts.
    """
    by_name: dict[str, list[int]] = {}
    for place, context in enumerate(contexts):
        by_name.setdefault(context.name, []).append(place)
    found: dict[tuple[int, int], Extraction] = {}
    for result in results:
        places = by_name.get(result.name, [])
        of = result.index if result.index in places else places[0] if len(places) == 1 else None
        if of is None:
            continue
        numbers = {review.index: number for number, review in enumerate(contexts[of].reviews)}
        for each in result.extractions:
            if each.review in numbers:
                found[of, numbers[each.review]] = each
    if not found:
        raise LabelError(
            f"{name} has no extraction of these contexts", "name the results of seed run for the same data"
        )
    return found


def _rank(item: LabelItem, random_state: int) -> bytes:
    key = "\0".join((str(random_state), item.keys["context"], str(item.place[0]), item.keys["review"]))
    return blake3(key.encode("utf-8", "surrogatepass")).digest(16)
