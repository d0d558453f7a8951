"""The arguments of a tool's call as text: numbers, paths, and steps, whose own quotes need no escapes.

A step ends where what was written so far is a step: the first quote from which on the call is closed and before which the
text is one step without a fault. Where no such place is, it is read up to the end of a line before the next call, and the linter
tells what is wrong with it. What can be read in neither way is no argument.
"""

import re
from collections.abc import Callable, Iterator

from attrs import define

from ...lang.parse.lwt import parse_lwt
from ...lang.source import Source

__all__ = ["AFTER", "CLOSE", "Reader"]

_REMARK = r"(?:(?:#|//|/\*|--|[\u2013\u2014\u2192]|->|:|- )[^\n]*|,?[ \t]*(?:and[ \t]+)?then[ \t]*:?[ \t]*)?"
AFTER = re.compile(rf"[ \t]*+[;.,]?\**+`{{0,3}}+\**+[ \t]*+\|?+(?:</tool_call>)?[ \t]*+{_REMARK}[ \t]*+(?=\r?\n|\Z)")
"""What may stand behind a call on its line: ends of dress, and a remark that is marked as one."""
CLOSE = re.compile(r"\s*+,?\s*+\)")
_NUMBER = re.compile(r"\s*(?:\"(-?\d{1,9})\"|'(-?\d{1,9})'|(-?\d{1,9}))\s*(?=[,)])")
_STRINGS = (
    re.compile(r'\s*"""(?P<body>.*?)"""\s*(?=[,)])', re.DOTALL),
    re.compile(r"\s*'''(?P<body>.*?)'''\s*(?=[,)])", re.DOTALL),
    re.compile(r'\s*"(?P<body>[^"\\]*(?:\\.[^"\\]*)*)"\s*(?=[,)])', re.DOTALL),
    re.compile(r"\s*'(?P<body>[^'\\]*(?:\\.[^'\\]*)*)'\s*(?=[,)])", re.DOTALL),
)
_ESCAPED = re.compile(r"\\([\"'\\])")
_OPENED = re.compile(r"\s*(\"\"\"|'''|\"|'|\u201c)?")
_CURLY = {"\u201c": "\u201d"}
_LOOSE_END = re.compile(r"(?P<quote>[\"'\u201d]{0,3})(?<![ \t])[ \t]*+\)(?=[^)]|\Z)")
_STEP = re.compile(r"\s*\([\w.\-]{1,80}\)\s*=\s*[A-Z]\w*\s*\(")
_LINE_END = re.compile(r"[ \t]*+(?=\r?\n|\Z)")
_TRIES = 48
"""Ends of one step that are looked at."""
_PARSED = 60_000
"""Characters of one answer that are parsed to find out where steps end."""


@define
class Reader:
    """Reads the arguments of one answer's calls. ``next_call`` gives the place of the next line that begins a call."""

    text: str
    next_call: Callable[[int], int]
    _left: int = _PARSED

    def number(self, at: int) -> tuple[int, int] | None:
        """Return the whole number that begins at ``at``, and where it ends."""
        written = _NUMBER.match(self.text, at)
        return None if written is None else (int(written[1] or written[2] or written[3]), written.end())

    def path(self, at: int) -> tuple[str, int] | None:
        """Return the path that begins at ``at``, and where it ends: before the parenthesis."""
        if (written := self._quoted(at)) is not None:
            return written
        end = self.text.find("\n", at)
        return self._loose(at, len(self.text) if end < 0 else end)

    def step(self, at: int) -> tuple[str, int] | None:
        """Return the step that begins at ``at``, and where it ends: before the parenthesis, or at a line's end where that is missing."""
        if (written := self._quoted(at)) is not None:
            return written
        return self._parsed(at) or self._loose(at, self.next_call(at))

    def _quoted(self, at: int) -> tuple[str, int] | None:
        """Read a text whose quotes are as a program has them."""
        for pattern in _STRINGS:
            found = pattern.match(self.text, at)
            closed = CLOSE.match(self.text, found.end()) if found is not None else None
            if found is not None and closed is not None and AFTER.match(self.text, closed.end()):
                return _ESCAPED.sub(r"\1", found["body"]), found.end()
        return None

    def _parsed(self, at: int) -> tuple[str, int] | None:
        """Read a step up to the first place where it is whole: where the call is closed; else at a line's end."""
        quote, start = self._opened(at)
        if not _STEP.match(self.text, start):
            return None
        for missing in (False, True):
            for end, behind in self._ends(start, quote, missing=missing):
                body = (
                    _ESCAPED.sub(r"\1", self.text[start:end]) if "\\" in self.text[start:end] else self.text[start:end]
                )
                if self._is_step(body):
                    return body, behind
        return None

    def _ends(self, start: int, quote: str, *, missing: bool) -> Iterator[tuple[int, int]]:
        """Yield where a step may end, and where its quotes do."""
        at = start
        for _ in range(_TRIES):
            at = self.text.find(f"){quote}", at)
            if at < 0:
                return
            at += 1
            behind = at + len(quote)
            if missing:
                if _LINE_END.match(self.text, behind):
                    yield at, behind
                continue
            closed = CLOSE.match(self.text, behind)
            if closed is not None and AFTER.match(self.text, closed.end()):
                yield at, behind

    def _is_step(self, body: str) -> bool:
        """Say whether a text is one step, and nothing about it is wrong."""
        self._left -= len(body)
        if self._left < 0:
            return False
        read = parse_lwt(Source(body, "<step>"), "strict")
        return len(read.steps) == 1 and not read.diagnostics

    def _opened(self, at: int) -> tuple[str, int]:
        """Return the quote that closes what opens at ``at``, and where the text begins."""
        opened = _OPENED.match(self.text, at)
        quote = (opened[1] or "") if opened else ""
        return _CURLY.get(quote, quote), opened.end() if opened else at

    def _loose(self, at: int, following: int) -> tuple[str, int] | None:
        """Read a text with quotes in it that are not escaped, or without quotes: up to the end of a line before ``following``."""
        text = self.text
        quote, start = self._opened(at)
        if not quote and text[start : start + 1] not in ("(", "i"):  # a step, or a path: items[5]
            return None
        found = (end for end in _LOOSE_END.finditer(text, start, following) if end["quote"].endswith(quote))
        ends = [end for end in found if AFTER.match(text, end.end())]
        if not ends:
            return None
        if not quote:
            end = ends[0] if text[start] == "i" else ends[-1]
            close = text.index(")", end.end("quote"))
            return text[start:close].strip(), close
        end = ends[-1]
        return _ESCAPED.sub(r"\1", text[start : end.end("quote") - len(quote)]), end.end("quote")
