"""The context of the lints for scripts: the script, data found in one walk over it, and methods that find spans in its text."""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from ... import dependencies, literals
from ...catalogue.operations import Signature
from ...catalogue.rules import RULES
from ...diagnostic import Diagnostic, Severity
from ...parse.lwt.recovery.references import find_lookalikes, find_slips, has_lookalikes
from ...parse.lwt.shapes import ID
from ...source import Source, Span
from ...trees.lwt import RESERVED, Call, Choice, ListValue, ObjectValue, Reference, Script, Step, Template, Value, Word
from ..framework import LintContext, Lints

if TYPE_CHECKING:
    from ...parse.expr import ExprRead

_HEAD_LINE = re.compile(rf"^[ \t]*+\((?P<id>{ID})\)[ \t]*+=", re.MULTILINE)


class Use(NamedTuple):
    """A reference, its step, and the innermost EACH whose inner call contains the reference.

    ``each`` is None if there is no such EACH.
    """

    reference: Reference
    step: Step
    each: Call | None


class RawString(NamedTuple):
    """A template with the source text between its quotes, and the offset of this text."""

    template: Template
    text: str
    offset: int


@attrs.frozen(slots=False)
class Context(LintContext):
    """A script under check. Data that several rules use are computed once, in one walk over the tree."""

    script: Script
    input: Any
    operations: Mapping[str, Signature]
    models: Collection[str] | None
    given: Collection[str] = ()
    """The names of steps that ran earlier in a session. Their values exist, but the script does not contain these steps."""
    functions: Collection[str] | None = None
    """The names of the functions that the host offers for ``CALL``; None allows any name."""
    _readings: dict[str, literals.Reading | literals.Unreadable] = attrs.field(
        factory=dict, init=False, eq=False, repr=False
    )
    expressions: "dict[str, ExprRead]" = attrs.field(factory=dict, init=False, eq=False, repr=False)
    """Maps the text of each expression to the result of parsing it. Only texts that were parsed before are included."""

    def severity(self, code: str) -> Severity:
        """Return the severity that ``code`` has in the catalogue for the mode of this script."""
        lenient = RULES[code].lenient if self.script.mode == "lenient" else None
        return lenient or super().severity(code)

    def reading(self, text: str) -> literals.Reading | literals.Unreadable:
        """Return the value in ``text``, a string of the input, as read by ``lang.literals``. Each string is read only once."""
        if text not in self._readings:
            self._readings[text] = literals.read(text)
        return self._readings[text]

    def expression(self, text: str) -> "ExprRead":
        """Return the parsed expression ``text``. Each text is parsed only once."""
        if text not in self.expressions:
            from ...parse.expr import parse_expr  # imported on demand, because few scripts have an expression

            self.expressions[text] = parse_expr(Source(text, self.script.source.name))
        return self.expressions[text]

    @cached_property
    def steps(self) -> dict[str, Step]:
        """Return a mapping from each id to its step; if several steps have the same id, to the last of them."""
        return {step.id: step for step in self.script.steps}

    @cached_property
    def graph(self) -> dict[str, tuple[str, ...]]:
        """Return, for each step, the steps that it refers to."""
        return dependencies.step_dependencies(self.script, [(use.reference, use.step) for use in self.uses])

    @cached_property
    def cycles(self) -> list[tuple[str, ...]]:
        """Return a cycle for each group of steps that depend on each other."""
        return dependencies.cycles(self.graph)

    @cached_property
    def known(self) -> frozenset[str]:
        """Return all names that a reference may have anywhere in the script."""
        return frozenset(self.steps) | self.unread_ids | RESERVED | frozenset(self.given)

    @cached_property
    def nameable(self) -> tuple[str, ...]:
        """Return the candidates for a misspelt name.

        These are the known names; ``item`` and ``index`` are included only if the script has an EACH.
        """
        reserved = sorted(RESERVED) if any(self.maps(call) for call, _ in self.calls) else ["input"]
        return (*self.steps, *sorted(self.unread_ids), *self.given, *reserved)

    @cached_property
    def dotted(self) -> tuple[str, ...]:
        """Return the steps whose ids have dots."""
        return tuple(step for step in (*self.steps, *self.given) if "." in step)

    @cached_property
    def has_unknown(self) -> bool:
        """Return whether a reference has an unknown name."""
        return any(use.reference.name not in self.known for use in self.uses)

    @cached_property
    def needed(self) -> set[str]:
        """Return the ids of the final step and of all steps that it needs."""
        return dependencies.needed(self.graph, self.final[0]) if self.final else set()

    @cached_property
    def final(self) -> tuple[str, dependencies.FinalRule] | None:
        """Return the final step and the rule that chose it."""
        return dependencies.final_step(self.script, self.graph)

    @cached_property
    def is_whole(self) -> bool:
        """Return whether every step could be read."""
        return not any(diagnostic.severity == "error" for diagnostic in self.script.diagnostics)

    @cached_property
    def unread_ids(self) -> frozenset[str]:
        """Return the ids of steps that could not be read. References to these steps are not reported."""
        if self.is_whole:
            return frozenset()
        found = {match["id"] for match in _HEAD_LINE.finditer(self.script.source.text)}
        for diagnostic in self.script.diagnostics:
            if diagnostic.code in ("LWT007", "LWT008"):  # the head is invalid: use the id from its fix
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
        """Return whether ``call`` runs another call for each element of a list, as EACH does."""
        return call.operation in self._mapping

    @property
    def uses(self) -> list[Use]:
        """Return every reference, in source order."""
        return self._walked[0]

    @property
    def templates(self) -> list[Template]:
        """Return every template, in source order."""
        return self._walked[1]

    @property
    def calls(self) -> list[tuple[Call, Step]]:
        """Return every call with its step, in source order."""
        return self._walked[2]

    @cached_property
    def expression_calls(self) -> list[tuple[Call, Step]]:
        """Return the calls that may have an expression as an argument or an option; most calls have none."""
        takers = {
            name for name, known in self.operations.items() if any(p.kind == "expression" for p in known.parameters)
        }
        return [(call, step) for call, step in self.calls if call.options or call.operation in takers]

    @cached_property
    def step_of(self) -> dict[int, Step]:
        """Return the step of each call. The key is Python's ``id()`` of the call."""
        return {id(call): step for call, step in self.calls}

    @property
    def objects(self) -> list[ObjectValue]:
        """Return every object, in source order."""
        return self._walked[3]

    def strings(self, *marks: str) -> Iterator[RawString]:
        """Yield the raw text of the strings that contain one of ``marks``.

        The raw text is the source text between the quotes. Few strings contain a mark, so this filter saves most of the work.
        """
        text = self.script.source.text
        for mark in marks:
            if mark in text:
                break
        else:
            return
        for template in self.templates:
            start, end = template.span.start, template.span.end
            for mark in marks:
                if text.find(mark, start, end) >= 0:
                    raw = _raw(template, text)
                    if raw:
                        yield raw
                    break

    @cached_property
    def slips(self) -> list[Diagnostic]:
        """Return diagnostics about misspelt references, which the parser reads as text."""
        text = self.script.source.text
        if self.script.mode == "strict" and "]}" not in text and text.count("{(") == len(self.uses):
            return []  # every "{(" belongs to a reference, and no brace follows an accessor
        known = self.steps.keys() | self.unread_ids | frozenset(self.given)
        return [slip for raw in self.strings("{(") for slip in find_slips(raw.text, raw.offset, known)]

    @cached_property
    def lookalikes(self) -> list[Diagnostic]:
        """Return diagnostics about references that are written in the syntax of other languages."""
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
        """Return the steps that only misspelt references refer to."""
        meant = (edit.text for slip in (*self.slips, *self.lookalikes) for edit in slip.edits)
        named = {text[2 : text.index(")")] for text in meant if text.startswith("{(") and ")" in text}
        words = (argument for call, _ in self.calls for argument in call.arguments if isinstance(argument, Word))
        return frozenset(named | {word.value for word in words})

    def spelled(self, span: Span, name: str, within: Span) -> Span | None:
        """Return the span of ``name``, for an edit.

        The name is at the start of ``span``, or else at its first occurrence in ``within``. Return None if neither has it.
        """
        text = self.script.source.text
        if text.startswith(name, span.start):
            return Span(span.start, span.start + len(name))
        at = text.find(name, within.start, within.end)
        return Span(at, at + len(name)) if at >= 0 else None

    def id_span(self, step: Step) -> Span:
        """Return the span of a step's id. If the step was not parsed from text, return the span of the step."""
        at = Span(step.span.start + 1, step.span.start + 1 + len(step.id))
        return self.spelled(at, step.id, step.span) or step.span

    def name_span(self, reference: Reference) -> Span | None:
        """Return the span of a reference's name. Return None if the reference was not parsed from text."""
        at = Span(reference.span.start + 2, reference.span.start + 2 + len(reference.name))
        return self.spelled(at, reference.name, reference.span)


lint: Lints[Context] = Lints()


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
