"""``nx:NAME`` and ``nx:NAME(arguments)``: NetworkX's own graphs, by a list of those that are bounded and need no file.

Arguments are literal numbers; random graphs have the fixed seed 0 unless one is given. Before a graph is made, its number
of edges is estimated and bounded.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import networkx as nx
from attrs import frozen

from ....lang.diagnostic import nearest
from ...graph import AdapterError

__all__ = ["LARGEST", "generate", "generators"]

LARGEST = 2_000_000
"""Nodes and edges that a generated graph may have together, by estimate."""

_PLAIN = (
    "bull", "chvatal", "cubical", "davis_southern_women", "desargues", "diamond", "dodecahedral",
    "florentine_families", "frucht", "heawood", "hoffman_singleton", "house", "house_x", "icosahedral",
    "karate_club", "krackhardt_kite", "les_miserables", "moebius_kantor", "octahedral", "pappus", "petersen",
    "sedgewick_maze", "tetrahedral", "truncated_cube", "truncated_tetrahedron", "tutte",
)  # fmt: skip


@frozen
class _Sized:
    """A graph with numbers: ``least`` to ``most`` of them, and about how many nodes and edges that gives."""

    function: str
    least: int
    most: int
    cost: Callable[..., float]
    seeded: bool = False


_SIZED: Mapping[str, _Sized] = {
    "balanced_tree": _Sized("balanced_tree", 2, 2, lambda r, h: 2 * (float(r) + 1) ** (h + 1)),
    "barabasi_albert": _Sized("barabasi_albert_graph", 2, 3, lambda n, m, seed=0: n * (m + 1), seeded=True),
    "barbell": _Sized("barbell_graph", 2, 2, lambda m, n: m * m + n),
    "binomial_tree": _Sized("binomial_tree", 1, 1, lambda n: 2.0 ** (n + 1)),
    "circular_ladder": _Sized("circular_ladder_graph", 1, 1, lambda n: 5 * n),
    "complete": _Sized("complete_graph", 1, 1, lambda n: n * n),
    "complete_bipartite": _Sized("complete_bipartite_graph", 2, 2, lambda m, n: m * n + m + n),
    "cycle": _Sized("cycle_graph", 1, 1, lambda n: 2 * n),
    "erdos_renyi": _Sized("erdos_renyi_graph", 2, 3, lambda n, p, seed=0: n * n / 2, seeded=True),
    "gnp_random": _Sized("gnp_random_graph", 2, 3, lambda n, p, seed=0: n * n / 2, seeded=True),
    "fast_gnp_random": _Sized("fast_gnp_random_graph", 2, 3, lambda n, p, seed=0: n + n * n * p, seeded=True),
    "grid_2d": _Sized("grid_2d_graph", 2, 2, lambda m, n: 3 * m * n),
    "hypercube": _Sized("hypercube_graph", 1, 1, lambda n: n * 2.0**n),
    "ladder": _Sized("ladder_graph", 1, 1, lambda n: 5 * n),
    "lollipop": _Sized("lollipop_graph", 2, 2, lambda m, n: m * m + n),
    "path": _Sized("path_graph", 1, 1, lambda n: 2 * n),
    "powerlaw_cluster": _Sized("powerlaw_cluster_graph", 3, 4, lambda n, m, p, seed=0: n * (m + 1) * 2, seeded=True),
    "scale_free": _Sized("scale_free_graph", 1, 1, lambda n: 4 * n, seeded=True),
    "star": _Sized("star_graph", 1, 1, lambda n: 2 * n),
    "turan": _Sized("turan_graph", 2, 2, lambda n, r: n * n),
    "watts_strogatz": _Sized("watts_strogatz_graph", 3, 4, lambda n, k, p, seed=0: n * (k + 1), seeded=True),
    "wheel": _Sized("wheel_graph", 1, 1, lambda n: 3 * n),
}

_CALL = re.compile(r"([A-Za-z0-9_]{1,60})(?:\(([0-9eE.,+\- ]{0,100})\))?", re.ASCII)


def generators() -> tuple[str, ...]:
    """Return the names that ``nx:`` knows, those that take numbers with the brackets."""
    return tuple(sorted([*_PLAIN, *(f"{name}(...)" for name in _SIZED)]))


def generate(spec: str) -> "nx.Graph[Any]":
    """Return the graph that ``spec`` names: ``les_miserables``, ``grid_2d(3, 4)``. Raises ``AdapterError``."""
    match = _CALL.fullmatch(spec.strip())
    if match is None:
        raise AdapterError(
            f"{'nx:' + spec[:60]!r} can't be read",
            hint="write nx:NAME or nx:NAME(numbers), for example nx:grid_2d(3,4)",
        )
    name, written = match[1].lower(), match[2]
    for ending in ("_graph", ""):
        bare = name.removesuffix(ending) if ending else name
        if bare in _PLAIN:
            if written and written.strip():
                raise AdapterError(f"nx:{bare} takes no numbers", hint=f"write nx:{bare}")
            return _made(bare, f"{bare}_graph" if hasattr(nx, f"{bare}_graph") else bare, (), {})
        if bare in _SIZED:
            return _sized(bare, _SIZED[bare], written or "")
    known = [*_PLAIN, *_SIZED]
    begun = [other for other in known if len(name) > 2 and other.startswith(name)]
    near = begun[0] if begun else nearest(name, known)
    raise AdapterError(
        f"nx:{name} is no graph of NetworkX that can be asked for",
        hint=f"did you mean nx:{near}?" if near else f"known: {', '.join(generators())}",
    )


def _sized(name: str, known: _Sized, written: str) -> "nx.Graph[Any]":
    numbers: list[int | float] = []
    for text in filter(None, (piece.strip() for piece in written.split(","))):
        try:
            numbers.append(int(text) if re.fullmatch(r"[+-]?\d{1,15}", text) else float(text))
        except ValueError:
            raise AdapterError(f"nx:{name}: {text[:20]!r} is no number") from None
    if not known.least <= len(numbers) <= known.most:
        counted = str(known.least) if known.least == known.most else f"{known.least} to {known.most}"
        example = ",".join(["3", "2", "0.1", "1"][: known.least])
        raise AdapterError(f"nx:{name} takes {counted} numbers, not {len(numbers)}", hint=f"write nx:{name}({example})")
    if any(abs(number) > LARGEST for number in numbers):
        raise AdapterError(f"nx:{name}({written}) would be too large")
    try:
        cost = known.cost(*numbers)
    except (OverflowError, ArithmeticError):
        cost = float("inf")
    if not cost <= LARGEST:
        hint = f"about {LARGEST:,} nodes and edges are the limit"
        raise AdapterError(f"nx:{name}({written}) would be too large", hint=hint)
    keywords = {"seed": 0} if known.seeded and len(numbers) < max(known.most, known.least + 1) else {}
    return _made(name, known.function, tuple(numbers), keywords)


def _made(name: str, function: str, numbers: tuple[int | float, ...], keywords: dict[str, Any]) -> "nx.Graph[Any]":
    try:
        graph: nx.Graph[Any] = getattr(nx, function)(*numbers, **keywords)
    except (nx.NetworkXException, TypeError, ValueError, ArithmeticError) as error:
        shown = f"nx:{name}({', '.join(map(str, numbers))})"
        raise AdapterError(f"{shown} can't be made: {str(error)[:120]}") from None
    return graph
