"""What the three steps are asked with: their prompts filled in, and the JSON Schema of each answer.

The task, and what models wrote, stand between fences that they can't contain. Prompts are bounded: the task by ``LONGEST_TASK``, an
answer by ``LONGEST_ANSWER``, diagnostics by their number.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from blake3 import blake3

from ...adapters.llm_answers import canonical
from ...adapters.llm_strict import bounded_form
from ...lang.diagnostic import Diagnostic, as_json
from ...lang.source import Source
from ..commands.excerpts import clipped, fenced
from ..prompting import fill, read_prompt
from .conditions import Conditions
from .graph import Graph
from .results import PHASES, Phase

__all__ = [
    "LONGEST_ANSWER",
    "LONGEST_TASK",
    "SMALL_TOKENS",
    "ask_for",
    "repair_prompt",
    "schema_of",
    "shown",
    "version",
]

LONGEST_TASK = 100_000
"""Characters of a task."""
LONGEST_ANSWER = 200_000
"""Characters of an answer; a seed of a thousand steps has as many."""
_DIAGNOSTICS = 30
"""Diagnostics that a model is shown at once, errors first; most have one cause."""
_MESSAGE = 400
SMALL_TOKENS = 1_000
_SMALL_TEXT = 40
_SMALL_LIST = 2
_VERSION = 1
"""Of what this package makes of answers: what another one has compiled is asked for again."""


@cache
def schema_of(phase: Phase, *, small: bool = False) -> Mapping[str, Any]:
    """Return the JSON Schema of the answer to a step; ``small``: one whose answers have less than ``SMALL_TOKENS``."""
    if small:
        bounded: dict[str, Any] = bounded_form(schema_of(phase), text=_SMALL_TEXT, items=_SMALL_LIST)
        return bounded
    from ...lang.documents.seed import SEED_SCHEMA
    from ...lang.documents.shape import json_schema
    from .shapes import ConditionsSchema, GraphSchema

    if phase == "seed":
        return SEED_SCHEMA
    return json_schema(ConditionsSchema if phase == "conditions" else GraphSchema)


@cache
def version() -> str:
    """Return what changes when a prompt, a schema, or the making of seeds from answers changes: a part of the cache's key."""
    texts = [read_prompt(__package__, name) for name in (*PHASES, "repair")]
    return blake3(canonical([_VERSION, texts, [schema_of(phase) for phase in PHASES]])).hexdigest(length=16)


def ask_for(phase: Phase, task: str, conditions: Conditions | None = None, graph: Graph | None = None) -> str:
    """Return the prompt of a step; those before it are given by what they were answered."""
    values = {"task": fenced(task)}
    if conditions is not None:
        values["conditions"] = fenced(_compact(conditions.document))
    if graph is not None:
        values["graph"] = fenced(_compact(graph.document))
    return fill(read_prompt(__package__, phase), values)


def _compact(document: Mapping[str, Any]) -> str:
    """Return a document with a line for each element of its lists: as long as needed, and easy to find one's way in."""
    parts = []
    for key, value in document.items():
        if isinstance(value, list) and value:
            items = ",\n  ".join(json.dumps(item, ensure_ascii=False) for item in value)
            parts.append(f" {json.dumps(key)}: [\n  {items}\n ]")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(parts) + "\n}"


def repair_prompt(prompt: str, text: str, told: Sequence[Mapping[str, Any]]) -> str:
    """Return the prompt that asks for a repair of ``text``, the answer to ``prompt``, in which ``told`` is wrong."""
    faults = fenced("[\n" + ",\n".join(json.dumps(each, ensure_ascii=False) for each in told) + "\n]")
    return fill(read_prompt(__package__, "repair"), {"request": prompt, "answer": fenced(text), "diagnostics": faults})


def shown(diagnostics: Sequence[Diagnostic], source: Source) -> tuple[dict[str, Any], ...]:
    """Return what a model is told of an answer: its errors as JSON, then what is doubtful, bounded."""
    ordered = sorted(diagnostics, key=lambda each: ("error", "warning", "info").index(each.severity))
    told = []
    for each in ordered[:_DIAGNOSTICS]:
        found = as_json(each, source)
        found["message"] = clipped(found["message"], _MESSAGE)
        found["edits"] = [edit for edit in found["edits"] if len(edit["text"]) <= 10 * _MESSAGE]
        told.append(found)
    return tuple(told)
