"""What the lines of a text were found to be, for the text that it becomes: of a thousand lines an editor changes one."""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field

__all__ = ["Memory"]

_LONGEST = 2_000
"""Characters of a line that is remembered; longer ones are rare and would fill memory."""


@define(eq=False)
class Memory:
    """What was found of each line of a text, and of the lines of the text before; that of the ones before those is forgotten."""

    _before: Mapping[str, Any] = field(factory=dict)
    _now: dict[str, Any] = field(factory=dict, init=False)

    def of(self, line: str, find: Callable[[str], Any]) -> Any:
        """Return what ``find`` says of the line, or said."""
        if line in self._now:
            return self._now[line]
        found = self._before[line] if line in self._before else find(line)
        if len(line) <= _LONGEST:
            self._now[line] = found
        return found

    def next(self) -> "Memory":
        """Return a memory for the text that this one becomes."""
        return Memory(self._now or self._before)
