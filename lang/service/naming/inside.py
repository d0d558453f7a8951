"""The programs and expressions in the strings of a script: what they say, and where that stands in the script."""

from collections.abc import Iterator

from attrs import field, frozen

from ...embedding import embedded, embedded_expression
from ...linter.lwt.places import Places, placeholder
from ...lwt import Call, Comment, Option, Step, Template
from ...node import walk
from ...operations import BUILTIN
from ...source import Source, Span
from ..model import Language

__all__ = ["Inside", "insides_of"]


_FARTHEST = 300
"""Characters by which escapes and references may have moved a place that is looked for."""


@frozen
class Inside:
    """A string of ``call`` that is a program or an expression: ``text`` is what it says, with names for references.

    ``given`` are the options that an expression has its values from.
    """

    language: Language
    text: str
    call: Call
    span: Span
    given: tuple[Option, ...]
    _places: Places = field(repr=False, eq=False)

    def outside(self, span: Span) -> Span | None:
        """Return where a part of the text stands in the script; None for one that is said in another way there."""
        return self._places.verbatim(span)

    def inner(self, offset: int) -> int | None:
        """Return the offset in the text of a place in the script; None where there is none."""
        guess = offset - self.span.start
        # Escapes and references make the text shorter or longer than what stands in the script.
        wanted = Span(offset, offset)
        return next((at for at in _around(guess, len(self.text)) if self.outside(Span(at, at)) == wanted), None)


def _around(guess: int, most: int) -> Iterator[int]:
    for away in range(min(most, _FARTHEST) + 1):
        for at in {guess - away, guess + away}:
            if 0 <= at <= most:
                yield at


def insides_of(item: Step | Comment, text: str) -> Iterator[Inside]:
    """Yield the programs and expressions of a step; its places are those of ``text``."""
    if isinstance(item, Comment):
        return
    for call in walk(item):
        if not isinstance(call, Call) or call.operation not in ("GASL", "EXPR") or not call.arguments:
            continue
        template = call.arguments[0]
        if not isinstance(template, Template):
            continue
        if call.operation == "GASL":
            program = embedded(template)
            yield Inside("gasl", program.text(placeholder), call, template.span, (), Places(Source(text), program))
            continue
        said = embedded_expression(template)
        own = BUILTIN["EXPR"].option_names
        given = tuple(option for option in call.options if option.name not in own)
        yield Inside("expr", said.text(placeholder), call, template.span, given, Places(Source(text), said))
