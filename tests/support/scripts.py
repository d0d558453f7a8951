"""A hypothesis strategy that makes script trees: every tree that reading some text can give, and no other."""

from hypothesis import strategies as st
from knotwork.lang.trees.lwt import (
    RESERVED,
    Call,
    Choice,
    Comment,
    Index,
    Key,
    ListValue,
    ObjectValue,
    Option,
    Reference,
    Scalar,
    Script,
    Slice,
    Step,
    Template,
    Text,
    Word,
)

__all__ = ["ids", "scripts", "templates", "values"]

_CONSTANTS = {"true", "false", "null", "True", "False", "None"}

ids = st.from_regex(r"[a-z0-9_é][a-z0-9_-]{0,5}(\.[a-z0-9_][a-z0-9_-]{0,3}){0,2}", fullmatch=True).filter(
    lambda name: name not in RESERVED
)
_names = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
_words = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(lambda word: word not in _CONSTANTS)
_operations = st.sampled_from(["LLM", "CONST", "EACH"]) | st.from_regex(r"[A-Z][A-Z_]{0,8}", fullmatch=True)

_DANGEROUS = ['"', "'", '"""', "'''", "\\", "\\\\", '\\"', "\\'", "\\[", "[", "]", "{", "}", "{(", "{{(", ")}", "{(a)}",
              "{{(a)}}", "[k]", "\n", "\r\n", "\\n", "(a)=LLM(", "# ", ")", ",", " "]  # fmt: skip
"""What strings are most likely to trip over."""

texts = st.lists(st.sampled_from(_DANGEROUS) | st.text(max_size=6), min_size=1, max_size=6).map("".join).filter(bool)
_keys = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ['"', "\\", '\\"', "a]b", "{(x)}", "'", "3", "-1", "a:b", ""]
)
_bounds = st.none() | st.integers(-(10**17), 10**17)
_accessors = (
    st.builds(Key, _keys) | st.builds(Index, st.integers(-(10**17), 10**17)) | st.builds(Slice, _bounds, _bounds)
)
_references = st.builds(Reference, ids | st.sampled_from(sorted(RESERVED)), st.lists(_accessors, max_size=3).map(tuple))


def _joined(parts: list[str | Reference]) -> Template:
    """Make the parts a template as reading does: adjacent texts are one, and none ends in a brace before a reference."""
    joined: list[Text | Reference] = []
    for part in parts:
        if isinstance(part, Reference):
            if joined and isinstance(last := joined[-1], Text) and last.value.endswith("{"):
                joined[-1] = Text(last.value + " ")
            joined.append(part)
        elif joined and isinstance(last := joined[-1], Text):
            joined[-1] = Text(last.value + part)
        else:
            joined.append(Text(part))
    return Template(tuple(joined))


templates = st.lists(texts | _references, max_size=5).map(_joined)

_scalars = st.builds(
    Scalar,
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False),
)
_choices = st.lists(templates, min_size=2, max_size=3).map(tuple).map(Choice)
_simple = templates | _references | _scalars | st.builds(Word, _words) | _choices


def _calls(inner: st.SearchStrategy) -> st.SearchStrategy[Call]:
    return st.builds(
        Call,
        _operations,
        st.lists(inner, max_size=2).map(tuple),
        st.lists(st.builds(Option, _names, inner), max_size=2).map(tuple),
    )


values = st.recursive(
    _simple,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple).map(ListValue)
        | st.lists(st.tuples(templates, inner), max_size=3).map(tuple).map(ObjectValue)
        | _calls(inner)
    ),
    max_leaves=5,
)
_steps = st.builds(Step, ids, _calls(values))
_comments = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=20).map(
    lambda text: Comment(f"#{text}".rstrip())
)


def scripts() -> st.SearchStrategy[Script]:
    """Return a strategy for whole scripts, without spans."""
    return st.lists(_steps | _comments, max_size=5).map(lambda items: Script(tuple(items)))
