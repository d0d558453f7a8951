"""Texts that describe the languages to models: JSON Schemas, grammars, the card of GASL, and lists of operations and functions."""

import json
from collections.abc import Mapping
from typing import Any, Literal

from ... import grammar
from ...lang.catalogue.language_card import language_card
from ...lang.catalogue.operations import BUILTIN, FUNCTIONS, METHODS
from ...lang.constrain import LANGUAGES, constrain
from ...lang.documents.plan import PLAN_SCHEMA
from ...lang.documents.seed import SEED_SCHEMA, SEED_SCHEMA_000
from .shared_workspace import ALLOWED

__all__ = ["LANGUAGES", "function_list", "grammar_text", "language_card", "operation_list", "schema_text"]


def operation_list() -> str:
    """Return a line for each operation that clients' scripts may call, with an example, a description and the options."""
    lines = []
    for operation in map(BUILTIN.__getitem__, ALLOWED):
        options = ", ".join(
            f"`{each}`" for each in operation.options if not each.endswith("file")
        )  # clients can't name files
        lines.append(f"- `{operation.example}`: {operation.doc}{f' Options: {options}.' if options else ''}")
    return "\n".join(lines)


def function_list() -> str:
    """Return the names of the methods and functions of expressions: one line for methods, one for functions."""
    return f"- Methods: `{' '.join(f'.{each}' for each in METHODS)}`.\n- Functions: `{' '.join(FUNCTIONS)}`."


def schema_text(name: str, *, strict: bool = False) -> str:
    """Return the JSON Schema of "plan", "seed" or "seed-000" (the older form) as text. Raises ``KeyError`` for another name.

    With ``strict``, the schema has the form that OpenAI's strict mode requires. Raises ``ValueError`` for a schema without such
    a form.
    """
    schema: Mapping[str, Any] | None = {"plan": PLAN_SCHEMA, "seed": SEED_SCHEMA, "seed-000": SEED_SCHEMA_000}[name]
    if strict:
        from ...adapters.llm.strict_schema import strict_form

        schema = strict_form(json.loads(json.dumps(schema)), bounds=True)
        if schema is None:
            raise ValueError(f"the schema of {name} has no strict form")
    return json.dumps(schema, indent=2) + "\n"


def grammar_text(language: str, dialect: Literal["lark", "llguidance", "openai"] = "llguidance") -> str:
    """Return the grammar of ``language`` for ``dialect``: the grammar of the parser ("lark"), or a form for constrained decoding."""
    return grammar.inlined(language) if dialect == "lark" else constrain(language, dialect)
