"""A cell: its text and position, its pieces, and the names that they read and bind."""

import argparse
import inspect
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from attrs import evolve, field, frozen
from IPython.core.interactiveshell import InteractiveShell

from ....lang.diagnostic import Diagnostic, has_errors, nearest, sort_key
from ....lang.parse.expr import parse_expr
from ....lang.parse.gasl import parse_gasl
from ....lang.parse.lwt import parse_lwt
from ....lang.service import Language
from ....lang.service.language_names import Occurrence
from ....lang.service.navigation import occurrences_in
from ...api.workspace import WorkspaceOptions
from ...errors import Misused
from ...gasl.records import Value
from ..options import Limits
from ..repl import runners
from ..repl.dot_commands import unknown
from ..repl.outcome import NOTHING, Outcome, misused
from ..repl.reader import Language as PieceLanguage
from ..repl.reader import Piece, expression_of, pieces
from ..repl.repl_workspace import Desk, DeskAsked, Values
from ..repl.runners import check
from ..repl.session import meant

# The position of a magic: the cell's number, and the line in it. The caller of a magic has a frame whose file the shell knows.


@frozen
class Standing:
    """The position of a magic: ``name`` is the cell's name in Python tracebacks; ``line`` is the magic's line in it."""

    name: str
    line: int = 1


def standing(shell: InteractiveShell) -> Standing:
    """Return the position of the running magic; outside of a cell, the number of the next cell."""
    frame = inspect.currentframe()
    try:
        while frame is not None:
            told = shell.compile.format_code_name(frame.f_code.co_filename)
            if told is not None:
                return Standing(str(told[1]), frame.f_lineno)
            frame = frame.f_back
    finally:
        del frame  # it would keep the values of all callers alive
    return Standing(f"In[{shell.execution_count}]")


# The names that a piece reads from outside and those that it binds, from the languages' own parsers.


def mentioned(piece: Piece) -> list[str]:
    """Return the distinct names of values that a piece reads from outside."""
    found = _named(piece)
    own = {each.name for each in found if each.defines and each.kind == "step"}
    return list(dict.fromkeys(each.name for each in found if not each.defines and each.name not in own))


def bound_by(piece: Piece) -> list[str]:
    """Return the distinct names that a piece binds."""
    if piece.language == "expr":
        name = expression_of(piece.text)[0]
        return [] if name is None else [name]
    return list(dict.fromkeys(each.name for each in _named(piece) if each.defines))


def _named(piece: Piece) -> Sequence[Occurrence]:
    language: Language
    match piece.language:
        case "dot" | "remark":
            return ()
        case "gasl" | "lwt" | "expr" as language:
            text = expression_of(piece.text)[1] if language == "expr" else piece.text
    return [each for each in occurrences_in(language, text) if each.kind in ("variable", "step") and not each.scope]


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")


@frozen
class Cell:
    """A cell's text, from line ``first_line`` of ``name``; ``magic`` is the language of the cell's magic, if it has one."""

    text: str = field(converter=_lines)
    name: str
    first_line: int = 1
    magic: PieceLanguage | None = None
    pieces: tuple[Piece, ...] = field(init=False)

    @pieces.default
    def _read(self) -> tuple[Piece, ...]:
        return tuple(read(self.text, self.magic, self.name, self.first_line))

    def only(self, kept: Iterable[Piece], language: PieceLanguage) -> Piece:
        """Return the cell as one piece with blanks in place of all pieces but ``kept``, so that positions stay the same."""
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


def read(text: str, magic: PieceLanguage | None, name: str, first_line: int = 1) -> list[Piece]:
    """Return the pieces of a text. ``magic`` is the magic's language; None if a cell may have all languages."""
    if magic == "lwt":
        return [Piece(text, "lwt", first_line, name)]
    found = [piece for piece in pieces(text, name, first_line) if piece.language != "remark"]
    if magic == "gasl":  # any text that is not a step is treated as a command, even if faulty
        return [evolve(piece, language="gasl") if piece.language == "expr" else piece for piece in found]
    return found


def dot(text: str, name: str) -> Cell:
    """Return a cell with a dot command."""
    return Cell(f".{text}", name)


def outside(found: Sequence[Piece]) -> list[str]:
    """Return the names that pieces read from outside: those not bound by an earlier piece."""
    bound, wanted = set[str](), dict[str, None]()
    for piece in found:
        wanted |= dict.fromkeys(name for name in mentioned(piece) if name not in bound)
        bound.update(bound_by(piece))
    return list(wanted)


def place_of(piece: Piece, done: Iterable[str] = ()) -> str:
    """Return the name and line where a piece begins; for steps, the first step not in ``done``. "" for a dot command."""
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
    """Return the names that the unexecuted pieces ``left`` should have bound and that still have values from ``before`` the cell.

    Later cells would mix these old values with the cell's new ones. Names that the cell reads from outside are needed to run it
    again.
    """
    kept = set(outside(found))
    names = dict.fromkeys(name for piece in left for name in bound_by(piece))
    return [
        name
        for name in names
        if name not in kept and name in before and values.context.value(name) is before[name]
    ]  # fmt: skip


# The check of a whole cell: done before its first piece runs, with the names that earlier pieces will have bound.

_CHANGES = frozenset({".read", ".undo"})
"""Dot commands after which the values can't be predicted."""
_ELSEWHERE = {
    "output": (
        "a notebook has results in its cells, not in a file of the session", "NAME = %kw value NAME gives a value to Python",
    ),
    "quit": (
        "a cell does not end the session that it runs in", "%kw close on a line of its own ends it; variables stay",
    ),
}  # fmt: skip
"""Dot commands of the prompt that a notebook does not have: the reason, and the replacement."""

NOT_HERE = frozenset(_ELSEWHERE)
"""Their names."""


async def checked(cell: Cell, desk: Desk) -> Outcome:
    """Return the errors of a cell, in all its languages; "done", with its warnings, if it has none. Nothing is run."""
    pieces = _foreseen([meant(piece, desk) for piece in cell.pieces])
    orders = [piece for piece in pieces if piece.language == "gasl"]
    if orders:
        await desk.schema()
    found = sorted([*_others(cell, pieces, desk), *_program(cell, pieces, orders, desk)], key=sort_key)
    source = Piece(cell.text, "remark", cell.first_line, cell.name).source
    if has_errors(found):
        return evolve(runners.refused(found, source), hint=_meant_for(cell))
    dots = [piece for piece in pieces if piece.language == "dot"]
    fault = next((fault for piece in dots if (fault := unknown(piece.text) or not_here(piece)) is not None), None)
    if fault is None and orders and desk.adapter is None:
        fault = runners.needs_graph()
    return fault or Outcome(diagnostics=runners.warnings(found), source=source)


def _meant_for(cell: Cell) -> str:
    """Return a hint on the right magic for a faulty cell, if it is another one."""
    found = read(cell.text, None, cell.name)
    languages, is_right = (
        {piece.language for piece in found},
        any(p.language == "expr" and _is_right(p.text) for p in found),
    )
    if cell.magic == "lwt" and "gasl" in languages and "lwt" not in languages:
        return "%%gasl runs commands"
    return "%%kw runs expressions, and all else beside them" if cell.magic is not None and is_right else ""


def _is_right(text: str) -> bool:
    found = parse_expr(expression_of(text)[1])
    return found.expr is not None and not has_errors(found.diagnostics)


def not_here(piece: Piece) -> Outcome | None:
    """Return why a dot command is not available in a notebook; None if it is."""
    if piece.language != "dot":
        return None
    name = piece.text.split(None, 1)[0].rstrip("; \t").lower().lstrip(".\\")
    return misused(*_ELSEWHERE[name]) if name in _ELSEWHERE else None


def _foreseen(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces up to the first one after which values can't be predicted."""
    known = []
    for piece in pieces:
        known.append(piece)
        if piece.language == "dot" and piece.text.split(None, 1)[0].lower() in _CHANGES:
            break
    return known


def _others(cell: Cell, pieces: Sequence[Piece], desk: Desk) -> list[Diagnostic]:
    """Return the diagnostics of steps and expressions, each with the names bound before it."""
    found, beside = list[Diagnostic](), _beside(desk)
    for piece in pieces:
        if piece.language in ("lwt", "expr"):
            found += check(cell.only([piece], piece.language), beside).diagnostics
        _bind(piece, beside)
        if piece.language != "dot" and beside.last_value is NOTHING:
            beside.last_value = None  # placeholder: an expression may name the latest value
    return found


def _program(cell: Cell, pieces: Sequence[Piece], orders: Sequence[Piece], desk: Desk) -> Sequence[Diagnostic]:
    """Return the diagnostics of the commands, which form one program: they declare keys for each other."""
    if not orders:
        return ()
    beside = _beside(desk)
    for piece in pieces:
        if piece.language != "gasl":
            _bind(piece, beside)
    return check(cell.only(orders, "gasl"), beside).diagnostics


def _beside(desk: Desk) -> Desk:
    """Return a copy of the workspace in which names can be bound without affecting the session."""
    return evolve(desk, values=Values(desk.values.context.copy()))


def _bind(piece: Piece, desk: Desk) -> None:
    """Bind the names that a piece will bind, with placeholder values."""
    for name in bound_by(piece):
        desk.values.bind(name, None)


# Parses the arguments of a magic.

_OPEN = (
    "%kw open [GRAPH] [--state DIR] [--llm SPEC] [--model NAME=SPEC] [--chunks FILE] [--max-calls N] [--max-tokens N]"
    " [--max-cost USD] [--price IN/OUT] [--no-cache] [--force] [--raw]"
)


class _Parser(argparse.ArgumentParser):
    """Raises an error instead of exiting."""

    def error(self, message: str) -> NoReturn:
        raise Misused(message.replace("argument ", "", 1), str(self.usage or ""))


def words_of(line: str) -> list[str]:
    """Return the words of a line; quotes keep one together. Raises ``Misused``."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise Misused(f"the line can't be read: {str(error).lower()}", "close the quote") from None


def wants_help(line: str) -> bool:
    """Return whether a line requests help."""
    return line.split()[-1:] in (["--help"], ["-h"])


def file_asked(line: str, verb: str) -> tuple[str | None, bool]:
    """Return the file that a line names (None: no file), and whether it may be overwritten. Raises ``Misused``."""
    words = words_of(line)
    names = [word for word in words if not word.startswith("-") or word == "-"]
    if len(names) > 1 or any(word != "--force" for word in words if word not in names) or names == [""]:
        wrong = next((word for word in words if word not in names and word != "--force"), None)
        raise Misused(
            f"%kw {verb} does not know {wrong}" if wrong is not None else f"%kw {verb} takes one file",
            f"%kw {verb} [FILE] [--force]",
        )
    return (names[0] if names else None), "--force" in words


def opened(line: str) -> DeskAsked:
    """Return the options of ``%kw open``. Raises ``Misused``."""
    parser, made = _opening()
    found: Any
    found, more = parser.parse_known_args(words_of(line))
    if more:
        flags = [flag for each in made for flag in each.option_strings]
        near = nearest(more[0].partition("=")[0], flags) if more[0].startswith("-") else None
        raise Misused(f"%kw open does not know {more[0]}", f"did you mean {near}?" if near is not None else _OPEN)
    ground = WorkspaceOptions(found.graph, found.state, found.chunks, force=found.force, raw=found.raw)
    limits = Limits(found.max_calls, found.max_tokens, found.max_cost, found.price, cache=not found.no_cache)
    return DeskAsked(ground=ground, llm=found.llm, models=tuple(found.model), limits=limits)


def open_flags() -> dict[str, bool]:
    """Return the option names of ``%kw open``, and whether each takes a value."""
    return {flag: each.nargs != 0 for each in _opening()[1] for flag in each.option_strings}


def _opening() -> tuple[_Parser, list[argparse.Action]]:
    """Return the parser of ``%kw open``, and its options."""
    parser = _Parser(prog="%kw open", usage=_OPEN, add_help=False, allow_abbrev=False)
    parser.add_argument("graph", nargs="?")
    return parser, [
        *(parser.add_argument(f"--{name}") for name in ("state", "chunks", "llm", "price")),
        parser.add_argument("--model", action="append", default=[]),
        parser.add_argument("--max-calls", type=_count),
        parser.add_argument("--max-tokens", type=_count),
        parser.add_argument("--max-cost", type=_dollars),
        parser.add_argument("--no-cache", action="store_true"),
        parser.add_argument("--force", action="store_true"),
        parser.add_argument("--raw", action="store_true"),
    ]


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"takes a number, not {text}")
    return int(text)


def _dollars(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"takes an amount in dollars, not {text}")
    return number


_FLAGS = ("--check", "--plan")
CELL_FLAGS = (*_FLAGS, "--input")
"""The options of a cell magic; the last one takes a variable."""


def cell_flags(line: str, magic: str) -> tuple[str, str | None]:
    """Return a cell's action ("run", "check", "plan"), and the Python variable that is its input. Raises ``Misused``."""
    words: Sequence[str] = words_of(line)
    what, given, place = "run", None, 0
    while place < len(words):
        word = words[place]
        if word in _FLAGS:
            what = word.removeprefix("--")
        elif word == "--input":
            if place + 1 == len(words):
                raise Misused("--input takes a variable", f"%%{magic} --input VARIABLE")
            place += 1
            given = words[place]
        else:
            near = nearest(word, CELL_FLAGS)
            usage = f"%%{magic} [--check | --plan] [--input VARIABLE]"
            raise Misused(f"%%{magic} does not know {word}", f"did you mean {near}?" if near is not None else usage)
        place += 1
    return what, given
