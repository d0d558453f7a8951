"""Strings as people write them: typographic quotes, three quotes, prefixes, escapes that there are not, no end."""

import json
import re
from collections.abc import Callable

from attrs import frozen

from ....diagnostic import Edit
from ....source import Span
from ...fault import Fault, fault, shown
from ..literals import mended, unescaped

__all__ = ["Quoted", "quoted"]

_CURLY = re.compile(
    '[\u201c\u201d\u201e\u00ab]([^\u201c\u201d\u00bb"]*)[\u201c\u201d\u00bb"]|'
    "[\u2018\u2019\u201a]([^\u2018\u2019']*)[\u2018\u2019']"
)
_TRIPLE = re.compile(r'"""((?:[^"\\]|\\.|"(?!""))*)"""|' + r"'''((?:[^'\\]|\\.|'(?!''))*)'''", re.DOTALL)
_PLAIN = re.compile(r'"((?:[^"\\]|\\.)*)"|' + r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_CLOSERS = re.compile(r"[\s)\]}]*\Z")
_RAW = re.compile(r"[\x00-\x1f]")


@frozen
class Quoted:
    """A string: where it ends, and its value; None where it has none that is sure."""

    end: int
    value: str | None


def quoted(text: str, at: int, level: int, report: Callable[[Fault], None]) -> Quoted:
    """Read the string that begins at ``at``, perhaps with a prefix, inside ``level`` brackets."""
    begin = at
    while text[at].isalpha():
        at += 1
    prefix = text[begin:at].lower()
    if found := _TRIPLE.match(text, at):
        body = found[1] if found[1] is not None else found[2]
        if not prefix:
            edit = Edit(Span(at, found.end()), _written(body))
            report(fault("EXPR024", "a string has one quote on each side, not three", *found.span(), edits=(edit,)))
            return Quoted(found.end(), json.loads(edit.text))
    elif found := _PLAIN.match(text, at):
        body = found[1] if found[1] is not None else found[2]
    elif found := _CURLY.match(text, at):
        body = found[1] if found[1] is not None else found[2]
        if not prefix:
            right = json.dumps(body, ensure_ascii=False)
            hint = f"write {shown(right)}"
            edit = Edit(Span(*found.span()), right)
            report(fault("EXPR019", "the quotes are not those of the keyboard", *found.span(), hint, edits=(edit,)))
            return Quoted(found.end(), body)
    else:
        return _unclosed(text, begin, at, level, report)
    if prefix:
        return _prefixed(text, begin, found, prefix, body, report)
    return Quoted(found.end(), _checked(at + 1, body, report))


def _checked(start: int, body: str, report: Callable[[Fault], None]) -> str | None:
    """Return the value of ``body``, which begins at ``start``, and report what can't stand in a string."""
    right = body
    for match in _RAW.finditer(body):
        at = start + match.start()
        named = "a line break" if match[0] in "\r\n" else "a tab" if match[0] == "\t" else "a control character"
        escape = json.dumps(match[0])[1:-1]
        backslash = body[: match.start()].endswith("\\") and unescaped(body[: match.start()] + "\\") is not None
        edits = () if backslash else (Edit(Span(at, at + 1), escape),)
        report(fault("EXPR024", f"{named} stands in a string", at, at + 1, f"write {escape}", edits=edits))
    right, wrong = mended(_printable(body))
    for begin, end in wrong if right.count("\\") == body.count("\\") + len(wrong) else ():
        edit = Edit(Span(start + begin, start + begin + 1), "\\\\")
        message = f"strings have no {shown(body[begin:end])}"
        hint = "write two backslashes for one"
        report(fault("EXPR024", message, start + begin, start + end, hint, edits=(edit,)))
    return unescaped(right)


def _printable(body: str) -> str:
    """Return ``body`` with escapes for the control characters in it."""
    return _RAW.sub(lambda match: json.dumps(match[0])[1:-1], body)


def _written(body: str) -> str:
    """Return a string literal for ``body``, the inside of a string in three quotes."""
    right = _printable(body)
    value = unescaped(right)
    return json.dumps(value if value is not None else body, ensure_ascii=False)


def _unclosed(text: str, begin: int, at: int, level: int, report: Callable[[Fault], None]) -> Quoted:
    """Close a string at the end of the text, before the brackets that are open there."""
    quote = text[at] if text[at] in "\"'" else '"'
    tail = _CLOSERS.search(text, at + 1)
    end = len(text)
    if tail:
        closers = [found for found in range(tail.start(), end) if text[found] in ")]}"]
        end = (
            closers[-level]
            if level and len(closers) >= level
            else len(text.rstrip())
            if not level or not closers
            else closers[0]
        )
        end = max(end, at + 1)
        end = at + 1 + len(text[at + 1 : end].rstrip())
    body = text[at + 1 : end]
    sure = not re.search(r"[\"'\\\x00-\x1f]", body) and begin == at and text[at] == quote and bool(body)
    edits = (Edit(Span(end, end), quote),) if sure else ()
    report(fault("EXPR004", "the string is not closed", at, end, f"write {quote} at its end", edits=edits))
    return Quoted(end, body if sure else None)


def _prefixed(
    text: str, begin: int, found: "re.Match[str]", prefix: str, body: str, report: Callable[[Fault], None]
) -> Quoted:
    """Read ``r"..."``, ``b"..."``, ``u"..."``; what ``f"..."`` says is the reader's matter."""
    end = found.end()
    if "f" in prefix:
        return Quoted(end, None)
    given = text[begin : found.start()]
    value = body if "r" in prefix else unescaped(_printable(body))
    edits = (Edit(Span(begin, end), json.dumps(value, ensure_ascii=False)),) if value is not None else ()
    hint = f"leave {given} out" if edits else ""
    report(fault("EXPR015", f"a string has no {given} before it", begin, end, hint, edits=edits))
    return Quoted(end, value)
