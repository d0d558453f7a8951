"""Texts that describe the languages to models: JSON Schemas, grammars, and lists of commands, operations and functions."""

import json
from typing import Literal

from ... import grammar
from ...lang.catalogue.commands import described
from ...lang.catalogue.operations import BUILTIN, FUNCTIONS, METHODS
from ...lang.constrain import LANGUAGES, constrain
from ...lang.documents.plan import PLAN_SCHEMA
from ...lang.documents.seed import SEED_SCHEMA, SEED_SCHEMA_000
from .shared_workspace import ALLOWED

__all__ = ["LANGUAGES", "command_list", "function_list", "grammar_text", "operation_list", "schema_text"]

command_list = described


def operation_list() -> str:
    """Return the operations that clients' scripts may call. Each line has an example, a description and the options."""
    lines = []
    for operation in map(BUILTIN.__getitem__, ALLOWED):
        options = ", ".join(f"`{each}`" for each in operation.options if each != "file")  # clients can't name files
        lines.append(f"- `{operation.example}`: {operation.doc}{f' Options: {options}.' if options else ''}")
    return "\n".join(lines)


def function_list() -> str:
    """Return the names of the methods and functions of expressions: one line for methods, one for functions."""
    return f"- Methods: `{' '.join(f'.{each}' for each in METHODS)}`.\n- Functions: `{' '.join(FUNCTIONS)}`."


def schema_text(name: str) -> str:
    """Return the JSON Schema of "plan", "seed" or "seed-000" (the older form) as text. Raises ``KeyError`` for another name."""
    schema = {"plan": PLAN_SCHEMA, "seed": SEED_SCHEMA, "seed-000": SEED_SCHEMA_000}[name]
    return json.dumps(schema, indent=2) + "\n"


def grammar_text(language: str, dialect: Literal["lark", "llguidance", "openai"] = "llguidance") -> str:
    """Return the grammar of ``language`` for ``dialect``: the grammar of the parser ("lark"), or a form for constrained decoding."""
    return grammar.inlined(language) if dialect == "lark" else constrain(language, dialect)
