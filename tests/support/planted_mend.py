"""The dumb repairer: all that it sees is a faulty text and the JSON of what was told of it.

It makes the edits that are offered, else puts the name that is offered where the faulty one stands, else writes or leaves out what a
hint says to, else takes of the names that a hint lists the one most like the faulty one. The one thing that it makes up
is a ``why`` where none is: any text does. It knows neither the language nor the task; nothing of ``support`` is imported here.
"""

import json
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

from knotwork.lang.diagnostic import Edit, apply_edits
from knotwork.lang.source import Span

__all__ = ["mend"]

Told = list[dict[str, Any]]
_LISTED = re.compile(
    r"(?:there are|nodes have|edges have|allowed(?: keys)?|(?:it is |op must be )?one of|the \w+ are|its values are|known):? (.*)"
)


def mend(text: str, told: str) -> str:
    """Return the text with what is told (a JSON list of diagnostics and of failed commands' errors) put right, as far as it can."""
    faults: Told = json.loads(told)
    edits: list[Edit] = []
    for each in faults:
        mine = _edits(text, each)
        if not any(_overlap(edit.span, other.span) for edit in mine for other in edits):
            edits += mine
    if not edits:  # nothing else is offered: of the names that a hint lists the nearest, in the first place
        edits = next((mine for each in faults if (mine := _nearest(text, each))), [])
    return apply_edits(text, edits)


def _edits(text: str, told: dict[str, Any]) -> list[Edit]:
    if told.get("edits"):
        return [Edit(Span(each["start"], each["end"]), each["text"]) for each in told["edits"]]
    if "span" not in told:
        return _named(text, told["message"], told.get("hint") or "")
    span, hints = told["span"], told["hints"]
    if not span:
        return []
    here = Span(span["start"], span["end"])
    offered = _offered(hints)
    if offered is None:
        return _advised(text, told["message"], here, hints)
    # A key of JSON stands in its quotes, which the hint leaves out.
    quoted = text[here.start : here.start + 1] == '"' and not offered.startswith('"')
    return [Edit(here, json.dumps(offered) if quoted else offered)]


def _offered(hints: Sequence[str]) -> str | None:
    found = next((match for hint in hints if (match := re.search(r"did you mean `?([^`?]+)`?\?", hint))), None)
    return None if found is None else found[1]


def _advised(text: str, message: str, here: Span, hints: Sequence[str]) -> list[Edit]:
    """Do what a hint says in so many words."""
    if message == "why is missing":
        at = here.start + 1
        return [Edit(Span(at, at), '"why": "repaired", ')]
    for hint in hints:
        if at_end := re.search(r"write `([^`]+)` at the end$", hint):
            end = len(text.rstrip())
            return [Edit(Span(end, end), at_end[1])]
        if instead := re.search(r"replace it with `([^`]+)`$", hint):
            return [Edit(here, instead[1])]
        if hint == "remove it":
            member = re.compile(r'"[^"]*"\s*:\s*[^,{}\[\]]+,?').match(text, here.start)
            return [Edit(Span(*member.span()), "")] if member else []
        if value := re.match(r'write ("[^"]*") for a text', hint):
            return [Edit(here, value[1])]
        if written := re.match(r"write ([^;,`]+?)(?:;.*)?$", hint):
            what = written[1]
            return [Edit(here, what.split()[0] if "..." in what else what)]
    return []


def _nearest(text: str, told: dict[str, Any]) -> list[Edit]:
    """Put the name that is most like the faulty one in its place, of those that a hint lists: ``there are: a, b``."""
    span = told.get("span")
    listed = [
        name
        for hint in told.get("hints", ())
        if (match := _LISTED.match(hint))
        for name in re.findall(r"[\w.]+", match[1])
    ]
    if not span or not listed:
        return []
    word = text[span["start"] : span["end"]]
    found = max(listed, key=lambda name: SequenceMatcher(None, name, word).ratio())
    return [Edit(Span(span["start"], span["end"]), found)]


def _named(text: str, message: str, hint: str) -> list[Edit]:
    """A command that ran names the value that is not there and the one that was meant: put it there, wherever that stands."""
    missing = re.search(r'unknown key "([^"]+)"', message)
    found = re.search(r'has no "([^"]+)"; did you mean "([^"]+)"', hint)
    old, new = (found[1], found[2]) if found else (missing and missing[1], _offered([hint]))
    if not old or not new:
        return []
    quoted = re.finditer(rf"(?<=[\"']){re.escape(old)}(?=\\?[\"'])", text)
    return [Edit(Span(each.start(), each.end()), new) for each in quoted]


def _overlap(a: Span, b: Span) -> bool:
    return (a.start < b.end and b.start < a.end) or a.start == b.start
