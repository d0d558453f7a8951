"""COUNT and AGGREGATE on found items: the graph engine computes the groups if it gives exactly the same groups and values."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from attrs import frozen

from ....lang.trees.conditions import Field
from ....lang.trees.gasl import Aggregate, Count
from ..records import Session
from ..relation import FoundRows
from .bindings import Rows
from .columns import column

if TYPE_CHECKING:
    from ....adapters.columns import GroupedItems, GroupQuery


@frozen
class Pushed:
    """The groups that the engine computed, and the positions of the rows of each group."""

    found: "GroupedItems"
    members: Sequence[Sequence[int]]


def grouped_by_engine(rows: Rows, command: Count | Aggregate, session: Session) -> Pushed | None:
    """Return the groups of COUNT or AGGREGATE, computed by the graph engine; None if this process must compute them."""
    query, relation = group_query(command), rows.relation
    found = relation.grouped(query) if query is not None and isinstance(relation, FoundRows) else None
    if found is None:
        return None
    return Pushed(found, _LateMembers(len(found.keys), lambda: _members(rows, command, session)))


def group_query(command: Count | Aggregate) -> "GroupQuery | None":
    """Return a command as a query for the engine; None if it computes values, or is more than a count or an aggregate of fields."""
    from ....adapters.columns import GroupQuery  # imported late: it needs NumPy

    by: list[tuple[str, ...]] = []
    for each in command.by:
        if not isinstance(each.value, Field) or each.value.quantifier is not None:
            return None
        by.append(each.value.path)
    computed: list[tuple[str, tuple[str, ...] | None]] = []
    for made in command.computations if isinstance(command, Aggregate) else ():
        if made.distinct or made.share is not None:
            return None
        if made.value is not None and (not isinstance(made.value, Field) or made.value.quantifier is not None):
            return None
        computed.append((made.function, None if made.value is None else made.value.path))
    return GroupQuery(tuple(by), tuple(computed))


def _members(rows: Rows, command: Count | Aggregate, session: Session) -> Sequence[Sequence[int]]:
    from .groups import groups_of, one_group

    if not command.by:
        return one_group(len(rows)).members
    return groups_of([column(rows, each.value, session) for each in command.by]).members


class _LateMembers(Sequence[Sequence[int]]):
    """The positions of the rows of each group. They are computed from fetched columns when evidence is read."""

    def __init__(self, length: int, make: Callable[[], Sequence[Sequence[int]]]) -> None:
        self._length = length
        self._make = make
        self._made: Sequence[Sequence[int]] | None = None

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> Sequence[int]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Sequence[int]]: ...
    def __getitem__(self, at: int | slice) -> Any:
        if self._made is None:
            self._made = self._make()
        return self._made[at]

    def __iter__(self) -> Iterator[Sequence[int]]:
        return map(self.__getitem__, range(self._length))
