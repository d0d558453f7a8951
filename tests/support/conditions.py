"""Random conditions, values and graphs for the property tests of what conditions mean and of searching."""

from collections.abc import Sequence
from typing import Any

import networkx as nx
from hypothesis import strategies as st
from knotwork.lang.trees.conditions import And, Comparison, Condition, Constant, Field, Items, Not, NullTest, Or

TEXTS = ("", "a", "ab", "b", "ba", "A", "é", "😀", "1", "a.b")
LARGE = 2**53

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, 2, -1, LARGE, LARGE + 1, 0.0, 1.0, 1.5, -0.5, float("inf")]),
    st.sampled_from(TEXTS),
)
values = st.recursive(
    st.one_of(scalars, st.just(float("nan"))),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(("a", "b", "a.b")), inner, max_size=2)
    ),
    max_leaves=4,
)
constants = scalars.map(Constant)

OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "IN", "NOT IN", "CONTAINS", "STARTS_WITH", "ENDS_WITH", "MATCHES")
PATTERNS = ("a", "^a", "b$", "^$", "[ab]+", ".", "é|1")


def fields(paths: Sequence[tuple[str, ...]]) -> st.SearchStrategy[Field]:
    return st.sampled_from(paths).map(Field)


@st.composite
def leaves(draw: st.DrawFn, at: st.SearchStrategy[Field]) -> Condition:
    left = draw(at)
    operator = draw(st.sampled_from((*OPERATORS, "null", "not null")))
    if operator in ("null", "not null"):
        return NullTest(left, operator == "not null")
    if operator == "MATCHES":
        return Comparison(left, "MATCHES", Constant(draw(st.sampled_from(PATTERNS))))
    if operator in ("IN", "NOT IN") and draw(st.integers(0, 4)):
        return Comparison(left, operator, Items(tuple(draw(st.lists(constants, max_size=4)))))
    right = draw(st.one_of(constants, values.map(lambda v: Constant(tuple(v) if isinstance(v, list) else v))))
    return Comparison(left, operator, right)


def conditions(paths: Sequence[tuple[str, ...]], at: st.SearchStrategy[Field] | None = None) -> Any:
    """Conditions over the fields with these paths (or over those that ``at`` draws)."""
    return st.recursive(
        leaves(fields(paths) if at is None else at),
        lambda inner: st.one_of(
            inner.map(Not),
            st.lists(inner, min_size=2, max_size=3).map(lambda some: And(tuple(some))),
            st.lists(inner, min_size=2, max_size=3).map(lambda some: Or(tuple(some))),
        ),
        max_leaves=5,
    )


KINDS = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)
IDS = (0, 1, 2, "a", "b", "1", (0, 1))
attributes = st.dictionaries(st.sampled_from(("a", "b", "a.b", "id", "degree", "source", "key")), values, max_size=4)


@st.composite
def graphs(draw: st.DrawFn) -> Any:
    """Graphs of the four kinds with up to seven nodes, loops, parallel edges and attributes of every type."""
    graph = draw(st.sampled_from(KINDS))()
    nodes = draw(st.lists(st.sampled_from(IDS), unique=True, max_size=7))
    for node in nodes:
        graph.add_node(node)
        graph.nodes[node].update(draw(attributes))
    if nodes:
        for source, target in draw(st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), max_size=10)):
            graph.add_edge(source, target)
        for *_, data in graph.edges(data=True):
            data.update(draw(attributes))
    return graph
