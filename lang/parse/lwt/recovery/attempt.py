"""A step that can't be read, and the means to try a mend: who explains it offers no edit that was not tried."""

import re
from collections.abc import Iterable

from ....diagnostic import Edit, apply_edits
from ..engine import Failure, StepRead, read_step
from ..shapes import FENCE, end_of_line

__all__ = ["Broken"]

_REST = re.compile(r"[ \t]*+[;,]?[ \t\r]*+(?:(?:#|//|--).*)?\Z")


_LINE = re.compile(r"^.*$", re.MULTILINE)


def _without_around(step: str) -> str:
    """Return the text of a step without the comments behind it, and without a fence that opens nothing."""
    fences = [line.start() for line in _LINE.finditer(step) if FENCE.match(step, line.start())]
    if len(fences) % 2:
        step = step[: fences[-1]]
    step = step.rstrip()
    while (line := step.rfind("\n") + 1) and step[line:].lstrip().startswith("#"):
        step = step[:line].rstrip()
    return step


class Broken:
    """A step with its head at ``start`` that can't be read; ``stop`` is where the next head stands."""

    def __init__(self, text: str, start: int, stop: int, failure: Failure) -> None:
        self.text, self.start, self.stop, self.failure = text, start, stop, failure
        self.name = text[start + 1 : text.index(")", start)]
        # A semicolon at the end of a line is a fault of its own; explain_rest has it once the step can be read.
        self.trimmed = start + len(_without_around(text[start:stop]).rstrip("; \t\r\n"))

    def _read_with(self, edits: Iterable[Edit]) -> tuple[StepRead | Failure, str]:
        local = [Edit(edit.span.shift(-self.start), edit.text) for edit in edits]
        mended = apply_edits(self.text[self.start : self.stop], local)
        return read_step(mended, 0), mended

    @property
    def is_followed(self) -> bool:
        """Whether comments or a fence stand behind the step: then the last of its lines may be no text of its own."""
        return self.text[self.trimmed : self.stop].strip("; \t\r\n") != ""

    def mended_by(self, *edits: Edit) -> bool:
        """Say whether the step reads to the end of its line once ``edits`` are made, a comment or semicolon left out."""
        read, mended = self._read_with(edits)
        if not isinstance(read, StepRead):
            return False
        return _REST.match(mended, read.end, end_of_line(mended, read.end)) is not None

    def opened_by(self, edit: Edit) -> bool:
        """Say whether reading comes past the place of ``edit``, once it is made, and ends outside of strings."""
        read, _ = self._read_with([edit])
        if isinstance(read, StepRead):
            return self.mended_by(edit)
        return not read.quote and self.start + read.offset > edit.span.start

    def furthered_by(self, *edits: Edit) -> bool:
        """Say whether the step reads once ``edits`` are made, or at least to a fault further on, outside strings."""
        if self.mended_by(*edits):
            return True
        read, mended = self._read_with(edits)
        if isinstance(read, StepRead) or read.quote:
            return False
        # Counted from the end: what the edits made longer or shorter lies before both places.
        return len(mended) - read.offset < self.stop - self.failure.offset - 1
