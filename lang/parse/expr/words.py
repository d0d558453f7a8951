"""The words that are no names, and the functions and methods of other languages that expressions have by another name."""

from collections.abc import Mapping

from ...functions import FUNCTIONS

__all__ = [
    "CHANGING", "CONSTANTS", "LIBRARIES", "MEASURING", "NAMESPACES", "NO_NUMBERS", "REBUILT", "RENAMED_FUNCTIONS",
    "RENAMED_METHODS", "RESERVED", "foreign_function",
]  # fmt: skip

NAMESPACES = frozenset({"extraction", "meta", "context"})
"""What may stand before a dot and a name."""

CONSTANTS: Mapping[str, bool | None] = {
    "null": None, "None": None, "true": True, "True": True, "false": False, "False": False,
}  # fmt: skip
"""The spellings of null, true and false that are in the language."""

NO_NUMBERS = frozenset({"nan", "inf", "infinity"})
"""In lower case, what other languages write for what is no finite number."""

RESERVED = NO_NUMBERS | {
    "and", "or", "not", "in", "is", "if", "else", "for", "null", "none", "true", "false", "nil", "undefined", "lambda",
}  # fmt: skip
"""In lower case, what is no name in any spelling: the language's own words and what others have for null."""

LIBRARIES = frozenset({"math", "Math", "np", "numpy", "statistics"})
"""Where other languages keep the functions that expressions have without a prefix."""

RENAMED_FUNCTIONS: Mapping[str, str] = {
    "ceiling": "ceil", "clip": "clamp", "fabs": "abs", "fsum": "sum", "length": "len", "maximum": "max", "minimum": "min",
    "rint": "round", "size": "len", "to_float": "float", "to_int": "int", "to_string": "str", "tostring": "str",
}  # fmt: skip
"""In lower case, functions of other languages that are called otherwise here."""

REBUILT = frozenset({"pow", "power", "if", "iif", "where", "coalesce", "ifnull", "nvl", "isnull", "isnone", "is_null"})
"""In lower case, functions of other languages that are written with signs or ``if`` here."""

RENAMED_METHODS: Mapping[str, str] = {
    "casefold": "lower", "endsWith": "endswith", "lowercase": "lower", "startsWith": "startswith", "toLowerCase": "lower",
    "toUpperCase": "upper", "trim": "strip", "uppercase": "upper",
}  # fmt: skip
"""Methods of other languages that are called otherwise here."""

CHANGING = frozenset(
    {"append", "add", "clear", "discard", "extend", "insert", "pop", "popitem", "push", "remove", "reverse", "setdefault",
     "sort", "update"}
)  # fmt: skip
"""Methods that would change a value."""

MEASURING = frozenset({"length", "size", "len", "includes", "contains", "has"})
"""Methods that are written as a function or with ``in`` here."""


def foreign_function(name: str) -> bool:
    """Say whether ``name`` is a function of another language whose meaning here is known."""
    if name in FUNCTIONS:
        return False
    folded = name.lower()
    return folded in FUNCTIONS or folded in RENAMED_FUNCTIONS or folded in REBUILT
