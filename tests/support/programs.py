"""Hypothesis strategies that make GASL trees: every tree that reading some text can give, and no other."""

from hypothesis import strategies as st
from knotwork.lang.source import Source
from knotwork.lang.trees import gasl
from knotwork.lang.trees.conditions import And, Comparison, Constant, Field, Items, Length, Not, NullTest, Or, Variable
from knotwork.lang.trees.gasl import Comment, Key, Name, Order, Path, Program, Statement

__all__ = ["commands", "conditions", "programs"]

_KEYWORDS = ["not", "ANY", "all", "None", "len", "graph", "Where", "limit", "AS", "by", "nodes", "paths", "null", "true",
             "in", "is", "or", "and", "end", "try", "desc", "count", "on", "error", "list", "from", "to", "graphs",
             "notable", "anyone"]  # fmt: skip
_ODD = ["a b", "`", "``", "a`b", "a.b", "é", "1st", "-", "${x}", '"', "'", "a\tb", "#", "(", "名前"]

_plain = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
_free = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1, max_size=5)
_names = _plain | st.sampled_from(_KEYWORDS) | st.sampled_from(_ODD) | _free


@st.composite
def _drawn(draw: st.DrawFn, what: str) -> object:
    """Draw from the strategy of this name: hypothesis' reports would spell the whole of it out."""
    return draw(globals()[what])


names = _drawn("_names")
_name = names.map(Name)
_parts = st.lists(names, min_size=1, max_size=3).map(tuple)
_path = _parts.map(Path)
_key = (
    st.lists(names.filter(lambda n: n not in ("_meta", "items", "value")), min_size=1, max_size=3).map(tuple).map(Key)
)

_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    [
        '"',
        "'",
        "\\",
        "\\n",
        "\n",
        "\r\n",
        "\t",
        "\x00",
        "\x7f",
        "\u2028",
        "\u202e",
        "😀",
        "\U000e0001",
        "# no",
        "#: no",
        "AS x",
    ]
)
_said = _text.filter(lambda text: bool(text.strip()))
_whole = st.integers(0, 2**63 - 1) | st.integers(0, 20)
_scalar = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | _text
_constant = _scalar.map(Constant)
_items = st.lists((_scalar | st.none()).map(Constant), max_size=3).map(tuple).map(Items)
_variable = st.builds(Variable, names, st.lists(names | st.integers(-5, 10**17), max_size=3).map(tuple))


def _field(path: tuple[str, ...], quantifier: str | None, first: str) -> Field:
    return Field(path, None) if quantifier is None else Field((first, *path), quantifier)  # type: ignore[arg-type]


_fields = st.builds(
    _field, _parts, st.none() | st.sampled_from(["any", "all", "none"]), st.sampled_from(["node", "edge"])
)
_left = _fields | _variable | _variable.map(Length)
_operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "CONTAINS", "STARTS_WITH", "ENDS_WITH", "MATCHES"])
_leaves = (
    st.builds(Comparison, _left, _operators, _constant | _variable)
    | st.builds(Comparison, _left, st.sampled_from(["IN", "NOT IN"]), _items | _variable)
    | st.builds(NullTest, _left, st.booleans())
)
_conditions = st.recursive(
    _drawn("_leaves"),
    lambda inner: (
        inner.map(Not)
        | st.lists(inner, min_size=2, max_size=3).map(tuple).map(And)
        | st.lists(inner, min_size=2, max_size=3).map(tuple).map(Or)
    ),
    max_leaves=6,
)
conditions = _drawn("_conditions")
_maybe_condition = st.none() | conditions
_maybe_number = st.none() | _whole
_order = st.lists(st.builds(Order, _path, st.booleans()), max_size=3).map(tuple)
_computations = st.builds(gasl.Computation, st.just("count"), st.none() | _path) | st.builds(
    gasl.Computation, st.sampled_from(["count", "sum", "mean", "min", "max", "median"]), _path
)
_columns = st.lists(
    st.builds(gasl.Column, names, st.sampled_from(["TEXT", "INT", "FLOAT", "BOOL", "LIST"])),
    max_size=3, unique_by=lambda column: column.name,
).map(tuple)  # fmt: skip


def _paths_between(ends: tuple[object, object], *rest: object) -> gasl.FindPaths:
    return gasl.FindPaths(*ends, *rest)  # type: ignore[arg-type]


_end = _name | conditions
_ends = st.just((None, None)) | st.tuples(_end, _end)
_some = st.lists(_path, min_size=1, max_size=3).map(tuple)


def _set_operation(kind: str, left: Name, right: Name, fields: tuple[Path | None, Path | None], into: Name) -> object:
    return gasl.SetOperation(kind, left, right, *fields, into)  # type: ignore[arg-type]


_simple = st.one_of(
    st.builds(gasl.Declare, _key, st.sampled_from(["LIST", "DICT", "COUNTER"]), st.none() | _text),
    st.builds(gasl.Reset, _key),
    st.builds(gasl.Update, _key, _name, st.sampled_from([None, "MERGE", "REPLACE"])),
    st.builds(gasl.Find, st.sampled_from(["nodes", "edges"]), _maybe_condition, _order, _maybe_number, _name),
    st.builds(
        _paths_between, _ends, _maybe_condition, _maybe_condition, _maybe_number, st.booleans(), _maybe_number, _name
    ),
    st.builds(gasl.Walk, _name, _maybe_condition, _maybe_number, st.sampled_from([None, "out", "in", "both"]), _name),
    st.builds(gasl.Subgraph, _name, _whole, _name),
    st.builds(gasl.Connect, _name, _name, _maybe_condition, _name),
    st.builds(gasl.Measure, st.none() | _name, names, _name),
    st.builds(gasl.SelectFields, _name, _some, _name),
    st.builds(gasl.SelectWhere, _name, conditions, _name),
    st.builds(gasl.Count, _name, st.none() | _path, _name),
    st.builds(gasl.Aggregate, _name, _path, st.lists(_computations, min_size=1, max_size=3).map(tuple), _name),
    st.builds(gasl.Rank, _name, _path, st.booleans(), _maybe_number, _name),
    st.builds(gasl.Join, _name, _name, _path, _path, _name),
    st.builds(
        _set_operation, st.sampled_from(["UNION", "INTERSECT", "EXCEPT"]), _name, _name,
        st.just((None, None)) | st.tuples(_path, _path), _name,
    ),
    st.builds(gasl.Process, _name, _said, _name, _columns),
    st.builds(gasl.Classify, _name, _said, st.lists(_said, min_size=2, max_size=3, unique=True).map(tuple), _name),
    st.builds(gasl.Analyze, _key, _said, _name),
    st.builds(gasl.Require, _name),
    st.builds(gasl.Assert, conditions),
    st.builds(gasl.SetCommand, _key, _scalar | st.none()),
    st.builds(gasl.Cancel, _said),
)  # fmt: skip


def _branch(condition: object, then: gasl.Command, otherwise: gasl.Command | None) -> gasl.Branch:
    return gasl.Branch(condition, then, None if _is_open(then) else otherwise)  # type: ignore[arg-type]


def _is_open(command: gasl.Command | None) -> bool:
    if isinstance(command, gasl.On):
        return _is_open(command.then)
    if isinstance(command, gasl.Explain):
        return _is_open(command.command)
    return isinstance(command, gasl.Branch) and (command.otherwise is None or _is_open(command.otherwise))


_statuses = st.sampled_from(["EMPTY", "ERROR", "PARTIAL", "SCHEMA_MISMATCH"])
_commands = st.recursive(
    _drawn("_simple"),
    lambda inner: (
        st.builds(gasl.On, _statuses, _name, inner)
        | st.builds(_branch, conditions, inner, st.none() | inner)
        | st.builds(gasl.Explain, inner)
    ),
    max_leaves=3,
)

commands = _drawn("_commands")
_line = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12)
_whys = st.none() | _line.map(str.strip).filter(bool)
_comments = _line.filter(lambda text: not text.startswith(":")).map(lambda text: Comment(f"#{text}".rstrip()))


def _behind(items: list[object], trailing: list[bool]) -> tuple[object, ...]:
    """Put some of the comments behind the statement before them."""
    made: list[object] = []
    for item, behind in zip(items, trailing, strict=False):
        if isinstance(item, Comment) and behind and made and isinstance(made[-1], Statement):
            item = Comment(item.text, True)
        made.append(item)
    return tuple(made)


def _blocks(statements: st.SearchStrategy[object], most: int) -> st.SearchStrategy[tuple[object, ...]]:
    items = st.lists(statements | _comments, max_size=most)
    return st.builds(_behind, items, st.lists(st.booleans(), min_size=most, max_size=most))


_statements = st.recursive(
    st.builds(Statement, commands, _whys),
    lambda inner: st.builds(
        Statement,
        st.builds(gasl.Try, _blocks(inner, 2), st.none() | _blocks(inner, 2), st.none() | _blocks(inner, 2)),
        _whys,
    ),
    max_leaves=3,
)


def programs() -> st.SearchStrategy[Program]:
    """Return a strategy for whole programs, without spans."""
    return _blocks(_statements, 4).map(lambda items: Program(items, Source("")))  # type: ignore[arg-type]
