"""Phase 1 of a ranking: a model writes a plan for the request; the plan's script and message are checked before anything runs.

A faulty plan is returned to the model at most twice: the script as it was read, and the linter's diagnostics as JSON.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

from attrs import define, field, frozen

from ....lang.constrain import constrain
from ....lang.diagnostic import Diagnostic, has_errors
from ....lang.source import Source
from ....lang.trees.lwt import Script
from ...events import RepairAsked
from ...excerpts import clipped, fenced, fill, read_prompt, shortened
from ...models.caller import Spent
from ...results import Failed, StepFailed
from .draft_script import Checked, Plan, as_lines, as_objects, check_plan_script, excerpts, first_error, read_plan
from .ranking_results import Job, Repair

# The items in the plan's prompt: one line per item, with one limit for all lines together. See ``docs/design/loops.md#ranking``.
# If all items fit, each item is shown as JSON; long strings are cut, and lists of records are shown as a count. Otherwise the items
# are flattened to fields (``attributes.DriveThru=false``), and fields are added one by one, the same fields for all items: numbers
# and booleans first, then short strings, lists, long strings (cut to the available space), and records last. If the field names
# take too much space, they are written once, above columns. The prompt and the caller are both informed of omitted data, because a
# model cannot rank by data that it did not see.

ALL = 100_000
"""Maximum characters of all items together in a prompt."""
_ONE = 1_200
"""Maximum characters of one item's JSON."""
_SHORT = 120
"""Maximum characters of a string that is shown completely; longer strings are cut."""
_LEAST = 12
"""Minimum characters of a cut string; a shorter beginning is useless."""
_DEEPEST, _FIELDS, _KEPT = 6, 200, 1_000
"""Maximum numbers of levels of an item, of fields of an item, and of different fields of all items."""
_ALIKE = 40
"""Fields are ordered by average length in steps of this many characters."""
_HEADER = 8_000
"""Maximum characters of the field names above the items."""
_NAME = 80
_NAMED = 12
"""Maximum number of omitted fields that are named; further fields are counted."""
_SCALAR, _TEXT, _LIST, _LONG, _RECORDS = range(5)
"""Kinds of values, in display order."""


@frozen
class CompactItems:
    """The lines that show the items. ``warning`` reports omitted data; it is "" if nothing but lists of records is omitted."""

    text: str
    warning: str = ""


def compact(items: Sequence[Any]) -> CompactItems:
    """Return a line for each item, ``[index] ...``: at most ``ALL`` characters in total."""
    whole = _all_as_json(items)
    if whole is not None:
        return CompactItems(whole)
    fields, more = _fields(items)
    made = _chosen(fields, items, columns=False)
    if made.left:
        table = _chosen(fields, items, columns=True)
        made = table if table.values_shown > made.values_shown else made
    made.more = more
    return made.as_compact_items()


def _all_as_json(items: Sequence[Any]) -> str | None:
    """Return all items as JSON lines; None if the lines don't fit, or an item would have to be cut."""
    lines: list[str] = []
    left = ALL
    for index, item in enumerate(items):
        brief = _short_item(item)
        cut = shortened(brief)
        line = f"[{index}] {json.dumps(cut, ensure_ascii=False, separators=(', ', ': '))}"
        left -= len(line) + 1
        if left < 0 or len(line) > _ONE or cut != brief:
            return None
        lines.append(line.translate(_BREAKS))
    return "\n".join(lines)


_BREAKS = {ord(c): f"\\u{ord(c):04x}" for c in "\x7f\x85\u2028\u2029"}
"""Escapes of characters that JSON leaves unescaped although some programs read them as line breaks or control characters."""


def _short_item(item: Any) -> Any:
    """Return an item with its short values first. Lists of records are replaced by their length, and long strings are cut."""
    if not isinstance(item, Mapping):
        return item
    short, rest = {}, {}
    for key, value in item.items():
        if isinstance(value, str) and len(value) > _SHORT:
            rest[key] = f"{value[:_SHORT]}… [text of {len(value):,} characters]"
        elif _is_records(value):
            rest[key] = f"[list of {len(value):,}]"
        else:
            short[key] = value
    return {**short, **rest}


def _is_records(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(each, Mapping | list | tuple) for each in value)


@define
class _Field:
    """A field of the items. ``name`` is its path; ``values`` maps the index of each item that has the field to the value."""

    name: str
    kind: int = _SCALAR
    values: dict[int, str] = field(factory=dict)

    @property
    def size(self) -> int:
        """Total characters of all values."""
        return sum(map(len, self.values.values()))


def _fields(items: Sequence[Any]) -> tuple[list[_Field], bool]:
    """Return the fields, and whether more fields may exist.

    Fields are sorted by kind, then by the share of items that have them (in quarters, highest first), then by average length,
    then in written order.
    """
    found: dict[str, _Field] = {}
    more = False
    for index, item in enumerate(items):
        leaves = _leaves(item)
        more |= len(leaves) >= _FIELDS
        for path, kind, text in leaves:
            if path not in found and len(found) == _KEPT:
                more = True
                continue
            made = found.setdefault(path, _Field(clipped(path, _NAME)))
            made.kind = max(made.kind, kind)
            made.values[index] = text

    def first(each: _Field) -> tuple[int, int, int]:
        return each.kind, -(4 * len(each.values) // len(items)), each.size // len(each.values) // _ALIKE

    return sorted(found.values(), key=first), more


def _leaves(item: Any) -> list[tuple[str, int, str]]:
    """Return the flattened values of an item, each as path, kind and text; at most 200."""
    made: list[tuple[str, int, str]] = []
    waiting: list[tuple[str, Any, int]] = [("", item, 0)]
    while waiting and len(made) < _FIELDS:
        path, value, depth = waiting.pop()
        if isinstance(value, Mapping) and value and depth < _DEEPEST:
            inner = [
                (f"{path}{'.' if path else ''}{_part_of_items(key)}", each, depth + 1)
                for key, each in islice(value.items(), _FIELDS)
            ]
            waiting += reversed(inner)
        else:
            made.append((path, *_leaf(value)))
    return made


def _part_of_items(key: Any) -> str:
    """Return a key in the form used in a path; a key with special characters is quoted."""
    text = str(key)
    return text if text and all(c.isalnum() or c in "_- " for c in text) else _json(text)


def _leaf(value: Any) -> tuple[int, str]:
    if isinstance(value, str):
        if len(value) <= _SHORT:
            return _TEXT, _json(value)
        return _LONG, _json(f"{value[:_SHORT]}…")
    if isinstance(value, Mapping):
        return _RECORDS, f"[object of {len(value):,}]"
    if not isinstance(value, list | tuple):
        return _SCALAR, _json(value)
    listed = _json(value) if len(value) <= 20 and not _is_records(value) else ""
    return (_LIST, listed) if 0 < len(listed) <= _SHORT else (_RECORDS, f"[list of {len(value):,}]")


def _json(value: Any) -> str:
    return json.dumps(shortened(value), ensure_ascii=False, separators=(", ", ": ")).translate(_BREAKS)


@define
class _Chosen:
    """The shown fields with the maximum width of each field (None if it is not cut). ``left`` are fields that are omitted or cut.

    ``more`` is true if further fields exist that were not read.
    """

    items: Sequence[Any]
    columns: bool
    fields: list[tuple[_Field, int | None]] = field(factory=list)
    left: list[_Field] = field(factory=list)
    more: bool = False

    @property
    def values_shown(self) -> int:
        """Number of values shown completely."""
        return sum(len(each.values) for each, width in self.fields if width is None)

    def as_compact_items(self) -> CompactItems:
        """Return the lines that show the items; if data is omitted, the first line says so."""
        lines = [f"[{index}] {self._line(index)}".rstrip() for index in range(len(self.items))]
        if self.columns:
            lines.insert(0, f"[index] {'|'.join(each.name for each, _ in self.fields)}")
        if not self.left and not self.more:
            return CompactItems("\n".join(lines))
        said = _omissions(self, len(self.items))
        lines.insert(0, f"({said}; read(path) in the expansion gives the rest)")
        missed = self.more or any(each.kind != _RECORDS for each in self.left)
        return CompactItems("\n".join(lines), said if missed else "")

    def _line(self, index: int) -> str:
        parts = []
        for each, width in self.fields:
            text = each.values.get(index)
            text = text if text is None or width is None else _cut_json(text, width)
            if self.columns:
                parts.append(text or "")
            elif text is not None:
                parts.append(f"{each.name}={text}" if each.name else text)
        return ("|" if self.columns else ", ").join(parts)


def _chosen(fields: Sequence[_Field], items: Sequence[Any], *, columns: bool) -> _Chosen:
    """Choose fields in order, as long as all items fit. A string that does not fit completely is cut to the available space."""
    made, count = _Chosen(items, columns), len(items)
    left = ALL - sum(len(str(index)) + 4 for index in range(count)) - 2 * _NAMED * (_NAME + 10) - 400
    header = _HEADER
    for each in fields:
        name = len(each.name) + 3
        beside = name + count if columns else name * len(each.values)
        if columns and name > header:
            made.left.append(each)
            continue
        size = beside + each.size
        width: int | None = None
        if size > left:
            width = (left - beside) // len(each.values)
            if each.kind not in (_TEXT, _LONG) or width < _LEAST:
                made.left.append(each)
                continue
            made.left.append(each)
            size = beside + sum(min(width, len(text)) for text in each.values.values())
        left -= size
        header -= name if columns else 0
        made.fields.append((each, width))
    return made


def _cut_json(text: str, width: int) -> str:
    """Return the JSON of a string, cut to at most ``width`` characters."""
    if len(text) <= width:
        return text
    body = text[: width - 2]
    if (len(body) - len(body.rstrip("\\"))) % 2:  # the cut splits an escape sequence
        body = body[:-1]
    return f'{body}…"'


def _omissions(made: _Chosen, count: int) -> str:
    whole = [each for each, width in made.fields if width is None]
    begun = [each for each, width in made.fields if width is not None]
    out = [each for each in made.left if all(each is not other for other in begun)]
    told = [f"for {count:,} items, only {_names(whole) or 'the indices'} {'is' if len(whole) == 1 else 'are'} shown"]
    told += [f"shown in part: {_names(begun)}"] if begun else []
    told += [f"omitted: {_names(out)}"] if out else []
    told += ["also omitted: fields beyond the first 1,000, or beyond 200 of an item"] if made.more else []
    return "; ".join(told)


def _names(fields: Sequence[_Field]) -> str:
    named = [each.name or "the items' own values" for each in fields[:_NAMED]]
    more = len(fields) - _NAMED
    return ", ".join(named) + (f" and {more:,} more" if more > 0 else "")


# The grammar of a plan: two sections, with a script between the markers. It is derived from the grammar of scripts and sent to
# models that support grammars; their plans are read as leniently and checked as strictly as any other plan. A small model writes
# only one step, with the indices of items, and a message that is as short as possible.

SMALL_TOKENS = 320
"""Token limit of a small model's plan. The plan repeats the request; each byte of the request adds one token to the limit."""
_START = re.compile(r"^start:.*\n", re.MULTILINE)
_MESSAGE = r"""
message: "===MESSAGE===\nCONDITIONS: " LINE "\nREMAINING: " REMAINING "\nNEEDS_EXPANSION: " EXPANSION ("\n" LINE)*
LINE: /[^\n]+/
REMAINING: /none|[0-9]{1,4}(, [0-9]{1,4})*/
EXPANSION: /yes|no/
"""
_WHOLE = r"""start: "===LWT_SKELETON===\n" step (_BREAK step)* "\n\n" message
_BREAK: /\n/
"""
_UNUSED = ("comment", "COMMENT", "_item", "_SPACE", "_NEWLINE")
_SMALL = r"""start: "===LWT_SKELETON===\n" step "\n\n===MESSAGE===\n" message
step: "(final)=LLM(\"User wants: " {wanted} ". Item(s) that match: [" indices "]. Output the best index, or none if no item fits.\")"
message: "CONDITIONS: " LINE "\nREMAINING: " indices "\nNEEDS_EXPANSION: no\n"
indices: INDEX (", " INDEX){{0,2}}
LINE: /[A-Za-z][A-Za-z0-9 ,=_\-]{{0,59}}/
INDEX: /{index}/
"""


def plan_grammar(items: int, wanted: str = "", *, small: bool = False) -> str:
    """Return the grammar of a plan over ``items`` items, in the syntax of ``Options.grammar``.

    ``wanted`` is the request as the prompt's example quotes it; a small model only has to repeat it.
    """
    if not small:
        return _whole_plan()
    return _SMALL.format(wanted=_literal(wanted), index=_below(items))


@cache
def _whole_plan() -> str:
    """Return the grammar of a plan with any script. Steps are separated by one line break; comments are not allowed."""
    made = _START.sub("", constrain("lwt", "llguidance"))
    for name in _UNUSED:
        made = re.sub(rf"^{name}:.*(?:\n[ \t]+.*)*\n", "", made, flags=re.MULTILINE)
    return json.dumps({
        "type": "custom", "name": "plan", "description": "Write the plan: the script and the message, each behind its marker.",
        "format": {"type": "grammar", "syntax": "lark", "definition": f"{_WHOLE}{_MESSAGE.lstrip()}{made}"},
    })  # fmt: skip


def _literal(text: str) -> str:
    """Return a string as a grammar literal for use inside a string of a script."""
    written = text.replace("\\", "\\\\").replace('"', '\\"')
    return json.dumps(written, ensure_ascii=False)


def _below(items: int) -> str:
    """Return a regular expression for the numbers from 0 to ``items`` - 1."""
    last = str(items - 1)
    forms = [f"[1-9][0-9]{{{len(last) - 2}}}"] if len(last) > 2 else ["[1-9]"] if len(last) == 2 else []
    if len(last) > 2:
        forms = ["[1-9]", *(f"[1-9][0-9]{{{more}}}" for more in range(1, len(last) - 1))]
    # A number with as many digits as the last index has the same leading digits, then a smaller digit, then any digits.
    for at, digit in enumerate(last):
        lowest = "1" if at == 0 and len(last) > 1 else "0"
        if digit > lowest:
            rest = len(last) - at - 1
            forms.append(f"{last[:at]}[{lowest}-{chr(ord(digit) - 1)}]" + (f"[0-9]{{{rest}}}" if rest else ""))
    forms.append(last)
    if len(last) > 1:
        forms.insert(0, "0")
    return "|".join(forms)


REPAIRS = 2
"""Maximum number of times a faulty plan is returned to the model."""
_LINE = 300
"""Maximum characters of the request in the example of a skeleton; the prompt contains the complete request above the example."""
_QUICK = 8_000
"""Maximum characters of a script that is read and checked on the event loop; longer scripts are checked in a thread."""
_WRITTEN = 12_000
"""Maximum characters of a rejected script that a prompt repeats completely; a longer script is cut to excerpts."""


def most_calls(max_iterations: int) -> int:
    """Return the maximum number of calls for one request, without the calls of the script that the model writes.

    These are the plan and its repairs, the iterations of the expansion, and one repetition of the script's last step.
    """
    return 1 + REPAIRS + max_iterations + 1


@frozen
class Planned:
    """A plan that can run: the plan as it was read, and its checked script."""

    read: Plan
    script: Script


def plan_prompt(job: Job, shown: CompactItems) -> str:
    """Return the prompt of the planning phase. ``shown`` contains the lines that show the items."""
    values = {"context": fenced(job.request), "items_compact": fenced(shown.text), "wanted": _escaped_request(job)}
    return fill(read_prompt(__package__, "plan"), values)


def _escaped_request(job: Job) -> str:
    """Return the request escaped for a string of a script, so that references in the request are not resolved."""
    return clipped(job.request, _LINE).replace('"', "'").replace("{", "(").replace("}", ")")


def _constraints(job: Job) -> dict[str, Any]:
    """Return the call options that constrain the answer to the form of a plan, as far as the model supports them."""
    if not job.means.grammar:
        return {}
    small, line = job.means.small, _escaped_request(job)
    held: dict[str, Any] = {"grammar": plan_grammar(len(job.items), line, small=small)}
    most = SMALL_TOKENS + len(line.encode()) if small else job.means.tokens
    return held if most is None or "max_tokens" in job.options else {**held, "max_tokens": most}


async def plan(job: Job, spent: Spent) -> Planned:
    """Return a plan that can run. Raises ``StepFailed`` if a call fails, or the plan is still faulty after the last repair."""
    shown = compact(job.items)
    if shown.warning:
        job.warn(shown.warning)
    first = prompt = plan_prompt(job, shown)
    repairs, held = job.repairs, _constraints(job)
    while True:
        text = await job.ask("plan", len(repairs), prompt, spent, **held)
        read = read_plan(text, len(job.items))
        # Checking a long script takes a while; the time limit must take effect in the meantime.
        found = await asyncio.to_thread(_check, job, read) if len(read.skeleton) > _QUICK else _check(job, read)
        if not has_errors(found.diagnostics):
            for note in read.notes:
                job.warn(note)
            return Planned(read, found.script)
        if len(repairs) == REPAIRS:
            again = f" after {REPAIRS} repairs" if REPAIRS else ""
            raise StepFailed(Failed("bad_answer", f"the plan can't be used{again}: {first_error(found.diagnostics)}"))
        objects = as_objects(found.diagnostics, found.script.source)
        written = found.script.source.text
        repairs.append(Repair(len(repairs) + 1, written, objects))
        if job.events:
            job.events.emit(RepairAsked("rank", "plan", len(repairs), written, objects, job.number))
        prompt = fill(
            read_prompt(__package__, "again"),
            {
                "prompt": first,
                "written": fenced(_faulty_part(written, objects)),
                "diagnostics": fenced(as_lines(objects)),
            },
        )


def _faulty_part(written: str, objects: Sequence[Mapping[str, Any]]) -> str:
    """Return the part of a rejected script that a prompt shows: all of it, or excerpts around its faults."""
    spans = (each["span"] for each in objects if each.get("span"))
    return excerpts(written, [(span["start"], span["end"]) for span in spans], _WRITTEN)


def _check(job: Job, read: Plan) -> Checked:
    """Return the plan's script with all diagnostics of the plan."""
    if not read.skeleton.strip():
        return Checked(Script((), Source("", "<plan>")), read.faults)
    made = check_plan_script(read.skeleton.strip("\n"), job.data, job.models)
    diagnostics: tuple[Diagnostic, ...] = (*read.faults, *made.diagnostics)
    return Checked(made.script, diagnostics)
