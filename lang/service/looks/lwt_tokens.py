"""The tokens of a script. A step begins at a head and ends at its closing parenthesis; what stands between steps has none."""

import re
from collections.abc import Iterator
from functools import cache

from ...parse.lwt.engine import reference_pattern
from ...parse.lwt.shapes import HEAD
from ..memory import Memory
from ..model import Token, TokenType

__all__ = ["lwt_tokens"]

_OUTSIDE = re.compile(
    rf"^[ \t]*+(?:(?P<comment>\#[^\n]*+)|(?={HEAD.pattern})(?P<head>\([^)]*+\)[ \t]*+)=)", re.MULTILINE
)
_CONSTANTS = frozenset({"true", "false", "null"})
_NAME = re.compile(r"\{\((?P<name>[^)]*)\)\}")


@cache
def _inside() -> re.Pattern[str]:
    ref = reference_pattern()
    return re.compile(
        r'(?P<string>"""(?:[^"\\]++|\\.|"(?!""))*+(?:"""|\Z)'
        r"|'''(?:[^'\\]++|\\.|'(?!''))*+(?:'''|\Z)"
        rf"""|"(?:[^"\\{{]++|\\.|(?!{ref})\{{|{ref})*+"?|'(?:[^'\\{{]++|\\.|(?!{ref})\{{|{ref})*+'?)"""
        rf"|(?P<reference>{ref})"
        r"|(?P<number>-?[0-9][0-9.]*+(?:[eE][+-]?[0-9]++)?)"
        r"|(?P<operation>[A-Za-z_]\w*+)(?=[ \t]*+\()|(?P<option>[A-Za-z_]\w*+)(?=[ \t]*+=)|(?P<word>[A-Za-z_]\w*+)"
        r"|(?P<operator>[=|])|(?P<open>[(\[{])|(?P<close>[)\]}])",
        re.DOTALL,
    )


def lwt_tokens(text: str, lines: Memory) -> Iterator[Token]:
    """Yield the tokens of the text, in order. Steps on one line that ``lines`` knows are not looked at again."""
    at = 0
    while match := _OUTSIDE.search(text, at):
        end = text.find("\n", match.end())
        end = len(text) if end < 0 else end
        kept = lines.of(text[match.start() : end], _line)
        if kept is not None:
            for start, stop, kind in kept:
                yield Token(match.start() + start, match.start() + stop, kind)
            at = end
            continue
        found: list[Token] = []
        at, _ = _collect(text, match, found)
        yield from found


def _line(line: str) -> tuple[Token, ...] | None:
    """Return the tokens of a line that is a comment or a whole step; None where the step goes on."""
    match = _OUTSIDE.match(line)
    found: list[Token] = []
    return tuple(found) if match is not None and _collect(line, match, found)[1] else None


def _collect(text: str, match: re.Match[str], found: list[Token]) -> tuple[int, bool]:
    """Collect the tokens of the comment or step that ``match`` begins; return where it ends, and whether it surely does."""
    if match["comment"] is not None:
        start = match.start("comment")
        found.append(Token(start, start + len(match["comment"].rstrip()), "comment"))
        return match.end(), True
    start = match.start("head")
    found.append(Token(start + 1, start + match["head"].index(")"), "step"))
    found.append(Token(match.end() - 1, match.end(), "operator"))
    return _step(text, match.end(), found)


_TYPES: dict[str, TokenType] = {
    "number": "number", "operation": "function", "option": "property", "operator": "operator",
}  # fmt: skip


def _step(text: str, at: int, found: list[Token]) -> tuple[int, bool]:
    """Collect the tokens of a step behind its head; return where it ends, and whether its last parenthesis is there."""
    depth = 0
    for match in _inside().finditer(text, at):
        kind = match.lastgroup or ""
        start, end = match.span()
        if not depth and kind != "open" and (kind != "operation" or "\n" in text[at:start]):
            return max(at, text.find("\n", at, start) + 1), False  # no call stands behind the head
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
            if depth <= 0:
                return end, True
        elif kind == "string":
            found += _string(text, start, end)
        elif kind == "reference":
            found += _reference(text, start, end)
        elif kind == "word":
            found.append(Token(start, end, "keyword" if match[0] in _CONSTANTS else "type"))
        else:
            found.append(Token(start, end, _TYPES[kind]))
        at = end if not depth else at
    return len(text), False


@cache
def _reference_or_line() -> re.Pattern[str]:
    return re.compile(rf"(?P<reference>{reference_pattern()})|\r?\n")


def _string(text: str, start: int, end: int) -> Iterator[Token]:
    if "\n" not in text[start:end] and "{(" not in text[start:end]:
        yield Token(start, end, "string")
        return
    at = start
    for match in _reference_or_line().finditer(text, start, end):
        if match.start() > at:
            yield Token(at, match.start(), "string")
        if match["reference"]:
            yield from _reference(text, match.start(), match.end())
        at = match.end()
    if end > at:
        yield Token(at, end, "string")


def _reference(text: str, start: int, end: int) -> Iterator[Token]:
    name = _NAME.match(text, start)
    if name is not None:
        yield Token(start, start + 2, "operator")
        yield Token(*name.span("name"), "step")
        yield Token(name.end() - 2, name.end(), "operator")
        if end > name.end():
            yield Token(name.end(), end, "property")
