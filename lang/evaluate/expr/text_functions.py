"""String functions: replacement, substrings, folding, and trigram similarity.

Each function has the form ``(meter, value, ...)`` and raises ``ExprError``. ``folded`` and ``trigrams`` take no meter and are for callers
that prepare many strings.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from .arithmetic import number
from .values import ExprError, Meter, a, kind, short_json

_PIECE = 256
"""Number of characters that are normalized at once. Sorting a long run of combining marks takes quadratic time."""
_WORD = re.compile(r"[^\W_]+")


def string(value: Any, what: str) -> str:
    """Return ``value`` if it is a string, else raise ``ExprError``. The message begins with ``what``, as in "date takes a string"."""
    if value.__class__ is str or kind(value) == "text":
        return value  # type: ignore[no-any-return]
    raise ExprError("type", f"{what}, not {a(value)}" + ("" if value is None else f": {short_json(value)}"))


def replaced(meter: Meter, value: Any, part: Any, new: Any) -> str:
    """Return the string with every occurrence of ``part`` replaced by ``new``, from left to right. ``part`` can't be empty."""
    whole, part, new = (string(each, "replace takes strings") for each in (value, part, new))
    if not part:
        raise ExprError("value", "can't replace an empty string")
    meter.characters(2 * (len(whole) + len(part)))  # searching a string takes longer than reading it
    length = len(whole) + whole.count(part) * (len(new) - len(part))
    meter.make_text(length, wide=not (whole.isascii() and new.isascii()))
    return whole.replace(part, new)


def substring(meter: Meter, value: Any, start: Any, count: Any) -> str:
    """Return at most ``count`` characters from the zero-based index ``start`` on; "" if ``start`` is beyond the end."""
    whole = string(value, "substring takes a string")
    for name, each in (("from", start), ("count", count)):
        wanted = f"substring takes a whole number as {name}"
        if not isinstance(number(each, wanted), int):
            raise ExprError("type", f"{wanted}, not {short_json(each)}")
        if each < 0:
            hint = "write text[-3:] for the last three characters" if name == "from" else ""
            raise ExprError("value", f"substring's {name} is negative: {short_json(each)}", hint=hint)
    length = min(count, max(0, len(whole) - start))
    meter.make_text(length, wide=not whole.isascii())
    return whole[start : start + length]


def fold(meter: Meter, value: Any) -> str:
    """Return ``folded(value)``. The result can be longer than ``value``, because one letter may become several."""
    whole = string(value, "fold takes a string")
    meter.make_text(len(whole), wide=not whole.isascii())
    if whole.isascii():
        return _single_spaces(whole.lower())
    meter.step(len(whole) >> 1)  # normalization takes some hundred times as long as reading
    pieces, length = [], 0
    for piece in _plain_pieces(whole):
        length += len(piece)
        meter.sized(length, "a string")
        pieces.append(piece)
    if length > len(whole):
        meter.make_text(length, wide=True)
    return _joined(pieces)


def folded(text: str) -> str:
    """Return ``text`` in a form for comparisons: case folded, without accents, with single spaces between words.

    Accents are the combining marks of Unicode's compatibility decomposition (NFKD), and strokes through Latin letters; the result
    is composed (NFC). Folding is idempotent.
    """
    return _single_spaces(text.lower()) if text.isascii() else _joined(_plain_pieces(text))


_STROKES = str.maketrans("đħłøŧƀɨƶ", "dhlotbiz")
"""Latin letters with a stroke, which Unicode does not decompose."""


def _plain_pieces(text: str) -> Iterator[str]:
    for at in range(0, len(text), _PIECE):
        # Case folding may add combining marks, so they are removed twice.
        piece = _without_marks(_without_marks(text[at : at + _PIECE]).casefold()).translate(_STROKES)
        yield unicodedata.normalize("NFC", piece)


def _without_marks(text: str) -> str:
    return "".join([each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each)])


def _joined(pieces: Any) -> str:
    # A Hangul letter may have been split at the end of a piece.
    return _single_spaces(unicodedata.normalize("NFC", "".join(pieces)))


def _single_spaces(text: str) -> str:
    return " ".join(text.split())


def similarity(meter: Meter, first: Any, second: Any) -> float:
    """Of all trigrams in two strings, return the share that both strings contain, from 0.0 to 1.0.

    The share is 0.0 if neither string contains a word.

    For folded strings, PostgreSQL's ``similarity`` (pg_trgm) returns the same result.
    """
    of_first, of_second = (_metered_trigrams(meter, each) for each in (first, second))
    common = len(of_first & of_second)
    whole = len(of_first) + len(of_second) - common
    return common / whole if whole else 0.0


def trigrams(text: str) -> frozenset[str]:
    """Return the trigrams of the words of ``text``, which is folded first. Words are runs of letters and digits.

    As in PostgreSQL's pg_trgm, each word is padded with two spaces before it and one after it: "ab" has the trigrams "  a", " ab"
    and "ab ".
    """
    return _trigrams(folded(text))


def _metered_trigrams(meter: Meter, value: Any) -> frozenset[str]:
    plain = fold(meter, string(value, "similarity takes strings"))
    meter.make_table(len(plain) + 1, "a set")
    return _trigrams(plain)


def _trigrams(plain: str) -> frozenset[str]:
    found: set[str] = set()
    for word in _WORD.findall(plain):
        padded = f"  {word} "
        found.update([padded[at : at + 3] for at in range(len(word) + 1)])
    return frozenset(found)
