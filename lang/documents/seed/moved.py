"""Trees of JSON as they are where their text stands further on. What is below is moved when it is asked for: of most nobody asks."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Generic, TypeVar, overload

from ...source import Span
from ..json_tree import JsonNode

__all__ = ["moved", "moved_all"]

_T = TypeVar("_T", JsonNode, Span)


def moved(node: JsonNode, by: int) -> JsonNode:
    """Return a tree as it is where its text stands ``by`` further on; the given one stays as it is."""
    if not by:
        return node
    fields, keys, items = node.fields, node.keys, node.items
    if fields:
        fields, keys = _Fields.of(fields, by, moved), _Fields.of(keys, by, _moved_span)
    elif items:
        items = _Items.of(items, by)
    return JsonNode(node.value, node.start + by, node.end + by, fields, keys, items, node.faulty)


def moved_all(nodes: Sequence[JsonNode], by: int) -> list[JsonNode]:
    """Return trees as they are ``by`` further on."""
    return [moved(node, by) for node in nodes]


def _moved_span(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by)


class _Fields(MutableMapping[str, _T], Generic[_T]):
    """What an object has, once it is asked for: then nothing of what it was taken from is kept."""

    __slots__ = ("_move", "_state")

    def __init__(self, given: Mapping[str, _T], by: int, move: Callable[[_T, int], _T]) -> None:
        self._move: Callable[[_T, int], _T] = move
        self._state: tuple[Mapping[str, _T], int] = (given, by)

    @classmethod
    def of(cls, given: Mapping[str, _T], by: int, move: Callable[[_T, int], _T]) -> "_Fields[_T]":
        """Return them ``by`` further on; what was moved and never asked for is moved from where it was read."""
        if isinstance(given, _Fields):
            given, before = given._state
            by += before
        return cls(given, by, move)

    def _all(self) -> Mapping[str, _T]:
        given, by = self._state
        if by:
            given = {name: self._move(each, by) for name, each in given.items()}
            self._state = (given, 0)
        return given

    def _own(self) -> dict[str, _T]:
        """Return them in a mapping that nobody else has."""
        own = dict(self._all())
        self._state = (own, 0)
        return own

    def __contains__(self, name: object) -> bool:
        return name in self._state[0]

    def __getitem__(self, name: str) -> _T:
        return self._all()[name]

    def __setitem__(self, name: str, value: _T) -> None:
        self._own()[name] = value

    def __delitem__(self, name: str) -> None:
        del self._own()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._state[0])

    def __len__(self) -> int:
        return len(self._state[0])


class _Items(Sequence[JsonNode]):
    """What a list has, once it is asked for: then nothing of what it was taken from is kept."""

    __slots__ = ("_state",)

    def __init__(self, given: Sequence[JsonNode], by: int) -> None:
        self._state: tuple[Sequence[JsonNode], int] = (given, by)

    @classmethod
    def of(cls, given: Sequence[JsonNode], by: int) -> "_Items":
        """Return them ``by`` further on."""
        if isinstance(given, _Items):
            given, before = given._state
            by += before
        return cls(given, by)

    def _all(self) -> Sequence[JsonNode]:
        given, by = self._state
        if by:
            given = moved_all(given, by)
            self._state = (given, 0)
        return given

    @overload
    def __getitem__(self, index: int) -> JsonNode: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[JsonNode]: ...

    def __getitem__(self, index: int | slice) -> JsonNode | Sequence[JsonNode]:
        return self._all()[index]

    def __iter__(self) -> Iterator[JsonNode]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._state[0])
