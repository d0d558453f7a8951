"""The resources: the languages, schemas and grammars, and what the graph and the state are like now."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

import orjson
from attrs import asdict, frozen

from ....adapters.state import StateError, StateStore
from ...gasl.records import excerpt, storable
from .ground import Ground
from .paging import part_of
from .references import CARDS, GRAMMARS, PAGES, SCHEMAS, card, grammar_of, page_of, schema_of

__all__ = ["TEMPLATES", "Read", "Resource", "Unknown", "read", "resources"]

MARKDOWN, JSON, PLAIN = "text/markdown", "application/json", "text/plain"
_ROOT = "knotwork://"
_KEYS = 200


class Unknown(Exception):
    """There is no such resource."""


@frozen
class Resource:
    """A resource as it is listed."""

    uri: str
    name: str
    title: str
    kind: str


@frozen
class Read:
    """What a resource has."""

    uri: str
    kind: str
    text: str


_FIXED: Mapping[str, tuple[Mapping[str, str], Callable[[str], str], str]] = {
    "language": (CARDS, card, MARKDOWN), "reference": (PAGES, page_of, MARKDOWN), "schema": (SCHEMAS, schema_of, JSON),
    "grammar": (GRAMMARS, grammar_of, PLAIN),
}  # fmt: skip

TEMPLATES = (
    (_ROOT + "state/{key}", "state-key", "What a key of the state holds, as JSON, up to the size of a page", JSON),
)
"""Resources that have a parameter: the template, its name, its title, its kind."""


def resources(ground: Ground) -> list[Resource]:
    """Return what there is."""
    found = [
        Resource(f"{_ROOT}{folder}/{name}", f"{folder}-{name}", title, kind)
        for folder, (names, _, kind) in _FIXED.items()
        for name, title in names.items()
    ]
    found.append(Resource(f"{_ROOT}state", "state", "The state now: keys, hash, size", JSON))
    if ground.adapter is not None:
        found.append(Resource(f"{_ROOT}graph", "graph", "The graph in summary", JSON))
    return found


async def read(uri: str, ground: Ground) -> Read:
    """Return the resource ``uri``. Raises ``Unknown``."""
    folder, _, name = uri.removeprefix(_ROOT).partition("/")
    if not uri.startswith(_ROOT):
        raise Unknown
    if folder in _FIXED and name in _FIXED[folder][0]:
        _, text_of, kind = _FIXED[folder]
        return Read(uri, kind, await asyncio.to_thread(text_of, name))
    if folder == "state" and name:
        return _written(uri, _key(unquote(name), await ground.current(), ground))
    if uri == f"{_ROOT}state":
        return _written(uri, _state(await ground.current(), ground))
    if uri == f"{_ROOT}graph" and ground.adapter is not None:
        return _written(uri, await _graph(ground))
    raise Unknown


def _written(uri: str, value: Any) -> Read:
    return Read(uri, JSON, orjson.dumps(storable(value), option=orjson.OPT_INDENT_2).decode())


def _state(store: StateStore, ground: Ground) -> dict[str, Any]:
    state = store.snapshot()
    declared = state.declared()
    return {
        "hash": state.hash,
        "steps": len(store.history),
        "read_only": ground.settings.read_only,
        "kept": ground.settings.state is not None,
        "keys": [asdict(each) for each in declared[:_KEYS]],
        "more_keys": max(0, len(declared) - _KEYS),
    }


def _key(key: str, store: StateStore, ground: Ground) -> dict[str, Any]:
    try:
        value = store.snapshot().get(key)
    except StateError:
        raise Unknown from None
    part = part_of(value, 0, ground.settings.limits.characters)
    return {"key": key, "value": part.value, "shown": part.shown, "total": part.total, "cut": part.cut}


async def _graph(ground: Ground) -> dict[str, Any]:
    schema = await ground.schema()
    if schema is None:
        raise Unknown
    part = part_of(
        [
            {"of": of, "name": found.name, "count": found.count, "types": dict(found.types), "distinct": found.distinct}
            for of, attributes in (("node", schema.node_attributes), ("edge", schema.edge_attributes))
            for found in attributes.values()
        ],
        0,
        ground.settings.limits.characters,
    )
    return {
        "directed": schema.directed, "multi": schema.multi, "nodes": schema.nodes, "edges": schema.edges,
        "label_attribute": schema.label_attribute, "labels": excerpt(dict(schema.labels), 200),
        "relation_attribute": schema.relation_attribute, "relations": excerpt(dict(schema.relations), 200),
        "attributes": part.value, "more_attributes": part.total - part.shown,
    }  # fmt: skip
