"""Sends the parts of an answer to a listener while it arrives. No part shows half a character or the beginning of an API key."""

from collections.abc import Callable, Sequence

from attrs import define, field

from .keys import hidden, masked_forms


@define
class DeltaSender:
    """Sends the parts of an answer to ``listener``; the keys are replaced by ``***``, as in the complete answer.

    The end of the text is held back while it may be the beginning of a key or half of a character, and, with ``is_stripped``, white space
    at both ends of the answer.
    """

    listener: Callable[[str], None]
    keys: Sequence[str] = ()
    is_stripped: bool = False
    _held: str = ""
    _has_begun: bool = False
    _forms: tuple[str, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._forms = masked_forms(tuple(self.keys))

    def add(self, text: str) -> None:
        """Add the next part of the answer, and send the text that need not wait."""
        text = self._held + text
        if self.is_stripped and not self._has_begun:
            text = text.lstrip()
        cut = len(text) - self._doubtful(text)
        self._held = text[cut:]
        self._send(text[:cut])

    def finish(self) -> None:
        """Send what was held back: the answer is complete."""
        text, self._held = self._held, ""
        self._send(text.rstrip() if self.is_stripped else text)

    def _send(self, text: str) -> None:
        try:
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            return  # not valid Unicode: the complete answer will be refused
        if text:
            self._has_begun = True
            self.listener(hidden(text, *self.keys))

    def _doubtful(self, text: str) -> int:
        """Return the length of the end of ``text`` that must wait for the next part."""
        most = 0
        for form in self._forms:
            for length in range(min(len(form), len(text)), most, -1):
                if text.endswith(form[:length]):
                    most = length
                    break
        if not most and text and "\ud800" <= text[-1] <= "\udbff":
            most = 1
        if self.is_stripped:
            most = max(most, len(text) - len(text.rstrip()))
        return most
