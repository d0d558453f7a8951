"""GEXF, through NetworkX's own reader: the XML is looked over first, and everything that the reader raises translated."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

import networkx as nx

from ...graph import AdapterError
from .formats_xml import fault, parse_xml

__all__ = ["read_gexf"]

_FAULTS = (
    nx.NetworkXException,
    ArithmeticError,
    AttributeError,
    IndexError,
    KeyError,
    RecursionError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)
"""What the reader raises on files of the wrong shape; it checks little and fails where it stumbles."""


def read_gexf(data: bytes, name: str, warn: Callable[[str], None]) -> "nx.Graph[Any]":
    """Return the graph of a GEXF file. Raises ``AdapterError``."""
    first: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if not first:
            first.append(tag.rpartition(":")[2])
            if first[0] != "gexf":
                raise fault(
                    name, 1, f"no GEXF: the file's first element is <{tag[:40]}>", "a GEXF file begins with <gexf>"
                )

    parse_xml(data, name, start, lambda tag: None, lambda text: None)
    try:
        graph: nx.Graph[Any] = nx.read_gexf(BytesIO(data))
    except _FAULTS as error:
        raise _translated(error, name) from None
    if None in graph:
        raise fault(name, None, "not GEXF: a node has no id, or an edge no source or target")
    return graph


def _translated(error: Exception, name: str) -> AdapterError:
    said = str(error.args[0]) if isinstance(error, nx.NetworkXException | ValueError) and error.args else ""
    detail = " ".join(said.split())[:120] or "it has not the shape that the format asks for"
    return fault(name, None, f"not GEXF: {detail}", "was the file cut off, or is it of another format?")
