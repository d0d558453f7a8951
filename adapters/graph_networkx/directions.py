"""Directions of edges: which graph a file with directed and undirected edges has.

A file can state the direction of each edge, in a column or attribute ``type`` (Directed, Undirected) or ``directed`` (true, false). If
all edges are undirected, so is the graph. If only some are, the graph is directed, and each undirected edge is read as two edges, one
in each direction, so that paths, components and degrees keep their meaning.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from attrs import frozen

_WORDS: Mapping[str, bool] = {"directed": True, "undirected": False}
_FLAGS: Mapping[str, bool] = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}
_KNOWN: Mapping[str, Mapping[str, bool]] = {"type": _WORDS, "directed": {**_WORDS, **_FLAGS}}
"""The attributes that can state a direction, each with the directions that its values state."""


@frozen
class Directions:
    """Whether a graph is directed, and the positions of the edges that are read as two edges, one in each direction."""

    directed: bool
    twice: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls, stated: Sequence[bool | None], warn: Callable[[str], None], *, declared: bool | None, default: bool
    ) -> "Directions":
        """Return the directions of edges for which a file states ``stated`` (None: nothing).

        ``declared`` is the direction that the file declares for all other edges (None: it declares none), ``default`` that of the
        format. Mixed directions are reported.
        """
        other = default if declared is None else declared
        known = [other if each is None else each for each in stated]
        directed = any(known) if known else other
        if known and not directed and declared:
            warn("the graph is declared directed, but every edge is undirected; the graph is read as undirected")
        twice = frozenset(at for at, each in enumerate(known) if not each) if directed else frozenset[int]()
        if twice:
            warn(
                f"{len(twice):,} of {len(known):,} edges {'is' if len(twice) == 1 else 'are'} undirected, the others directed; the graph"
                " is directed, and each undirected edge is read as two edges, one in each direction"
            )
        if declared is None and 0 < (silent := stated.count(None)) < len(stated):
            kind = "directed" if other else "undirected"
            warn(
                f"{silent:,} edge{' has' if silent == 1 else 's have'} no direction of {'its' if silent == 1 else 'their'} own: {kind}"
            )
        return cls(directed, twice)

    def ends(self, at: int, source: Any, target: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the source and target of each edge that the edge at the position ``at`` is read as."""
        yield source, target
        if at in self.twice and source != target:
            yield target, source


class UnknownDirection(ValueError):
    """Raised if the direction of the edge at the position ``at`` is unclear. ``hint`` suggests a fix."""

    hint = "write Directed or Undirected for each edge; if the values are types of your own, rename the column"

    def __init__(self, at: int, value: Any, reason: str) -> None:
        super().__init__(f"the direction {value!r:.60} is unclear: {reason}")
        self.at = at


def stated_directions(name: str, values: Sequence[Any], warn: Callable[[str], None]) -> list[bool | None] | None:
    """Return the direction that each of ``values`` states (None: no value), or None if the attribute ``name`` is not about directions.

    It is about directions if it is called ``type`` or ``directed``, in any letter case, and every value states one. A column with
    other values, such as ACTED_IN beside DIRECTED, has types of the user's own, which is reported, and so has a column of counts.
    Raises ``UnknownDirection`` if one of the other edges is undirected.
    """
    words = _KNOWN.get(name.casefold())
    if words is None:
        return None
    written = [None if value is None else str(value).strip().casefold() or None for value in values]
    stated = [None if word is None else words.get(word) for word in written]
    unknown = next((at for at, word in enumerate(written) if word is not None and word not in words), None)
    if any(word is not None and word not in words and word.isdigit() for word in written):
        return None
    if unknown is not None and False in stated:
        raise UnknownDirection(unknown, values[unknown], "other edges are undirected")
    if unknown is not None and True in stated and words is _WORDS:
        warn(
            f"{name} is an attribute and states no directions, because it has other values, such as {values[unknown]!r:.60}"
        )
    return None if unknown is not None or stated.count(None) == len(stated) else stated


def directions_of(
    rows: Sequence[Mapping[str, Any]], warn: Callable[[str], None], columns: Iterable[str] | None = None
) -> list[bool | None]:
    """Return the direction that each of the attribute mappings ``rows`` states (None: none).

    An attribute ``type`` with directions among other values is reported, because it is not followed. ``columns`` are the names of all
    attributes, if they are known. Raises ``UnknownDirection``, also if two attributes of an edge state different directions.
    """
    columns = chain.from_iterable(rows) if columns is None else columns
    found: list[bool | None] = [None] * len(rows)
    for name in dict.fromkeys(name for name in columns if isinstance(name, str) and name.casefold() in _KNOWN):
        values = [row.get(name) for row in rows]
        for at, each in enumerate(stated_directions(name, values, warn) or ()):
            if each is not None and found[at] not in (None, each):
                raise UnknownDirection(at, values[at], "another value of this edge contradicts it")
            found[at] = found[at] if each is None else each
    return found
