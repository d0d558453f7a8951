"""Reads JSON strictly and validates it against JSON Schemas. Limits protect against hostile schemas and answers."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache, wraps
from itertools import islice
from typing import Any

import orjson
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from ...lang.diagnostic import json_words
from ...lang.evaluate.text_checks import too_large_in
from . import BadRequest

# JSON Schema validation with bounds, so that neither a hostile schema nor a hostile answer blocks the event loop. The keywords
# for which ``jsonschema`` uses Python's ``re`` or compares all items pairwise are replaced; the others may take two seconds.

_SECONDS = 2.0
"""Maximum CPU time for one answer: about 40,000 checked keywords on a slow machine. Most answers need a few hundred."""
_PATTERN_SECONDS = 0.2
_MOST_FAULTS = 100
"""Maximum number of faults that are collected; one of them is chosen and reported."""

_NOT_COUNTED = re.compile(rb'"\s+:|\d{19}')
"""Matches a key that ``_count_keys`` would miss, and an integer that orjson may read as a fraction."""

_DEADLINE: ContextVar[float] = ContextVar("knotwork_schema_deadline")

Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError]]


class _TooLong(Exception):
    """Raised if a time limit is exceeded."""


def _matches(pattern: str, text: str) -> bool:
    import regex  # imported here, because few schemas have patterns

    try:
        return regex.search(pattern, text, timeout=_PATTERN_SECONDS) is not None
    except TimeoutError:
        raise _TooLong from None
    except regex.error as error:
        raise BadRequest(f"the schema's pattern {pattern[:60]!r} can't be read: {error}") from None


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield ValidationError(f"{instance[:200]!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, inner in patterns.items():
            for key, value in instance.items():
                if _matches(pattern, key):
                    yield from validator.descend(value, inner, path=key, schema_path=pattern)


def _additional(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for key, value in instance.items():
        if key in known or any(_matches(pattern, key) for pattern in patterns):
            continue
        if isinstance(allowed, dict):
            yield from validator.descend(value, allowed, path=key)
        elif not allowed:
            yield ValidationError(f"additional properties are not allowed ({key[:60]!r} was unexpected)")


def _unique(validator: Any, wanted: bool, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if wanted and isinstance(instance, list):
        # Equal JSON values are written as equal bytes: 1 equals 1.0, but not true.
        written = {orjson.dumps(_numbers(item), option=orjson.OPT_SORT_KEYS) for item in instance}
        if len(written) < len(instance):
            yield ValidationError(f"the {len(instance)} elements are not all different")


def _numbers(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return [f"{value:x}"]  # orjson can't write integers of this size
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    return value


def _with_deadline(keyword: Keyword) -> Keyword:
    @wraps(keyword)
    def run(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if time.thread_time() > _DEADLINE.get():
            raise _TooLong
        yield from keyword(validator, value, instance, schema) or ()

    return run


_OWN: Mapping[str, Keyword] = {
    "pattern": _pattern, "patternProperties": _pattern_properties, "additionalProperties": _additional,
    "uniqueItems": _unique,
}  # fmt: skip
_extend: Any = extend  # the function is untyped
_Bounded = _extend(
    Draft202012Validator,
    {name: _with_deadline(keyword) for name, keyword in {**Draft202012Validator.VALIDATORS, **_OWN}.items()},
)


@lru_cache(maxsize=64)
def compiled(written: bytes) -> Any:
    """Return the validator of a schema written as JSON; raise ``BadRequest`` if ``written`` is not a valid JSON Schema."""
    schema = orjson.loads(written)
    if large := too_large_in(schema):
        raise BadRequest(f"the schema's pattern {large[:60]!r} is too large")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise BadRequest(f"the schema is not a valid JSON Schema: {error.message[:200]}") from None
    except RecursionError:
        raise BadRequest("the schema is nested too deeply") from None
    except OverflowError as error:  # raised by Python's re for a{99999999999}
        raise BadRequest(f"the schema is not a valid JSON Schema: {error}") from None
    if b'"patternProperties"' in written and b'"unevaluatedProperties"' in written:
        raise BadRequest("a schema may have patternProperties or unevaluatedProperties, not both")
    # An empty registry: a `$ref` in an untrusted schema must not fetch anything.
    return _Bounded(schema, registry=Registry())


def first_fault(validator: Any, value: Any) -> str:
    """Describe the main fault of ``value``; "" if it is valid. Raise ``BadRequest`` if the schema has an unknown reference."""
    token = _DEADLINE.set(time.thread_time() + _SECONDS)
    try:
        fault = best_match(islice(validator.iter_errors(value), _MOST_FAULTS))
    except Unresolvable as unresolvable:
        raise BadRequest(f"the schema has an unknown reference: {unresolvable}") from None
    except RecursionError:
        return "it is nested too deeply for the schema"
    except _TooLong:
        return "checking it against the schema takes too long"
    finally:
        _DEADLINE.reset(token)
    return "" if fault is None else f"at {fault.json_path}: {fault.message[:300]}"


_MAX_DEPTH = 200


def read_json(text: str, *, halves: bool = False) -> Any:
    """Return the JSON value of ``text``; raise ValueError if ``text`` is not exactly one JSON value.

    These are refused too: duplicate keys, NaN and infinity, lone surrogates (unless ``halves``), more than 200 nested levels.
    """
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
        _check_depth(value)
        text.encode()
        if not halves and "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ValueError(f"{json_words(error)} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("a lone surrogate is not valid text") from None
    return value


def read_json_bytes(content: bytes) -> Any:
    """Return the JSON value of UTF-8 ``content``; raise ValueError as ``read_json`` does.

    Valid content takes a fraction of the time. orjson does not report duplicate keys. But each key is followed by a colon: if
    the value has as many keys as the content has colons after quotation marks, there are no duplicates. Otherwise,
    ``read_json`` decides.
    """
    try:
        value = orjson.loads(content)
        if content.count(b'":') == _count_keys(value) and _NOT_COUNTED.search(content) is None:
            return value
    except ValueError:
        pass
    return read_json(content.decode())


def _count_keys(value: Any, depth: int = 0) -> int:
    """Return the total number of keys of all objects in ``value``. Raises ValueError if ``value`` is nested too deeply."""
    if depth >= _MAX_DEPTH:
        raise ValueError(f"nested deeper than {_MAX_DEPTH}")
    found, inside = 0, value
    if isinstance(value, dict):
        found, inside = len(value), value.values()
    elif not isinstance(value, list):
        return 0
    for inner in inside:
        if isinstance(inner, dict | list):
            found += _count_keys(inner, depth + 1)
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key[:60]!r} occurs twice in an object")
            seen.add(key)
    return made


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _check_depth(value: Any) -> None:
    level: list[Any] = [value]
    for _ in range(_MAX_DEPTH):
        containers = [
            each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)
        ]
        level = [inner for container in containers for inner in container]
        if not level:
            return
    raise ValueError(f"nested deeper than {_MAX_DEPTH}")


def validator(schema: Mapping[str, Any]) -> Any:
    """Return the validator of ``schema``; raise ``BadRequest`` if ``schema`` is not a valid JSON Schema."""
    try:
        written = canonical(schema)
    except TypeError as error:
        raise BadRequest(f"the schema is not JSON: {error}") from None
    return compiled(written)


def canonical(value: Any) -> bytes:
    """Return ``value`` as JSON with sorted keys; all mappings and sequences are accepted. Raises TypeError if not JSON."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=plain)


def plain(value: Any) -> Any:
    """Convert a mapping to a dict and a sequence to a list, for ``orjson``."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(type(value).__name__)
