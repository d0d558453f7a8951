"""Names both ways: what a cell binds is a Python variable, and a Python variable that a cell names is a value of the session.

Values are copied: who changes a list in Python changes nothing in the session until a cell names it again. What was found with
evidence keeps it as long as Python has not changed it.
"""

import builtins
import keyword
import math
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

from attrs import define, field

from ....lang.service import Language
from ....lang.service.naming.asking import occurrences_in
from ...context import Value
from ..repl.reading import Piece, expression_of
from ..repl.values import Values

__all__ = ["NotShared", "Shared", "as_json", "mentioned"]

_SCALARS = (str, int, bool, type(None))
_OF_LANGUAGES = frozenset({"input", "item", "index", "error"})
_DEEPEST = 200


class NotShared(Exception):
    """A Python value that JSON can't say; the message says what it is."""


def as_json(value: Any, depth: int = 0) -> Any:
    """Return a copy of ``value`` as JSON's values; tuples and numpy's arrays and numbers become lists and numbers. Raises ``NotShared``."""
    if type(value) in _SCALARS:
        return value
    if depth > _DEEPEST:
        raise NotShared("nested too deeply")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotShared(f"a number that JSON has not ({value})")
        return float(value)
    if isinstance(value, list | tuple):
        return [as_json(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        if not all(type(key) is str for key in value):
            raise NotShared("an object whose keys are not all texts")
        return {key: as_json(item, depth + 1) for key, item in value.items()}
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return as_json(value.tolist(), depth + 1)
    if isinstance(value, str | int):  # a subclass, such as an enum's member
        return str(value) if isinstance(value, str) else int(value)
    raise NotShared(f"of the type {type(value).__name__}")


def mentioned(piece: Piece) -> list[str]:
    """Return the names of values that a piece takes from outside, each once. The languages' own parsers say which."""
    language: Language
    match piece.language:
        case "dot" | "remark":
            return []
        case "gasl" | "lwt" | "expr" as language:
            text = expression_of(piece.text)[1] if language == "expr" else piece.text
    found = [each for each in occurrences_in(language, text) if each.kind in ("variable", "step") and not each.scope]
    own = {each.name for each in found if each.defines and each.kind == "step"}
    return list(dict.fromkeys(each.name for each in found if not each.defines and each.name not in own))


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(item, other[key]) for key, item in one.items())
    return bool(one == other)


@define
class Shared:
    """Keeps the notebook's names and a session's values alike. ``names`` are the notebook's."""

    names: MutableMapping[str, Any]
    _given: dict[str, tuple[Value, Any]] = field(factory=dict)
    """What Python has of the session: the session's value, and Python's copy of it."""

    def take(self, wanted: Iterable[str], values: Values) -> list[str]:
        """Bind the Python variables among ``wanted`` in the session; return remarks on those that can't be."""
        remarks = []
        for name in wanted:
            if name not in self.names or name.startswith("_") or name in _OF_LANGUAGES:
                continue
            try:
                value = as_json(self.names[name])
            except NotShared as error:
                if values.context.value(name) is None:
                    remarks.append(f"the notebook's {name} is {error}: texts, numbers, lists and objects are shared")
                continue
            known = values.context.value(name)
            if known is None or not _same(known.value, value):
                values.bind(name, value)
            if (bound := values.context.value(name)) is not None:
                self._given[name] = (bound, self.names[name])
        return remarks

    def give(self, values: Values) -> list[str]:
        """Make all that the session has bound since Python variables, and take away what it has no more; return remarks."""
        remarks = []
        for name in values.names():
            value = values.context.value(name)
            given = self._given.get(name)
            if value is None or (given is not None and given[0] is value):
                continue
            fault = self._fault(name, given)
            made = as_json(value.value) if not fault else None
            self._given[name] = (value, made)
            if fault:
                remarks.append(f"{fault}; NAME = %kw value {name} gives its value")
            else:
                self.names[name] = made
        for name in [each for each in self._given if values.context.value(each) is None]:
            if self.names.get(name) is self._given.pop(name)[1]:
                self.names.pop(name, None)
        return remarks

    def forget(self) -> None:
        """Begin with another session; the notebook keeps its variables."""
        self._given.clear()

    def _fault(self, name: str, given: tuple[Value, Any] | None) -> str:
        """Say why a value can't be a Python variable, or ""."""
        if not name.isidentifier() or keyword.iskeyword(name):
            return f"{name} is no name of Python"
        if name.startswith("_") or hasattr(builtins, name):
            return f"{name} is a name of Python's own"
        old = self.names.get(name)
        if name not in self.names or (given is not None and given[1] is old):
            return ""
        try:
            as_json(old)
        except NotShared:
            return f"{name} is something else in the notebook, which is kept"
        return ""
