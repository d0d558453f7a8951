"""An answer that is shown to the reader while it arrives: its parts become events, and together they are exactly the answer."""

from attrs import define, field

from ...lang.thoughts import shown_beginning
from ..events import CallDelta, CallRetried, Events

_LONGEST_TAG = 32
_TAG_END = frozenset(">]\u25b7")


@define
class ShownAnswer:
    """The parts of one call's answer that were shown so far. Parts that arrive after the end of the call are ignored (``is_closed``).

    The model's thoughts at the beginning of the answer are not shown.
    """

    events: Events
    step: str
    item: int | None
    call: int
    is_closed: bool = False
    _parts: list[str] = field(factory=list)
    _held: str = ""

    def add(self, text: str) -> None:
        """Show the next part."""
        if not text or self.is_closed:
            return
        if not self._parts:
            self._held += text
            if len(self._held) > _LONGEST_TAG and not _TAG_END.intersection(text):
                return
            text = shown_beginning(self._held)
        if text:
            self._held = ""
            self._parts.append(text)
            self.events.emit(CallDelta(self.step, text, self.item, self.call))

    def void(self) -> bool:
        """Forget what was shown, because the request is repeated. Return whether anything was shown."""
        had = bool(self._parts)
        self._parts.clear()
        self._held = ""
        return had

    def complete(self, text: str) -> None:
        """Make sure that the shown parts are ``text``, the complete answer.

        An answer that was not shown in parts, such as one from the cache, is shown as one part. If the parts differ from the answer, they
        are declared void, and the answer is shown as one part.
        """
        if "".join(self._parts) == text:
            return
        if self.void():
            reason = "the complete answer differs from the parts that were shown"
            self.events.emit(CallRetried(self.step, "shown", 1, reason, self.item, self.call, True))
        self.events.emit(CallDelta(self.step, text, self.item, self.call))
