"""Summary of a graph: labels, attributes, types, frequent values.

Graph engines compute the summary (``adapters.graph``). The linter checks programs against it; prompts and reports show it.
"""

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen


@frozen
class Attribute:
    """Summary of an attribute: the number of nodes or edges that have it, its types, and its frequent values with counts.

    ``types`` are JSON kinds ("text", "integer", "float", "boolean", "list", "object", "null") with counts. ``values`` are the
    most frequent scalars. ``distinct`` is the number of different scalars (None: more than the engine counts).
    """

    name: str
    count: int
    types: Mapping[str, int]
    values: tuple[tuple[Any, int], ...] = ()
    distinct: int | None = None


@frozen
class Schema:
    """Summary of a graph, for users, checks and prompts.

    ``label_attribute`` names the attribute that holds the type of a node, ``relation_attribute`` the attribute that holds the
    type of an edge; None if the graph has no such attribute. ``labels`` and ``relations`` map the values of these attributes
    to their counts.
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
