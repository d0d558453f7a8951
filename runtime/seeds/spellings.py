"""Similar spellings, and the groups of spellings that mean one thing. No model is called here. See ``docs/design/seed.md#resolve``."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from attrs import define, field, frozen

MOST_SPELLINGS = 10_000
"""Maximum number of different spellings; every pair of them is compared."""
MOST_PAIRS = 2_000_000
"""Maximum number of similar pairs."""
_ROWS = 512


class TooManySpellings(ValueError):
    """Raised if there are too many spellings, or too many similar pairs, to compare."""


@frozen
class Pair:
    """The indices of two spellings, and the similarity of these spellings, from 0 to 1."""

    similarity: float
    one: int
    other: int


def folded(text: str) -> str:
    """Return the words of ``text`` without letter case, punctuation and repeated spaces; a text without words is only casefolded."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(each if each.isalnum() else " " for each in plain).split()
    return " ".join(words) or plain.strip()


def similar_pairs(spellings: Sequence[str], least: float) -> list[Pair]:
    """Return the pairs of ``spellings`` with a similarity of at least ``least``, the most similar pairs first.

    The similarity is the larger of two rapidfuzz ratios: that of the folded texts, and that of these texts with sorted words.
    Thus neither the order of the words nor punctuation matters. Raises ``TooManySpellings``.
    """
    from rapidfuzz import fuzz, process

    if len(spellings) > MOST_SPELLINGS:
        message = f"{len(spellings):,} different spellings are more than the maximum of {MOST_SPELLINGS:,}"
        raise TooManySpellings(message)
    keys = [folded(each) for each in spellings]
    ordered = [" ".join(sorted(key.split(" "))) for key in keys]
    found: list[Pair] = []
    cutoff = max(0.0, 100 * least - 0.001)
    for start in range(0, len(keys), _ROWS):
        scores = np.maximum(
            *(
                process.cdist(
                    texts[start : start + _ROWS], texts[start:], scorer=fuzz.ratio, score_cutoff=cutoff, dtype=np.float32
                )
                for texts in (keys, ordered)
            )
        )  # fmt: skip
        rows, columns = np.nonzero(np.triu(scores >= cutoff, k=1))
        if len(found) + len(rows) > MOST_PAIRS:
            raise TooManySpellings(f"more than {MOST_PAIRS:,} pairs of spellings are similar; raise ask_above")
        found += [
            Pair(round(float(scores[row, column]) / 100, 4), start + int(row), start + int(column))
            for row, column in zip(rows, columns, strict=True)
        ]
    return sorted(found, key=lambda pair: (-pair.similarity, pair.one, pair.other))


@define
class Groups:
    """Groups of spellings (given as indices).

    At first, each spelling is a group. Groups can be joined, or declared different.
    """

    size: int
    _parent: list[int] = field(init=False)
    _different: dict[int, set[int]] = field(factory=dict, init=False)
    """Maps groups to the groups that they differ from."""

    def __attrs_post_init__(self) -> None:
        self._parent = list(range(self.size))

    def root(self, index: int) -> int:
        """Return the index that identifies the group of a spelling."""
        path = []
        while (parent := self._parent[index]) != index:
            path.append(index)
            index = parent
        for each in path:
            self._parent[each] = index
        return index

    def join(self, one: int, other: int) -> None:
        """Join the groups of two spellings."""
        low, high = sorted((self.root(one), self.root(other)))
        if low == high:
            return
        self._parent[high] = low
        for rest in self._different.pop(high, set()):
            self._different[rest].discard(high)
            self.separate(low, rest)

    def separate(self, one: int, other: int) -> None:
        """Declare the groups of two spellings different."""
        low, high = self.root(one), self.root(other)
        if low != high:
            self._different.setdefault(low, set()).add(high)
            self._different.setdefault(high, set()).add(low)

    def is_open(self, one: int, other: int) -> bool:
        """Return True if it is still undecided whether two spellings mean the same thing."""
        low, high = self.root(one), self.root(other)
        return low != high and high not in self._different.get(low, ())

    def names(self, spellings: Sequence[str], counts: Mapping[str, int]) -> dict[str, str]:
        """Return the name of each spelling: the most frequent spelling of its group (on a tie, the alphabetically first)."""
        best: dict[int, str] = {}
        for index, spelling in enumerate(spellings):
            root = self.root(index)
            before = best.get(root)
            if before is None or (-counts[spelling], spelling) < (-counts[before], before):
                best[root] = spelling
        return {spelling: best[self.root(index)] for index, spelling in enumerate(spellings)}


def occurrences(values: Iterable[object]) -> dict[str, int]:
    """Return how often each text occurs in the values of a field: as a value, or in a list.

    Values of other types are ignored.
    """
    counts: dict[str, int] = {}
    for value in values:
        for each in value if isinstance(value, list | tuple) else (value,):
            if isinstance(each, str) and each.strip():
                counts[each] = counts.get(each, 0) + 1
    return dict(sorted(counts.items()))
