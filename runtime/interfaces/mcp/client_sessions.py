"""The sessions of clients: whose variables are kept, which of them go where there are too many, and that this is told.

Each client has a share of its own. ``main``, in which a call is that names no session, is never dropped.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import islice

from attrs import define, field, frozen

from ...gasl import GASLExecutor
from ...gasl.variables import ContextStore

__all__ = ["KEPT", "MAIN", "Dropped", "KeptSessions", "SessionKey"]

SessionKey = tuple[str, str]
"""Whose session (a key's id on HTTP), and its name."""

MAIN = "main"
KEPT = 32
"""Sessions of one client whose variables are kept, beside ``main``; the one that was used longest ago goes."""
_REMEMBERED = 256
"""Dropped sessions of one client that are remembered by name."""
_NAMES = 100
"""Variables of a dropped session that are remembered by name."""


@frozen
class Dropped:
    """A session whose variables are gone. ``variables``: the names of some; ``begun``: it is in use again, without them."""

    name: str
    variables: frozenset[str]
    begun: bool = False

    @property
    def message(self) -> str:
        """What became of it."""
        return f"the session {self.name} was dropped: the {KEPT} that were used last are kept, and {MAIN}"

    @property
    def hint(self) -> str:
        """What to do about it."""
        return "run again what binds its variables, or use fewer sessions"


@define(eq=False)
class _Own:
    """The sessions of one client, the one that was used longest ago first."""

    kept: "OrderedDict[str, GASLExecutor]" = field(factory=OrderedDict)
    dropped: "OrderedDict[str, Dropped]" = field(factory=OrderedDict)


@define(eq=False)
class KeptSessions:
    """Executors, which have the variables, by client and name."""

    _of: dict[str, _Own] = field(factory=dict)

    def use(self, key: SessionKey, made: Callable[[], GASLExecutor]) -> GASLExecutor:
        """Return a session's executor; ``made`` makes that of a new one."""
        who, name = key
        own = self._of.setdefault(who, _Own())
        if name not in own.kept:
            own.kept[name] = made()
            if name in own.dropped:
                own.dropped[name] = Dropped(name, own.dropped[name].variables, begun=True)
        own.kept.move_to_end(name)
        others = [each for each in own.kept if each != MAIN]
        for each in others[:-KEPT]:
            names = frozenset(islice(own.kept.pop(each).context.names(), _NAMES))
            own.dropped[each] = Dropped(each, names)
            own.dropped.move_to_end(each)
        while len(own.dropped) > _REMEMBERED:
            own.dropped.popitem(last=False)
        return own.kept[name]

    def variables(self, key: SessionKey) -> ContextStore | None:
        """Return a session's variables; None for one that is not there."""
        who, name = key
        own = self._of.get(who)
        return own.kept[name].context if own is not None and name in own.kept else None

    def dropped(self, key: SessionKey) -> Dropped | None:
        """Return what is remembered of a session that was dropped, also where it is in use again."""
        who, name = key
        own = self._of.get(who)
        return None if own is None else own.dropped.get(name)

    def names(self, who: str) -> tuple[str, ...]:
        """Return the names of a client's sessions, the one that was used last first."""
        own = self._of.get(who)
        return () if own is None else tuple(reversed(own.kept))

    def renew(self, made: Callable[[ContextStore], GASLExecutor]) -> None:
        """Give each session the executor that ``made`` makes for its variables."""
        for kept, name, executor in list(self._all()):
            kept[name] = made(executor.context)

    def _all(self) -> Iterator[tuple[dict[str, GASLExecutor], str, GASLExecutor]]:
        for own in self._of.values():
            for name, executor in own.kept.items():
                yield own.kept, name, executor
