"""Finds the meaning of unquoted words after a comparison operator. The graph, rows, variables and state determine the meaning.

``owner`` in ``country = owner`` is a field. If the items have no such field, the author meant a string or a variable. In a list, as in
``IN (owner, other)``, only constants are allowed, so the parser reports the word. An edit is offered only if a single meaning is possible.
For example, the edit adds quotes if the field on the left has exactly this value and nothing else has this name.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from attrs import evolve, frozen

from ...catalogue.schema import Schema
from ...diagnostic import Diagnostic, Edit, apply_edits
from ...printer.gasl_printer import format_field, format_key, format_name, format_text
from ...source import Source, Span
from ...trees.conditions import Comparison, Field, Variable
from ...trees.gasl import Find
from .arguments import is_bare_name, is_in
from .context import Context, Step, lint
from .fields import FieldRead, Scope, constants_of, fields_read, leaves_of
from .graph import BUILT_IN, Place, attribute_of, attributes_of, is_id, is_known, place_of

_CODES = frozenset({"GASL007", "GASL028"})
_NAME = re.compile(r"[^\W\d][\w.\-]*")
_ITEM = re.compile(r"""(?:"[^"]*"|'[^']*'|[^,"'()\[\]])+""")
_VALUE = re.compile(r"""".*"|'.*'|\$.*|-?\d+(?:\.\d+)?|true|false|null""", re.IGNORECASE)
_MOST = 200


@frozen
class _Word:
    """An unquoted word: its span, and the fault that reports the word. ``inside`` is true if the word is in the list of an IN."""

    span: Span
    fault: Diagnostic
    inside: bool


@frozen
class _Meaning:
    """The meanings that a word may have: a ``field`` of the tested items, a ``variable``, a ``key``, a ``value`` of the left field."""

    left: Field | None
    operator: str
    field: bool
    variable: bool
    key: bool
    value: bool


@lint("GASL076")
def unknown_name(context: Context) -> Iterator[Diagnostic]:
    """Report a word on the right side of a comparison that is not a field of the items."""
    for step in context.steps:
        for read in fields_read(context, step):
            if is_bare_name(read) and is_field(context, read) is False:
                yield _no_field(context, step, read)


def is_field(context: Context, read: FieldRead) -> bool | None:
    """Return whether the items have the field, or None if the fields of the items are unknown."""
    schema, scope = context.schema, read.scope
    columns = scope.contents.columns
    if scope.on in ("rows", "patterns"):
        return None if columns is None else is_in(read.field, columns)
    if schema is None or is_in(read.field, scope.contents.more):
        return None
    place = place_of(read.field, scope, schema)
    return None if place is None or not place.path else is_known(place, schema)


_ITEMS: Mapping[str, str] = {
    "nodes": "these nodes", "edges": "these edges", "edge items": "these edges", "paths": "these paths", "path items": "these paths",
    "rows": "these rows", "patterns": "these patterns",
}  # fmt: skip


def _no_field(context: Context, step: Step, read: FieldRead) -> Diagnostic:
    name, span, schema = read.field.text, read.field.span, context.schema
    message = f"{name[:80]} is neither a field of {_ITEMS[read.scope.on]} nor a quoted string"
    test = read.leaf.test if read.leaf is not None else None
    left = test.left if test is not None and isinstance(test.left, Field) else None
    place = place_of(left, read.scope, schema) if left is not None and schema is not None else None
    is_value = place is not None and schema is not None and _is_value(place, schema, name)
    edits = []
    if is_value and name.partition(".")[0] not in context.bound_names and name not in context.keys:
        edits.append(context.replaced(span, format_text(name)))
    ways = [f"{format_text(name[:80])} for the text"]
    if not edits and len(read.field.path) == 1:
        the = "the" if name in context.bound_names else "a"
        ways.append(f"${{{format_name(name)}}} for {the} variable")
    if test is not None and getattr(test, "operator", "") in ("<", "<=", ">", ">="):
        ways.insert(0, "a number")
    hints = [f"write {', '.join(ways[:-1])}{', or ' if len(ways) > 1 else ''}{ways[-1]}"]
    if not is_value and (near := near_field(context, read.scope, name)):
        hints.append(f"did you mean the field {format_field(near)}?")
    return context.diagnostic("GASL076", message, span, *hints, edits=edits)


def near_field(context: Context, scope: Scope, name: str) -> str | None:
    """Return the field of the items whose name is similar to ``name``, or None."""
    if scope.on in ("rows", "patterns"):
        return context.suggestion(name, scope.contents.columns or ())
    return context.suggestion(name, sorted(_fields(scope, context.schema, None)))


def resolved(context: Context, faults: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return the parser's faults. Faults about unquoted words get messages, hints and edits that use the meanings of the words."""
    faults = [_with_target(context, fault, faults) if fault.code == "GASL011" else fault for fault in faults]
    words = [word for fault in faults[:_MOST] if fault.code in _CODES for word in _words(context, fault)]
    if not words:
        return faults
    meanings = _meanings(context, words, faults)
    made: list[Diagnostic] = []
    for fault in faults:
        mine = [(word, meanings[word.span]) for word in words if word.fault is fault and word.span in meanings]
        made.append(_explained_fault(context, fault, mine) if mine else fault)
    return made


def _with_target(context: Context, fault: Diagnostic, faults: Sequence[Diagnostic]) -> Diagnostic:
    """Return the fault about ``FIND WHERE``.

    If only nodes or only edges have the tested fields, add the edit that inserts that keyword.
    """
    schema, text = context.schema, context.program.source.text
    if fault.edits or fault.span is None or schema is None or text[fault.span.start :][:5].upper() != "WHERE":
        return fault
    from ...parse.gasl import parse_gasl

    fits = []
    for kind in ("nodes", "edges"):
        target = Edit(Span(fault.span.start, fault.span.start), f"{kind} ")
        others = (edit for each in faults[:_MOST] if each.severity == "error" for edit in each.edits)
        trial = sorted((target, *others), key=lambda edit: (edit.span.start, edit.span.end))
        program = parse_gasl(Source(apply_edits(text, trial), context.program.source.name))
        at = _moved(fault.span.start, [edit for edit in trial if edit is not target])
        read = evolve(context, program=program)
        for step in read.steps:
            if not (isinstance(step.command, Find) and step.command.span.start <= at < step.command.span.end):
                continue
            places = [place_of(each.field, each.scope, schema) for each in fields_read(read, step)]
            if places and all(place is not None and is_known(place, schema) for place in places):
                fits.append((kind, target))
    if len(fits) != 1:
        return fault
    ((kind, target),) = fits
    return evolve(fault, hints=(f"write FIND {kind}: only {kind} have these fields",), edits=(target,))


def _words(context: Context, fault: Diagnostic) -> Iterator[_Word]:
    """Yield the unquoted words that a fault reports. If a fault has edits, it reports such a word only if its edit adds quotes."""
    if fault.span is None or (fault.edits and not _is_quoting(context, fault)):
        return
    if fault.edits:
        yield _Word(fault.edits[0].span, fault, False)
        return
    text, start = context.program.source.text, fault.span.start
    end = min((at for mark in ")]\n" if (at := text.find(mark, start)) >= 0), default=len(text))
    begin = max(text.rfind(mark, 0, start) for mark in "([")
    inside = begin >= 0 and re.search(r"\bIN[ \t]*\Z", text[max(0, begin - 20) : begin], re.IGNORECASE) is not None
    if not inside:
        if '"' not in context.text(fault.span):
            yield _Word(fault.span, fault, False)
        return
    for item in _ITEM.finditer(text, begin + 1, end):
        word = item[0].strip()
        if word and '"' not in word and not _VALUE.fullmatch(word):
            first = item.start() + len(item[0]) - len(item[0].lstrip())
            yield _Word(Span(first, first + len(word)), fault, True)


def _is_quoting(context: Context, fault: Diagnostic) -> bool:
    """Return whether the only edit of a fault puts a word in quotes."""
    return len(fault.edits) == 1 and fault.edits[0].text == f'"{context.text(fault.edits[0].span)}"'


def _meanings(context: Context, words: Sequence[_Word], faults: Sequence[Diagnostic]) -> dict[Span, _Meaning]:
    """Map the span of each word to the possible meanings of the word.

    To find the comparisons, the program is parsed as if the words were strings. After an IN without brackets, they are parsed as
    variables.
    """
    from ...parse.gasl import parse_gasl

    text = context.program.source.text
    trial = [Edit(word.span, _as_read(text, word)) for word in words]
    for fault in faults:
        if fault.severity == "error" and not any(_overlap(edit, other) for edit in fault.edits for other in trial):
            trial += fault.edits
    trial.sort(key=lambda edit: (edit.span.start, edit.span.end))
    program = parse_gasl(Source(apply_edits(text, trial), context.program.source.name))
    read = evolve(context, program=program)
    at = {_moved(word.span.start, trial): word for word in words}
    found: dict[Span, _Meaning] = {}
    for step in read.steps:
        for leaf, scope in leaves_of(read, step):
            if not isinstance(leaf.test, Comparison):
                continue
            right = (leaf.test.right,) if isinstance(leaf.test.right, Variable) else constants_of(leaf.test)
            for operand in right:
                word = at.get(operand.span.start)
                if word is not None:
                    found[word.span] = _meaning(context, leaf.test, context.text(word.span).strip("`"), scope)
    return found


def _as_read(text: str, word: _Word) -> str:
    name = text[word.span.start : word.span.end].strip("`")
    return f"${{{name}}}" if word.fault.code == "GASL028" and not word.inside else format_text(name)


def _overlap(one: Edit, other: Edit) -> bool:
    return one.span.start < other.span.end and other.span.start < one.span.end


def _moved(offset: int, edits: Sequence[Edit]) -> int:
    """Return the new offset of the character at ``offset`` after ``edits``, which are in source order."""
    return offset + sum(len(e.text) - (e.span.end - e.span.start) for e in edits if e.span.end <= offset)


def _meaning(context: Context, test: Comparison, name: str, scope: Scope) -> _Meaning:
    field = test.left if isinstance(test.left, Field) else None
    schema, value = context.schema, False
    place = place_of(field, scope, schema) if field is not None and schema is not None else None
    if place is not None and schema is not None:
        value = _is_value(place, schema, name)
    fields = _fields(scope, schema, scope.contents.columns)
    is_field = name in fields or any(word.partition(".")[0] in fields for word in name.split())
    return _Meaning(
        field, test.operator, is_field, name.partition(".")[0] in context.bound_names, name in context.keys, value
    )


def _fields(scope: Scope, schema: Schema | None, columns: Collection[str] | None) -> set[str]:
    """Return the names with which a field of these items may begin in a condition."""
    names, on = {*(columns or ()), *scope.contents.more}, scope.on
    if schema is not None:
        # The items of a variable may be nodes, edges, or rows made from them.
        kinds = {"nodes": ("nodes",), "edges": ("edges",), "edge items": ("edges",), "variables": ()}.get(
            on, ("nodes", "edges", "paths")
        )
        for kind in kinds if not columns else ():
            names |= BUILT_IN[kind]
            names.update(attributes_of(kind, schema))
        if on in ("edges", "edge items"):
            names |= {"source", "target"}
    return names | {name.partition(".")[0] for name in names}


def _is_value(place: Place, schema: Schema, name: str) -> bool:
    """Return whether the field at ``place`` has the value ``name``: a frequent value of an attribute, or the id of a node."""
    if is_id(place) and schema.all_ids is not None:
        return name in schema.all_ids
    return name in _texts(place, schema)


def _texts(place: Place, schema: Schema) -> set[object]:
    attribute = attribute_of(place, schema)
    found: set[object] = {value for value, _ in attribute.values} if attribute is not None else set()
    name = ".".join(place.path)
    if place.whose == "nodes" and name == schema.label_attribute:
        found |= set(schema.labels)
    if place.whose == "edges" and name == schema.relation_attribute:
        found |= set(schema.relations)
    return found


def _explained_fault(context: Context, fault: Diagnostic, words: Sequence[tuple[_Word, _Meaning]]) -> Diagnostic:
    """Return the fault with a better message, hint or edit, if the meanings of its words allow it.

    If a word is a field, the fault reports this field. If the words have only one possible meaning, the fault gets an edit. Otherwise,
    the fault is returned unchanged.
    """
    if fault.edits and not words[0][1].field:
        return fault
    as_field = next(((word, meaning) for word, meaning in words if meaning.field), None)
    if as_field is not None:
        return _of_field(context, fault, *as_field)
    if all(meaning.value and not meaning.variable and not meaning.key for _, meaning in words):
        edits = tuple(Edit(word.span, format_text(context.text(word.span))) for word, _ in words)
        if fault.code == "GASL028" and not words[0][0].inside:
            edits = tuple(evolve(edit, text=f"({edit.text})") for edit in edits)
        shown = ", ".join(edit.text for edit in edits[:8])
        return evolve(fault, hints=(f"write {shown}",), edits=edits)
    word, meaning = words[0]
    name = context.text(word.span)
    if meaning.variable and not meaning.value and not meaning.key and fault.code == "GASL028" and not word.inside:
        return evolve(fault, hints=(f"write ${{{name}}}",), edits=(Edit(word.span, f"${{{name}}}"),))
    return fault


def _of_field(context: Context, fault: Diagnostic, word: _Word, meaning: _Meaning) -> Diagnostic:
    """Return a fault about a list that contains a field. A list may contain only constants."""
    name = context.text(word.span).strip("`")
    hints = [f"write {format_text(name)} for the text"]
    if meaning.variable:
        hints[0] += f", ${{{name}}} for the variable"
    if meaning.left is not None and meaning.left.quantifier is None:
        left = format_key(meaning.left)
        sign, join = ("!=", "AND") if meaning.operator == "NOT IN" else ("=", "OR")
        hints.append(f"to compare two fields, write {left} {sign} {name}, joined to the rest with {join}")
    named = next((part for part in name.split() if part == name or not _NAME.fullmatch(name)), name)
    message = f"{named} is a field, but a list can contain only constants"
    return evolve(fault, message=message, span=word.span, hints=tuple(hints), edits=())
