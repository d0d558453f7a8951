"""Results that had more than one page, kept for whoever asks for the next one: of each client a bounded number, the oldest go."""

import secrets
from collections import OrderedDict
from typing import Any

from attrs import define, field

__all__ = ["Shelf"]


@define(eq=False)
class Shelf:
    """Values by handle. A handle is made at random, and works only for the client (``who``) that got it.

    ``most`` are kept for each client: what one of them asks for takes no other's pages.
    """

    most: int = 64
    _kept: "dict[str, OrderedDict[str, Any]]" = field(factory=dict)

    def put(self, who: str, value: Any) -> str:
        """Keep ``value`` and return its handle."""
        handle = f"p_{secrets.token_hex(6)}"
        own = self._kept.setdefault(who, OrderedDict())
        own[handle] = value
        while len(own) > self.most:
            own.popitem(last=False)
        return handle

    def get(self, who: str, handle: str) -> Any:
        """Return what is kept under ``handle``. Raises ``KeyError``."""
        own = self._kept.get(who, OrderedDict())
        own.move_to_end(handle)
        return own[handle]
