"""Loads graphs for all commands, and tells what loading changed."""

from typing import TYPE_CHECKING

from .telling import warn

if TYPE_CHECKING:
    from .....adapters.graph import GraphAdapter

__all__ = ["loaded"]


def loaded(source: str, raw: bool) -> "GraphAdapter":
    """Return the graph, and say on stderr what was rewritten in it. Raises ``AdapterError``."""
    from ....models.wiring import open_graph

    found = open_graph(source, raw=raw)
    for line in found.report.told:
        warn(f"graph {source}: {line}")
    return found.adapter
