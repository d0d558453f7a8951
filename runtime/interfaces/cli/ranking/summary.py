"""What stands at the end of ``rank``: the rankings on stdout, on stderr what became of them and what they cost; the exit code."""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from .....lang.diagnostic import printable
from ....loops.rank.ranking_results import Ranked
from ....lwt.run_store import Recorder
from ...counting import Calls
from ..answers.telling import figures
from ..shared.exit import Exit
from ..shared.output import colour, is_terminal, json_text, paint, say, write
from .asked import RankAsked

__all__ = ["finish"]

_STYLES = {"complete": "green", "partial": "yellow", "failed": "red", "cancelled": "yellow"}
_SHOWN = 60
"""Characters of a request in a table."""
_LISTED = 20
"""Failures that are listed one by one; --format json has them all."""


def finish(
    ranked: Sequence[Ranked], calls: Calls, asked: RankAsked, recorder: Recorder, resume: str, seconds: float, *, several: bool
) -> int:  # fmt: skip
    """Write rankings and report; return the exit code. ``seconds``: what all of it took, requests side by side."""
    statuses = Counter(each.status for each in ranked)
    status = _status(statuses)
    form = asked.form
    if form == "auto":
        form = "table" if is_terminal(sys.stdout) else "json"
    if form == "json":
        print(json_text(_document(ranked, status, calls, recorder, several=several)))
    elif form == "plain":
        for each in ranked:
            write("none" if each.none_fits else ", ".join(map(str, each.ranking)))
    else:
        print(_table(ranked, several=several), end="")
    sys.stdout.flush()
    if is_terminal(sys.stdout) and is_terminal(sys.stderr):
        say()
    _report(ranked, status, statuses, calls, recorder, resume, seconds, several=several)
    return {"complete": Exit.DONE, "partial": Exit.PARTIAL, "failed": Exit.FAILED, "cancelled": Exit.INTERRUPTED}[
        status
    ]


def _status(statuses: Counter[Any]) -> str:
    """Return the status of all together."""
    if statuses["cancelled"]:
        return "cancelled"
    if len(statuses) == 1:
        return str(next(iter(statuses)))
    return "partial"


def _document(
    ranked: Sequence[Ranked], status: str, calls: Calls, recorder: Recorder, *, several: bool
) -> dict[str, Any]:
    if not several:
        return {**ranked[0].as_json(), "run": recorder.run_id}
    usage = {"calls": calls.calls, "cached": calls.cached, "tokens": calls.tokens, "cost": calls.cost}
    return {"status": status, "rankings": [each.as_json() for each in ranked], "usage": usage, "run": recorder.run_id}


def _table(ranked: Sequence[Ranked], *, several: bool) -> str:
    from ..shared.tables import render

    if not several:
        (only,) = ranked
        rows: list[list[Any]] = [
            [str(place), str(index), name]
            for place, (index, name) in enumerate(zip(only.ranking, only.names, strict=True), 1)
        ]
        return render(["rank", "item", "name"], rows) if rows else ""
    rows = [
        [
            f"R{each.number:02}", _short(each.request), "none" if each.none_fits else ", ".join(map(str, each.ranking[:10])),
            each.names[0] if each.names else "", each.status,
        ]
        for each in ranked
    ]  # fmt: skip
    return render(["#", "request", "ranking", "best", "status"], rows, wide=frozenset({"#", "status"}))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def _report(
    ranked: Sequence[Ranked], status: str, statuses: Counter[Any], calls: Calls, recorder: Recorder, resume: str, seconds: float,
    *, several: bool,
) -> None:  # fmt: skip
    on = colour(sys.stderr)
    bad = [each for each in ranked if each.status in ("failed", "cancelled") or each.reason]
    for each in bad[:_LISTED]:
        place = f"R{each.number:02} " if several else ""
        say(f"{paint(each.status, _STYLES[each.status], on)} {place}{printable(each.reason)}")
    if len(bad) > _LISTED:
        say(f"and {len(bad) - _LISTED} more")
    sent, tokens = calls.calls - calls.cached, (calls.tokens,)
    told = figures(sent, calls.cached, tokens, calls.cost, f"{seconds:.2f} s")
    what = ", ".join(f"{count:,} {each}" for each, count in statuses.items()) if several else _ranking(ranked[0])
    say(f"{paint(status, _STYLES[status], on)}: {what} · {told}")
    if recorder.damage:
        say(f"not kept: {printable(recorder.damage)}")
        return
    say(f"kept in {printable(str(recorder.path))}")
    if status != "complete":
        say(f"go on with: {resume}")


def _ranking(ranked: Ranked) -> str:
    if ranked.none_fits:
        return "no item fits"
    return f"ranking {', '.join(map(str, ranked.ranking))}" if ranked.ranking else "no ranking"
