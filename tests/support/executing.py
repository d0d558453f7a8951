"""A small graph of people, papers and places, and executors over it. The graph is written here, in full."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import networkx as nx
from knotwork import gasl

__all__ = ["executor", "library", "statuses"]


def library() -> nx.DiGraph:
    """Five people, three papers, two places; people wrote papers and work at places."""
    graph = nx.DiGraph()
    for name, age in (("Ada", 36), ("Ben", 51), ("Cyd", 28), ("Dee", 44), ("Eve", 63)):
        graph.add_node(name, entity_type="PERSON", age=age, source_id=f"chunk-{name[0].lower()}")
    for name, year in (("Engines", 1843), ("Trees", 1998), ("Stones", 2011)):
        graph.add_node(name, entity_type="PAPER", year=year, source_id="chunk-papers")
    for name in ("Turin", "Basel"):
        graph.add_node(name, entity_type="PLACE", source_id="chunk-places")
    for person, paper in (
        ("Ada", "Engines"), ("Ben", "Trees"), ("Cyd", "Trees"), ("Cyd", "Stones"), ("Dee", "Stones"), ("Eve", "Stones")
    ):  # fmt: skip
        graph.add_edge(person, paper, relation="WROTE")
    for person, place in (("Ada", "Turin"), ("Ben", "Basel"), ("Cyd", "Basel")):
        graph.add_edge(person, place, relation="WORKS_AT")
    return graph


@contextmanager
def executor(llm: Any = None, state: Any = None, **options: Any) -> Iterator[gasl.GASLExecutor]:
    """Give an executor over ``library()``, in memory unless ``state`` says where; closed afterwards."""
    opened = gasl.open(options.pop("graph", None) or library(), state, llm, **options)
    try:
        yield opened
    finally:
        opened.close()


def statuses(records: Any) -> list[str]:
    """Return the records' statuses."""
    return [record.status for record in records]
