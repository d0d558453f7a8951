"""The ``MEASURE`` algorithms: the rows that each algorithm returns, its settings, and the meaning of its weight.

Each algorithm is declared only here. The linter, completion, the executor and the graph engine use this table, so a check without a
graph knows the same names as the engine. See ``docs/reference/gasl.md#measure``.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from ..diagnostic import nearest

Shape: TypeAlias = Literal["nodes", "hits", "edges", "pairs", "summary"]
"""The rows of an algorithm: one for each node, edge or pair of nodes, or a single row; "hits" has two values for each node."""


@frozen
class MeasureSetting:
    """A setting in parentheses: a number between ``minimum`` and ``maximum``, or one of ``words``."""

    default: float | str
    minimum: float = 0.0
    maximum: float = 0.0
    words: tuple[str, ...] = ()

    def needed(self, value: Any) -> str:
        """Return a description of the values that the setting accepts, if ``value`` is not one of them; else ""."""
        if self.words:
            return "" if value in self.words else " or ".join(f'"{word}"' for word in self.words)
        if isinstance(value, int | float) and not isinstance(value, bool) and self.minimum <= value <= self.maximum:
            return ""
        return f"a number from {self.minimum:g} to {self.maximum:g}"


@frozen
class MeasureSpec:
    """An algorithm.

    ``weight`` says what ``BY value`` means: a "strength" (more is closer), a "distance" (more is farther), or "" if the algorithm takes no
    weight. If ``weighted`` is true and the command has no BY, the algorithm uses ``default_weights``. If ``directed`` is
    true, the algorithm needs a directed graph, and ``instead`` is the similar algorithm for undirected graphs.
    """

    shape: Shape = "nodes"
    weight: Literal["strength", "distance", ""] = ""
    settings: Mapping[str, MeasureSetting] = field(factory=dict)
    directed: bool = False
    instead: str = ""
    weighted: bool = False


_METHODS = ("louvain", "leiden", "label_propagation")

MEASURES: Mapping[str, MeasureSpec] = MappingProxyType(
    {
        "pagerank": MeasureSpec(weight="strength", settings={"damping": MeasureSetting(0.85, 0.0, 1.0)}, weighted=True),
        "degree": MeasureSpec(weight="strength"),
        "in_degree": MeasureSpec(weight="strength", directed=True, instead="degree"),
        "out_degree": MeasureSpec(weight="strength", directed=True, instead="degree"),
        "betweenness": MeasureSpec(weight="distance"),
        "closeness": MeasureSpec(weight="distance"),
        "harmonic": MeasureSpec(weight="distance"),
        "eccentricity": MeasureSpec(weight="distance"),
        "eigenvector": MeasureSpec(weight="strength"),
        "clustering": MeasureSpec(),
        "triangles": MeasureSpec(),
        "core_number": MeasureSpec(),
        "components": MeasureSpec(),
        "strong_components": MeasureSpec(directed=True, instead="components"),
        "communities": MeasureSpec(
            weight="strength",
            settings={
                "method": MeasureSetting("louvain", words=_METHODS),
                "resolution": MeasureSetting(1.0, 0.0, 1000.0),
            },
            weighted=True,
        ),
        "articulation": MeasureSpec(),
        "topological_generation": MeasureSpec(directed=True, instead="components"),
        "hits": MeasureSpec("hits", weight="strength"),
        "bridges": MeasureSpec("edges"),
        "edge_betweenness": MeasureSpec("edges", weight="distance"),
        "jaccard": MeasureSpec("pairs"),
        "adamic_adar": MeasureSpec("pairs"),
        "common_neighbors": MeasureSpec("pairs"),
        "resource_allocation": MeasureSpec("pairs"),
        "summary": MeasureSpec("summary"),
    }
)
"""Maps the name of each algorithm to the algorithm."""

SUMMARY = ("nodes", "edges", "density", "components", "largest_component", "transitivity", "reciprocity")
"""The columns of the single row that ``summary`` returns."""

_OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        **{method: f'communities(method = "{method}")' for method in _METHODS},
        "modularity": "communities", "community": "communities",
        "k_core": "core_number", "kcore": "core_number", "coreness": "core_number", "core": "core_number",
        "hubs": "hits", "hub": "hits", "authorities": "hits", "authority": "hits",
        "degree_centrality": "degree", "indegree": "in_degree", "outdegree": "out_degree", "strength": "degree",
        "in_degree_centrality": "in_degree", "out_degree_centrality": "out_degree",
        "betweenness_centrality": "betweenness", "closeness_centrality": "closeness",
        "harmonic_centrality": "harmonic", "eigenvector_centrality": "eigenvector", "page_rank": "pagerank",
        "edge_betweenness_centrality": "edge_betweenness",
        "connected_components": "components", "weakly_connected_components": "components", "wcc": "components",
        "weak_components": "components", "scc": "strong_components",
        "strongly_connected_components": "strong_components",
        "clustering_coefficient": "clustering", "local_clustering_coefficient": "clustering",
        "triangle_count": "triangles", "articulation_points": "articulation", "cut_vertices": "articulation",
        "cut_nodes": "articulation", "cut_edges": "bridges", "bridge": "bridges",
        "topological_sort": "topological_generation", "topological_generations": "topological_generation",
        "jaccard_coefficient": "jaccard", "adamic_adar_index": "adamic_adar", "common_neighbours": "common_neighbors",
        "resource_allocation_index": "resource_allocation", "diameter": "eccentricity", "radius": "eccentricity",
        "density": "summary", "transitivity": "summary", "reciprocity": "summary", "average_clustering": "summary",
    }
)  # fmt: skip
"""Maps names from other tools to their replacements."""
_OTHER_RESULTS: Mapping[str, str] = MappingProxyType(
    {
        "modularity": "communities finds the communities with a high modularity, and returns the community of each node",
        "diameter": "eccentricity returns the largest distance of each node; the diameter is the maximum: RANK rows BY eccentricity DESC",
        "radius": "eccentricity returns the largest distance of each node; the radius is the minimum: RANK rows BY eccentricity",
        "density": "summary returns one row with density", "transitivity": "summary returns one row with transitivity",
        "reciprocity": "summary returns one row with reciprocity",
        "average_clustering": "clustering returns the value of each node; AGGREGATE rows COMPUTE mean(clustering) AS average AS rows",
        "strength": "write degree BY weight",
    }
)  # fmt: skip
"""Maps names from other tools to hints. A hint names an algorithm for the same purpose, which returns a different result."""


def meant_algorithm(name: str) -> str:
    """Return the replacement for an unknown algorithm: a known name, with a setting if necessary; "" if no name is similar."""
    lowered = name.lower()
    if lowered in MEASURES:
        return lowered
    return _OTHER_NAMES.get(lowered) or nearest(lowered, MEASURES) or ""


def other_result(name: str) -> str:
    """Return a hint for an unknown algorithm whose replacement has a different result, else ""."""
    return _OTHER_RESULTS.get(name.lower(), "")


def columns_of(algorithm: str) -> tuple[str, ...] | None:
    """Return the columns of an algorithm's rows; None for an unknown algorithm."""
    spec = MEASURES.get(algorithm)
    if spec is None:
        return None
    columns: Mapping[Shape, tuple[str, ...]] = {
        "nodes": ("id", algorithm),
        "hits": ("id", "hub", "authority"),
        "edges": ("source", "target", algorithm),
        "pairs": ("source", "target", algorithm),
        "summary": SUMMARY,
    }
    return columns[spec.shape]


def faults_of(algorithm: str, settings: Mapping[str, Any], *, weighted: bool) -> tuple[str, str] | None:
    """Return a message and a hint if a known algorithm has an invalid setting or weight. Return None if all are valid.

    ``weighted`` is true if the command gives a weight with BY.
    """
    spec = MEASURES[algorithm]
    for name, value in settings.items():
        setting = spec.settings.get(name)
        if setting is None:
            hint = f"its settings are {', '.join(spec.settings)}" if spec.settings else "remove the parentheses"
            return f"{algorithm} has no setting {name}", hint
        if needed := setting.needed(value):
            return (
                f"{name} of {algorithm} takes {needed}, not {_shown(value)}",
                f"the default is {_shown(setting.default)}",
            )
    return weight_fault(algorithm) if weighted else None


def weight_fault(algorithm: str) -> tuple[str, str] | None:
    """Return None if a known algorithm accepts a weight; otherwise, return a message and a hint."""
    if MEASURES[algorithm].weight:
        return None
    takers = ", ".join(each for each, spec in MEASURES.items() if spec.weight)
    return f"{algorithm} takes no weight", f"remove BY; algorithms with a weight: {takers}"


# How the edges are weighted, as a note, and the weight of an algorithm without BY.

BY_1 = "unweighted (BY 1)"


def no_weight(algorithm: str) -> str:
    """Return a note that an algorithm is unweighted without BY."""
    return "unweighted without BY" if MEASURES[algorithm].weight else f"unweighted: {algorithm} takes no weight"


def default_weights(
    edges: Sequence[Mapping[Any, Any]], ends: Callable[[int], tuple[Any, Any]]
) -> tuple[str, list[float] | None, str]:
    """Return the attribute with the weights, the weight of each edge, and a note; "" and None for an unweighted graph.

    The attribute is ``weight``. If no edge has it, it is the only attribute that differs from ``weight`` in case. A missing
    weight is 1. If the weight of an edge is not a finite number of at least 0, the graph is unweighted, and the note says why.
    ``ends`` returns the source and the target of the edge at an index.
    """
    name = "weight"
    found = [edge.get(name) for edge in edges]
    if all(value is None for value in found):
        others = {each for edge in edges for each in edge if isinstance(each, str) and each.casefold() == "weight"}
        others.discard(name)
        if len(others) > 1:
            names = " and ".join(sorted(others))
            return "", None, f"unweighted: no edge has an attribute weight, but there are {names}"
        if not others:
            return "", None, "unweighted: no edge has an attribute weight"
        name = others.pop()
        found = [edge.get(name) for edge in edges]
    wrong = {at: kind for at, value in enumerate(found) if value is not None and (kind := _unusable(value))}
    if wrong:
        counts = [f"{kind} on {count:,} of {len(found):,} edges" for kind, count in Counter(wrong.values()).items()]
        at = next(iter(wrong))
        source, target = (str(each)[:_SHOWN] for each in ends(at))
        first = f"the first is {_shown(found[at])[:_SHOWN]}, on the edge from {source} to {target}"
        fix = (
            f"; BY number({name}) reads numbers in texts" if all(isinstance(found[each], str) for each in wrong) else ""
        )
        return "", None, f"unweighted: {name} is {' and '.join(counts)} ({first}{fix})"
    missing = sum(value is None for value in found)
    note = f"weighted by {name}"
    if missing:
        note += f" ({missing:,} of {len(found):,} edges have no {name}, which counts as 1)"
    return name, [1.0 if value is None else float(value) for value in found], note


def _unusable(value: Any) -> str:
    """Return why a value can't be a weight; "" if it can."""
    if isinstance(value, str):
        return "a text"
    if isinstance(value, bool) or not isinstance(value, Real):
        return "not a number"
    number: Any = value
    return "negative" if number < 0 else "" if number <= sys.float_info.max else "not finite"


_SHOWN = 60
"""Maximum number of characters of a value that a message shows."""


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value[:_SHOWN], ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)
