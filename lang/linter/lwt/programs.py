"""Rules on the programs inside scripts: the strings of ``GASL`` calls."""

import re
from collections.abc import Iterator

from ...diagnostic import Diagnostic, Edit
from ...embedding import Embedded, embedded
from ...lwt import Reference, Template, Text
from ...source import Source, Span
from .registry import Context, Lint, lint


@lint("LWT042")
def faulty_program(context: Context) -> Iterator[Diagnostic]:
    """Faults that reading or checking the program finds, told where they stand in the script."""
    calls = [call for call, _ in context.calls if call.operation == "GASL" and call.arguments]
    if not calls:
        return
    from ...parse.gasl import parse_gasl
    from ..gasl import check

    for call in calls:
        template = call.arguments[0]
        if not isinstance(template, Template):
            continue
        inner = embedded(template)
        program = parse_gasl(Source(inner.text(_placeholder), context.script.source.name))
        names = [name for name, _ in inner.variables]
        for found in check(program, variables=names):
            yield _outside(context, template, inner, found)


def _placeholder(_: Reference) -> str:
    """Stand for a text that is not known yet."""
    return "x"


def _outside(context: Context, template: Template, inner: Embedded, found: Diagnostic) -> Diagnostic:
    """Tell a program's diagnostic in the script: at its place where the string says it as it stands, else at the string."""
    message = inner.in_words_of_script(f"{found.message} ({found.code})")
    hints = [*map(inner.in_words_of_script, found.hints), *_on_line_breaks(template)]
    places = _Places(context.script.source, inner)
    span = template.span if found.span is None or not inner.parts else places.span(found.span)
    edits = [Edit(place, edit.text) for edit in found.edits if (place := places.verbatim(edit.span)) is not None]
    whole = len(edits) == len(found.edits)
    plain = whole and not any(character in edit.text for edit in edits for character in "\"'\\{\n")
    return context.found("LWT042", message, span, *hints, edits=edits if plain else (), severity=found.severity)


class _Places:
    """Where the program's text comes from in the script."""

    def __init__(self, source: Source, inner: Embedded) -> None:
        self._parts: list[tuple[Span, Span, bool]] = []
        start = 0
        for text, part in inner.pieces(_placeholder):
            own = part.span if isinstance(part, Text) else part.reference.span
            verbatim = isinstance(part, Text) and source.slice(own) == text
            self._parts.append((Span(start, start + len(text)), own, verbatim))
            start += len(text)

    def span(self, found: Span) -> Span:
        """Return where a span of the program begins and ends in the script."""
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


def _on_line_breaks(template: Template) -> Iterator[str]:
    r"""Say how a line break is written, where somebody wrote ``\n`` for one."""
    if any(isinstance(part, Text) and _WRITTEN_BREAK.search(part.value) for part in template.parts):
        yield r"a line break is written as one: the string may go over several lines, and \n in it is no break"


_WRITTEN_BREAK = re.compile(r"\\n\s*[A-Z#]")


LINTS: tuple[Lint, ...] = (faulty_program,)
