"""The ``%kw`` line magic: its subcommands, the prompt's dot commands, or a text of any language."""

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from ....lang.diagnostic import has_errors, nearest, printable
from ....lang.parse.expr import parse_expr
from ...api.reports import render_state
from ...errors import Misused
from ...report.drawings import draw
from ...report.findings import groups, touched
from ..atomic_write import UnknownSuffix, known_suffix
from ..repl.dot_commands import DOTS
from ..repl.outcome import Outcome, Page
from ..repl.reader import Piece
from ..repl.session_file import unwritten
from . import cells
from .cells import Cell, dot
from .flow_diagram import MOST, evidence_svg, flow_of, flow_svg, told_of
from .session import Room

_HELP = """\
%kw open [GRAPH] [--state DIR] [--llm SPEC]   a graph, a state, a model; GRAPH may be a variable with a networkx graph
%%gasl, %%lwt                                 GASL commands; LWT steps
%%kw, %kw TEXT                                commands, steps, expressions and dot commands, as at the prompt
    --check, --plan, --input VARIABLE         behind %%gasl, %%lwt or %%kw; what is checked or drawn is not run
%kw schema, vars, state, log, diff, undo ...  the prompt's dot commands; %kw .help lists them
%kw check TEXT                                what is wrong with a text
%kw plan [TEXT]                               what takes from what, drawn: of a text, or of all that was run
%kw evidence                                  the part of the graph that the findings rest on
%kw report [FILE]                             the report on the state, here or into a file (--force writes over one)
%kw input VARIABLE                            what {(input)} stands for
%kw value NAME                                a value, for Python: hubs = %kw value hubs
%kw close                                     ends the session; variables stay

What a cell binds is a Python variable afterwards; a Python variable that a cell names is a value in it.
"""


class Verbs:
    """The subcommands of ``%kw``. ``marks`` returns an id unique to each picture of the notebook."""

    def __init__(self, room: Room, marks: Callable[[], str]) -> None:
        self._room, self._marks = room, marks
        self._own: Mapping[str, Callable[[str, Cell], Any]] = {
            "open": self._open, "close": self._close, "check": self._check, "plan": self._plan, "evidence": self._evidence,
            "report": self._report, "input": self._input, "value": self._value, "help": self._help,
        }  # fmt: skip

    @property
    def words(self) -> tuple[str, ...]:
        """The words that may begin a line, besides those of the languages."""
        return (*self._own, *DOTS)

    def run(self, cell: Cell) -> Any:
        """Run a line; return its value, if any. Raises ``Stopped`` and ``Misused``."""
        line = cell.text.strip()
        word, _, rest = (line or "help").partition(" ")
        rest = rest.strip()
        if cells.wants_help(word):
            self.help("", cell)
        elif word not in self.words or self._is_expression(line, word, rest):
            self._text(cell, word, rest)
        elif cells.wants_help(rest):
            self.help("" if word in self._own else word, cell)
        elif word in self._own:
            return self._own[word](rest, cell)
        else:
            self._room.run(dot(line, cell.name))
        return None

    def help(self, topic: str, cell: Cell) -> None:
        """Show the overview, or the help on one topic."""
        if topic:
            self._room.run(dot(f"help {topic}", cell.name))
        else:
            self._room.told(Outcome(value=Page(_HELP)))

    def checked(self, cell: Cell) -> None:
        """Show the errors of a cell. Nothing is run."""
        if not cell.pieces:
            raise Misused("there is nothing to be checked", "%kw check TEXT, or --check behind a cell's magic")
        found = self._room.checked(cell)
        is_clean = found.is_good and not found.diagnostics
        self._room.told(Outcome(summary="nothing is wrong with it") if is_clean else found)

    def drawn(self, cell: Cell) -> None:
        """Draw the data flow of a cell. Nothing is run."""
        found = self._room.checked(cell)
        if not found.is_good:
            raise self._room.stopped(found)
        self._drawn(cell.pieces)

    def _is_expression(self, line: str, word: str, rest: str) -> bool:
        """Return whether a line's first word is a value, not a subcommand: ``state = 3``, or, if bound, ``state + 1``."""
        if rest.startswith("=") and not rest.startswith("=="):
            return True
        if not rest or rest.startswith("(") or word not in self._room.names():
            return False
        read = parse_expr(line)
        return read.expr is not None and not has_errors(read.diagnostics)

    def _text(self, cell: Cell, word: str, rest: str) -> None:
        if word.isidentifier() and not rest and word not in self._room.names():
            near = nearest(word, self.words)
            if near is not None:
                raise Misused(f"there is no %kw {word}", f"did you mean %kw {near}?")
        self._room.run(cell)

    def _open(self, line: str, cell: Cell) -> None:
        desk = self._room.open(cells.opened(line))
        if desk.adapter is not None:
            self._room.run(dot("schema", cell.name))
            return
        graph = "its graph was a variable, or is not known: %kw open VARIABLE --state DIR names it"
        notes = (f"the state was made with a graph; {graph}",) if desk.state.history else ()
        self._room.told(Outcome(summary="a session without a graph", notes=notes))

    def _close(self, line: str, cell: Cell) -> None:
        _alone("close", line)
        self._room.close()

    def _check(self, line: str, cell: Cell) -> None:
        self.checked(Cell(line, cell.name, cell.first_line))

    def _plan(self, line: str, cell: Cell) -> None:
        if line:
            self.drawn(Cell(line, cell.name, cell.first_line))
            return
        ran = [entry.piece for entry in self._room.desk().ran]
        if not ran:
            raise Misused("nothing was run yet", "%kw plan TEXT draws what a text would do")
        self._drawn(ran)

    def _drawn(self, pieces: "list[Piece] | tuple[Piece, ...]") -> None:
        boxes = flow_of(pieces)
        if not boxes:
            raise Misused("there is nothing to be drawn", "commands, steps and expressions take from each other")
        left = f"the first {MOST} of {len(boxes):,} are drawn" if len(boxes) > MOST else ""
        self._room.picture(flow_svg(boxes, self._marks()), told_of(boxes[:MOST]), left)

    def _evidence(self, line: str, cell: Cell) -> None:
        _alone("evidence", line)
        desk = self._room.desk()
        drawing = self._room.beside(lambda: draw(*touched(groups(desk.state.as_json())), desk.adapter), "evidence")
        if drawing is None:
            raise Misused("no finding has evidence in the graph yet", "UPDATE keeps what was found, with its evidence")
        nodes, lines = len(drawing.spots), len(drawing.lines)
        said = f"{nodes} node{'' if nodes == 1 else 's'} and {lines} edge{'' if lines == 1 else 's'} between them"
        more = f" · {drawing.left_out:,} more nodes are not drawn" if drawing.left_out else ""
        names = ", ".join(printable(spot.label) for spot in drawing.spots)
        self._room.picture(evidence_svg(drawing), f"{said}{more}: {names}", said + more)

    def _report(self, line: str, cell: Cell) -> None:
        name, force = cells.file_asked(line, "report")
        if name is not None:
            try:
                known_suffix(name, (".html", ".htm"))
            except UnknownSuffix as error:
                raise Misused(error.message, error.hint) from None
        room, desk = self._room, self._room.desk()
        page = room.beside(lambda: render_state(desk.state.as_json(), desk.adapter), "report")
        if name is None:
            # A separate page without scripts, and not allowed to run any.
            frame = f'<iframe sandbox srcdoc="{escape(page)}" style="width:100%;height:36em;border:1px solid #8884"></iframe>'
            room.picture(frame, "the report on the state; %kw report FILE writes it")
            return
        fault = unwritten(name, page, force=force, hint=f"%kw report {name} --force writes over it")
        room.told(fault or Outcome(summary=f"written to {name}"))

    def _input(self, line: str, cell: Cell) -> None:
        self._room.give_input(_one("input", line, "VARIABLE"))

    def _value(self, line: str, cell: Cell) -> Any:
        return self._room.value(_one("value", line, "NAME"))

    def _help(self, line: str, cell: Cell) -> None:
        self.help(line, cell)


def _alone(verb: str, line: str) -> None:
    if line:
        raise Misused(f"%kw {verb} stands alone, without {line}", f"%kw {verb}")


def _one(verb: str, line: str, what: str) -> str:
    if len(line.split()) != 1:
        raise Misused(f"%kw {verb} takes one name", f"%kw {verb} {what}")
    return line
