"""The findings in a state: the keys of the state with their items, and the evidence for each item."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from attrs import field, frozen

from ...adapters.llm import BY_HAND
from ..excerpts import abridged, cut

_TITLES = ("name", "label", "title", "id", "answer", "text", "author", "entity")
"""Fields that can be the title of an item, the preferred field first."""
_LONGEST = 300
_SNIPPET = 600
_EACH, _ALL = 200, 1_000
"""Maximum number of findings that are shown for each key, and for all keys together."""
_FIELDS, _PIECES = 20, 5
"""Maximum number of shown fields of a finding, and of shown pieces of evidence of each kind."""


@frozen
class ModelAnswer:
    """Evidence from a model's answer: the model's name, and the items that the answer cites."""

    model: str
    cited: tuple[str, ...]


@frozen
class Finding:
    """One item: a title, its other fields as texts, and its evidence. ``left_out`` is the number of fields that are not shown."""

    title: str
    fields: tuple[tuple[str, str], ...] = ()
    evidence: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    left_out: int = 0

    @property
    def pieces(self) -> int:
        """Number of pieces of evidence."""
        return len(self.evidence)

    @property
    def more(self) -> int:
        """Number of source items that the evidence counts but does not list."""
        counts = (piece.get("more") for piece in self.evidence)
        return sum(count for count in counts if isinstance(count, int))

    @property
    def more_nodes(self) -> int:
        """Number of nodes that the evidence names but that are not shown."""
        return len(dict.fromkeys(node for piece in self.evidence for node in _nodes(piece))) - len(self.nodes)

    @property
    def snippets(self) -> tuple[tuple[str, str], ...]:
        """The first distinct snippets, as pairs of source and text."""
        found = dict.fromkeys(
            (cut(source_of(piece), _LONGEST), cut(str(piece["snippet"]), _SNIPPET))
            for piece in self.evidence
            if piece.get("snippet")
        )
        return tuple(islice(found, _PIECES))

    @property
    def sources(self) -> tuple[str, ...]:
        """The first distinct documents, files or chunks that are named by evidence without a snippet."""
        found = dict.fromkeys(
            cut(source_of(p), _LONGEST) for p in self.evidence if _is_named(p) and not p.get("snippet")
        )
        return tuple(islice(found, _PIECES))

    @property
    def model_answers(self) -> tuple[ModelAnswer, ...]:
        """The first distinct model answers that are evidence for this item."""
        made = (piece for piece in self.evidence if piece.get("kind") == "model")
        found = dict.fromkeys(ModelAnswer(cut(str(p.get("model") or ""), 100), _short(p.get("cited"))) for p in made)
        return tuple(islice(found, _PIECES))

    @property
    def computations(self) -> tuple[str, ...]:
        """Descriptions of how the values were computed: one for each distinct computation in the evidence."""
        made = dict.fromkeys(_computation(piece) for piece in self.evidence if piece.get("kind") == "computed")
        return tuple(islice(filter(None, made), _PIECES))

    @property
    def nodes(self) -> tuple[str, ...]:
        """The first distinct nodes that the evidence names."""
        return _short(dict.fromkeys(node for piece in self.evidence for node in _nodes(piece)))


@frozen
class Group:
    """A key of the state: its type, its description, the number of its findings, and the first findings.

    ``backed`` is the number of findings with evidence. ``by_hand`` is the number of items from answers that a person wrote in place of a
    model; these items are not findings. ``incomplete`` has the reasons why the value of the key is not complete.
    """

    key: str
    type: str
    description: str | None
    count: int
    backed: int
    findings: tuple[Finding, ...] = ()
    by_hand: int = 0
    incomplete: tuple[str, ...] = ()

    @property
    def left_out(self) -> int:
        """Number of findings that are not shown."""
        return self.count - len(self.findings)


def groups(state: Mapping[str, Any]) -> list[Group]:
    """Return a group for each key of the state object, in order, with the first findings and the number of all findings."""
    provenance, left = state.get("provenance", {}), _ALL
    found: list[Group] = []
    for key, node in _keys(state.get("variables", {})):
        found.append(_group(key, node, provenance.get(key, ()), min(left, _EACH)))
        left -= len(found[-1].findings)
    return found


def _keys(variables: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every declared key with its object, parents first."""
    stack = [(key, node) for key, node in reversed(list(variables.items()))]
    while stack:
        key, node = stack.pop()
        if not _is_declared(node):
            continue
        yield key, node
        if node["_meta"]["type"] == "DICT":
            stack += [
                (f"{key}.{name}", inner)
                for name, inner in reversed(list(node.items()))
                if name != "_meta" and _is_declared(inner)
            ]


def _is_declared(node: Any) -> bool:
    return isinstance(node, Mapping) and isinstance(node.get("_meta"), Mapping) and "type" in node["_meta"]


def _group(key: str, node: Mapping[str, Any], evidence: Any, most: int) -> Group:
    meta = node["_meta"]
    entries: Iterable[tuple[str, Any, Any]]
    if meta["type"] == "LIST":
        entries = (("", item, _at(evidence, index)) for index, item in enumerate(node.get("items") or ()))
    elif meta["type"] == "COUNTER":
        value = node.get("value", 0)
        counted = value.items() if isinstance(value, Mapping) else [("count", value)]
        beside = [piece for piece in _listed(evidence) if isinstance(piece, Mapping)]
        of: dict[Any, list[Mapping[str, Any]]] = {}
        for piece in beside:
            of.setdefault(piece.get("key"), []).append(piece)
        everyone = of.get(None, [])  # evidence for the counter as a whole
        entries = ((name, number, [*of.get(name, ()), *everyone]) for name, number in counted)
    else:
        plain = [(name, inner) for name, inner in node.items() if name != "_meta" and not _is_declared(inner)]
        entries = ((name, inner, _at(evidence, name)) for name, inner in plain)
    count = backed = by_hand = 0
    findings: list[Finding] = []
    for name, value, pieces in entries:
        if any(piece.get("kind") == "model" and piece.get("model") == BY_HAND for piece in pieces):
            by_hand += 1
            continue
        count, backed = count + 1, backed + bool(pieces)
        if len(findings) < most:
            findings.append(_finding(name, value, pieces))
    description = meta.get("description")
    return Group(
        key, str(meta["type"]), None if description is None else cut(str(description), 1_000), count, backed,
        tuple(findings), by_hand, tuple(cut(str(each), _LONGEST) for each in _listed(meta.get("incomplete"))),
    )  # fmt: skip


def _at(evidence: Any, where: int | str) -> Sequence[Mapping[str, Any]]:
    """Return the pieces of evidence for the list index or the field ``where``."""
    if isinstance(evidence, Mapping):
        found = evidence.get(str(where), ())
    elif isinstance(evidence, Sequence) and isinstance(where, int) and where < len(evidence):
        found = evidence[where]
    else:
        found = ()
    if isinstance(found, Mapping):
        found = [found]
    return [piece for piece in found if isinstance(piece, Mapping)]


def _finding(name: str, value: Any, evidence: Sequence[Mapping[str, Any]]) -> Finding:
    if not isinstance(value, Mapping):
        title = f"{name}: {_text(value)}" if name else _text(value)
        return Finding(title, (), tuple(evidence))
    titled = next((key for key in _TITLES if value.get(key) not in (None, "")), None)
    named = titled is not None
    titled = titled if named else next(iter(value), None)
    title = name or ("" if titled is None else _title(titled, value[titled], named=named))
    others = [key for key in value if key != titled or name]
    shown = tuple((cut(key, 100), _text(value[key])) for key in others[:_FIELDS])
    return Finding(title, shown, tuple(evidence), len(others) - len(shown))


def _title(name: str, value: Any, *, named: bool) -> str:
    """Return the title of an item from the field ``name``.

    ``named`` is true if the field is a name; other fields are shown with their names.
    """
    if named and not isinstance(value, Mapping):
        return _text(value)
    if isinstance(value, Mapping):
        inner = next((value[key] for key in _TITLES if value.get(key) not in (None, "")), None)
        if inner is None and "source" in value and "target" in value:
            inner = f"{_text(value['source'])} - {_text(value['target'])}"
        value = inner if inner is not None else value
    return cut(f"{name}: {_text(value)}", _LONGEST)


def _computation(piece: Mapping[str, Any]) -> str:
    """Return how values were computed: the formulas of columns, or an algorithm with its settings, its weight and its graph."""
    step = f" (step {piece['step']})" if piece.get("step") not in (None, "") else ""
    if isinstance(columns := piece.get("columns"), Mapping):
        texts = [str(text) if str(name) == str(text) else f"{name} = {text}" for name, text in columns.items()]
        over = piece.get("over")
        items = f", from {over:,} item{'' if over == 1 else 's'}" if isinstance(over, int) else ""
        return cut(", ".join(texts), _LONGEST) + items + step
    if not piece.get("algorithm"):
        return ""
    settings = piece.get("settings")
    given = [f"{name} = {value}" for name, value in settings.items()] if isinstance(settings, Mapping) else []
    if note := piece.get("note"):
        name = str(piece["algorithm"])
        chosen = f" ({', '.join(given)})" if given else ""
        return cut(name + chosen + str(note).removeprefix(name), _LONGEST) + step
    weight = [f"weighted by {piece['weight']}"] if piece.get("weight") else []
    measured = [f"in the graph made of {piece['on']}"] if piece.get("on") else []
    return cut(", ".join([str(piece["algorithm"]), *given, *weight, *measured]), _LONGEST) + step


def _text(value: Any) -> str:
    if isinstance(value, str):
        return cut(value, _LONGEST)
    return cut(json.dumps(abridged(value, _LONGEST), ensure_ascii=False, default=str), _LONGEST)


def _short(ids: Any) -> tuple[str, ...]:
    """Return the first twelve of ``ids`` as strings."""
    listed = islice(ids, 12) if isinstance(ids, Iterable) and not isinstance(ids, str) else ()
    return tuple(cut(each if isinstance(each, str) else json.dumps(each, ensure_ascii=False), 100) for each in listed)


def _is_named(piece: Mapping[str, Any]) -> bool:
    return any(piece.get(name) for name in ("file_path", "doc_id", "source_id"))


def source_of(piece: Mapping[str, Any]) -> str:
    """Return the source of a piece of evidence from the graph: its file, document or chunk or, without these, its nodes."""
    for name in ("file_path", "doc_id", "source_id"):
        if found := piece.get(name):
            return ", ".join(map(str, found)) if isinstance(found, list) else str(found)
    return " - ".join(str(node) for node in islice(_nodes(piece), 4))


def _nodes(piece: Mapping[str, Any]) -> Iterator[Any]:
    for node in _listed(piece.get("nodes")):
        if isinstance(node, str | int):
            yield node
    for edge in _listed(piece.get("edges")):
        yield from _ends(edge)


def _ends(edge: Any) -> tuple[Any, ...]:
    ends = tuple(_listed(edge)[:2])
    return ends if len(ends) == 2 and all(isinstance(end, str | int) for end in ends) else ()


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def evidence_graph(found: Sequence[Group]) -> tuple[list[Any], list[tuple[Any, Any]]]:
    """Return the distinct nodes and edges that the evidence for the findings names, in order."""
    nodes: dict[Any, None] = {}
    edges: dict[tuple[Any, Any], None] = {}
    for piece in (piece for group in found for finding in group.findings for piece in finding.evidence):
        nodes.update(dict.fromkeys(_nodes(piece)))
        for edge in _listed(piece.get("edges")):
            if ends := _ends(edge):
                edges[ends[0], ends[1]] = None
    return list(nodes), list(edges)


def sources_of(state: Mapping[str, Any]) -> int:
    """Return the number of distinct documents, files or chunks that the evidence for all findings names, shown or not."""
    found: set[str] = set()
    for beside in (state.get("provenance") or {}).values():
        for pieces in beside.values() if isinstance(beside, Mapping) else beside:
            for piece in [pieces] if isinstance(pieces, Mapping) else pieces:
                if isinstance(piece, Mapping):
                    found.update(_source_names(piece))
    return len(found)


def _source_names(piece: Mapping[str, Any]) -> Iterator[str]:
    for name in ("file_path", "doc_id", "source_id"):
        if value := piece.get(name):
            yield from map(str, value) if isinstance(value, list) else (str(value),)
            return
