"""The different texts that a field has in a graph: what a text which nothing equals may have been meant to be."""

from typing import Any

from ....lang.conditions import Field
from ..columnar.computed import Computed
from ..rows.fields import readers_of
from ..rows.jsonable import plain
from ..rows.scan import Kind, rows_of

__all__ = ["texts_of"]


def texts_of(graph: Any, kept: Computed, kind: Kind, name: str, most: int) -> list[str]:
    """Return the first ``most`` different texts of a field, from its column if there is one, else in one pass over the graph."""
    if most <= 0:
        return []
    path = tuple(name.split("."))
    part = ("column", kind, path)
    if kept.has(part):
        from ..columnar.coded import Coded
        from ..columnar.numeric import Numbers

        column: Any = kept.part(part, lambda: None)
        if isinstance(column, Numbers):
            return []
        if isinstance(column, Coded):
            return [value for value in column.values if isinstance(value, str)][:most]
    read = readers_of(graph, kind)(Field(path)).read
    found: dict[str, None] = {}
    for row in rows_of(graph, kind):
        value = read(*row)
        if value.__class__ is not str:
            value = None if value is None else plain(value)
            if not isinstance(value, str):
                continue
        if value not in found:
            found[value] = None
            if len(found) == most:
                break
    return list(found)
