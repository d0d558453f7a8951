"""All that a store holds at one moment, as one immutable value, and how a record of the journal takes it to the next."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import orjson
from attrs import evolve, field, frozen

from .values.nodes import NOTHING, DictNode
from .values.values import parsed
from .values.vectors import EMPTY, Vector

__all__ = ["About", "Entries", "Moment", "flagged", "with_about"]


@frozen
class About:
    """What the run is about. Times are ISO 8601 in UTC."""

    query: str = ""
    config: Mapping[str, Any] = field(factory=dict)  # never written after it is made
    seed: int = 0
    created_at: str = ""
    updated_at: str = ""


@frozen(eq=False)
class Moment:
    """``root`` are variables and provenance; the vectors hold JSON texts."""

    root: DictNode = NOTHING
    history: Vector = EMPTY
    answers: Vector = EMPTY
    commands: Vector = EMPTY
    about: About = field(factory=About)


def with_about(moment: Moment, **changes: Any) -> Moment:
    """Return the moment with some of ``about`` changed."""
    return evolve(moment, about=evolve(moment.about, **changes))


def flagged(history: Vector, indices: Sequence[int]) -> Vector:
    """Return the history with these entries marked as rolled back."""
    entries = {at: orjson.dumps(parsed(history[at]) | {"rolled_back": True}) for at in indices}
    return history.changed(entries)


class Entries(Sequence[Mapping[str, Any]]):
    """A vector of JSON texts, read one by one when they are asked for."""

    def __init__(self, texts: Vector) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, Any]]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [parsed(self._texts[at]) for at in range(*index.indices(len(self)))]
        return parsed(self._texts[index if index >= 0 else index + len(self)])

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return (parsed(text) for text in self._texts)
