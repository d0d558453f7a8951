"""``.undo``: the state and the values as they were."""

import re

from .....adapters.state import StateError
from ....gasl.state_graph import roll_back
from ..outcome import Outcome, misused
from ..past import Moment
from .dot import Asked, Dot

__all__ = ["UNDO"]

_HASH = re.compile(r"[0-9A-Fa-f]+")


async def _undo(asked: Asked) -> Outcome:
    desk, argument = asked.desk, asked.argument
    if argument and not (argument.isdecimal() and len(argument) < 4):
        if not _HASH.fullmatch(argument):
            told = "is neither how many commands to undo nor a state's hash"
            return misused(f"{argument} {told}", ".undo 2 takes back two; .log has the hashes")
        return _to_hash(asked)
    count, moments = int(argument or 1), desk.past.moments
    if not moments:
        return misused(
            "there is nothing to undo in this session", "a state's hash, from .log, takes it back further: .undo HASH"
        )
    if not 1 <= count <= len(moments):
        return misused(f"{len(moments)} command{'' if len(moments) == 1 else 's'} can be undone, not {argument}")
    moment = moments[-count]
    changed = roll_back(desk.state, moment.state, ".undo")
    desk.values.back(moment.values)
    desk.last_value = moment.latest
    desk.past.moments = moments[:-count]
    del desk.ran[moment.entries :]
    return Outcome(summary=_told(moment, count, changed, desk.state.hash))


def _told(moment: Moment, count: int, changed: int, now: str) -> str:
    text = " ".join(moment.text.split())
    what = text if len(text) <= 60 else text[:59] + "…"
    more = f", and {count - 1} after it" if count > 1 else ""
    return f"undone: {what}{more}{f' · state {now[:12]}' if changed else ''}"


def _to_hash(asked: Asked) -> Outcome:
    desk = asked.desk
    before = desk.state.hash
    moment = Moment.now(asked.piece.text, desk.state, desk.values, len(desk.ran), desk.last_value)
    try:
        changed = roll_back(desk.state, asked.argument, ".undo")
    except StateError as error:
        return misused(error.message, error.hint or ".log has the hashes")
    if not changed:
        return Outcome(summary=f"the state is as it was at {before[:12]}; nothing was changed")
    desk.past.add(moment, desk.state, desk.values)
    return Outcome(summary=f"back at {desk.state.hash[:12]}; it was {before[:12]}")


UNDO = Dot(
    "undo", ".undo [N|HASH]", "take back the latest change, or N of them", _undo, "hash",
    "State and values are as before. The history stays, and says so: taking back is a commit, too. HASH takes the state alone.",
)  # fmt: skip
