"""IPython without a terminal or a kernel: cells are run in this process, and what they display is kept."""

import atexit
import types
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

__all__ = ["Shell", "Told"]


@dataclass
class Told:
    """What a cell came to: bundles that it displayed, its value, its error, what was printed."""

    shown: list[dict[str, str]] = field(default_factory=list)
    value: Any = None
    error: BaseException | None = None
    printed: str = ""

    @property
    def text(self) -> str:
        """The texts of what was displayed."""
        return "\n".join(each.get("text/plain", "") for each in self.shown)

    @property
    def html(self) -> str:
        """The HTML of what was displayed."""
        return "\n".join(each.get("text/html", "") for each in self.shown)


class Shell:
    """A shell of its own, whose names are those of ``module``. ``end`` it."""

    def __init__(self, module: types.ModuleType) -> None:
        InteractiveShell.clear_instance()
        config = Config()
        config.HistoryManager.enabled = False
        config.InteractiveShell.colors = "nocolor"
        config.InteractiveShell.cache_size = 0  # its end collects garbage, which takes longer than most tests
        self.shell = InteractiveShell.instance(config=config, user_module=module, user_ns=module.__dict__)

    @property
    def names(self) -> dict[str, Any]:
        """The notebook's variables."""
        return self.shell.user_ns

    def run(self, cell: str) -> Told:
        """Run a cell."""
        with capture_output() as taken:
            result = self.shell.run_cell(cell)
        shown = [dict(each.data) for each in taken.outputs if each.metadata.get("knotwork") != "progress"]
        error = result.error_in_exec or result.error_before_exec
        return Told(shown, result.result, error, taken.stdout + taken.stderr)

    def provisional(self) -> AbstractContextManager[None]:
        """Where IPython's completions may be asked for, which it calls provisional."""
        return provisionalcompleter()

    def end(self) -> None:
        """Unload, and leave nothing behind."""
        self.run("%unload_ext knotwork")
        atexit.unregister(self.shell.atexit_operations)
        self.shell.atexit_operations()
        InteractiveShell.clear_instance()
