"""Shares names in both directions: a cell's values become Python variables, and Python variables used in a cell become session values.

Values are copied: changing a list in Python does not affect the session until a cell uses the list again. A value with evidence
keeps its evidence until Python changes the value.
"""

import builtins
import keyword
import math
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any, Final, Literal

from attrs import define, field, frozen

from ...api.session_data import Value, Values

# Copies Python values to JSON values, or explains why a value can't be copied.

_SCALARS = (str, int, bool, type(None))
_DEEPEST = 200


class NotShared(Exception):
    """Raised for a Python value that JSON can't represent. ``message`` describes the value; ``hint`` suggests what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def as_json(value: Any) -> Any:
    """Return a copy of ``value`` as JSON values. Raises ``NotShared``.

    Tuples become lists; numpy arrays and scalars become lists and numbers. Instances of subclasses of str, int, float and dict,
    such as enum members, are converted as the ``json`` module does.
    """
    return _copied(value, set())


def _copied(value: Any, within: set[int]) -> Any:
    """Return a copy. ``within`` contains the ids of the containers around ``value``, to reject a container that contains itself."""
    if type(value) in _SCALARS:
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotShared(f"a number that JSON does not support ({float.__float__(value)})")
        return float.__float__(value)
    if isinstance(value, list | tuple | Mapping):
        return _container(value, within)
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return _copied(value.tolist(), within)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    raise NotShared(f"a value of type {type(value).__name__}")


def _container(value: Any, within: set[int]) -> Any:
    if id(value) in within:
        raise NotShared(f"{'an object' if isinstance(value, Mapping) else 'a list'} that contains itself")
    if len(within) >= _DEEPEST:
        raise NotShared("a value that is nested too deeply")
    within.add(id(value))
    copy: Any
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise NotShared("an object with keys that are not strings")
        copy = {str.__str__(key): _copied(item, within) for key, item in value.items()}
    else:
        copy = [_copied(item, within) for item in value]
    within.discard(id(value))
    return copy


_OF_LANGUAGES = frozenset({"input", "item", "index", "error"})
_NOTHING: Final = object()
_WAYS: Mapping[str, str] = {
    "DataFrame": "{0} = {0}.to_dict('records') converts it to rows", "Series": "{0} = {0}.tolist() converts it to a list",
    "set": "{0} = list({0}) converts it to a list", "frozenset": "{0} = list({0}) converts it to a list",
    "generator": "{0} = list({0}) converts it to a list", "Decimal": "{0} = float({0}) converts it to a number",
    "Fraction": "{0} = float({0}) converts it to a number", "bytes": "{0} = {0}.decode() converts it to a string",
    "datetime": "{0} = {0}.isoformat() converts it to a string", "date": "{0} = {0}.isoformat() converts it to a string",
    "Graph": "%kw open {0} opens it", "DiGraph": "%kw open {0} opens it", "MultiGraph": "%kw open {0} opens it",
    "MultiDiGraph": "%kw open {0} opens it", "float": "use None for missing values",
}  # fmt: skip
"""Maps the name of each type to a hint on how to convert its values."""


@frozen
class _SharedValue:
    """The two values of a shared name: the session's ``value``, and the value that the Python variable had when it was copied.

    ``how`` is "taken" (copied from Python), "given" (copied to Python) or "apart" (not copied, because Python can't use the
    name or already uses it for another value). ``before`` is the Python value that the copied value replaced.
    """

    value: Value
    python: Any
    how: Literal["taken", "given", "apart"]
    before: Any = _NOTHING


@define
class SharedVariables:
    """Synchronises the notebook's variables with a session's values.

    ``names`` are the variables in the notebook's namespace. ``hidden`` are the names that belong to the shell.
    """

    names: MutableMapping[str, Any]
    hidden: Mapping[str, Any] = field(factory=dict)
    _shared_values: dict[str, _SharedValue] = field(factory=dict, init=False)

    def known(self) -> list[str]:
        """Return the names of the variables that the notebook has created."""
        return [name for name in self.names if self._is_shared(name)]

    def take(self, wanted: Iterable[str], values: Values) -> None:
        """Copy the Python variables named in ``wanted`` to the session. Variables deleted in Python are also deleted in the session.

        Raises ``NotShared`` for an unsupported value; the message names the variable.
        """
        for name in [
            name for name, held in self._shared_values.items() if held.how != "apart" and name not in self.names
        ]:
            del self._shared_values[name]
            values.context.forget(name)
        for name in wanted:
            held, bound = self._shared_values.get(name), values.context.value(name)
            if not self._is_shared(name) or (
                held is not None and held.how == "apart" and held.python is self.names[name] and bound is held.value
            ):
                continue
            value = self.copied(name)
            if bound is None or not _same(bound.value, value):
                values.bind(name, value)
            now = values.context.value(name)
            if now is not None and (held is None or held.value is not now or held.python is not self.names[name]):
                self._shared_values[name] = _SharedValue(now, self.names[name], "taken")

    def copied(self, name: str) -> Any:
        """Return a copy of a Python variable as JSON values. Raises ``NotShared``, which names the variable and a remedy."""
        held = self.names[name]
        try:
            return as_json(held)
        except NotShared as error:
            reason = error.message
        except Exception as error:  # a custom class may raise anything
            reason = f"an object that can't be read ({type(error).__name__}: {error})"
        way = _WAYS.get(type(held).__name__, "only strings, numbers, lists and objects can be shared")
        raise NotShared(f"the notebook's {name} can't be shared: it is {reason}", way.format(name))

    def give(self, values: Values) -> list[str]:
        """Copy new session values to Python variables. Return remarks on values that could not be copied.

        If a value was deleted from the session, its Python variable gets back the value that it had before, or is deleted.
        """
        remarks = []
        for name in values.names():
            value, held = values.context.value(name), self._shared_values.get(name)
            if value is None or (held is not None and held.value is value):
                continue
            if fault := self._name_fault(name, held):
                self._shared_values[name] = _SharedValue(value, self.names.get(name), "apart")
                remarks.append(f"{fault}; use NAME = %kw value {name} to get its value")
                continue
            before = self.names.get(name, _NOTHING)
            if held is not None and held.how == "given" and held.python is before:
                before = held.before
            copy = as_json(value.value)
            self._shared_values[name], self.names[name] = _SharedValue(value, copy, "given", before), copy
        for name in [each for each in self._shared_values if values.context.value(each) is None]:
            self._restore(name, self._shared_values.pop(name))
        return remarks

    def drop(self, names: Iterable[str], values: Values) -> None:
        """Remove values from the session and from Python. Python values that were replaced by the session's values are not restored."""
        for name in names:
            values.context.forget(name)
            held = self._shared_values.pop(name, None)
            if held is not None and held.how == "given" and self.names.get(name, _NOTHING) is held.python:
                self.names.pop(name, None)

    def forget(self) -> None:
        """Forget which names are shared, before another session is used. The notebook keeps its variables."""
        self._shared_values.clear()

    def _restore(self, name: str, held: _SharedValue) -> None:
        if held.how != "given" or self.names.get(name, _NOTHING) is not held.python:
            return
        if held.before is _NOTHING:
            del self.names[name]
        else:
            self.names[name] = held.before

    def _is_shared(self, name: str) -> bool:
        return (
            name in self.names and not name.startswith("_") and name not in _OF_LANGUAGES and not self._is_hidden(name)
        )

    def _is_hidden(self, name: str) -> bool:
        """Return whether a name belongs to the shell, such as ``In``. A name that the notebook has rebound counts as a variable."""
        return name in self.hidden and self.names.get(name) is self.hidden[name]

    def _name_fault(self, name: str, held: _SharedValue | None) -> str:
        """Return why a session value can't be copied to the Python variable ``name``; "" if it can."""
        if not name.isidentifier() or keyword.iskeyword(name):
            return f"{name} is not a valid Python name"
        if name.startswith("_") or hasattr(builtins, name) or self._is_hidden(name):
            return f"{name} is a name that {'the shell' if self._is_hidden(name) else 'Python'} uses itself"
        if name not in self.names or (held is not None and held.how == "given" and held.python is self.names[name]):
            return ""
        try:
            self.copied(name)
        except NotShared:
            return f"{name} has a different value in the notebook, which is not replaced"
        return ""


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(item, other[key]) for key, item in one.items())
    return bool(one == other)
