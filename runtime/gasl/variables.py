"""The variables of a plan: what commands put under their ``AS`` names, with the evidence beside. See ``docs/design/gasl.md#execution``."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import define, field, frozen

from ...adapters.state import Evidence

__all__ = ["ContextStore", "Value"]


@frozen
class Value:
    """A JSON value, and evidence by index of its items (a list) or under index 0 (anything else).

    ``evidence`` may be lazy: a sequence that makes its elements when they are asked for. A million nodes found cost nothing
    until they are kept. ``incomplete``: why it is not the whole answer, empty where it is; what is computed from it inherits that.
    """

    value: Any
    evidence: Sequence[Sequence[Evidence]] = ()
    incomplete: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Items of a list, keys of an object, 0 for null, else 1."""
        if isinstance(self.value, list | dict):
            return len(self.value)
        return 0 if self.value is None else 1

    def evidence_at(self, index: int) -> Sequence[Evidence]:
        """Return the evidence of the item at ``index``; empty where there is none."""
        return self.evidence[index] if index < len(self.evidence) else ()


@define
class ContextStore:
    """Variables by name. They live for a plan; the state is what lasts."""

    _values: dict[str, Value] = field(factory=dict)
    _fields: dict[str, tuple[Value, tuple[str, ...] | None]] = field(factory=dict, eq=False, repr=False)

    def set(self, var: str, value: Any) -> None:
        """Bind ``var`` to a ``Value``, or to a plain JSON value without evidence."""
        self._values[var] = value if isinstance(value, Value) else Value(value)

    def get(self, var: str) -> Any:
        """Return the plain value of ``var``. Raises ``KeyError``."""
        return self._values[var].value

    def value(self, var: str) -> Value | None:
        """Return what ``var`` is bound to, with its evidence; None where it is not bound."""
        return self._values.get(var)

    def fields(self, var: str) -> tuple[str, ...] | None:
        """Return all fields of the items of ``var``, in the order in which they first occur; None unless it is a list of objects.

        Each value is read once, however often it is asked for.
        """
        bound = self._values.get(var)
        if bound is None:
            return None
        known = self._fields.get(var)
        if known is None or known[0] is not bound:
            known = self._fields[var] = (bound, _fields_of(bound.value))
        return known[1]

    def exists(self, var: str) -> bool:
        """Say whether ``var`` is bound."""
        return var in self._values

    def forget(self, var: str) -> None:
        """Unbind ``var``, if it is bound."""
        self._values.pop(var, None)

    def names(self) -> tuple[str, ...]:
        """Return the bound names, in the order of binding."""
        return tuple(self._values)

    def clear(self) -> None:
        """Forget all variables."""
        self._values.clear()

    def copy(self) -> "ContextStore":
        """Return a store with the same variables; binding in one is not seen in the other."""
        return ContextStore(dict(self._values))

    def summary(self, max_items: int = 5) -> dict[str, Any]:
        """Return ``{name: {"kind", "count", "sample"}}`` with at most ``max_items`` of each."""
        return {name: _summary(bound, max_items) for name, bound in self._values.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)


def _fields_of(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    found: dict[str, None] = {}
    for item in value:
        if not isinstance(item, dict):
            return None
        if found.keys() != item.keys():
            found.update(dict.fromkeys(item))
    return tuple(found) if value else None


def _summary(bound: Value, most: int) -> Mapping[str, Any]:
    value = bound.value
    if isinstance(value, list):
        return {"kind": "list", "count": len(value), "sample": value[:most]}
    if isinstance(value, dict):
        return {"kind": "object", "count": len(value), "sample": dict(list(value.items())[:most])}
    return {"kind": "value", "count": bound.count, "sample": value}
