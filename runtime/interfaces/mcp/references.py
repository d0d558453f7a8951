"""The texts that tell a model the languages: a card of each, short enough for a system prompt, and the pages of the reference.

The cards stand in ``languages/NAME.md`` here; the pages are those of ``docs/reference``, which are installed with the package.
"""

import json
from collections.abc import Mapping
from importlib.resources import files

from ....lang.constrain import constrain
from ....lang.documents.plan import PLAN_SCHEMA
from ....lang.documents.seed import SEED_SCHEMA, SEED_SCHEMA_000

__all__ = ["CARDS", "GRAMMARS", "PAGES", "SCHEMAS", "card", "grammar_of", "page_of", "schema_of"]

CARDS: Mapping[str, str] = {
    "lwt": "Prompt scripts: steps that ask models and compute",
    "gasl": "Commands on a graph and a state",
    "plan": "GASL in JSON, as an agent emits it",
    "expr": "Expressions, in scripts and seeds",
    "seed": "Formula Seeds: what to read in reviews, and what to compute",
}
"""What has a card, with a title."""
PAGES: Mapping[str, str] = {
    "lwt": "The whole reference of LWT", "gasl": "The whole reference of GASL", "expr": "The whole reference of expressions",
    "plan": "Plans: GASL in JSON", "seed": "The whole reference of Formula Seeds", "state": "The state: what it keeps and promises",
    "rules": "Every diagnostic, with a bad and a good example", "mcp": "This server: its tools, resources and limits",
}  # fmt: skip
"""What has a page, with a title."""
SCHEMAS: Mapping[str, str] = {
    "plan": "JSON Schema of plans", "seed": "JSON Schema of Formula Seeds",
    "seed-000": "JSON Schema of Formula Seeds in their older form",
}  # fmt: skip
GRAMMARS: Mapping[str, str] = {name: f"Grammar of {name} for llguidance" for name in ("lwt", "gasl", "expr")}
"""What a model's output can be bound to."""


def card(name: str) -> str:
    """Return the card ``name``. Raises ``KeyError``."""
    CARDS[name]
    text = _written(name)
    if name == "plan":  # its commands are told once, in GASL's own card
        return text.replace("{commands}", _section(_written("gasl"), "## Commands"))
    return text


def _written(name: str) -> str:
    return (files(__package__) / "languages" / f"{name}.md").read_text(encoding="utf-8")


def _section(text: str, heading: str) -> str:
    return text.partition(f"{heading}\n")[2].partition("\n## ")[0].strip()


def page_of(name: str) -> str:
    """Return the page ``name`` of the reference. Raises ``KeyError``."""
    PAGES[name]
    root = __package__.partition(".")[0]
    return (files(root) / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8")


def schema_of(name: str) -> str:
    """Return a JSON Schema as text. Raises ``KeyError``."""
    schema = {"plan": PLAN_SCHEMA, "seed": SEED_SCHEMA, "seed-000": SEED_SCHEMA_000}[name]
    return json.dumps(schema, indent=2) + "\n"


def grammar_of(name: str) -> str:
    """Return a grammar for llguidance. Raises ``KeyError``."""
    GRAMMARS[name]
    return constrain(name, "llguidance")
