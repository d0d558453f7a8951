"""Reads a model's plan leniently: the two sections after the output markers, and the content of the message.

Markers are found in any typography (``=== LWT SKELETON ===``, ``**MESSAGE:**``); without markers, the steps are the skeleton,
and the text after the steps is the message. A missing part is reported, never invented.
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from attrs import define, field, frozen

from ....lang.catalogue.operations import BUILTIN
from ....lang.diagnostic import Diagnostic, all_as_json, has_errors
from ....lang.linter.lwt import check
from ....lang.parse.lwt import parse_lwt
from ....lang.printer.lwt_printer import format_step
from ....lang.source import Source
from ....lang.trees.lwt import Script
from ...excerpts import clipped

# The errors of a plan: the linter's diagnostics, and ``RANK001`` to ``RANK007``, which only rankings have and which
# ``lang.catalogue.rules.document_rules`` describes. Models see these codes, and ``knotwork rules`` explains them.

_MOST_FAULTS = 20
"""Maximum number of diagnostics shown to a model; most diagnostics share one cause."""


_LINES, _LINE, _FAULT_MESSAGE = 12_000, 3_000, 500
"""Maximum characters of all diagnostics in a prompt, of one diagnostic, and of the message of a diagnostic that is cut."""
_MARK = 100
"""Maximum characters of a note about omitted text."""


def ranking_error(code: str, message: str, *hints: str) -> Diagnostic:
    """Return an error without a position."""
    return Diagnostic(code, "error", message, None, tuple(hint for hint in hints if hint))


def as_objects(diagnostics: Sequence[Diagnostic], source: Source) -> tuple[dict[str, Any], ...]:
    """Return the errors among ``diagnostics`` as JSON objects; if there are no errors, return all diagnostics."""
    errors = [each for each in diagnostics if each.severity == "error"] or list(diagnostics)
    return tuple(all_as_json(errors[:_MOST_FAULTS], source))


def as_lines(objects: Sequence[dict[str, Any]]) -> str:
    """Return diagnostics as text for a prompt, one JSON object per line, at most 12,000 characters."""
    lines: list[str] = []
    left = _LINES
    for each in objects:
        line = json.dumps(each, ensure_ascii=False)
        if len(line) > _LINE:  # keep only the message, without its edits
            line = json.dumps(
                {**each, "message": clipped(str(each["message"]), _FAULT_MESSAGE), "hints": [], "edits": []},
                ensure_ascii=False,
            )
        left -= len(line) + 1
        if left < 0:
            break
        lines.append(line)
    return "\n".join(lines)


def excerpts(text: str, places: Sequence[tuple[int, int]], most: int) -> str:
    """Return at most ``most`` characters of ``text``: all of it, or its beginning and the text around ``places`` (start, end).

    A note marks omitted text with the offset at which the text continues.
    """
    if len(text) <= most:
        return text
    spans = [(0, 0), *((max(0, start), min(len(text), end)) for start, end in places[:_MOST_FAULTS])]
    around = (most // len(spans) - _MARK) // 2
    kept: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        start, end = max(0, start - around), min(len(text), start + around)
        if kept and start <= kept[-1][1]:
            kept[-1] = (kept[-1][0], max(end, kept[-1][1]))
        else:
            kept.append((start, end))
    made = [text[kept[0][0] : kept[0][1]]]
    for (_, before), (start, end) in pairwise(kept):
        made.append(f"\n[… {start - before:,} characters left out; from offset {start}:]\n{text[start:end]}")
    if kept[-1][1] < len(text):
        made.append(f"\n[… {len(text) - kept[-1][1]:,} characters left out]")
    return "".join(made)


def first_error(diagnostics: Sequence[Diagnostic]) -> str:
    """Return the first error as one sentence, with its hint."""
    first = next((each for each in diagnostics if each.severity == "error"), None) or diagnostics[0]
    hint = f" ({first.hints[0]})" if first.hints else ""
    more = sum(each.severity == "error" for each in diagnostics) - 1
    return f"{first.message}{hint} [{first.code}]" + (f", and {more} more" if more > 0 else "")


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
"""Maximum characters of an answer that are read."""


@frozen
class Plan:
    """The parts of a plan.

    ``skeleton`` is the script's text, ``message`` is the complete message. ``expand`` is true if the message says that the
    skeleton needs expansion. ``remaining`` are the indices of existing items that the message names. ``nothing`` is true if the
    message says that no item fits. ``faults`` are errors; ``notes`` describe how malformed parts were interpreted.
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
    """Read a plan for a ranking of ``items`` items. Faults in the text never raise an exception."""
    if len(text) > _LONGEST:
        return Plan(
            "",
            "",
            faults=(
                ranking_error("RANK007", f"the plan has {len(text):,} characters; at most {_LONGEST:,} are allowed"),
            ),
        )
    skeleton, message, notes = _sections(text)
    faults: list[Diagnostic] = []
    if not skeleton.strip():
        hint = 'write ===LWT_SKELETON=== and below it (final)=LLM("...")'
        faults.append(ranking_error("RANK001", "the plan has no skeleton: no step follows ===LWT_SKELETON===", hint))
    remaining, unknown = _remaining(message, items)
    if unknown:
        named = ", ".join(map(str, unknown[:5]))
        faults.append(
            ranking_error("RANK002", f"REMAINING names unknown items: {named}", f"the items are 0 to {items - 1}")
        )
    expand, said = _expansion(message)
    conditions = _CONDITIONS.search(message)
    return Plan(
        skeleton, message, conditions["value"].strip() if conditions else "", remaining, _is_none(message), expand, tuple(faults),
        (*notes, *said),
    )  # fmt: skip


def _sections(text: str) -> tuple[str, str, list[str]]:
    """Return the skeleton, the message and notes. Of several skeletons the last is used, because a model may write drafts first."""
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
    note = "the plan has no ===LWT_SKELETON===; its steps are used as the skeleton"
    return text[:end], text[body:].strip().strip("`").strip(), [note]


def _remaining(message: str, items: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the indices that the message names: those of existing items, and those that are out of range."""
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
    """Return whether the message says that nothing matches."""
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
        return False, ["NEEDS_EXPANSION is missing; read as no"]
    return True, [f"NEEDS_EXPANSION says {value[:40]!r}, not yes or no; read as yes"]


# The script of a plan, which tools edit. It is read leniently and checked by the linter against the actual input. An edit is made
# completely or not at all.

OPERATIONS = {name: BUILTIN[name] for name in ("LLM", "CONST", "EXPR", "EACH", "JOIN", "ANSWER")}
"""The operations that a planned script may call. Operations on a graph or on files, and functions of the host, are excluded."""
_MOST_STEPS = 200
_LONGEST_SKELETON = 60_000
"""Maximum characters of a script; a script of this length is read and checked in well under a second."""
LISTED = 24_000
"""Maximum characters of the list of steps."""
_ONE = 6_000
"""Maximum characters of one step if the list of all steps is too long."""
_NAME = "<plan>"
_ID = 40
_SOME = "(steps with … are not shown in full)"


@frozen
class Checked:
    """A script and its diagnostics."""

    script: Script
    diagnostics: tuple[Diagnostic, ...]

    @property
    def failed(self) -> bool:
        """Return whether the script cannot run."""
        return has_errors(self.diagnostics)


def check_plan_script(text: str, input: Any, models: Sequence[str] = ()) -> Checked:
    """Read ``text`` as model output and check it against the input of the script. Faults in the text never raise an exception."""
    if len(text) > _LONGEST_SKELETON:
        message = f"the script has {len(text):,} characters; at most {_LONGEST_SKELETON:,} are allowed"
        return Checked(Script(), (ranking_error("RANK007", message),))
    script = parse_lwt(Source(text, _NAME), "lenient")
    if len(script.steps) > _MOST_STEPS:  # checked first, because checking many steps takes long
        message = f"the script has {len(script.steps)} steps; at most {_MOST_STEPS} are allowed"
        return Checked(script, (ranking_error("RANK007", message),))
    found = check(script, input=input, operations=OPERATIONS, models=tuple(models))
    if not script.steps and not has_errors(found):
        found = [
            *found,
            ranking_error("RANK001", "the script has no step", 'a step is (final)=LLM("prompt") on a separate line'),
        ]
    return Checked(script, tuple(found))


@frozen
class Edited:
    """The result of an edit: whether the edit was made, and the message for the model."""

    done: bool
    message: str


@define
class Skeleton:
    """A script that runs, with edits that keep it runnable. ``latest`` is the index of the last edit."""

    script: Script
    input: Mapping[str, Any] = field(repr=False)
    models: Sequence[str] = ()
    latest: int = 0

    @property
    def steps(self) -> list[str]:
        """The canonical text of each step, in order."""
        return [format_step(step) for step in self.script.steps]

    @property
    def text(self) -> str:
        """The script's canonical text."""
        return "\n".join(self.steps)

    def listed(self) -> str:
        """Return the steps with their indices, in at most ``LISTED`` characters.

        A longer list shows the steps around the latest edit; of the other steps it shows only the ids.
        """
        steps = self.steps
        whole = [f"{index}: {step}" for index, step in enumerate(steps)]
        if sum(map(len, whole)) + len(whole) <= LISTED:
            return "\n".join(whole)
        shown = [f"{index}: ({clipped(step.id, _ID)})=…" for index, step in enumerate(self.script.steps)]
        left = LISTED - sum(map(len, shown)) - len(shown) - len(_SOME)
        for index in sorted(range(len(steps)), key=lambda each: (abs(each - self.latest), each)):
            text = excerpts(whole[index], (), _ONE)
            left -= len(text) - len(shown[index])
            if left < 0:
                break
            shown[index] = text
        return "\n".join([*shown, _SOME])

    def insert(self, index: int, text: str) -> Edited:
        """Insert a step before the one at ``index``, or at the end."""
        steps = self.steps
        if not 0 <= index <= len(steps):
            return self._nowhere(index, len(steps))
        return self._edited([*steps[:index], text, *steps[index:]], 1, index, f"inserted at {index}")

    def set(self, index: int, text: str) -> Edited:
        """Replace the step at ``index``."""
        steps = self.steps
        if not 0 <= index < len(steps):
            return self._nowhere(index, len(steps) - 1)
        return self._edited([*steps[:index], text, *steps[index + 1 :]], 0, index, f"replaced at {index}")

    def delete(self, index: int) -> Edited:
        """Remove the step at ``index``."""
        steps = self.steps
        if not 0 <= index < len(steps):
            return self._nowhere(index, len(steps) - 1)
        if len(steps) == 1:
            return _refused(ranking_error("RANK003", "the only step can't be removed", "replace it: lwt_set(0, ...)"))
        return self._edited([*steps[:index], *steps[index + 1 :]], -1, index, f"removed {index}")

    def _nowhere(self, index: int, last: int) -> Edited:
        message = f"index {index} is out of range; the indices are 0 to {last}"
        return _refused(ranking_error("RANK003", message, "lwt_list() shows the steps"))

    def _edited(self, steps: Sequence[str], more: int, index: int, what: str) -> Edited:
        """Accept the new steps if they form a script that runs; otherwise change nothing and report why."""
        made = check_plan_script("\n".join(steps), self.input, self.models)
        # If several steps have the same id, the lenient parser keeps only the last, but an edit must not remove any other step.
        if twice := next((each for each in made.diagnostics if each.code == "LWT014"), None):
            return _refused(ranking_error("RANK005", twice.message, "lwt_set(idx, ...) replaces the step with this id"))
        if made.failed:
            return Edited(False, as_lines(as_objects(made.diagnostics, made.script.source)))
        if (count := len(made.script.steps)) != len(self.script.steps) + more:
            message = (
                "the text is not a step" if count < len(self.script.steps) + more else "the text is more than one step"
            )
            return _refused(ranking_error("RANK001", message, 'give one step in each call, such as (id)=LLM("prompt")'))
        self.script, self.latest = made.script, index
        return Edited(True, f"{what}; there are {count} step{'' if count == 1 else 's'}")


def _refused(made: Diagnostic) -> Edited:
    return Edited(False, as_lines(as_objects([made], Source("", _NAME))))
