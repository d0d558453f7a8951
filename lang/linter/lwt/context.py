"""What a lint rule is and what it is given: the script, seen once, and helpers to point into its text."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from ... import dependencies, literals
from ...catalogue.operations import Signature
from ...catalogue.rules import RULES
from ...diagnostic import Diagnostic, Edit, Severity, nearest
from ...parse.lwt.recovery.references import find_lookalikes, find_slips, has_lookalikes
from ...parse.lwt.shapes import ID
from ...source import Source, Span
from ...trees.lwt import RESERVED, Call, Choice, ListValue, ObjectValue, Reference, Script, Step, Template, Value, Word

if TYPE_CHECKING:
    from ...parse.expr import ExprRead

__all__ = ["Context", "Lint", "RawString", "Use", "lint"]

_HEAD_LINE = re.compile(rf"^[ \t]*+\((?P<id>{ID})\)[ \t]*+=", re.MULTILINE)
_SUGGESTIONS = 50
"""Did-you-means looked for among the same names; a script with more faults than that has one cause."""


class Use(NamedTuple):
    """A reference, the step it stands in, and the innermost EACH whose call it stands in."""

    reference: Reference
    step: Step
    each: Call | None


class RawString(NamedTuple):
    """What stands between the quotes of a template in the source, and where it begins."""

    template: Template
    text: str
    offset: int


@attrs.frozen
class Lint:
    """A rule: its code and the function that finds it. ``needs_all_steps``: not asked where steps could not be read."""

    code: str
    find: Callable[["Context"], Iterable[Diagnostic]]
    needs_all_steps: bool = False


def lint(code: str, *, needs_all_steps: bool = False) -> Callable[[Callable[["Context"], Iterable[Diagnostic]]], Lint]:
    """Make the function below the rule for ``code``."""
    return lambda find: Lint(code, find, needs_all_steps)


@attrs.frozen(slots=False)
class Context:
    """A script under check. Everything the rules share is found once, in one walk over the tree."""

    script: Script
    input: Any
    operations: Mapping[str, Signature]
    models: Collection[str] | None
    given: Collection[str] = ()
    """Names of values that are there without a step of the script: those of steps that ran before, in a session."""
    _asked: dict[int, dict[str, str | None]] = attrs.field(factory=dict, init=False, eq=False, repr=False)
    _readings: dict[str, literals.Reading | literals.Unreadable] = attrs.field(
        factory=dict, init=False, eq=False, repr=False
    )
    expressions: "dict[str, ExprRead]" = attrs.field(factory=dict, init=False, eq=False, repr=False)
    """The expressions in the script that were read so far, by their text."""

    def found(
        self,
        code: str,
        message: str,
        span: Span | None,
        *hints: str,
        edits: Iterable[Edit] = (),
        severity: Severity | None = None,
    ) -> Diagnostic:
        """Make a diagnostic with the severity that the catalogue gives ``code`` in this script's mode."""
        rule = RULES[code]
        if severity is None:
            severity = (rule.lenient or rule.severity) if self.script.mode == "lenient" else rule.severity
        return Diagnostic(code, severity, message, span, tuple(hint for hint in hints if hint), tuple(edits))

    def suggestion(self, name: str, known: Iterable[str]) -> str | None:
        """Return the known name that was most likely meant; None once many different ones have been looked for."""
        # What lives as long as the check is told by its identity; a list made for one question is asked about anew.
        lasts = isinstance(known, tuple | Mapping)
        asked = self._asked.setdefault(id(known) if lasts else 0, {})
        key = name if lasts else str(len(asked))
        if key not in asked:
            asked[key] = nearest(name, known) if len(asked) < _SUGGESTIONS else None
        return asked[key]

    def reading(self, text: str) -> literals.Reading | literals.Unreadable:
        """Return what ``text`` in the input says as a value; a long text is read once."""
        if text not in self._readings:
            self._readings[text] = literals.read(text)
        return self._readings[text]

    def expression(self, text: str) -> "ExprRead":
        """Return the expression that ``text`` is; each is read once."""
        if text not in self.expressions:
            from ...parse.expr import parse_expr  # few scripts have one

            self.expressions[text] = parse_expr(Source(text, self.script.source.name))
        return self.expressions[text]

    @cached_property
    def steps(self) -> dict[str, Step]:
        """The steps by id; of two with the same id the last."""
        return {step.id: step for step in self.script.steps}

    @cached_property
    def graph(self) -> dict[str, tuple[str, ...]]:
        """The steps that each step refers to."""
        return dependencies.step_dependencies(self.script)

    @cached_property
    def cycles(self) -> list[tuple[str, ...]]:
        """A cycle for each group of steps that wait for each other."""
        return dependencies.cycles(self.graph)

    @cached_property
    def known(self) -> frozenset[str]:
        """All names that a reference may have somewhere in the script."""
        return frozenset(self.steps) | self.unread_ids | RESERVED | frozenset(self.given)

    @cached_property
    def nameable(self) -> tuple[str, ...]:
        """The names among which a misspelt one is looked for; EACH's only where there is an EACH."""
        reserved = sorted(RESERVED) if any(self.maps(call) for call, _ in self.calls) else ["input"]
        return (*self.steps, *sorted(self.unread_ids), *self.given, *reserved)

    @cached_property
    def dotted(self) -> tuple[str, ...]:
        """The steps whose ids have dots."""
        return tuple(step for step in (*self.steps, *self.given) if "." in step)

    @cached_property
    def has_unknown(self) -> bool:
        """Say whether a reference names what isn't there."""
        return any(use.reference.name not in self.known for use in self.uses)

    @cached_property
    def needed(self) -> set[str]:
        """The final step and all that it needs."""
        return dependencies.needed(self.graph, self.final[0]) if self.final else set()

    @cached_property
    def final(self) -> tuple[str, dependencies.FinalRule] | None:
        """The final step and the rule that chose it."""
        return dependencies.final_step(self.script, self.graph)

    @cached_property
    def is_whole(self) -> bool:
        """Say whether every step could be read."""
        return not any(diagnostic.severity == "error" for diagnostic in self.script.diagnostics)

    @cached_property
    def unread_ids(self) -> frozenset[str]:
        """The ids of steps that stand in the text and could not be read: a reference to one is no fault of its own."""
        if self.is_whole:
            return frozenset()
        found = {match["id"] for match in _HEAD_LINE.finditer(self.script.source.text)}
        for diagnostic in self.script.diagnostics:
            if diagnostic.code in ("LWT007", "LWT008"):  # a head that is none: the id that its fix gives
                found |= {edit.text.partition(")")[0].removeprefix("(") for edit in diagnostic.edits}
        return frozenset(found) - self.steps.keys()

    @cached_property
    def _walked(self) -> tuple[list[Use], list[Template], list[tuple[Call, Step]], list[ObjectValue]]:
        maps = self._mapping
        uses: list[Use] = []
        templates: list[Template] = []
        calls: list[tuple[Call, Step]] = []
        objects: list[ObjectValue] = []
        for step in self.script.steps:
            stack: list[tuple[Value, Call | None]] = [(step.call, None)]
            while stack:
                value, each = stack.pop()
                if isinstance(value, Template):
                    templates.append(value)
                    for part in value.parts:
                        if isinstance(part, Reference):
                            uses.append(Use(part, step, each))
                elif isinstance(value, Reference):
                    uses.append(Use(value, step, each))
                elif isinstance(value, Call):
                    calls.append((value, step))
                    if value.options:
                        stack += [(option.value, each) for option in reversed(value.options)]
                    is_each = value.operation in maps
                    for argument in reversed(value.arguments):
                        stack.append((argument, value if is_each and isinstance(argument, Call) else each))
                elif isinstance(value, ListValue):
                    stack += [(item, each) for item in reversed(value.items)]
                elif isinstance(value, ObjectValue):
                    objects.append(value)
                    for key, entry in reversed(value.entries):
                        stack += ((entry, each), (key, each))
                elif isinstance(value, Choice):
                    stack += [(label, each) for label in reversed(value.labels)]
        return uses, templates, calls, objects

    @cached_property
    def _mapping(self) -> frozenset[str]:
        signatures = self.operations.items()
        return frozenset(name for name, known in signatures if any(p.kind == "call" for p in known.parameters))

    def maps(self, call: Call) -> bool:
        """Say whether ``call`` runs another call for each element of a list, as EACH does."""
        return call.operation in self._mapping

    @property
    def uses(self) -> list[Use]:
        """Every reference, in source order."""
        return self._walked[0]

    @property
    def calls(self) -> list[tuple[Call, Step]]:
        """Every call and the step it stands in, in source order."""
        return self._walked[2]

    @cached_property
    def expression_calls(self) -> list[tuple[Call, Step]]:
        """The calls that may have an expression: as their argument, or as an option. Most have neither."""
        takers = {
            name for name, known in self.operations.items() if any(p.kind == "expression" for p in known.parameters)
        }
        return [(call, step) for call, step in self.calls if call.options or call.operation in takers]

    @cached_property
    def step_of(self) -> dict[int, Step]:
        """The step that each call stands in, by the call's ``id()``."""
        return {id(call): step for call, step in self.calls}

    @property
    def objects(self) -> list[ObjectValue]:
        """Every object, in source order."""
        return self._walked[3]

    def strings(self, *marks: str) -> Iterator[RawString]:
        """Yield the raw text of every string that was read from the source and has one of ``marks`` in it.

        Few strings have any of what the rules look for, so nothing is built for the others.
        """
        text = self.script.source.text
        for mark in marks:
            if mark in text:
                break
        else:
            return
        for template in self._walked[1]:
            start, end = template.span.start, template.span.end
            for mark in marks:
                if text.find(mark, start, end) >= 0:
                    raw = _raw(template, text)
                    if raw:
                        yield raw
                    break

    @cached_property
    def slips(self) -> list[Diagnostic]:
        """References written in a way that makes them text."""
        text = self.script.source.text
        if self.script.mode == "strict" and "]}" not in text and text.count("{(") == len(self.uses):
            return []  # every opening is a reference's own, and no brace follows an accessor
        known = self.steps.keys() | self.unread_ids | frozenset(self.given)
        return [slip for raw in self.strings("{(") for slip in find_slips(raw.text, raw.offset, known)]

    @cached_property
    def lookalikes(self) -> list[Diagnostic]:
        """References as other languages write them."""
        text = self.script.source.text
        if not has_lookalikes(text):
            return []
        names = {"input", *self.steps, *self.unread_ids, *self.given}
        each = {*names, "item", "index"} if any(self.maps(call) for call, _ in self.calls) else names
        return [
            slip
            for raw in self.strings("{", "$")
            for slip in find_lookalikes(raw.text, raw.offset, each, text[raw.template.span.start])
        ]

    @cached_property
    def half_named(self) -> frozenset[str]:
        """The steps that a slip names: not needed as the script stands, but surely meant."""
        meant = (edit.text for slip in (*self.slips, *self.lookalikes) for edit in slip.edits)
        named = {text[2 : text.index(")")] for text in meant if text.startswith("{(") and ")" in text}
        words = (argument for call, _ in self.calls for argument in call.arguments if isinstance(argument, Word))
        return frozenset(named | {word.value for word in words})

    def spelled(self, span: Span, name: str, within: Span) -> Span | None:
        """Return ``span`` if ``name`` stands there, else its first place in ``within``, else None: where to make an edit."""
        text = self.script.source.text
        if text.startswith(name, span.start):
            return Span(span.start, span.start + len(name))
        at = text.find(name, within.start, within.end)
        return Span(at, at + len(name)) if at >= 0 else None

    def id_span(self, step: Step) -> Span:
        """Return where a step's id stands, or the step's span where it wasn't read from a text."""
        at = Span(step.span.start + 1, step.span.start + 1 + len(step.id))
        return self.spelled(at, step.id, step.span) or step.span

    def name_span(self, reference: Reference) -> Span | None:
        """Return where a reference's name stands, or None."""
        at = Span(reference.span.start + 2, reference.span.start + 2 + len(reference.name))
        return self.spelled(at, reference.name, reference.span)


def _raw(template: Template, text: str) -> RawString | None:
    span = template.span
    if span.end - span.start < 2:
        return None
    quote = text[span.start : span.start + 1]
    if quote not in ('"', "'"):
        return None
    if text.startswith(quote * 3, span.start) and span.end - span.start >= 6:
        quote *= 3
    start, end = span.start + len(quote), span.end - len(quote)
    return RawString(template, text[start:end], start)
