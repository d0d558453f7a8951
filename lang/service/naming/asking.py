"""Where a name is defined, who refers to it, and what renames it. The same for all languages.

A rename is made on a copy first: the copy must be read, name the same things at the same places, and have the same diagnostics.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ...diagnostic import Diagnostic, Edit, printable
from ...parse.repairs import Repaired, repair
from ...source import Span
from .. import reading
from ..checking import diagnosed
from ..model import Known, Language, Place
from . import expr, gasl, lwt, seed
from .occurrence import Occurrence

__all__ = ["can_be_renamed", "defined", "named_at", "occurrences_in", "places", "renamed"]

_LONGEST = 200


def occurrences_in(language: Language, text: str) -> list[Occurrence]:
    """Return all that the text names, in the order of the text."""
    found: Iterable[Occurrence]
    match language:
        case "gasl":
            found = gasl.occurrences(reading.program(text))
        case "lwt":
            found = lwt.occurrences(reading.script(text))
        case "expr":
            read = reading.expression(text)
            found = () if read.expr is None else expr.occurrences(read.expr, text)
        case "seed":
            found = seed.occurrences(text)
    return sorted(found, key=lambda each: each.span)


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


def can_be_renamed(language: Language, text: str, offset: int, known: Known) -> Place | Diagnostic:
    """See ``service.renamable``."""
    found = occurrences_in(language, text)
    at = named_at(found, offset)
    if at is None:
        return _refused("there is no name here that can be another")
    same = [each for each in found if each.thing == at.thing]
    fault = _fault(at, same, found, at.name, known) or _unread(language, text, at, same)
    return _refused(fault, at.span) if fault else Place(at.span, at.defines)


def renamed(language: Language, text: str, offset: int, new: str, known: Known) -> tuple[Edit, ...] | Diagnostic:
    """See ``service.rename``."""
    found = occurrences_in(language, text)
    at = named_at(found, offset)
    if at is None:
        return _refused("there is no name here that can be another")
    same = [each for each in found if each.thing == at.thing]
    fault = _fault(at, same, found, new, known) or _unread(language, text, at, same)
    if fault:
        return _refused(fault, at.span)
    if new == at.name:
        return ()
    edits = [Edit(each.span, each.written(new) or new) for each in same]
    reason = _changed(language, text, edits, at, new, known)
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
    if new != at.name and any(each.name == new and each.kind == at.kind for each in found):
        return f"there is a {_WORDS.get(at.kind, at.kind)} {_shown(new)} already"
    if new != at.name and at.kind == "variable" and new in known.variables:
        return f"{_shown(new)} is bound before this text"
    if at.kind == "variable" and at.name in known.variables and at.scope == 0:
        return f"{_shown(at.name)} is bound before this text, too"
    return ""


def _unread(language: Language, text: str, at: Occurrence, same: Sequence[Occurrence]) -> str:
    """Return why not, where a part of the text that can't be read has the name."""
    if _is_whole(language, text):
        return ""
    words = len(re.findall(rf"(?<!\w){re.escape(at.name)}(?!\w)", text))
    return "" if words == len(same) else "a part of the text that can't be read has this name; put it right first"


def _is_whole(language: Language, text: str) -> bool:
    match language:
        case "gasl":
            return not reading.program(text).diagnostics
        case "lwt":
            return not reading.script(text).diagnostics
        case "seed":
            return reading.seed(text).ok
        case "expr":
            return True


def _changed(language: Language, text: str, edits: Sequence[Edit], at: Occurrence, new: str, known: Known) -> str:
    """Return what else a rename would change, or ""."""
    made = repair(text, edits)
    after = occurrences_in(language, made.text)
    places_after = {made.back_span(each.span) for each in after if each.name == new and each.kind == at.kind}
    if places_after != {edit.span for edit in edits}:
        return f"with the name {_shown(new)} the text would be read in another way"
    before_all = Counter((each.kind, each.span) for each in occurrences_in(language, text))
    if before_all != Counter((each.kind, made.back_span(each.span)) for each in after):
        return f"with the name {_shown(new)} the text would be read in another way"
    before = Counter((each.code, each.severity, each.span) for each in diagnosed(language, text, known))
    later = Counter(
        (each.code, each.severity, _back(made, each.span)) for each in diagnosed(language, made.text, known)
    )
    if before != later:
        new_ones = later - before
        told = sorted({code for code, _, _ in new_ones})
        return f"the checker would say something else of the text{': ' + ', '.join(told) if told else ''}"
    return ""


def _back(made: Repaired, span: Span | None) -> Span | None:
    return None if span is None else made.back_span(span)


def _refused(reason: str, span: Span | None = None) -> Diagnostic:
    return Diagnostic("KW005", "error", reason, span)


def _shown(name: str) -> str:
    return printable(name if len(name) <= 60 else name[:59] + "…")
