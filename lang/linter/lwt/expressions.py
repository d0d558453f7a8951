"""Rules about the expressions in scripts: the expressions of ``EXPR``, and the conditions in ``when=``.

The parser and the checks of expressions are imported when the first expression is found, because most scripts have none.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import evolve

from ...catalogue.operations import COMMON_OPTIONS
from ...diagnostic import Diagnostic, Edit, nearest
from ...embedded_code import EmbeddedCode, Inside, ProgramVariable, embedded_expression
from ...parse.lwt.recovery.references import right_spelling
from ...parse.lwt.shapes import HEAD
from ...printer.lwt_printer import format_reference
from ...source import NOWHERE, Source, Span
from ...trees import walk
from ...trees.expr import Expr, Name
from ...trees.lwt import Call, Option, Reference, Step, Template, Text
from .calls import without
from .context import Context, lint
from .impossible_comparisons import impossible

# Diagnostics of a program or an expression inside a script are reported for the script, with spans in the script's text.

_LONGEST = 20_000
"""Maximum length, in characters, of an escaped string that is searched; the search is repeated for each diagnostic."""


def placeholder(_: Reference) -> str:
    """Return a placeholder for the value of a reference, which is not known yet."""
    return "x"


def outside(
    context: Context, code: str, template: Template, inner: EmbeddedCode, found: Diagnostic, hints: Iterable[str] = ()
) -> Diagnostic:
    """Convert a diagnostic of a program or an expression to a diagnostic of the script.

    Its span is mapped to the script. Its edits are kept only if all of them can be made in the script.
    """
    message = inner.with_references(f"{found.message} ({found.code})")
    own = [hint for hint in found.hints if not (found.edits and inner.has_generated_name(hint))]
    if len(own) < len(found.hints) and found.code == "GASL027":
        # The hint names a generated variable such as in_1, which the script does not contain.
        own.insert(0, "a reference inserts a value; write a name directly in the program, as in AS found")
    told = [*map(inner.with_references, own), *hints]
    places = Places(context.script.source, inner)
    span = template.span if found.span is None or not inner.parts else places.span(found.span)
    edits = [Edit(place, edit.text) for edit in found.edits if (place := places.verbatim(edit.span)) is not None]
    whole = len(edits) == len(found.edits)
    plain = whole and not any(character in edit.text for edit in edits for character in "\"'\\{\n")
    return context.diagnostic(code, message, span, *told, edits=edits if plain else (), severity=found.severity)


class Places:
    """Maps each span of an inner text (a program or an expression) to a span of the script."""

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
        """Return the corresponding span of the script if the script has exactly the same text there, else None."""
        for inside, own, places in self._parts:
            if places is not None and inside.start <= found.start and found.end <= inside.end:
                return Span(
                    own.start + places[found.start - inside.start], own.start + places[found.end - inside.start]
                )
        return None

    def _place(self, offset: int) -> Span:
        """Return the span of a character in the script.

        If the part of the text around the character is written differently in the script, return the span of this part.
        """
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
    """Yield the call, the step, the option and the string of every ``when=`` whose value is a string."""
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
    """Return the diagnostic ``told``. If its fault is in braces that look like a reference, it gets a hint about references."""
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
    """Return a mapping from each name in an expression to the reference that the name is bound to."""
    if is_condition:
        return dict(inner.variables)
    return {option.name: option.value for option in call.options if isinstance(option.value, Reference)}


def _no_context(context: Context, template: Template, inner: EmbeddedCode, expr: "Expr") -> Iterator[Diagnostic]:
    from ...trees.expr import Field

    places = Places(context.script.source, inner)
    for node in walk(expr):
        if isinstance(node, Field) and node.namespace == "context":
            hint = 'for a part of the input, write `{(input)}["key"]`'
            message = "`context.` exists only in Formula Seeds"
            yield context.diagnostic("LWT043", message, places.span(node.span), hint)


def _unknown(
    context: Context, call: Call, inner: EmbeddedCode, found: Diagnostic, name: str, is_condition: bool
) -> tuple[Diagnostic, list[Edit]]:
    """Return the diagnostic about an unknown name.

    Also return edits that bind the name to the step, or to the input, that it stands for.
    """
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
    """Return the option that was probably meant to bind ``name``.

    The option's value is a reference to ``name``. The option's own name is similar, and the expression does not use it.
    """
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
    message = "an expression must use names of values, not references"
    return context.diagnostic("LWT044", message, first.span, hint, edits=edits)


_HEAD_BELOW = re.compile(rf"\n[ \t]*+{HEAD.pattern}")


def _runs_on(context: Context, template: Template) -> bool:
    """Return whether a string contains the head of another step.

    The closing quote of such a string is missing, and edits inside it do not help.
    """
    span = template.span
    return span != NOWHERE and _HEAD_BELOW.search(context.script.source.text, span.start, span.end) is not None


def _free_name(reference: Reference, taken: set[str]) -> str:
    """Return an unused name for the value of a reference: its last key, the id of its step, or ``value`` (with a number)."""
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
    """Return a diagnostic about a reference in quotes. The edit removes the quotes if they contain only the reference."""
    span, text = _with_quotes(context, inner, number), context.script.source.text
    edits = [] if span is None else [Edit(span, text[reference.span.start : reference.span.end])]
    hint = "remove the quotes around it"
    if span is None:
        hint = f'join strings with +: `"..." + {format_reference(reference)}`'
    message = "a reference in a condition is a value, but inside quotes it would be text"
    return context.diagnostic("LWT044", message, reference.span, hint, edits=edits)


def _with_quotes(context: Context, inner: EmbeddedCode, number: int) -> Span | None:
    """Return the span of a reference together with the quotes around it. Return None if the quotes contain more than the reference."""
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
    """Report values that are passed to an expression that does not use them."""
    for call, _, template in _expressions(context):
        from ...trees.expr import Clause

        expr = None if template.constant is None else context.expression(template.constant).expr
        if expr is None:
            continue
        nodes = list(walk(expr))
        used = {node.name for node in nodes if isinstance(node, Name)}
        bound = {option.name for option in call.options if option.name not in COMMON_OPTIONS}
        if used - bound - {name for node in nodes if isinstance(node, Clause) for name in node.names}:
            continue  # a name may be misspelt, so the value that it means appears to be unused
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
                message = f"a value can't have the name `{option.name}`, which is reserved in expressions"
                yield context.diagnostic("LWT046", message, span, f"rename it, for example to `{option.name}_value`")


def is_name(name: str) -> bool:
    """Return whether ``name`` is a valid name for a value of an expression."""
    from ...catalogue.operations import RESERVED_FUNCTIONS
    from ...parse.expr.builder import NAMESPACES, RESERVED

    is_word = re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) is not None
    return is_word and not (
        name in RESERVED_FUNCTIONS or name in NAMESPACES or name.lower() in RESERVED or name[:2] == "__"
    )
