"""Rules about the expressions in scripts: the expressions of ``EXPR``, and the conditions in ``when=``.

The parser and the checks of expressions are imported when the first expression is found, because most scripts have none.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import evolve, frozen

from ...catalogue.operations import COMMON_OPTIONS
from ...diagnostic import Diagnostic, Edit, nearest
from ...embedded_code import EmbeddedCode, Inside, ProgramVariable, embedded_expression
from ...literals import Reading, kind_of, read, short
from ...parse.lwt.recovery.references import right_spelling
from ...parse.lwt.shapes import HEAD
from ...printer.lwt_printer import format_reference
from ...source import NOWHERE, Source, Span
from ...trees import walk
from ...trees.expr import Comparison, Expr, ListDisplay, Literal, Name, TupleDisplay
from ...trees.lwt import Call, Choice, Option, Reference, Step, Template, Text, Word
from .calls import without
from .context import Context, lint

# The types of values that are known before the run. They show which comparisons no answer can make true.

_SCALARS = {"int": "a number", "float": "a number", "bool": "true or false", "text": "a text", "list": "a list"}
_MOST_LABELS = 8


@frozen
class _Known:
    """The known facts about a value: its kind in words, the labels of a choice, and whether it is an answer without a type."""

    kind: str = ""
    labels: tuple[str, ...] = ()
    untyped: bool = False


def impossible(context: Context, expr: Expr, values: Mapping[str, Reference]) -> Iterator[tuple[Literal, str, str]]:
    """Yield each literal that can never equal the value it is compared with, with a message and a hint.

    ``values`` maps the names in the expression to the references they are bound to.
    """
    known = {name: found for name, reference in values.items() if (found := _known(context, reference)) is not None}
    if not known:
        return
    for node in walk(expr):
        if isinstance(node, Comparison):
            left = node.first
            for test, right in node.rest:
                ordered = test in ("<", "<=", ">", ">=")
                for name, literal in _pairs(left, test, right):
                    if name in known and (told := _never(name, values[name], known[name], literal.value, ordered)):
                        yield literal, *told
                left = right


def _pairs(left: Expr, test: str, right: Expr) -> Iterator[tuple[str, Literal]]:
    """Yield each name with the literal that it is compared with: on the other side, or in a list on the right of ``in``."""
    if isinstance(left, Name) and test in ("in", "not in") and isinstance(right, ListDisplay | TupleDisplay):
        yield from ((left.name, item) for item in right.items if isinstance(item, Literal))
    elif isinstance(left, Name) and isinstance(right, Literal) and test not in ("in", "not in"):
        yield left.name, right
    elif isinstance(left, Literal) and isinstance(right, Name) and test not in ("in", "not in"):
        yield right.name, left


def _known(context: Context, reference: Reference) -> _Known | None:
    step = context.steps.get(reference.name)
    if reference.accessors or step is None or step.call.operation != "LLM":
        return None
    kind = step.call.option("type")
    if kind is None:
        return _Known(untyped=True)
    if isinstance(kind, Choice):
        labels = tuple(label.constant.strip() for label in kind.labels if label.constant)
        return _Known("a text", labels)
    name = kind.value if isinstance(kind, Word) else kind.constant if isinstance(kind, Template) else None
    return _Known(_SCALARS[name]) if name in _SCALARS else None


def _never(
    name: str, reference: Reference, known: _Known, value: bool | int | float | str | None, ordered: bool
) -> tuple[str, str] | None:
    """Return message and hint if the value can never be the literal. A comparison with null is always allowed."""
    if value is None or (ordered and known.kind == "a text" and isinstance(value, str)):
        return None
    shown = (
        short(value) if isinstance(value, str) else "true" if value is True else "false" if value is False else value
    )
    if known.untyped:
        if not isinstance(value, str) or not isinstance(found := read(value), Reading):
            return None
        message = f"{name} is never the text {shown}: an answer that reads as a value becomes that value"
        written = value.strip() if found.how == "json" else str(found.value)
        return message, f"compare with {written[:40]}, or add the option `type=text` to ({reference.name})"
    if known.labels and isinstance(value, str):
        if value in known.labels:
            return None
        near = nearest(value, known.labels)
        there = ", ".join(short(label) for label in known.labels[:_MOST_LABELS])
        hint = f"did you mean {short(near)}?" if near else f"the labels of ({reference.name}) are {there}"
        return f"{name} is never {shown}", hint
    kind = "true or false" if isinstance(value, bool) else kind_of(value)
    if kind == known.kind:
        return None
    return (
        f"{name} is {known.kind}, never {kind}",
        f"the option `type=` of ({reference.name}) determines its type",
    )


# Diagnostics of a program or an expression inside a script are reported in the script, with their spans mapped to its text.

_LONGEST = 20_000
"""Maximum length, in characters, of an escaped text that is searched; the search is repeated for each diagnostic."""


def placeholder(_: Reference) -> str:
    """Return a placeholder for the value of a reference, which is not known yet."""
    return "x"


def outside(
    context: Context, code: str, template: Template, inner: EmbeddedCode, found: Diagnostic, hints: Iterable[str] = ()
) -> Diagnostic:
    """Return a diagnostic of a program or an expression as a diagnostic of the script, with its span mapped to the script.

    Edits are kept only if all of them can be made in the script.
    """
    message = inner.with_references(f"{found.message} ({found.code})")
    own = [hint for hint in found.hints if not (found.edits and inner.has_generated_name(hint))]
    if len(own) < len(found.hints) and found.code == "GASL027":
        # The hint names a generated variable such as in_1, which the script does not contain.
        own.insert(0, "a reference is a value; write names in the program itself, as in AS found")
    told = [*map(inner.with_references, own), *hints]
    places = Places(context.script.source, inner)
    span = template.span if found.span is None or not inner.parts else places.span(found.span)
    edits = [Edit(place, edit.text) for edit in found.edits if (place := places.verbatim(edit.span)) is not None]
    whole = len(edits) == len(found.edits)
    plain = whole and not any(character in edit.text for edit in edits for character in "\"'\\{\n")
    return context.diagnostic(code, message, span, *told, edits=edits if plain else (), severity=found.severity)


class Places:
    """Maps spans of an inner text (a program or an expression) to spans of the script."""

    def __init__(self, source: Source, inner: EmbeddedCode) -> None:
        self._parts: list[tuple[Span, Span, Sequence[int] | None]] = []
        start = 0
        for text, part in inner.pieces(placeholder):
            own = part.span if isinstance(part, Text) else part.reference.span
            places = _places(source.slice(own), text) if isinstance(part, Text) else None
            self._parts.append((Span(start, start + len(text)), own, places))
            start += len(text)

    def span(self, found: Span) -> Span:
        """Return the span of the script that corresponds to ``found``, a span of the inner text."""
        first, last = self._place(found.start), self._place(max(found.start, found.end - 1))
        return Span(first.start, max(first.start, last.end if found.end > found.start else first.start))

    def verbatim(self, found: Span) -> Span | None:
        """Return the corresponding span of the script if the script contains all of the text itself, else None."""
        for inside, own, places in self._parts:
            if places is not None and inside.start <= found.start and found.end <= inside.end:
                return Span(
                    own.start + places[found.start - inside.start], own.start + places[found.end - inside.start]
                )
        return None

    def _place(self, offset: int) -> Span:
        """Return the span of a character in the script, or of its whole part if the script writes that part in another way."""
        inside, own, places = next((each for each in self._parts if offset < each[0].end), self._parts[-1])
        if places is None:
            return own
        at = min(offset - inside.start, len(places) - 1)
        return Span(own.start + places[at], own.start + places[min(at + 1, len(places) - 1)])


def _places(written: str, text: str) -> Sequence[int] | None:
    """Return the offset in ``written``, where quotes and backslashes are escaped, of each character of ``text`` and of its end.

    Returns None if ``written`` does not match the text.
    """
    if written == text:
        return range(len(text) + 1)
    if len(written) > _LONGEST:
        return None
    places, at = [0], 0
    for character in text:
        if written[at : at + 1] == "\\" and written[at + 1 : at + 2] == character and character in "\"'\\":
            at += 2
        elif written[at : at + 1] == character:
            at += 1
        else:
            return None
        places.append(at)
    return places if at == len(written) else None


_UNKNOWN_NAME = "EXPR050"


def _expressions(context: Context) -> Iterator[tuple[Call, Step, Template]]:
    """Yield every EXPR call with its step and the string of its expression."""
    for call, step in context.expression_calls:
        signature = context.operations.get(call.operation)
        if signature is None or not call.arguments or not isinstance(template := call.arguments[0], Template):
            continue
        if signature.parameters and signature.parameters[0].kind == "expression":
            yield call, step, template


def _conditions(context: Context) -> Iterator[tuple[Call, Step, Option, Template]]:
    """Yield every ``when=`` with a string as its value: the call, the step, the option and the string."""
    for call, step in context.expression_calls:
        for option in call.options:
            if option.name == "when" and _is_condition(context, call) and isinstance(option.value, Template):
                yield call, step, option, option.value


def expression_strings(context: Context) -> Iterator[Template]:
    """Yield every string that contains an expression."""
    yield from (template for _, _, template in _expressions(context))
    yield from (template for _, _, _, template in _conditions(context))


def _is_condition(context: Context, call: Call) -> bool:
    signature = context.operations.get(call.operation)
    return signature is not None and signature.option("when") is COMMON_OPTIONS["when"]


@lint("LWT043")
def faulty_expression(context: Context) -> Iterator[Diagnostic]:
    """Report the faults that the parser and the checks of expressions find in an expression, at their place in the script."""
    for call, _, template in _expressions(context):
        if template.constant is not None:
            bound = {option.name for option in call.options if option.name not in COMMON_OPTIONS}
            yield from _faults(context, call, template, embedded_expression(template), bound)
    for call, _, _, template in _conditions(context):
        inner = embedded_expression(template)
        if not any(isinstance(part, Inside) for part in inner.parts):
            yield from _faults(context, call, template, inner, {name for name, _ in inner.variables}, is_condition=True)


def _faults(
    context: Context,
    call: Call,
    template: Template,
    inner: EmbeddedCode,
    names: set[str],
    *,
    is_condition: bool = False,
) -> Iterator[Diagnostic]:
    from ..expr import check_expr

    text = inner.text(placeholder)
    read = context.expression(text)
    for found in read.diagnostics:
        told = outside(context, "LWT043", template, inner, found)
        yield _of_reference(context, template, told) if is_condition else told
    if read.expr is None:
        return
    for found in check_expr(read.expr, names=names):
        if found.code == _UNKNOWN_NAME and found.span is not None:
            found, edits = _unknown(context, call, inner, found, text[found.span.start : found.span.end], is_condition)
            told = outside(context, "LWT043", template, inner, found)
            yield evolve(told, edits=tuple(edits)) if edits else told
        else:
            yield outside(context, "LWT043", template, inner, found)
    yield from _no_context(context, template, inner, read.expr)
    values = _values(call, inner, is_condition)
    for node, message, hint in impossible(context, read.expr, values):
        span = Places(context.script.source, inner).span(node.span)
        said = inner.with_references
        yield context.diagnostic("LWT047", said(message), span, said(hint))


def _of_reference(context: Context, template: Template, told: Diagnostic) -> Diagnostic:
    """Return the diagnostic ``told``, with a hint about references if the fault is in braces that were meant as a reference."""
    text = context.script.source.text
    for span in (*(edit.span for edit in told.edits), *([told.span] if told.span else [])):
        at = text.find("{", span.start, max(span.end, span.start + 1))
        found = right_spelling(text, at, template.span.end) if at >= 0 else None
        if found and text[found[0].start : found[0].end] != found[1]:
            return evolve(
                told, hints=(f"write a value of the script as a reference: `{found[1]}`",), edits=(Edit(*found),)
            )
    return told


def _values(call: Call, inner: EmbeddedCode, is_condition: bool) -> Mapping[str, Reference]:
    """Return the reference that each name of an expression is bound to."""
    if is_condition:
        return dict(inner.variables)
    return {option.name: option.value for option in call.options if isinstance(option.value, Reference)}


def _no_context(context: Context, template: Template, inner: EmbeddedCode, expr: "Expr") -> Iterator[Diagnostic]:
    from ...trees.expr import Field

    places = Places(context.script.source, inner)
    for node in walk(expr):
        if isinstance(node, Field) and node.namespace == "context":
            hint = 'for a part of the input write `{(input)}["key"]`'
            message = "`context.` exists only in Formula Seeds"
            yield context.diagnostic("LWT043", message, places.span(node.span), hint)


def _unknown(
    context: Context, call: Call, inner: EmbeddedCode, found: Diagnostic, name: str, is_condition: bool
) -> tuple[Diagnostic, list[Edit]]:
    """Return the diagnostic about an unknown name, and edits that bind the name to the step or the input that it means."""
    meant = None if is_condition else _misspelt_binding(call, inner, name)
    if meant is not None:
        hint = f"the expression does not use `{meant.name}`: rename the value to `{name}`"
        return evolve(found, hints=(hint,), edits=()), [
            Edit(Span(meant.span.start, meant.span.start + len(meant.name)), name)
        ]
    there = name if name in context.steps or name in context.given or name == "input" else None
    if there is None and not found.edits:
        there = context.suggestion(name, context.nameable)
    if there is None or there in ("item", "index"):
        return found, []
    reference = f"{{({there})}}"
    at = Places(context.script.source, inner).verbatim(found.span) if found.span is not None else None
    if is_condition:
        hint = f"write a value of the script as a reference: `{reference}`"
        return evolve(found, hints=(hint,), edits=()), [Edit(at, reference)] if at is not None else []
    hint = f"pass the value in the call: `{name}={reference}`"
    end = max((part.span.end for part in (*call.arguments, *call.options)), default=0)
    edits = [Edit(Span(end, end), f", {name}={reference}")] if call.span != NOWHERE and there == name else []
    return evolve(found, hints=(hint,), edits=()), edits


def _misspelt_binding(call: Call, inner: EmbeddedCode, name: str) -> Option | None:
    """Return the unused option with a name similar to ``name`` whose value is a reference to something called ``name``."""
    written = inner.text(placeholder)
    for option in call.options:
        if option.span == NOWHERE or not isinstance(option.value, Reference) or option.name in COMMON_OPTIONS:
            continue
        is_like = _free_name(option.value, set()) == name and nearest(option.name, [name]) is not None
        if is_like and re.search(rf"\b{re.escape(option.name)}\b", written) is None:
            return option
    return None


@lint("LWT044")
def reference_as_text(context: Context) -> Iterator[Diagnostic]:
    """Report references inside the string of an EXPR, or inside quotes in a condition."""
    for call, _, template in _expressions(context):
        if template.constant is None:
            yield _to_be_bound(context, call, template)
    for _, _, _, template in _conditions(context):
        inner = embedded_expression(template)
        for number, part in enumerate(inner.parts):
            if isinstance(part, Inside):
                yield _in_quotes(context, inner, number, part.reference)


def _to_be_bound(context: Context, call: Call, template: Template) -> Diagnostic:
    """Return a diagnostic at the first reference, with edits that bind each reference to a name."""
    taken = {option.name for option in call.options}
    names: dict[str, str] = {}
    spans: list[tuple[Span | None, str]] = []
    inner = embedded_expression(template)
    for number, part in enumerate(inner.parts):
        if isinstance(part, Text):
            continue
        written = format_reference(part.reference)
        if written not in names:
            names[written] = _free_name(part.reference, taken)
            taken.add(names[written])
        span = part.reference.span if isinstance(part, ProgramVariable) else _with_quotes(context, inner, number)
        spans.append((span, names[written]))
    first = next(part for part in template.parts if isinstance(part, Reference))
    written = format_reference(first)
    hint = f"name the value: write `{names[written]}` in the expression, and `{names[written]}={written}` after the expression"
    edits = [Edit(span, name) for span, name in spans if span is not None and span != NOWHERE]
    if len(edits) == len(spans) and call.span != NOWHERE and not _runs_on(context, template):
        end = max(part.span.end for part in (*call.arguments, *call.options))
        edits.append(Edit(Span(end, end), "".join(f", {name}={written}" for written, name in names.items())))
    else:
        edits = []
    message = "an expression uses names of values, not references"
    return context.diagnostic("LWT044", message, first.span, hint, edits=edits)


_HEAD_BELOW = re.compile(rf"\n[ \t]*+{HEAD.pattern}")


def _runs_on(context: Context, template: Template) -> bool:
    """Return whether a string contains the head of another step. Its closing quote is then missing, and edits inside don't help."""
    span = template.span
    return span != NOWHERE and _HEAD_BELOW.search(context.script.source.text, span.start, span.end) is not None


def _free_name(reference: Reference, taken: set[str]) -> str:
    """Return an unused name for the value of a reference: its last key, or the step's id, or ``value`` with a number."""
    last = reference.accessors[-1] if reference.accessors else None
    wanted = getattr(last, "value", None)
    for name in (wanted, reference.name, "value"):
        if isinstance(name, str) and is_name(name) and name not in taken:
            return name
    number = 2
    while f"value_{number}" in taken:
        number += 1
    return f"value_{number}"


def _in_quotes(context: Context, inner: EmbeddedCode, number: int, reference: Reference) -> Diagnostic:
    """Return a diagnostic about a reference in quotes. Its edit removes the quotes if they contain only the reference."""
    span, text = _with_quotes(context, inner, number), context.script.source.text
    edits = [] if span is None else [Edit(span, text[reference.span.start : reference.span.end])]
    hint = "remove the quotes around it"
    if span is None:
        hint = f'join texts with +: `"..." + {format_reference(reference)}`'
    message = "a reference in a condition is a value; inside quotes it would be text"
    return context.diagnostic("LWT044", message, reference.span, hint, edits=edits)


def _with_quotes(context: Context, inner: EmbeddedCode, number: int) -> Span | None:
    """Return the span of a reference and its quotes; None if the quotes contain more than the reference."""
    part = inner.parts[number]
    before, after = (inner.parts[at] if 0 <= at < len(inner.parts) else None for at in (number - 1, number + 1))
    if not isinstance(part, Inside) or not isinstance(before, Text) or not isinstance(after, Text):
        return None
    span, text = part.reference.span, context.script.source.text
    if span == NOWHERE or not (before.value.endswith(part.quote) and after.value.startswith(part.quote)):
        return None
    start = span.start - (2 if text[span.start - 2 : span.start - 1] == "\\" else 1)
    return Span(start, span.end + (2 if text.startswith("\\", span.end) else 1))


@lint("LWT045")
def unused_binding(context: Context) -> Iterator[Diagnostic]:
    """Report values that are passed to an expression but that it does not use."""
    for call, _, template in _expressions(context):
        from ...trees.expr import Clause, Name

        expr = None if template.constant is None else context.expression(template.constant).expr
        if expr is None:
            continue
        nodes = list(walk(expr))
        used = {node.name for node in nodes if isinstance(node, Name)}
        bound = {option.name for option in call.options if option.name not in COMMON_OPTIONS}
        if used - bound - {node.name for node in nodes if isinstance(node, Clause)}:
            continue  # a name may be misspelt, so the value that it means seems unused
        for option in call.options:
            if option.name in bound - used and is_name(option.name):
                span = Span(option.span.start, option.span.start + len(option.name))
                edits = [Edit(without(context, call, option.span), "")] if option.span != NOWHERE else []
                message = f"the expression does not use `{option.name}`"
                yield context.diagnostic("LWT045", message, span, "remove it, or use it", edits=edits)


@lint("LWT046")
def binding_name(context: Context) -> Iterator[Diagnostic]:
    """Report values with a name that is reserved in expressions."""
    for call, _, _ in _expressions(context):
        for option in call.options:
            if option.name not in COMMON_OPTIONS and not is_name(option.name):
                span = Span(option.span.start, option.span.start + len(option.name))
                message = f"a value can't be called `{option.name}`: the name is reserved in expressions"
                yield context.diagnostic("LWT046", message, span, f"rename it, for example to `{option.name}_value`")


@lint("LWT048")
def misplaced_condition(context: Context) -> Iterator[Diagnostic]:
    """Report a condition on the call that EACH repeats."""
    for call, step in context.expression_calls:
        if call is step.call:
            continue
        for option in call.options:
            if option.name == "when" and _is_condition(context, call):
                kept = f'({step.id}_kept)=EXPR("[x for x in xs if ...]", xs={{(list)}})'
                hints = (
                    f"select the items before: `{kept}`, and use that list",
                    "or add the condition to the step itself",
                )
                message = "a condition is allowed on a step, not on the call that EACH repeats"
                yield context.diagnostic("LWT048", message, option.span, *hints)


def is_name(name: str) -> bool:
    """Return whether ``name`` is a valid name for a value of an expression."""
    from ...catalogue.operations import FUNCTIONS
    from ...parse.expr.builder import NAMESPACES, RESERVED

    is_word = re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) is not None
    return is_word and not (name in FUNCTIONS or name in NAMESPACES or name.lower() in RESERVED or name[:2] == "__")
