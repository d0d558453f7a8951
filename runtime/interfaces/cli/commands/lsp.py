"""``knotwork lsp``: the language server, for editors."""

import contextlib
import os
import sys
from importlib.util import find_spec

from ..output import Exit, Misused, say


def lsp() -> int:
    """Serve an editor over stdin and stdout: diagnostics, completion, hover and other features for .lwt, .gasl and .seed.json.

    Editors start this command themselves; docs/reference/editors.md lists the settings for each editor.

    Example: knotwork lsp (the command of the server in an editor's settings)
    """

    return perform()


# The ``lsp`` command.


def perform() -> int:
    """Serve until the editor disconnects; return the exit code. Raises ``Misused`` if the extra, stdin or stdout is missing."""
    if find_spec("pygls") is None:
        raise Misused("lsp: the optional dependencies are not installed", "pip install 'knotwork[editor]'")
    if sys.stdin is None or sys.stdout is None:
        raise Misused("lsp needs stdin and stdout", "start it from an editor")
    if sys.stdin.isatty():
        say("editors start this command and send requests on stdin; Ctrl-D ends it")
    from ....api.runs import level
    from ...lsp.features import serve

    # Use duplicates of stdin and stdout. Then other output goes to stderr, not between the messages, and a thread that still waits
    # for input at exit does not hold a lock that the interpreter needs. For the second reason, stdin is not closed.
    stdin = open(os.dup(sys.stdin.fileno()), "rb")  # noqa: SIM115
    stdout = open(os.dup(sys.stdout.fileno()), "wb")  # noqa: SIM115
    if sys.stderr is not None:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    ended_well = serve(stdin, stdout, log=level() >= 3)
    with contextlib.suppress(OSError):  # the client has disconnected
        stdout.close()
    return Exit.DONE if ended_well else Exit.FAILED
