"""How the rows of a computation are read: what is missing in them, and what ``extractions`` holds.

A row is ``{"extraction": {...}, "meta": {...}}``, one for each extraction that did not fail. ``invalid`` and ``invalid_meta`` name the
fields and keys whose value is not known (they are null); other keys (``review``, ``id``, ``excerpt``) say where it is from and take no
part in the computation.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ...expr import Field
from ...node import walk
from ...seed import FormulaSeed

__all__ = ["META_KEYS", "Row", "complete_rows", "element", "meta_keys"]

Row = Mapping[str, Any]

META_KEYS = ("stars", "useful", "year", "month", "date", "age_days")
"""What is known of every review, or null."""


def meta_keys(seed: FormulaSeed) -> tuple[str, ...]:
    """Return the keys of ``meta`` that a computation of ``seed`` may read: those of every review, and others it names."""
    nodes = (node for step in seed.steps for node in walk(step))
    named = dict.fromkeys(node.name for node in nodes if isinstance(node, Field) and node.namespace == "meta")
    return tuple(dict.fromkeys((*META_KEYS, *named)))


def complete_rows(seed: FormulaSeed, rows: Sequence[Row]) -> list[dict[str, dict[str, Any]]]:
    """Return ``rows`` with null for each field that the seed declares, and each key of ``meta``, that a row lacks."""
    fields, meta = dict.fromkeys(found.name for found in seed.fields), dict.fromkeys(meta_keys(seed))
    return [{"extraction": {**fields, **row["extraction"]}, "meta": {**meta, **row.get("meta", {})}} for row in rows]


def element(row: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the element of ``extractions`` that a complete row is: the extraction's fields, and ``meta``."""
    return {**row["extraction"], "meta": row["meta"]}
