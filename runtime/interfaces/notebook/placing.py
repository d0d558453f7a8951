"""Where a magic stands: the cell's number, and the line in it. Whatever calls a magic has a frame, and the shell knows its file."""

import inspect

from attrs import frozen
from IPython.core.interactiveshell import InteractiveShell

__all__ = ["Standing", "standing"]


@frozen
class Standing:
    """``name`` is what Python's own tracebacks call the cell; ``line`` is the magic's line in it."""

    name: str
    line: int = 1


def standing(shell: InteractiveShell) -> Standing:
    """Return where the magic stands that is running now; of one that no cell has, the number that comes next."""
    frame = inspect.currentframe()
    try:
        while frame is not None:
            told = shell.compile.format_code_name(frame.f_code.co_filename)
            if told is not None:
                return Standing(str(told[1]), frame.f_lineno)
            frame = frame.f_back
    finally:
        del frame  # it would keep all that its callers have alive
    return Standing(f"In[{shell.execution_count}]")
