"""Readers of graph formats: node-link JSON and generated graphs."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import networkx as nx
from attrs import frozen

from ...lang.diagnostic import nearest
from ..graph import AdapterError
from .directions import Directions, UnknownDirection, directions_of

DEEPEST = 100
"""Maximum depth of elements or brackets. NetworkX's own files have 4 levels, yEd's files fewer than 20."""


def fault(name: str, line: int | None, message: str, hint: str = "") -> AdapterError:
    """Return an error with its location: ``name:line: message``."""
    place = name if line is None else f"{name}:{line}"
    return AdapterError(f"{place}: {message}", hint=hint)


# Node-link: ``{"directed", "multigraph", "graph", "nodes": [{"id", ...}], "edges" or "links": [{"source", "target", ...}]}``.
# NetworkX writes this form; so does d3 if its links refer to ids. Duplicate names and invalid JSON numbers are refused.

_SHAPE = '{"nodes": [{"id": "a"}, {"id": "b"}], "edges": [{"source": "a", "target": "b"}]}'
_PARTS = ("nodes", "edges", "links", "directed", "multigraph", "graph")


class _Strict(ValueError):
    """Raised for input that the JSON module accepts but this reader refuses."""


def read_node_link(data: bytes, name: str, warn: Callable[[str], None]) -> "nx.Graph[Any]":
    """Return the graph in ``data``. If "multigraph" is missing, parallel edges imply a multigraph. Raises ``AdapterError``."""
    document = _parsed_json(data, name)

    def fail(message: str, hint: str = f"the shape is {_SHAPE}") -> NoReturn:
        raise fault(name, None, message, hint)

    if not isinstance(document, dict):
        fail("the JSON is not an object")
    if "edges" in document and "links" in document:
        fail('the object has both "edges" and "links"', "keep the one that contains the edges")
    nodes = _objects(document, "nodes", fail)
    edges = _objects(document, "links" if "links" in document else "edges", fail)
    flags = {flag: document.get(flag) for flag in ("directed", "multigraph")}
    for flag, value in flags.items():
        if not isinstance(value, bool | None):
            fail(f'"{flag}" is not true or false', f'write "{flag}": true or false')
    ids: dict[Any, int] = {}
    try:
        stated = directions_of(edges, warn)
    except UnknownDirection as error:
        fail(f"edges[{error.at}]: {error}", error.hint)
    directions = Directions.of(stated, warn, declared=flags["directed"], default=False)
    graph: Any = nx.MultiDiGraph() if directions.directed else nx.MultiGraph()
    if isinstance(about := document.get("graph"), dict):
        graph.graph.update(about)
    elif about:
        warn('"graph" is not an object; its content is not read')
    if others := [key[:60] for key in document if key not in _PARTS]:
        warn(f"{len(others)} other keys of the object are not read: {', '.join(map(repr, others[:5]))}")
    for index, node in enumerate(nodes):
        if "id" not in node:
            fail(f'nodes[{index}] has no "id"')
        id = _id(node.pop("id"))
        if id is None:
            fail(f'nodes[{index}]: "id" is not a string or number')
        if id in ids:
            fail(f"nodes[{index}] has the same id as nodes[{ids[id]}]: {str(id)[:60]!r}", "give each node its own id")
        ids[id] = index
        graph.add_nodes_from([(id, node)])
    unnamed: dict[Any, int] = {}
    keyed = False
    for index, edge in enumerate(edges):
        ends = []
        for end in ("source", "target"):
            at = _id(edge.pop(end, None))
            if at is None:
                fail(f'edges[{index}]: "{end}" is missing, or is not a string or number')
            if at not in ids:
                unnamed.setdefault(at, index)
            ends.append(at)
        key = None
        if flags["multigraph"] is not False and "key" in edge:
            key, keyed = _id(edge["key"]), True
            if key is not None or edge["key"] is None:
                del edge["key"]
            if key is not None and graph.has_edge(*ends, key):
                hint = "give parallel edges different keys"
                fail(f"edges[{index}] has the same ends and key as an earlier edge", hint)
        for source, target in directions.ends(index, *ends):
            own = None if key is not None and graph.has_edge(source, target, key) else key
            graph.add_edges_from([(source, target, own, dict(edge))])
    if unnamed:
        some, index = next(iter(unnamed.items()))
        texts = {str(id): id for id in ids}
        alike = next((f" ({at!r} is not the node {texts[str(at)]!r})"[:160] for at in unnamed if str(at) in texts), "")
        first = f"{len(unnamed)} nodes occur only in edges, the first ({some!r:.60}) in edges[{index}]"
        warn(f"{first}; they are added without attributes{alike}")
    parallel = any(len(keys) > 1 for ends in graph.adj.values() for keys in ends.values())
    if parallel and flags["multigraph"] is False:
        warn('"multigraph" is false, but some edges are parallel; the graph is read as a multigraph')
    if parallel or keyed or flags["multigraph"]:
        return graph
    return nx.DiGraph(graph) if directions.directed else nx.Graph(graph)


def _objects(document: dict[str, Any], part: str, fail: Callable[[str], NoReturn]) -> list[dict[str, Any]]:
    value = document.get(part)
    if not isinstance(value, list):
        fail(f'"{part}" is not a list' if part in document else f'the object has no "{part}"')
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            fail(f"{part}[{index}] is not an object")
    return value


def _id(value: Any) -> Any:
    """Return ``value`` as a NetworkX id; None if ``value`` is not a valid id. A list becomes a tuple."""
    if isinstance(value, list):
        return tuple(_id(item) for item in value)
    if isinstance(value, bool | dict) or value is None:
        return None
    return value


def _parsed_json(data: bytes, name: str) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        known = dict(items)
        if len(known) < len(items):
            counts = Counter(key for key, _ in items)
            raise _Strict(f'an object has the key "{next(key for key in counts if counts[key] > 1)[:60]}" twice')
        return known

    def constant(word: str) -> NoReturn:
        raise _Strict(f"{word} is not valid JSON; write null")

    def integer(digits: str) -> int:
        # Longer numbers are not allowed in a graph, and parsing takes quadratic time.
        if len(digits) > 400:
            raise _Strict(f"a number has {len(digits):,} digits")
        return int(digits)

    try:
        text = data.decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_int=integer)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise fault(name, line, "not UTF-8", "save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        ended = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        hint = "the file may be incomplete: write or fetch it again" if ended else ""
        message = error.msg[:1].lower() + error.msg[1:]
        raise fault(name, error.lineno, f"not JSON: {message} (column {error.colno})", hint) from None
    except RecursionError:
        raise fault(name, None, "the JSON is nested too deeply") from None
    except _Strict as error:
        raise fault(
            name, None, str(error), "write each key once, and only finite numbers of at most 400 digits"
        ) from None


# ``nx:NAME`` and ``nx:NAME(arguments)``: NetworkX's own graphs, limited to generators of bounded size that read no files.
# Arguments are numeric literals; the default seed of random graphs is 0. The number of edges is estimated and checked before a
# graph is generated.

LARGEST = 2_000_000
"""Maximum size of a generated graph: the estimated number of its nodes and edges together."""

_PLAIN = (
    "bull", "chvatal", "cubical", "davis_southern_women", "desargues", "diamond", "dodecahedral",
    "florentine_families", "frucht", "heawood", "hoffman_singleton", "house", "house_x", "icosahedral",
    "karate_club", "krackhardt_kite", "les_miserables", "moebius_kantor", "octahedral", "pappus", "petersen",
    "sedgewick_maze", "tetrahedral", "truncated_cube", "truncated_tetrahedron", "tutte",
)  # fmt: skip


@frozen
class _Generator:
    """A generator. It accepts ``least`` to ``most`` numeric arguments; ``cost`` estimates its number of nodes and edges."""

    function: str
    least: int
    most: int
    cost: Callable[..., float]
    seeded: bool = False


_SIZED: Mapping[str, _Generator] = {
    "balanced_tree": _Generator("balanced_tree", 2, 2, lambda r, h: 2 * (float(r) + 1) ** (h + 1)),
    "barabasi_albert": _Generator("barabasi_albert_graph", 2, 3, lambda n, m, seed=0: n * (m + 1), seeded=True),
    "barbell": _Generator("barbell_graph", 2, 2, lambda m, n: m * m + n),
    "binomial_tree": _Generator("binomial_tree", 1, 1, lambda n: 2.0 ** (n + 1)),
    "circular_ladder": _Generator("circular_ladder_graph", 1, 1, lambda n: 5 * n),
    "complete": _Generator("complete_graph", 1, 1, lambda n: n * n),
    "complete_bipartite": _Generator("complete_bipartite_graph", 2, 2, lambda m, n: m * n + m + n),
    "cycle": _Generator("cycle_graph", 1, 1, lambda n: 2 * n),
    "erdos_renyi": _Generator("erdos_renyi_graph", 2, 3, lambda n, p, seed=0: n * n / 2, seeded=True),
    "gnp_random": _Generator("gnp_random_graph", 2, 3, lambda n, p, seed=0: n * n / 2, seeded=True),
    "fast_gnp_random": _Generator("fast_gnp_random_graph", 2, 3, lambda n, p, seed=0: n + n * n * p, seeded=True),
    "grid_2d": _Generator("grid_2d_graph", 2, 2, lambda m, n: 3 * m * n),
    "hypercube": _Generator("hypercube_graph", 1, 1, lambda n: n * 2.0**n),
    "ladder": _Generator("ladder_graph", 1, 1, lambda n: 5 * n),
    "lollipop": _Generator("lollipop_graph", 2, 2, lambda m, n: m * m + n),
    "path": _Generator("path_graph", 1, 1, lambda n: 2 * n),
    "powerlaw_cluster": _Generator(
        "powerlaw_cluster_graph", 3, 4, lambda n, m, p, seed=0: n * (m + 1) * 2, seeded=True
    ),
    "scale_free": _Generator("scale_free_graph", 1, 1, lambda n: 4 * n, seeded=True),
    "star": _Generator("star_graph", 1, 1, lambda n: 2 * n),
    "turan": _Generator("turan_graph", 2, 2, lambda n, r: n * n),
    "watts_strogatz": _Generator("watts_strogatz_graph", 3, 4, lambda n, k, p, seed=0: n * (k + 1), seeded=True),
    "wheel": _Generator("wheel_graph", 1, 1, lambda n: 3 * n),
}

_CALL = re.compile(r"([A-Za-z0-9_]{1,60})(?:\(([0-9eE.,+\- ]{0,100})\))?", re.ASCII)


def generators() -> tuple[str, ...]:
    """Return the names that ``nx:`` accepts. Names of generators that take numbers end in ``(...)``."""
    return tuple(sorted([*_PLAIN, *(f"{name}(...)" for name in _SIZED)]))


def generate(spec: str) -> "nx.Graph[Any]":
    """Return the graph of ``spec``, such as ``les_miserables`` or ``grid_2d(3, 4)``. Raises ``AdapterError``."""
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
            return _generated(bare, f"{bare}_graph" if hasattr(nx, f"{bare}_graph") else bare, (), {})
        if bare in _SIZED:
            return _generate_sized(bare, _SIZED[bare], written or "")
    known = [*_PLAIN, *_SIZED]
    begun = [other for other in known if len(name) > 2 and other.startswith(name)]
    near = begun[0] if begun else nearest(name, known)
    raise AdapterError(
        f"unknown graph nx:{name}",
        hint=f"did you mean nx:{near}?" if near else f"the graphs are {', '.join(generators())}",
    )


def _generate_sized(name: str, known: _Generator, written: str) -> "nx.Graph[Any]":
    numbers: list[int | float] = []
    for text in filter(None, (piece.strip() for piece in written.split(","))):
        try:
            numbers.append(int(text) if re.fullmatch(r"[+-]?\d{1,15}", text) else float(text))
        except ValueError:
            raise AdapterError(f"nx:{name}: {text[:20]!r} is not a number") from None
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
        hint = f"the limit is about {LARGEST:,} nodes and edges"
        raise AdapterError(f"nx:{name}({written}) would be too large", hint=hint)
    keywords = {"seed": 0} if known.seeded and len(numbers) < max(known.most, known.least + 1) else {}
    return _generated(name, known.function, tuple(numbers), keywords)


def _generated(name: str, function: str, numbers: tuple[int | float, ...], keywords: dict[str, Any]) -> "nx.Graph[Any]":
    try:
        graph: nx.Graph[Any] = getattr(nx, function)(*numbers, **keywords)
    except (nx.NetworkXException, TypeError, ValueError, ArithmeticError) as error:
        shown = f"nx:{name}({', '.join(map(str, numbers))})"
        raise AdapterError(f"{shown} can't be generated: {str(error)[:120]}") from None
    return graph
