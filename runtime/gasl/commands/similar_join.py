"""JOIN ... SIMILAR: pairs of texts with common trigrams.

Two texts with a similarity of at least t have many common trigrams, so at least one of the rarest trigrams of each text is
common to both. The prefix of a text with n trigrams is its rarest n - ceil(t * n) + 1 trigrams. Two texts are compared only if
their prefixes share a trigram and their numbers of trigrams allow the required similarity. Two numbers are tested for each
text: all its trigrams, and its trigrams from the shared one on (Xiao and others 2008). Several texts are compared at once, as
arrays.
"""

import math
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any

import numpy as np
from attrs import frozen

from ....adapters.columns import Array
from ....lang.evaluate.expr.text_functions import trigrams
from .columns import positions_of

_BLOCK = 1 << 18
"""Maximum number of index entries that are read together (a single text may need more), and of trigrams compared together."""
_MARKS = 1 << 22
"""Maximum number of elements of the array that marks the trigrams of each text of a block."""
_ROUNDING = 1e-9
"""Tolerance for rounding errors in products of a similarity and a number of trigrams."""


@frozen
class SimilarPairs:
    """Pairs of positions, sorted by descending similarity, then left position, then right position.

    ``hit`` is the name of the cap that cut the result short, "" if none did.
    """

    left: Array
    right: Array
    similarity: Array
    hit: str = ""


@frozen
class _Text:
    """Texts of one side with the same trigrams: the positions of the texts, and the trigrams as numbers, rarest first."""

    positions: Sequence[int]
    ordered: Sequence[int]


def similar_pairs(
    left: Sequence[Any],
    right: Sequence[Any] | None,
    least: float,
    *,
    most_pairs: int,
    most_compared: int,
    stopped: Callable[[], bool],
) -> SimilarPairs:
    """Return the pairs of texts with a similarity of at least ``least`` (above 0, at most 1).

    Values that are not texts are skipped. If ``right`` is None, the texts of ``left`` are paired with each other. Each pair
    occurs once, with the earlier position on the left.
    """
    own = right is None
    sides = _numbered([left] if right is None else [left, right])
    lefts, rights = sides[0], sides[-1]
    found: list[tuple[float, int, int]] = []
    hit, compared = "", 0
    index = _Index(rights, least)
    for start, texts in index.blocks(lefts):
        if stopped():
            hit = "timeout_s"
            break
        owners, candidates = index.candidates(texts, start if own else None)
        examined = compared + np.cumsum(np.bincount(owners, minlength=len(texts)))
        compared = int(examined[-1])
        if compared > most_compared:
            hit = "max_examined"
            few = owners < int(np.searchsorted(examined, most_compared, "right"))
            owners, candidates = owners[few], candidates[few]
        for some in _pieces(index.sizes[candidates]):
            shares = index.similarities(texts, owners[some], candidates[some])
            similar = shares >= least
            pairs = (shares[similar], owners[some][similar] + start, candidates[some][similar])
            found += zip(*(each.tolist() for each in pairs), strict=True)
        if hit:
            break
    found.sort(key=lambda pair: -pair[0])
    from_left, from_right, values = array("i"), array("i"), array("d")
    for one, other, similarity in _rows(found, lefts, rights, own):
        if len(values) == most_pairs:
            hit = hit or "max_rows"
            break
        if len(values) % 65_536 == 0 and stopped():
            hit = "timeout_s"
            break
        from_left.append(one)
        from_right.append(other)
        values.append(similarity)
    shares = np.frombuffer(values, np.float64) if len(values) else np.empty(0, np.float64)
    return SimilarPairs(positions_of(from_left), positions_of(from_right), shares, hit)


def _numbered(sides: Sequence[Sequence[Any]]) -> list[list[_Text]]:
    """Group the texts of each side by their trigrams. Sort the trigrams of a text by rarity, and the texts by number of trigrams."""
    known: dict[str, frozenset[str]] = {}
    grouped: list[dict[frozenset[str], list[int]]] = []
    for values in sides:
        groups: dict[frozenset[str], list[int]] = {}
        for position, value in enumerate(values):
            if isinstance(value, str):
                found = known.get(value)
                if found is None:
                    found = known[value] = trigrams(value)
                if found:
                    groups.setdefault(found, []).append(position)
        grouped.append(groups)
    counts = Counter(trigram for groups in grouped for found in groups for trigram in found)
    number = {trigram: at for at, trigram in enumerate(sorted(counts, key=lambda each: (counts[each], each)))}
    made: list[list[_Text]] = []
    for groups in grouped:
        texts = [_Text(positions, sorted(number[each] for each in found)) for found, positions in groups.items()]
        made.append(sorted(texts, key=lambda text: len(text.ordered)))
    return made


class _Index:
    """An index from trigrams to the texts of one side whose prefix has the trigram. The texts are sorted by number of trigrams.

    The places of the texts whose prefix has the trigram i are ``_places[_from[i]:_from[i + 1]]``, ascending; ``_rest`` has, for each of
    these texts, the number of its trigrams from trigram i on.
    """

    def __init__(self, texts: Sequence[_Text], least: float) -> None:
        self._least = least
        self.sizes = np.array([len(text.ordered) for text in texts], np.int64)
        self._first = np.cumsum(self.sizes) - self.sizes
        self._ids = np.array([each for text in texts for each in text.ordered], np.int64)
        self._count = int(self._ids.max(initial=-1)) + 1
        prefixes = [self._prefix(text) for text in texts]
        owners = np.repeat(np.arange(len(texts)), [len(each) for each in prefixes])
        trigram = np.array([each for prefix in prefixes for each in prefix], np.int64)
        rest = [len(text.ordered) - at for text, each in zip(texts, prefixes, strict=True) for at in range(len(each))]
        by_trigram = np.argsort(trigram, kind="stable")
        self._places = owners[by_trigram]
        self._rest = np.array(rest, np.int64)[by_trigram]
        self._from = np.concatenate([[0], np.cumsum(np.bincount(trigram, minlength=self._count))])

    def _prefix(self, text: _Text) -> Sequence[int]:
        size = len(text.ordered)
        return text.ordered[: size - math.ceil(self._least * size - _ROUNDING) + 1]

    def _known(self, trigrams: Sequence[int]) -> list[int]:
        """Return those of ``trigrams`` that are in the range of the index."""
        return [each for each in trigrams if each < self._count]

    def blocks(self, texts: Sequence[_Text]) -> Iterator[tuple[int, Sequence[_Text]]]:
        """Yield the texts in blocks that are looked up together, each with the position of its first text."""
        most, start, entries = max(1, _MARKS // max(1, self._count)), 0, 0
        for at, text in enumerate(texts):
            own = sum(int(self._from[each + 1] - self._from[each]) for each in self._known(self._prefix(text)))
            if at > start and (entries + own > _BLOCK or at - start >= most):
                yield start, texts[start:at]
                start, entries = at, 0
            entries += own
        if start < len(texts):
            yield start, texts[start:]

    def candidates(self, texts: Sequence[_Text], start: int | None) -> tuple[Array, Array]:
        """Return the pairs of texts that may be similar: indices in ``texts`` and places, ascending.

        If the index has the same texts, ``start`` is the place of the first text, and each text is paired only with itself and
        with earlier texts. Otherwise, ``start`` is None.
        """
        prefixes = [self._known(self._prefix(text)) for text in texts]
        trigram = np.array([each for prefix in prefixes for each in prefix], np.int64)
        owner = np.repeat(np.arange(len(texts)), [len(each) for each in prefixes])
        counts = self._from[trigram + 1] - self._from[trigram]
        sizes = np.array([len(text.ordered) for text in texts], np.int64)
        first = np.searchsorted(self.sizes, np.ceil(self._least * sizes - _ROUNDING))
        last = np.searchsorted(self.sizes, np.floor(sizes / self._least + _ROUNDING), "right")
        if start is not None:
            last = np.minimum(last, start + 1 + np.arange(len(texts)))
        lookup = np.repeat(np.arange(len(trigram)), counts)
        entries = _ranges(self._from[trigram], counts)
        places = self._places[entries]
        inside = np.flatnonzero((places >= first[owner][lookup]) & (places < last[owner][lookup]))
        lookup, entries, places = lookup[inside], entries[inside], places[inside]
        # The number of common trigrams is at most the number of trigrams that each text has from the first shared trigram on.
        rest = [len(text.ordered) - at for text, each in zip(texts, prefixes, strict=True) for at in range(len(each))]
        common = np.minimum(np.array(rest, np.int64)[lookup], self._rest[entries])
        share = self._least / (1 + self._least)
        keep = np.flatnonzero(common >= (share * sizes[owner] - _ROUNDING)[lookup] + (share * self.sizes)[places])
        pairs = distinct(owner[lookup[keep]] * len(self.sizes) + places[keep])
        return pairs // max(1, len(self.sizes)), pairs % max(1, len(self.sizes))

    def similarities(self, texts: Sequence[_Text], owners: Array, candidates: Array) -> Array:
        """Return the similarity of each pair of a text and a candidate; ``owners`` are ascending."""
        marked = np.zeros((len(texts), self._count), np.int8)
        for at in distinct(owners).tolist():
            marked[at, self._known(texts[at].ordered)] = 1
        sizes = self.sizes[candidates]
        ids = self._ids[_ranges(self._first[candidates], sizes)]
        ids += np.repeat(owners * self._count, sizes)
        common = np.add.reduceat(marked.reshape(-1).take(ids), np.cumsum(sizes) - sizes, dtype=np.int64)
        own = np.array([len(text.ordered) for text in texts], np.int64)[owners]
        shares: Array = common / (own + sizes - common)
        return shares


def _ranges(first: Array, counts: Array) -> Array:
    """Return the numbers in all ranges, one range after the other. The arguments are each range's first number and length."""
    before = np.cumsum(counts) - counts
    numbers: Array = np.arange(int(counts.sum())) + np.repeat(first - before, counts)
    return numbers


def _pieces(sizes: Array) -> Iterator[slice]:
    """Divide the pairs into slices, so that the candidates of each slice have few trigrams in total.

    A slice with only one pair may have more."""
    total, start = np.cumsum(sizes), 0
    while start < len(sizes):
        done = int(total[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(total, done + _BLOCK, "right")))
        yield slice(start, end)
        start = end


def distinct(positions: Array) -> Array:
    """Return the distinct positions, ascending."""
    ordered = np.sort(positions)
    keep = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]


def _rows(
    found: Sequence[tuple[float, int, int]], lefts: Sequence[_Text], rights: Sequence[_Text], own: bool
) -> Iterator[tuple[int, int, float]]:
    """Yield the pairs of positions of similar texts, in the order of ``SimilarPairs``."""
    for similarity, pairs in groupby(found, key=lambda pair: pair[0]):
        others: dict[int, list[Sequence[int]]] = {}
        for _, one, other in pairs:
            for position in lefts[one].positions:
                others.setdefault(position, []).append(rights[other].positions)
            if own and one != other:
                for position in rights[other].positions:
                    others.setdefault(position, []).append(lefts[one].positions)
        for position in sorted(others):
            lists = others[position]
            partners = lists[0] if len(lists) == 1 else sorted(each for positions in lists for each in positions)
            start = bisect_right(partners, position) if own else 0
            for partner in islice(partners, start, None):
                yield position, partner, similarity
