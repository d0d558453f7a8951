"""Digests of values. What is equal as JSON has one digest, whatever the order of an object's keys and whatever led to it."""

from collections.abc import Sequence
from typing import Any

import orjson
from blake3 import blake3

__all__ = ["canonical", "canonical_list", "digest", "digest_of"]


def digest(*parts: bytes) -> bytes:
    """Return the 32 bytes of blake3 over the parts, joined."""
    return blake3(b"".join(parts)).digest()


def canonical(written: bytes) -> bytes:
    """Return the JSON text with the keys of its objects sorted. Numbers stay as written: 1 is not 1.0."""
    if b"{" not in written:
        return written
    return orjson.dumps(orjson.loads(written), option=orjson.OPT_SORT_KEYS)


def canonical_list(elements: Sequence[Any]) -> bytes:
    """Return the canonical text of a list. An element is JSON text, or a tuple of canonical texts, which stands for a list."""
    if elements and isinstance(elements[0], tuple):
        return b"[%b]" % b",".join([b"[%b]" % b",".join(texts) for texts in elements])
    return canonical(b"[%b]" % b",".join(elements))


def digest_of(value: Any) -> bytes:
    """Return what stands for a value inside the digest of what holds it.

    A value is JSON text (bytes), a number, a tuple of canonical JSON texts, or has a ``digest`` of its own. The first byte
    keeps the kinds apart.
    """
    if isinstance(value, bytes):
        return b"j" + canonical(value)
    if isinstance(value, int | float):
        return b"n" + orjson.dumps(value)
    if isinstance(value, tuple):
        return b"t[" + b",".join(value) + b"]"
    own: bytes = value.digest
    return b"d" + own
