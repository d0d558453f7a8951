"""The tree of a GASL program. Each command has its own class. See ``docs/design/gasl.md#commands``.

A program consists of statements and comments in source order. A statement is a command and its reason; nested constructs (``TRY``,
``BRANCH``, ``ON``, ``EXPLAIN``) contain statements or commands. Names have spans. Therefore a check can report the exact place of a
variable, and not only its line.
"""

from collections.abc import Iterator
from typing import Literal, TypeAlias

from attrs import field, frozen

from ..diagnostic import Diagnostic
from ..source import Source
from . import Node
from .conditions import Condition, Constant, Field, Value, Variable
from .patterns import Pattern as Pattern
from .patterns import PatternEdge as PatternEdge
from .patterns import PatternNode as PatternNode

StateType = Literal["LIST", "DICT", "COUNTER"]
ColumnType = Literal["TEXT", "INT", "FLOAT", "BOOL", "LIST"]
Function = Literal["count", "sum", "mean", "min", "max", "median", "stdev", "percentile", "collect"]
OnStatus = Literal["EMPTY", "ERROR", "PARTIAL", "SCHEMA_MISMATCH"]


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


Path: TypeAlias = Field
"""A plain field, as in ``SELECT ... FIELDS a, b.c``."""

Number: TypeAlias = int | Variable
"""A number of items or edges: an integer, or a variable that holds an integer."""


@frozen
class NamedValue(Node):
    """A value, and the name of its column. Only a value that is a plain field may have no name.

    ``AS name`` after a value names its column; the last ``AS`` of a command names the command's variable.
    """

    value: Value
    name: Name | None = None

    @property
    def column(self) -> str:
        """The name of the column.

        A plain field without a given name is named by its path with dots. The name is "" for any other value without a name.
        """
        if self.name is not None:
            return self.name.text
        return self.value.text if isinstance(self.value, Field) else ""


@frozen
class Order(Node):
    """One value of ``ORDER BY`` or ``RANK ... BY``. Nulls are last in both directions."""

    value: Value
    descending: bool = False


@frozen
class OnPair(Node):
    """One pair of values in ``ON left [= right]``. ``right`` is None if both sides use the same value."""

    left: Value
    right: Value | None = None

    @property
    def other(self) -> Value:
        """The value on the right side."""
        return self.left if self.right is None else self.right


@frozen
class Param(Node):
    """``PARAM name TYPE [= constant] [WITH_DESCRIPTION "..."]``: a variable whose value is passed to the program.

    ``default`` is None if no default is written; for ``= null``, it is ``Constant(None)``.
    """

    name: Name
    type: ColumnType
    default: Constant | None = None
    description: str | None = None


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
    """``UPDATE key WITH var [MERGE|REPLACE]``. If no mode is written, ``mode`` is None, and the command works as with MERGE."""

    key: Key
    source: Name
    mode: Literal["MERGE", "REPLACE"] | None = None


# Finding


@frozen
class Find(Node):
    """``FIND nodes|edges [WHERE ...] [ORDER BY ...] [LIMIT n [PER ...]] AS var``. ``per`` is empty without PER."""

    kind: Literal["nodes", "edges"]
    where: Condition | None
    order: tuple[Order, ...]
    limit: Number | None
    into: Name
    per: tuple[Value, ...] = ()


@frozen
class FindPatterns(Node):
    """``FIND patterns pattern, ... [WHERE ...] [ORDER BY ...] [LIMIT n [PER ...]] AS var``."""

    patterns: tuple[Pattern, ...]
    where: Condition | None
    order: tuple[Order, ...]
    limit: Number | None
    into: Name
    per: tuple[Value, ...] = ()


@frozen
class FindPaths(Node):
    """``FIND paths [FROM a TO b] [VIA ...] [WHERE ...] [MAXLEN n] [SHORTEST [k] [BY cost]] [DIRECTION d] [LIMIT n] AS var``.

    If ``shortest`` is true, all shortest paths between each pair of ends are found. If ``count`` is given too, this number of
    shortest simple paths is found for each pair. ``cost`` is the cost of an edge (None: 1).
    """

    start: Name | Condition | None
    end: Name | Condition | None
    via: Condition | None
    where: Condition | None
    max_length: Number | None
    shortest: bool
    limit: Number | None
    into: Name
    count: Number | None = None
    cost: Value | None = None
    direction: Literal["out", "in", "both"] | None = None


@frozen
class FindCycles(Node):
    """``FIND cycles [VIA ...] [WHERE ...] [MAXLEN n] [LIMIT n] AS var``."""

    via: Condition | None
    where: Condition | None
    max_length: Number | None
    limit: Number | None
    into: Name


@frozen
class Walk(Node):
    """``WALK var [VIA ...] [DEPTH n] [DIRECTION out|in|both] [TRACE] AS var``: the nodes that can be reached from a set of nodes.

    If ``trace`` is true, each node has two more fields. ``depth`` is the number of edges from the nearest start, and ``parent`` is the
    previous node.
    """

    source: Name
    via: Condition | None
    depth: Number | None
    direction: Literal["out", "in", "both"] | None
    into: Name
    trace: bool = False


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
    """``MEASURE var|graph [ON var] USING algorithm[(setting = constant, ...)] [BY weight] AS var``.

    If ``source`` is None, the entire graph is measured. If ``edges`` is given, the measured graph consists of the edges in that
    variable. ``weight`` is the weight of an edge.
    """

    source: Name | None
    algorithm: str
    into: Name
    edges: Name | None = None
    settings: tuple[tuple[str, Constant], ...] = ()
    weight: Value | None = None


# Reshaping


@frozen
class Select(Node):
    """``SELECT [DISTINCT] var [FIELDS value [AS name], ...] [WHERE ...] [SAMPLE n] AS var``. Without FIELDS, ``columns`` is empty."""

    source: Name
    columns: tuple[NamedValue, ...]
    where: Condition | None
    into: Name
    distinct: bool = False
    sample: Number | None = None


@frozen
class Unnest(Node):
    """``UNNEST var BY value [AS name] AS var``: a row for each element of the value, which is a list."""

    source: Name
    by: NamedValue
    into: Name


@frozen
class Count(Node):
    """``COUNT var [BY value [AS name], ...] AS var``. ``by`` is empty without BY."""

    source: Name
    by: tuple[NamedValue, ...]
    into: Name


@frozen
class Computation(Node):
    """``sum(x) [AS name]`` in ``AGGREGATE``. Only ``count()`` may have no value. ``share`` is the second argument of ``percentile``."""

    function: Function
    value: Value | None
    distinct: bool = False
    share: Value | None = None
    name: Name | None = None


@frozen
class Aggregate(Node):
    """``AGGREGATE var [BY value [AS name], ...] COMPUTE sum(x) [AS name], ... AS var``. Without BY, there is one row."""

    source: Name
    by: tuple[NamedValue, ...]
    computations: tuple[Computation, ...]
    into: Name


@frozen
class Rank(Node):
    """``RANK var BY value [DESC], ... [LIMIT n [PER value, ...]] AS var``."""

    source: Name
    by: tuple[Order, ...]
    limit: Number | None
    into: Name
    per: tuple[Value, ...] = ()


@frozen
class Join(Node):
    """``[LEFT] JOIN a WITH b [AS name] ON value [= value], ... [SIMILAR number] AS var``.

    ``outer`` marks a LEFT JOIN. ``name`` is the field under which the right items are nested. If ``similar`` is None, the values of each
    pair in ``on`` must be equal. Otherwise ``on`` has a single pair of strings, and ``similar`` is their minimum similarity.
    """

    left: Name
    right: Name
    on: tuple[OnPair, ...]
    into: Name
    outer: bool = False
    name: Name | None = None
    similar: float | None = None


@frozen
class SetOperation(Node):
    """``UNION a WITH b [ON value [= value], ...] AS var``, also ``INTERSECT`` and ``EXCEPT``. Without ON, complete items are compared."""

    kind: Literal["UNION", "INTERSECT", "EXCEPT"]
    left: Name
    right: Name
    on: tuple[OnPair, ...]
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
    """``# ...`` to the end of the line, without trailing spaces. ``trailing`` is true if the comment follows a command on the same line."""

    text: str
    trailing: bool = False


@frozen
class Statement(Node):
    """A command and its ``why``.

    The ``why`` is the text of the ``#:`` lines above the command, joined by spaces. ``why`` is None without such lines.
    """

    command: "Command"
    why: str | None = None


@frozen
class Try(Node):
    """``TRY ... [CATCH ANY ...] [FINALLY ...] END``. ``caught`` is None without CATCH. ``always`` is None without FINALLY."""

    body: "tuple[Item, ...]"
    caught: "tuple[Item, ...] | None" = None
    always: "tuple[Item, ...] | None" = None


Command: TypeAlias = (
    Param | Declare | Reset | Update | Find | FindPatterns | FindPaths | FindCycles | Walk | Subgraph | Connect | Measure
    | Select | Unnest | Count | Aggregate | Rank | Join | SetOperation | Process | Classify | Analyze | Require | Assert
    | On | Branch | Explain | SetCommand | Cancel | Try
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


def bound_variables(command: "Command") -> Iterator[Name]:
    """Yield the variables that ``command`` itself binds. Variables that nested commands bind are omitted."""
    into = command.name if isinstance(command, Param) else getattr(command, "into", None)
    if into is not None:
        yield into
