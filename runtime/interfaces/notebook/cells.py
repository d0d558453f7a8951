"""A cell of a notebook: its text, its position, its pieces, and the check of the entire cell."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from attrs import evolve, frozen
from IPython.core.interactiveshell import InteractiveShell

from ....lang.diagnostic import Diagnostic, has_errors, sort_key
from ...api.data_flow import names_bound, names_read_first
from ...api.pieces import Language, Piece, expression_of, pieces
from ...api.session import Session
from ...api.session_data import NOTHING, Outcome, Value, Values, misused
from ...api.session_runs import check, is_expression, needs_graph, normalize, refused, warnings
from ..repl.dot_commands import dot_fault


@frozen
class MagicPosition:
    """The position of a magic: ``name`` is the cell's name in Python tracebacks; ``line`` is the line of the magic in the cell."""

    name: str
    line: int = 1


def magic_position(shell: InteractiveShell) -> MagicPosition:
    """Return the position of the magic that is running. Outside a cell, the name is ``In[N]`` with the current execution count."""
    frame = inspect.currentframe()
    try:
        while frame is not None:  # the caller of a magic has a frame whose file the shell knows
            code_name = shell.compile.format_code_name(frame.f_code.co_filename)
            if code_name is not None:
                return MagicPosition(str(code_name[1]), frame.f_lineno)
            frame = frame.f_back
    finally:
        del frame  # the frame would keep the values of all callers alive
    return MagicPosition(f"In[{shell.execution_count}]")


@frozen
class Cell:
    """The text of a cell. The text begins at line ``first_line`` of ``name``.

    ``magic`` is the language of the cell's magic; None if the magic accepts all languages.
    """

    text: str
    name: str
    first_line: int = 1
    magic: Language | None = None

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces of the cell."""
        return tuple(cell_pieces(self.text, self.magic, self.name, self.first_line))

    def only(self, kept: Iterable[Piece], language: Language) -> Piece:
        """Return the cell as one piece in which spaces replace all pieces except ``kept``. Positions stay the same."""
        line_numbers = {
            number
            for piece in kept
            for number in range(piece.first_line, piece.first_line + piece.text.count("\n") + 1)
        }
        lines = [
            line if number in line_numbers else " " * len(line)
            for number, line in enumerate(self.text.split("\n"), start=self.first_line)
        ]
        return Piece("\n".join(lines), language, self.first_line, self.name)


def cell_pieces(text: str, magic: Language | None, name: str, first_line: int = 1) -> list[Piece]:
    """Return the pieces of a text. ``magic`` is the language of the cell's magic; None if the magic accepts all languages."""
    if magic == "lwt":
        return [Piece(text, "lwt", first_line, name)]
    found = [piece for piece in pieces(text, name, first_line) if piece.language != "comment"]
    if magic == "gasl":  # apart from steps and dot commands, any text is treated as a command, even if it is faulty
        return [evolve(piece, language="gasl") if piece.language == "expr" else piece for piece in found]
    return found


def dot_cell(text: str, name: str) -> Cell:
    """Return a cell that contains one dot command; ``text`` is the command without its dot."""
    return Cell(f".{text}", name)


def stale_names(
    found: Sequence[Piece], left: Sequence[Piece], before: Mapping[str, Value], values: Values
) -> list[str]:
    """Return the names that the unfinished pieces ``left`` should have bound, but that still have their values from ``before``.

    ``before`` contains the values from before the cell ran. Later cells would mix these old values with the new values of the
    cell. Names that the cell reads before it binds them are not returned, because another run of the cell needs their values.
    """
    needed = set(names_read_first(found))
    names = dict.fromkeys(name for piece in left for name in names_bound(piece))
    return [
        name
        for name in names
        if name not in needed and name in before and values.context.value(name) is before[name]
    ]  # fmt: skip


# Checks an entire cell before its first piece runs. Each piece is checked with the names that earlier pieces will bind.

_UNPREDICTABLE = frozenset({".read", ".undo"})
"""Dot commands after which the session's values can't be predicted."""
_UNAVAILABLE = {
    "output": (
        ".output is not available in a notebook: cells show the results", "NAME = %kw value NAME copies a value to Python",
    ),
    "quit": (
        "a cell can't end its own session", "use %kw close on a separate line; variables remain",
    ),
}  # fmt: skip
"""Maps each dot command that is not available in a notebook to the reason and the replacement."""

UNAVAILABLE = frozenset(_UNAVAILABLE)
"""The names of the dot commands that are not available in a notebook."""


async def check_cell(cell: Cell, session: Session) -> Outcome:
    """Check all pieces of a cell without running anything.

    Return an outcome with the errors, or an outcome "done" with the warnings.
    """
    pieces = list[Piece]()
    for piece in cell.pieces:
        pieces.append(normalize(piece, session))
        if pieces[-1].language == "dot" and pieces[-1].text.split(None, 1)[0].lower() in _UNPREDICTABLE:
            break
    commands = [piece for piece in pieces if piece.language == "gasl"]
    if commands:
        await session.schema()
    found = sorted(
        [*_diagnose_others(cell, pieces, session), *_diagnose_commands(cell, pieces, commands, session)], key=sort_key
    )
    source = Piece(cell.text, "comment", cell.first_line, cell.name).source
    if has_errors(found):
        return evolve(refused(found, source), hint=_other_magic(cell))
    dots = [piece for piece in pieces if piece.language == "dot"]
    fault = next((fault for piece in dots if (fault := dot_fault(piece.text) or unavailable(piece)) is not None), None)
    if fault is None and commands and session.adapter is None:
        fault = needs_graph()
    return fault or Outcome(diagnostics=warnings(found), source=source)


def _other_magic(cell: Cell) -> str:
    """Return a hint that names the right magic for a faulty cell; "" if the cell's magic is not the cause of the fault."""
    found = cell_pieces(cell.text, None, cell.name)
    languages = {piece.language for piece in found}
    if cell.magic == "lwt" and "gasl" in languages and "lwt" not in languages:
        return "use %%gasl for commands"
    has_expression = any(p.language == "expr" and is_expression(expression_of(p.text)[1]) for p in found)
    return "use %%kw for expressions and all other languages" if cell.magic is not None and has_expression else ""


def unavailable(piece: Piece) -> Outcome | None:
    """Return an outcome that explains why a dot command is not available in a notebook; None if the command is available."""
    if piece.language != "dot":
        return None
    name = piece.text.split(None, 1)[0].rstrip("; \t").lower().lstrip(".\\")
    return misused(*_UNAVAILABLE[name]) if name in _UNAVAILABLE else None


def _diagnose_others(cell: Cell, pieces: Sequence[Piece], session: Session) -> list[Diagnostic]:
    """Return the diagnostics of steps and expressions. Each piece is checked with the names that earlier pieces bind."""
    found, trial = list[Diagnostic](), _trial(session)
    for piece in pieces:
        if piece.language in ("lwt", "expr"):
            found += check(cell.only([piece], piece.language), trial).diagnostics
        _bind_names(piece, trial)
        if piece.language != "dot" and trial.last_value is NOTHING:
            trial.last_value = None  # a placeholder, because a later expression may refer to the latest value
    return found


def _diagnose_commands(
    cell: Cell, pieces: Sequence[Piece], commands: Sequence[Piece], session: Session
) -> Sequence[Diagnostic]:
    """Return the diagnostics of the commands. The commands are checked as one program, because one command may declare keys for another."""
    if not commands:
        return ()
    trial = _trial(session)
    for piece in pieces:
        if piece.language != "gasl":
            _bind_names(piece, trial)
    return check(cell.only(commands, "gasl"), trial).diagnostics


def _trial(session: Session) -> Session:
    """Return a copy of the session. Names bound in the copy do not affect the session."""
    return evolve(session, values=session.values.copy())


def _bind_names(piece: Piece, session: Session) -> None:
    """Bind placeholder values to the names that a piece will bind."""
    for name in names_bound(piece):
        session.values.bind(name, None)
