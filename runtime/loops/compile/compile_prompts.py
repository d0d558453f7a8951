"""What the three steps are asked with: their prompts filled in, and the JSON Schema of each answer.

The task, and what models wrote, stand between fences that they can't contain. Prompts are bounded: the task by ``LONGEST_TASK``, the
answers to the steps before by ``LONGEST_ANSWER``, a draft that goes back by ``LONGEST_SHOWN``, its diagnostics by ``LONGEST_TOLD``.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from attrs import frozen
from blake3 import blake3

from ....adapters.llm.answers import canonical
from ....adapters.llm.strict_schema import bounded_form
from ....lang.diagnostic import Diagnostic, as_json, compatible
from ....lang.source import Source
from ...errors import RequestError, check_pairs
from ...excerpts import clipped, fenced
from ...prompt_files import fill, read_prompt
from .compile_results import PHASES, Phase
from .computation_graph import Graph
from .conditions import Conditions

__all__ = [
    "LONGEST_ANSWER",
    "LONGEST_SHOWN",
    "LONGEST_TOLD",
    "MOST_REPAIRS",
    "SMALL_TOKENS",
    "CompileRequest",
    "ask_for",
    "repair_prompt",
    "schema_of",
    "shown",
    "version",
]

LONGEST_TASK = 100_000
"""Characters of a task."""
LONGEST_ANSWER: Mapping[Phase, int] = {"conditions": 100_000, "graph": 100_000, "seed": 200_000}
"""Characters of an answer. A seed of a thousand steps has as many; the first two are repeated in the prompts that follow."""
LONGEST_SHOWN = 40_000
"""Characters of a draft that goes back with what is wrong; of a longer one what stands around its faults."""
LONGEST_TOLD = 40_000
"""Characters of the diagnostics, as JSON, that go with it."""
_DIAGNOSTICS = 30
"""Diagnostics that a model is shown at once, errors first; most have one cause."""
_MESSAGE = 400
_HINTS = 8
_EDITS = 6_000
"""Characters of the edits of a diagnostic, as JSON: more are not offered, for half of them would put nothing right."""
_MARK = 80
"""Characters, at most, that say what is left out between two excerpts."""
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
    from ....lang.documents.seed import SEED_SCHEMA
    from ....lang.documents.shape import json_schema
    from .conditions import ConditionsSchema, GraphSchema

    if phase == "seed":
        offered = {name: each for name, each in SEED_SCHEMA["properties"].items() if name != "allow_invalid"}
        return {**SEED_SCHEMA, "properties": offered}  # how much may be missing is for a person to say
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
    """Return the prompt that asks for a repair of ``text``, the answer to ``prompt``, in which ``told`` is wrong.

    It is longer than ``prompt`` by ``LONGEST_SHOWN``, ``LONGEST_TOLD`` and a thousand characters at most, if ``text`` has no long rows of
    backticks (its fences are longer than these).
    """
    faults = fenced("[\n" + ",\n".join(json.dumps(each, ensure_ascii=False) for each in told) + "\n]")
    answer = fenced(text)
    if len(text) > LONGEST_SHOWN:
        cut = "its beginning, its end and what stands around the faults"
        answer = f"(It has {len(text):,} characters; only {cut} are shown.)\n{fenced(_excerpts(text, told))}"
    return fill(read_prompt(__package__, "repair"), {"request": prompt, "answer": answer, "diagnostics": faults})


def _excerpts(text: str, told: Sequence[Mapping[str, Any]]) -> str:
    """Return both ends of ``text`` and what stands around the spans of ``told``: ``LONGEST_SHOWN`` characters at most."""
    places = [each["span"] for each in told if each["span"] is not None]
    each_has = LONGEST_SHOWN // (len(places) + 2) - _MARK
    parts = [(0, each_has), (len(text) - each_has, len(text))]
    for place in places:  # more of what stands before: a fault shows there what it belongs to
        start = max(0, place["start"] - 2 * each_has // 3)
        parts.append((start, min(len(text), start + each_has)))
    shown, reached = [], 0
    for start, end in sorted(parts):
        if start > reached:
            shown.append(f"\n… [characters {reached:,} to {start:,} are left out]\n")
        shown.append(text[max(start, reached) : end])
        reached = max(reached, end)
    return "".join(shown)


def shown(diagnostics: Sequence[Diagnostic], source: Source) -> tuple[dict[str, Any], ...]:
    """Return what a model is told of an answer: its errors as JSON, then what is doubtful; ``LONGEST_TOLD`` characters at most."""
    ordered = sorted(compatible(diagnostics), key=lambda each: ("error", "warning", "info").index(each.severity))
    told: list[dict[str, Any]] = []
    room = LONGEST_TOLD - 10
    for each in ordered[:_DIAGNOSTICS]:
        found = as_json(each, source)
        found["message"] = clipped(found["message"], _MESSAGE)
        found["hints"] = [
            hint if len(hint) <= _MESSAGE else clipped(hint, _MESSAGE) for hint in found["hints"][:_HINTS]
        ]
        if len(json.dumps(found["edits"], ensure_ascii=False)) > _EDITS:
            found["edits"] = []
        room -= len(json.dumps(found, ensure_ascii=False)) + 2
        if room < 0:
            break
        told.append(found)
    return tuple(told)


# What a task must be to be compiled, and the error for one that is none: told before anything is spent.


REPAIRS = 3
MOST_REPAIRS = 10
_NAME = 1_000


@frozen
class CompileRequest:
    """A task in words. ``name`` is the seed's task name ("": the model finds one); ``repairs``: the most in each step."""

    task: str
    name: str = ""
    repairs: int = REPAIRS

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.task, str):
            raise RequestError("task", f"a text is wanted, not {type(self.task).__name__}")
        if not self.task.strip():
            raise RequestError("task", "it is empty", "say which values are wanted, and how they come from reviews")
        if len(self.task) > LONGEST_TASK:
            message = f"it has {len(self.task):,} characters; {LONGEST_TASK:,} is the most"
            raise RequestError(
                "task", message, "a task says what to compute; the reviews themselves come with seed run"
            )
        for parameter, text in (("task", self.task), ("name", self.name)):
            check_pairs(parameter, str(text))
        if not isinstance(self.name, str):
            raise RequestError("name", f"a text is wanted, not {type(self.name).__name__}")
        if len(self.name) > _NAME:
            raise RequestError("name", f"it has {len(self.name):,} characters; {_NAME:,} is the most")
        if type(self.repairs) is not int or not 0 <= self.repairs <= MOST_REPAIRS:
            raise RequestError("repairs", f"{str(self.repairs)[:60]} is no whole number from 0 to {MOST_REPAIRS}")
