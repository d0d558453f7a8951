"""The report on loading a graph: its source and kind, and the changes made.

The report is shown as text or JSON, and stored in a prepared copy.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from .cleanup import Change, shortened

if TYPE_CHECKING:
    from ..graph import GraphAdapter


@frozen
class LoadReport:
    """The source of a loaded graph and the changes made while loading.

    ``seconds`` is the time for reading and normalising. ``copied`` is true if the given graph object was copied. ``format`` is "graphml",
    "gml", "gexf", "json", "csv", "generator", "networkx", or the scheme of a database's URL. ``about`` are the attributes that a file
    gives to the graph itself; conditions do not see them. ``notes`` are messages about the prepared copy. ``prepared`` is true if the
    graph was opened from its prepared copy; ``seconds`` is then the time for opening the copy.
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
    notes: tuple[str, ...] = ()
    prepared: bool = False
    about: Mapping[str, Any] = field(factory=dict)

    @property
    def kind(self) -> str:
        """The graph's kind in words: "directed multigraph"."""
        return f"{'directed' if self.directed else 'undirected'} {'multigraph' if self.multi else 'graph'}"

    @property
    def messages(self) -> tuple[str, ...]:
        """The changes and warnings to show to the user, one line each."""
        return (*(change.message for change in self.changes), *self.warnings)

    @property
    def about_text(self) -> str:
        """The attributes of the graph itself on one line."""
        return ", ".join(f"{name[:60]}: {shortened(value)}" for name, value in self.about.items())

    def as_lines(self) -> Iterator[str]:
        """Yield the report as text lines."""
        yield f"{self.source}: {self.kind} of {self.nodes:,} nodes and {self.edges:,} edges ({self.format})"
        if self.about:
            yield f"attributes of the graph itself: {self.about_text}"
        for change in self.changes:
            yield f"{change.where}: {change.description} ({change.count:,})" + (
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
            "prepared": self.prepared,
            "about": {name: _brief(value) for name, value in self.about.items()},
            "changes": [
                {
                    "kind": change.kind,
                    "where": change.where,
                    "count": change.count,
                    "says": change.description,
                    "examples": [
                        {"before": _brief(before), "after": _brief(after)} for before, after in change.examples
                    ],
                }
                for change in self.changes
            ],
            "warnings": list(self.warnings),
        }

    def stored(self) -> dict[str, Any]:
        """Return the report as JSON, for storage in a prepared copy. ``of_stored`` reads it."""
        changes = [
            [change.kind, change.where, change.count, [[_stored(each) for each in pair] for pair in change.examples]]
            for change in self.changes
        ]
        return {
            **{name: getattr(self, name) for name in _STORED},
            "changes": changes,
            "warnings": list(self.warnings),
        }

    @classmethod
    def of_stored(cls, stored: Mapping[str, Any], source: str, seconds: float) -> "LoadReport":
        """Return the report stored in a prepared copy, with ``source`` and ``seconds``, the time for opening the copy."""
        changes = tuple(
            Change(kind, where, count, tuple((_restored(before), _restored(after)) for before, after in examples))
            for kind, where, count, examples in stored["changes"]
        )
        known = {name: stored[name] for name in _STORED}
        known |= {"source": source, "changes": changes, "warnings": tuple(stored["warnings"])}
        return cls(**known, seconds=seconds, prepared=True)


_STORED = ("source", "format", "directed", "multi", "nodes", "edges", "raw", "copied", "about")


@frozen(repr=False)
class _Shown:
    """An example value that JSON can't represent. It is shown by its ``repr`` only."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _stored(value: Any) -> Any:
    if value is None or type(value) in (str, int, float, bool):
        return value
    return [_stored(item) for item in value] if type(value) is list else {"repr": repr(value)}


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return [_restored(item) for item in value]
    return _Shown(value["repr"]) if isinstance(value, dict) else value


def _brief(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= 200 else value[:197] + "..."
    if isinstance(value, list):
        return [_brief(item) for item in value[:5]]
    return value if isinstance(value, int | float | bool) or value is None else shortened(value)


@frozen
class Loaded:
    """A loaded graph as an adapter, and the report on loading it."""

    adapter: "GraphAdapter"
    report: LoadReport
