"""The tree of a GASL program. Each command has its own class. See ``docs/design/gasl.md#commands``.

A program consists of statements and comments in source order. A statement is a command and its reason; nested
constructs (``TRY``, ``BRANCH``, ``ON``, ``EXPLAIN``) contain statements or commands. Names have spans, so that a check
can report the place of a variable instead of a line.
"""

from collections.abc import Collection, Iterator
from typing import Literal, TypeAlias

from attrs import field, frozen

from ..diagnostic import Diagnostic
from ..source import Source
from . import Node
from .conditions import Condition

StateType = Literal["LIST", "DICT", "COUNTER"]
ColumnType = Literal["TEXT", "INT", "FLOAT", "BOOL", "LIST"]
Function = Literal["count", "sum", "mean", "min", "max", "median"]
OnStatus = Literal["EMPTY", "ERROR", "PARTIAL", "SCHEMA_MISMATCH"]

JOINED_FIELDS = 1_000
"""Maximum number of fields in a row of a JOIN."""


@frozen
class Name(Node):
    """A variable's name, without backticks."""

    text: str


@frozen
class Key(Node):
    """A key of the state: ``network.authors`` is ``("network", "authors")``."""

    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """The key with its dots."""
        return ".".join(self.parts)


@frozen
class Path(Node):
    """A field of items, as in ``SELECT ... FIELDS``: one or more names, joined by dots in the text."""

    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """The path with its dots."""
        return ".".join(self.parts)


@frozen
class Order(Node):
    """One field of ``ORDER BY``. Null is last in both directions."""

    field: Path
    descending: bool = False


# Declaring and updating


@frozen
class Declare(Node):
    """``DECLARE key AS LIST|DICT|COUNTER [WITH_DESCRIPTION "..."]``."""

    key: Key
    type: StateType
    description: str | None = None


@frozen
class Reset(Node):
    """``RESET key``: empty the key; its declaration remains."""

    key: Key


@frozen
class Update(Node):
    """``UPDATE key WITH var [MERGE|REPLACE]``. If the text has no mode, ``mode`` is None, which means MERGE."""

    key: Key
    source: Name
    mode: Literal["MERGE", "REPLACE"] | None = None


# Finding


@frozen
class Find(Node):
    """``FIND nodes|edges [WHERE ...] [ORDER BY ...] [LIMIT n] AS var``."""

    kind: Literal["nodes", "edges"]
    where: Condition | None
    order: tuple[Order, ...]
    limit: int | None
    into: Name


@frozen
class FindPaths(Node):
    """``FIND paths [FROM a TO b] [VIA ...] [WHERE ...] [MAXLEN n] [SHORTEST] [LIMIT n] AS var``."""

    start: Name | Condition | None
    end: Name | Condition | None
    via: Condition | None
    where: Condition | None
    max_length: int | None
    shortest: bool
    limit: int | None
    into: Name


@frozen
class Walk(Node):
    """``WALK var [VIA ...] [DEPTH n] [DIRECTION out|in|both] AS var``: the neighbours of a set of nodes."""

    source: Name
    via: Condition | None
    depth: int | None
    direction: Literal["out", "in", "both"] | None
    into: Name


@frozen
class Subgraph(Node):
    """``SUBGRAPH var RADIUS n AS var``: the nodes within ``radius`` edges and all edges between these nodes, as one item."""

    source: Name
    radius: int
    into: Name


@frozen
class Connect(Node):
    """``CONNECT a TO b [VIA ...] AS var``: the edges between two sets of nodes."""

    left: Name
    right: Name
    via: Condition | None
    into: Name


@frozen
class Measure(Node):
    """``MEASURE var|graph USING algorithm AS var``; ``source`` is None for the whole graph."""

    source: Name | None
    algorithm: str
    into: Name


# Reshaping


@frozen
class SelectFields(Node):
    """``SELECT var FIELDS a, b.c AS var``."""

    source: Name
    fields: tuple[Path, ...]
    into: Name


@frozen
class SelectWhere(Node):
    """``SELECT var WHERE ... AS var``."""

    source: Name
    where: Condition
    into: Name


@frozen
class Count(Node):
    """``COUNT var [BY field] AS var``."""

    source: Name
    by: Path | None
    into: Name


@frozen
class Computation(Node):
    """``sum(x)`` in ``AGGREGATE``. Only ``count()`` may be without a field."""

    function: Function
    field: Path | None


@frozen
class Aggregate(Node):
    """``AGGREGATE var BY field COMPUTE sum(x), mean(y) AS var``."""

    source: Name
    by: Path
    computations: tuple[Computation, ...]
    into: Name


@frozen
class Rank(Node):
    """``RANK var BY field [DESC] [LIMIT n] AS var``."""

    source: Name
    by: Path
    descending: bool
    limit: int | None
    into: Name


@frozen
class Join(Node):
    """``JOIN a WITH b ON field [= field] AS var``; a single field applies to both sides."""

    left: Name
    right: Name
    left_field: Path
    right_field: Path
    into: Name


@frozen
class SetOperation(Node):
    """``UNION a WITH b [ON field [= field]] AS var``, also ``INTERSECT`` and ``EXCEPT``. Without ON, whole items are compared."""

    kind: Literal["UNION", "INTERSECT", "EXCEPT"]
    left: Name
    right: Name
    left_field: Path | None
    right_field: Path | None
    into: Name


# Calling a model


@frozen
class Column(Node):
    """``name TYPE`` in ``RETURNING``."""

    name: str
    type: ColumnType


@frozen
class Process(Node):
    """``PROCESS var USING "..." AS var [RETURNING (name TYPE, ...)]``."""

    source: Name
    instruction: str
    into: Name
    returning: tuple[Column, ...] = ()


@frozen
class Classify(Node):
    """``CLASSIFY var BY "..." INTO ("a", "b") AS var``."""

    source: Name
    instruction: str
    labels: tuple[str, ...]
    into: Name


@frozen
class Analyze(Node):
    """``ANALYZE key USING "..." AS var``."""

    key: Key
    instruction: str
    into: Name


# Checks and control flow


@frozen
class Require(Node):
    """``REQUIRE EXISTS var``."""

    source: Name


@frozen
class Assert(Node):
    """``ASSERT condition``."""

    condition: Condition


@frozen
class On(Node):
    """``ON EMPTY|ERROR|PARTIAL|SCHEMA_MISMATCH var THEN command``."""

    status: OnStatus
    source: Name
    then: "Command"


@frozen
class Branch(Node):
    """``BRANCH IF condition THEN command [ELSE command]``."""

    condition: Condition
    then: "Command"
    otherwise: "Command | None" = None


@frozen
class Explain(Node):
    """``EXPLAIN command``: show how the command would run."""

    command: "Command"


@frozen
class SetCommand(Node):
    """``SET adapter.caps.max_path_length = 2``, ``SET llm.model = "..."``."""

    key: Key
    value: bool | int | float | str | None


@frozen
class Cancel(Node):
    """``CANCEL PLAN "id"``."""

    plan: str


@frozen
class Comment(Node):
    """``# ...`` to the end of the line, without trailing blanks. ``trailing``: the comment follows a command on the same line."""

    text: str
    trailing: bool = False


@frozen
class Statement(Node):
    """A command and its ``why``: the text of the ``#:`` lines above the command, joined by a blank; None without such lines."""

    command: "Command"
    why: str | None = None


@frozen
class Try(Node):
    """``TRY ... [CATCH ANY ...] [FINALLY ...] END``. ``caught`` is None without CATCH, ``always`` is None without FINALLY."""

    body: "tuple[Item, ...]"
    caught: "tuple[Item, ...] | None" = None
    always: "tuple[Item, ...] | None" = None


Command: TypeAlias = (
    Declare | Reset | Update | Find | FindPaths | Walk | Subgraph | Connect | Measure | SelectFields | SelectWhere
    | Count | Aggregate | Rank | Join | SetOperation | Process | Classify | Analyze | Require | Assert | On | Branch
    | Explain | SetCommand | Cancel | Try
)  # fmt: skip

Item: TypeAlias = Statement | Comment


@frozen
class Program(Node):
    """A parsed program. ``diagnostics`` are the faults found in parsing; ``items`` are the parts that could be parsed."""

    items: tuple[Item, ...]
    source: Source = field(eq=False, repr=False)
    diagnostics: tuple[Diagnostic, ...] = field(default=(), eq=False)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The top-level statements, in source order."""
        return tuple(item for item in self.items if isinstance(item, Statement))


def joined_names(left: Collection[str], right: Collection[str], command: Join) -> dict[str, str] | None:
    """Map each field of the right side to its name in the rows of a JOIN. The fields of the left side keep their names.

    If both sides have a field ``name``, the right one becomes ``right.name``; if that name is taken too, ``right.`` is prepended
    again. A join field with the same name on both sides occurs only once. Returns None if the rows would have more than
    ``JOINED_FIELDS`` fields: each join of a variable with itself doubles the number of fields.
    """
    on = command.right_field.text if command.left_field.text == command.right_field.text else None
    left = frozenset(left)
    if len(left) + len(right) - (on in left and on in right) > JOINED_FIELDS:
        return None
    taken = {_prefixed(name) for name in (*left, *right)}
    used: dict[str, int] = {}
    names: dict[str, str] = {}
    for name in sorted(right, key=len):  # shorter names first, so that the order of the fields does not matter
        if name == on and name in left:
            continue
        if name not in left:
            names[name] = name
            continue
        count, rest = _prefixed(name)
        count = max(count, used.get(rest, 0)) + 1  # counts that a shorter name used or skipped are not tried again
        while (count, rest) in taken:
            count += 1
        used[rest] = count
        names[name] = "right." * count + rest
    return {name: names[name] for name in right if name in names}


def _prefixed(name: str) -> tuple[int, str]:
    """Return the number of ``right.`` prefixes of a name, and the name without them."""
    count = 0
    while name.startswith("right.", 6 * count):
        count += 1
    return count, name[6 * count :]


def bound_variables(command: "Command") -> Iterator[Name]:
    """Yield the variables that ``command`` itself binds, without the variables that nested commands bind."""
    into = getattr(command, "into", None)
    if into is not None:
        yield into
