"""Explains missing quotes, and quotes inside the text of a prompt.

Finds the place of the missing or inner quote if it can be determined. If a quote is missing, there are often several places
where an added quote makes the step valid. Most of these places would make options part of the prompt. Therefore, text that
looks like options is never made part of a string. If the place is only a guess, the fault has a hint but no edit.
"""

import re
from collections.abc import Iterator

from ....diagnostic import Edit
from ....source import Span
from ...repairs import Fault, fault
from ..engine import reference_pattern
from ..shapes import OPTION_NAMES, Tail, delimits, loose_tail, option_tail, swallows
from .references import InvalidStep

_MOST = 5_000
"""Maximum number of quotes that are escaped in one prompt, each with its own edit. Text with more quotes is not a prompt."""
_TAIL = option_tail("[\"']")
_NAMED = re.compile(r"([A-Za-z_]\w*)[ \t]*=\s*\Z")


def unclosed_before_options(step: InvalidStep) -> Fault | None:
    """Explain ``"... , type="a" | "b")``. The closing quote of a string is missing, so the first quote of an option closes the string."""
    for opened in {step.failure.opened: 0, step.failure.first_string: 0}:
        if opened > step.start and (found := _unclosed_at(step, opened)):
            return found
    return None


def _unclosed_at(step: InvalidStep, opened: int) -> Fault | None:
    text, mark = step.text, step.text[opened]
    if text.startswith(('"""', "'''"), opened):
        return None
    tail = loose_tail(text, opened + 1, step.trimmed, is_expression=_is_expression(step, opened))
    if not tail or text[tail.start - 1] in "\"'" or _bare_quotes(text, opened + 1, tail.start, mark):
        return None
    edits = _before(step, tail, mark)
    return _unclosed_string(step, opened, mark, *edits) if edits or not tail.is_sure else None


def _before(step: InvalidStep, tail: Tail, mark: str) -> tuple[Edit, ...]:
    """Return the edit that closes a string.

    The closing quote is placed before the options ``tail``, or before a parenthesis that precedes these options.
    """
    at = tail.start
    places = [at, at - 1] if step.text[at - 1] == ")" else [at]
    candidates = [Edit(Span(place, place), mark) for place in places]
    other = _other_quote(step, at, mark)
    found = next((edit for edit in (*other, *candidates) if step.mended_by(edit)), None)
    if not found and len(candidates) == 1 and step.opened_by(candidates[0]):
        found = candidates[0]
    return (found,) if found and tail.is_sure else ()


def _other_quote(step: InvalidStep, end: int, mark: str) -> list[Edit]:
    """Return the edit for a string that ends at ``end`` in a quote of the wrong kind.

    The quote is replaced with ``mark``, the opening quote.
    """
    text = step.text
    last = text[end - 1 : end]
    if last not in ("'", '"') or last == mark:
        return []
    opened = text.rfind(mark, step.start, end - 1)
    if opened < 0 or (len(mark) == 1 and last in text[opened + 1 : end - 1]):
        return []
    return [Edit(Span(end - 1, end), mark)]


def _is_expression(step: InvalidStep, opened: int) -> bool:
    return step.text[max(step.start, opened - 20) : opened].replace(" ", "").endswith("=EXPR(")


def _unclosed_string(step: InvalidStep, opened: int, mark: str, *edits: Edit) -> Fault:
    what = f"this string of step ({step.name}) is not closed"
    return fault("LWT002", what, opened, opened + len(mark), f"write {mark} at the end of the string", edits=edits)


_VALUE = re.compile(r"[,(]\s{0,9}(?P<name>[A-Za-z_]\w{0,60})[ \t]{0,4}=[ \t]{0,4}(?=[^\s\"'\[{(=,)])")


def unopened_value(step: InvalidStep) -> Fault | None:
    """Explain ``model=small")``: an option's value has only its closing quote."""
    text, at = step.text, step.failure.offset
    if step.failure.after not in ("name", "value", "comma") or step.failure.quote:
        return None
    begun = None
    for found in _VALUE.finditer(text, max(step.start, at - 200), min(at + 1, step.trimmed)):
        begun = found
    closing = (
        re.compile(r"[^\"'\n]{0,2000}?([\"'])(?=\s{0,9}[,;|)]|\s{0,9}\Z)").match(text, begun.end(), step.trimmed)
        if begun
        else None
    )
    if not begun or not closing or closing.end() <= at:
        return None
    mark, begin = closing[1], begun.end()
    edit = Edit(Span(begin, begin), mark)
    if loose_tail(text, begin, closing.start(1), is_expression=False) or not step.furthered_by(edit):
        return None
    what = f"the value of {begun['name']}= has no opening quote"
    return fault("LWT005", what, begin, begin + 1, f"write {mark} before it", edits=(edit,))


def stray_quote(step: InvalidStep) -> Fault | None:
    """Explain ``LLM("Rate {(input)}"", type=int)``. A surplus quote is next to a quote of the string, or after another value."""
    text, at, failure = step.text, step.failure.offset, step.failure
    candidates: list[Span] = []
    if failure.after == "value" and text[at : at + 1] in ("'", '"'):
        is_inch = text[at - 1] == text[at] and text[at - 2].isdigit()
        count = 1 if text[at + 1 : at + 2] != text[at] else 2
        candidates += [] if is_inch else [Span(at, at + 1), Span(at, at + count)]
    if failure.after == "value" and text[at - 2 : at] in ('""', "''"):
        candidates.append(Span(at - 1, at))
    if failure.quote and _NAME_BEHIND.match(text, failure.opened + 1, step.trimmed):
        candidates.append(Span(failure.opened, failure.opened + 1))
    for span in candidates:
        edit = Edit(span, "")
        if step.mended_by(edit) or (_NAME_BEHIND.match(text, span.end, step.trimmed) and step.furthered_by(edit)):
            quote = text[span.start : span.end]
            message = f"surplus {'quote' if len(quote) == 1 else 'quotes'} {quote}"
            return fault("LWT004", message, span.start, span.end, "remove it", edits=(edit,), accepted=True)
    return None


_NAME_BEHIND = re.compile(rf"[ \t]*(?:{'|'.join(sorted(OPTION_NAMES))})[ \t]*=(?!=)")
_QUOTED_NAME = re.compile(rf"([\"'])({'|'.join(sorted(OPTION_NAMES))})\1[ \t]*\Z")


def quoted_name(step: InvalidStep) -> Fault | None:
    """Explain ``"type"=int``: an option's name in quotes."""
    text, at = step.text, step.failure.offset
    if step.failure.after != "value" or text[at : at + 1] != "=":
        return None
    found = _QUOTED_NAME.search(text[max(step.start, at - 60) : at])
    if not found:
        return None
    start = max(step.start, at - 60) + found.start()
    edit = Edit(Span(start, start + len(found[0].rstrip())), found[2])
    edits = (edit,) if step.furthered_by(edit) else ()
    return fault(
        "LWT005", "the name of an option cannot have quotes", start, edit.span.end, f"write {found[2]}=", edits=edits
    )


def inner_quotes(step: InvalidStep) -> Fault | None:
    """Explain an inner quote that ends the prompt too early. The possible ends of the prompt come from ``_closings``."""
    text = step.text
    for opened in _candidates(step):
        mark = text[opened]
        if text.startswith(mark * 3, opened):
            continue
        for closing in _closings(step, opened, mark):
            inner = _bare_quotes(text, opened + 1, closing, mark)
            if len(inner) > _MOST:
                continue
            if swallows(text, opened + 1, closing + 1):
                inner = _between_delimiters(text, opened + 1, closing, inner)
            edits = tuple(Edit(Span(i, i), "\\") for i in inner)
            if inner and step.furthered_by(*edits):
                many = "" if len(inner) == 1 else f" (and {len(inner) - 1} more)"
                message = f"an unescaped {mark} inside the prompt ends it{many}"
                hint = f"write \\{mark} inside the prompt, or put the prompt in {mark * 3}"
                return fault("LWT004", message, inner[0], inner[0] + 1, hint, edits=edits, accepted=True)
    return None


def _between_delimiters(text: str, start: int, end: int, inner: list[int]) -> list[int]:
    """Return those of the quotes ``inner`` in ``[start, end)`` that are text. The others delimit strings next to options.

    Return an empty list if this cannot be determined, because no quote delimits a string or because options would become text.
    """
    delimiters = {at for at in inner if delimits(text, at)}
    masked = list(text[start : end + 1])
    for at in delimiters:
        masked[at - start] = "\0"
    rest = "".join(masked)
    if not delimiters or swallows(rest, 0, len(rest)) or re.search(r"[\"']\s{0,9}\|\s{0,9}[\"']", rest):
        return []
    return [at for at in inner if at not in delimiters]


_ANY_NAME = re.compile(r"\bCALL\(\s{0,99}\Z")
"""The begin of a call whose options have the names that the host's function has."""


def _candidates(step: InvalidStep) -> Iterator[int]:
    """Yield the possible starts of the string that ended too early.

    The first is the start of an option's value, and the second is the start of the prompt.
    """
    opened, first = step.failure.opened, step.failure.first_string
    if first < 0:
        return
    named = _NAMED.search(step.text[max(step.start, opened - 60) : opened])
    any_name = _ANY_NAME.search(step.text, step.start, first) is not None
    if named and (any_name or named[1] in OPTION_NAMES) and opened != first:
        yield opened
    yield first


def _closings(step: InvalidStep, opened: int, mark: str) -> Iterator[int]:
    """Yield the offsets where the string may end.

    The offsets are, in this order, a quote before options, the last quote before a ``)``, and a quote at the end.
    """
    tails = [m for m in _TAIL.finditer(step.text, opened + 1, step.stop) if m[0][0] == mark]
    if tails:
        yield tails[-1].start()
    ends = re.compile(rf"{mark}\s{{0,99}}\)")
    last = -1
    for match in ends.finditer(step.text, opened + 1, step.stop):
        last = match.start()
    if last >= 0:
        yield last
    # The closing parenthesis may be missing.
    tail = loose_tail(step.text, opened + 1, step.trimmed, is_expression=_is_expression(step, opened))
    before = tail.start - 1 if tail and tail.is_sure else step.trimmed - 1
    if before > max(last, opened) and step.text[before] == mark:
        yield before


def _bare_quotes(text: str, start: int, end: int, mark: str) -> list[int]:
    """Return the offsets of unescaped ``mark`` in ``[start, end)`` outside references."""
    found: list[int] = []
    piece = re.compile(rf"{reference_pattern()}|\\[\\{mark}]|{mark}")
    for match in piece.finditer(text, start, end):
        if match[0] == mark:
            found.append(match.start())
    return found


def open_string(step: InvalidStep) -> Fault | None:
    """Explain a string that is not closed before the next head."""
    failure, text = step.failure, step.text
    # A quote in the next step closes an unclosed string, so parsing stops after this step.
    ran_on = failure.first_string >= 0 and failure.offset >= step.stop
    opened = failure.opened if failure.quote or ran_on else failure.first_string
    if opened < 0:
        return None
    mark = text[opened : opened + 3] if text.startswith(("'''", '"""'), opened) else text[opened]
    if not failure.quote and _bare_quotes(text, opened + len(mark), step.trimmed, mark):
        return None
    at = step.trimmed
    if not failure.quote and swallows(text, opened + len(mark), at):
        return None
    return _unclosed_string(step, opened, mark, *_closing_edits(step, opened, mark))


def _closing_edits(step: InvalidStep, opened: int, mark: str) -> tuple[Edit, ...]:
    """Return the edit that closes the string. The quote is placed before options, or else before the last parentheses, or else at the end.

    Return () if the string would include possible options, an unmatched closing bracket, or other paragraphs.
    """
    text, at = step.text, step.trimmed
    tail = loose_tail(text, opened + len(mark), at, is_expression=_is_expression(step, opened))
    if tail:
        return _before(step, tail, mark)
    inside = text[opened + len(mark) : at]
    if _ends_astray(inside) or swallows(text, opened + len(mark), at):
        return ()
    # A parenthesis that closes a parenthesis in the text is part of the text.
    open_ones = max(inside.count(")") - inside.count("("), 0)
    places = [at - count for count in (1, 2) if text[at - count : at] == ")" * count and count <= open_ones]
    candidates = [edit for place in places for edit in _other_quote(step, place, mark)]
    candidates += [Edit(Span(place, place), mark) for place in places]
    if not step.is_followed:
        candidates += [Edit(Span(at, at), mark + ")"), Edit(Span(at, at), mark)]
    found = next((edit for edit in candidates if step.mended_by(edit)), None)
    return (found,) if found else ()


def _ends_astray(inside: str) -> bool:
    last = inside[-1:]
    if last in ("]", "}") and inside.count(last) > inside.count("[" if last == "]" else "{"):
        return True
    return re.search(r"\n[ \t\r]*\n", inside) is not None
