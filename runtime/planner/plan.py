"""A plan as a model wrote it: the two sections behind the output markers, and what its message says. Read leniently.

Markers are found however they are dressed (``=== LWT SKELETON ===``, ``**MESSAGE:**``); where there are none, the steps are the
skeleton and what stands behind them the message. What is missing is told, never made up.
"""

import re

from attrs import frozen

from ...lang.diagnostic import Diagnostic
from .faults import fault

__all__ = ["Plan", "read_plan"]

_DRESS = r"[ \t>*#=\[\]\-`_:]*"
_SKELETON = re.compile(rf"^{_DRESS}LWT[_ -]?SKELETON{_DRESS}$", re.MULTILINE | re.IGNORECASE)
_MESSAGE = re.compile(rf"^{_DRESS}MESSAGE{_DRESS}$", re.MULTILINE | re.IGNORECASE)
_STEP = re.compile(r"^[ \t]*(?:[-*•][ \t]+|\d{1,3}[.)][ \t]+)?\([\w.\-]{1,80}\)[ \t]*=", re.MULTILINE)
_SAID = re.compile(r"^[ \t>*#\-]*(?:CONDITIONS|REMAINING|NEEDS_EXPANSION)\b", re.MULTILINE | re.IGNORECASE)
_FIELD = r"^[ \t>*#\-`]*{name}[ \t*`]*[:=][ \t*`]*(?P<value>[^\n]*)$"
_CONDITIONS = re.compile(_FIELD.format(name="CONDITIONS"), re.MULTILINE | re.IGNORECASE)
_REMAINING = re.compile(_FIELD.format(name="REMAINING"), re.MULTILINE | re.IGNORECASE)
_EXPANSION = re.compile(_FIELD.format(name="NEEDS[_ ]EXPANSION"), re.MULTILINE | re.IGNORECASE)
_INDICES = re.compile(r"(?<![\w.])(\d{1,6})(?:[ \t]*(?:-|\u2013|to)[ \t]*(\d{1,6}))?(?![\w.]*\w)")
_NOTHING = re.compile(r"[ \t\"'`*]*(?:none|nothing|no\b|empty|0 items|\[[ \t]*\]|-+[ \t]*$)", re.IGNORECASE)
_MOST = 10_000
_LONGEST = 400_000
"""Characters of an answer that are looked at."""


@frozen
class Plan:
    """What was read of a plan.

    ``skeleton`` is the script's text, ``message`` all of the message. ``expand``: whether it says that the skeleton needs expansion.
    ``remaining``: the indices that it names, as far as there are such items; ``nothing``: it says that there is none.
    ``faults`` are errors, ``notes`` what was made of
    something that was not as it should be.
    """

    skeleton: str
    message: str
    conditions: str = ""
    remaining: tuple[int, ...] = ()
    nothing: bool = False
    expand: bool = False
    faults: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()


def read_plan(text: str, items: int) -> Plan:
    """Read a plan over ``items`` items. Never raises."""
    if len(text) > _LONGEST:
        return Plan(
            "", "", faults=(fault("RANK007", f"the plan has {len(text):,} characters; {_LONGEST:,} is the most"),)
        )
    skeleton, message, notes = _sections(text)
    faults: list[Diagnostic] = []
    if not skeleton.strip():
        hint = 'write ===LWT_SKELETON=== and below it (final)=LLM("...")'
        faults.append(fault("RANK001", "there is no skeleton: no step stands behind ===LWT_SKELETON===", hint))
    remaining, unknown = _remaining(message, items)
    if unknown:
        named = ", ".join(map(str, unknown[:5]))
        faults.append(
            fault("RANK002", f"REMAINING names items that are not there: {named}", f"the items are 0 to {items - 1}")
        )
    expand, said = _expansion(message)
    conditions = _CONDITIONS.search(message)
    return Plan(
        skeleton, message, conditions["value"].strip() if conditions else "", remaining, _is_none(message), expand, tuple(faults),
        (*notes, *said),
    )  # fmt: skip


def _sections(text: str) -> tuple[str, str, list[str]]:
    """Return skeleton and message. Of several skeletons the last one counts: models think aloud before."""
    marks = list(_SKELETON.finditer(text))
    if marks:
        start = marks[-1].end()
        message = _MESSAGE.search(text, start) or _SAID.search(text, start)
        if message is None:
            return text[start:], "", ["the plan has no message"]
        body = message.start() if message.re is _SAID else message.end()
        return text[start : message.start()], text[body:].strip().strip("`").strip(), []
    first = _STEP.search(text)
    if first is None:
        said = _MESSAGE.search(text)
        return "", text[said.end() :].strip() if said else "", []
    message = _MESSAGE.search(text, first.end()) or _SAID.search(text, first.end())
    end = message.start() if message else len(text)
    body = end if message is None or message.re is _SAID else message.end()
    note = "the plan has no ===LWT_SKELETON===; its steps were taken for the skeleton"
    return text[first.start() : end], text[body:].strip().strip("`").strip(), [note]


def _remaining(message: str, items: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the indices that the message names, and those of them that no item has."""
    said = _REMAINING.search(message)
    found: dict[int, None] = {}
    for low, high in _INDICES.findall(said["value"][:_MOST]) if said else ():
        last = int(high) if high else int(low)
        if last - int(low) > items:
            found[last] = None
            continue
        found.update(dict.fromkeys(range(int(low), last + 1)))
    return tuple(each for each in found if each < items), tuple(each for each in found if each >= items)


def _is_none(message: str) -> bool:
    """Say whether the message says that nothing matches."""
    said = _REMAINING.search(message)
    return said is not None and _NOTHING.match(said["value"]) is not None


def _expansion(message: str) -> tuple[bool, list[str]]:
    said = _EXPANSION.search(message)
    value = said["value"].strip(" \"'`*.").casefold() if said else ""
    if value.startswith(("y", "true")):
        return True, []
    if value.startswith(("n", "false")):
        return False, []
    if not value:
        return False, ["the plan does not say NEEDS_EXPANSION; it was taken for no"]
    return True, [f"NEEDS_EXPANSION says {value[:40]!r}, neither yes nor no; it was taken for yes"]
