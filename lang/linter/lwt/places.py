"""Where the text of a program or an expression inside a script stands in the script, and its diagnostics told there."""

from collections.abc import Iterable, Sequence

from ...diagnostic import Diagnostic, Edit
from ...embedding import Embedded
from ...lwt import Reference, Template, Text
from ...source import Source, Span
from .registry import Context

__all__ = ["Places", "outside", "placeholder"]

_LONGEST = 20_000
"""Characters of a text with escapes that is looked through, for each diagnostic anew."""


def placeholder(_: Reference) -> str:
    """Stand for a text that is not known yet."""
    return "x"


def outside(
    context: Context, code: str, template: Template, inner: Embedded, found: Diagnostic, hints: Iterable[str] = ()
) -> Diagnostic:
    """Tell an inner diagnostic in the script: at its place where the string says it as it stands, else at the string."""
    message = inner.in_words_of_script(f"{found.message} ({found.code})")
    own = [hint for hint in found.hints if not (found.edits and inner.is_of_own(hint))]
    if len(own) < len(found.hints) and found.code == "GASL027":
        # "write in_1" would be told as "write {(x)}", which is what stands there.
        own.insert(0, "a reference is a value; a name is written out in the program, as AS found")
    told = [*map(inner.in_words_of_script, own), *hints]
    places = Places(context.script.source, inner)
    span = template.span if found.span is None or not inner.parts else places.span(found.span)
    edits = [Edit(place, edit.text) for edit in found.edits if (place := places.verbatim(edit.span)) is not None]
    whole = len(edits) == len(found.edits)
    plain = whole and not any(character in edit.text for edit in edits for character in "\"'\\{\n")
    return context.found(code, message, span, *told, edits=edits if plain else (), severity=found.severity)


class Places:
    """Where an inner text comes from in the script."""

    def __init__(self, source: Source, inner: Embedded) -> None:
        self._parts: list[tuple[Span, Span, Sequence[int] | None]] = []
        start = 0
        for text, part in inner.pieces(placeholder):
            own = part.span if isinstance(part, Text) else part.reference.span
            places = _places(source.slice(own), text) if isinstance(part, Text) else None
            self._parts.append((Span(start, start + len(text)), own, places))
            start += len(text)

    def span(self, found: Span) -> Span:
        """Return where a span of the inner text begins and ends in the script."""
        first, last = self._place(found.start), self._place(max(found.start, found.end - 1))
        return Span(first.start, max(first.start, last.end if found.end > found.start else first.start))

    def verbatim(self, found: Span) -> Span | None:
        """Return the same where all of it is text of the script."""
        for inside, own, places in self._parts:
            if places is not None and inside.start <= found.start and found.end <= inside.end:
                return Span(
                    own.start + places[found.start - inside.start], own.start + places[found.end - inside.start]
                )
        return None

    def _place(self, offset: int) -> Span:
        """Return a character's place, or all of the part that it is in where the script says that otherwise."""
        inside, own, places = next((each for each in self._parts if offset < each[0].end), self._parts[-1])
        if places is None:
            return own
        at = min(offset - inside.start, len(places) - 1)
        return Span(own.start + places[at], own.start + places[min(at + 1, len(places) - 1)])


def _places(written: str, text: str) -> Sequence[int] | None:
    """Return where each character of ``text``, and its end, stands in ``written``, which has quotes and backslashes escaped.

    None where it says the text in another way.
    """
    if written == text:
        return range(len(text) + 1)
    if len(written) > _LONGEST:
        return None
    places, at = [0], 0
    for character in text:
        if written[at : at + 1] == "\\" and written[at + 1 : at + 2] == character and character in "\"'\\":
            at += 2
        elif written[at : at + 1] == character:
            at += 1
        else:
            return None
        places.append(at)
    return places if at == len(written) else None
