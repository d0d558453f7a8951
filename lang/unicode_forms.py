"""Canonical equivalence of texts. The same visible text may be written in several ways: "é" is one character, or "e" and an accent.

Unicode calls such texts canonically equivalent. They are equal in every language of this package: a comparison compares their
composed forms (NFC). Texts themselves are never changed: results show each text as it was written.
"""

import re
from collections.abc import Collection
from functools import cache
from itertools import chain, starmap
from unicodedata import category, combining, decomposition, is_normalized, normalize

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


def mark_in(text: str) -> str:
    """Return the code point of the first combining character of ``text``, as in "U+0301"; "" without one."""
    return next((f"U+{ord(each):04X}" for each in text if category(each) in ("Mn", "Mc", "Me")), "")


def caseless(text: str) -> str:
    """Return the form of ``text`` for comparisons that ignore the letter case: canonical and case folded."""
    return text.lower() if text.isascii() else canonical(canonical(text).casefold())


_OTHERWISE_WRITTEN = frozenset(";K`")
"""The ASCII characters that have an equivalent character, such as the Kelvin sign."""


def has_other_forms(text: str) -> bool:
    """Return whether a text that is written in another way may be canonically equivalent to ``text``."""
    return not (text.isascii() and _OTHERWISE_WRITTEN.isdisjoint(text))


def common_start(text: str) -> str:
    """Return the beginning that every text equivalent to ``text`` has in common; "" if there may be none."""
    form = canonical(text)
    return form[: next((at for at, each in enumerate(form) if has_other_forms(each)), len(form))]


_CHANGEABLE = (
    (0x300, 0x3100), (0xA600, 0xAC00), (0xF900, 0x12000), (0x16000, 0x17000), (0x1B000, 0x1F000), (0x2F800, 0x2FA20),
)  # fmt: skip
"""The ranges of Unicode that contain all characters that have another form or combine with another character."""


@cache
def changeable() -> str:
    """Return a pattern (RE2) that matches in each text that is not in composed form, and in a few other texts."""
    codes = list(chain.from_iterable(starmap(range, _CHANGEABLE)))
    seconds = {ord(parts[-1]) for code in codes if (parts := _composed_of(code)) and len(parts) == 2}
    seconds |= {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}  # the vowels and the last consonants of Hangul
    found = [code for code in codes if code in seconds or combining(chr(code)) or not is_normalized("NFC", chr(code))]
    known = set(found)
    starts, ends = ([code for code in found if code + step not in known] for step in (-1, 1))
    return "[" + "".join(rf"\x{{{a:x}}}-\x{{{b:x}}}" for a, b in zip(starts, ends, strict=True)) + "]"


def _composed_of(code: int) -> str:
    """Return the characters of which a character is composed; "" if it is not composed."""
    parts = decomposition(chr(code))
    return "" if not parts or parts.startswith("<") else "".join(chr(int(part, 16)) for part in parts.split())


def has_equivalents(texts: Collection[str]) -> bool:
    """Return whether two of ``texts``, which are distinct, are canonically equivalent."""
    return not all(map(str.isascii, texts)) and len(set(map(canonical, texts))) < len(texts)


def is_text(text: str) -> bool:
    """Return whether ``text`` is valid text, without lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
