"""Other languages inside a prompt script: the string in ``GASL("...")`` is a program, and the string after ``when=`` is an expression.

If a reference stands for a value or a variable, it becomes a variable of the program: ``${in_1}``, or ``in_1`` where a command
requires a variable's name. Therefore the value of the reference can never change the meaning of the program. Inside a string of
the program, a reference is replaced by its value, and all special characters of the value are escaped. Inside a name, the
backticks in the value are doubled; inside a comment, the value is written on a single line. In an expression, a reference
becomes a name; references inside strings of an expression are not allowed.
"""

import re
from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

from attrs import evolve, frozen

from .trees.lwt import Reference, Template, Text

Quote: TypeAlias = Literal["", '"', "'", "`", "#"]
"""The construct that is open at a place: none (""), a string in either kind of quotes, a name, or a comment."""


@frozen
class Inside:
    """A reference inside a string, a name or a comment of the program."""

    reference: Reference
    quote: Quote


@frozen
class ProgramVariable:
    """A reference that became the variable ``name``. ``text`` is the text of the variable in the program."""

    reference: Reference
    name: str
    text: str


@frozen
class EmbeddedCode:
    """A program or an expression, split into its text and its references."""

    parts: tuple[Text | Inside | ProgramVariable, ...]

    @property
    def variables(self) -> tuple[tuple[str, Reference], ...]:
        """Return pairs of a variable's name and the reference that the variable stands for."""
        return tuple((part.name, part.reference) for part in self.parts if isinstance(part, ProgramVariable))

    def pieces(self, value: Callable[[Reference], str]) -> Iterator[tuple[str, Text | Inside | ProgramVariable]]:
        """Yield the program's text part by part. References inside strings are replaced by their escaped ``value``."""
        for part in self.parts:
            match part:
                case Text(value=text):
                    yield text, part
                case ProgramVariable(text=text):
                    yield text, part
                case Inside(reference, quote):
                    yield escaped(value(reference), quote), part

    def text(self, value: Callable[[Reference], str]) -> str:
        """Return the program's text; see ``pieces``."""
        return "".join(text for text, _ in self.pieces(value))

    def with_references(self, message: str) -> str:
        """Return ``message``, a message about the program.

        Generated variables in it are replaced by the references written in the script.
        """
        written = {name: f"{{({reference.name})}}" for name, reference in self.variables}
        if not written:
            return message
        names = "|".join(map(re.escape, written))
        return re.sub(rf"\$\{{({names})\}}|\b({names})\b", lambda found: written[found[1] or found[2]], message)

    def has_generated_name(self, text: str) -> bool:
        """Return whether ``text`` contains a generated variable name, which the script's author does not know."""
        return any(re.search(rf"\b{re.escape(name)}\b", text) for name, _ in self.variables)


def embedded_program(template: Template) -> EmbeddedCode:
    """Return the string of a ``GASL`` call, split into text and references."""
    parts: list[Text | Inside | ProgramVariable] = []
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
            parts.append(ProgramVariable(part, name, name if scan.is_before_name else f"${{{name}}}"))
            scan.word = ""
    return EmbeddedCode(tuple(parts))


def embedded_expression(template: Template) -> EmbeddedCode:
    """Return the string of an expression, with names in place of its references.

    A reference inside quotes becomes ``Inside``, which callers report as a fault. A space is inserted between a name and an
    adjacent letter, digit or reference: ``2{(a)}`` is not a single name.
    """
    parts: list[Text | Inside | ProgramVariable] = []
    scan, prefix, count, touched = _Scan("\"'"), _prefix(template), 0, False
    for part in template.parts:
        if isinstance(part, Text):
            text = part.value
            if touched and isinstance(named := parts[-1], ProgramVariable) and re.match(r"\w", text):
                parts[-1] = evolve(named, text=f"{named.text} ")
            if text:
                scan.pass_over(text)
                parts.append(part)
                touched = re.search(r"\w\Z", text) is not None
        elif scan.quote:
            parts.append(Inside(part, scan.quote))
        else:
            count += 1
            name = f"{prefix}{count}"
            parts.append(ProgramVariable(part, name, f" {name}" if touched else name))
            touched = True
    return EmbeddedCode(tuple(parts))


def _prefix(template: Template) -> str:
    """Return a prefix for the generated names.

    In the text, this prefix never occurs before a digit. Therefore generated names can't clash with names in the text.
    """
    whole = "".join(part.value for part in template.parts if isinstance(part, Text))
    prefix = "in_"
    while re.search(rf"{prefix}[0-9]", whole, re.IGNORECASE):
        prefix = f"{prefix}_"
    return prefix


def escaped(text: str, quote: Quote) -> str:
    """Return ``text`` escaped for a string, a name or a comment, so that ``text`` cannot end it."""
    if quote == "`":
        text = text.replace("`", "``")
        return "".join(_escape(each) if each < " " else each for each in text)
    return "".join(_escape(each) if each in _SPECIAL or each < " " else each for each in text)


_SPECIAL = "\"'\\\x7f\x85\u2028\u2029"


def _escape(character: str) -> str:
    return f"\\u{ord(character):04x}"


class _Scan:
    """Scans the program's text. It keeps track of the construct that is open, and of the last word outside constructs.

    ``marks`` are the characters that open a construct.
    """

    def __init__(self, marks: str) -> None:
        # Few scripts have programs, and the trees of GASL load slowly.
        from .catalogue.commands import COMMANDS, NAMES_AFTER

        self._all_commands, self._names_after = COMMANDS, NAMES_AFTER
        self._marks = marks
        self._commands: list[str] = []
        self.quote: Quote = ""
        self.word = ""
        self._escape = False
        self._ended = False

    @property
    def is_before_name(self) -> bool:
        """Return whether a command reads the variable after the last word, as after ``ON`` in ``MEASURE x ON y``."""
        word = self.word.upper()
        commands = self._names_after.get(word, {})
        before = self._commands[:-1] if self._commands[-1:] == [word] else self._commands
        command = next((each for each in reversed(before) if each in commands), word)
        return commands.get(command, bool(commands))

    def pass_over(self, text: str) -> None:
        for character in text:
            if character == "\n":  # strings, names and comments end at the end of the line
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
            if not self._ended and self.word.upper() in self._all_commands:
                self._commands.append(self.word.upper())
            self._ended = True
        elif character == "_" or character.isalnum():
            self.word = character if self._ended else self.word + character
            self._ended = False
        else:
            self.word, self._ended = "", True
