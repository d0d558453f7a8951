"""The output of ``knotwork run --stream``: the text of the final step, written to stdout while it arrives."""

import sys

from attrs import define, field

from ...events import CallDelta, CallRetried, Event, StepFinished
from .output import printable_text


@define
class AnswerStream:
    """Writes the parts of the answer of the step ``final`` to stdout.

    If a request is repeated, the parts so far are void: the answer begins again on a new line. ``text`` is what was written since then.
    """

    final: str
    text: str = ""
    _is_terminal: bool = field(factory=lambda: sys.stdout.isatty())

    def __call__(self, event: Event) -> None:
        """Process one event. Must be subscribed before displays, so that their lines do not begin inside the answer."""
        match event:
            case CallDelta(item=None) if event.step == self.final:
                self.text += event.text
                sys.stdout.write(printable_text(event.text) if self._is_terminal else event.text)
                sys.stdout.flush()
            case CallRetried(item=None, is_void=True) if event.step == self.final:
                self._end_line()
                self.text = ""
            case StepFinished() if event.step == self.final:
                self._end_line()
            case _:
                pass

    def _end_line(self) -> None:
        if self.text and not self.text.endswith("\n"):
            sys.stdout.write("\n")
            sys.stdout.flush()
