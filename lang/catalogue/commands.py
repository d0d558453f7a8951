"""The commands of GASL, with their forms, arguments and results, and the settings of ``SET``.

Each command is declared only here. Completion, hover texts, hints, the detection of programs, references in the programs of
scripts, and the linter use this table. ``language_card`` describes the language to models. See ``docs/internals.md``.
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
    """A command. ``form`` is its syntax: optional parts are in brackets, and ``name`` stands for any variable or field name.

    ``takes`` is the kind of items that the command's variables must hold; "items" means any list. ``gives`` is the kind of the
    result. "source" stands for the kind of the first variable. "" means that there is no result, or that its kind depends on
    the options (see ``linter.gasl.context``). ``also`` is a second form, for options that the first form does not allow.
    """

    node: type[gasl.Command]
    form: str
    takes: Literal["nodes", "items", ""] = ""
    gives: Kind | Literal["source", ""] = ""
    also: str = ""

    @property
    def word(self) -> str:
        """The keyword of the command, without optional words before it."""
        return next(word for word in self.form.split() if not word.startswith("["))


SPECS: tuple[CommandSpec, ...] = (
    CommandSpec(gasl.Param, 'PARAM name TEXT|INT|FLOAT|BOOL|LIST [= constant] [WITH_DESCRIPTION "..."]'),
    CommandSpec(gasl.Declare, 'DECLARE key AS LIST|DICT|COUNTER [WITH_DESCRIPTION "..."]'),
    CommandSpec(gasl.Reset, "RESET key"),
    CommandSpec(gasl.Update, "UPDATE key WITH name [MERGE|REPLACE]"),
    CommandSpec(
        gasl.Find, "FIND nodes|edges [WHERE condition] [ORDER BY value [DESC], ...] [LIMIT n [PER value, ...]] AS name"
    ),
    CommandSpec(
        gasl.FindPatterns,
        "FIND patterns (name:LABEL)-[name:TYPE]->(name), ... [WHERE condition] [ORDER BY value [DESC], ...] "
        "[LIMIT n [PER value, ...]] AS name",
        gives="rows",
    ),
    CommandSpec(
        gasl.FindPaths,
        "FIND paths [FROM name|(condition) TO name|(condition)] [VIA condition] [WHERE condition] [MAXLEN n] "
        "[SHORTEST [k] [BY value]] [DIRECTION out|in|both] [LIMIT n] AS name",
        takes="nodes",
        gives="paths",
    ),
    CommandSpec(
        gasl.FindCycles, "FIND cycles [VIA condition] [WHERE condition] [MAXLEN n] [LIMIT n] AS name", gives="paths"
    ),
    CommandSpec(
        gasl.Walk,
        "WALK name [VIA condition] [DEPTH n] [DIRECTION out|in|both] [TRACE] AS name",
        takes="nodes",
        gives="nodes",
    ),
    CommandSpec(gasl.Subgraph, "SUBGRAPH name RADIUS n AS name", takes="nodes", gives="subgraph"),
    CommandSpec(gasl.Connect, "CONNECT name TO name [VIA condition] AS name", takes="nodes", gives="edges"),
    CommandSpec(
        gasl.Measure,
        "MEASURE name|graph [ON name] USING algorithm[(setting = constant, ...)] [BY value] AS name",
        takes="nodes",
        gives="rows",
    ),
    CommandSpec(
        gasl.Select,
        "SELECT [DISTINCT] name [FIELDS value [AS name], ...] [WHERE condition] [SAMPLE n] AS name",
        takes="items",
    ),
    CommandSpec(gasl.Unnest, "UNNEST name BY value [AS name] AS name", takes="items", gives="rows"),
    CommandSpec(gasl.Count, "COUNT name [BY value [AS name], ...] AS name", takes="items"),
    CommandSpec(
        gasl.Aggregate,
        "AGGREGATE name [BY value [AS name], ...] COMPUTE sum(value) [AS name], ... AS name",
        takes="items",
        gives="rows",
    ),
    CommandSpec(
        gasl.Rank, "RANK name BY value [DESC], ... [LIMIT n [PER value, ...]] AS name", takes="items", gives="source"
    ),
    CommandSpec(
        gasl.Join,
        "[LEFT] JOIN name WITH name [AS name] ON value [= value], ... AS name",
        takes="items",
        gives="rows",
        also="JOIN name WITH name [AS name] ON value [= value] SIMILAR number AS name",
    ),
    CommandSpec(
        gasl.SetOperation, "UNION|INTERSECT|EXCEPT name WITH name [ON value [= value], ...] AS name", takes="items"
    ),
    CommandSpec(
        gasl.Process,
        'PROCESS name USING "instruction" AS name [RETURNING (column TYPE, ...)]',
        takes="items",
        gives="rows",
    ),
    CommandSpec(gasl.Classify, 'CLASSIFY name BY "question" INTO ("label", ...) AS name', takes="items", gives="rows"),
    CommandSpec(gasl.Analyze, 'ANALYZE key USING "instruction" AS name', gives="answer"),
    CommandSpec(gasl.Require, "REQUIRE EXISTS name"),
    CommandSpec(gasl.Assert, "ASSERT condition"),
    CommandSpec(gasl.SetCommand, "SET key = constant"),
    CommandSpec(gasl.Cancel, 'CANCEL PLAN "id"'),
    CommandSpec(gasl.Branch, "BRANCH IF condition THEN command [ELSE command]"),
    CommandSpec(gasl.On, "ON EMPTY|ERROR|PARTIAL|SCHEMA_MISMATCH name THEN command"),
    CommandSpec(gasl.Explain, "EXPLAIN command"),
)
"""All commands except TRY, which is a block of several lines."""

BLOCK_FORM = "TRY\n  command\n  ...\n[CATCH ANY\n  command\n  ...]\n[FINALLY\n  command\n  ...]\nEND"
"""The form of TRY."""
BLOCK_WORDS = frozenset({"TRY", "CATCH", "FINALLY", "END"})
"""The keywords of TRY, each on its own line."""

BY_NODE: Mapping[type, CommandSpec] = {spec.node: spec for spec in SPECS}
"""Maps the node class of each command to the command's specification."""


def _forms() -> dict[str, str]:
    forms: dict[str, str] = {}
    for spec in SPECS:
        words, _, rest = spec.form.partition(" ")
        for word in words.strip("[]").split("|"):
            form = f"{word} {rest}"
            if words.startswith("["):  # a command with an optional first word is known by both words
                forms[spec.word] = spec.form
            forms[word] = f"{forms[word]}, or {form}" if word in forms else form
        if spec.also:
            forms[spec.word] += f", or {spec.also}"
    return forms


FORMS: Mapping[str, str] = _forms()
"""Maps each keyword to the form of its command, which hints show."""
COMMANDS = tuple(FORMS)
"""The keywords that begin a command."""


def _names_after() -> dict[str, dict[str, bool]]:
    found: dict[str, dict[str, bool]] = {}
    for command, form in FORMS.items():
        shortest = re.sub(r"\[[^\[\]]*\]", "", form)  # SELECT [DISTINCT] name: a name may follow both words
        longest = re.sub(r"[\[\]]", "", form)
        named = set(re.findall(r"(?<![A-Z_|])([A-Z_]+) +name\b", f"{shortest} {longest}")) - {"AS", "PARAM"}
        for word in re.findall(r"[A-Z_]{2,}", longest):
            found.setdefault(word, {})[command] = word in named
    return {word: commands for word, commands in found.items() if any(commands.values())}


NAMES_AFTER: Mapping[str, Mapping[str, bool]] = _names_after()
"""Maps each keyword to its commands; for each command, the value says whether a variable follows the keyword.

In ``MEASURE x ON y`` a variable follows ``ON``; in ``JOIN x WITH y ON field`` a value follows it. Keywords that no variable
follows are omitted.
"""


OPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "CYCLES": "Paths that end where they begin.",
        "PATHS": "Simple paths: no node occurs twice.",
        "PATTERNS": "Rows with a field for each name of a node or an edge in the pattern.",
        "WHERE": "Keep the items for which the condition is true.",
        "ON": "The values that must be equal. In MEASURE, the variable whose items are the edges.",
        "VIA": "Use only edges for which the condition is true.",
        "ORDER": "Sort by values; null is last in both directions.",
        "LIMIT": "Keep the first n items.",
        "PER": "Keep the first n items of each group of equal values.",
        "MAXLEN": "Maximum number of edges of a path.",
        "SHORTEST": "All shortest paths between each pair of ends; with a number, that many simple paths. BY sets the cost of an edge.",
        "DIRECTION": "Follow edges forwards (out), backwards (in), or both ways.",
        "DEPTH": "Maximum number of edges from the nearest start.",
        "RADIUS": "Maximum number of edges from a node.",
        "TRACE": "Add to each node its depth (the number of edges from the nearest start) and its parent (the previous node).",
        "FIELDS": "The columns of the rows: fields, or other values with AS name.",
        "DISTINCT": "Keep only the first of equal rows; in count and collect, use each value only once.",
        "SAMPLE": "Keep a sample of n items, the same sample each time.",
        "COMPUTE": "Functions over the items of each group; without BY, over all items.",
        "SIMILAR": "Join pairs of strings whose similarity is at least this number, from 0 to 1.",
        "INCREASING": "True for a path along which no value is null or less than the value before it.",
        "LEN": "The number of elements, keys or characters.",
    }
)
"""Descriptions of the option keywords whose meaning is not obvious from the name."""


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
            Setting("adapter.caps.max_path_length", "int", 1, 100, "Maximum number of edges of a path."),
            Setting(
                "adapter.caps.max_results",
                "int",
                1,
                100_000_000,
                "Maximum number of items shown, stored or sent to a model.",
            ),
            Setting("adapter.caps.max_paths", "int", 1, 100_000_000, "Maximum number of paths that a command finds."),
            Setting("adapter.caps.max_pattern_edges", "int", 1, 20, "Maximum number of edges in the patterns."),
            Setting(
                "adapter.caps.max_examined",
                "int",
                1,
                100_000_000_000,
                "Maximum number of partial rows or candidates that a command examines.",
            ),
            Setting("adapter.caps.max_rows", "int", 1, 100_000_000, "Maximum number of rows in a variable."),
            Setting("adapter.caps.timeout_s", "float", 0.001, 86_400, "Time limit of a search in seconds."),
            Setting("llm.model", "text", None, None, "Name of a model that the host offers."),
            Setting("llm.temperature", "float", 0, 2, "Sampling temperature."),
            Setting("llm.max_concurrency", "int", 1, 1000, "Maximum number of concurrent model calls."),
            Setting("llm.max_tokens", "int", 1, 1_000_000, "Maximum number of tokens of an answer."),
        )
    }
)
"""Every key that SET accepts."""


def fault_of(setting: Setting, value: Any) -> str | None:
    """Return the reason why ``value`` is invalid for ``setting``, such as "takes a whole number, not a string"; None if it is valid."""
    if setting.kind == "text":
        if not isinstance(value, str):
            return f"takes a string, not {_kind(value)}"
        return None if value.strip() else "takes a non-empty string"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"takes {_NUMBERS[setting.kind]}, not {_kind(value)}"
    if setting.kind == "int" and not isinstance(value, int):
        return f"takes a whole number, not {value}"
    low, high = setting.minimum, setting.maximum
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        return f"takes {_NUMBERS[setting.kind]} from {low:,} to {high:,}, not {value}"
    return None


_NUMBERS = {"int": "a whole number", "float": "a number"}


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    return (
        "a string" if isinstance(value, str) else "a number" if isinstance(value, int | float) else "a list or object"
    )
