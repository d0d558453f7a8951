"""Where the text of a program or an expression inside a script stands in the script, and its diagnostics told there."""

from collections.abc import Iterable

from ...diagnostic import Diagnostic, Edit
from ...embedding import Embedded
from ...lwt import Reference, Template, Text
from ...source import Source, Span
from .registry import Context

__all__ = ["Places", "outside", "placeholder"]


def placeholder(_: Reference) -> str:
    """Stand for a text that is not known yet."""
    return "x"


def outside(
    context: Context, code: str, template: Template, inner: Embedded, found: Diagnostic, hints: Iterable[str] = ()
) -> Diagnostic:
    """Tell an inner diagnostic in the script: at its place where the string says it as it stands, else at the string."""
    message = inner.in_words_of_script(f"{found.message} ({found.code})")
    told = [*map(inner.in_words_of_script, found.hints), *hints]
    places = Places(context.script.source, inner)
    span = template.span if found.span is None or not inner.parts else places.span(found.span)
    edits = [Edit(place, edit.text) for edit in found.edits if (place := places.verbatim(edit.span)) is not None]
    whole = len(edits) == len(found.edits)
    plain = whole and not any(character in edit.text for edit in edits for character in "\"'\\{\n")
    return context.found(code, message, span, *told, edits=edits if plain else (), severity=found.severity)


class Places:
    """Where an inner text comes from in the script."""

    def __init__(self, source: Source, inner: Embedded) -> None:
        self._parts: list[tuple[Span, Span, bool]] = []
        start = 0
        for text, part in inner.pieces(placeholder):
            own = part.span if isinstance(part, Text) else part.reference.span
            verbatim = isinstance(part, Text) and source.slice(own) == text
            self._parts.append((Span(start, start + len(text)), own, verbatim))
            start += len(text)

    def span(self, found: Span) -> Span:
        """Return where a span of the inner text begins and ends in the script."""
        first, last = self._place(found.start), self._place(max(found.start, found.end - 1))
        return Span(first.start, max(first.start, last.end if found.end > found.start else first.start))

    def verbatim(self, found: Span) -> Span | None:
        """Return the same where all of it is text of the script."""
        for inside, own, verbatim in self._parts:
            if verbatim and inside.start <= found.start and found.end <= inside.end:
                return found.shift(own.start - inside.start)
        return None

    def _place(self, offset: int) -> Span:
        """Return a character's place, or all of the part that it is in where the script says that otherwise."""
        inside, own, verbatim = next((each for each in self._parts if offset < each[0].end), self._parts[-1])
        at = own.start + offset - inside.start
        return Span(at, min(at + 1, own.end)) if verbatim else own
