"""The port to graphs: what an engine offers, what it answers, and how it fails. See ``docs/design/gasl.md#adapters``.

Items are JSON objects (``docs/design/gasl.md#items``): a node is ``{"id", ...attributes}``; an edge ``{"source", "target", "key"?,
...attributes}`` (``key`` in multigraphs); a path ``{"source", "target", "length", "nodes": [id...], "edges": [edge...]}``.
Node ids are texts or integers. An engine reads its graph and never writes it; its methods may be called from any thread.
Conditions come bound: they hold no variables.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import orjson
from attrs import frozen

from ..lang.catalogue.schema import Schema
from ..lang.errors import KnotworkError
from ..lang.trees import Node
from ..lang.trees.conditions import Condition
from ..lang.trees.gasl import Order

__all__ = [
    "DEFAULT_CAPS",
    "MOST_TEXTS",
    "AdapterError",
    "Caps",
    "Direction",
    "Found",
    "GraphAdapter",
    "Item",
    "NodeId",
    "Plan",
    "Schema",
    "Stoppable",
    "open_chunks",
    "tree_of",
]

Item: TypeAlias = dict[str, Any]
NodeId: TypeAlias = str | int
Direction = Literal["out", "in", "both"]


def tree_of(condition: Any) -> Condition | None:
    """Return a condition's tree: of a tree, of what ``gasl.parse_condition`` gives, of a text. None stays None.

    Raises ``ConditionError`` for a text that is no condition, ``TypeError`` for anything else.
    """
    if condition is None or isinstance(condition, Node):
        return condition  # type: ignore[return-value]  # a node of a condition
    if isinstance(tree := getattr(condition, "tree", None), Node):
        return tree  # type: ignore[return-value]
    if not isinstance(condition, str):
        raise TypeError(f"a condition is a text, or what gasl.parse_condition gives, not {type(condition).__name__}")
    from ..lang.evaluate.conditions import ConditionError
    from ..lang.parse.gasl import parse_condition

    read, found = parse_condition(condition)
    if read is None:
        fault = next(each for each in found if each.severity == "error")
        raise ConditionError(fault.message, hint="; ".join(fault.hints))
    return read


class AdapterError(KnotworkError):
    """The graph can't be read or can't answer. ``hint`` says what to do. See ``docs/design/gasl.md#errors``."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@frozen
class Caps:
    """What one command may take. ``max_path_length`` counts edges; ``timeout_s`` is seconds of searching.

    ``SET adapter.caps.name = value`` changes one for a plan, up to the ceiling that the host set.
    """

    max_path_length: int = 3
    max_results: int = 100_000
    max_paths: int = 10_000
    timeout_s: float = 30.0


@frozen
class Stoppable(Caps):
    """The caps of one search that its caller may end: ``ended`` is asked while it goes on, in the thread in which it does.

    Whoever ends a search has no use for what it found: an engine may return a part of it, or raise what it likes.
    """

    ended: Callable[[], bool] = lambda: False


DEFAULT_CAPS = Caps()
MOST_TEXTS = 200_000
"""Different texts of a field that are looked through for one that is spelt alike."""


@frozen
class Found:
    """What a search gave. ``items`` may be lazy: a sequence that makes an item when it is read.

    ``caps_hit`` names the caps (fields of ``Caps``, or "MAXLEN") that cut it short; a LIMIT is not one. ``used`` says how: "index on
    entity_type", "column on age", "scan". ``examined`` counts the candidates looked at.
    """

    items: Sequence[Item]
    caps_hit: tuple[str, ...] = ()
    used: str = "scan"
    examined: int = 0


@frozen
class Plan:
    """How a search would run, for EXPLAIN: ``used`` as in ``Found``, the estimated rows, and notes in words."""

    used: str
    rows: int
    notes: tuple[str, ...] = ()


@runtime_checkable
class GraphAdapter(Protocol):
    """A graph that answers. The first group are the documented methods; the others tell more and take more.

    See ``docs/design/gasl.md#adapters``.
    """

    def find_nodes(self, conditions: Condition | None = None, limit: int | None = None) -> list[Item]:
        """Return the nodes for which the condition is true, in the graph's own order."""
        ...

    def find_edges(self, conditions: Condition | None = None, limit: int | None = None) -> list[Item]:
        """Return the edges for which the condition is true, in the graph's own order."""
        ...

    def find_paths(self, starts: Sequence[NodeId], ends: Sequence[NodeId], max_length: int) -> list[list[NodeId]]:
        """Return the simple paths from a start to an end (start ≠ end) of at most ``max_length`` edges, shorter first."""
        ...

    def get_node(self, name_or_id: NodeId) -> Item | None:
        """Return the node with this id, or else the one whose name, label or title it is; None where none or several are."""
        ...

    @property
    def schema(self) -> Schema:
        """The graph in summary; computed once."""
        ...

    def texts(self, kind: Literal["nodes", "edges"], name: str, most: int = MOST_TEXTS) -> Sequence[str]:
        """Return the different texts that a field has (a node's ``id`` too), at most ``most``: the first in the graph's order.

        ``name`` is dotted where it reaches into an object. Values that are no texts, and elements of lists, are left out.
        """
        ...

    def nodes(
        self,
        where: Condition | None,
        *,
        order: Sequence[Order] = (),
        limit: int | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> Found:
        """Find nodes. ``order`` sorts, null last; without it results have the graph's own order."""
        ...

    def edges(
        self,
        where: Condition | None,
        *,
        order: Sequence[Order] = (),
        limit: int | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> Found:
        """Find edges, as ``nodes`` does nodes."""
        ...

    def paths(
        self,
        starts: Sequence[NodeId] | Condition | None,
        ends: Sequence[NodeId] | Condition | None,
        *,
        via: Condition | None = None,
        where: Condition | None = None,
        shortest: bool = False,
        limit: int | None = None,
        max_length: int | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> Found:
        """Find simple paths, start ≠ end, directed where the graph is, at most ``max_length`` edges, shorter first.

        Without ``max_length`` they have at most ``caps.max_path_length`` edges, and the shortest ones any number. Where the bound hides
        the shortest path of a pair, "MAXLEN" is among ``caps_hit``; where nothing was found and a longer path exists, "max_path_length".

        ``via`` is a condition on every edge of the path, ``where`` one on the path (``source.x``, ``target.x``, ``length``,
        ``ANY|ALL|NONE node.x`` and ``edge.x``). ``shortest`` keeps the shortest ones of each pair of start and end.
        """
        ...

    def walk(
        self,
        starts: Sequence[NodeId],
        *,
        via: Condition | None = None,
        depth: int = 1,
        direction: Direction = "out",
        caps: Caps = DEFAULT_CAPS,
    ) -> Found:
        """Return the nodes reached from ``starts`` in 1 to ``depth`` edges that satisfy ``via``, nearest first, starts left out."""
        ...

    def subgraph(self, centers: Sequence[NodeId], radius: int, *, caps: Caps = DEFAULT_CAPS) -> Found:
        """Return one item ``{"nodes": [node...], "edges": [edge...]}``: all within ``radius`` of a center, edges either way."""
        ...

    def connect(
        self,
        left: Sequence[NodeId],
        right: Sequence[NodeId],
        *,
        via: Condition | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> Found:
        """Return the edges that join a node of ``left`` with one of ``right``, in either direction."""
        ...

    def measure(self, algorithm: str, among: Sequence[NodeId] | None = None, *, caps: Caps = DEFAULT_CAPS) -> Found:
        """Return ``{"id", algorithm: value}`` for each node (of ``among``), by an algorithm's name; see ``measures``."""
        ...

    @property
    def measures(self) -> tuple[str, ...]:
        """The algorithms that ``measure`` knows."""
        ...

    def explain(self, kind: Literal["nodes", "edges", "paths"], where: Condition | None, **rest: Any) -> Plan:
        """Say how a search would run, without running it. ``rest`` is what ``paths`` takes."""
        ...

    def invalidate(self) -> None:
        """Forget what was computed from the graph: its attributes were written past NetworkX's own methods."""
        ...


# The texts that a graph was made from, by the ids that its nodes and edges name (``source_id``): for snippets of evidence.
# The file is a JSON object, ``{id: text}`` or ``{id: {"content": text, ...}}``, as nano-graphrag and LightRAG keep theirs
# (``kv_store_text_chunks.json``).

_MOST_BYTES = 1 << 30


def open_chunks(path: str | Path) -> Callable[[str], str | None]:
    """Return a function that gives the text of a chunk, None for one that is not there. Raises ``AdapterError``."""
    try:
        size = Path(path).stat().st_size
        if size > _MOST_BYTES:
            raise AdapterError(f"{path} has more than {_MOST_BYTES >> 30} GiB, the most that is read")
        found = orjson.loads(Path(path).read_bytes())
    except OSError as error:
        raise AdapterError(f"the chunks {path} can't be read: {error.strerror or error}") from None
    except orjson.JSONDecodeError as error:
        raise AdapterError(f"the chunks {path} are not JSON: {error}") from None
    if not isinstance(found, dict):
        raise AdapterError(
            f"the chunks {path} are no JSON object", hint='they are {"id": "text"} or {"id": {"content": "text"}}'
        )
    texts = {name: text for name, value in found.items() if (text := _content(value)) is not None}
    if found and not texts:
        raise AdapterError(f"no entry of {path} has a text", hint='entries are texts, or objects with a "content"')
    return texts.get


def _content(value: object) -> str | None:
    if isinstance(value, dict):
        value = value.get("content", value.get("text"))
    return value if isinstance(value, str) else None
