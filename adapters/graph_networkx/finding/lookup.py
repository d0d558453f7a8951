"""From the id that an item shows to the graph's own node, or nothing."""

from collections.abc import Mapping
from typing import Any

from ..columnar.computed import Computed
from ..rows.jsonable import node_id

__all__ = ["MISSING", "node_named"]

MISSING: Any = object()
"""No node has that id."""


def node_named(graph: Any, kept: Computed, identifier: Any) -> Any:
    """Return the node whose id is ``identifier``, or ``MISSING``. A node that is neither text nor integer goes by its text."""
    if isinstance(identifier, bool) or not isinstance(identifier, str | int):
        return MISSING
    if identifier in graph:
        return identifier
    return _texts(graph, kept).get(identifier, MISSING) if isinstance(identifier, str) else MISSING


def _texts(graph: Any, kept: Computed) -> Mapping[str, Any]:
    """Return the nodes whose ids are texts of theirs, by those; of two with one text the first."""

    def make() -> dict[str, Any]:
        texts: dict[str, Any] = {}
        for node in graph:
            if node.__class__ is not str and node.__class__ is not int:
                texts.setdefault(str(node_id(node)), node)
        return texts

    return kept.part("texts", make)
