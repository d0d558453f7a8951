"""What the generator knows of a value before it is there: its possible types, and how large a number can be.

Generated code checks only what is not known. Bounds are powers of two: a value of kind ``int`` with 53 bits is at most
2**53 away from 0. That is what lets arithmetic stand in the code unchecked: a product of such numbers can't pass the limits.
"""

import math
from typing import Any

from attrs import evolve, field, frozen

__all__ = [
    "ANYTHING", "BOOLEAN", "CHECKED", "FLOAT_BITS", "FOREIGN", "MOST_BITS", "NULL", "OTHER", "RESULT_BITS", "TEXT",
    "Code", "Fallback", "Kind", "constant_kind", "is_number", "is_number_or_null", "is_result", "is_text_or_null",
    "number", "number_test", "uncommon_test", "union", "whole",
]  # fmt: skip

INT_BITS, FLOAT_BITS = 53, 100
"""How large a number may be that a guard lets in. A larger one is the interpreter's."""
MOST_BITS = 1000
"""Numbers that may be larger are checked again before they are used; below the 1,024 bits that the interpreter allows."""
RESULT_BITS = 62
"""Of an integer that a guard lets out."""
_SMALL, _COMMON = 2**30 - 1, 1e15
_RESULT_LIMIT = 2**RESULT_BITS
_INT_LIMIT, _FLOAT_LIMIT = 2**INT_BITS, 2.0**FLOAT_BITS


class Fallback(Exception):
    """A guard of generated code failed: the interpreter decides."""


@frozen
class Kind:
    """The types a value may have ("null", "bool", "int", "float", "str", "other", "foreign"), and the bits of its ints and floats.

    ``float_bits`` infinite: it may also be infinite or not a number.
    """

    types: frozenset[str]
    int_bits: float = math.inf
    float_bits: float = math.inf

    def within(self, *types: str) -> bool:
        """Say whether the value has one of ``types``, for certain."""
        return self.types <= set(types)

    def may(self, *types: str) -> bool:
        """Say whether the value may have one of ``types``."""
        return not self.types.isdisjoint(types)

    @property
    def bits(self) -> float:
        """The larger of the bounds that matter."""
        return max(self.int_bits if "int" in self.types else 0, self.float_bits if "float" in self.types else 0)

    @property
    def numeric(self) -> bool:
        """Whether the value is a number for certain, of a size that arithmetic can take."""
        return self.within("int", "float") and self.bits <= MOST_BITS

    def without(self, *types: str) -> "Kind":
        """Return the kind where the value is known to have none of ``types``."""
        return evolve(self, types=self.types.difference(types))


def _kind(*types: str, int_bits: float = math.inf, float_bits: float = math.inf) -> Kind:
    return Kind(frozenset(types), int_bits, float_bits)


NULL = _kind("null")
BOOLEAN = _kind("bool")
TEXT = _kind("str")
OTHER = _kind("other")
ANYTHING = _kind("null", "bool", "int", "float", "str", "other")
FOREIGN = _kind("null", "bool", "int", "float", "str", "other", "foreign")
"""Anything, even what is no value of JSON."""
CHECKED = _kind("int", "float", int_bits=INT_BITS, float_bits=FLOAT_BITS)
"""What a guard for numbers lets through."""


def whole(bits: float) -> Kind:
    """Return the kind of an integer of at most so many bits."""
    return _kind("int", int_bits=bits)


def number(bits: float, *, whole: bool = False, fraction: bool = False) -> Kind:
    """Return the kind of a number: ``whole`` if it may be an integer, ``fraction`` if it may be a float."""
    types = [name for name, may in (("int", whole), ("float", fraction)) if may]
    return _kind(*types, int_bits=bits, float_bits=bits)


def union(*kinds: Kind) -> Kind:
    """Return the kind of a value that is of one of ``kinds``."""
    ints = [kind.int_bits for kind in kinds if "int" in kind.types]
    floats = [kind.float_bits for kind in kinds if "float" in kind.types]
    types = frozenset[str]().union(*(kind.types for kind in kinds))
    return Kind(types, max(ints, default=math.inf), max(floats, default=math.inf))


def constant_kind(value: Any) -> Kind:
    """Return the kind of a value that is known."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        return whole(value.bit_length())
    if isinstance(value, float):
        if not math.isfinite(value):
            return _kind("float")
        return _kind("float", float_bits=max(0.0, math.log2(abs(value)) + 1) if value else 0.0)
    return TEXT if isinstance(value, str) else _kind("other")


@frozen
class Code:
    """The text of a Python expression, in parentheses where it has to be, and what is known of its value.

    ``simple``: it is a local name or a constant and may be written twice. ``value``: what it is, in a tuple, where known.
    ``total``: it can't fail, in the interpreter nor in the code, whatever the data.
    """

    text: str
    kind: Kind
    simple: bool = False
    total: bool = False
    value: tuple[Any, ...] = field(default=())


def number_test(text: str, again: str = "") -> str:
    """Return a test that holds for a number of a common size. A float that is not a number fails it.

    ``again``: what to write for the value after ``text`` was evaluated.
    """
    first, text = text, again or text
    return (
        f"({first}.__class__ is int and -{_SMALL} <= {text} <= {_SMALL} or "
        f"{text}.__class__ is float and -{_COMMON!r} <= {text} <= {_COMMON!r})"
    )


def uncommon_test(text: str, *, whole: bool) -> str:
    """Return a test that holds for all but an integer, or else a float, of a common size; quicker than ``number_test``."""
    if whole:
        return f"{text}.__class__ is not int or {text} > {_SMALL} or {text} < -{_SMALL}"
    return f"{text}.__class__ is not float or not -{_COMMON!r} <= {text} <= {_COMMON!r}"


def is_number(value: Any) -> bool:
    """Guard: a number whose size is within the bounds of ``CHECKED``."""
    if value.__class__ is int and -_INT_LIMIT <= value <= _INT_LIMIT:
        return True
    if value.__class__ is float and -_FLOAT_LIMIT <= value <= _FLOAT_LIMIT:
        return True
    raise Fallback


def is_result(value: Any) -> Any:
    """Guard: a number of a common size that was computed, or null."""
    if value is None or (value.__class__ is int and -_RESULT_LIMIT <= value <= _RESULT_LIMIT):
        return value
    return value if is_number(value) else None


def is_number_or_null(value: Any) -> bool:
    """Guard: whether it is such a number; not if it is null."""
    return value is not None and is_number(value)


def is_text_or_null(value: Any) -> bool:
    """Guard: whether it is a string; not if it is null."""
    if value is None:
        return False
    if value.__class__ is str:
        return True
    raise Fallback
