"""The ``%kw`` line magic, which runs its subcommands, the prompt's dot commands, or text in any of the languages.

This module also parses the arguments of all magics.
"""

import argparse
import shlex
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, NoReturn

from ....lang.diagnostic import nearest, printable
from ...api.data_flow import data_flow, draw_evidence
from ...api.files import UnknownSuffix, known_suffix
from ...api.pieces import Piece
from ...api.reports import render_state
from ...api.session_data import Outcome, Page
from ...api.session_runs import is_expression
from ...api.workspace import WorkspaceOptions
from ...errors import Misused
from ..options import Limits
from ..repl import SessionOptions
from ..repl.dot_commands import DOT_COMMANDS
from ..repl.dot_commands.session_commands import write_failure
from .cells import Cell, dot_cell
from .flow_diagram import MAX_BOXES, evidence_svg, flow_svg, flow_text
from .session import NotebookSession

_HELP = """\
%kw open [GRAPH] [--state DIR] [--llm SPEC]   open a graph, a state, a model; GRAPH may be a variable with a networkx graph
%%gasl, %%lwt                                 run GASL commands; run LWT steps
%%kw, %kw TEXT                                run commands, steps, expressions and dot commands, as at the prompt
    --check, --plan, --input VARIABLE         after %%gasl, %%lwt or %%kw; --check and --plan run nothing
%kw schema, vars, state, log, diff, undo ...  run the prompt's dot commands; %kw .help lists them
%kw check TEXT                                show the errors in a text
%kw plan [TEXT]                               draw the data flow of a text, or of everything that was run
%kw evidence                                  draw the part of the graph that supports the findings
%kw report [FILE]                             show the report on the state, or write it to a file (--force overwrites it)
%kw input VARIABLE                            set the value of {(input)}
%kw value NAME                                return a value as a Python value: hubs = %kw value hubs
%kw close                                     end the session; variables remain

Names that a cell binds become Python variables. Python variables that a cell uses become values in it.
"""


class LineMagics:
    """The subcommands of ``%kw``. Each call of ``marks`` returns a new id, for one picture in the notebook."""

    def __init__(self, notebook: NotebookSession, marks: Callable[[], str]) -> None:
        self._notebook, self._marks = notebook, marks
        self._subcommands: Mapping[str, Callable[[str, Cell], Any]] = {
            "open": self._open, "close": self._close, "check": self._check, "plan": self._plan, "evidence": self._evidence,
            "report": self._report, "input": self._input, "value": self._value, "help": self.help,
        }  # fmt: skip

    @property
    def words(self) -> tuple[str, ...]:
        """The names of the subcommands and of the dot commands.

        A line begins with one of these names, or is text in one of the languages.
        """
        return (*self._subcommands, *DOT_COMMANDS)

    def run(self, cell: Cell) -> Any:
        """Run a line, and return its value if it has one. Raises ``Stopped`` or ``Misused``."""
        line = cell.text.strip()
        word, _, rest = (line or "help").partition(" ")
        rest = rest.strip()
        if wants_help(word):
            self.help("", cell)
        elif word not in self.words or self._is_expression(line, word, rest):
            self._run_text(cell, word, rest)
        elif wants_help(rest):
            self.help("" if word in self._subcommands else word, cell)
        elif word in self._subcommands:
            return self._subcommands[word](rest, cell)
        else:
            self._notebook.run(dot_cell(line, cell.name))
        return None

    def help(self, topic: str, cell: Cell) -> None:
        """Show the help on ``topic``; the overview if ``topic`` is empty."""
        if topic:
            self._notebook.run(dot_cell(f"help {topic}", cell.name))
        else:
            self._notebook.show_outcome(Outcome(value=Page(_HELP)))

    def check(self, cell: Cell) -> None:
        """Show the errors in a cell. Nothing is run."""
        if not cell.pieces:
            raise Misused("the text to check is empty", "%kw check TEXT, or --check after a cell's magic")
        found = self._notebook.check(cell)
        is_clean = found.is_good and not found.diagnostics
        self._notebook.show_outcome(Outcome(summary="no errors") if is_clean else found)

    def plan(self, cell: Cell) -> None:
        """Draw the data flow of a cell. Nothing is run."""
        found = self._notebook.check(cell)
        if not found.is_good:
            raise self._notebook.stopped(found)
        self._draw(cell.pieces)

    def _is_expression(self, line: str, word: str, rest: str) -> bool:
        """Return whether a line begins with a name, not with a subcommand.

        Examples are ``state = 3``, and ``state + 1`` if ``state`` is bound.
        """
        if rest.startswith("=") and not rest.startswith("=="):
            return True
        return bool(rest) and not rest.startswith("(") and word in self._notebook.names() and is_expression(line)

    def _run_text(self, cell: Cell, word: str, rest: str) -> None:
        if word.isidentifier() and not rest and word not in self._notebook.names():
            near = nearest(word, self.words)
            if near is not None:
                raise Misused(f"unknown subcommand %kw {word}", f"did you mean %kw {near}?")
        self._notebook.run(cell)

    def _open(self, line: str, cell: Cell) -> None:
        session = self._notebook.open(open_options(line))
        if session.adapter is not None:
            self._notebook.run(dot_cell("schema", cell.name))
            return
        cause = "that was a variable or is unknown; open it with %kw open VARIABLE --state DIR"
        notes = (f"the state was made with a graph {cause}",) if session.state.history else ()
        self._notebook.show_outcome(Outcome(summary="a session without a graph", notes=notes))

    def _close(self, line: str, cell: Cell) -> None:
        _no_argument("close", line)
        self._notebook.close()

    def _check(self, line: str, cell: Cell) -> None:
        self.check(Cell(line, cell.name, cell.first_line))

    def _plan(self, line: str, cell: Cell) -> None:
        if line:
            self.plan(Cell(line, cell.name, cell.first_line))
            return
        ran = [entry.piece for entry in self._notebook.session().ran]
        if not ran:
            raise Misused("nothing has been run yet", "%kw plan TEXT draws the data flow of a text")
        self._draw(ran)

    def _draw(self, pieces: Sequence[Piece]) -> None:
        boxes = data_flow(pieces)
        if not boxes:
            raise Misused("there is nothing to draw", "%kw plan draws commands, steps and expressions")
        caption = f"only the first {MAX_BOXES} of {len(boxes):,} are drawn" if len(boxes) > MAX_BOXES else ""
        self._notebook.show_picture(flow_svg(boxes, self._marks()), flow_text(boxes[:MAX_BOXES]), caption)

    def _evidence(self, line: str, cell: Cell) -> None:
        _no_argument("evidence", line)
        session = self._notebook.session()
        drawing = self._notebook.run_slow(lambda: draw_evidence(session.state.as_json(), session.adapter), "evidence")
        if drawing is None:
            raise Misused("no finding has evidence in the graph yet", "UPDATE stores findings with their evidence")
        nodes, edges = len(drawing.spots), len(drawing.lines)
        caption = f"{nodes} node{'' if nodes == 1 else 's'} and {edges} edge{'' if edges == 1 else 's'} between them"
        caption += f" · {drawing.left_out:,} more nodes are not drawn" if drawing.left_out else ""
        names = ", ".join(printable(spot.label) for spot in drawing.spots)
        self._notebook.show_picture(evidence_svg(drawing), f"{caption}: {names}", caption)

    def _report(self, line: str, cell: Cell) -> None:
        name, force = file_argument(line, "report")
        if name is not None:
            try:
                known_suffix(name, (".html", ".htm"))
            except UnknownSuffix as error:
                raise Misused(error.message, error.hint) from None
        notebook, session = self._notebook, self._notebook.session()
        page = notebook.run_slow(lambda: render_state(session.state.as_json(), session.adapter), "report")
        if name is None:
            # The page is separate, contains no scripts, and is not allowed to run scripts.
            frame = f'<iframe sandbox srcdoc="{escape(page)}" style="width:100%;height:36em;border:1px solid #8884"></iframe>'
            notebook.show_picture(frame, "the report on the state; %kw report FILE writes it to a file")
            return
        failure = write_failure(name, page, force=force, hint=f"%kw report {name} --force overwrites it")
        notebook.show_outcome(failure or Outcome(summary=f"written to {name}"))

    def _input(self, line: str, cell: Cell) -> None:
        self._notebook.set_input(_one_name("input", line, "VARIABLE"))

    def _value(self, line: str, cell: Cell) -> Any:
        return self._notebook.value(_one_name("value", line, "NAME"))


def _no_argument(subcommand: str, line: str) -> None:
    if line:
        raise Misused(f"%kw {subcommand} takes no argument: {line}", f"%kw {subcommand}")


def _one_name(subcommand: str, line: str, argument: str) -> str:
    if len(line.split()) != 1:
        raise Misused(f"%kw {subcommand} takes one name", f"%kw {subcommand} {argument}")
    return line


# Parses the arguments of a magic.

_OPEN = (
    "%kw open [GRAPH] [--state DIR] [--llm SPEC] [--model NAME=SPEC] [--chunks FILE] [--max-calls N] [--max-tokens N]"
    " [--max-cost USD] [--price IN/OUT] [--no-cache] [--force] [--raw]"
)


class _Parser(argparse.ArgumentParser):
    """A parser that raises ``Misused`` instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise Misused(message.replace("argument ", "", 1), str(self.usage or ""))


def words_of(line: str) -> list[str]:
    """Return the words of a line; text in quotes stays in one word. Raises ``Misused``."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise Misused(f"the line can't be parsed: {str(error).lower()}", "close the quote") from None


def wants_help(line: str) -> bool:
    """Return whether a line requests help."""
    return line.split()[-1:] in (["--help"], ["-h"])


def file_argument(line: str, subcommand: str) -> tuple[str | None, bool]:
    """Return the file named in a line (None: no file), and whether it may be overwritten. Raises ``Misused``."""
    words = words_of(line)
    names = [word for word in words if not word.startswith("-") or word == "-"]
    unknown = next((word for word in words if word not in names and word != "--force"), None)
    usage = f"%kw {subcommand} [FILE] [--force]"
    if unknown is not None:
        raise Misused(f"%kw {subcommand}: unknown option {unknown}", usage)
    if len(names) > 1 or names == [""]:
        raise Misused(f"%kw {subcommand} takes one file", usage)
    return (names[0] if names else None), "--force" in words


def open_options(line: str) -> SessionOptions:
    """Return the options of ``%kw open``. Raises ``Misused``."""
    parser, arguments = _open_parser()
    found: Any
    found, more = parser.parse_known_args(words_of(line))
    if more:
        flags = [flag for each in arguments for flag in each.option_strings]
        near = nearest(more[0].partition("=")[0], flags) if more[0].startswith("-") else None
        raise Misused(f"%kw open: unknown option {more[0]}", f"did you mean {near}?" if near is not None else _OPEN)
    workspace = WorkspaceOptions(
        found.graph, found.state, found.chunks, force=found.force, raw=found.raw, cache=not found.no_cache
    )
    limits = Limits(found.max_calls, found.max_tokens, found.max_cost, found.price, cache=not found.no_cache)
    return SessionOptions(workspace=workspace, llm=found.llm, models=tuple(found.model), limits=limits)


def open_flags() -> dict[str, bool]:
    """Map the name of each option of ``%kw open`` to whether the option takes a value."""
    return {flag: each.nargs != 0 for each in _open_parser()[1] for flag in each.option_strings}


def _open_parser() -> tuple[_Parser, list[argparse.Action]]:
    """Return the parser of ``%kw open``, and its options."""
    parser = _Parser(prog="%kw open", usage=_OPEN, add_help=False, allow_abbrev=False)
    parser.add_argument("graph", nargs="?")
    return parser, [
        *(parser.add_argument(f"--{name}") for name in ("state", "chunks", "llm", "price")),
        parser.add_argument("--model", action="append", default=[]),
        parser.add_argument("--max-calls", type=_count),
        parser.add_argument("--max-tokens", type=_count),
        parser.add_argument("--max-cost", type=_dollars),
        *(parser.add_argument(f"--{name}", action="store_true") for name in ("no-cache", "force", "raw")),
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
"""The options of a cell magic; the last option, ``--input``, takes a variable."""


def cell_options(line: str, magic: str) -> tuple[str, str | None]:
    """Return the action for a cell ("run", "check" or "plan"), and the Python variable for its input. Raises ``Misused``.

    The variable is None without ``--input``.
    """
    action, variable, words = "run", None, iter(words_of(line))
    for word in words:
        if word in _FLAGS:
            action = word.removeprefix("--")
        elif word == "--input":
            variable = next(words, None)
            if variable is None:
                raise Misused("--input takes a variable", f"%%{magic} --input VARIABLE")
        else:
            near = nearest(word, CELL_FLAGS)
            usage = f"%%{magic} [--check | --plan] [--input VARIABLE]"
            raise Misused(f"%%{magic}: unknown option {word}", f"did you mean {near}?" if near is not None else usage)
    return action, variable
