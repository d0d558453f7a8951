"""Other languages inside a prompt script: the string of ``GASL("...")`` as a program, or of ``when=`` as an expression.

A reference that stands where a value or a variable may stand becomes a variable of the program (``${in_1}``, or ``in_1`` where
a command takes a variable's name), so that what it holds can never change what the program says. One that stands inside a
string of the program is put there with all of a string's special characters escaped, one in a name with its backticks
doubled, and one in a comment on a single line. In an expression a reference is a name; inside a string of it none can stand.
"""

import re
from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

from attrs import evolve, frozen

from .trees.lwt import Reference, Template, Text

__all__ = ["Embedded", "Inside", "Named", "embedded", "embedded_expression", "escaped"]

Quote: TypeAlias = Literal["", '"', "'", "`", "#"]
"""What is open: nothing, a string of either kind, a name, a comment."""

_BEFORE_NAMES = frozenset({
    "SELECT", "COUNT", "AGGREGATE", "RANK", "JOIN", "WITH", "UNION", "INTERSECT", "EXCEPT", "PROCESS", "CLASSIFY", "WALK",
    "SUBGRAPH", "CONNECT", "FROM", "TO", "MEASURE", "EXISTS",
})  # fmt: skip
"""Words after which a command has the name of a variable. No value stands there."""


@frozen
class Inside:
    """A reference inside a string, a name or a comment of the program."""

    reference: Reference
    quote: Quote


@frozen
class Named:
    """A reference that became a variable: ``name``, and how the program says it."""

    reference: Reference
    name: str
    said: str


@frozen
class Embedded:
    """A program with its references told apart."""

    parts: tuple[Text | Inside | Named, ...]

    @property
    def variables(self) -> tuple[tuple[str, Reference], ...]:
        """The references that stand for values, by the names of their variables."""
        return tuple((part.name, part.reference) for part in self.parts if isinstance(part, Named))

    def pieces(self, value: Callable[[Reference], str]) -> Iterator[tuple[str, Text | Inside | Named]]:
        """Yield the program's text part by part, with ``value`` of the references inside strings, escaped, in their places."""
        for part in self.parts:
            match part:
                case Text(value=text):
                    yield text, part
                case Named(said=text):
                    yield text, part
                case Inside(reference, quote):
                    yield escaped(value(reference), quote), part

    def text(self, value: Callable[[Reference], str]) -> str:
        """Return the program's text; see ``pieces``."""
        return "".join(text for text, _ in self.pieces(value))

    def in_words_of_script(self, message: str) -> str:
        """Return a message about the program with the references as the script has them."""
        said = {name: f"{{({reference.name})}}" for name, reference in self.variables}
        if not said:
            return message
        names = "|".join(map(re.escape, said))
        return re.sub(rf"\$\{{({names})\}}|\b({names})\b", lambda found: said[found[1] or found[2]], message)

    def is_of_own(self, text: str) -> bool:
        """Say whether the text has a name that stands for a reference, and that its writer does not know."""
        return any(re.search(rf"\b{re.escape(name)}\b", text) for name, _ in self.variables)


def embedded(template: Template) -> Embedded:
    """Take the string of a ``GASL`` call apart."""
    parts: list[Text | Inside | Named] = []
    scan, prefix, count = _Scan("\"'#`"), _prefix(template), 0
    for part in template.parts:
        if isinstance(part, Text):
            scan.pass_over(part.value)
            parts.append(part)
        elif scan.quote:
            parts.append(Inside(part, scan.quote))
        else:
            count += 1
            name = f"{prefix}{count}"
            parts.append(Named(part, name, name if scan.word.upper() in _BEFORE_NAMES else f"${{{name}}}"))
            scan.word = ""
    return Embedded(tuple(parts))


def embedded_expression(template: Template) -> Embedded:
    """Take the string of an expression apart: a reference is a name in it; one inside quotes is ``Inside``, which is a fault.

    A name has a space beside it where a letter or another reference touches it: ``2{(a)}`` is not one name.
    """
    parts: list[Text | Inside | Named] = []
    scan, prefix, count, touched = _Scan("\"'"), _prefix(template), 0, False
    for part in template.parts:
        if isinstance(part, Text):
            text = part.value
            if touched and isinstance(named := parts[-1], Named) and re.match(r"\w", text):
                parts[-1] = evolve(named, said=f"{named.said} ")
            if text:
                scan.pass_over(text)
                parts.append(part)
                touched = re.search(r"\w\Z", text) is not None
        elif scan.quote:
            parts.append(Inside(part, scan.quote))
        else:
            count += 1
            name = f"{prefix}{count}"
            parts.append(Named(part, name, f" {name}" if touched else name))
            touched = True
    return Embedded(tuple(parts))


def _prefix(template: Template) -> str:
    """Return what the names of references begin with: nothing that the text itself has, so that its own names stay."""
    whole = "".join(part.value for part in template.parts if isinstance(part, Text))
    prefix = "in_"
    while re.search(rf"{prefix}[0-9]", whole, re.IGNORECASE):
        prefix = f"{prefix}_"
    return prefix


def escaped(text: str, quote: Quote) -> str:
    """Return ``text`` as it stands between quotes, in a name or in a comment: nothing of it ends them."""
    if quote == "`":
        text = text.replace("`", "``")
        return "".join(_escape(each) if each < " " else each for each in text)
    return "".join(_escape(each) if each in _SPECIAL or each < " " else each for each in text)


_SPECIAL = "\"'\\\x7f\x85\u2028\u2029"


def _escape(character: str) -> str:
    return f"\\u{ord(character):04x}"


class _Scan:
    """Follows the program's text: what is open, and the word that stands last where nothing is. ``marks`` open something."""

    def __init__(self, marks: str) -> None:
        self._marks = marks
        self.quote: Quote = ""
        self.word = ""
        self._escape = False
        self._ended = False

    def pass_over(self, text: str) -> None:
        for character in text:
            if character == "\n":  # no string, name or comment goes over a line's end
                self.quote, self._escape, self._ended = "", False, True
            elif self._escape:
                self._escape = False
            elif self.quote:
                if character == "\\" and self.quote in "\"'":
                    self._escape = True
                elif character == self.quote != "#":
                    self.quote = ""
            elif character in self._marks:
                self.quote = character  # type: ignore[assignment]
                self.word = ""
            else:
                self._follow(character)

    def _follow(self, character: str) -> None:
        if character.isspace():
            self._ended = True
        elif character == "_" or character.isalnum():
            self.word = character if self._ended else self.word + character
            self._ended = False
        else:
            self.word, self._ended = "", True
