"""Hypothesis strategies that make GASL trees: every tree that reading some text can give, and no other."""

from hypothesis import strategies as st
from knotwork.lang.source import Source
from knotwork.lang.trees import gasl
from knotwork.lang.trees.conditions import (
    And,
    Binary,
    Call,
    Comparison,
    Constant,
    Field,
    Increasing,
    Items,
    Length,
    Negative,
    Not,
    NullTest,
    Or,
    Variable,
)
from knotwork.lang.trees.gasl import Comment, Key, Name, NamedValue, OnPair, Order, Program, Statement

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
_path = _parts.map(Field)
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
_functions = _plain | st.sampled_from(["lower", "if", "coalesce", "not", "LEN", "date_trunc"])
_values = st.recursive(
    _path | _constant | _variable,
    lambda inner: (
        inner.map(Length)
        | st.builds(Binary, st.sampled_from(["+", "-", "*", "/", "%"]), inner, inner)
        # The parser reads a minus before a number as a negative number.
        | inner.filter(lambda value: not isinstance(value, Constant)).map(Negative)
        | st.builds(Call, _functions, st.lists(inner | _drawn("_leaves"), max_size=3).map(tuple))
    ),
    max_leaves=4,
)
values = _drawn("_values")
"""Values of up to four fields, constants and variables."""
_left = _fields | values


def _is_read(test: Comparison) -> bool:
    """Return whether the parser accepts the two sides of a comparison: a text on the left of a field is refused."""
    return not (isinstance(test.left, Constant) and isinstance(test.right, Constant | Field))


_elements = st.builds(lambda first, path: Field((first, *path)), st.sampled_from(["node", "edge"]), _parts)
_operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "CONTAINS", "STARTS_WITH", "ENDS_WITH", "MATCHES"])
_leaves = (
    st.builds(Comparison, _left, _operators, _constant | _variable | values).filter(_is_read)
    | _elements.map(Increasing)
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
_maybe_number = st.none() | _whole | _variable
_orders = st.builds(Order, values, st.booleans())
_order = st.lists(_orders, max_size=3).map(tuple)
_maybe_name = st.none() | _name
_named = st.builds(NamedValue, _path, _maybe_name) | st.builds(NamedValue, values, _name)
_by = st.lists(_named, max_size=3).map(tuple)
_per = st.lists(values, max_size=2).map(tuple)
_limits = st.tuples(_whole | _variable, _per) | st.just((None, ()))
_pairs = st.builds(OnPair, values, st.none() | values).filter(lambda pair: pair.left != pair.right)
_on = st.lists(_pairs, min_size=1, max_size=2).map(tuple)
_computations = (
    st.builds(gasl.Computation, st.just("count"), st.none(), st.just(False), st.none(), _maybe_name)
    | st.builds(gasl.Computation, st.sampled_from(["count", "collect"]), values, st.booleans(), st.none(), _maybe_name)
    | st.builds(gasl.Computation, st.sampled_from(["sum", "mean", "min", "max", "median", "stdev"]), values,
                st.just(False), st.none(), _maybe_name)
    | st.builds(gasl.Computation, st.just("percentile"), values, st.just(False), values, _maybe_name)
)  # fmt: skip
_columns = st.lists(
    st.builds(gasl.Column, names, st.sampled_from(["TEXT", "INT", "FLOAT", "BOOL", "LIST"])),
    max_size=3, unique_by=lambda column: column.name,
).map(tuple)  # fmt: skip


def _paths_between(ends: tuple[object, object], *rest: object) -> gasl.FindPaths:
    return gasl.FindPaths(*ends, *rest)  # type: ignore[arg-type]


_end = _name | conditions
_ends = st.just((None, None)) | st.tuples(_end, _end)
_directions = st.sampled_from([None, "out", "in", "both"])


def _found(kind: str, where: object, order: object, limit: tuple[object, object], into: Name) -> gasl.Find:
    return gasl.Find(kind, where, order, limit[0], into, limit[1])  # type: ignore[arg-type]


def _ranked(source: Name, by: object, limit: tuple[object, object], into: Name) -> gasl.Rank:
    return gasl.Rank(source, by, limit[0], into, limit[1])  # type: ignore[arg-type]


_labels = st.lists(names, max_size=2, unique=True).map(tuple)
_properties = st.lists(st.tuples(names, _constant | _variable), max_size=2, unique_by=lambda pair: pair[0]).map(tuple)
_pattern_nodes = st.builds(gasl.PatternNode, st.none() | names, _labels, _properties)
_pattern_edges = st.builds(gasl.PatternEdge, st.sampled_from(["out", "in", "either"]), st.none() | names, _labels)


@st.composite
def _pattern(draw: st.DrawFn) -> gasl.Pattern:
    edges = draw(st.lists(_pattern_edges, max_size=2))
    nodes = draw(st.lists(_pattern_nodes, min_size=len(edges) + 1, max_size=len(edges) + 1))
    return gasl.Pattern(tuple(nodes), tuple(edges))


def _patterns(patterns: object, where: object, order: object, limit: tuple[object, object], into: Name) -> object:
    return gasl.FindPatterns(patterns, where, order, limit[0], into, limit[1])  # type: ignore[arg-type]


def _is_selection(command: gasl.Select) -> bool:
    return bool(command.columns or command.where is not None or command.sample is not None or command.distinct)


_simple = st.one_of(
    st.builds(gasl.Declare, _key, st.sampled_from(["LIST", "DICT", "COUNTER"]), st.none() | _text),
    st.builds(gasl.Reset, _key),
    st.builds(gasl.Update, _key, _name, st.sampled_from([None, "MERGE", "REPLACE"])),
    st.builds(
        gasl.Param, _name, st.sampled_from(["TEXT", "INT", "FLOAT", "BOOL", "LIST"]),
        st.none() | (_scalar | st.none()).map(Constant), st.none() | _text,
    ),
    st.builds(_found, st.sampled_from(["nodes", "edges"]), _maybe_condition, _order, _limits, _name),
    st.builds(
        _patterns, st.lists(_pattern(), min_size=1, max_size=2).map(tuple), _maybe_condition, _order, _limits, _name
    ),
    st.builds(
        _paths_between, _ends, _maybe_condition, _maybe_condition, _maybe_number, st.just(False), _maybe_number, _name,
        st.none(), st.none(), _directions,
    ),
    st.builds(
        _paths_between, _ends, _maybe_condition, _maybe_condition, _maybe_number, st.just(True), _maybe_number, _name,
        st.none() | st.integers(1, 9), st.none() | values, _directions,
    ),
    st.builds(gasl.FindCycles, _maybe_condition, _maybe_condition, _maybe_number, _maybe_number, _name),
    st.builds(gasl.Walk, _name, _maybe_condition, _maybe_number, _directions, _name, st.booleans()),
    st.builds(gasl.Subgraph, _name, _whole, _name),
    st.builds(gasl.Connect, _name, _name, _maybe_condition, _name),
    st.builds(
        gasl.Measure, _maybe_name, names, _name, _maybe_name,
        st.lists(st.tuples(names, _constant), max_size=2, unique_by=lambda pair: pair[0]).map(tuple), st.none() | values,
    ),
    st.builds(gasl.Select, _name, _by, _maybe_condition, _name, st.booleans(), _maybe_number).filter(_is_selection),
    st.builds(gasl.Unnest, _name, _named, _name),
    st.builds(gasl.Count, _name, _by, _name),
    st.builds(gasl.Aggregate, _name, _by, st.lists(_computations, min_size=1, max_size=3).map(tuple), _name),
    st.builds(_ranked, _name, st.lists(_orders, min_size=1, max_size=3).map(tuple), _limits, _name),
    st.builds(gasl.Join, _name, _name, _on, _name, st.booleans(), _maybe_name),
    st.builds(
        gasl.Join, _name, _name, _on.map(lambda on: on[:1]), _name, st.just(False), _maybe_name,
        st.floats(0.01, 1),
    ),
    st.builds(
        gasl.SetOperation, st.sampled_from(["UNION", "INTERSECT", "EXCEPT"]), _name, _name, st.just(()) | _on, _name
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
