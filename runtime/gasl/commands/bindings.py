"""Resolves the names in a command to items of a variable, node ids, and conditions with their variables bound.

Unresolvable names raise ``Refused``, which becomes the command's result. The items of a list variable are its elements. An object
counts as a list with this object as its only item. A text, a number, a boolean or null has no items (``schema_mismatch``).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import wraps
from itertools import islice
from typing import Any

from ....adapters.graph import NodeId
from ....lang.diagnostic import nearest
from ....lang.evaluate.conditions import bind
from ....lang.literals import kind_of, short
from ....lang.trees.conditions import Condition
from ....lang.trees.gasl import Name, Path
from ..records import ExecutionResult, Session, Status, Value
from .evidence import is_node_id, item_kind

_OFFERED = 8
"""Maximum number of names in a hint."""


_FEW = 2_000
"""Maximum number of items that are processed on the event loop's thread; this many take a few milliseconds."""


class Refused(Exception):
    """The command can't run with the given inputs; ``result`` is its result."""

    def __init__(self, status: Status, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.result = ExecutionResult(status, message=message, hint=hint)


def refusing(
    run: Callable[[Any, Session], Awaitable[ExecutionResult]],
) -> Callable[[Any, Session], Awaitable[ExecutionResult]]:
    """Wrap a runner so that a raised ``Refused`` becomes its result."""

    @wraps(run)
    async def guarded(command: Any, session: Session) -> ExecutionResult:
        try:
            return await run(command, session)
        except Refused as refused:
            return refused.result

    return guarded


def in_thread(run: Callable[[Any, Session], ExecutionResult]) -> Callable[[Any, Session], Awaitable[ExecutionResult]]:
    """Convert a pure function to a runner, which uses a thread for many items, so that it does not block the event loop."""

    @refusing
    @wraps(run)
    async def aside(command: Any, session: Session) -> ExecutionResult:
        names = [getattr(command, part, None) for part in ("source", "left", "right")]
        values = [session.context.value(name.text) for name in names if isinstance(name, Name)]
        if sum(value.count for value in values if value is not None) <= _FEW:
            return run(command, session)
        return await asyncio.to_thread(run, command, session)

    return aside


class Rows:
    """The items of a variable, and the ``Value`` they come from. ``value.evidence_at(i)`` is the evidence of ``items[i]``."""

    __slots__ = ("items", "name", "value")

    def __init__(self, name: str, value: Value, items: list[Any]) -> None:
        self.name = name
        self.value = value
        self.items = items

    def __len__(self) -> int:
        return len(self.items)


def unbound(name: str, session: Session) -> Refused:
    """Return the ``Refused`` for an unbound name; its hint has the nearest name or the bound names."""
    names = session.context.names()
    like = nearest(name, names)
    if like:
        hint = f"did you mean {like}?"
    elif session.state.snapshot().kind(name) is not None:
        hint = f"{name} is a key of the state, not a variable; commands read variables"
    elif names:
        hint = f"there are: {', '.join(names[:_OFFERED])}{', ...' if len(names) > _OFFERED else ''}"
    else:
        hint = "bind it with AS in an earlier command"
    return Refused("binding_failure", f"the variable {name} has no value", hint)


def rows_of(name: Name, session: Session) -> Rows:
    """Return the items of a variable."""
    value = session.context.value(name.text)
    if value is None:
        raise unbound(name.text, session)
    if isinstance(value.value, list):
        return Rows(name.text, value, value.value)
    if isinstance(value.value, dict):
        return Rows(name.text, value, [value.value])
    raise Refused("schema_mismatch", f"{name.text} is {kind_of(value.value)}; a list or an object is needed")


def variables(session: Session) -> dict[str, Any]:
    """Return the plain values of all variables by name."""
    return {name: session.context.get(name) for name in session.context.names()}


def bound(condition: Condition | None, session: Session) -> Condition | None:
    """Return ``condition`` with variables replaced by their values. Raises ``lang.evaluate.conditions.Unbound``."""
    return None if condition is None else bind(condition, variables(session))


def node_ids(rows: Rows) -> list[NodeId]:
    """Return the ids of the nodes that the items refer to, in order and without duplicates.

    A text or an integer is a node id. An object with ``id`` refers to the node with this id. An edge or a path refers to its
    ``source`` and ``target``, a subgraph (an object with only ``nodes``) to its nodes. Any other item is a ``schema_mismatch``.
    """
    found: dict[NodeId, None] = {}
    for index, item in enumerate(rows.items):
        ids = _ids(item)
        if ids is None:
            raise Refused(
                "schema_mismatch",
                f"item {index + 1} of {rows.name} does not refer to a node: {_description(item)}",
                "a node needs an id; an edge or a path needs a source and a target",
            )
        found.update(dict.fromkeys(ids))
    return list(found)


def _ids(item: Any) -> Sequence[NodeId] | None:
    if is_node_id(item):
        return (item,)
    kind = item_kind(item)
    if kind is None:
        return None
    if kind == "node":
        given = [item["id"]]
    elif kind == "subgraph":
        given = [node.get("id") if isinstance(node, dict) else node for node in item["nodes"]]
    else:
        given = [item["source"], item["target"]]
    ids = [node_id for node_id in given if is_node_id(node_id)]
    return ids if len(ids) == len(given) else None


def _description(item: Any) -> str:
    if isinstance(item, dict):
        return f"an object with {listed(item)}" if item else "an object without fields"
    return short(item) if isinstance(item, str) else kind_of(item)


def listed(names: Iterable[str], most: int = _OFFERED) -> str:
    """Return the first ``most`` names separated by commas, followed by dots if there are more."""
    every = list(names)
    return ", ".join(map(str, every[:most])) + (", ..." if len(every) > most else "")


# Reads fields of items by dotted names, and rejects a field that no item has.

MISSING = object()
"""The result of ``read`` if an item does not have the field."""

_MOST_OFFERED = 30
"""Maximum number of fields in a hint."""
_NAMED_FROM = 1_000
"""Maximum number of items whose fields are collected for the hint about an unknown field."""


def read(item: Any, parts: Sequence[str]) -> Any:
    """Return a field of ``item``, or ``MISSING``. At each level, a field named like the whole rest of the path has priority."""
    for at, name in enumerate(parts):
        if not isinstance(item, dict):
            return MISSING
        whole = ".".join(parts[at:])
        if whole in item:
            return item[whole]
        if name not in item:
            return MISSING
        item = item[name]
    return item


def column(rows: Rows, path: Path) -> list[Any]:
    """Return the value of a field for every item (None if it is null or missing). Raises ``Refused`` if no item has the field."""
    if len(path.parts) == 1:
        name = path.parts[0]
        values = [item.get(name, MISSING) if isinstance(item, dict) else MISSING for item in rows.items]
    else:
        values = [read(item, path.parts) for item in rows.items]
    if values and all(value is MISSING for value in values):
        raise _unknown(rows, path)
    return [None if value is MISSING or value != value else value for value in values]


def check_field(rows: Rows, path: Path) -> None:
    """Raise ``Refused`` if no item has the field. An empty list of items is not checked."""
    if rows.items and all(read(item, path.parts) is MISSING for item in rows.items):
        raise _unknown(rows, path)


def _unknown(rows: Rows, path: Path) -> Refused:
    names = list(_names(islice(rows.items, _NAMED_FROM)))
    like = nearest(path.text, names)
    hint = f"there are: {listed(names, _MOST_OFFERED)}" if names else "the items are not objects"
    if like:
        hint = f"did you mean {like}? {hint}"
    return Refused("schema_mismatch", f"no item of {rows.name} has a field {path.text}", hint)


def _names(items: Iterable[Any]) -> dict[str, None]:
    """Return the names of all fields; the names of nested fields are dotted, two levels deep."""
    names: dict[str, None] = {}
    for item in items:
        if isinstance(item, dict):
            for name, value in item.items():
                names[name] = None
                if isinstance(value, dict):
                    names.update((f"{name}.{inner}", None) for inner in islice(value, 50))
    return names
