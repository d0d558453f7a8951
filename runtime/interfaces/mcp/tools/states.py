"""``schema``, ``state_show``, ``state_diff`` and ``rollback``: what the graph is like, what the state holds, and taking it back."""

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field

from .....adapters.state import Snapshot, StateError
from .....lang.diagnostic import nearest
from .....lang.schema import Attribute
from ....executor.rollback import roll_back
from ....records import excerpt
from ..paging import LIMIT
from ..refusals import Refused
from ..shapes import Arguments, Page, Result
from .tool import Call, Tool

__all__ = ["ROLLBACK", "SCHEMA", "STATE_DIFF", "STATE_SHOW"]

_VALUES = 20
_KINDS = 50


class SchemaArguments(Arguments):
    """Which attributes."""

    attribute: str | None = Field(
        default=None, max_length=500, description="One attribute, with all its frequent values"
    )
    offset: int = Field(default=0, ge=0, le=1 << 40)
    limit: int = Field(default=50, ge=1, le=LIMIT, description="The most attributes of nodes and of edges together")


class GraphSchema(Result):
    """The graph in summary."""

    directed: bool = False
    multi: bool = False
    nodes: int = 0
    edges: int = 0
    label_attribute: str | None = Field(default=None, description="The attribute that tells kinds of nodes apart")
    labels: dict[str, int] = Field(default_factory=dict, description="Its values, most frequent first, with counts")
    relation_attribute: str | None = None
    relations: dict[str, int] = Field(default_factory=dict)
    attributes: Page | None = Field(
        default=None, description="Items: {of: node|edge, name, count, types, distinct, values: [{value, count}]}"
    )


async def _schema(call: Call, asked: SchemaArguments) -> GraphSchema:
    graph = call.ground.graph
    schema = await asyncio.to_thread(lambda: graph.schema)
    most = None if asked.attribute is not None else _VALUES
    rows = [
        _attribute(of, attribute, most)
        for of, attributes in (("node", schema.node_attributes), ("edge", schema.edge_attributes))
        for name, attribute in attributes.items()
        if asked.attribute in (None, name)
    ]
    if asked.attribute is not None and not rows:
        names = [*schema.node_attributes, *schema.edge_attributes]
        like = nearest(asked.attribute, names)
        hint = f"did you mean {like}?" if like else f"there are: {', '.join(names[:_VALUES])}"
        raise Refused("not-found", f"no node or edge has an attribute {asked.attribute}", hint)
    return GraphSchema(
        directed=schema.directed, multi=schema.multi, nodes=schema.nodes, edges=schema.edges,
        label_attribute=schema.label_attribute, labels=_first(schema.labels),
        relation_attribute=schema.relation_attribute, relations=_first(schema.relations),
        attributes=call.page(rows, asked.offset, asked.limit),
    )  # fmt: skip


def _first(counts: Mapping[str, int]) -> dict[str, int]:
    return {str(excerpt(name, 200)): count for name, count in list(counts.items())[:_KINDS]}


def _attribute(of: str, found: Attribute, most: int | None) -> dict[str, Any]:
    values = [{"value": excerpt(value, 200), "count": count} for value, count in found.values[:most]]
    return {
        "of": of, "name": found.name, "count": found.count, "types": dict(found.types), "distinct": found.distinct, "values": values,
    }  # fmt: skip


class ShowArguments(Arguments):
    """Which key, and which part of it."""

    key: str | None = Field(
        default=None, max_length=500, description="A declared key such as network.authors; null lists all keys"
    )
    offset: int = Field(default=0, ge=0, le=1 << 40, description="The first item of the key")
    limit: int = Field(default=100, ge=1, le=LIMIT, description="The most items")
    evidence: bool = Field(default=False, description="Show beside each item what it rests on")


class StateKey(BaseModel):
    """A declared key."""

    key: str
    type: Literal["LIST", "DICT", "COUNTER"]
    size: int
    description: str | None = None


class StateShown(Result):
    """The state, or what one key of it holds."""

    hash: str = Field(default="", description="The state's hash: name it to state_diff and rollback")
    steps: int = Field(default=0, description="Entries of the history")
    keys: list[StateKey] = Field(default_factory=list)
    more_keys: int = Field(default=0, description="Keys that are not listed, for there are very many")
    page: Page | None = Field(default=None, description="The key's value")
    evidence: list[Any] | dict[str, Any] | None = Field(
        default=None, description="Beside the items shown: by place, or by field"
    )
    history: list[dict[str, Any]] = Field(
        default_factory=list, description="The latest entries, oldest first, with hashes"
    )


_KEYS = 200
_LATEST = 10


async def _show(call: Call, asked: ShowArguments) -> StateShown:
    store = call.ground.store
    state = store.snapshot()
    told = StateShown(hash=store.hash, steps=len(store.history))
    if asked.key is None:
        declared = state.declared()
        told.keys = [StateKey(key=d.key, type=d.type, size=d.size, description=d.description) for d in declared[:_KEYS]]
        told.more_keys = max(0, len(declared) - _KEYS)
        told.history = [_entry(entry) for entry in store.history[max(0, len(store.history) - _LATEST) :]]
        return told
    found = next((d for d in state.declared() if d.key == asked.key), None)
    if found is None:
        names = [declared.key for declared in state.declared()]
        like = nearest(asked.key, names)
        hint = (
            f"did you mean {like}?" if like else f"there are: {', '.join(names[:20])}" if names else "it has none yet"
        )
        raise Refused("not-found", f"the state has no key {asked.key}", hint)
    told.keys = [StateKey(key=found.key, type=found.type, size=found.size, description=found.description)]
    told.page = call.page(state.get(asked.key), asked.offset, asked.limit)
    if asked.evidence:
        told.evidence = _evidence(state, asked.key, told.page)
    return told


def _entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "step": entry.get("step"), "part": entry.get("part"), "command": excerpt(entry.get("command"), 200),
        "status": entry.get("status"), "state": entry.get("state"), "rolled_back": bool(entry.get("rolled_back")),
    }  # fmt: skip


def _evidence(state: Snapshot, key: str, page: Page) -> Any:
    beside = state.evidence(key)
    if isinstance(beside, list):
        shown = beside if state.kind(key) == "COUNTER" else beside[page.offset : page.offset + page.shown]
        return [excerpt(pieces, 200) for pieces in shown[:LIMIT]]
    return {
        str(name): excerpt(beside[name], 200)
        for name in (page.value if page.kind == "object" else ())
        if name in beside
    }


class DiffArguments(Arguments):
    """Which two states."""

    before: str = Field(min_length=4, max_length=64, description="A hash from the history; its beginning will do")
    after: str | None = Field(
        default=None, min_length=4, max_length=64, description="Likewise; null: the state as it is now"
    )
    offset: int = Field(default=0, ge=0, le=1 << 40)
    limit: int = Field(default=100, ge=1, le=LIMIT)


class Differing(Result):
    """How two states differ."""

    differences: Page | None = Field(
        default=None, description="Items: {key, kind: declared|removed|added|changed|count|provenance, before, after}"
    )


async def _diff(call: Call, asked: DiffArguments) -> Differing:
    store = call.ground.store
    try:
        found = store.diff(asked.before, store.snapshot() if asked.after is None else asked.after)
    except StateError as error:
        raise Refused("not-found", error.message, error.hint or "state_show lists the latest hashes") from None
    rows = [{"key": d.key, "kind": d.kind, "before": d.before, "after": d.after} for d in found]
    return Differing(differences=call.page(rows, asked.offset, asked.limit))


class RollbackArguments(Arguments):
    """Which state to go back to."""

    to: str = Field(min_length=4, max_length=64, description="A hash from the history; its beginning will do")


class RolledBack(Result):
    """The state afterwards."""

    changed: bool = Field(default=False, description="False where the state was as it was then already")
    before: str = Field(default="", description="The hash that it had: rolling back to it undoes this")
    hash: str = ""


async def _rollback(call: Call, asked: RollbackArguments) -> RolledBack:
    async with call.ground.place(call.who), call.ground.turn:
        store = call.ground.store
        before = store.hash
        try:
            return RolledBack(before=before, changed=roll_back(store, asked.to, "rollback") > 0, hash=store.hash)
        except StateError as error:
            raise Refused("not-found", error.message, error.hint or "state_show lists the latest hashes") from None


SCHEMA = Tool(
    "schema", "The graph in summary",
    "Return what the graph is like: sizes, kinds of nodes and edges, attributes with their types and frequent values. Read it before "
    "writing conditions.",
    SchemaArguments, GraphSchema, _schema, graph=True,
)  # fmt: skip
STATE_SHOW = Tool(
    "state_show", "What the state holds",
    "Return the keys of the state, its hash and its latest history; or a page of what one key holds, with evidence where it is asked for.",
    ShowArguments, StateShown, _show,
)  # fmt: skip
STATE_DIFF = Tool(
    "state_diff", "How two states differ", "Compare two states of the history by their hashes, or one with the state as it is now.",
    DiffArguments, Differing, _diff,
)  # fmt: skip
ROLLBACK = Tool(
    "rollback", "Take the state back",
    "Make the state what it was at an earlier hash. That is a commit, too: nothing is lost, and rolling back to `before` undoes it.",
    RollbackArguments, RolledBack, _rollback, writes=True, only_writes=True,
)  # fmt: skip
