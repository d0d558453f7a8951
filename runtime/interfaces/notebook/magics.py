"""What IPython calls: ``%%gasl``, ``%%lwt`` and ``%kw`` (also as ``%%kw``)."""

import atexit
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import no_var_expand
from IPython.display import display

from ....lang.diagnostic import nearest
from ...report import render
from ...report.drawing import draw
from ...report.findings import groups, touched
from ..cli.shared.exit import Misused
from ..repl.dots import DOTS
from ..repl.outcome import Outcome, Page, misused
from ..repl.reading import Language, Piece, language_of
from . import asking
from .drawing import MOST, evidence_svg, flow_svg
from .flow import Box, flow_of
from .room import Bundle, Room, read
from .stopping import Stopped

__all__ = ["load", "unload"]

_BODY = 2
"""The line of a cell that its text begins with; the first one has the magic."""
_display: Callable[..., Any] = display

_HELP = """\
%kw open [GRAPH] [--state DIR] [--llm SPEC]   a graph, a state, a model; GRAPH may be a variable with a networkx graph
%%gasl                                        GASL commands (--check, --plan: nothing is run)
%%lwt                                         LWT steps (--check, --plan, --input VARIABLE)
%%kw, %kw TEXT                                commands, steps, expressions and dot commands, as at the prompt
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


class Magics:
    """The magics of one shell, over one session."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._in_kernel = getattr(shell, "kernel", None) is not None
        self._marks = itertools.count(1)
        self.room = Room(shell.user_ns, self._show, self._place, self._update)
        self._verbs: Mapping[str, Callable[[str], Any]] = {
            "open": self._open, "close": self._close, "check": self._check, "plan": self._plan, "evidence": self._evidence,
            "report": self._report, "input": self._input, "value": self._value, "help": self._help,
        }  # fmt: skip

    @no_var_expand  # $ and { are the languages' own
    def gasl(self, line: str, cell: str) -> None:
        """Run a cell of GASL commands."""
        self._cell(line, cell, "gasl")

    @no_var_expand
    def lwt(self, line: str, cell: str) -> None:
        """Run a cell of LWT steps."""
        self._cell(line, cell, "lwt")

    @no_var_expand
    def kw(self, line: str, cell: str | None = None) -> Any:
        """Open a session, look at it, or run a text of any language: ``%kw help`` tells more."""
        if cell is not None:
            self._cell(line, cell, None)
            return None
        with self._door():
            return self._line(line)

    @contextmanager
    def _door(self) -> Iterator[None]:
        """Let nothing out that would be shown as a traceback."""
        try:
            yield
        except Stopped:
            raise
        except Misused as error:
            raise self.room.stopped(misused(error.message, error.hint)) from None
        except Exception as error:  # the last door, as the session has one
            raise Stopped(f"internal error: {type(error).__name__}: {error}") from None

    def _line(self, line: str) -> Any:
        verb, _, rest = line.strip().partition(" ")
        if not verb:
            return self._help("")
        done = self._verbs.get(verb)
        if done is not None:
            return done(rest.strip())
        if verb in DOTS:
            self.room.run([Piece(f".{line.strip()}", "dot", 1, self._name)])
            return None
        if verb.isidentifier() and not rest and verb not in self._shell.user_ns:
            near = nearest(verb, [*self._verbs, *DOTS])
            if near is not None and verb not in self.room.desk.values.names():
                raise self.room.stopped(misused(f"there is no %kw {verb}", f"did you mean %kw {near}?"))
        self.room.run(read(line.strip(), None, self._name))
        return None

    @property
    def _name(self) -> str:
        return f"In[{self._shell.execution_count}]"

    def _cell(self, line: str, cell: str, language: Language | None) -> None:
        with self._door():
            self._answered(line, cell, language)

    def _answered(self, line: str, cell: str, language: Language | None) -> None:
        room = self.room
        what, given = asking.cell_flags(line, language or "kw")
        if given is not None:
            room.give_input(given)
        if what == "run":
            room.run(read(cell, language, self._name, _BODY))
            return
        if language is None:
            raise room.stopped(
                misused(f"%%kw has no --{what}: it may hold several languages", f"%%gasl --{what} or %%lwt --{what}")
            )
        piece = Piece(cell, language, _BODY, self._name)
        outcome = room.checked(piece)
        if what == "check" or not outcome.is_good:
            room.told(
                outcome if outcome.diagnostics or not outcome.is_good else Outcome(summary="nothing is wrong with it")
            )
        else:
            self._drawn(flow_of([piece]))

    def _open(self, line: str) -> None:
        desk = self.room.open(asking.opened(line))
        if desk.adapter is None:
            self.room.told(Outcome(summary="a session without a graph"))
        else:
            self.room.run([Piece(".schema", "dot", 1, self._name)])

    def _close(self, line: str) -> None:
        self.room.close()

    def _check(self, line: str) -> None:
        found = self.room.checked(Piece(line, language_of(line), 1, self._name))
        self.room.told(found if found.diagnostics or not found.is_good else Outcome(summary="nothing is wrong with it"))

    def _plan(self, line: str) -> None:
        room = self.room
        if line:
            piece = Piece(line, language_of(line), 1, self._name)
            outcome = room.checked(piece)
            if not outcome.is_good:
                raise room.stopped(outcome)
            self._drawn(flow_of([piece]))
            return
        ran = [entry.piece for entry in room.desk.ran]
        if not ran:
            raise room.stopped(misused("nothing was run yet", "%kw plan TEXT draws what a text would do"))
        self._drawn(flow_of(ran))

    def _drawn(self, boxes: tuple[Box, ...]) -> None:
        if len(boxes) > MOST:
            self.room.told(Outcome(summary=f"the first {MOST} of {len(boxes):,} are drawn"))
        lines = [
            f"{box.name} · {box.does}"
            + (f" ← {', '.join(boxes[number].name for number in box.takes)}" if box.takes else "")
            for box in boxes[:MOST]
        ]
        self.room.picture(flow_svg(boxes, f"kw{self._shell.execution_count}-{next(self._marks)}"), "\n".join(lines))

    def _evidence(self, line: str) -> None:
        desk = self.room.desk
        drawing = self.room.beside(lambda: (draw(*touched(groups(desk.state.as_json())), desk.adapter),), "evidence")[0]
        if drawing is None:
            raise self.room.stopped(
                misused("no finding has evidence in the graph yet", "UPDATE keeps what was found, with its evidence")
            )
        more = f"{drawing.left_out:,} more nodes are not drawn" if drawing.left_out else ""
        lines = len(drawing.lines)
        said = f"{len(drawing.spots)} nodes and {lines} edge{'' if lines == 1 else 's'} between them"
        names = ", ".join(spot.label for spot in drawing.spots)
        self.room.picture(evidence_svg(drawing), f"{said}: {names}")
        self.room.told(Outcome(summary=" · ".join(part for part in (said, more) if part)))

    def _report(self, line: str) -> None:
        room, desk = self.room, self.room.desk
        page = room.beside(lambda: render(desk.state.as_json(), desk.adapter), "report")
        words = asking.words_of(line)
        names = [word for word in words if word != "--force"]
        if not names:
            # A page of its own, which has no scripts and may run none.
            frame = f'<iframe sandbox srcdoc="{escape(page)}" style="width:100%;height:36em;border:1px solid #8884"></iframe>'
            room.picture(frame, "the report on the state; %kw report FILE writes it")
            return
        path = Path(names[0]).expanduser()
        try:
            with open(path, "w" if "--force" in words else "x", encoding="utf-8") as file:
                file.write(page)
        except FileExistsError:
            raise room.stopped(
                misused(f"{names[0]} is there already", f"%kw report {names[0]} --force writes over it")
            ) from None
        except (OSError, ValueError) as error:
            raise room.stopped(
                misused(f"{names[0]} can't be written: {getattr(error, 'strerror', None) or error}")
            ) from None
        room.told(Outcome(summary=f"written to {names[0]}"))

    def _input(self, line: str) -> None:
        self.room.give_input(line)

    def _value(self, line: str) -> Any:
        return self.room.value(line)

    def _help(self, line: str) -> None:
        if line:
            self.room.run([Piece(f".help {line}", "dot", 1, self._name)])
        else:
            self.room.told(Outcome(value=Page(_HELP)))

    def _show(self, bundle: Bundle) -> None:
        if bundle:
            _display(bundle, raw=True)

    def _place(self, bundle: Bundle) -> Any:
        # Who compares notebooks can leave this out: whether it is seen is a matter of time.
        return _display(bundle, raw=True, display_id=True, metadata={"knotwork": "progress"})

    def _update(self, handle: Any, bundle: Bundle) -> None:
        if self._in_kernel:  # elsewhere each update would be a further line
            handle.update(bundle, raw=True, metadata={"knotwork": "progress"})


def load(shell: Any) -> None:
    """Register the magics."""
    magics = Magics(shell)
    for kind, name, run in (("cell", "gasl", magics.gasl), ("cell", "lwt", magics.lwt), ("line_cell", "kw", magics.kw)):
        shell.register_magic_function(run, kind, name)
    atexit.register(magics.room.close)


def unload(shell: Any) -> None:
    """Take the magics away and end the session."""
    found = shell.magics_manager.magics
    magics = getattr(found["line"].pop("kw", None), "__self__", None)
    for name in ("gasl", "lwt", "kw"):
        found["cell"].pop(name, None)
    if isinstance(magics, Magics):
        atexit.unregister(magics.room.close)
        magics.room.close()
