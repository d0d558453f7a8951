"""Converts values to a requested type. Scripts, seeds, rankings and judges use the same rules.

See ``docs/design/types.md#coercion``.

``as_value`` converts a JSON value; ``as_type`` converts the text of a complete answer. If a value was converted,
``Fit.coerced`` is the original text. Ambiguous input is refused with a reason. No function here raises an exception,
whatever the text. Reading takes linear time.
"""

import json
import math
import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeAlias

from attrs import evolve, frozen

from .absence import absent_element, denies
from .answers import (
    BLANK,
    MAX_ANSWER,
    TWO_OBJECTS,
    CutOff,
    bare_text,
    corrected,
    fenced_blocks,
    inner_text,
    is_finite,
    read_object,
    without_thinking,
)
from .literals import MAX_DIGITS, Reading, Unreadable, is_json, kind_of, plain_numbers, read, short, written_json
from .unicode_forms import canonical, caseless, is_text

Type: TypeAlias = str | Sequence[str]
"""A type's name (text, json, list, int, float, bool), or the labels of a choice as a tuple or list."""

_LARGEST = 2**63


@frozen
class Fit:
    """The value fits. ``coerced`` is the original text if the value was converted, else "".

    ``how`` says how the value was found in the text. The possible values are the notations of ``lang.literals`` (json, python, fence,
    bracket list), and ``thinking``, ``fenced``, ``embedded``, ``literal`` and ``coerced``. ``how`` is None if the text itself is the
    value.
    """

    value: Any
    how: str | None = None
    coerced: str = ""


@frozen
class Unfit:
    """The value does not fit. ``reason`` is a sentence about the value, without a period."""

    reason: str


def as_type(text: str, kind: Type, *, strict: bool = False, items: Type | None = None) -> Fit | Unfit:
    """Return the answer ``text`` as a value of type ``kind``, or the reason why it does not fit.

    If ``strict`` is true, nothing is coerced. ``items`` is the type of the elements of a list (None: any). A list that consists of
    a word such as "none" does not fit.
    """
    if kind == "text":
        return Fit(text)
    if strict and kind not in ("json", "list"):
        return _exactly(text, kind)
    if kind in ("json", "list"):
        found = _exactly(text, kind) if strict else _structure(text, str(kind))
        return found if isinstance(found, Unfit) else _with_items(found, text, kind, items, strict)
    if isinstance(kind, str) and kind not in _SCALARS:
        return Unfit(f"unknown type {kind!r}")
    if len(text) > MAX_ANSWER:
        return Unfit(f"it has {len(text):,} characters; the maximum is {MAX_ANSWER:,}")
    answer = without_thinking(text)
    if isinstance(answer, CutOff):
        return Unfit(answer.reason)
    read_as = "thinking" if len(answer) != len(text) else ""
    bare = answer.strip()
    blocks = list(fenced_blocks(bare))
    if len(blocks) == 1 and blocks[0][0] == (0, len(bare)):
        bare, read_as = bare[blocks[0][1][0] : blocks[0][1][1]].strip(), "fenced"
    if not isinstance(kind, str):
        found = choice_of(bare, kind)
    else:
        boxed = _boxed(bare)
        if isinstance(boxed, Unfit):
            return boxed
        found = _SCALARS[kind](bare if boxed is None else boxed)
        if boxed is not None and isinstance(found, Fit):
            found = evolve(found, coerced=bare)
    if isinstance(found, Unfit):
        return found
    return Fit(
        found.value, read_as or ("coerced" if found.coerced else None), text.strip() if read_as else found.coerced
    )


def _with_items(found: Fit, text: str, kind: Type, items: Type | None, strict: bool) -> Fit | Unfit:
    """Return a list with elements of type ``items``; a list of words such as "none" does not fit. NaN fits nowhere."""
    if not is_finite(found.value):
        return Unfit("it is not JSON: NaN and Infinity are not JSON values")
    if kind == "list" and len(found.value) == 1 and (absent := absent_element(found.value)):
        return Unfit(f"the list contains only {absent}; a list without elements is []")
    if items is None:
        return evolve(found, value=plain_numbers(found.value))
    values, said = [], ""
    for number, value in enumerate(found.value, 1):
        item = as_value(value, items, strict=strict)
        if isinstance(item, Unfit):
            return Unfit(f"element {number} of the list: {item.reason}")
        values.append(item.value)
        said = said or item.coerced
    return (
        evolve(found, value=values, how="coerced", coerced=found.coerced or text)
        if said
        else evolve(found, value=values)
    )


def as_value(value: Any, kind: Type, *, strict: bool = False, nullable: bool = False) -> Fit | Unfit:
    """Return the JSON value ``value`` converted to type ``kind``, or the reason why it does not fit.

    A list may contain strings, numbers and booleans. If ``nullable`` is true, null fits every type except a choice. For the
    types int, float, bool and list, the strings "null", "N/A" and "" then count as null, unless ``strict`` is true.
    """
    if not isinstance(kind, str):
        return _label(value, kind, strict)
    if kind == "json":
        return Fit(value)
    if kind not in ("text", *_WANTED):
        return Unfit(f"unknown type {kind!r}")
    if value is None:
        return Fit(None) if nullable else Unfit("it is null")
    if isinstance(value, str) and not is_text(value):
        return Unfit("it contains a lone surrogate, which is not valid text")
    if kind == "text":
        if isinstance(value, str):
            return Fit(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and not strict:
            text = written_json(value)
            return Fit(text, "coerced", text) if text[-1:].isdigit() else Unfit(f"it is not a number: {text}")
        return Unfit(f"it is {kind_of(value)}, not a string")
    if isinstance(value, str):
        if strict:
            return Unfit(f"it is a string, not {_WANTED[kind]}: {short(value)}")
        if value.strip().casefold() in (*_NULLS, *(("none",) if kind == "list" else ())):
            return Fit(None, "coerced", value or '""') if nullable else Unfit(f"it is not a value: {short(value)}")
        found = _one_of_list(value) if kind == "list" else _SCALARS[kind](value)
        if isinstance(found, Unfit) or (kind != "bool" and not _is_small(found.value)):
            return found if isinstance(found, Unfit) else Unfit("it does not fit into 64 bits")
        return Fit(found.value, "coerced", value)
    if kind == "list":
        return _list(value, nullable and not strict)
    if kind == "bool":
        return Fit(value) if isinstance(value, bool) else Unfit(f"it is {kind_of(value)}, not true or false")
    if not _is_number(value):
        return Unfit(f"it is {kind_of(value)}, not {_WANTED[kind]}" if not isinstance(value, float | int) or isinstance(value, bool)
                     else "it is not a finite 64-bit number")  # fmt: skip
    if kind == "int" and isinstance(value, float):
        if strict or not value.is_integer():
            return Unfit(f"it is not a whole number: {written_json(value)}")
        whole = int(Decimal(written_json(value)))  # int(1e23) has digits that nobody wrote
        return Fit(whole, "coerced", written_json(value)) if _is_small(whole) else Unfit("it does not fit into 64 bits")
    return Fit(plain_numbers(value))


_WANTED = {"int": "a whole number", "float": "a number", "bool": "true or false", "list": "a list"}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and _is_small(value)


def _is_small(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or abs(value) < _LARGEST


_NULLS = ("", "null", "n/a")


def _list(value: Any, nullable: bool = False) -> Fit | Unfit:
    if not isinstance(value, list):
        return Unfit(f"it is {kind_of(value)}, not a list")
    if nullable and len(value) == 1 and isinstance(value[0], str) and value[0].strip().casefold() in (*_NULLS, "none"):
        return Fit(None, "coerced", written_json(value))
    if absent := absent_element(value):
        return Unfit(f"the list contains {absent}, which is not an element; a list without elements is []")
    for item in value:
        if not (isinstance(item, bool) or (isinstance(item, str) and is_text(item)) or _is_number(item)):
            return Unfit(f"the list contains {kind_of(item)}; only strings, numbers and booleans are allowed")
    return Fit(plain_numbers(value))


def _one_of_list(text: str) -> Fit | Unfit:
    """Return a list with the string ``text`` as its only element. A string that may contain several elements is refused."""
    if not text.strip() or re.search(r"[,;|\n•、，；]|^\s*[\[({]", text):
        return Unfit(f"it is a string, not a list: {short(text)}")
    if denies(text):
        return Unfit(f"it says that there is nothing to list; a list without elements is []: {short(text)}")
    return Fit([text.strip()])


def _exactly(text: str, kind: Type) -> Fit | Unfit:
    """Return the value of ``text`` if the text has exactly the form that type ``kind`` requires."""
    bare = text.strip()
    if not isinstance(kind, str):
        same = _same_label(bare, kind)
        return Fit(same) if same is not None else Unfit(_none_of(bare, kind))
    pattern = _EXACT.get(kind)
    if pattern is not None:
        fits = pattern.fullmatch(bare) is not None
        found = _SCALARS[kind](bare) if fits else Unfit("")
        return found if isinstance(found, Fit) else Unfit(f"it is not {_WANTED[kind]}: {short(bare)}")
    if kind not in ("json", "list"):
        return Unfit(f"unknown type {kind!r}")
    value = read(bare, written=True) if is_json(bare) else Unreadable("the complete answer must be JSON")
    if isinstance(value, Unreadable):
        return Unfit(f"it is not {'JSON' if kind == 'json' else 'a list'}: {value.reason}")
    if kind == "list" and not isinstance(value.value, list):
        return Unfit(f"it is {kind_of(value.value)}, not a list")
    return Fit(value.value, value.how)


_EXACT = {
    "int": re.compile(r"-?(?:0|[1-9][0-9]*)"),
    "float": re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"),
    "bool": re.compile("true|false"),
}


def _structure(text: str, kind: str) -> Fit | Unfit:
    """Return the JSON value or the list in an answer.

    The value may be the complete answer. Otherwise it must be the only such value in the answer.
    """
    wanted = "JSON" if kind == "json" else "a list"
    answer = text if is_json(text) else without_thinking(text)
    if isinstance(answer, CutOff):
        return Unfit(f"it is not {wanted}: {answer.reason}")
    thought = len(answer) != len(text)
    blocks = [answer[begin:end].strip() for _, (begin, end) in fenced_blocks(answer)]
    values = [found.value for found in map(read, blocks) if isinstance(found, Reading)] if len(blocks) > 1 else []
    if any(json.dumps(value) != json.dumps(values[0]) for value in values[1:]):
        return Unfit(f"it is not {wanted}: it has two different fenced blocks; answer with one value")
    found = read(answer, written=True)
    if isinstance(found, Unreadable) or found.how in ("fence", "bracket list"):
        bare = blocks[0] if len(blocks) == 1 else answer.strip()
        if isinstance(nearly := corrected(bare), tuple):
            found = Reading(nearly[0], "literal")
    if isinstance(found, Unreadable) or (kind == "json" and found.how == "fence"):
        single = read_object(text, written=True) if kind == "json" else None
        if not isinstance(single, Unreadable) and single is not None:
            return Fit(single.value, "fence" if single.read_as == "fenced" else single.read_as, text.strip())
        if isinstance(single, CutOff) or (single is not None and single.reason == TWO_OBJECTS):
            return Unfit(f"it is not {wanted}: {single.reason}")
    if isinstance(found, Unreadable):
        return Unfit(f"it is not {wanted}: {found.reason}")
    if kind == "list" and not isinstance(found.value, list):
        one = _one_of_list(found.value) if isinstance(found.value, str) else None
        if isinstance(one, Fit):
            return Fit(one.value, "coerced", text.strip())
        return Unfit(f"it is {kind_of(found.value)}, not a list")
    return Fit(found.value, "thinking" if thought else found.how, "" if is_json(text) else text.strip())


# Numbers and booleans


def _int(text: str) -> Fit | Unfit:
    bare = bare_text(text)
    if re.fullmatch(r"[-+]?[0-9]+(?:\.0+)?", bare) and len(bare) <= MAX_DIGITS:
        return Fit(int(bare.split(".", maxsplit=1)[0]), coerced="" if _EXACT["int"].fullmatch(text.strip()) else text)
    return Unfit(f"it is not an integer: {short(text.strip())}")


def _decimal(text: str) -> Fit | Unfit:
    bare = bare_text(text)
    if re.fullmatch(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", bare) and math.isfinite(float(bare)):
        return Fit(float(bare), coerced="" if _EXACT["float"].fullmatch(text.strip()) else text)
    return Unfit(f"it is not a number: {short(text.strip())}")


_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}


def _bool(text: str) -> Fit | Unfit:
    value = _BOOLEANS.get(bare_text(text).casefold())
    if value is None:
        return Unfit(f"it is not true or false: {short(text.strip())}")
    return Fit(value, coerced="" if text.strip() in ("true", "false") else text)


_SCALARS = {"int": _int, "float": _decimal, "bool": _bool}


# Boxed answers

_BOXED = re.compile(r"\\{1,2}(?:boxed|fbox)\s*+\{([^{}]*+(?:\{[^{}]*+\}[^{}]*+)*+)\}")
_IN_BOX = re.compile(r"\\(?:text|textbf|textit|texttt|mathrm|mathbf|mathit|emph)\s*+\{([^{}]*+)\}")
_NOT = r"(?:not|never|no|nor|neither|isn['’]?t|wasn['’]?t|aren['’]?t|cannot|can['’]?t|hardly|rather\s+than|instead\s+of|than)"
_NOT_BEFORE = re.compile(_NOT + r"\W*+$", re.IGNORECASE)


def _boxed(text: str) -> str | Unfit | None:
    r"""Return the contents of ``\boxed{...}``, which models use to mark a final answer; None if there is no box."""
    if "boxed" not in text and "fbox" not in text:
        return None
    boxes = list(_BOXED.finditer(text))
    if not boxes:
        return None
    if any(_NOT_BEFORE.search(text[max(0, box.start() - 24) : box.start()]) for box in boxes):
        return Unfit(f"the boxed answer is retracted: {short(text)}")
    said = {inner[1].strip() if (inner := _IN_BOX.fullmatch(box[1].strip())) else box[1].strip() for box in boxes}
    if len(said) > 1:
        return Unfit(f"it has two different boxed answers: {', '.join(map(short, sorted(said)[:3]))}")
    return said.pop()


# Choices


def _label(value: Any, labels: Sequence[str], strict: bool) -> Fit | Unfit:
    if isinstance(value, str):
        if (same := _same_label(value, labels)) is not None and (strict or same == value):
            return Fit(same)
        return Unfit(_none_of(value, labels)) if strict else choice_of(value, labels)
    if strict or not (isinstance(value, bool) or _is_number(value)):
        return Unfit(f"it is {kind_of(value)}, not one of {_label_list(labels)}")
    written = written_json(value)
    found = choice_of(written, labels)
    return evolve(found, how="coerced", coerced=written) if isinstance(found, Fit) else found


def _same_label(text: str, labels: Sequence[str]) -> str | None:
    """Return the label that is equal to ``text``, which may be written in another Unicode form; None if no label is."""
    wanted = canonical(text)
    return text if text in labels else next((label for label in labels if canonical(label) == wanted), None)


def choice_of(text: str, labels: Sequence[str]) -> Fit | Unfit:
    """Return the label that ``text`` chooses: the complete text, the label in a box, or the first word or line.

    The first word or line counts only if no other label follows.
    """
    if text in labels:
        return Fit(text)
    stripped = text.strip(BLANK)
    if (same := _same_label(stripped, labels)) is not None:
        return Fit(same, "coerced", text)
    if len(text) > MAX_ANSWER:
        return Unfit(f"it has {len(text):,} characters; the maximum is {MAX_ANSWER:,}")
    boxed = _boxed(stripped)
    if isinstance(boxed, Unfit):
        return boxed
    known = _known(tuple(labels))
    found = known.alone(stripped if boxed is None else boxed)
    if found is None and boxed is None:
        found = known.leading(stripped)
    if isinstance(found, str):
        return Fit(found, "coerced", text)
    return found or Unfit(_none_of(stripped, labels))


def _none_of(text: str, labels: Sequence[str]) -> str:
    return f"it is not one of {_label_list(labels)}: {short(text)}"


def _label_list(labels: Sequence[str]) -> str:
    return ", ".join(map(short, labels[:50])) + (", …" if len(labels) > 50 else "")


def _folded(text: str) -> str:
    return " ".join(caseless(text).split())


@frozen(eq=False)
class _Known:
    """The labels of a choice, prepared for search."""

    labels: tuple[str, ...]
    by_fold: dict[str, list[str]]
    by_bare: dict[str, list[str]]
    first: "re.Pattern[str]"
    other: "re.Pattern[str]"

    def alone(self, text: str) -> str | Unfit | None:
        """Return the label if it is the complete ``text``, except for quotes and marks that models put around an answer."""
        bare = bare_text(text)
        if bare in self.labels:
            return bare
        found = self.by_fold.get(_folded(bare)) or self.by_bare.get(_folded(bare)) or []
        if len(found) > 1:
            return Unfit(f"it is more than one of {_label_list(self.labels)}: {short(text)}")
        return found[0] if found else None

    def leading(self, text: str) -> str | Unfit | None:
        """Return the label that is the first word or line of ``text``.

        Return ``Unfit`` if the rest names another label or retracts the answer.
        """
        text = canonical(text)
        inner = inner_text(text)
        text = text if inner is None else inner
        begins = self.first.match(text)
        if begins is None:
            return None
        said = self.alone(begins["label"])
        if not isinstance(said, str):
            return said
        rest = _after(text, begins)
        if rest is None or (said.isdigit() and text[begins.end("label") :].lstrip("*_`\"'")[:1] in ".)"):
            return None
        chosen = _folded(said)
        for other in self.other.finditer(rest):
            if _folded(other[0]) != chosen and _folded(bare_text(other[0])) != chosen:
                return Unfit(f"it has two answers, {short(said)} and {short(other[0])}: {short(text)}")
        denied = re.search(rf"\b{_NOT}\W+(?:\w+\W+){{0,2}}?{re.escape(chosen)}(?!\w)", _folded(rest))
        if denied or _TAKEN_BACK.match(rest) or _RETRACTED.search(rest) or "?" in rest or "？" in rest:
            return Unfit(f"the text after {short(said)} may retract it: {short(text)}")
        return said


@lru_cache(maxsize=256)
def _known(labels: tuple[str, ...]) -> _Known:
    by_fold: dict[str, list[str]] = {}
    by_bare: dict[str, list[str]] = {}
    for label in labels:
        by_fold.setdefault(_folded(label), []).append(label)
        by_bare.setdefault(_folded(bare_text(label)), []).append(label)
    written = sorted({_folded(label) for label in labels} | set(by_bare), key=len, reverse=True)
    words = [(each, r"\s+".join(map(re.escape, each.split()))) for each in written if each]
    first = "|".join(word for _, word in words) or "(?!)"
    other = "|".join(_bounded(each, word) for each, word in words) or "(?!)"
    return _Known(
        labels, by_fold, by_bare,
        re.compile(rf"(?P<open>[*_`\"'“‘«「]*+)(?P<label>{first})(?!\w)", re.IGNORECASE),
        re.compile(other, re.IGNORECASE),
    )  # fmt: skip


def _bounded(label: str, pattern: str) -> str:
    """Extend ``pattern`` to match only whole words; return it unchanged if the label's script has no spaces between words."""
    if any(unicodedata.category(char) == "Lo" for char in label):
        return pattern
    before = r"(?<!\w)" if re.match(r"\w", label) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", label) else ""
    return f"{before}{pattern}{after}"


_MIRROR = str.maketrans("“‘«「", "”’»」")
_REASON = r"(?:because|since|due\s+to|given)\b"
_SEPARATOR = re.compile(
    rf"[ \t]*(?:\r?\n|[.,;:!](?=\s|$)|[，。；：！、]|\s-{{1,2}}\s|[–—]|\s\(|（|\s(?={_REASON}))", re.IGNORECASE
)
_TAKEN_BACK = re.compile(
    r"\W*(?:or|and|but|not|no|nor|never|none|neither|n/a|maybe|perhaps|possibly|though|although|however|rather|instead|actually|wait|"
    r"hmm+|almost|nearly|if|unless|except|is|isn['’]?t|was|wasn['’]?t|are|would|could|might|may|can['’]?t|cannot|wrong|incorrect|"
    r"false|true|yes|unlikely|hardly|un(?:sure|certain|clear))(?!\w)"
    rf"|\W*[0-9]|\W*(?!(?:{_REASON})(?!\w))\w+\W*\Z|\s*[:/|&+]",
    re.IGNORECASE,
)
"""Matches text after a label that may continue the answer, such as "or", a single word or a number."""
_RETRACTED = re.compile(
    r"(?:^|[.!;:…—–\n]\s*+|-\s++)(?:or|wait|actually|no|nope|hmm+|scratch|correction|on\s+second|sorry|alternatively|rather|instead)(?!\w)"
    r"|\b(?:does|do|did|would|could|can)\s*(?:not|n['’]?t)\s+(?:apply|fit|match|describe)|\bnot\s+(?:applicable|the\s+(?:right|correct|best))"
    r"|\bruled\s+out\b|\bincorrect\b|\b(?:that|it|this)(?:['’]s|\s+is|\s+was|\s+would\s+be)\s+wrong\b|\bsecond\s+thoughts?\b"
    r"|\bscratch\s+that\b|\blet\s+me\s+(?:re|think|correct)|\b(?:not|no\s+one|nobody)\W*+\Z",
    re.IGNORECASE,
)


def _after(text: str, begins: "re.Match[str]") -> str | None:
    """Return the text after the label and its separator; None if no separator follows the label."""
    position = begins.end("label")
    marks = begins["open"]
    if marks:  # a mark before the label is closed after the label: **sad**, "sad." and **Sad:**
        closing = marks[::-1].translate(_MIRROR)
        inner = re.compile(r"[.,;:!]?").match(text, position)
        end = position if inner is None else inner.end()
        if text.startswith(closing, end) and end > position:
            rest = text[end + len(closing) :]
            return rest if rest[:1].isspace() else None
        if not text.startswith(closing, position):
            return None
        position += len(closing)
    separator = _SEPARATOR.match(text, position)
    return None if separator is None else text[separator.end() :]
