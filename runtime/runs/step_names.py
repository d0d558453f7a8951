"""The names of steps in records and events. A name shows which steps and items contain the step.

``a/b`` is the step ``b`` of the script that the step ``a`` runs, and ``a[3]/b`` the same for the item 3 of an ``EACH``. Calls that are
parts of an item are saved under ``a[3]``. The record of a step or an item has the totals of everything in it.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from attrs import define, field

_END = re.compile(r"[/\[]")


def containers(name: str) -> list[str]:
    """Return the names of the steps and items that contain ``name``, the outermost first: ``a`` and ``a[3]`` for ``a[3]/b``."""
    return [name[: mark.start()] for mark in _END.finditer(name)]


T = TypeVar("T")


@define
class Contained(Generic[T]):
    """Collects values of records until the record of the step or the item that contains them is found."""

    _open: dict[str, list[T]] = field(factory=lambda: defaultdict(list), init=False)

    def close(self, record: Mapping[str, Any]) -> list[T]:
        """Return, and forget, the values of the records that a record ``item_done`` or ``step_done`` includes in its totals."""
        return self._open.pop(_name(record), [])

    def add(self, record: Mapping[str, Any], value: T) -> None:
        """Add the value of a record ``item_done`` or ``step_done`` to all that contains it."""
        step = str(record.get("step"))
        for container in (*containers(step), *((step,) if record.get("record") == "item_done" else ())):
            self._open[container].append(value)

    def clear(self) -> None:
        """Forget all values: what a later session records does not include them."""
        self._open.clear()


def _name(record: Mapping[str, Any]) -> str:
    step = str(record.get("step"))
    return f"{step}[{record.get('item')}]" if record.get("record") == "item_done" else step
