"""What stands at the end: the answer on stdout, on stderr what it rests on, what it cost, and how to go on."""

import shlex
import sys

from .....lang.diagnostic import printable
from ....commands.excerpts import clipped, excerpt
from ....hdt.results import Asked, Finding
from ..programs.progress import Calls
from ..shared.exit import Exit
from ..shared.output import colour, is_terminal, json_text, paint, say, write
from .asked import Question

__all__ = ["finish"]

_STYLES = {"complete": "green", "stopped": "yellow", "failed": "red", "cancelled": "yellow"}
_CODES = {"complete": Exit.DONE, "stopped": Exit.FAILED, "failed": Exit.FAILED, "cancelled": Exit.INTERRUPTED}
_FINDINGS = 10
_ITEM, _SOURCE = 160, 120


def finish(made: Asked, calls: Calls, asked: Question) -> int:
    """Write the answer and the report; return the exit code."""
    if asked.form == "json":
        print(json_text(made.as_json()))
    elif made.status == "complete":
        write(made.answer)
    sys.stdout.flush()
    if made.status == "complete" and is_terminal(sys.stdout) and is_terminal(sys.stderr):
        say()
    _report(made, calls, asked)
    return _CODES[made.status]


def _report(made: Asked, calls: Calls, asked: Question) -> None:
    if made.evidence:
        say("evidence:")
        for found in made.evidence[:_FINDINGS]:
            say(printable(f"  {_told(found)}"))
        if len(made.evidence) > _FINDINGS:
            say(f"  and {len(made.evidence) - _FINDINGS} more; --format json has them")
    status = paint(made.status, _STYLES[made.status], colour(sys.stderr))
    steps = f"{len(made.steps)} step{'' if len(made.steps) == 1 else 's'}"
    parts = [
        steps,
        *([f"{made.earlier} of them before"] if made.earlier else []),
        calls.line(),
        f"{made.seconds:.2f} s",
    ]
    say(f"{status}: {' · '.join(parts)}")
    if made.reason:
        say(printable(made.reason))
    if asked.ground.state is None:
        return
    say(f"kept in {printable(asked.ground.state)}")
    if made.status != "complete":
        say(f"go on with: {_command(made, asked)}")


def _told(found: Finding) -> str:
    sources = []
    for piece in found.evidence:
        named = (
            piece.get("source_id")
            or piece.get("doc_id")
            or piece.get("file_path")
            or piece.get("nodes")
            or piece.get("cited")
        )
        if piece.get("kind") == "model":
            sources.append(clipped(f"{piece.get('model')} citing {excerpt(named, _SOURCE)}", _SOURCE))
        elif named:
            sources.append(excerpt(named, _SOURCE))
    behind = f"  ← {'; '.join(dict.fromkeys(sources))}" if sources else ""
    return f"{found.key}: {excerpt(found.item, _ITEM)}{behind}"


def _command(made: Asked, asked: Question) -> str:
    """Return the command that goes on; after the last step that was allowed it allows as many again."""
    words = ["knotwork", "ask", str(asked.ground.graph), made.question, "--state", str(asked.ground.state)]
    if asked.llm is not None:
        words += ["--llm", asked.llm]
    if made.stopped == "steps":
        words += ["--max-steps", str(2 * asked.max_steps)]
    elif asked.max_steps != 12:
        words += ["--max-steps", str(asked.max_steps)]
    return shlex.join(words)
