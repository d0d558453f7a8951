"""The commands of GASL, with their forms, arguments and results, and the settings of ``SET``.

Each command is declared only here. Completion, hover, hints, the detection of programs, references in scripts, the linter's
kinds of values, and the prompts that describe the language to models are derived from this table. See ``docs/internals.md``.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from attrs import frozen

from ..trees import gasl

Kind: TypeAlias = Literal["nodes", "edges", "paths", "subgraph", "rows", "number", "answer", "error", "unknown"]
"""The kind of a value: a list of nodes, edges, paths or other rows; an object (subgraph, answer, error); or a number."""


@frozen
class CommandSpec:
    """A command. ``form`` is its syntax, with optional parts in brackets and ``name`` for each variable.

    ``takes`` is the kind of items that the command's variables must hold ("items": any list). ``gives`` is the kind of the
    result; "source" means the kind of the first variable, and "" means no result, or a kind that depends on the command's options
    (see ``linter.gasl.context``). ``note`` explains the command to a model. ``planned``: the planner's prompt describes the command.
    """

    node: type[gasl.Command]
    form: str
    takes: Literal["nodes", "items", ""] = ""
    gives: Kind | Literal["source", ""] = ""
    note: str = ""
    planned: bool = True


SPECS: tuple[CommandSpec, ...] = (
    CommandSpec(
        gasl.Declare,
        'DECLARE key AS LIST|DICT|COUNTER [WITH_DESCRIPTION "..."]',
        note="before the first UPDATE of a key; a dotted key needs a declared DICT above it",
    ),
    CommandSpec(gasl.Reset, "RESET key", note="empty a key; its declaration remains", planned=False),
    CommandSpec(
        gasl.Update,
        "UPDATE key WITH name [MERGE|REPLACE]",
        note="keep a variable with its evidence; MERGE is the default; a COUNTER adds what comes each time, REPLACE sets it",
    ),
    CommandSpec(
        gasl.Find,
        "FIND nodes|edges [WHERE condition] [ORDER BY field] [LIMIT n] AS name",
        note="ORDER BY field DESC: the highest first",
    ),
    CommandSpec(
        gasl.FindPaths,
        "FIND paths [FROM name|(condition) TO name|(condition)] [VIA condition] [WHERE condition] [MAXLEN n] "
        "[SHORTEST] [LIMIT n] AS name",
        takes="nodes",
        gives="paths",
    ),
    CommandSpec(
        gasl.Walk,
        "WALK name [VIA condition] [DEPTH n] [DIRECTION out|in|both] AS name",
        takes="nodes",
        gives="nodes",
        note="the neighbours of nodes",
    ),
    CommandSpec(
        gasl.Subgraph,
        "SUBGRAPH name RADIUS n AS name",
        takes="nodes",
        gives="subgraph",
        note="the nodes within n edges, and all edges between them",
        planned=False,
    ),
    CommandSpec(
        gasl.Connect,
        "CONNECT name TO name [VIA condition] AS name",
        takes="nodes",
        gives="edges",
        note="the edges between two sets of nodes",
        planned=False,
    ),
    CommandSpec(
        gasl.Measure,
        "MEASURE name|graph USING algorithm AS name",
        takes="nodes",
        gives="rows",
        note="algorithms: pagerank, degree, betweenness, components, communities",
    ),
    CommandSpec(gasl.SelectFields, "SELECT name FIELDS field, ... AS name", takes="items", gives="rows"),
    CommandSpec(gasl.SelectWhere, "SELECT name WHERE condition AS name", takes="items", gives="source"),
    CommandSpec(gasl.Count, "COUNT name [BY field] AS name", takes="items"),
    CommandSpec(
        gasl.Aggregate,
        "AGGREGATE name BY field COMPUTE sum(field), ... AS name",
        takes="items",
        gives="rows",
        note="functions: count, sum, mean, min, max, median",
    ),
    CommandSpec(gasl.Rank, "RANK name BY field [DESC] [LIMIT n] AS name", takes="items", gives="source"),
    CommandSpec(gasl.Join, "JOIN name WITH name ON field [= field] AS name", takes="items", gives="rows"),
    CommandSpec(gasl.SetOperation, "UNION|INTERSECT|EXCEPT name WITH name [ON field] AS name", takes="items"),
    CommandSpec(
        gasl.Process,
        'PROCESS name USING "instruction" AS name [RETURNING (column TYPE, ...)]',
        takes="items",
        gives="rows",
        note="ask a model to work on the items",
    ),
    CommandSpec(
        gasl.Classify,
        'CLASSIFY name BY "question" INTO ("label", ...) AS name',
        takes="items",
        gives="rows",
        note="ask a model for a label of each item",
    ),
    CommandSpec(
        gasl.Analyze, 'ANALYZE key USING "instruction" AS name', gives="answer", note="ask a model about a key"
    ),
    CommandSpec(gasl.Require, "REQUIRE EXISTS name"),
    CommandSpec(gasl.Assert, "ASSERT condition", note="for example ASSERT LEN ${name} > 0"),
    CommandSpec(gasl.SetCommand, "SET key = value", note="for example SET adapter.caps.max_path_length = 2"),
    CommandSpec(gasl.Cancel, 'CANCEL PLAN "id"', planned=False),
    CommandSpec(gasl.Branch, "BRANCH IF condition THEN command [ELSE command]", planned=False),
    CommandSpec(gasl.On, "ON EMPTY|ERROR|PARTIAL|SCHEMA_MISMATCH name THEN command"),
    CommandSpec(gasl.Explain, "EXPLAIN command", note="show how a command would run", planned=False),
)
"""All commands except TRY, which is a block of several lines."""

BY_NODE: Mapping[type, CommandSpec] = {spec.node: spec for spec in SPECS}
"""Maps each class of command nodes to its command."""


def _forms() -> dict[str, str]:
    forms: dict[str, str] = {}
    for spec in SPECS:
        words, _, rest = spec.form.partition(" ")
        for word in words.split("|"):
            form = f"{word} {rest}"
            forms[word] = f"{forms[word]}, or {form}" if word in forms else form
    return forms


FORMS: Mapping[str, str] = _forms()
"""Maps each keyword to the form of its command, for hints."""
COMMANDS = tuple(FORMS)
"""The keywords that begin a command."""
BEFORE_NAMES = frozenset(re.findall(r"(?<![A-Z_|])([A-Z_]+) name\b", " ".join(FORMS.values()))) - {"AS"}
"""The keywords that come directly before a variable that a command reads."""


def described(*, for_planner: bool = False) -> str:
    """Return the forms with their notes, one per line, for a prompt; ``for_planner``: only the commands that plans usually need."""
    lines = (
        f"{spec.form}    {spec.note}" if spec.note else spec.form for spec in SPECS if spec.planned or not for_planner
    )
    return "\n".join(lines)


# The settings that ``SET`` may change for a plan. The host may set lower maximums for the caps; the limits here always apply.
# See ``docs/design/gasl.md#execution``.


@frozen
class Setting:
    """A key of ``SET``. ``minimum`` and ``maximum`` are the inclusive bounds of a number; a setting of kind "text" has no bounds."""

    key: str
    kind: Literal["int", "float", "text"]
    minimum: float | None
    maximum: float | None
    doc: str


SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        setting.key: setting
        for setting in (
            Setting("adapter.caps.max_path_length", "int", 1, 100, "Edges of the longest path that is looked for."),
            Setting("adapter.caps.max_results", "int", 1, 100_000_000, "Nodes or edges that a command may find."),
            Setting("adapter.caps.max_paths", "int", 1, 100_000_000, "Paths that a command may find."),
            Setting("adapter.caps.timeout_s", "float", 0.001, 86_400, "Seconds that a command may search."),
            Setting("llm.model", "text", None, None, "A model that the host offers under this name."),
            Setting("llm.temperature", "float", 0, 2, "Sampling temperature."),
            Setting("llm.max_concurrency", "int", 1, 1000, "Model calls under way at once."),
            Setting("llm.max_tokens", "int", 1, 1_000_000, "The most tokens that an answer may have."),
        )
    }
)
"""Every key that SET accepts."""


def fault_of(setting: Setting, value: Any) -> str | None:
    """Return the reason why ``value`` is invalid for ``setting``, as a clause ("takes a whole number, not a text"), or None."""
    if setting.kind == "text":
        if not isinstance(value, str):
            return f"takes a text, not {_kind(value)}"
        return None if value.strip() else "takes a text that is not empty"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"takes {_NUMBERS[setting.kind]}, not {_kind(value)}"
    if setting.kind == "int" and not isinstance(value, int):
        return f"takes a whole number, not {value}"
    low, high = setting.minimum, setting.maximum
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        return f"takes {_NUMBERS[setting.kind]} of at least {low:,} and at most {high:,}, not {value}"
    return None


_NUMBERS = {"int": "a whole number", "float": "a number"}


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    return "a text" if isinstance(value, str) else "a number" if isinstance(value, int | float) else "a list or object"
