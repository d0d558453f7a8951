"""Summary of a graph: labels, attributes, types, frequent values.

Graph engines compute it (``adapters.graph``); the linter checks against it, prompts and users read it.
"""

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen


@frozen
class Attribute:
    """Summary of an attribute: on how many nodes or edges it occurs, its types, and its frequent values with counts.

    ``types`` are JSON kinds ("text", "integer", "float", "boolean", "list", "object", "null") with counts. ``values`` are the
    most frequent scalars; ``distinct`` counts different scalars (None: more than were counted).
    """

    name: str
    count: int
    types: Mapping[str, int]
    values: tuple[tuple[Any, int], ...] = ()
    distinct: int | None = None


@frozen
class Schema:
    """Summary of a graph, for users, checks and prompts.

    ``labels`` are the values of the attribute that gives the type of a node (``label_attribute``), ``relations`` those of
    edges (``relation_attribute``), both with counts; these attributes are None if the graph has no such attribute.
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
