"""Canonical equivalence of texts. The same visible text may be written in several ways: "é" is one character, or "e" and an accent.

Unicode calls such texts canonically equivalent. They are equal in every language of this package: a comparison compares their
composed forms (NFC). Texts themselves are never changed: results show each text as it was written.
"""

import re
from collections.abc import Collection
from unicodedata import normalize

_SHORT = 200
_MARKS = re.compile(rf"([^\w\x00-\x7f]{{{_SHORT},}})")
"""A run of marks of this length occurs in no language. It stays as it is, because sorting its marks takes quadratic time."""


def canonical(text: str) -> str:
    """Return the composed form (NFC) of ``text``. Two texts are equal if and only if their canonical forms are equal."""
    if text.isascii():
        return text
    if len(text) <= _SHORT or _MARKS.search(text) is None:
        return normalize("NFC", text)
    return "".join(each if at % 2 else normalize("NFC", each) for at, each in enumerate(_MARKS.split(text)))


def caseless(text: str) -> str:
    """Return the form of ``text`` for comparisons that ignore the letter case: canonical and case folded."""
    return text.lower() if text.isascii() else canonical(canonical(text).casefold())


_OTHERWISE_WRITTEN = frozenset(";K`")
"""The ASCII characters that have an equivalent character, such as the Kelvin sign."""


def has_other_forms(text: str) -> bool:
    """Return whether a text that is written in another way may be canonically equivalent to ``text``."""
    return not (text.isascii() and _OTHERWISE_WRITTEN.isdisjoint(text))


def has_equivalents(texts: Collection[str]) -> bool:
    """Return whether two of ``texts``, which are distinct, are canonically equivalent."""
    return not all(map(str.isascii, texts)) and len(set(map(canonical, texts))) < len(texts)
