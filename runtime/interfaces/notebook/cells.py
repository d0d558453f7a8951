"""A cell: its text, where that stands, its pieces, and the names that they take and bind."""

from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve, field, frozen

from ....lang.parse.gasl import parse_gasl
from ....lang.parse.lwt import parse_lwt
from ...gasl.variables import Value
from ..repl.reading import Language, Piece, pieces
from ..repl.values import Values
from .naming import bound_by, mentioned

__all__ = ["Cell", "dot", "outside", "place_of", "read", "stale"]


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")


@frozen
class Cell:
    """``first_line`` is where the text begins in what is called ``name``; ``magic`` is the language of the cell's magic, if it has one."""

    text: str = field(converter=_lines)
    name: str
    first_line: int = 1
    magic: Language | None = None
    pieces: tuple[Piece, ...] = field(init=False)

    @pieces.default
    def _read(self) -> tuple[Piece, ...]:
        return tuple(read(self.text, self.magic, self.name, self.first_line))

    def only(self, kept: Iterable[Piece], language: Language) -> Piece:
        """Return the cell as one piece with blanks in the place of all but ``kept``: everything stands where it stood."""
        places = {
            number
            for piece in kept
            for number in range(piece.first_line, piece.first_line + piece.text.count("\n") + 1)
        }
        shown = [
            line if number in places else " " * len(line)
            for number, line in enumerate(self.text.split("\n"), start=self.first_line)
        ]
        return Piece("\n".join(shown), language, self.first_line, self.name)


def read(text: str, magic: Language | None, name: str, first_line: int = 1) -> list[Piece]:
    """Return the pieces of a text. ``magic`` is the magic's language; None where a cell may have all of them."""
    if magic == "lwt":
        return [Piece(text, "lwt", first_line, name)]
    found = [piece for piece in pieces(text, name, first_line) if piece.language != "remark"]
    if magic == "gasl":  # what is no step is meant as a command, however wrong
        return [evolve(piece, language="gasl") if piece.language == "expr" else piece for piece in found]
    return found


def dot(text: str, name: str) -> Cell:
    """Return a cell that is a dot command."""
    return Cell(f".{text}", name)


def outside(found: Sequence[Piece]) -> list[str]:
    """Return the names that pieces take from outside: none of those before them binds them."""
    bound, wanted = set[str](), dict[str, None]()
    for piece in found:
        wanted |= dict.fromkeys(name for name in mentioned(piece) if name not in bound)
        bound.update(bound_by(piece))
    return list(wanted)


def place_of(piece: Piece, done: Iterable[str] = ()) -> str:
    """Return where what a piece says begins; of steps where the first one does that is not ``done``. "" for a dot command."""
    source, start = piece.source, 0
    match piece.language:
        case "dot" | "remark":
            return ""
        case "gasl":
            start = next((each.command.span.start for each in parse_gasl(source).statements), 0)
        case "lwt":
            names = set(done)
            start = next((step.span.start for step in parse_lwt(source).steps if step.id not in names), 0)
        case "expr":
            start = len(piece.text) - len(piece.text.lstrip())
    return f"{source.name}:{source.position(start)[0]}"


def stale(found: Sequence[Piece], left: Sequence[Piece], before: Mapping[str, Value], values: Values) -> list[str]:
    """Return the names that the pieces ``left`` were to bind and that have their values from ``before`` the cell.

    Who goes on with the notebook would mix them with what the cell has made. What the cell takes from outside is needed to run it again.
    """
    kept = set(outside(found))
    names = dict.fromkeys(name for piece in left for name in bound_by(piece))
    return [
        name
        for name in names
        if name not in kept and name in before and values.context.value(name) is before[name]
    ]  # fmt: skip
