"""A step that can't be read, and the means to try a mend: who explains it offers no edit that was not tried."""

import re
from collections.abc import Iterable

from ...diagnostic import Edit, apply_edits
from ...operations import COMMON_OPTIONS, LLM_OPTIONS
from .engine import Failure, StepRead, read_step
from .shapes import end_of_line

__all__ = ["OPTION_VALUE", "REFERENCE", "Broken", "option_tail"]

OPTION_VALUE = r"""(?:"[^"\n]*"(?:\s{0,4}\|\s{0,4}"[^"\n]*")*|'[^'\n]*'(?:\s{0,4}\|\s{0,4}'[^'\n]*')*|[\w.\-]+)"""
"""An option's value on one line, as far as it can be told from a prompt's text."""

REFERENCE = r"\{\([\w.\-]{1,60}\)\}(?:\[[^\[\]\n]{0,60}\]){0,9}"
"""A reference on one line, as far as it can be told from a prompt's text."""


def option_tail(before: str) -> re.Pattern[str]:
    """Return the pattern of ``before``, at least one of LLM's options, or a value of EXPR's, and the closing parenthesis."""
    names = "|".join((*LLM_OPTIONS, *COMMON_OPTIONS))
    return re.compile(
        rf"{before}(?:\s{{0,9}},\s{{0,9}}(?:(?:{names})\s{{0,4}}=\s{{0,4}}{OPTION_VALUE}"
        rf"|[A-Za-z_]\w{{0,60}}\s{{0,4}}=\s{{0,4}}{REFERENCE})){{1,9}}\s{{0,9}},?\s{{0,9}}\)"
    )


_REST = re.compile(r"[ \t]*+[;,]?[ \t\r]*+(?:(?:#|//|--).*)?\Z")


class Broken:
    """A step with its head at ``start`` that can't be read; ``stop`` is where the next head stands."""

    def __init__(self, text: str, start: int, stop: int, failure: Failure) -> None:
        self.text, self.start, self.stop, self.failure = text, start, stop, failure
        self.name = text[start + 1 : text.index(")", start)]
        # A semicolon at the end of a line is a fault of its own; explain_rest has it once the step can be read.
        self.trimmed = start + len(text[start:stop].rstrip("; \t\r\n"))

    def _read_with(self, edits: Iterable[Edit]) -> tuple[StepRead | Failure, str]:
        local = [Edit(edit.span.shift(-self.start), edit.text) for edit in edits]
        mended = apply_edits(self.text[self.start : self.stop], local)
        return read_step(mended, 0), mended

    def mended_by(self, *edits: Edit) -> bool:
        """Say whether the step reads to the end of its line once ``edits`` are made, a comment or semicolon left out."""
        read, mended = self._read_with(edits)
        if not isinstance(read, StepRead):
            return False
        return _REST.match(mended, read.end, end_of_line(mended, read.end)) is not None

    def furthered_by(self, *edits: Edit) -> bool:
        """Say whether the step reads once ``edits`` are made, or at least to a fault further on, outside strings."""
        if self.mended_by(*edits):
            return True
        read, mended = self._read_with(edits)
        if isinstance(read, StepRead) or read.quote:
            return False
        # Counted from the end: what the edits made longer or shorter lies before both places.
        return len(mended) - read.offset < self.stop - self.failure.offset - 1
