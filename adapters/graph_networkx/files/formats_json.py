"""Node-link JSON: ``{"directed", "multigraph", "graph", "nodes": [{"id", ...}], "edges" or "links": [{"source", "target", ...}]}``.

NetworkX's shape, d3's too where its links name ids. Strict: one value a name, and numbers that JSON has.
"""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn

import networkx as nx

from .formats_xml import fault

__all__ = ["read_node_link"]

_SHAPE = '{"nodes": [{"id": "a"}, {"id": "b"}], "edges": [{"source": "a", "target": "b"}]}'


class _Strict(ValueError):
    """What the JSON module would take and we do not."""


def read_node_link(data: bytes, name: str, warn: Callable[[str], None]) -> "nx.Graph[Any]":
    """Return the graph that ``data`` holds. Where "multigraph" is not said, parallel edges make it one. Raises ``AdapterError``."""
    document = _decoded(data, name)

    def fail(message: str, hint: str = f"the shape is {_SHAPE}") -> NoReturn:
        raise fault(name, None, message, hint)

    if not isinstance(document, dict):
        fail("the JSON is not an object")
    if "edges" in document and "links" in document:
        fail('the object has both "edges" and "links"', "keep the one that holds the edges")
    nodes, edges = (
        _objects(document, "nodes", fail),
        _objects(document, "links" if "links" in document else "edges", fail),
    )
    flags = {flag: document.get(flag) for flag in ("directed", "multigraph")}
    for flag, value in flags.items():
        if not isinstance(value, bool | None):
            fail(f'"{flag}" is not true or false', f'write "{flag}": true or false')
    ids: dict[Any, int] = {}
    graph: Any = nx.MultiDiGraph() if flags["directed"] else nx.MultiGraph()
    if isinstance(about := document.get("graph"), dict):
        graph.graph.update(about)
    for index, node in enumerate(nodes):
        if "id" not in node:
            fail(f'nodes[{index}] has no "id"')
        id = _id(node.pop("id"))
        if id is None:
            fail(f'nodes[{index}]: "id" is no text or number')
        if id in ids:
            fail(f"nodes[{index}] has the id of nodes[{ids[id]}]: {str(id)[:60]!r}", "give each node its own id")
        ids[id] = index
        graph.add_nodes_from([(id, node)])
    unnamed: dict[Any, int] = {}
    keyed = False
    for index, edge in enumerate(edges):
        ends = []
        for end in ("source", "target"):
            at = _id(edge.pop(end, None))
            if at is None:
                fail(f'edges[{index}] has no "{end}" that is a text or number')
            if at not in ids:
                unnamed.setdefault(at, index)
            ends.append(at)
        key = None
        if flags["multigraph"] is not False and "key" in edge:
            key, keyed = _id(edge.pop("key")), True
            if key is not None and graph.has_edge(*ends, key):
                fail(
                    f"edges[{index}] has the ends and the key of an earlier edge",
                    "give parallel edges keys of their own",
                )
        graph.add_edges_from([(*ends, key, edge)])
    if unnamed:
        some, index = next(iter(unnamed.items()))
        warn(
            f"{len(unnamed)} nodes are named by edges only, the first {str(some)[:60]!r} in edges[{index}]; they are added bare"
        )
    parallel = any(len(keys) > 1 for ends in graph.adj.values() for keys in ends.values())
    if parallel and flags["multigraph"] is False:
        warn('"multigraph" is false, yet some edges are parallel; the graph is read as a multigraph')
    if parallel or keyed or flags["multigraph"]:
        return graph
    return nx.DiGraph(graph) if flags["directed"] else nx.Graph(graph)


def _objects(document: dict[str, Any], part: str, fail: Callable[[str], NoReturn]) -> list[dict[str, Any]]:
    value = document.get(part)
    if not isinstance(value, list):
        fail(f'"{part}" is not a list' if part in document else f'the object has no "{part}"')
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            fail(f"{part}[{index}] is not an object")
    return value


def _id(value: Any) -> Any:
    """Return ``value`` as NetworkX takes it for an id: a list as a tuple; None for what is none."""
    if isinstance(value, list):
        return tuple(_id(item) for item in value)
    if isinstance(value, bool | dict) or value is None:
        return None
    return value


def _decoded(data: bytes, name: str) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        known = dict(items)
        if len(known) < len(items):
            counts = Counter(key for key, _ in items)
            raise _Strict(f'an object has "{next(key for key in counts if counts[key] > 1)[:60]}" twice')
        return known

    def constant(word: str) -> NoReturn:
        raise _Strict(f"{word} is no number of JSON; write null")

    def integer(digits: str) -> int:
        # Longer ones have no place in a graph and would take quadratic time to read.
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
        hint = "it may have been cut off: write or fetch it again" if ended else ""
        message = error.msg[:1].lower() + error.msg[1:]
        raise fault(name, error.lineno, f"not JSON: {message} (column {error.colno})", hint) from None
    except RecursionError:
        raise fault(name, None, "the JSON is nested too deep") from None
    except _Strict as error:
        raise fault(
            name, None, str(error), "the JSON must have one value a name, and numbers that are finite and not endless"
        ) from None
