"""Long reviews, and several readings of one: what goes to the model of a long text, and how several answers become one.

See ``docs/design/seed.md#extraction``.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from attrs import frozen

from ...lang.trees.seed import Extracted, ReviewHandling
from .answers import Said

__all__ = ["LONGEST_CHOSEN", "Parts", "agreed", "merged", "parts_of"]

LONGEST_CHOSEN = 2_000
"""Characters of a review that a choice is made over: a small model has a small window."""


@frozen
class Parts:
    """What of a review goes to the model. ``spans`` are the places of ``texts`` in it; ``cut`` characters of it are in none of them."""

    texts: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    cut: int = 0


def parts_of(text: str, handling: ReviewHandling, apart: bool) -> Parts:
    """Return the parts of ``text`` that are sent: its first or its last characters, or all of it, in parts where it is long.

    Where fields are asked for ``apart``, by choices, no part is longer than those take.
    """
    most = max(1, handling.max_length)
    begin, end = 0, len(text)
    if handling.strategy == "truncate_head":
        end = min(end, most)
    elif handling.strategy == "truncate_tail":
        begin = max(0, end - most)
    window = min(most, LONGEST_CHOSEN) if apart else most
    spans = tuple(_split(text, begin, end, window, min(handling.shared, window // 4)))
    return Parts(tuple(text[start:stop] for start, stop in spans), spans, len(text) - (end - begin))


def _split(text: str, start: int, stop: int, most: int, shared: int) -> Iterator[tuple[int, int]]:
    """Give the places of parts of at most ``most`` characters; each begins with the last ``shared`` ones of the part before.

    A part ends at white space where there is some in its second half.
    """
    while stop - start > most:
        end = start + most
        space = max(text.rfind(" ", start + most // 2, end), text.rfind("\n", start + most // 2, end))
        end = space + 1 if space >= 0 else end
        yield start, end
        start = end - shared
    yield start, stop


def merged(fields: Sequence[Extracted], said: Sequence[Said]) -> Said:
    """Return what several chunks say together: of an enum's values the one that the seed lists last, of booleans whether any
    is true, of numbers the greatest, texts and lists joined. A field that is invalid in one chunk is invalid.
    """
    if len(said) == 1:
        return said[0]
    values: dict[str, Any] = {}
    invalid: dict[str, str] = {}
    coerced: dict[str, str] = {}
    parts: dict[str, tuple[int, ...]] = {}
    for each in fields:
        name = each.name
        wrong = [part for part, answer in enumerate(said) if name in answer.invalid]
        if wrong:
            invalid[name], parts[name] = said[wrong[0]].invalid[name], tuple(wrong)
            continue
        values[name] = _joined(each, [answer.values[name] for answer in said])
        parts[name] = tuple(
            part for part, answer in enumerate(said) if _decides(each, answer.values[name], values[name])
        )
        raw = [answer.coerced[name] for answer in said if name in answer.coerced]
        if raw:
            coerced[name] = raw[0]
    read_as = next((answer.read_as for answer in said if answer.read_as != "exact"), "exact")
    return Said(values, invalid, coerced, read_as, parts)


def _decides(wanted: Extracted, found: Any, merged: Any) -> bool:
    """Say whether what one part says is in what all say."""
    if merged is None or found is None:
        return merged is None
    return wanted.type in ("text", "list") or found == merged


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
    coerced: dict[str, str] = {}
    differ: list[Extracted] = []
    for each in fields:
        valid = each.name in one.values and each.name in other.values
        if valid and _same(one.values[each.name], other.values[each.name]):
            values[each.name] = one.values[each.name]
            if each.name in one.coerced:
                coerced[each.name] = one.coerced[each.name]
        else:
            differ.append(each)
    read_as = one.read_as if one.read_as != "exact" else other.read_as
    return Said(values, coerced=coerced, read_as=read_as), tuple(differ)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return one.split() == other.split() or one.casefold().split() == other.casefold().split()
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)
