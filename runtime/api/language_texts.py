"""Texts that describe the languages to models: JSON Schemas, grammars, and the list of commands."""

import json

from ...lang.catalogue.commands import described
from ...lang.constrain import constrain
from ...lang.documents.plan import PLAN_SCHEMA
from ...lang.documents.seed import SEED_SCHEMA, SEED_SCHEMA_000

__all__ = ["command_list", "grammar_text", "schema_text"]

command_list = described


def schema_text(name: str) -> str:
    """Return a JSON Schema as text: of "plan", "seed" or "seed-000" (the older form). Raises ``KeyError``."""
    schema = {"plan": PLAN_SCHEMA, "seed": SEED_SCHEMA, "seed-000": SEED_SCHEMA_000}[name]
    return json.dumps(schema, indent=2) + "\n"


def grammar_text(name: str) -> str:
    """Return a language's grammar for llguidance."""
    return constrain(name, "llguidance")
