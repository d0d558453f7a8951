"""``knotwork lsp``: the language server, for editors."""

import contextlib
import os
import sys
from importlib.util import find_spec

from ..output import Exit, Misused, say

__all__ = ["perform"]


def lsp() -> int:
    """Serve an editor over stdin and stdout: diagnostics, completion, hover and the rest, for .lwt, .gasl and .seed.json.

    Editors start this themselves; docs/reference/editors.md says how each is told to.

    Example: knotwork lsp (the command of the server in an editor's settings)
    """

    return perform()


# What ``lsp`` does.


def perform() -> int:
    """Serve until the editor leaves; return the exit code. Raises ``Misused`` where there is no editor at the other end."""
    if find_spec("pygls") is None:
        raise Misused("lsp: its extra is not installed", "pip install 'knotwork[editor]'")
    if sys.stdin is None or sys.stdout is None:
        raise Misused("lsp needs stdin and stdout", "an editor starts it with both")
    if sys.stdin.isatty():
        say("an editor starts this and talks to it over stdin; Ctrl-D ends it")
    from ...lsp.features import serve

    # Streams of our own: what anything prints goes to stderr, not between the messages; and a thread that still waits for input
    # when the process ends holds no lock that the end needs. So stdin is not closed either.
    stdin = open(os.dup(sys.stdin.fileno()), "rb")  # noqa: SIM115
    stdout = open(os.dup(sys.stdout.fileno()), "wb")  # noqa: SIM115
    if sys.stderr is not None:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    ended_well = serve(stdin, stdout)
    with contextlib.suppress(OSError):  # what could not be written to a client that has gone
        stdout.close()
    return Exit.DONE if ended_well else Exit.FAILED
