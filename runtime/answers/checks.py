"""Deterministic checks of an answer: they cost nothing, and what they say is the feedback that a small model can use.

White space around an answer does not count. A check gives 1.0 or 0.0, what it wants, and what was found. Its time is bounded: a
pattern that would take longer than about a second for a long answer fails it, a schema is given two.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from ...adapters.llm import BadRequest
from ...adapters.llm.answers import read_json, unfenced, validator
from ...adapters.llm.schema import first_fault
from ...lang.evaluate.text_checks import MOST, CheckError
from ...lang.evaluate.text_checks import Check as Written
from ...lang.evaluate.text_checks import read_check as read_written
from ..errors import RequestError
from ..excerpts import clipped

__all__ = ["Check", "Verdict", "read_check", "read_checks"]

_WORK = 100_000_000
"""Instructions of a pattern times bytes of an answer; RE2 takes about a second for them at worst."""
_QUICK = 1_000_000
_PARAGRAPHS = re.compile(r"\n[^\S\n]*\n")
_SHOWN = 80


@frozen
class Verdict:
    """What one check, or one of the caller's evaluators, says of an answer.

    ``score``: 0.0 to 1.0, 1.0 where it passes. ``reason``: one sentence with what was wanted and found. ``suggestions``: what to
    do about it, empty where it passes.
    """

    name: str
    score: float
    reason: str
    suggestions: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether there is nothing to put right."""
        return self.score >= 1.0


@frozen
class Check:
    """A check, ready to be applied. ``name`` is the check as written, ``wants`` what it wants: "10 to 40 words".

    ``work``: instructions for each byte of an answer, None where nobody can say.
    """

    name: str
    wants: str
    _advice: str
    _find: Callable[[str], tuple[bool, str]] = field(repr=False, eq=False)
    work: int | None = 1

    def may_take_long(self, answer: str) -> bool:
        """Say whether it may take more than some milliseconds, so that it should be applied in a thread of its own."""
        return self.work is None or self.work * len(answer) > _QUICK

    def __call__(self, answer: str) -> Verdict:
        """Apply it to ``answer``."""
        passed, found = self._find(answer.strip())
        if passed:
            return Verdict(self.name, 1.0, f"{self.wants}: {found}")
        return Verdict(self.name, 0.0, f"wants {self.wants}, found {found}", (self._advice,))


def read_checks(texts: Sequence[str]) -> tuple[Check, ...]:
    """Read all the checks of a request. Raises ``RequestError``."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise RequestError("checks", f"a list of texts is wanted, not {type(texts).__name__}")
    if len(texts) > MOST:
        raise RequestError("checks", f"{len(texts)} are too many", f"at most {MOST}")
    return tuple(map(read_check, texts))


def read_check(text: str) -> Check:
    """Read a check: ``regex:PATTERN``, ``not-regex:PATTERN``, ``contains:TEXT``, ``words:10..40`` (also ``10..``, ``..40``,
    ``40``; ``length``, ``lines`` and ``paragraphs`` as well), ``json``, ``schema:{...}``. Raises ``RequestError``.
    """
    try:
        return _MAKERS[(written := read_written(text)).kind](written)
    except (CheckError, BadRequest) as error:
        raise RequestError("checks", error.message, error.hint) from None


def _regex(written: Written) -> Check:
    def find(answer: str) -> tuple[bool, str]:
        if too_long := _too_long(written, answer):
            return False, too_long
        found = _search(written.pattern, answer)
        return found is not None, found or "none"

    shown = clipped(written.text, _SHOWN)
    advice = f"Write what the pattern {shown} matches"
    return Check(written.written, f"a match of the pattern {shown}", advice, find, written.pattern.programsize)


def _not_regex(written: Written) -> Check:
    def find(answer: str) -> tuple[bool, str]:
        if too_long := _too_long(written, answer):
            return False, too_long
        found = _search(written.pattern, answer)
        return found is None, found or "none"

    shown = clipped(written.text, _SHOWN)
    advice = f"Leave out what the pattern {shown} matches"
    return Check(written.written, f"no match of the pattern {shown}", advice, find, written.pattern.programsize)


def _too_long(written: Written, answer: str) -> str:
    most = _WORK // max(1, written.pattern.programsize)
    if 4 * len(answer) <= most or len(answer.encode("utf-8", "surrogatepass")) <= most:
        return ""
    return f"{len(answer):,} characters, too many to search them for it"


def _search(pattern: Any, answer: str) -> str | None:
    """Return the first match as it is shown, or None. In bytes: nobody needs positions; half a surrogate matches nothing."""
    found = pattern.search(answer.encode("utf-8", "surrogatepass"))
    return None if found is None else repr(clipped(found.group()[: 4 * _SHOWN].decode("utf-8", "replace"), _SHOWN))


def _contains(written: Written) -> Check:
    wanted, shown = written.text, repr(clipped(written.text, _SHOWN))

    def find(answer: str) -> tuple[bool, str]:
        if wanted in answer or wanted.strip() == answer:
            return True, "it is there"
        return False, "it in other capitals only" if wanted.casefold() in answer.casefold() else "it nowhere"

    return Check(written.written, f"the text {shown}", f"Write {shown} exactly so in the answer", find)


def _words(answer: str) -> int:
    return len(answer.split())


def _lines(answer: str) -> int:
    return sum(1 for line in answer.split("\n") if line and not line.isspace())


def _paragraphs(answer: str) -> int:
    return sum(1 for paragraph in _PARAGRAPHS.split(answer) if paragraph and not paragraph.isspace())


_NOUNS: Mapping[str, tuple[str, Callable[[str], int]]] = {
    "words": ("word", _words),
    "length": ("character", len),
    "lines": ("line", _lines),
    "paragraphs": ("paragraph", _paragraphs),
}


def _range(written: Written) -> Check:
    noun, count = _NOUNS[written.kind]
    low, high = written.low, written.high

    def find(answer: str) -> tuple[bool, str]:
        number = count(answer)
        return (low is None or number >= low) and (high is None or number <= high), f"{number:,}"

    wants = _interval(low, high, noun)
    return Check(written.written, wants, f"Write {wants}", find)


def _interval(low: int | None, high: int | None, noun: str) -> str:
    last = low if high is None else high
    nouns = noun if last == 1 else f"{noun}s"
    if low is None:
        return f"at most {high:,} {nouns}"
    if high is None:
        return f"at least {low:,} {nouns}"
    return f"exactly {low:,} {nouns}" if low == high else f"{low:,} to {high:,} {nouns}"


def _json(written: Written) -> Check:
    def find(answer: str) -> tuple[bool, str]:
        _, why = _value(answer)
        return not why, why or "it can be read"

    return Check(written.written, "JSON and nothing else", "Answer with JSON and nothing else", find)


def _value(answer: str) -> tuple[Any, str]:
    """Return the JSON value that the answer, or the fence that it is, holds, and why there is none."""
    try:
        return read_json(unfenced(answer).strip()), ""
    except ValueError as error:
        return None, f"that it can't be read: {error}" if answer else "nothing"


def _schema(written: Written) -> Check:
    fits, shown = validator(written.schema), clipped(written.text, 4 * _SHOWN)

    def find(answer: str) -> tuple[bool, str]:
        value, why = _value(answer)
        if not why:
            try:
                why = first_fault(fits, value)
            except BadRequest as error:  # what only the validator can't read shows here
                why = error.message
        return not why, why or "it fits"

    wants = f"JSON that fits the schema {shown}"
    return Check(written.written, wants, f"Answer with {wants} and nothing else", find, None)


_MAKERS: Mapping[str, Callable[[Written], Check]] = {
    "regex": _regex, "not-regex": _not_regex, "contains": _contains, "words": _range, "length": _range, "lines": _range,
    "paragraphs": _range, "json": _json, "schema": _schema,
}  # fmt: skip
