"""Edge lists in CSV and TSV: the first line names the columns, ``source`` and ``target`` among them, each other line is an edge.

A column ``key`` tells parallel edges apart; the others are attributes. Ids are texts, an edge goes from source to target, an
empty cell is an absent attribute. Numbers come later, columnwise, with the other habits of text (``normalise``).
"""

import csv
import io
from collections import Counter
from collections.abc import Callable
from typing import Any

import networkx as nx

from .formats_xml import fault

__all__ = ["read_edges"]

_DELIMITERS = {"csv": (",", ";", "\t", "|"), "tsv": ("\t",)}


def read_edges(data: bytes, name: str, warn: Callable[[str], None], *, kind: str = "csv") -> "nx.Graph[Any]":
    """Return the directed graph whose edges ``data`` lists; ``kind`` is "csv" or "tsv". Raises ``AdapterError`` with the line."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise fault(name, data.count(b"\n", 0, error.start) + 1, "not UTF-8", "save the file as UTF-8") from None
    head = text[: text.find("\n")] if "\n" in text else text
    delimiter = max(_DELIMITERS[kind], key=head.count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    graph: Any = nx.MultiDiGraph()
    parallel = False
    try:
        columns = [column.strip() for column in next(rows, [])]
        places = {column.lower(): at for at, column in reversed(list(enumerate(columns)))}
        example = delimiter.join(("source", "target", "weight"))
        if "source" not in places or "target" not in places:
            raise fault(
                name,
                1,
                "the first line does not name the columns source and target",
                f"write one above the edges, for example {example!r}",
            )
        if len(set(columns)) < len(columns):
            counts = Counter(columns)
            twice = next(column for column in columns if counts[column] > 1)
            raise fault(name, 1, f"two columns are named {twice[:60]!r}", "give each column a name of its own")
        source_at, target_at, key_at = places["source"], places["target"], places.get("key")
        others = [(at, column) for at, column in enumerate(columns) if at not in (source_at, target_at, key_at)]
        for row in rows:
            if not row:
                continue
            if len(row) != len(columns):
                hint = "quote a value that holds the separator, and close every quote"
                raise fault(name, rows.line_num, f"{len(row)} values where the first line names {len(columns)}", hint)
            source, target = row[source_at].strip(), row[target_at].strip()
            if not source or not target:
                raise fault(name, rows.line_num, f"the {'source' if not source else 'target'} is empty")
            key = (row[key_at].strip() or None) if key_at is not None else None
            if graph.has_edge(source, target):
                parallel = True
                if key is not None and graph.has_edge(source, target, key):
                    hint = "leave the column key out, or give parallel edges keys of their own"
                    raise fault(name, rows.line_num, "an earlier line has the same source, target and key", hint)
            attributes = {column: row[at] for at, column in others if row[at] != ""}
            graph.add_edges_from([(source, target, key, attributes)])
    except csv.Error as error:
        hint = "close every quote; a field holds at most 131,072 characters"
        raise fault(name, rows.line_num, f"not {kind.upper()}: {error}", hint) from None
    return graph if parallel or key_at is not None else nx.DiGraph(graph)
