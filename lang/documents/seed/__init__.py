"""Reads Formula Seeds in both JSON forms, and reports faults with their positions in the JSON.

Modules: ``model`` (the shapes as pydantic models, imported only when needed), ``reader`` (the document), ``validation`` (faults in
the shape), ``steps`` (fields and compute steps), ``where`` (conditions and cases), ``expressions`` (expressions in strings),
``declarations`` (metadata, examples, resolve, reduce), ``conversion`` (from form 000 to form 002).
"""

from typing import TYPE_CHECKING, Any

from .reader import SeedRead, read_seed, seed_in

__all__ = [
    "SEED_SCHEMA", "SEED_SCHEMA_000", "Converted", "SeedRead", "convert", "read_seed", "seed_in",
]  # fmt: skip

if TYPE_CHECKING:
    from .conversion import Converted, convert

    SEED_SCHEMA: dict[str, Any]
    """The JSON Schema (draft 2020-12) of a seed in the declarative form."""
    SEED_SCHEMA_000: dict[str, Any]
    """The JSON Schema (draft 2020-12) of a seed in the formula form."""


def __getattr__(name: str) -> Any:
    # These are imported only when needed, so that reading a seed stays fast. The schemas are made from pydantic models.
    if name in ("Converted", "convert"):
        from . import conversion

        return getattr(conversion, name)
    if name in ("SEED_SCHEMA", "SEED_SCHEMA_000"):
        from ..shape import json_schema
        from .model import SeedSchema000Model, SeedSchemaModel

        return json_schema(SeedSchemaModel if name == "SEED_SCHEMA" else SeedSchema000Model)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
