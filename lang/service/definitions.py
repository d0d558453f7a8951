"""Where a name is defined, who refers to it, and what renames it. The same for all languages.

A rename is made on a copy first: the copy must be read, name the same things at the same places, and have the same diagnostics.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ..diagnostic import Diagnostic, Edit, printable
from ..parse.repairs import Repaired, repair
from ..source import Source, Span
from . import language_names
from .document import Reading, Text, diagnosed, read
from .language_names import Names, Occurrence
from .model import Known, Language, Place

__all__ = ["can_be_renamed", "defined", "named_at", "names_in", "occurrences_in", "places", "renamed"]

_LONGEST = 200


def occurrences_in(language: Language, text: Text) -> Names:
    """Return all that the text names, in the order of the text."""
    return names_in(read(language, text))


def names_in(reading: Reading) -> Names:
    """Return all that a text names, in the order of the text."""
    return reading.once("names", _names)


def _names(reading: Reading) -> Names:
    found: Iterable[Occurrence]
    match reading.language:
        case "gasl":
            found = language_names.gasl_occurrences(reading.as_program.pieces)
        case "lwt":
            found = language_names.lwt_occurrences(reading.as_script.pieces)
        case "expr":
            tree = reading.expression.expr
            found = () if tree is None else language_names.expr_occurrences(tree, reading.text)
        case "seed":
            found = language_names.seed_occurrences(reading)
    return tuple(sorted(found, key=lambda each: (each.span.start, each.span.end)))


def named_at(found: Sequence[Occurrence], offset: int) -> Occurrence | None:
    """Return what is named at ``offset``, or right before it: a cursor behind a name is on it."""
    on = next((each for each in found if each.span.covers(offset)), None)
    return on or next((each for each in found if each.span.end == offset), None)


def defined(found: Sequence[Occurrence], offset: int) -> Place | None:
    """Return where what is named at ``offset`` is defined: there, else above, nearest first, else below."""
    at = named_at(found, offset)
    if at is None:
        return None
    defining = [each.span for each in found if each.thing == at.thing and each.defines]
    above = [span for span in defining if span.start <= at.span.start]
    chosen = above[-1] if above else defining[0] if defining else None
    return Place(chosen, True) if chosen is not None else None


def places(found: Sequence[Occurrence], offset: int) -> tuple[Place, ...]:
    """Return every place that names what is named at ``offset``."""
    at = named_at(found, offset)
    return () if at is None else tuple(Place(each.span, each.defines) for each in found if each.thing == at.thing)


def can_be_renamed(reading: Reading, offset: int, known: Known) -> Place | Diagnostic:
    """See ``service.renamable``."""
    found = names_in(reading)
    at = named_at(found, offset)
    if at is None:
        return _refused("there is no name here that can be another")
    same = [each for each in found if each.thing == at.thing]
    fault = _fault(at, same, found, at.name, known) or _unread(reading, at, same)
    return _refused(fault, at.span) if fault else Place(at.span, at.defines)


def renamed(reading: Reading, offset: int, new: str, known: Known) -> tuple[Edit, ...] | Diagnostic:
    """See ``service.rename``."""
    found = names_in(reading)
    at = named_at(found, offset)
    if at is None:
        return _refused("there is no name here that can be another")
    same = [each for each in found if each.thing == at.thing]
    fault = _fault(at, same, found, new, known) or _unread(reading, at, same)
    if fault:
        return _refused(fault, at.span)
    if new == at.name:
        return ()
    edits = [Edit(each.span, each.written(new) or new) for each in same]
    reason = _changed(reading, edits, at, new, known)
    return _refused(reason, at.span) if reason else tuple(edits)


_WORDS = {"computation": "step"}


def _fault(at: Occurrence, same: Sequence[Occurrence], found: Sequence[Occurrence], new: str, known: Known) -> str:
    """Return why the name can't be another, or ""."""
    fixed = next((each.fixed for each in same if each.fixed), "")
    if fixed:
        return fixed
    if not any(each.defines for each in same):
        return f"{_shown(at.name)} is not defined in this text"
    if not new.strip() or len(new) > _LONGEST:
        return "a name is not empty" if not new.strip() else f"a name has at most {_LONGEST} characters"
    if any(each.written(new) is None for each in same):
        return f"{_shown(new)} can't be the name of a {_WORDS.get(at.kind, at.kind)}"
    # Variables of two strings or two comprehensions don't meet; where one would take another's place, the copy tells.
    near = (each for each in found if at.kind != "variable" or not at.scope or each.scope in (0, at.scope))
    if new != at.name and any(each.name == new and each.kind == at.kind for each in near):
        return f"there is a {_WORDS.get(at.kind, at.kind)} {_shown(new)} already"
    if new != at.name and at.kind == "variable" and new in known.variables:
        return f"{_shown(new)} is bound before this text"
    if at.kind == "variable" and at.name in known.variables and at.scope == 0:
        return f"{_shown(at.name)} is bound before this text, too"
    return ""


def _unread(reading: Reading, at: Occurrence, same: Sequence[Occurrence]) -> str:
    """Return why not, where a part of the text that can't be read has the name."""
    if not reading.faults:
        return ""
    words = len(re.findall(rf"(?<!\w){re.escape(at.name)}(?!\w)", reading.text))
    return "" if words == len(same) else "a part of the text that can't be read has this name; put it right first"


def _changed(reading: Reading, edits: Sequence[Edit], at: Occurrence, new: str, known: Known) -> str:
    """Return what else a rename would change, or ""."""
    made = repair(reading.text, edits)
    later_reading = reading.changed(Source(made.text, reading.source.name))
    after = names_in(later_reading)
    places_after = {(*_ends_back(made, each.span), each.kind): each for each in after}
    meant = (places_after.get((edit.span.start, edit.span.end, at.kind)) for edit in edits)
    if any(each is None or each.name != new for each in meant):
        return f"with the name {_shown(new)} the text would be read in another way"
    if _together(names_in(reading)) != _together(
        each._replace(span=Span(start, end)) for (start, end, _), each in places_after.items()
    ):
        return f"with the name {_shown(new)} the text would be read in another way"
    told, now = diagnosed(reading, known), diagnosed(later_reading, known)
    before = Counter((each.code, each.severity, each.span) for each in told)
    later = Counter((each.code, each.severity, _back(made, each.span)) for each in now)
    if before != later:
        more, less = later - before, before - later
        said = next((each for each in now if (each.code, each.severity, _back(made, each.span)) in more), None)
        if said is not None:
            return f"with the name {_shown(new)} the checker would say: {said.message} ({said.code})"
        gone = next(each for each in told if (each.code, each.severity, each.span) in less)
        return f"with the name {_shown(new)} the checker would no longer say: {gone.message} ({gone.code})"
    return ""


def _together(found: Iterable[Occurrence]) -> list[tuple[int, int, str, int]]:
    """Return all places that name something, each with the first that names the same."""
    ordered = sorted(found, key=lambda each: (each.span.start, each.span.end))
    first: dict[tuple[str, str, int], int] = {}
    return [
        (each.span.start, each.span.end, each.kind, first.setdefault(each.thing, each.span.start)) for each in ordered
    ]


def _ends_back(made: Repaired, span: Span) -> tuple[int, int]:
    """Return where a span was, as ``back_span`` does; of thousands of names no spans are made."""
    start = made.back(span.start)
    return start, max(start, made.back(span.end))


def _back(made: Repaired, span: Span | None) -> Span | None:
    return None if span is None else made.back_span(span)


def _refused(reason: str, span: Span | None = None) -> Diagnostic:
    return Diagnostic("KW005", "error", reason, span)


def _shown(name: str) -> str:
    return printable(name if len(name) <= 60 else name[:59] + "…")
