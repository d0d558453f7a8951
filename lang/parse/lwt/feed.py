"""Reads a script that is still arriving: steps come out as soon as their text is whole. The reading is lenient."""

from ...diagnostic import has_errors
from ...lwt import MAX_STEPS, RESERVED, Script, Step
from ...source import Source, Span
from ..repairs import respan
from .engine import StepRead, read_step
from .envelope import open_thought
from .script import parse_lwt
from .shapes import HEAD, end_of_line, next_head

__all__ = ["StepFeed"]


_LONG = 4_000
"""Code points of a step that is still arriving up to which every line of it is a reason to look whether it is whole."""


class StepFeed:
    """Takes a script in pieces. A step is whole when a line's end follows its strict text, or when the next head has come."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._rest = ""
        self._offset = 0  # of the rest in the whole text
        self._begun: set[str] = set()
        self.is_doubtful = False
        """Whether something arrived that may change what was handed out: a fault, or a step whose id was there before."""
        self._parts = 0
        self._enough = 0  # the length of the rest at which it is looked at again

    @property
    def source(self) -> Source:
        """The text that has arrived."""
        return Source("".join(self._pieces), "<stream>")

    def feed(self, chunk: str) -> list[Step]:
        """Take the next piece and return the steps that are whole now, spans in the whole text."""
        self._pieces.append(chunk)
        self._rest += chunk
        # Only a line's end or a parenthesis can make a step whole; anything else needs no look at what is there.
        if not ("\n" in chunk or ")" in chunk) or len(self._rest) < self._enough or self._parts > MAX_STEPS:
            return []
        found = self._take()
        # A long step that is still arriving is not read again for every line of it: that would be quadratic.
        self._enough = len(self._rest) * 17 // 16 if len(self._rest) > _LONG else 0
        return found

    def close(self) -> tuple[list[Step], Script]:
        """Say that all text has arrived. Return the steps not handed out yet, and the whole script with diagnostics."""
        script = parse_lwt(self.source, "lenient")
        rest = [step for step in script.steps if step.id not in self._begun]
        self._begun.update(step.id for step in rest)
        return rest, script

    def _take(self) -> list[Step]:
        found: list[Step] = []
        text, at = self._rest, 0
        while True:
            end = self._whole_until(text, at)
            if end is None:
                break
            self._parts += 1
            if self._parts > MAX_STEPS:
                break  # close() refuses the script
            found += self._read(text[at:end], self._offset + at)
            at = end
        self._rest = text[at:]
        self._offset += at
        return found

    def _whole_until(self, text: str, at: int) -> int | None:
        """Return where the part that begins at ``at`` and is surely whole ends, or None while more must come."""
        first = at
        while first < len(text) and text[first] in " \t\r\n":
            first += 1
        line_end = end_of_line(text, first)
        if (thought := open_thought(text, first)) is not None:
            return thought if thought >= 0 else None
        if HEAD.match(text, first):
            read = read_step(text, first)
            if isinstance(read, StepRead):
                line_end = end_of_line(text, read.end)
                return line_end + 1 if line_end < len(text) else None
            following = next_head(text, first)
            return following if following < len(text) else None
        return line_end + 1 if line_end < len(text) else None

    def _read(self, part: str, offset: int) -> list[Step]:
        if "=" not in part:
            return []

        def move(span: Span) -> Span:
            return span.shift(offset)

        script = parse_lwt(part, "lenient")
        steps = [respan(step, move) for step in script.steps]
        new = [step for step in steps if step.id not in self._begun and step.id not in RESERVED]
        self.is_doubtful = self.is_doubtful or len(new) < len(steps) or has_errors(script.diagnostics)
        self._begun.update(step.id for step in new)
        return new
