"""What is known of a graph without looking at it again: labels, attributes, types, frequent values.

An engine makes it (``adapters.graph``), the linter checks against it, prompts and people read it.
"""

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

__all__ = ["Attribute", "Schema"]


@frozen
class Attribute:
    """What is known of an attribute: on how many nodes or edges, of which types, and its frequent values with counts.

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
    """A graph in summary, for a person, a check or a prompt.

    ``labels`` are the values of the attribute that tells kinds of nodes apart (``label_attribute``), ``relations`` those of
    edges (``relation_attribute``), both with counts; the attributes are None-d where the graph has no such attribute.
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
