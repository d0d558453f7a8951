"""The first step of a run, without a model: which reviews are kept. See ``docs/design/seed.md#filter``."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from attrs import frozen

from ...lang.errors import KnotworkError
from ...lang.trees.seed import FormulaSeed, Keep
from .reviews import Review

__all__ = ["FilterError", "Keeper", "KeywordCount", "keyword_counts"]

_PATTERN_BYTES = 64 << 20
"""What all patterns of a filter may take together."""
_LEAST_BYTES = 32 << 10


class FilterError(KnotworkError, ValueError):
    """A keyword can't be used."""


@frozen
class KeywordCount:
    """How many reviews one keyword keeps."""

    keyword: str
    kept: int


@frozen
class Keeper:
    """Says which reviews a filter keeps: those with one of the keywords; without keywords, all with a text. Letter case does not matter."""

    keep: Keep
    _tests: tuple[Callable[[str, str], bool], ...]

    @classmethod
    def of(cls, seed: FormulaSeed) -> "Keeper":
        """Prepare the filter of ``seed``. Raises ``FilterError`` for a regular expression that can't be used."""
        words = seed.keep.keywords
        if seed.keep.match == "regex":
            room = max(_LEAST_BYTES, _PATTERN_BYTES // max(1, len(words)))
            return cls(seed.keep, tuple(_regex(word, room) for word in words))
        return cls(seed.keep, tuple(map(_word if seed.keep.match == "word" else _substring, words)))

    def keeps(self, text: str) -> bool:
        """Say whether a review with this text is kept. One without a word says nothing: it never is."""
        if _is_blank(text):
            return False
        if not self._tests:
            return True
        folded = text.casefold()
        return any(test(text, folded) for test in self._tests)

    def kept(self, reviews: Iterable[Review]) -> list[Review]:
        """Return the reviews that are kept, in order. One whose text can't be used is: whether it says anything is not known."""
        return [review for review in reviews if review.fault or self.keeps(review.text)]

    def matching(self, text: str) -> list[bool]:
        """Say for each keyword whether it alone would keep a review with this text."""
        folded = text.casefold()
        return [test(text, folded) for test in self._tests]


def keyword_counts(seed: FormulaSeed, texts: Iterable[str]) -> tuple[list[KeywordCount], int, int]:
    """Return how many of ``texts`` each keyword keeps, how many all keep together, and how many there are."""
    keeper = Keeper.of(seed)
    counts = [0] * len(seed.keep.keywords)
    kept = total = 0
    for text in texts:
        total += 1
        matching = keeper.matching(text)
        kept += not _is_blank(text) and (any(matching) or not matching)
        for place, matches in enumerate(matching):
            counts[place] += matches
    return [KeywordCount(*pair) for pair in zip(seed.keep.keywords, counts, strict=True)], kept, total


def _is_blank(text: str) -> bool:
    return not text or text.isspace()


def _substring(keyword: str) -> Callable[[str, str], bool]:
    wanted = keyword.casefold()
    return lambda text, folded: wanted in folded


def _word(keyword: str) -> Callable[[str, str], bool]:
    """Return a test for the keyword between characters that belong to no word (letters, digits, underscore)."""
    wanted = keyword.casefold()
    before = r"(?<!\w)" if _in_word(wanted[:1]) else ""
    after = r"(?!\w)" if _in_word(wanted[-1:]) else ""
    found = re.compile(f"{before}{re.escape(wanted)}{after}").search
    return lambda text, folded: wanted in folded and found(folded) is not None


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _regex(keyword: str, room: int) -> Callable[[str, str], bool]:
    import re2  # few filters have patterns

    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    options.max_mem = room
    try:
        compiled: Any = re2.compile(keyword, options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise FilterError(f"the pattern {keyword[:60]!r} can't be used: {reason}") from None
    return lambda text, folded: compiled.search(text) is not None
