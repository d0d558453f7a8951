"""Long reviews, and several readings of one: what goes to the model of a long text, and how several answers become one.

FORMULA_SEED, "review_handling" and ``passes``; seed 000, "Long Review Handling" and "Multi-Pass Extraction".
"""

from collections.abc import Sequence
from typing import Any

from attrs import evolve

from ...lang.seed import Extracted, FormulaSeed, ReviewHandling
from .answers import Said

__all__ = ["LONGEST_CHOSEN", "agreed", "chunks_of", "handling_of", "merged"]

LONGEST_CHOSEN = 2_000
"""Characters of a review that a choice is made over: a small model has a small window."""


def handling_of(seed: FormulaSeed, apart: bool) -> ReviewHandling:
    """Return how long reviews are handled; where fields are asked for ``apart``, by choices, no part is longer than those take."""
    handling = seed.review_handling
    return evolve(handling, max_length=min(handling.max_length, LONGEST_CHOSEN)) if apart else handling


def chunks_of(text: str, handling: ReviewHandling) -> tuple[str, ...]:
    """Return what of ``text`` goes to the model: its first or its last characters, or all of it in chunks.

    A chunk ends at white space where there is some in its second half.
    """
    most = max(1, handling.max_length)
    if len(text) <= most:
        return (text,)
    match handling.strategy:
        case "truncate_head":
            return (text[:most],)
        case "truncate_tail":
            return (text[-most:],)
        case "split":
            return tuple(_split(text, most))


def _split(text: str, most: int) -> list[str]:
    chunks, start = [], 0
    while len(text) - start > most:
        end = start + most
        space = max(text.rfind(" ", start + most // 2, end), text.rfind("\n", start + most // 2, end))
        end = space + 1 if space >= 0 else end
        chunks.append(text[start:end])
        start = end
    return [*chunks, text[start:]]


def merged(fields: Sequence[Extracted], said: Sequence[Said]) -> Said:
    """Return what several chunks say together: of an enum's values the one that the seed lists last, of booleans whether any
    is true, of numbers the greatest, texts and lists joined. A field that is invalid in one chunk is invalid.
    """
    if len(said) == 1:
        return said[0]
    values: dict[str, Any] = {}
    invalid: dict[str, str] = {}
    for each in fields:
        raw = [answer.invalid[each.name] for answer in said if each.name in answer.invalid]
        if raw:
            invalid[each.name] = raw[0]
        else:
            values[each.name] = _joined(each, [answer.values[each.name] for answer in said])
    return Said(values, invalid)


def _joined(wanted: Extracted, found: list[Any]) -> Any:
    found = [value for value in found if value is not None]
    if not found:
        return None
    match wanted.type:
        case "enum":
            return max(found, key=list(wanted.values).index)
        case "bool":
            return any(found)
        case "int" | "float":
            return max(found)
        case "text":
            return "\n".join(found)
        case "list":
            return [item for items in found for item in items]


def agreed(fields: Sequence[Extracted], one: Said, other: Said) -> tuple[Said, tuple[Extracted, ...]]:
    """Return what two readings agree on, and the fields in which they differ. One that is invalid agrees with none."""
    values: dict[str, Any] = {}
    differ: list[Extracted] = []
    for each in fields:
        valid = each.name in one.values and each.name in other.values
        if valid and _same(one.values[each.name], other.values[each.name]):
            values[each.name] = one.values[each.name]
        else:
            differ.append(each)
    return Said(values), tuple(differ)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return one.split() == other.split() or one.casefold().split() == other.casefold().split()
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)
