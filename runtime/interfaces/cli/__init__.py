"""The ``knotwork`` command. ``main`` is the entry point; each command is a module of the same name in ``commands``.

``commands`` has only the commands' signatures and help. The modules here do their work, and are imported when a command is
called: ``--help`` and ``check`` are used all day and must start fast.
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
    """Run the command line ``argv`` (the process's own by default) and exit with its code. Tracebacks never escape."""
    try:
        code = _exit_code(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except BrokenPipeError:
        code = _close_stdout()
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    except OSError as error:  # a full disk, reported when the remaining output is written
        print(f"error: the output can't be written: {error.strerror or error}", file=sys.stderr)
        code = _close_stdout()
    sys.exit(int(code))


def _exit_code(argv: list[str]) -> int:
    """Run ``argv`` and translate every escaping exception into a message and an exit code."""
    from .output import complain, ready_streams

    ready_streams()
    try:
        from .commands import command

        return command(argv)
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except OSError as error:
        if error.errno == errno.ENOSPC and not error.filename:  # a long output fails before the final flush
            raise
        name = f"{error.filename}: " if error.filename else ""
        complain(f"{name}{error.strerror or error}")
        return Exit.FAILED
    except Exception as error:  # the last handler: the rest are internal errors, or failures with their own names
        return _report(error)


def _report(error: Exception) -> int:
    from ....adapters.graph import AdapterError
    from ....adapters.llm import LLMError, NotConfigured
    from ....adapters.state import StoreError
    from ...runs.event_log import level
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
    """Exit silently if the reader of the output is gone (``| head``), also during Python's final flush."""
    with contextlib.suppress(OSError, ValueError):  # stdout is not a system file (in a test)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.FAILED
