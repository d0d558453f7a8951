"""JSON Schema against answers, bounded: neither a hostile schema nor a hostile answer holds the event loop.

What ``jsonschema`` does by Python's ``re`` or by comparing all with all is replaced; the rest is given two seconds.
"""

import time
from collections.abc import Callable, Iterator, Mapping
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

from ...lang.evaluate.text_checks import too_large_in
from . import BadRequest

__all__ = ["compiled", "first_fault"]

_SECONDS = 2.0
"""Processor time for one answer. Some 40,000 steps on a slow machine; answers take a few hundred."""
_PATTERN_SECONDS = 0.2
_FAULTS = 100
"""Faults among which the best to tell is sought."""

_DEADLINE: ContextVar[float] = ContextVar("knotwork_schema_deadline")

Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError]]


class _TooLong(Exception):
    """The time is up."""


def _matches(pattern: str, text: str) -> bool:
    import regex  # few schemas have patterns

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
    if wanted and isinstance(instance, list) and len({_written(item) for item in instance}) < len(instance):
        yield ValidationError(f"the {len(instance)} elements are not all different")


def _written(value: Any) -> bytes:
    """Return what is equal for equal JSON values: 1 and 1.0 are, 1 and true are not."""
    return orjson.dumps(_numbers(value), option=orjson.OPT_SORT_KEYS)


def _numbers(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return [f"{value:x}"]  # orjson writes no larger ones
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    return value


def _timed(keyword: Keyword) -> Keyword:
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
_extend: Any = extend  # it has no types
_Bounded = _extend(
    Draft202012Validator,
    {name: _timed(keyword) for name, keyword in {**Draft202012Validator.VALIDATORS, **_OWN}.items()},
)


@lru_cache(maxsize=64)
def compiled(written: bytes) -> Any:
    """Return the validator of a schema in JSON; raise ``BadRequest`` when that is no JSON Schema."""
    schema = orjson.loads(written)
    if large := too_large_in(schema):
        raise BadRequest(f"the schema's pattern {large[:60]!r} is too large")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise BadRequest(f"the schema is no valid JSON Schema: {error.message[:200]}") from None
    except RecursionError:
        raise BadRequest("the schema is nested too deeply") from None
    except OverflowError as error:  # what Python's re makes of a{99999999999}
        raise BadRequest(f"the schema is no valid JSON Schema: {error}") from None
    if b'"patternProperties"' in written and b'"unevaluatedProperties"' in written:
        raise BadRequest("a schema may have patternProperties or unevaluatedProperties, not both")
    # An empty registry: a `$ref` in an untrusted schema must not fetch anything.
    return _Bounded(schema, registry=Registry())


def first_fault(validator: Any, value: Any) -> str:
    """Say how ``value`` does not fit, "" when it does; raise ``BadRequest`` where the schema is at fault."""
    token = _DEADLINE.set(time.thread_time() + _SECONDS)
    try:
        fault = best_match(islice(validator.iter_errors(value), _FAULTS))
    except Unresolvable as unresolvable:
        raise BadRequest(f"the schema refers to what it does not contain: {unresolvable}") from None
    except RecursionError:
        return "it is nested too deeply for the schema"
    except _TooLong:
        return "checking it against the schema takes too long"
    finally:
        _DEADLINE.reset(token)
    return "" if fault is None else f"at {fault.json_path}: {fault.message[:300]}"
