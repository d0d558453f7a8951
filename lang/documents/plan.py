"""Reads a plan, the JSON document that a model answers with, and reports faults with their positions in the JSON.

See ``docs/design/gasl.md#the-plan-object``.

The ``commands`` form one script: a TRY block may span several strings. The script is parsed once. The diagnostics of the script are then
moved to the strings of the document. Their edits keep the document valid JSON.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any
from zlib import crc32

from attrs import evolve, field, frozen
from pydantic import BaseModel, ConfigDict, Field

from ..diagnostic import Diagnostic, Edit, has_errors, sort_key
from ..parse.gasl import parse_gasl
from ..source import Source, Span
from ..trees.gasl import Item, Program, Statement, Try
from .json_text import JsonNode, StringMap, not_json, read_json
from .json_tree import json_fault
from .shape import Misfit, json_schema, misfits

__all__ = ["PLAN_SCHEMA", "Plan", "PlanConfig", "PlanRead", "read_plan"]

MAX_LINES = 30_000
"""Maximum number of lines of all commands together: a string may contain several commands."""

if TYPE_CHECKING:
    PLAN_SCHEMA: dict[str, Any]
    """The JSON Schema (draft 2020-12) of a plan."""


def __getattr__(name: str) -> Any:
    # Building the schema takes time, so it is built only when it is used.
    if name == "PLAN_SCHEMA":
        return json_schema(PlanModel)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@frozen
class PlanConfig:
    """Defines which results stop a plan. See ``docs/design/gasl.md#the-plan-object``."""

    stop_on_error: bool = True
    continue_on_empty: bool = False


@frozen
class PlanScript:
    """The commands of a plan as one script, and the mapping from the script back to the strings in the JSON.

    ``source`` is the document. ``starts`` are the offsets in the script at which the strings begin, and ``spans`` are the spans
    of the string literals in the document.
    """

    source: Source
    texts: tuple[str, ...] = field(repr=False)
    starts: tuple[int, ...] = field(repr=False)
    spans: tuple[Span, ...] = field(repr=False)
    _maps: dict[int, StringMap] = field(factory=dict, init=False, repr=False, eq=False)
    """Maps the index of a string to its map of offsets, which is created once and used for all diagnostics of the string."""

    @property
    def text(self) -> str:
        """The text of the script: the strings, joined by line breaks."""
        return "\n".join(self.texts)

    def number(self, offset: int) -> int:
        """Return the index of the string that contains ``offset`` of the script."""
        return max(0, bisect_right(self.starts, offset) - 1)

    def located(self, diagnostic: Diagnostic) -> Diagnostic:
        """Convert a diagnostic of the script to a diagnostic of the document.

        Its span and edits are moved, and the path is added to its message.
        """
        if diagnostic.span is None or not self.texts:
            return diagnostic
        edits = [self._edit(edit) for edit in diagnostic.edits]
        return evolve(
            diagnostic,
            message=f"commands[{self.number(diagnostic.span.start)}]: {diagnostic.message}",
            span=self._span(diagnostic.span),
            edits=tuple(edit for edit in edits if edit is not None) if None not in edits else (),
        )

    def _map(self, number: int) -> StringMap:
        if number not in self._maps:
            self._maps[number] = StringMap(self.source.text, self.spans[number])
        return self._maps[number]

    def _span(self, span: Span) -> Span:
        first, last = self.number(span.start), self.number(max(span.start, span.end - 1))
        start = self._map(first).offset(min(span.start - self.starts[first], len(self.texts[first])))
        end = self._map(last).offset(min(span.end - self.starts[last], len(self.texts[last])))
        return Span(start, max(start, end))

    def _edit(self, edit: Edit) -> Edit | None:
        """Convert an edit of the script to an edit of the document.

        Return None if it covers several strings, because it would remove their quotes.
        """
        number = self.number(edit.span.start)
        begin = self.starts[number]
        if edit.span.end - begin > len(self.texts[number]):
            return None
        return self._map(number).edit(Edit(edit.span.shift(-begin), edit.text))


@frozen
class Plan:
    """A plan that can be checked and run.

    The spans of ``program`` refer to ``program.source``, the script; ``script`` maps them to the document. The ``why`` of a statement
    comes from its ``#:`` lines or, if it has none, from the ``why`` of its item. If both are missing, it is None, and the ``why`` of the
    plan applies.
    """

    plan_id: str
    why: str | None
    program: Program
    config: PlanConfig
    texts: tuple[str, ...] = field(repr=False)
    script: PlanScript = field(repr=False)


@frozen
class PlanRead:
    """Result of reading a plan. ``plan`` is None if the document is not a plan. A plan may still have faults in its commands.

    ``diagnostics`` are all faults of the document and of its commands, with spans in ``source``, the document. If the document is not a
    plan, ``draft`` is the part that could be read, or None. The commands of a draft can be checked too, so one check reports all faults.
    """

    plan: Plan | None
    diagnostics: tuple[Diagnostic, ...]
    source: Source
    draft: Plan | None = None

    @property
    def ok(self) -> bool:
        """Return whether the plan was read without an error."""
        return self.plan is not None and not has_errors(self.diagnostics)


def read_plan(source: "Source | str | Mapping[str, Any]") -> PlanRead:
    """Read a plan from JSON text, or from a Python object, which is written as JSON first. Faults in the plan never raise an exception."""
    if isinstance(source, Mapping):
        written = _as_source(source)
        if isinstance(written, Diagnostic):
            return PlanRead(None, (written,), Source("", "<plan>"))
        source = written
    elif isinstance(source, str):
        source = Source(source, "<plan>")
    read = read_json(source)
    if read.root is None:
        return PlanRead(None, read.diagnostics, source)

    of_shape = [_fault(misfit, read.root, source) for misfit in _apart(misfits(PlanModel, read.root, filling=True))]
    found = [*read.diagnostics, *of_shape, *_blank(read.root)]
    faulty = has_errors(found)
    if faulty and not _has_commands(read.root):
        return PlanRead(None, tuple(sorted(found, key=sort_key)), source)
    lines = sum(text.count("\n") + 1 for text in _texts(read.root))
    if lines > MAX_LINES:
        message = f"commands have {lines:,} lines, more than the maximum of {MAX_LINES:,}"
        found.append(Diagnostic("PLAN007", "error", message, read.root.fields["commands"].span))
        return PlanRead(None, tuple(sorted(found, key=sort_key)), source)
    plan = _plan(read.root, source)
    found += [plan.script.located(diagnostic) for diagnostic in plan.program.diagnostics]
    told = tuple(sorted(found, key=sort_key))
    return PlanRead(None, told, source, plan) if faulty else PlanRead(plan, told, source)


def _has_commands(root: JsonNode) -> bool:
    """Return whether the commands can be read although the document is faulty."""

    commands = root.fields.get("commands")
    if commands is None or not 0 < len(commands.items) <= MAX_COMMANDS:
        return False
    texts = [node.fields.get("command", node).value for node in commands.items]
    return all(isinstance(text, str) and text.strip() for text in texts)


def _plan(root: JsonNode, source: Source) -> Plan:
    commands = root.fields["commands"].items
    strings = [node.fields.get("command", node) for node in commands]
    texts = _texts(root)
    whys = [str(node.value.get("why", "")) if isinstance(node.value, dict) else "" for node in commands]
    starts, at = [], 0
    for text in texts:
        starts.append(at)
        at += len(text) + 1
    script = PlanScript(source, texts, tuple(starts), tuple(node.span for node in strings))
    program = parse_gasl(Source(script.text, source.name))
    if any(whys) and not has_errors(program.diagnostics):  # a faulty program is not run, and may be nested too deep
        program = evolve(program, items=_with_whys(program.items, script, whys))
    config = root.fields["config"].value if "config" in root.fields else {}
    known = {
        name: config[name]
        for name in ("stop_on_error", "continue_on_empty")
        if isinstance(config, dict) and name in config
    }
    why = root.value.get("why")
    return Plan(str(root.value.get("plan_id", "")), why, program, PlanConfig(**known), texts, script)


def _texts(root: JsonNode) -> tuple[str, ...]:
    """Return the text of every command."""
    return tuple(str(node.fields.get("command", node).value) for node in root.fields["commands"].items)


def _with_whys(items: tuple[Item, ...], script: PlanScript, whys: list[str]) -> tuple[Item, ...]:
    """If a statement has no ``why``, give it the ``why`` of the item in which it begins.

    The recursion is as deep as TRY blocks are nested.
    """
    made: list[Item] = []
    for item in items:
        if isinstance(item, Statement):
            why = item.why or whys[script.number(item.command.span.start)] or None
            command = item.command
            if isinstance(command, Try):
                command = evolve(
                    command,
                    body=_with_whys(command.body, script, whys),
                    caught=None if command.caught is None else _with_whys(command.caught, script, whys),
                    always=None if command.always is None else _with_whys(command.always, script, whys),
                )
            item = evolve(item, command=command, why=why)
        made.append(item)
    return tuple(made)


_CODES = {"unknown": "PLAN002", "missing": "PLAN003", "type": "PLAN004", "value": "PLAN008"}


def _fault(misfit: Misfit, root: JsonNode, source: Source) -> Diagnostic:
    """Return the diagnostic for a fault in the plan's shape, with hints for the author of the plan."""
    code, message, hints, edits = _CODES[misfit.kind], misfit.message, misfit.hints, misfit.edits
    if not misfit.path:
        code, hints = "PLAN001", ("a plan has plan_id, why and commands",)
        message = message.replace("the document must be an object", "a plan must be an object")
    elif misfit.path == ("why",) and misfit.kind != "type":
        code, hints = "PLAN005", ("write one line about the purpose of the plan; the history shows it",)
    elif misfit.path == ("plan_id",) and misfit.kind == "missing":
        hints = ('any text that distinguishes the plan from others, such as a UUID or "plan-001"',)
        edits = _with_id(root, source)
    elif misfit.kind == "unknown" and not any("did you mean" in hint for hint in hints):
        hints = ("remove it", *hints)
    elif misfit.kind == "value" and misfit.path[0] == "commands":
        code = "PLAN007" if "more than the maximum" in message else "PLAN006"
    return Diagnostic(code, "error", message, misfit.span, hints, edits)


def _apart(found: Sequence[Misfit]) -> list[Misfit]:
    """Omit missing keys that are present under a misspelt name, because the misspelling is already reported."""
    meant = {
        (*misfit.path[:-1], key)
        for misfit in found
        if misfit.kind == "unknown"
        for key in re.findall(r"did you mean `(\w+)`", " ".join(misfit.hints))
    }
    return [misfit for misfit in found if misfit.kind != "missing" or misfit.path not in meant]


def _with_id(root: JsonNode, source: Source) -> tuple[Edit, ...]:
    """Return the edit that adds an id to a plan. Any id is valid; the new id is a checksum of the document."""
    if not root.fields:
        return ()
    made = f"plan-{crc32(source.text.encode('utf-8', 'surrogatepass')):08x}"
    return (Edit(Span(root.start + 1, root.start + 1), f'"plan_id": "{made}", '),)


def _blank(root: JsonNode) -> list[Diagnostic]:
    """Return the faults that the JSON Schema can't express. Such a fault is a ``why`` or a command that consists only of white space."""
    found = []
    if (why := root.fields.get("why")) is not None and isinstance(why.value, str) and why.value.isspace():
        hint = "write one line about the purpose of the plan; the history shows it"
        found.append(json_fault("PLAN005", "why is empty", why.start, why.end, hint))
    commands = root.fields.get("commands")
    for number, node in enumerate(commands.items if commands else ()):
        string = node.fields.get("command", node)
        is_blank = isinstance(string.value, str) and not string.value.strip()
        if is_blank and (string.value or string is node):
            found.append(json_fault("PLAN006", f"commands[{number}] is empty", string.start, string.end, "remove it"))
    return found[:100]


def _as_source(plan: Mapping[str, Any]) -> Source | Diagnostic:
    """Write a Python object as JSON; return a diagnostic if this is not possible."""
    reason = not_json(plan)
    if reason is None:
        try:
            return Source(json.dumps(plan, ensure_ascii=False, indent=2, allow_nan=False), "<plan>")
        except (TypeError, ValueError) as error:
            reason = str(error)
    return Diagnostic("PLAN001", "error", f"the plan cannot be written as JSON: {reason}")


# The shape of a plan. Models and clients get its JSON Schema. See ``docs/design/gasl.md#the-plan-object``. This module imports
# pydantic, which is slow, so import it only when it is needed.

MAX_COMMANDS = 10_000


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class CommandModel(_Strict):
    """A command and its rationale."""

    command: str = Field(description="A single GASL command.", min_length=1)
    why: str = Field(default="", description="A brief, one-line rationale for this command.")


class ConfigModel(_Strict):
    """Which results stop a plan."""

    stop_on_error: bool = Field(
        default=True, description="Stop after a command that ends with error, binding_failure or schema_mismatch."
    )
    continue_on_empty: bool = Field(default=False, description="Continue after a command that finds nothing.")


class PlanModel(_Strict):
    """A plan: GASL commands, executed in order as one script."""

    model_config = ConfigDict(title="Plan")

    plan_id: str = Field(description="UUID for tracking.", min_length=1, max_length=200)
    why: str = Field(description="A brief, one-line rationale for this plan.", min_length=1)
    commands: Annotated[
        list[str | CommandModel],
        Field(
            description="GASL commands, in order. A TRY block may span several strings.",
            min_length=1,
            max_length=MAX_COMMANDS,
        ),
    ]
    config: ConfigModel = Field(default=ConfigModel(), description="Which results stop the plan.")
