"""Explains the syntax of other languages in a step: ``f"..."``, ``+``, ``type: json``, ``yes|no``, tuples, unquoted expressions.

Each explainer takes an invalid step. An explainer returns a fault, or None if the syntax that it explains is not the cause.
"""

import re
from collections.abc import Iterator

from ....diagnostic import Edit
from ....source import Span
from ...repairs import Fault, fault, shortened
from ..engine import reference_pattern
from ..shapes import ID, OPTION_VALUE, REFERENCE, end_of_line, is_option, loose_tail, option_tail, swallows
from .references import InvalidStep, right_spelling


def _prefix(step: InvalidStep) -> Fault | None:
    """Explain ``f"..."``."""
    text, at = step.text, step.failure.offset
    found = re.search(r"\b[fFrRbBuU]{1,2}\Z", text[max(step.start, at - 4) : at])
    if step.failure.after != "name" or text[at : at + 1] not in ('"', "'") or not found:
        return None
    span = Span(at - len(found[0]), at)
    edits = (Edit(span, ""),) if step.furthered_by(Edit(span, "")) else ()
    message, hint = (
        f"a string cannot have a prefix: {found[0]}{text[at]}",
        f"remove the {found[0]}; a reference is {{(id)}}",
    )
    return fault("LWT005", message, span.start, at + 1, hint, edits=edits)


_STRING = r"""(?:"(?:{ref}|[^"\\]|\\.)*+"|'(?:{ref}|[^'\\]|\\.)*+')"""
_NAMED = r"(?:str\([ \t]*)?\(?[A-Za-z_][\w\-]*\)?\)?"


def _concatenation(step: InvalidStep) -> Fault | None:
    """Explain ``"..." + {(a)} + "..."``, and strings on consecutive lines. Python would join both."""
    text, at, failure = step.text, step.failure.offset, step.failure
    plus = text.startswith("+", at)
    below = text[at : at + 1] in ('"', "'") and "\n" in text[at - (len(text[:at]) - len(text[:at].rstrip())) : at]
    if failure.after not in ("value", "name") or failure.inside != "(" or not (plus or below):
        return None
    string = _STRING.format(ref=reference_pattern())
    operand = rf"(?:{string}|{reference_pattern()}|{_NAMED})"
    between = r"\s{0,99}\+\s{0,99}" if plus else r"\s{0,99}(?=[\"'])"
    chain = re.compile(rf"{operand}(?:{between}{operand})+", re.DOTALL)
    begin = _operand_before(step, at, operand)
    found = chain.match(text, begin, step.stop) if begin is not None else None
    if not found:
        return None
    edits = _one_string(found[0], operand, begin or 0)
    what = "strings cannot be joined with +" if plus else "two adjacent strings"
    hint = "write one string with references in it: " + '"... {(id)} ..."'
    good = edits if edits and step.mended_by(*edits) else ()
    if below and not good:
        return None
    return fault("LWT005", what, at, at + 1, hint, edits=good)


def _operand_before(step: InvalidStep, at: int, operand: str) -> int | None:
    """Return the start of the operand that ends directly before ``at``. Return None if no operand ends there."""
    end = len(step.text[:at].rstrip())
    opened = step.failure.opened
    for start in (opened, *(m.start() for m in re.finditer(rf"(?<=[(,\s]){operand}", step.text[step.start : end]))):
        begin = start if start == opened else start + step.start
        found = re.compile(operand, re.DOTALL).match(step.text, begin, end) if begin >= step.start else None
        if found and found.end() == end:
            return int(begin)
    return None


def _one_string(chain: str, operand: str, offset: int) -> tuple[Edit, ...]:
    """Return the edit that joins a chain of operands into one string.

    Return () if the contents of one operand conflict with the quotes of another.
    """
    pieces, mark = [], ""
    for found in re.finditer(operand, chain, re.DOTALL):
        piece = found[0]
        if piece[0] in ('"', "'"):
            mark = mark or piece[0]
            if piece[0] != mark and (mark in piece or "\\" in piece):
                return ()
            pieces.append(piece[1:-1])
        elif piece[0] == "{":
            pieces.append(piece)
        else:
            pieces.append(f"{{({piece.removeprefix('str').strip('() ')})}}")
    mark = mark or '"'
    return (Edit(Span(offset, offset + len(chain)), mark + "".join(pieces) + mark),)


def _choice(step: InvalidStep) -> Fault | None:
    """Explain ``type=yes|no``, ``type="yes" or "no"``, ``type=list[str]``."""
    text, at = step.text, step.failure.offset
    named = re.search(rf"\btype[ \t]*=[ \t]*({OPTION_VALUE})[ \t]*\Z", text[step.start : at])
    if not named or step.failure.after not in ("value", "name"):
        return None
    first = step.start + named.start(1)
    if words := re.compile(r"[\w\-]+(?:\s{0,4}\|\s{0,4}[\w\-]+)+").match(text, first):
        new = " | ".join(f'"{word.strip()}"' for word in words[0].split("|"))
        edit = Edit(Span(first, words.end()), new)
        return _fix(step, "the words of a choice need quotes", first, words.end(), f"write type={new}", edit)
    if named[1][0] in "\"'" and (mark := re.compile(r"(?:or\b|\|\||/|,)(?=\s*[\"'])").match(text, at)):
        edit = Edit(Span(at, mark.end()), "|")
        hint = 'write type="yes" | "no"'
        message = f"the words of a choice must be separated by |, not by {mark[0]!r}"
        return _fix(step, message, at, mark.end(), hint, edit)
    if inner := re.compile(r"\[[\w, \[\]]{0,60}\]").match(text, at):
        edit = Edit(Span(at, inner.end()), "")
        return _fix(step, "a type cannot have brackets", at, inner.end(), f"write type={named[1]}", edit)
    return None


def _fix(step: InvalidStep, message: str, start: int, end: int, hint: str, *edits: Edit) -> Fault | None:
    """Return the fault if parsing gets further with its edits. Otherwise return None: the step has a different fault."""
    return fault("LWT005", message, start, end, hint, edits=edits) if step.furthered_by(*edits) else None


def _wrong_mark(step: InvalidStep) -> Fault | None:
    """Explain ``type: json``, a semicolon in place of a comma, ``{"a" = 1}``, ``"a": 1`` without quotes."""
    text, at, failure = step.text, step.failure.offset, step.failure
    mark = text[at : at + 1]
    swap = Edit(Span(at, at + 1), "=" if mark == ":" else ":" if mark == "=" else ",")
    if mark == ":" and failure.after == "name" and failure.inside == "(":
        if _is_prose(step, at):
            return None
        space = re.compile(r":[ \t]*").match(text, at)
        swap = Edit(Span(at, space.end() if space else at + 1), "=")
        return _fix(step, "an option needs = before its value, not a colon", at, at + 1, "write =", swap)
    if mark == ";" and failure.after in ("value", "name"):
        message = "arguments and options must be separated by commas, not by a semicolon"
        return _fix(step, message, at, at + 1, "write ,", swap)
    if mark == "=" and failure.after == "key":
        return _fix(step, "a colon must separate key and value", at, at + 1, "write :", swap)
    key = re.compile(r"[A-Za-z_]\w*(?=\s{0,9}[:=])").match(text, at)
    if key and failure.inside == "{" and failure.after in ("object", "comma"):
        edit = Edit(Span(at, key.end()), f'"{key[0]}"')
        return _fix(step, f"the key {key[0]} needs quotes", at, key.end(), f'write "{key[0]}"', edit)
    return None


def _is_prose(step: InvalidStep, colon: int) -> bool:
    """Return whether the word before a colon begins an unquoted prompt, as in ``LLM(Next: ...``. If not, it is the name of an option."""
    found = re.search(r"\b(?:LLM|llm|Llm|ANSWER)[ \t]*\(\s*(\w+)[ \t]*\Z", step.text[step.start : colon])
    return found is not None and not is_option(found[1]) and not re.compile(r":\s*[\"']").match(step.text, colon)


_CLOSING = {"(": ")", "[": "]", "{": "}"}


def _brackets(step: InvalidStep) -> Fault | None:
    """Explain a closing bracket of the wrong kind, a tuple, or a reference without braces."""
    text, at, failure = step.text, step.failure.offset, step.failure
    mark, right = text[at : at + 1], _CLOSING.get(failure.inside, ")")
    if failure.after in ("value", "name") and mark and mark in ")]}" and mark != right:
        instead, before = Edit(Span(at, at + 1), right), Edit(Span(at, at), right)
        edit = next((e for e in (before, instead) if step.mended_by(e)), instead)
        message, hint = f"{mark} has no opening bracket here", f"write {right}"
        if edit == before:
            message, hint = f"{failure.inside} is not closed before this {mark}", f"write {right}{mark}"
        return _fix(step, message, at, at + 1, hint, edit)
    if mark != "(" or failure.after not in ("open", "comma", "list", "colon", "equals"):
        return None
    if found := re.compile(rf"\(({ID})\)").match(text, at):
        edit = Edit(Span(at, found.end()), f"{{({found[1]})}}")
        if not found[1].isdigit():
            return _fix(step, "a reference needs braces", at, found.end(), f"write {edit.text}", edit)
    close = text.find(")", at, step.stop)
    edits = (Edit(Span(at, at + 1), "["), Edit(Span(close, close + 1), "]"))
    if close > 0 and failure.after != "open" and step.furthered_by(*edits):
        return fault("LWT005", "a list needs square brackets", at, at + 1, "write [ ]", edits=edits)
    return None


def _between_values(step: InvalidStep) -> Fault | None:
    """Explain a missing comma or colon in a list or an object."""
    text, at, failure = step.text, step.failure.offset, step.failure
    calls = re.compile(r"[A-Z]+[ \t]*\(").match(text, at) is not None
    if (
        not (failure.inside in ("[", "{") or calls)
        or failure.after not in ("value", "name", "key")
        or at >= step.trimmed
    ):
        return None
    if _is_of_string(text, at):
        return None
    what, mark = ("a colon", ": ") if failure.after == "key" else ("a comma", ", ")
    behind = step.start + len(text[step.start : at].rstrip())
    edit = Edit(Span(behind, at), mark)
    if text[at] in ")]}" or not step.furthered_by(edit):
        return None
    return _fix(
        step, f"{what} is missing before {shortened(_word(text, at))}", at, at + 1, f"write {mark.strip()}", edit
    )


_BARE = re.compile(r"(?:for|in|if|else|and|or|not|is)\b|\[")


def _is_of_string(text: str, at: int) -> bool:
    """Return whether the text at ``at`` is not a value, but a part of a string or an expression whose quotes are misplaced."""
    if text[at - 1] in "\"'" and re.match(r"\w", text[at]):
        return True
    return re.search(r"\w\s*\Z", text[max(0, at - 99) : at]) is not None and _BARE.match(text, at) is not None


def _word(text: str, at: int) -> str:
    found = re.compile(r"[\w.\-]+|\"[^\"\n]*\"|'[^'\n]*'|.").match(text, at)
    return found[0] if found else ""


def _inline_comment(step: InvalidStep) -> Fault | None:
    """Explain ``# note`` after an argument."""
    text, at = step.text, step.failure.offset
    found = re.compile(r"#|//|--").match(text, at)
    if not found or step.failure.after not in ("value", "name", "comma", "open", "list", "object"):
        return None
    end = end_of_line(text, at)
    note = "# " + text[found.end() : end].strip()
    edits = (Edit(Span(step.start, step.start), note + "\n"), Edit(Span(at, end), ""))
    if not step.furthered_by(edits[1]):
        return None
    return fault("LWT005", "a comment must be on its own line", at, end, "move it above the step", edits=edits)


def _format_call(step: InvalidStep) -> Fault | None:
    """Explain ``"..." % a`` and ``"...".format(a)``."""
    found = re.compile(r"%|\.\s{0,9}\w+\(").match(step.text, step.failure.offset)
    before = step.text[: step.failure.offset].rstrip()[-1:]
    if not found or step.failure.after != "value" or (found[0] == "%" and before not in ("'", '"')):
        return None
    what = "%" if found[0] == "%" else found[0] + ")"
    hint = "write a reference in the prompt: {(id)}"
    return fault("LWT005", f"{what} cannot insert values into a string", found.start(), found.end(), hint)


_TAIL = option_tail("")


_FIRST_CLOSES = re.compile(rf"(?:{REFERENCE}|[^\"'])*+[\"'](?<=\w[\"'])\s{{0,9}},\s{{0,9}}[\"']")
"""Matches text whose first quote closes a string: ``x", "y``."""

_PROMPT = re.compile(r"\b(?:LLM|llm|Llm)[ \t]*\(\s*")


def _bare_prompt(step: InvalidStep) -> Fault | None:
    """Explain a prompt without quotes, or without its opening quote."""
    text, failure = step.text, step.failure
    begin = max((m.end() for m in _PROMPT.finditer(text, step.start, min(failure.offset + 1, step.stop))), default=-1)
    if (
        begin < 0
        or not re.compile(r"\w|\$?\{{1,2}\s?\(?\w").match(text, begin)
        or failure.after not in ("name", "open", "value", "string")
    ):
        return None
    if re.compile(r"[fFrRbBuU]{1,2}[\"']|[A-Za-z_]\w*\(|\w+\s*(?:=|:\s*[\"'])").match(text, begin):
        return None
    for end in _ends(text, begin, step.trimmed):
        mark = text[end - 1] if text[end - 1] in "\"'" else ""
        if mark and end - begin > 3 and text[end - 3 : end] == mark * 3:
            mark *= 3
        if not mark and text[begin:end].count("'") % 2 and re.search(r"\W'[ ,]", text[begin:end]):
            continue  # one of them is a quote, not an apostrophe
        if (
            swallows(text, begin, end)
            or loose_tail(text, begin, end, is_expression=False)
            or _FIRST_CLOSES.match(text, begin, end - 1)
        ):
            continue
        inner = (
            []
            if len(mark) == 3
            else [Edit(Span(i, i), "\\") for i in _quotes(text, begin, end - len(mark), mark or '"')]
        )
        edits = (Edit(Span(begin, begin), mark or '"'), *inner, *([] if mark else [Edit(Span(end, end), '"')]))
        if step.mended_by(*edits) or (mark and step.furthered_by(*edits)):
            what = "has no opening quote" if mark else "has no quotes"
            hint = f"write {mark or chr(34)} before it" + ("" if mark else " and after it")
            return fault("LWT005", f"the prompt of step ({step.name}) {what}", begin, begin + 1, hint, edits=edits)
    return None


def _ends(text: str, begin: int, trimmed: int) -> list[int]:
    """Return the offsets where an unquoted prompt may end: before options, after its closing quote, before a last parenthesis."""
    tails = [found.start() for found in _TAIL.finditer(text, begin, trimmed)]
    quotes = [found.start() + 1 for found in re.compile(r"[\"'](?=\s{0,9}[,)\]}])").finditer(text, begin, trimmed)]
    closing: list[int] = []
    at = trimmed
    while len(closing) < 3 and (at := text.rfind(")", begin, at)) >= 0:
        closing.append(begin + len(text[begin:at].rstrip()))
    return [*tails[-2:], *quotes[-1:], *closing]


def _quotes(text: str, begin: int, end: int, mark: str) -> list[int]:
    """Return the offsets of ``mark`` in ``[begin, end)`` outside references."""
    piece = re.compile(rf"{reference_pattern()}|\\[\\{mark}]|{mark}")
    return [found.start() for found in piece.finditer(text, begin, end) if found[0] == mark]


def _reference(step: InvalidStep) -> Fault | None:
    """Explain a misspelt reference outside strings. Such a reference may have brackets inside the braces, doubled braces, or spaces."""
    text, at = step.text, step.failure.offset
    if step.failure.after not in ("open", "comma", "equals", "list", "colon", "object") or at >= step.stop:
        return None
    begin = at
    while begin > step.start and text[begin - 1] in "{ ":
        begin -= 1
    begin += len(text[begin:at]) - len(text[begin:at].lstrip())
    found = right_spelling(text, begin, step.stop)
    if not found or text[found[0].start : found[0].end] == found[1]:
        return None
    span, right = found
    if re.match(r"[\w\"']", text[span.end : span.end + 1]):
        return None  # these are the first words of a prompt without an opening quote
    what = f"`{shortened(text[span.start : span.end], 60)}` is not a reference"
    return _fix(step, what, span.start, span.end, f"write {shortened(right, 60)}", Edit(span, right))


FOREIGN = (
    _prefix, _reference, _concatenation, _choice, _bare_prompt, _wrong_mark, _brackets, _inline_comment, _format_call,
)  # fmt: skip
"""Explainers in the order of their calls. Each comes before explainers that would misread its fault, and before ``inner_quotes``."""

LATE = (_between_values,)
"""Explainers that run after ``inner_quotes`` and ``open_string``."""


# Unquoted expressions: ``when={(score)} > 3``, ``EXPR(n + 1, n={(a)})``.

_BEGIN = re.compile(r"(?P<what>\bwhen[ \t]{0,9}=|=[ \t]{0,9}EXPR[ \t]{0,9}\()\s{0,9}(?=[^\s\"'=])")
_END = re.compile(r"\s{0,99}(?:,\s{0,99}[A-Za-z_]\w{0,60}[ \t]{0,9}=(?!=)|,?\s{0,99}\))")
_LONGEST = 2_000
"""Maximum length in code points of an unquoted expression; a longer expression must be in quotes."""
_LONGEST_STEP = 20_000
"""Maximum length in code points of a step with an unquoted expression: it is read again for each possible end."""
_MOST_ENDS = 4


def bare_expression(step: InvalidStep) -> Fault | None:
    """Return the fault of an unquoted expression, with the edits that add quotes."""
    text, at = step.text, step.failure.offset
    if step.failure.after not in ("value", "name", "open", "equals") or step.failure.quote:
        return None
    if step.trimmed - step.start > _LONGEST_STEP:
        return None
    begun = [found for found in _BEGIN.finditer(text, step.start, min(at + 1, step.stop)) if found.end() <= at]
    if not begun or at - begun[-1].end() > _LONGEST:
        return None
    begin = begun[-1].end()
    if unopened := _unopened(step, begin):
        return unopened
    for end in _expression_ends(step, begin, at):
        mark = _mark(text[begin:end])
        edits = (Edit(Span(begin, begin), mark), Edit(Span(end, end), mark))
        if mark and _is_paired(text[begin:end]) and step.mended_by(*edits):
            head = "when=" if begun[-1]["what"].startswith("when") else "EXPR("
            hint = f"write {head}{mark}{shortened(text[begin:end], 60)}{mark}"
            return fault("LWT005", "an expression needs quotes", begin, end, hint, edits=edits)
    return None


_CLOSING_BRACKETS = re.compile(r"[\"'](?=\s{0,9}(?:[,;]\s{0,9}[A-Za-z_]\w{0,60}[ \t]*[=:]|,?\s{0,9}\)|\s{0,9}\Z))")


def _unopened(step: InvalidStep, begin: int) -> Fault | None:
    """Explain an expression that has a closing quote but no opening quote. This quote is before the options or at the end."""
    text, end = step.text, min(step.trimmed, begin + _LONGEST)
    for found in _CLOSING_BRACKETS.finditer(text, begin, end):
        mark, at = found[0], found.start()
        inside = re.sub(REFERENCE, "", text[begin:at])
        edit = Edit(Span(begin, begin), mark)
        if mark not in inside and step.furthered_by(edit):
            message = "this expression has no opening quote"
            return fault("LWT005", message, begin, begin + 1, f"write {mark} before it", edits=(edit,))
    return None


def _expression_ends(step: InvalidStep, begin: int, at: int) -> Iterator[int]:
    """Yield the possible ends of the expression: before each later option, then before each parenthesis from the last to the first."""
    found = list(_END.finditer(step.text, at, min(step.trimmed, begin + _LONGEST)))
    options = [match.start() for match in found if match[0].rstrip()[-1] == "="]
    closing = [match.start() for match in found if match[0].rstrip()[-1] == ")"]
    yield from options[:_MOST_ENDS]
    yield from reversed(closing[-_MOST_ENDS:])


def _mark(expression: str) -> str:
    """Return the kind of quote, single or double, that the expression does not contain; "" if it contains both.

    Quotes in references are ignored.
    """
    own = re.sub(REFERENCE, "", expression)
    return '"' if '"' not in own else "'" if "'" not in own else ""


def _is_paired(expression: str) -> bool:
    """Return whether every quote in the expression is paired."""
    own = re.sub(REFERENCE, "", expression)
    return re.sub(r"\"[^\"]*\"|'[^']*'", "", own).count('"') == 0 and own.count("'") % 2 == 0
