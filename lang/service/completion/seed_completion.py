"""Completion in seeds: keys and values from the JSON Schema, names from the seed itself, and expressions in strings."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, get_args

from attrs import evolve, frozen

from ...documents.json_text import read_json
from ...documents.json_tree import JsonPath, StringMap
from ...evaluate.seed.interpreter import META_KEYS
from ...source import Source, Span
from ...trees.seed import Extracted, FieldType, MetaType
from ..model import Completion, Known, plain, seed_schemas
from .place import Candidate, ExprScope, expr_candidates, ranked

# Finds the place of the cursor in a seed's document: its path, and whether a key or a value is incomplete there. For this, a mark
# and closing brackets are added to the text before the cursor, and the result is parsed. The place of the mark shows what is
# incomplete.

_MARK = "knotwork_is_here"
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\[^\n])*+(?P<ended>")?|[\[\]{}]')
_BARE = re.compile(r"[\w$.\-]*\Z")
_CLOSING = {"{": "}", "[": "]"}
_DEEPEST = 60


@frozen
class JsonCursor:
    """An incomplete key or value at ``path``.

    ``begin`` is the offset of its first character. If the key or value is ``quoted``, this character is its opening quote.

    ``typed`` is its text before the cursor, without the quote. ``document`` is the part of the document up to the cursor, with a mark in
    place of the incomplete key or value.
    """

    kind: Literal["key", "value"]
    path: JsonPath
    begin: int
    typed: str
    quoted: bool
    document: Mapping[str, Any]


def json_cursor(text: str, offset: int) -> JsonCursor | None:
    """Return the incomplete key or value at ``offset``.

    Return None if the document before it is invalid, or if nothing is allowed there.
    """
    opened: list[str] = []
    begin, quoted = -1, False
    for match in _TOKEN.finditer(text, 0, offset):
        sign = match[0][0]
        if sign == '"':
            if match["ended"] is None and match.end() == offset:
                begin, quoted = match.start(), True
        elif sign in _CLOSING:
            opened.append(sign)
        elif not opened or _CLOSING[opened.pop()] != sign:
            return None
    if not quoted:
        bare = _BARE.search(text, max(0, offset - 200), offset)
        begin = bare.start() if bare else offset
    if not opened or len(opened) > _DEEPEST:
        return None
    last = len(text[:begin].rstrip()) - 1
    closing = "".join(_CLOSING[sign] for sign in reversed(opened))
    is_key = opened[-1] == "{" and text[last] != ":"
    for kind, written in reversed(_KINDS) if is_key else _KINDS:
        read = read_json(f"{text[:begin]}{written}{closing}")
        # A fault further up in the document does not affect this place.
        is_good = all(each.span is not None and each.span.end < last for each in read.diagnostics)
        if read.root is not None and is_good and isinstance(read.root.value, dict):
            path = _path(read.root.value)
            if path is not None:
                typed = text[begin + 1 : offset] if quoted else text[begin:offset]
                return JsonCursor(kind, path, begin, typed, quoted, read.root.value)
    return None


_KINDS: tuple[tuple[Literal["key", "value"], str], ...] = (("value", f'"{_MARK}"'), ("key", f'"{_MARK}": null'))


def _path(document: Any) -> JsonPath | None:
    """Return the path of the mark in the document. Return None if it contains no mark.

    In each object or list around the mark, the mark is in the last element, because the document ends at the cursor.
    """
    path: list[str | int] = []
    value = document
    while True:
        if isinstance(value, dict) and value:
            key = next(reversed(value))
            path.append(key)
            if key == _MARK:
                return path
            value = value[key]
        elif isinstance(value, list) and value:
            path.append(len(value) - 1)
            value = value[-1]
        else:
            return path if value == _MARK else None


def schemas_at(schema: Mapping[str, Any], document: Any, path: JsonPath) -> list[Mapping[str, Any]]:
    """Return the parts of a JSON Schema that apply to the value at ``path`` in ``document``."""
    found = list(_plain(schema, schema, document))
    value = document
    for part in path:
        value = value.get(part) if isinstance(value, dict) else value[part] if isinstance(part, int) else None
        below: list[Mapping[str, Any]] = []
        for each in found:
            named = each.get("properties", {}).get(part, each.get("additionalProperties"))
            inner = each.get("items") if isinstance(part, int) else named
            if isinstance(inner, Mapping):
                below += _plain(inner, schema, value)
        found = below
    return found


def _plain(part: Mapping[str, Any], schema: Mapping[str, Any], value: Any) -> Iterator[Mapping[str, Any]]:
    """Resolve the references and choices in a part of a schema, and yield the resulting parts.

    If ``value`` is a step, only the parts for the step's operation are yielded.
    """
    described = {key: part[key] for key in ("description",) if key in part}
    if "$ref" in part:
        yield from _plain({**schema["$defs"][part["$ref"].rsplit("/", 1)[1]], **described}, schema, value)
        return
    choices: Sequence[Mapping[str, Any]] = part.get("anyOf") or part.get("oneOf") or ()
    if not choices:
        yield part
    for choice in choices:
        for variant in _plain({**choice, **described}, schema, value):
            operation = variant.get("properties", {}).get("op", {}).get("const")
            given = value.get("op") if isinstance(value, Mapping) else None
            if operation is None or given in (None, operation, _MARK):
                yield variant


_EXPRESSIONS = frozenset({"expr", "formula", "when"})
"""Keys whose string values are expressions."""


def complete_seed(source: Source, offset: int, known: Known) -> tuple[Completion, ...]:
    """See ``service.complete``."""
    text = source.text
    cursor = json_cursor(text, offset)
    if cursor is None:
        return ()
    names = _Names(source, cursor.document, known, cursor.path)
    if cursor.kind == "value" and cursor.quoted and cursor.path[-1] in _EXPRESSIONS:
        return _in_expression(source, offset, cursor, names)
    found = _keys(cursor, names) if cursor.kind == "key" else _values(cursor, names)
    return ranked(_quoted(found, text, offset, cursor), cursor.typed, Span(cursor.begin, offset))


def _quoted(candidates: Iterator[Candidate], text: str, offset: int, cursor: JsonCursor) -> Iterator[Candidate]:
    """Yield the candidates, adapted to this place.

    They have no closing quote if one follows the cursor. After a key, ``: `` is added.
    """
    is_closed = cursor.quoted and text.startswith('"', offset)
    behind = text[offset + is_closed : offset + 20].lstrip()
    for each in candidates:
        said = each.text
        if cursor.quoted and not said.startswith('"'):
            continue
        if is_closed:
            said = said[:-1]
        elif cursor.kind == "key" and not behind.startswith(":"):
            said += ": "
        yield evolve(each, text=said, match=each.compared)


@frozen(slots=False)
class _Names:
    """The names in a seed. ``before`` is the document up to the cursor; ``whole_document`` is parsed on demand."""

    source: Source
    before: Mapping[str, Any]
    known: Known
    path: JsonPath = ()

    @cached_property
    def whole_document(self) -> Mapping[str, Any]:
        """The complete document, including the part after the cursor. If it can't be parsed, the document ``before`` is used instead."""
        root = read_json(self.source).root
        return root.value if root is not None and isinstance(root.value, dict) else self.before

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema of the seed's form."""
        newer, older = seed_schemas()
        own = older["properties"].keys() - newer["properties"].keys()
        others = newer["properties"].keys() - older["properties"].keys()
        keys = self.before.keys() if (own | others) & self.before.keys() else self.whole_document.keys()
        return older if own & keys else newer

    def steps(self, document: Mapping[str, Any]) -> dict[str, str]:
        """Return the names of the steps in ``document``, with their operations."""
        found = document.get("compute") or document.get("compute_dag")
        steps = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
        written = document.get("reduce")
        reduced = [each for each in written if isinstance(each, dict)] if isinstance(written, list) else []
        return {
            each["name"]: str(each.get("op", kind))
            for kind, entries in (("reduce", reduced), ("formula", steps))
            for each in entries
            if isinstance(each.get("name"), str)
        }

    @property
    def fields(self) -> dict[str, Extracted]:
        """The fields of an extraction: the declared fields that can be read, and those that ``resolve`` adds."""
        document = self.before if "resolve" in self.before else self.whole_document
        entries = document.get("resolve")
        made = self.extracted
        for each in entries if isinstance(entries, list) else ():
            target = each.get("as") if isinstance(each, dict) else None
            if isinstance(target, str) and target not in made:
                made[target] = Extracted(target, "text", doc=f"the resolved names of {each.get('field')}")
        return made

    @property
    def extracted(self) -> dict[str, Extracted]:
        """The declared fields that can be read."""
        document = self.before if self.before.keys() & {"extract", "extraction_fields"} else self.whole_document
        extract = document.get("extract")
        found = extract.get("fields") if isinstance(extract, dict) else document.get("extraction_fields")
        declared = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
        return {made.name: made for made in map(_extracted, declared) if made is not None}

    @property
    def meta(self) -> tuple[str, ...]:
        """The keys of a review's metadata: those that every review has, and the declared keys."""
        document = self.before if "meta" in self.before else self.whole_document
        declared = document.get("meta")
        return (*META_KEYS, *(declared if isinstance(declared, dict) else ()))

    @property
    def context(self) -> list[str]:
        """The keys of the context; empty if the context is unknown."""
        return (
            [key for key in self.known.input if isinstance(key, str)] if isinstance(self.known.input, Mapping) else []
        )

    @property
    def values(self) -> dict[str, str]:
        """The steps above the cursor that have a value, with their operations."""
        return {name: op for name, op in self._above.items() if op != "define_filter"}

    @property
    def filters(self) -> list[str]:
        """The filters above the cursor."""
        return [name for name, op in self._above.items() if op == "define_filter"]

    @property
    def _above(self) -> dict[str, str]:
        """The steps above the cursor, without the current step, because a step can't use itself."""
        above = self.steps(self.before)
        if len(self.path) > 1 and self.path[0] in ("compute", "compute_dag", "reduce"):
            step = self.before[str(self.path[0])][self.path[1]]
            own = step.get("name") if isinstance(step, dict) else None
            above.pop(own if isinstance(own, str) else "", None)
        return above


def _extracted(declared: Mapping[str, Any]) -> Extracted | None:
    name = declared.get("name")
    if not isinstance(name, str):
        return None
    values = declared.get("values")
    listed = values if isinstance(values, dict) else dict.fromkeys(_texts(values), "")
    said = declared.get("type")
    kind: FieldType = next((each for each in get_args(FieldType) if each == said), "enum" if listed else "text")
    return Extracted(
        name, kind, {str(key): str(meaning) for key, meaning in listed.items()}, str(declared.get("description", ""))
    )


def _texts(values: Any) -> list[str]:
    return [each for each in values if isinstance(each, str)] if isinstance(values, list) else []


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _keys(cursor: JsonCursor, names: _Names) -> Iterator[Candidate]:
    above = cursor.path[:-1]
    holder: Any = cursor.document
    for part in above:
        holder = holder[part]
    for schema in schemas_at(names.schema, cursor.document, above):
        required = schema.get("required", ())
        properties = schema.get("properties", {})
        for key in sorted(properties, key=lambda key: key not in required):
            if key not in holder:
                about = plain(properties[key].get("description", ""))
                yield Candidate(_json(key), "property", "required" if key in required else "", about, match=key)
    if above and above[-1] in ("where", "extraction"):
        yield from (each for each in _tests(str(above[-1]), names) if each.match not in holder)


def _tests(key: str, names: _Names) -> Iterator[Candidate]:
    """Yield the keys that a condition under ``key`` ("where" or "extraction") may have."""
    for name, declared in names.fields.items():
        said = name if key == "extraction" else f"extraction.{name}"
        yield Candidate(_json(said), "field", declared.type, plain(declared.doc), match=said)
    yield from (Candidate(_json(f"${name}"), "name", "a filter", match=f"${name}") for name in names.filters)
    if key == "where":
        of_review = (f"meta.{name}" for name in names.meta)
        yield from (Candidate(_json(said), "field", "of the review", match=said) for said in of_review)
        yield from (Candidate(_json(name), "name", op, match=name) for name, op in names.values.items())
        yield from (Candidate(_json(f"context.{key}"), "key", match=f"context.{key}") for key in names.context)


def _values(cursor: JsonCursor, names: _Names) -> Iterator[Candidate]:
    path = cursor.path
    tested = next((part for part in reversed(path[-2:]) if isinstance(part, str)), "")
    if isinstance(path[-1], str) and path[-1] in ("in", "not_in", "==", "!=") and len(path) > 1:
        tested = str(path[-2])
    if any(part in ("where", "extraction") for part in path[-4:-1]):
        yield from _tested(tested if tested not in ("in", "not_in") else str(path[-3]), names)
    operations = _operations(names, cursor) if path[-1] == "op" else {}
    for schema in schemas_at(names.schema, cursor.document, path):
        about = plain(operations.get(schema.get("const", ""), schema.get("description", "")))
        for value in (*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())):
            yield Candidate(json.dumps(value), "value", "", about, match=value if isinstance(value, str) else "")
        if schema.get("type") == "boolean":
            yield from (Candidate(word, "value", "", about) for word in ("true", "false"))
    if path[0] in ("output", "output_fields") and len(path) == 2:
        given = cursor.document[path[0]]
        steps = names.steps(names.before) or names.steps(names.whole_document)
        yield from (
            Candidate(_json(n), "name", op, match=n)
            for n, op in steps.items()
            if op != "define_filter" and n not in given
        )
    elif path[-1] == "source":
        yield from (Candidate(_json(name), "name", op, match=name) for name, op in names.values.items())
        yield from (Candidate(_json(f"context.{key}"), "key", match=f"context.{key}") for key in names.context)
    elif path[0] == "resolve" and path[-1] == "field":
        texts = (each for each in names.extracted.values() if each.type in ("text", "list"))
        yield from (Candidate(_json(each.name), "field", each.type, plain(each.doc), match=each.name) for each in texts)
    elif path[-1] == "field" or (path[0] == "reduce" and path[-2:-1] == ["from"]):
        for name, declared in names.fields.items():
            said = f"extraction.{name}"
            yield Candidate(_json(said), "field", declared.type, plain(declared.doc), match=said)
        yield from (
            Candidate(_json(f"meta.{name}"), "field", "of the review", match=f"meta.{name}") for name in names.meta
        )
        if path[0] == "reduce":
            yield Candidate('"text"', "value", "the text of the review", match="text")
    elif path[0] == "meta" and len(path) == 2:
        yield from (Candidate(_json(each), "value", "a type", match=each) for each in get_args(MetaType))


def _operations(names: _Names, cursor: JsonCursor) -> dict[str, str]:
    """Return the descriptions of the operations that a step may have."""
    steps = schemas_at(names.schema, cursor.document, cursor.path[:-1])
    consts = ((each.get("properties", {}).get("op", {}).get("const"), each.get("description", "")) for each in steps)
    return {name: about for name, about in consts if name is not None}


def _tested(key: str, names: _Names) -> Iterator[Candidate]:
    """Yield the values that a condition may compare with the operand of ``key``, which is a key of a ``where``."""
    if key.startswith("$"):
        yield from (Candidate(word, "value") for word in ("true", "false"))
    declared = names.fields.get(key.removeprefix("extraction."))
    for value, meaning in declared.values.items() if declared else ():
        yield Candidate(_json(value), "value", "", plain(meaning), match=value)
    if declared is not None and declared.type == "bool":
        yield from (Candidate(word, "value") for word in ("true", "false"))


def _in_expression(source: Source, offset: int, cursor: JsonCursor, names: _Names) -> tuple[Completion, ...]:
    """Return the completions inside a string that is an expression."""
    try:
        text = str(json.loads(f'"{cursor.typed}"'))
    except ValueError:
        return ()
    step: Any = cursor.document
    for part in cursor.path[:-1]:
        step = step[part]
    row = isinstance(step, Mapping) and step.get("op") in ("sum", "max", "min")
    scope = ExprScope(
        {**names.values, **({} if row else {"extractions": "the list of extractions"})},
        names.fields,
        names.context,
        row,
        names.meta,
    )
    found = expr_candidates(text, scope)
    if found is None and cursor.path[-1] == "when":
        compared = "0 "  # in a case with a source, a rule begins with a comparison operator
        found = expr_candidates(compared + text, scope)
        found = (found[0] - len(compared), found[1]) if found is not None and found[0] >= len(compared) else None
    if found is None:
        return ()
    begin, candidates = found
    at = StringMap(source.text, Span(cursor.begin, offset + 1)).offset(begin)
    escaped = [Candidate(_json(c.text)[1:-1], c.kind, c.detail, c.documentation, c.compared) for c in candidates]
    return ranked(escaped, text[begin:], Span(at, offset))
