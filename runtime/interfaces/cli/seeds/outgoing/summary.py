"""What stands on stderr at the end of a run over contexts, and its exit code."""

import sys
from pathlib import Path

from attrs import frozen

from ......lang.diagnostic import printable
from .....seeds.seed_run import Totals
from ....counting import dollars
from ...shared.exit import Exit
from ...shared.output import colour, paint, say
from .tally import Tally, many

__all__ = ["Ending", "finish"]

_STYLES = {"complete": "green", "partial": "yellow", "failed": "red", "cancelled": "yellow"}
_CODES = {"complete": Exit.DONE, "partial": Exit.PARTIAL, "failed": Exit.FAILED, "cancelled": Exit.INTERRUPTED}

_READ_AS = {
    "thinking": "behind thinking", "fenced": "in a fence", "embedded": "in prose", "literal": "as Python literals"
}  # fmt: skip


@frozen
class Ending:
    """What else is to be told of a run: where it is kept (``damage``: why not), how to go on with it, where the results are."""

    totals: Totals
    kept_in: Path
    damage: str
    resume: str
    out: str | None


def finish(tally: Tally, ending: Ending) -> int:
    """Tell what came of the run and return the exit code."""
    on, totals = colour(sys.stderr), ending.totals
    status = "cancelled" if totals.cancelled else tally.status
    tally.tell_troubles()
    say(f"{paint(status, _STYLES[status], on)}: {tally.contexts()}")
    say(f"reviews: {tally.figures()}")
    if totals.read_as:
        told = ", ".join(f"{count:,} {_READ_AS.get(how, how)}" for how, count in sorted(totals.read_as.items()))
        say(f"answers that were more than JSON: {told}")
    calls = tally.calls
    parts = [many(totals.calls, "call")]
    parts += [f"{count:,} {what}" for count, what in _saved(tally, totals) if count]
    if totals.usage.total:
        parts.append(f"{totals.usage.prompt_tokens:,} + {totals.usage.completion_tokens:,} tokens")
    if cost := totals.cost or calls.cost:
        parts.append(dollars(cost))
    say(" · ".join([*parts, f"{totals.seconds:.2f} s"]))
    if totals.stopped:
        say(printable(f"nothing more was asked: {totals.stopped}"))
    if ending.out is not None and ending.out != "-":
        say(printable(f"written to {ending.out}"))
    if ending.damage:
        say(f"not kept: {printable(ending.damage)}")
        return _CODES[status]
    say(f"kept in {printable(str(ending.kept_in))}")
    if status != "complete":
        say(f"go on with: {ending.resume}")
    return _CODES[status]


def _saved(tally: Tally, totals: Totals) -> tuple[tuple[int, str], ...]:
    return (
        (tally.calls.cached, "answered by the cache"),
        (totals.known, "extractions known before"),
        (totals.reused, "kept from before"),
    )
