"""Texts as trees, for what asks several things of one text. The last few are kept: an editor asks for hover, symbols and names in turn."""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from ..documents.json_text import read_json
from ..documents.json_tree import JsonRead
from ..documents.seed import SeedRead, read_seed
from ..gasl import Program
from ..lwt import Script
from ..parse.expr import ExprRead, parse_expr
from ..parse.gasl import parse_gasl
from ..parse.lwt import parse_lwt

__all__ = ["document", "expression", "program", "script", "seed", "seed_schemas"]

_KEPT = 4


@lru_cache(maxsize=_KEPT)
def script(text: str) -> Script:
    """Return a script, read strictly."""
    return parse_lwt(text)


@lru_cache(maxsize=_KEPT)
def program(text: str) -> Program:
    """Return a GASL program."""
    return parse_gasl(text)


@lru_cache(maxsize=_KEPT)
def expression(text: str) -> ExprRead:
    """Return an expression."""
    return parse_expr(text)


@lru_cache(maxsize=_KEPT)
def seed(text: str) -> SeedRead:
    """Return a seed."""
    return read_seed(text)


@lru_cache(maxsize=_KEPT)
def document(text: str) -> JsonRead:
    """Return a JSON document."""
    return read_json(text)


@cache
def seed_schemas() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the JSON Schemas of seeds: of the form of seed 002, of that of seed 000. They are made from models, slowly."""
    from ..documents import seed as seeds

    return seeds.SEED_SCHEMA, seeds.SEED_SCHEMA_000
