"""The ``knotwork`` command. ``main`` is the entry point; each command is a module of the same name in ``commands``.

``commands`` contains only the signatures and help texts of the commands. The modules in this folder do the work. A module is imported
only when its command is called, because ``--help`` and ``check`` are used often and must start fast.
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
    """Run the command line ``argv`` (default: the process's arguments), and exit with its exit code.

    A traceback is printed only with KNOTWORK_DEBUG=3.
    """
    try:
        try:
            code = _exit_code(list(sys.argv[1:] if argv is None else argv))
        finally:
            _stop_traces()
        sys.stdout.flush()
    except BrokenPipeError:
        code = _close_stdout()
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    except OSError as error:  # for example a full disk, which is only detected when the buffer is flushed
        print(f"error: the output can't be written: {error.strerror or error}", file=sys.stderr)
        code = _close_stdout()
    sys.exit(int(code))


def _stop_traces() -> None:
    """Send the rest of the traces, for at most a few seconds, and report what was not sent."""
    traces = sys.modules.get(f"{__package__.rpartition('.')[0].rpartition('.')[0]}.api.process_traces")
    if traces is not None:  # a command that runs nothing does not import it
        from .output import say

        for line in traces.stop():
            say(f"warning: {line}")


def _exit_code(argv: list[str]) -> int:
    """Run ``argv`` and return the exit code. An exception that a command raises becomes a message and an exit code.

    Only a closed pipe, Ctrl-C and a full disk are raised to the caller.
    """
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
    from ...api.clients import NotConfigured
    from ...api.runs import NoHome, level
    from ...api.seed_workers import EngineError
    from ...api.workspace import AdapterError, LLMError, StoreError
    from ...errors import RequestError
    from .output import complain

    if isinstance(error, AdapterError | EngineError | LLMError | NoHome | StoreError):
        complain(error.message, error.hint)
        return Exit.USAGE if isinstance(error, NotConfigured) else Exit.FAILED
    if isinstance(error, RequestError):
        complain(f"--{error.parameter.replace('_', '-')}: {error.message}", error.hint)
        return Exit.USAGE
    if level() >= 3:
        import traceback

        traceback.print_exception(error)
    complain(f"internal error: {type(error).__name__}: {error}; set KNOTWORK_DEBUG=3 for the traceback")
    return Exit.FAILED


def _close_stdout() -> int:
    """Redirect stdout to the null device and return the exit code. Called if a pipe was closed (``| head``) or a write failed.

    Without the redirection, Python's final flush would report an error.
    """
    with contextlib.suppress(OSError, ValueError):  # stdout has no file descriptor (in tests)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.FAILED
