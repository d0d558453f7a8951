"""Summary of a graph: labels, attributes, types, frequent values.

Graph engines compute the summary (``adapters.graph``). The linter checks programs against the summary; prompts and reports show the
summary.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from attrs import field, frozen

if TYPE_CHECKING:
    from ..trees.conditions import Condition


@frozen
class Attribute:
    """Summary of an attribute: the number of nodes or edges that have it, its types, and its frequent values with counts.

    ``types`` maps JSON kinds ("text", "integer", "float", "boolean", "list", "object", "null") to counts. ``values`` are the most frequent
    scalars. ``distinct`` is the number of different scalars; None if there are more than the engine counts. ``lowest`` and ``highest`` are
    the smallest and largest number, or, if all strings are ISO 8601 dates, the first and last date. In all other cases ``lowest`` and
    ``highest`` are None.
    """

    name: str
    count: int
    types: Mapping[str, int]
    values: tuple[tuple[Any, int], ...] = ()
    distinct: int | None = None
    lowest: int | float | str | None = None
    highest: int | float | str | None = None


class NodeIds(Protocol):
    """The ids of all nodes of an open graph, and its first nodes or edges that satisfy a condition."""

    def __contains__(self, node_id: object, /) -> bool:
        """Return whether a node has the id."""
        ...

    def nearest(self, node_id: str) -> str | None:
        """Return the id that was most likely meant, or None. The result is always None in a large graph."""
        ...

    def matching(
        self, whose: Literal["nodes", "edges"], condition: "Condition", most: int
    ) -> Sequence[Mapping[str, Any]]:
        """Return at most ``most`` nodes or edges for which the condition is true, in the graph's order."""
        ...


@frozen
class Schema:
    """Summary of a graph, for users, checks and prompts.

    ``label_attribute`` is the name of the attribute with the type of a node. ``relation_attribute`` is the name of the attribute with the
    type of an edge. Each is None if the graph has no such attribute. ``labels`` and ``relations`` map the values of these attributes to
    their counts. ``ids`` are a few node ids from all parts of the graph. ``id_types`` maps the types of node ids to their counts.
    ``all_ids`` answers questions about all node ids as long as the graph is open; a stored schema does not have it.
    """

    directed: bool
    multi: bool
    nodes: int
    edges: int
    node_attributes: Mapping[str, Attribute]
    edge_attributes: Mapping[str, Attribute]
    label_attribute: str | None = None
    labels: Mapping[str, int] = field(factory=dict)
    relation_attribute: str | None = None
    relations: Mapping[str, int] = field(factory=dict)
    name: str = ""
    hash: str = ""
    ids: tuple[str | int, ...] = ()
    id_types: Mapping[str, int] = field(factory=dict)
    all_ids: NodeIds | None = field(default=None, eq=False, repr=False)
