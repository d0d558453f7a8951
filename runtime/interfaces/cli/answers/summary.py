"""What stands at the end: the answer on stdout, on stderr how good it is and what it cost; and the exit code."""

import sys

from .....lang.diagnostic import printable
from ....answers.answer_results import Answered, points
from ....answers.service import TOO_SMALL
from ..shared.exit import Exit
from ..shared.output import colour, is_terminal, json_text, paint, say, write
from .asked import Form
from .telling import figures

__all__ = ["finish"]

_STYLES = {"accepted": "green", "best": "yellow", "failed": "red"}
_CODES = {"accepted": Exit.DONE, "best": Exit.PARTIAL, "failed": Exit.FAILED}


def finish(answered: Answered, threshold: float, cached: int, form: Form) -> int:
    """Write answer and report; return the exit code. ``cached``: how many of the calls the cache answered."""
    if form == "json":
        print(json_text(answered.as_json()))
    elif answered.final_answer is not None:
        write(answered.final_answer)
    sys.stdout.flush()
    if answered.final_answer is not None and is_terminal(sys.stdout) and is_terminal(sys.stderr):
        say()
    _report(answered, threshold, cached)
    return Exit.INTERRUPTED if answered.stopped == "cancelled" else _CODES[answered.status]


def _report(answered: Answered, threshold: float, cached: int) -> None:
    status = paint(answered.status, _STYLES[answered.status], colour(sys.stderr))
    tokens = answered.usage.prompt_tokens, answered.usage.completion_tokens
    cost = figures(answered.calls, cached, tokens, answered.cost, f"{answered.seconds:.2f} s")
    say(f"{status}: {_how(answered, threshold)} · {cost}")
    for warning in answered.warnings:
        if warning != TOO_SMALL:  # that was told before the first call
            say(printable(f"warning: {warning}"))
    if answered.status == "failed" or answered.stopped:
        say(printable(answered.reason))


def _how(answered: Answered, threshold: float) -> str:
    total = answered.total_iterations
    if not total:
        return "no iteration was finished"
    if answered.best is None or answered.final_score is None:
        return f"none of {total} iterations has a score" if total != 1 else "the one iteration has no score"
    which = f"iteration {answered.best + 1} of {total}" if total > 1 else "one iteration"
    below = "" if answered.success else f", below {threshold:g}"
    return f"{points(answered.final_score, threshold)} in {which}{below}"
