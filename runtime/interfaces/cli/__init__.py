"""The ``knotwork`` command. ``main`` is the entry point; each command is a module of the same name in ``commands``.

``commands`` has only the signatures and help texts of the commands. The modules in this folder do the work. A module is imported
when its command is called, because ``--help`` and ``check`` are used often and must start fast.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Sequence

from .output import MEANINGS, Exit

__all__ = ["MEANINGS", "Exit", "app", "main"]


def __getattr__(name: str) -> object:
    """Load the Typer application on first use."""
    if name == "app":
        from .commands import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line ``argv`` (default: that of the process), and exit with the command's exit code. No traceback is printed."""
    try:
        code = _exit_code(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except BrokenPipeError:
        code = _close_stdout()
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    except OSError as error:  # such as a full disk, which is reported when the rest of the output is written
        print(f"error: the output can't be written: {error.strerror or error}", file=sys.stderr)
        code = _close_stdout()
    sys.exit(int(code))


def _exit_code(argv: list[str]) -> int:
    """Run ``argv``; translate every exception that a command raises into a message and an exit code."""
    from .output import complain, ready_streams

    ready_streams()
    try:
        from .commands import command

        return command(argv)
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except OSError as error:
        if error.errno == errno.ENOSPC and not error.filename:  # a long output fills the disk before the final flush
            raise
        name = f"{error.filename}: " if error.filename else ""
        complain(f"{name}{error.strerror or error}")
        return Exit.FAILED
    except Exception as error:  # internal errors, and the failures that ``_report`` handles by class
        return _report(error)


def _report(error: Exception) -> int:
    from ....adapters.graph import AdapterError
    from ....adapters.llm import LLMError, NotConfigured
    from ....adapters.state import StoreError
    from ...api.runs import level
    from .output import complain

    if isinstance(error, LLMError):
        complain(error.message, error.hint)
        return Exit.USAGE if isinstance(error, NotConfigured) else Exit.FAILED
    if isinstance(error, AdapterError | StoreError):
        complain(error.message, error.hint)
        return Exit.FAILED
    if level() >= 3:
        import traceback

        traceback.print_exception(error)
    complain(f"internal error: {type(error).__name__}: {error}; set KNOTWORK_DEBUG=3 for the traceback")
    return Exit.FAILED


def _close_stdout() -> int:
    """Redirect stdout to the null device and return the exit code: the reader of a pipe is gone (``| head``) or the output failed.

    Otherwise Python's final flush would report an error.
    """
    with contextlib.suppress(OSError, ValueError):  # stdout is not a system file (in a test)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.FAILED
