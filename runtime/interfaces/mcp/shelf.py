"""Results that had more than one page, kept for whoever asks for the next one: a bounded number, the oldest go."""

import secrets
from collections import OrderedDict
from typing import Any

from attrs import define, field

__all__ = ["Shelf"]


@define(eq=False)
class Shelf:
    """Values by handle. A handle is made at random, and works only for the client (``who``) that got it."""

    most: int = 64
    _kept: "OrderedDict[tuple[str, str], Any]" = field(factory=OrderedDict)

    def put(self, who: str, value: Any) -> str:
        """Keep ``value`` and return its handle."""
        handle = f"p_{secrets.token_hex(6)}"
        self._kept[(who, handle)] = value
        while len(self._kept) > self.most:
            self._kept.popitem(last=False)
        return handle

    def get(self, who: str, handle: str) -> Any:
        """Return what is kept under ``handle``. Raises ``KeyError``."""
        self._kept.move_to_end((who, handle))
        return self._kept[(who, handle)]
