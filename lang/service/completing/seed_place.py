"""Where the cursor stands in a seed's document: the path there, and whether a key or a value is under way.

The document before the cursor is closed with a mark at the cursor, and read by the reader of documents: where the mark is found says
what is under way.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from attrs import frozen

from ...documents.json_text import read_json
from ...documents.json_tree import JsonPath

__all__ = ["JsonCursor", "json_cursor", "schemas_at"]

_MARK = "knotwork_is_here"
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\[^\n])*+(?P<ended>")?|[\[\]{}]')
_BARE = re.compile(r"[\w$.\-]*\Z")
_CLOSING = {"{": "}", "[": "]"}
_DEEPEST = 60


@frozen
class JsonCursor:
    """A ``key`` or a ``value`` at ``path`` is under way; it begins at ``begin``, at its quote if ``quoted``. ``typed`` has no quote.

    ``document`` is what stands before it.
    """

    kind: Literal["key", "value"]
    path: JsonPath
    begin: int
    typed: str
    quoted: bool
    document: Mapping[str, Any]


def json_cursor(text: str, offset: int) -> JsonCursor | None:
    """Say what is under way at ``offset``; None where the document before it can't be read, or nothing may stand there."""
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
        # A fault further up says nothing of this place.
        is_good = all(each.span is not None and each.span.end < last for each in read.diagnostics)
        if read.root is not None and is_good and isinstance(read.root.value, dict):
            path = _path(read.root.value)
            if path is not None:
                typed = text[begin + 1 : offset] if quoted else text[begin:offset]
                return JsonCursor(kind, path, begin, typed, quoted, read.root.value)
    return None


_KINDS: tuple[tuple[Literal["key", "value"], str], ...] = (("value", f'"{_MARK}"'), ("key", f'"{_MARK}": null'))


def _path(document: Any) -> JsonPath | None:
    """Return the path of the mark. It stands last in everything that holds it."""
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
    """Return the parts of a JSON Schema that a value at ``path`` of ``document`` may be."""
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
    """Yield a part of a schema without references and choices; of a step, those of its operation."""
    described = {key: part[key] for key in ("description",) if key in part}
    if "$ref" in part:
        yield from _plain({**schema["$defs"][part["$ref"].rsplit("/", 1)[1]], **described}, schema, value)
        return
    choices: Sequence[Mapping[str, Any]] = part.get("anyOf") or part.get("oneOf") or ()
    if not choices:
        yield part
    for choice in choices:
        for plain in _plain({**choice, **described}, schema, value):
            operation = plain.get("properties", {}).get("op", {}).get("const")
            given = value.get("op") if isinstance(value, Mapping) else None
            if operation is None or given in (None, operation, _MARK):
                yield plain
