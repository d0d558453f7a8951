"""Report of loading a graph: its source, its size, and every change made to it, with examples."""

from collections.abc import Iterator
from typing import Any, Literal

from attrs import define, field, frozen

ChangeKind = Literal["quotes", "lists", "lines", "numbers", "ids", "names", "non-finite", "values"]

_SAYS: dict[ChangeKind, str] = {
    "quotes": "quotes around the whole value removed",
    "lists": "<SEP>-separated text split into a list",
    "lines": "<SEP> in prose replaced by a line break",
    "numbers": "numbers written as text converted to numbers",
    "ids": "ids that are neither text nor integer converted to text",
    "names": "attributes renamed, because a field of the item has the same name",
    "non-finite": "non-finite numbers are null in results, because JSON has none; conditions and ORDER BY use them",
    "values": "values converted that JSON can't represent",
}

HABITS: frozenset[ChangeKind] = frozenset({"quotes", "lists", "lines", "numbers"})
"""Conventions of some tools, kept unchanged with ``raw``. The other changes are needed for items to be JSON."""


@frozen
class Change:
    """One kind of change in one place: ``where`` is ``node id``, ``node NAME`` or ``edge NAME``; ``count`` is the values changed.

    ``examples``: at most three pairs of before and after.
    """

    kind: ChangeKind
    where: str
    count: int
    examples: tuple[tuple[Any, Any], ...]

    @property
    def says(self) -> str:
        """A description of the change."""
        return _SAYS[self.kind]

    @property
    def told(self) -> str:
        """Place, change, count, one example, and how to disable it, in one line for the user."""
        example = f", {self.example}" if self.examples else ""
        switch = "; --raw (in Python raw=True) keeps them unchanged" if self.habit else ""
        return f"{self.where}: {self.says} ({self.count:,} value{'' if self.count == 1 else 's'}{example}){switch}"

    @property
    def example(self) -> str:
        """The first example as text, "" if there is none."""
        return "".join(f"{_short(before)} -> {_short(after)}" for before, after in self.examples[:1])

    @property
    def habit(self) -> bool:
        """Whether ``raw`` disables this change."""
        return self.kind in HABITS


@define
class ChangeLog:
    """Collects changes by kind and place, in order of first occurrence, and warnings."""

    counts: dict[tuple[ChangeKind, str], int] = field(factory=dict)
    examples: dict[tuple[ChangeKind, str], list[tuple[Any, Any]]] = field(factory=dict)
    warnings: list[str] = field(factory=list)

    def add(self, kind: ChangeKind, where: str, before: Any, after: Any) -> None:
        """Record one changed value."""
        at = (kind, where)
        self.counts[at] = self.counts.get(at, 0) + 1
        examples = self.examples.setdefault(at, [])
        if len(examples) < 3:
            examples.append((before, after))

    def changes(self) -> tuple[Change, ...]:
        """Return the recorded changes."""
        return tuple(
            Change(kind, where, count, tuple(self.examples[kind, where]))
            for (kind, where), count in self.counts.items()
        )


@frozen
class LoadReport:
    """Source and changes of a loaded graph. ``seconds``: reading and normalising; ``copied``: a graph object was copied.

    ``format`` is "graphml", "gml", "gexf", "json", "csv", "generator" or "networkx".
    """

    source: str
    format: str
    directed: bool
    multi: bool
    nodes: int
    edges: int
    seconds: float
    raw: bool = False
    copied: bool = False
    changes: tuple[Change, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The graph's kind in words: "directed multigraph"."""
        return f"{'directed' if self.directed else 'undirected'} {'multigraph' if self.multi else 'graph'}"

    @property
    def told(self) -> tuple[str, ...]:
        """The changes and warnings to show to the user, one line each. Ids come in any form."""
        return (*(change.told for change in self.changes), *self.warnings)

    def as_lines(self) -> Iterator[str]:
        """Yield the report as text lines."""
        yield f"{self.source}: {self.kind} of {self.nodes:,} nodes and {self.edges:,} edges ({self.format})"
        for change in self.changes:
            yield f"{change.where}: {change.says} ({change.count:,})" + (
                f"; {change.example}" if change.examples else ""
            )
        yield from (f"warning: {warning}" for warning in self.warnings)

    def as_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "source": self.source,
            "format": self.format,
            "directed": self.directed,
            "multi": self.multi,
            "nodes": self.nodes,
            "edges": self.edges,
            "seconds": round(self.seconds, 3),
            "raw": self.raw,
            "copied": self.copied,
            "changes": [
                {
                    "kind": change.kind,
                    "where": change.where,
                    "count": change.count,
                    "says": change.says,
                    "examples": [
                        {"before": _brief(before), "after": _brief(after)} for before, after in change.examples
                    ],
                }
                for change in self.changes
            ],
            "warnings": list(self.warnings),
        }


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _brief(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= 200 else value[:197] + "..."
    if isinstance(value, list):
        return [_brief(item) for item in value[:5]]
    return value if isinstance(value, int | float | bool) or value is None else _short(value)
