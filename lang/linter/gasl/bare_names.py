"""Unquoted words after a comparison: their meaning according to the graph, the rows, the variables and the state.

The parser can't know whether ``owner`` in ``country = owner`` means a string, a variable or another field, so it offers no edit.
This module offers an edit if only one meaning is possible. For example, it adds quotes if the field on the left has exactly
this value and nothing else has this name.
"""

import json
import re
from collections.abc import Collection, Iterator, Sequence

from attrs import evolve, frozen

from ...catalogue.schema import Schema
from ...diagnostic import Diagnostic, Edit, apply_edits
from ...printer.gasl_printer import format_text
from ...source import Source, Span
from ...trees.conditions import Comparison, Field, Variable
from ...trees.gasl import Find
from .conditions import On, constants_of, leaves, tested
from .context import Context
from .graph import BUILT_IN, Place, attribute_of, attributes_of, is_known, place_of

_CODES = frozenset({"GASL007", "GASL028"})
_NAME = re.compile(r"[^\W\d][\w.\-]*")
_ITEM = re.compile(r"""(?:"[^"]*"|'[^']*'|[^,"'()\[\]])+""")
_VALUE = re.compile(r"""".*"|'.*'|\$.*|-?\d+(?:\.\d+)?|true|false|null""", re.IGNORECASE)
_MOST = 200


@frozen
class _Word:
    """An unquoted word: its span, and the fault that reports it. ``inside``: the word is in the list of an IN."""

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


def resolved(context: Context, faults: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return the parser's faults. Faults about unquoted words are completed with the known meanings of the words."""
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
    """Return a fault about ``FIND WHERE`` with an edit that adds nodes or edges, if only nodes or only edges have the tested fields."""
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
        for step in evolve(context, program=program).steps:
            if not (isinstance(step.command, Find) and step.command.span.start <= at < step.command.span.end):
                continue
            asked = [leaf.test.left for condition, _ in tested(step) for leaf in leaves(condition)]
            places = [place_of(field, step.command.kind, schema) for field in asked if isinstance(field, Field)]
            if places and all(place is not None and is_known(place, schema) for place in places):
                fits.append((kind, target))
    if len(fits) != 1:
        return fault
    ((kind, target),) = fits
    return evolve(fault, hints=(f"write FIND {kind}: only {kind} have these fields",), edits=(target,))


def _words(context: Context, fault: Diagnostic) -> Iterator[_Word]:
    """Yield the unquoted words that a fault reports. A fault with edits counts only if its edit adds quotes."""
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
    """Return the possible meanings of each word, by its span.

    The program is parsed as if the words were strings (or variables, after an IN without brackets), to find the comparisons.
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
        for condition, on in tested(step):
            for leaf in leaves(condition):
                if not isinstance(leaf.test, Comparison):
                    continue
                right = (leaf.test.right,) if isinstance(leaf.test.right, Variable) else constants_of(leaf.test)
                for operand in right:
                    word = at.get(operand.span.start)
                    if word is None:
                        continue
                    columns = step.uses[0].columns if on == "rows" and step.uses else None
                    found[word.span] = _meaning(context, leaf.test, context.text(word.span).strip("`"), on, columns)
    return found


def _as_read(text: str, word: _Word) -> str:
    name = text[word.span.start : word.span.end].strip("`")
    return f"${{{name}}}" if word.fault.code == "GASL028" and not word.inside else format_text(name)


def _overlap(one: Edit, other: Edit) -> bool:
    return one.span.start < other.span.end and other.span.start < one.span.end


def _moved(offset: int, edits: Sequence[Edit]) -> int:
    """Return the new offset of the character at ``offset`` after ``edits``, which are in source order."""
    return offset + sum(len(e.text) - (e.span.end - e.span.start) for e in edits if e.span.end <= offset)


def _meaning(context: Context, test: Comparison, name: str, on: On, columns: Collection[str] | None) -> _Meaning:
    field = test.left if isinstance(test.left, Field) else None
    schema, value = context.schema, False
    place = place_of(field, on, schema) if field is not None and schema is not None else None
    if place is not None and schema is not None:
        value = name in _texts(place, schema)
    fields = _fields(on, schema, columns)
    is_field = name in fields or any(word.partition(".")[0] in fields for word in name.split())
    return _Meaning(
        field, test.operator, is_field, name.partition(".")[0] in context.bound_names, name in context.keys, value
    )


def _fields(on: On, schema: Schema | None, columns: Collection[str] | None) -> set[str]:
    """Return the names that a field in a condition on these items may begin with."""
    names: set[str] = set(columns or ())
    if schema is not None:
        # Little is known about the contents of a variable: they may be nodes, edges, or rows made from either.
        kinds = {"nodes": ("nodes",), "edges": ("edges",), "edge items": ("edges",), "variables": ()}.get(
            on, ("nodes", "edges", "paths")
        )
        for kind in kinds if not columns else ():
            names |= BUILT_IN[kind]
            names.update(attributes_of(kind, schema))
        if on in ("edges", "edge items"):
            names |= {"source", "target"}
    return names | {name.partition(".")[0] for name in names}


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
    """Return a fault with a message about a field, if a word means a field; with an edit, if the words have only one meaning."""
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
    name = context.text(word.span).strip("`")
    hints = [f"write {format_text(name)} for the text"]
    if meaning.variable:
        hints[0] += f", ${{{name}}} for the variable"
    left, sign = meaning.left, {"=": "=="}.get(meaning.operator, meaning.operator)
    is_plain = left is not None and left.quantifier is None and len(left.path) == 1 and "." not in name
    if left is not None and is_plain and sign in ("==", "!=", "<", "<=", ">", ">="):
        compared = f"[n for n in items if n[{json.dumps(left.path[0])}] {sign} n[{json.dumps(name)}]]"
        hints.append(f"compare two fields outside of GASL, with an expression over the found items: {compared}")
    else:
        hints.append("compare two fields outside of GASL, with an expression over the found items")
    named = next((part for part in name.split() if part == name or not _NAME.fullmatch(name)), name)
    message = f"{named} is a field, but a condition compares a field with a value"
    return evolve(fault, message=message, span=word.span, hints=tuple(hints), edits=())
