"""The IPython magics ``%%gasl``, ``%%lwt`` and ``%kw`` (also as ``%%kw``), and the display of their results."""

import atexit
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import no_var_expand
from IPython.display import display

from ...api.pieces import Language
from ...api.session import level
from ...api.session_data import misused
from ...errors import Misused
from .cells import Cell, magic_position
from .completion import register, unregister
from .display import CANCELLED
from .event_loop import Stopped
from .line_magics import LineMagics, cell_options, wants_help
from .session import Bundle, NotebookSession

_TRACEBACKS = 3
"""Minimum debug log level at which tracebacks are shown."""
_display: Callable[..., Any] = display
_PROGRESS = {"knotwork": "progress"}
"""Metadata key that marks a progress line in an output."""


class Magics:
    """The magics of one IPython shell. All magics use the same session."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._in_kernel = getattr(shell, "kernel", None) is not None
        self._slot: Any = None
        """The display handle of the progress line; the next output replaces the line."""
        marks = itertools.count(1)
        self.notebook = NotebookSession(shell.user_ns, shell.user_ns_hidden, self._show, self._place, self._update)
        self.line_magics = LineMagics(self.notebook, lambda: f"kw{shell.execution_count}-{next(marks)}")

    @no_var_expand  # the languages use $ and {
    def gasl(self, line: str, cell: str) -> None:
        """Run a cell of GASL commands."""
        self._cell(line, cell, "gasl")

    @no_var_expand
    def lwt(self, line: str, cell: str) -> None:
        """Run a cell of LWT steps."""
        self._cell(line, cell, "lwt")

    @no_var_expand
    def kw(self, line: str, cell: str | None = None) -> Any:
        """Open a session, inspect the session, or run text in any of the languages: see ``%kw help``."""
        if cell is not None:
            self._cell(line, cell, None)
            return None
        with self._errors_shown():
            at = magic_position(self._shell)
            return self.line_magics.run(Cell(line.strip(), at.name, at.line))

    @contextmanager
    def _errors_shown(self) -> Iterator[None]:
        """Convert exceptions to ``Stopped``, which IPython shows as one line instead of a traceback."""
        try:
            yield
        except Stopped:
            raise
        except Misused as error:
            raise self.notebook.stopped(misused(error.message, error.hint)) from None
        except KeyboardInterrupt:  # raised while results are copied or displayed, after the work itself has ended
            raise Stopped(CANCELLED) from None
        except Exception as error:  # the last resort, as in the session
            if level() >= _TRACEBACKS:
                raise
            raise Stopped(f"internal error: {type(error).__name__}: {error}") from None
        finally:
            self._clear_progress()

    def _cell(self, line: str, text: str, language: Language | None) -> None:
        with self._errors_shown():
            at = magic_position(self._shell)
            cell = Cell(text, at.name, at.line + 1, language)
            if wants_help(line):
                self.line_magics.help("", cell)
                return
            action, variable = cell_options(line, language or "kw")
            if variable is not None:
                self.notebook.set_input(variable)
            {"run": self.notebook.run, "check": self.line_magics.check, "plan": self.line_magics.plan}[action](cell)

    def _show(self, bundle: Bundle) -> None:
        slot, self._slot = self._slot, None
        if slot is None:
            _display(bundle, raw=True)
        else:
            slot.update(bundle, raw=True)

    def _place(self, bundle: Bundle) -> Any:
        if self._slot is not None:
            self._update(self._slot, bundle)
            return self._slot
        handle = _display(bundle, raw=True, display_id=True, metadata=_PROGRESS)
        if self._in_kernel:  # outside a kernel, a printed line can't be replaced
            self._slot = handle
        return handle

    def _update(self, handle: Any, bundle: Bundle) -> None:
        if self._in_kernel:  # outside a kernel, each update would print another line
            handle.update(bundle, raw=True, metadata=_PROGRESS)

    def _clear_progress(self) -> None:
        """Remove the progress line. The presence of a progress line depends on timing, and saved notebooks must be comparable."""
        slot, self._slot = self._slot, None
        if slot is not None:
            slot.update({}, raw=True)


def load(shell: Any) -> None:
    """Register the magics."""
    magics = Magics(shell)
    for kind, name, run in (("cell", "gasl", magics.gasl), ("cell", "lwt", magics.lwt), ("line_cell", "kw", magics.kw)):
        shell.register_magic_function(run, kind, name)
    register(shell, magics.notebook, magics.line_magics)
    atexit.register(magics.notebook.close)


def unload(shell: Any) -> None:
    """Remove the magics, and end the session."""
    found = shell.magics_manager.magics
    magics = getattr(found["line"].pop("kw", None), "__self__", None)
    for name in ("gasl", "lwt", "kw"):
        found["cell"].pop(name, None)
    unregister(shell)
    if isinstance(magics, Magics):
        atexit.unregister(magics.notebook.close)
        magics.notebook.close()
