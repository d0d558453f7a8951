"""Names both ways: what a cell binds is a Python variable, and a Python variable that a cell names is a value of the session.

Values are copied: who changes a list in Python changes nothing in the session until a cell names it again. What was found with
evidence keeps it as long as Python has not changed it.
"""

import builtins
import keyword
import math
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any, Final, Literal

from attrs import define, field, frozen

from ...gasl.records import Value
from ..repl.repl_workspace import Values

__all__ = ["NotShared", "Shared", "as_json"]


# Python's values as JSON's: copies, or the reason why there is none.

_SCALARS = (str, int, bool, type(None))
_DEEPEST = 200


class NotShared(Exception):
    """A Python value that JSON can't say; ``message`` says what it is, ``hint`` what can be done."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def as_json(value: Any) -> Any:
    """Return a copy of ``value`` as JSON's values; tuples and numpy's arrays and numbers become lists and numbers. Raises ``NotShared``.

    A text, a number or an object of a class of its own, such as an enum's member, is what it is for ``json``.
    """
    return _copied(value, set())


def _copied(value: Any, within: set[int]) -> Any:
    """``within`` are the containers that ``value`` is in: who is in itself has no end."""
    if type(value) in _SCALARS:
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotShared(f"a number that JSON has not ({float.__float__(value)})")
        return float.__float__(value)
    if isinstance(value, list | tuple | Mapping):
        return _container(value, within)
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return _copied(value.tolist(), within)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    raise NotShared(f"of the type {type(value).__name__}")


def _container(value: Any, within: set[int]) -> Any:
    if id(value) in within:
        raise NotShared(f"{'an object' if isinstance(value, Mapping) else 'a list'} that holds itself")
    if len(within) >= _DEEPEST:
        raise NotShared("nested too deeply")
    within.add(id(value))
    made: Any
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise NotShared("an object whose keys are not all texts")
        made = {str.__str__(key): _copied(item, within) for key, item in value.items()}
    else:
        made = [_copied(item, within) for item in value]
    within.discard(id(value))
    return made


_OF_LANGUAGES = frozenset({"input", "item", "index", "error"})
_NOTHING: Final = object()
_WAYS: Mapping[str, str] = {
    "DataFrame": "{0} = {0}.to_dict('records') makes rows of it", "Series": "{0} = {0}.tolist() makes a list of it",
    "set": "{0} = list({0}) makes a list of it", "frozenset": "{0} = list({0}) makes a list of it",
    "generator": "{0} = list({0}) makes a list of it", "Decimal": "{0} = float({0}) makes a number of it",
    "Fraction": "{0} = float({0}) makes a number of it", "bytes": "{0} = {0}.decode() makes a text of it",
    "datetime": "{0} = {0}.isoformat() makes a text of it", "date": "{0} = {0}.isoformat() makes a text of it",
    "Graph": "%kw open {0} opens it", "DiGraph": "%kw open {0} opens it", "MultiGraph": "%kw open {0} opens it",
    "MultiDiGraph": "%kw open {0} opens it", "float": "None stands for what is missing",
}  # fmt: skip
"""By the name of a type: how its values can be had all the same."""


@frozen
class _Held:
    """What session and Python have of a name: the session's value, and what stood under the name in Python then.

    ``how``: taken from Python, given to it, or apart, where Python has something else under the name, which was left alone.
    ``before`` is what Python had of its own before it was given something.
    """

    value: Value
    python: Any
    how: Literal["taken", "given", "apart"]
    before: Any = _NOTHING


@define
class Shared:
    """Keeps the notebook's names and a session's values alike. ``names`` are the notebook's, ``hidden`` those in it of the shell."""

    names: MutableMapping[str, Any]
    hidden: Mapping[str, Any] = field(factory=dict)
    _held: dict[str, _Held] = field(factory=dict, init=False)

    def known(self) -> list[str]:
        """Return the names of the variables that the notebook has made."""
        return [name for name in self.names if self._is_shared(name)]

    def take(self, wanted: Iterable[str], values: Values) -> None:
        """Bind the Python variables among ``wanted`` in the session. What Python has deleted is gone in the session, too.

        Raises ``NotShared``, with the variable's name, for one that can't be a value.
        """
        for name in [name for name, held in self._held.items() if held.how != "apart" and name not in self.names]:
            del self._held[name]
            values.context.forget(name)
        for name in wanted:
            held, bound = self._held.get(name), values.context.value(name)
            if not self._is_shared(name) or (
                held is not None and held.how == "apart" and held.python is self.names[name] and bound is held.value
            ):
                continue
            value = self.copied(name)
            if bound is None or not _same(bound.value, value):
                values.bind(name, value)
            now = values.context.value(name)
            if now is not None and (held is None or held.value is not now or held.python is not self.names[name]):
                self._held[name] = _Held(now, self.names[name], "taken")

    def copied(self, name: str) -> Any:
        """Return a Python variable as JSON's values. Raises ``NotShared``, which says which one and what to do."""
        held = self.names[name]
        try:
            return as_json(held)
        except NotShared as error:
            said = error.message
        except Exception as error:  # a class of anybody's, which may raise anything
            said = f"an object that can't be read ({type(error).__name__}: {error})"
        way = _WAYS.get(type(held).__name__, "texts, numbers, lists and objects are shared")
        raise NotShared(f"the notebook's {name} can't be a value here: it is {said}", way.format(name))

    def give(self, values: Values) -> list[str]:
        """Make all that the session has bound since Python variables, and take away what it has no more; return remarks.

        Where something of Python's own was replaced, it is there again.
        """
        remarks = []
        for name in values.names():
            value, held = values.context.value(name), self._held.get(name)
            if value is None or (held is not None and held.value is value):
                continue
            if fault := self._fault(name, held):
                self._held[name] = _Held(value, self.names.get(name), "apart")
                remarks.append(f"{fault}; NAME = %kw value {name} gives its value")
                continue
            before = self.names.get(name, _NOTHING)
            if held is not None and held.how == "given" and held.python is before:
                before = held.before
            made = as_json(value.value)
            self._held[name], self.names[name] = _Held(value, made, "given", before), made
        for name in [each for each in self._held if values.context.value(each) is None]:
            self._taken_back(name, self._held.pop(name))
        return remarks

    def drop(self, names: Iterable[str], values: Values) -> None:
        """Take values away, from the session and from Python; what stood under the names before does not come back."""
        for name in names:
            values.context.forget(name)
            held = self._held.pop(name, None)
            if held is not None and held.how == "given" and self.names.get(name, _NOTHING) is held.python:
                self.names.pop(name, None)

    def forget(self) -> None:
        """Begin with another session; the notebook keeps its variables."""
        self._held.clear()

    def _taken_back(self, name: str, held: _Held) -> None:
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
        """Say whether a name is the shell's, such as ``In``; who binds it anew has made it a variable."""
        return name in self.hidden and self.names.get(name) is self.hidden[name]

    def _fault(self, name: str, held: _Held | None) -> str:
        """Say why a value can't be a Python variable, or ""."""
        if not name.isidentifier() or keyword.iskeyword(name):
            return f"{name} is no name of Python"
        if name.startswith("_") or hasattr(builtins, name) or self._is_hidden(name):
            return f"{name} is a name of {'the shell' if self._is_hidden(name) else 'Python'}'s own"
        if name not in self.names or (held is not None and held.how == "given" and held.python is self.names[name]):
            return ""
        try:
            self.copied(name)
        except NotShared:
            return f"{name} is something else in the notebook, which is kept"
        return ""


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(item, other[key]) for key, item in one.items())
    return bool(one == other)
