"""Finds a text that every match of a pattern contains, so that a database can leave out strings that can't match.

A pattern is read token by token. The reader understands a part of RE2's syntax. Outside this part, it finds no text, and all strings
are tested by the pattern itself.
"""

import re
from typing import Literal

from attrs import frozen

Place = Literal["CONTAINS", "STARTS WITH", "ENDS WITH"]

_SPECIAL = frozenset(r"\.+*?()|[]{}^$")
_BREAKS = frozenset("dDwWsSbBntrfv")
"""Escaped letters that are one token without a text: classes, boundaries, and control characters."""
_REPETITION = re.compile(r"\{\d+(,\d*)?\}")


@frozen
class PatternText:
    """A text in every string that the pattern matches, and where it is in the string."""

    text: str
    place: Place = "CONTAINS"


def text_in(pattern: str) -> PatternText | None:
    """Return the longest text that is found in every string that the pattern matches; None if none is found.

    A text at the beginning or the end of the string is preferred to another text of the same length.
    """
    reader = _Reader(pattern)
    try:
        reader.read()
    except _Unknown:
        return None
    best: PatternText | None = None
    for found in reader.found:
        if best is None or _rank(found) > _rank(best):
            best = found
    return best


def _rank(found: PatternText) -> tuple[int, bool]:
    return len(found.text), found.place != "CONTAINS"


class _Unknown(Exception):
    """Raised for syntax that is not understood, and for an alternative outside groups."""


class _Reader:
    """Reads the texts outside groups and classes: runs of characters, each of which occurs at least once."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.found: list[PatternText] = []
        self._run: list[str] = []
        self._is_first = False
        """Whether the run begins at the beginning of the string."""

    def read(self) -> None:
        pattern = self.pattern
        while self.at < len(pattern):
            character = pattern[self.at]
            if character == "\\":
                self._escape()
            elif character == "[":
                self._class()
                self._end()
            elif character == "(":
                self._group()
                self._end()
            elif character == "^":
                is_begin = self.at == 0
                self._end()
                self._is_first = is_begin
                self.at += 1
            elif character == "$":
                self._end("ENDS WITH" if self.at == len(pattern) - 1 else "CONTAINS")
                self.at += 1
            elif character in "*?{":
                self._repetition()
            elif character == "+":
                self.at += 1
                self._end()
            elif character == ".":
                self._end()
                self.at += 1
            elif character in _SPECIAL:  # an alternative, or a bracket that is not open
                raise _Unknown
            else:
                self._run.append(character)
                self.at += 1
        self._end()

    def _end(self, place: Place = "CONTAINS") -> None:
        if self._run:
            if self._is_first:
                place = "STARTS WITH"
            self.found.append(PatternText("".join(self._run), place))
        self._run, self._is_first = [], False

    def _escape(self) -> None:
        following = self.pattern[self.at + 1 : self.at + 2]
        if following in _BREAKS and following:
            self._end()
        elif following and following.isascii() and following.isprintable() and not following.isalnum():
            self._run.append(following)
        else:
            raise _Unknown
        self.at += 2

    def _repetition(self) -> None:
        """Leave out the last character, which may be missing, or repeated any number of times."""
        if self.pattern[self.at] == "{":
            repetition = _REPETITION.match(self.pattern, self.at)
            if repetition is None:
                raise _Unknown
            self.at = repetition.end()
        else:
            self.at += 1
        if self._run:
            self._run.pop()
        self._end()

    def _class(self) -> None:
        """Skip a class of characters."""
        pattern, at = self.pattern, self.at + 1
        at += pattern[at : at + 1] == "^"
        first = at
        while at < len(pattern):
            if pattern[at] == "]" and at > first:
                self.at = at + 1
                return
            if pattern.startswith("[:", at):
                end = pattern.find(":]", at)
                if end < 0:
                    raise _Unknown
                at = end + 2
            else:
                at += 2 if pattern[at] == "\\" else 1
        raise _Unknown

    def _group(self) -> None:
        """Skip a group. A group with flags may change the meaning of what follows."""
        depth = 0
        while self.at < len(self.pattern):
            character = self.pattern[self.at]
            if character == "\\":
                if not self.pattern[self.at + 1 : self.at + 2] or self.pattern[self.at + 1] in "QE":
                    raise _Unknown
                self.at += 2
                continue
            if character == "[":
                self._class()
                continue
            if character == "(":
                if self.pattern.startswith("(?", self.at) and not self.pattern.startswith("(?:", self.at):
                    raise _Unknown
                depth += 1
            elif character == ")":
                depth -= 1
                if not depth:
                    self.at += 1
                    return
            self.at += 1
        raise _Unknown
