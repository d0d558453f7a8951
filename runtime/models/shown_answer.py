"""An answer that is shown to the reader while it arrives: its parts become events, and together they are exactly the answer."""

from attrs import define, field

from ..events import CallDelta, CallRetried, Events


@define
class ShownAnswer:
    """The parts of one call's answer that were shown so far. Parts that arrive after the end of the call are ignored (``is_closed``)."""

    events: Events
    step: str
    item: int | None
    call: int
    is_closed: bool = False
    _parts: list[str] = field(factory=list)

    def add(self, text: str) -> None:
        """Show the next part."""
        if text and not self.is_closed:
            self._parts.append(text)
            self.events.emit(CallDelta(self.step, text, self.item, self.call))

    def void(self) -> bool:
        """Forget what was shown, because the request is repeated. Return whether anything was shown."""
        had = bool(self._parts)
        self._parts.clear()
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
