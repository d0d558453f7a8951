"""Parses text checks, such as ``words:10..40`` or ``regex:PATTERN``. A run applies these checks to answers.

Checks are untrusted. Therefore patterns use RE2, and the size of a compiled pattern is limited. The time of a search then depends only on
the text.
"""

import json
import re
from collections.abc import Mapping
from math import prod
from typing import Any

from attrs import field, frozen

from ..diagnostic import nearest
from ..errors import KnotworkError
from ..unicode_forms import canonical

# Size limits for untrusted patterns: RE2 patterns, and the patterns in a JSON Schema, which Python's engines compile.

_MEMORY = 8 << 20
_LARGEST = 20_000
"""Maximum number of instructions in a compiled pattern."""
_LARGEST_SCHEMA = 50_000
"""Maximum number of instructions in all compiled patterns of a schema together."""
_REPEATED = re.compile(r"\{([0-9]{1,9})")


class PatternError(KnotworkError, ValueError):
    """The text is not a valid RE2 pattern, or the pattern is too large (``is_large``)."""

    def __init__(self, message: str, is_large: bool) -> None:
        super().__init__(message)
        self.is_large = is_large


def compiled(text: str) -> Any:
    """Return the pattern ``text``, compiled for UTF-8 and without captures. Raises ``PatternError``."""
    import re2  # rarely needed

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    options.never_capture = True
    try:
        pattern: Any = re2.compile(text, options)
    except (re2.error, UnicodeEncodeError) as error:
        why = error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else "not text"
        raise PatternError(f"{text[:80]!r} is not a pattern: {why}", "too large" in why) from None
    if pattern.programsize > _LARGEST:
        raise PatternError(f"the pattern {text[:80]!r} is too large", True)
    return pattern


def too_large_in(schema: Any) -> str:
    """Return the first pattern of a schema with which the sum of the patterns' sizes exceeds the limit; "" if there is none.

    The limit is needed because engines compile ``x{n}`` to n copies of ``x``; a timeout for searches does not prevent this.
    """
    size, waiting = 0, [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            inner = value.get("patternProperties")
            for text in (value.get("pattern"), *(inner if isinstance(inner, dict) else ())):
                if isinstance(text, str):
                    size += _size(text)
                    if size > _LARGEST_SCHEMA:
                        return text
        if isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value
    return ""


def _size(text: str) -> int:
    """Return the approximate size of a schema's pattern."""
    try:
        return int(compiled(text).programsize)
    except PatternError:  # a schema may use look-around, which RE2 lacks: return the maximum size
        return len(text) * prod(max(1, int(count)) for count in _REPEATED.findall(text))


FORMS: Mapping[str, str] = {
    "regex": "regex:PATTERN",
    "not-regex": "not-regex:PATTERN",
    "contains": "contains:TEXT",
    "words": "words:MIN..MAX",
    "length": "length:MIN..MAX",
    "lines": "lines:MIN..MAX",
    "paragraphs": "paragraphs:MIN..MAX",
    "json": "json",
    "schema": "schema:{...}",
    "expr": "expr:EXPRESSION",
}
"""Maps each kind of check to its notation."""

MOST = 20
"""Maximum number of checks for one answer."""
_LONGEST = 10_000
"""Maximum number of characters of a check."""
_SHOWN = 80
"""Maximum number of characters of a suggestion in a hint."""
_AS_IT_IS = ("regex", "not-regex", "contains")
"""The kinds of checks in which white space is significant."""
_RANGE = re.compile(r"\s*(?P<low>[0-9]{1,9})?\s*(?P<dots>\.\.)?\s*(?P<high>[0-9]{1,9})?\s*")
_OTHERWISE = re.compile(r"\s*([0-9]{1,9})\s*(?:[-,:.\u2013\u2014\u2026]|to|\.\.\.)\s*([0-9]{1,9})\s*")
_SMALLER = "make the repeated parts of the pattern smaller, or lower the number of repetitions"
_ALSO_CALLED = {
    **dict.fromkeys(("re", "match", "matches", "pattern"), "regex"),
    **dict.fromkeys(("not", "notregex", "no-regex", "not-match", "not_regex"), "not-regex"),
    **dict.fromkeys(("has", "include", "includes", "text"), "contains"),
    **dict.fromkeys(("chars", "characters", "len", "size"), "length"),
    **dict.fromkeys(("json-schema", "json_schema", "jsonschema"), "schema"),
    **dict.fromkeys(("expression", "eval", "assert"), "expr"),
}


class CheckError(KnotworkError, ValueError):
    """The text is not a valid check. ``hint`` says what to write; ``meant`` is the check that was clearly meant, or ""."""

    def __init__(self, message: str, hint: str = "", meant: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.meant = meant


@frozen
class Check:
    """A parsed check. ``kind`` is a key of ``FORMS``; ``written`` is the complete text of the check.

    ``text`` is the pattern, or the text that an answer must contain. ``low`` and ``high`` are the inclusive bounds of a range;
    None means unbounded. ``pattern`` is the compiled pattern, for UTF-8 and composed text (NFC). ``schema`` is the JSON Schema,
    ``expression`` the parsed expression.
    """

    kind: str
    written: str
    text: str = ""
    low: int | None = None
    high: int | None = None
    pattern: Any = field(default=None, eq=False, repr=False)
    schema: Mapping[str, Any] = field(factory=dict, repr=False)
    expression: Any = field(default=None, eq=False, repr=False)


def read_check(written: str) -> Check:
    """Parse a check. Raises ``CheckError``."""
    if not isinstance(written, str):
        raise CheckError(f"a check must be a string, not {type(written).__name__}", _forms())
    if len(written) > _LONGEST:
        raise CheckError(f"a check of {len(written):,} characters is too long", f"the maximum is {_LONGEST:,}")
    kind, colon, rest = written.partition(":")
    kind = kind.strip()
    if kind not in FORMS:
        raise CheckError(
            f"{written.strip()[:60]!r} is not a check", *_suggested_check(kind.casefold(), rest, bool(colon))
        )
    if kind == "json":
        if rest.strip():
            raise CheckError("json takes no value", "write json; to check the structure, write schema:{...}")
        return Check(kind, written)
    if not rest.strip():
        raise CheckError(f"{kind} needs a value", f"write {FORMS[kind]}")
    if kind in ("regex", "not-regex"):
        return Check(kind, written, rest, pattern=_pattern(canonical(rest)))
    if kind == "contains":
        return Check(kind, written, rest)
    if kind == "schema":
        return Check(kind, written, rest, schema=read_schema(rest))
    if kind == "expr":
        return Check(kind, written, rest.strip(), expression=_expression(rest.strip()))
    low, high = _bounds(kind, rest)
    return Check(kind, written, rest.strip(), low, high)


def _forms() -> str:
    return f"the forms are {', '.join(FORMS.values())}"


def _suggested_check(kind: str, rest: str, colon: bool) -> tuple[str, str]:
    """Return the hint for an unknown kind of check, and the check that was meant ("" if this is unclear or can't be parsed)."""
    like = _ALSO_CALLED.get(kind) or nearest(kind, FORMS)
    if like is None:
        return _forms(), ""
    if like != "json" and not colon:
        return f"did you mean {FORMS[like]}? {_forms()}", ""
    meant = like if like == "json" else f"{like}:{rest if like in _AS_IT_IS else rest.strip()}"
    try:
        read_check(meant)
    except CheckError:
        return f"did you mean {FORMS[like]}? {_forms()}", ""
    return f"did you mean {meant if len(meant) <= _SHOWN else FORMS[like]}? {_forms()}", meant


def _bounds(kind: str, text: str) -> tuple[int | None, int | None]:
    found = _RANGE.fullmatch(text)
    low, high = (found["low"], found["high"]) if found else (None, None)
    if found is None or (low is None and high is None) or (not found["dots"] and low and high):
        other = _OTHERWISE.fullmatch(text)
        meant = f"{kind}:{other[1]}..{other[2]}" if other and int(other[1]) <= int(other[2]) else ""
        hint = f"write {meant or f'{kind}:10..40, 10.., ..40 or 40'}"
        raise CheckError(f"{kind} takes a range, not {text.strip()[:40]!r}", hint, meant)
    least = int(low) if low else None
    most = int(high) if high else None if found["dots"] else least
    if least is not None and most is not None and least > most:
        meant = f"{kind}:{most}..{least}"
        raise CheckError(f"{kind} has a minimum of {least} above its maximum of {most}", f"write {meant}", meant)
    return least, most


def _expression(text: str) -> Any:
    from ..parse.expr import parse_expr

    read = parse_expr(text)
    fault = next((each for each in read.diagnostics if each.severity == "error"), None)
    if read.expr is None or fault is not None:
        message = fault.message if fault is not None else "it can't be read"
        hint = fault.hints[0] if fault is not None and fault.hints else "such as expr:len(answer['items']) > 2"
        raise CheckError(f"the expression {text[:80]!r} has an error: {message}", hint)
    return read.expr


def _pattern(text: str) -> Any:
    try:
        return compiled(text)
    except PatternError as error:
        hint = _SMALLER if error.is_large else "patterns use RE2 syntax, without look-around or back-references"
        raise CheckError(str(error), hint) from None


def read_schema(text: str) -> dict[str, Any]:
    """Return a JSON Schema written as JSON. Raises ``CheckError`` if it is invalid or refers to what it does not contain."""
    example = 'for example schema:{"type": "object", "required": ["name"]}'
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise CheckError(f"the schema can't be read as JSON: {why}", example) from None
    if not isinstance(schema, dict):
        raise CheckError("the JSON Schema must be an object", example)
    if large := too_large_in(schema):
        raise CheckError(f"the pattern {large[:80]!r} in the schema is too large", _SMALLER)
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise CheckError(f"the schema is not a valid JSON Schema: {error.message[:200]}", example) from None
    except RecursionError:
        raise CheckError("the schema is nested too deeply") from None
    except OverflowError as error:  # raised by Python's re for a{99999999999}
        raise CheckError(f"the schema is not a valid JSON Schema: {error}", _SMALLER) from None
    if lost := _lost_reference(schema):
        raise CheckError(
            f"the schema refers to {lost[:80]!r}, which it does not contain",
            "define it under $defs; external schemas are not downloaded",
        )
    return schema


def _lost_reference(schema: Mapping[str, Any]) -> str:
    """Return the first reference in the schema that is external or can't be resolved, or "".

    With such a reference, every answer is invalid.
    """
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    root = DRAFT202012.create_resource(schema)
    waiting = [(root, Registry().resolver_with_root(root))]
    while waiting:
        resource, resolver = waiting.pop()
        contents = resource.contents if isinstance(resource.contents, Mapping) else {}
        for reference in filter(None, map(contents.get, ("$ref", "$dynamicRef"))):
            try:
                resolver.lookup(reference)
            except (Unresolvable, ValueError):  # ValueError: the reference is not a valid address
                return str(reference)
        waiting += [(inner, resolver.in_subresource(inner)) for inner in resource.subresources()]
    return ""
