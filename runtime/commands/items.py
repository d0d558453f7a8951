"""What an item of the graph is, told from its fields. See ``docs/design/gasl.md#items``."""

from typing import Any, Literal, TypeGuard

from ...adapters.graph import NodeId

__all__ = ["ItemKind", "is_node_id", "item_kind"]

ItemKind = Literal["node", "edge", "path", "subgraph"]


def item_kind(item: Any) -> ItemKind | None:
    """Return whether an object is a node, an edge, a path or a subgraph; None where it is none of these.

    A node may have attributes called ``source`` and ``target``, and an edge one called ``id``: what stands first decides.
    """
    if not isinstance(item, dict):
        return None
    joins = "source" in item and "target" in item
    if "id" in item and not (joins and next(iter(item)) != "id"):
        return "node"
    nodes = item.get("nodes")
    if joins:
        return "path" if isinstance(nodes, list) and isinstance(item.get("edges"), list) else "edge"
    return "subgraph" if isinstance(nodes, list) else None


def is_node_id(value: Any) -> TypeGuard[NodeId]:
    """Say whether a value can be a node's id: a text or an integer."""
    return isinstance(value, str | int) and not isinstance(value, bool)
