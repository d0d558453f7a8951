"""The folder of a compilation: the task, the result of each step, the seed, and the log of events that the report reads.

``runtime.runs.journal`` creates the folder. The head of the run has ``kind`` "compile" and the task as its ``script``.
Records::

    {"record": "run_started", ...}
    {"record": "step_done", "step", "status", "output", "reason", "usage", "cost", "calls", "repairs", "seconds", ...}
    {"record": "seed_done", "text"}
    {"record": "run_finished", "status", "seconds", "usage", "cost", "calls", "reason"}

A compilation cannot be resumed from this folder: finished calls are in the call cache, and finished compilations in the cache of
compiled tasks.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from attrs import field, frozen
from blake3 import blake3

from ....adapters.llm.json_schema import canonical
from ....adapters.llm.strict_schema import bounded_form
from ....adapters.sqlite_store import Values, value_table
from ....lang.diagnostic import Diagnostic, as_json, compatible
from ....lang.source import Source
from ...errors import check_text, whole_number_validator
from ...excerpts import clipped, fenced, fill, read_prompt
from ...runs.journal import COMPILE, RunRecorder, begin, figures, hash_of
from .compile_results import PHASES, Compiled, Phase
from .computation_graph import Graph
from .conditions import Conditions

# The filled-in prompts of the three steps, and the JSON Schema of each answer. The task and model output are placed between
# fences that they cannot contain. Prompts are bounded: the task by ``LONGEST_TASK``, the answers to earlier steps by
# ``LONGEST_ANSWER``, a returned draft by ``LONGEST_SHOWN``, its diagnostics by ``LONGEST_TOLD``.

LONGEST_TASK = 100_000
"""Maximum characters of a task."""
LONGEST_ANSWER: Mapping[Phase, int] = {"conditions": 100_000, "graph": 100_000, "seed": 200_000}
"""Maximum characters of the answer to each step. A seed may have about 1,000 steps. The first two answers are limited more,
because later prompts repeat them."""
LONGEST_SHOWN = 40_000
"""Maximum characters of a draft returned for repair; a longer draft is cut to the text around its faults."""
LONGEST_TOLD = 40_000
"""Maximum characters of the diagnostics, as JSON, returned with the draft."""
_DIAGNOSTICS = 30
"""Maximum number of diagnostics shown to a model at once, errors first; most diagnostics share one cause."""
_MESSAGE = 400
_HINTS = 8
_EDITS = 6_000
"""Maximum characters of a diagnostic's edits, as JSON; longer edits are omitted, because a part of them would fix nothing."""
_MARK = 80
"""Maximum characters of the note about omitted text between two excerpts."""
SMALL_TOKENS = 1_000
_SMALL_TEXT = 40
_SMALL_LIST = 2
_VERSION = 1
"""Version of the code in this package; cached results of other versions are not reused."""


@cache
def schema_of(phase: Phase, *, small: bool = False) -> Mapping[str, Any]:
    """Return the JSON Schema of the answer to a step.

    If ``small`` is true, texts and lists are bounded, so that the answer fits ``SMALL_TOKENS``.
    """
    if small:
        bounded: dict[str, Any] = bounded_form(schema_of(phase), text=_SMALL_TEXT, items=_SMALL_LIST)
        return bounded
    from ....lang.documents.seed import SEED_SCHEMA
    from ....lang.documents.shape import json_schema
    from .conditions import ConditionsSchema, GraphSchema

    if phase == "seed":
        return _offered(SEED_SCHEMA)
    return json_schema(ConditionsSchema if phase == "conditions" else GraphSchema)


_PERSONAL = frozenset({"allow_invalid", "meta", "resolve", "reduce"})
"""Keys of a seed that only a person writes, because they depend on the data or cost further calls."""
_UNOFFERED = frozenset({"Example", "Reduce", "Resolve"})
"""Titles of the definitions that are left out of the schema: those of ``_PERSONAL`` keys and of examples."""


def _offered(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of seeds that a model writes: without examples and ``_PERSONAL`` keys.

    Steps and outputs are required.
    """
    parts = {name: dict(each) for name, each in schema["$defs"].items() if each["title"] not in _UNOFFERED}
    for part in parts.values():
        part["properties"] = {name: each for name, each in part["properties"].items() if name != "examples"}
    offered = {name: each for name, each in schema["properties"].items() if name not in _PERSONAL}
    whole = {name: each for name, each in schema.items() if name != "dependentRequired"}
    return {**whole, "$defs": parts, "properties": offered, "required": ["compute", "output"]}


@cache
def version() -> str:
    """Return a digest of the prompts, the schemas and ``_VERSION``. The digest is part of the cache key."""
    texts = [read_prompt(__package__, name) for name in (*PHASES, "repair")]
    return blake3(canonical([_VERSION, texts, [schema_of(phase) for phase in PHASES]])).hexdigest(length=16)


def ask_for(phase: Phase, task: str, conditions: Conditions | None = None, graph: Graph | None = None) -> str:
    """Return the prompt of a step; ``conditions`` and ``graph`` are the checked answers to the earlier steps."""
    values = {"task": fenced(task)}
    if conditions is not None:
        values["conditions"] = fenced(_compact(conditions.document))
    if graph is not None:
        values["graph"] = fenced(_compact(graph.document))
    return fill(read_prompt(__package__, phase), values)


def _compact(document: Mapping[str, Any]) -> str:
    """Return a document as compact JSON in which every list element has its own line."""
    parts = []
    for key, value in document.items():
        if isinstance(value, list) and value:
            items = ",\n  ".join(json.dumps(item, ensure_ascii=False) for item in value)
            parts.append(f" {json.dumps(key)}: [\n  {items}\n ]")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(parts) + "\n}"


def repair_prompt(prompt: str, text: str, told: Sequence[Mapping[str, Any]]) -> str:
    """Return the prompt that requests a repair of ``text``, the answer to ``prompt``; ``told`` contains the diagnostics of ``text``.

    The result is longer than ``prompt`` by at most ``LONGEST_SHOWN`` + ``LONGEST_TOLD`` + 1,000 characters, unless ``text`` has
    long runs of backticks (its fences must be longer than these runs).
    """
    faults = fenced("[\n" + ",\n".join(json.dumps(each, ensure_ascii=False) for each in told) + "\n]")
    answer = fenced(text)
    if len(text) > LONGEST_SHOWN:
        cut = "its beginning, its end and what stands around the faults"
        answer = f"(It has {len(text):,} characters; only {cut} are shown.)\n{fenced(_excerpts(text, told))}"
    return fill(read_prompt(__package__, "repair"), {"request": prompt, "answer": answer, "diagnostics": faults})


def _excerpts(text: str, told: Sequence[Mapping[str, Any]]) -> str:
    """Return both ends of ``text`` and the text around the spans of ``told``: at most ``LONGEST_SHOWN`` characters in total."""
    places = [each["span"] for each in told if each["span"] is not None]
    each_has = LONGEST_SHOWN // (len(places) + 2) - _MARK
    parts = [(0, each_has), (len(text) - each_has, len(text))]
    for place in places:  # more text before a fault than after the fault, because earlier text shows the context
        start = max(0, place["start"] - 2 * each_has // 3)
        parts.append((start, min(len(text), start + each_has)))
    shown, reached = [], 0
    for start, end in sorted(parts):
        if start > reached:
            shown.append(f"\n… [characters {reached:,} to {start:,} are left out]\n")
        shown.append(text[max(start, reached) : end])
        reached = max(reached, end)
    return "".join(shown)


def diagnostics_for_model(diagnostics: Sequence[Diagnostic], source: Source) -> tuple[dict[str, Any], ...]:
    """Return the diagnostics for a model as JSON objects, errors first; at most ``LONGEST_TOLD`` characters in total."""
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


# Checks a task before any call is made.

REPAIRS = 3
MOST_REPAIRS = 10
_NAME = 1_000


def _task(request: "CompileRequest", attribute: Any, value: Any) -> None:
    check_text(
        "task",
        value,
        LONGEST_TASK,
        ("the task is empty", "describe the values to compute, and how they follow from reviews"),
    )


def _task_name(request: "CompileRequest", attribute: Any, value: Any) -> None:
    check_text("name", value, _NAME)


@frozen
class CompileRequest:
    """A task description. ``name`` is the seed's task name; if it is empty, the model chooses a name.

    ``repairs`` is the maximum number of repairs per step. Raises ``RequestError``.
    """

    task: str = field(validator=_task)
    name: str = field(default="", validator=_task_name)
    repairs: int = field(default=REPAIRS, validator=whole_number_validator(0, MOST_REPAIRS))


class CompileRecorder(RunRecorder):
    """Writes the results of a compilation."""

    def ended(self, made: Compiled) -> None:
        """Write the result and release the run."""
        for step in made.steps:
            self.append(
                {
                    "record": "step_done", "step": step.phase, "item": None, "status": step.status, "input_hash": "",
                    "output": step.text, "reason": step.reason, "repairs": step.repairs,
                    **figures(step.seconds, step.usage, step.cost, step.calls),
                }
            )  # fmt: skip
        if made.text:
            self.append({"record": "seed_done", "text": made.text})
        status = "cancelled" if made.stopped == "cancelled" else "complete" if made.status == "done" else "failed"
        self.end(status, made.seconds, made.usage, made.cost, made.calls, reason=made.reason[:1_000])


def start(
    request: CompileRequest, *, model: str = "", name: str = "compile", options: Mapping[str, Any] | None = None,
    base: Path | None = None,
) -> CompileRecorder:  # fmt: skip
    """Create the folder of a new run and return its recorder. Raises ``RunError``."""
    script_hash = hash_of(request.task.encode("utf-8", "surrogatepass"))
    told = {"name": request.name, "repairs": request.repairs, **(options or {})}
    return CompileRecorder(
        *begin(base, kind=COMPILE, script=request.task, script_hash=script_hash, model=model, name=name, options=told)
    )


# The cache of compiled tasks: the seed for each model, prompts, task and options. See ``docs/design/seed.md#compiler``. The cache
# is stored next to the call cache. Only seeds that passed the check are stored; a stored seed is checked again before it is used.


class Compilations:
    """The cache in the file ``path``. ``identity`` is the model's spec; ``warn`` receives one warning if the file is broken."""

    def __init__(self, path: Path, identity: str, *, warn: Callable[[str], None] | None = None) -> None:
        self._values = Values(path, value_table("compiled_1", "the cache of compiled tasks"), warn=warn)
        self._identity = identity

    async def find(self, task: str, options: Any) -> dict[str, Any] | None:
        """Return the stored result of ``task`` with ``options``; None if the cache has no result."""
        await self._values.opened()
        found = self._values.value(self._key(task, options))
        if found is not None and not isinstance(found, dict):
            self._values.give_up("a value in it has an unknown form")
            return None
        return found

    async def keep(self, task: str, options: Any, value: dict[str, Any]) -> None:
        """Store the result of a task."""
        await self._values.keep(Values.row(self._key(task, options), value))

    async def aclose(self) -> None:
        """Close the file."""
        await self._values.aclose()

    def _key(self, task: str, options: Any) -> bytes:
        return blake3(canonical([self._identity, version(), task, options])).digest()
