"""Random searches for paths and walks, the same for every graph that has the given ids, conditions and costs."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st


def path_searches(ids: Sequence[Any], on_nodes: Sequence[str], on_edges: Sequence[str], on_paths: Sequence[str]) -> Any:
    """Return a strategy of ``(arguments of paths by position, by name)``."""
    given = st.one_of(st.lists(st.sampled_from(ids), min_size=1, max_size=3), st.sampled_from(on_nodes), st.none())
    named = st.fixed_dictionaries(
        {},
        optional={
            "via": st.sampled_from(on_edges),
            "where": st.sampled_from(on_paths),
            "shortest": st.booleans(),
            "limit": st.integers(0, 6),
            "max_length": st.integers(1, 4),
            "direction": st.sampled_from(("out", "in", "both")),
            "capped": st.booleans(),
        },
    )
    return st.tuples(given, given, named)


def walks(ids: Sequence[Any], on_edges: Sequence[str]) -> Any:
    """Return a strategy of ``(starts, arguments of walk by name)``."""
    named = st.fixed_dictionaries(
        {"depth": st.integers(1, 4), "direction": st.sampled_from(("out", "in", "both")), "trace": st.booleans()},
        optional={"via": st.sampled_from(on_edges)},
    )
    return st.tuples(st.lists(st.sampled_from(ids), max_size=3), named)
