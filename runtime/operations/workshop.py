"""What GASL steps of one run share: the graph, the state, and whose turn it is."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from attrs import define, field

from ...adapters.state import StateStore
from ..context import ContextStore
from ..records import STOPPING

if TYPE_CHECKING:
    from ..executor import GASLExecutor

__all__ = ["Workshop"]


@define
class Workshop:
    """The graph and the state of a run of a script: steps that use them take turns.

    ``open`` makes an executor on a state that begins with some variables. ``run_id`` names the run in the state, so that a resumed
    run finds what it did before.
    """

    open: "Callable[[StateStore, ContextStore], GASLExecutor]"
    state: StateStore
    run_id: str = ""
    turn: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _committed: frozenset[str] | None = field(default=None, init=False)

    def committed(self) -> frozenset[str]:
        """Return the plans of earlier attempts at this run that the state has, as it was when this was first asked."""
        if self._committed is None:
            self._committed = frozenset(
                entry["plan_id"]
                for entry in self.state.history
                if "part" not in entry
                and str(entry.get("plan_id")).startswith(f"{self.run_id}/")
                and entry.get("status") not in _UNDONE
                and not entry.get("rolled_back")
            )
        return self._committed


_UNDONE = STOPPING | {"cancelled"}
"""Statuses of a block that left the state as it was."""
