"""Hints for a command that found nothing: the probable name or value, or the existing values."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Literal

from attrs import frozen

from ....adapters.graph import MOST_TEXTS, GraphAdapter
from ....lang.catalogue.schema import Attribute
from ....lang.diagnostic import nearest
from ....lang.evaluate.conditions import identity
from ....lang.literals import short
from ....lang.trees import walk
from ....lang.trees.conditions import Comparison, Condition, Constant, Field, Items, Operator
from ....lang.unicode_forms import canonical
from .bindings import listed
from .columns import read

_LOOKED_AT = 10_000
"""Maximum number of items whose values are read."""
_IDS = 1_000
"""Maximum number of nodes whose ids are read to determine whether ids are texts or integers."""
_LONGEST = 200
"""Maximum characters of a text for which texts with the same words are searched."""
_SHARE = 0.4
"""Minimum ratio of the lengths of two texts (shorter to longer) for a match by words."""
_VALUES = 5
_ASKED = 20
_TRIED = 5
"""Maximum number of requested values for which similar values are searched."""
_MANY = 1_000
_CLOSE = 0.8
"""Minimum similarity of two spellings if there are many candidates, because a lower similarity may be a coincidence."""
_HINTS = 3
_OFFERED = 30
"""Maximum number of attribute names in a hint."""
_DEGREES = ("degree", "in_degree", "out_degree")
_BUILT_IN = frozenset({"id", *_DEGREES, "source", "target", "key", "length", "nodes", "edges"})
"""Field names that items of some kind have in every graph."""

Values = Sequence[tuple[Any, int]]


@frozen
class Known:
    """The candidates for hints: the names of attributes, and the frequent values of each attribute with their counts.

    ``kinds`` returns the JSON kinds of an attribute's values ("text", "integer", ...; empty if unknown). ``texts`` returns all its
    distinct texts, including rare texts, and may have to scan the graph. ``ends`` has the candidates for the nodes at the ends of
    edges and paths. ``what`` is the word for the items in a message, such as "nodes".
    """

    names: Sequence[str]
    values: Callable[[str], Values]
    kinds: Callable[[str], Collection[str]]
    texts: Callable[[str], Sequence[str]]
    ends: "Known | None" = None
    what: str = "items"


def known_of_graph(graph: GraphAdapter, kind: str) -> Known:
    """Return the candidates from a graph's nodes, edges or paths. The first call computes the schema, which may take long."""
    schema = graph.schema
    nodes = _known(graph, "nodes", schema.node_attributes, counted=_DEGREES)
    if kind == "nodes":
        return nodes
    return _known(graph, "edges", schema.edge_attributes, nodes, counted=("length",) if kind == "paths" else ())


def _known(
    graph: GraphAdapter,
    what: Literal["nodes", "edges"],
    attributes: Mapping[str, Attribute],
    ends: Known | None = None,
    *,
    counted: Collection[str],
) -> Known:
    def values(name: str) -> Values:
        return attributes[name].values if name in attributes else ()

    def kinds(name: str) -> Collection[str]:
        if name in attributes:
            return attributes[name].types.keys()
        if what == "nodes" and name == "id":
            first = graph.nodes(None, limit=_IDS).items
            return {"text" if isinstance(item["id"], str) else "integer" for item in first}
        return ("integer",) if name in counted else ()

    def texts(name: str) -> Sequence[str]:
        if name in attributes and attributes[name].distinct == len(attributes[name].values):
            return [value for value, _ in attributes[name].values if isinstance(value, str)]
        return graph.texts(what, name) if name in attributes or name == "id" else ()

    return Known(tuple(attributes), values, kinds, texts, ends, what)


def known_of_items(items: Iterable[Any]) -> Known:
    """Return the candidates from the first ten thousand items."""
    looked_at = [item for item in islice(items, _LOOKED_AT) if isinstance(item, dict)]
    names = tuple(dict.fromkeys(name for item in looked_at for name in item))

    def column(name: str) -> list[Any]:
        return [read(item, (name,)) for item in looked_at]

    def values(name: str) -> Values:
        return Counter(value for value in column(name) if isinstance(value, str)).most_common(1_000)

    def kinds(name: str) -> Collection[str]:
        return {_KINDS[type(value)] for value in column(name) if type(value) in _KINDS}

    def texts(name: str) -> Sequence[str]:
        return list(dict.fromkeys(value for value in column(name) if isinstance(value, str)))

    return Known(names, values, kinds, texts)


def near(condition: Condition | None, known: Known) -> str:
    """Return up to three hints, joined, for fields in the condition that are unknown or never have the requested value."""
    if condition is None:
        return ""
    hints: dict[str, None] = {}
    for node in walk(condition):
        if isinstance(node, Comparison) and isinstance(node.left, Field) and node.left.path:
            if hint := _near_comparison(node, node.left.path, known):
                hints[hint] = None
            if len(hints) == _HINTS:
                break
    return "; ".join(hints)


def _near_comparison(comparison: Comparison, path: tuple[str, ...], known: Known) -> str:
    named = ".".join(path)
    prefix, ends = "", known.ends
    if named not in known.names and ends is not None:
        if path in (("source",), ("target",)):
            path, known = ("id",), ends
        elif len(path) > 1 and path[0] in ("source", "target", "node"):
            prefix, path, known = f"{path[0]}.", path[1:], ends
        elif len(path) > 1 and path[0] == "edge":
            prefix, path = "edge.", path[1:]
    name = ".".join(path) if ".".join(path) in known.names else path[0]
    if name not in known.names and name not in _BUILT_IN:
        return _unknown_name(prefix, ".".join(path), known)
    if name != ".".join(path):
        return ""
    asked = [value for value in _compared_values(comparison)[:_ASKED] if isinstance(value, str | int | float)]
    return _near_kind(named, name, asked, comparison, known) or (
        _near_value(named, name, asked, comparison.operator, known) if comparison.operator in _TELLING else ""
    )


_TELLING = ("=", "IN", "CONTAINS", "STARTS_WITH", "ENDS_WITH")
_PARTS: Mapping[str, Callable[[str, str], bool]] = {
    "CONTAINS": str.__contains__, "STARTS_WITH": str.startswith, "ENDS_WITH": str.endswith,
}  # fmt: skip
_COMPARING = ("=", "IN", "<", "<=", ">", ">=")
_TYPED = (*_COMPARING, *_TELLING, "MATCHES")
"""Operators that are never true if the requested value and the attribute's value have different kinds."""
_KINDS = {str: "text", int: "integer", float: "float", bool: "boolean", list: "list", dict: "object"}
_WORDS = {"text": "text", "integer": "a number", "float": "a number", "boolean": "a boolean"}


def _near_kind(named: str, name: str, asked: Sequence[Any], comparison: Comparison, known: Known) -> str:
    """Return a hint if all values of an attribute have one kind and all requested values have another kind; else ""."""
    if not asked or comparison.operator not in _TYPED:
        return ""
    there = {_WORDS.get(kind) for kind in known.kinds(name) if kind != "null"}
    given = {_WORDS[_KINDS[type(value)]] for value in asked}
    if len(there) != 1 or len(given) != 1 or there == given or None in there:
        return ""
    kind, value = there.pop(), asked[0]
    said = f"{named} is {kind}, and {_literal(value)} is {given.pop()}"
    if kind == "text":
        return f"{said}: write {short(_literal(value))}"
    if not isinstance(value, str) or comparison.operator not in _COMPARING:
        return said
    fits = value in ("true", "false") if kind == "a boolean" else _NUMBER.fullmatch(value)
    return f"{said}: write {value}" if fits else said


_NUMBER = re.compile(r"-?[0-9]{1,30}([.][0-9]{1,30})?")


def _unknown_name(prefix: str, name: str, known: Known) -> str:
    if not known.names:
        return f"the {known.what} have no attributes" if known.what != "items" else ""
    like = nearest(name, known.names)
    if like and known.what != "items":
        return f"there is no {prefix}{name}; did you mean {prefix}{like}?"
    meant = f"did you mean {prefix}{like}? " if like else ""
    return f"there is no {prefix}{name}; {meant}the {known.what} have: {listed(known.names, _OFFERED)}"


def _compared_values(comparison: Comparison) -> Sequence[Any]:
    right = comparison.right
    if isinstance(right, Items):
        return [item.value for item in right.items]
    if isinstance(right, Constant):
        return right.value if isinstance(right.value, tuple) else [right.value]
    return ()


def _near_value(named: str, name: str, asked: Sequence[Any], operator: Operator, known: Known) -> str:
    values = known.values(name)
    part = _PARTS.get(operator)
    every: dict[str, str] | None = None
    for at, value in enumerate(asked):
        if any(type(value) is type(there) and identity(value) == identity(there) for there, _ in values):
            continue
        if isinstance(value, str):
            if at >= _TRIED:
                break
            every = {canonical(text): text for text in known.texts(name)} if every is None else every
            form = canonical(value)
            if form in every or (part is not None and any(part(text, form) for text in every)):
                continue
            if (like := _similar_text(value, every.values())) is not None:
                missing = f"{named} has no {short(value)}; " if len(every) < MOST_TEXTS else ""
                return f"{missing}did you mean {short(like)}?"
        elif any(str(value) == there for there, _ in values):
            return f"{named} is text: {short(str(value))}, not {value}"
        if not values or name in _BUILT_IN:
            continue
        shown = ", ".join(f"{_literal(there)} ({count:,})" for there, count in values[:_VALUES])
        return f"{named} is mostly: {shown}" if len(values) > _VALUES else f"{named} is one of: {shown}"
    return ""


def _similar_text(value: str, texts: Collection[str]) -> str | None:
    """Return the text with the most similar spelling; if none is similar, one with all words, or only words, of ``value``."""
    if like := nearest(value, texts):
        from rapidfuzz.distance import OSA

        if len(texts) <= _MANY or OSA.normalized_similarity(value.casefold(), like.casefold()) >= _CLOSE:
            return like
    words = set(value.casefold().split())
    if not words or len(value) > _LONGEST:
        return None
    best, share = None, _SHARE
    for text in texts:
        ratio = min(len(text), len(value)) / max(len(text), len(value), 1)
        if ratio > share:
            others = set(text.casefold().split())
            if others and (words <= others or others <= words):
                best, share = text, ratio
    return best


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return short(value, 40) if isinstance(value, str) else str(value)
