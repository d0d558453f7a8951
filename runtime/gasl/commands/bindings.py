"""Resolves the names in a command: to the items of a variable, to node ids, or to conditions in which the variables are bound.

Unresolvable names raise ``Refused``, which becomes the command's result. The items of a list variable are its elements. An object
counts as a list with this object as its only item. A string, a number, a boolean or null has no items (``schema_mismatch``).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar, get_args

import attrs

from ....adapters.graph import NodeId
from ....lang.diagnostic import nearest
from ....lang.evaluate.conditions import bind, bind_value
from ....lang.evaluate.conditions.values import current_tally
from ....lang.literals import kind_of, short
from ....lang.printer.gasl_printer import format_condition
from ....lang.trees import Node, walk
from ....lang.trees.conditions import Condition, Constant, Variable
from ....lang.trees.conditions import Value as ValueNode
from ....lang.trees.gasl import Name
from .. import column_cells
from ..records import ExecutionResult, Session, Status, Value
from ..relation import Relation
from .evidence import is_node_id, item_kind

_OFFERED = 8
"""Maximum number of names in a hint."""


_FEW = 2_000
"""Maximum number of items that are processed on the event loop's thread; this many take a few milliseconds."""


class Refused(Exception):
    """Raised if a command can't run with its inputs. ``result`` becomes the result of the command."""

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
    """Convert a pure function to a runner. For many items, it uses a thread, so as not to block the event loop."""

    @refusing
    @wraps(run)
    async def aside(command: Any, session: Session) -> ExecutionResult:
        names = [getattr(command, part, None) for part in ("source", "left", "right")]
        values = [session.context.value(name.text) for name in names if isinstance(name, Name)]
        if sum(value.count for value in values if value is not None) <= _FEW:
            return run(command, session)
        return await threaded(run, command, session)

    return aside


_P = ParamSpec("_P")
_R = TypeVar("_R")


async def threaded(run: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Run a function of this package in a thread. If the caller is cancelled, the function ends at its next time check."""
    tally = current_tally()
    try:
        return await asyncio.to_thread(run, *args, **kwargs)
    except asyncio.CancelledError:
        if tally is not None:
            tally.stopped = True
        raise


class Rows:
    """The items of a variable, and the ``Value`` that contains them. ``value.evidence_at(i)`` is the evidence of ``items[i]``.

    ``held`` are the items as a list or as a relation; ``items`` builds the items of a relation.
    """

    __slots__ = ("held", "name", "value")

    def __init__(self, name: str, value: Value, held: list[Any] | Relation) -> None:
        self.name = name
        self.value = value
        self.held = held

    def __len__(self) -> int:
        return len(self.held)

    @property
    def relation(self) -> Relation | None:
        """The items as a relation; None for a list."""
        return self.held if isinstance(self.held, Relation) else None

    @property
    def items(self) -> list[Any]:
        """The items as a list."""
        return self.held.items if isinstance(self.held, Relation) else self.held

    def each(self) -> Iterator[Any]:
        """Yield the items. The items of a large relation are built in blocks, and not stored."""
        if len(self.held) <= column_cells.LARGE:
            yield from self.items
            return
        for at in column_cells.blocks_of(len(self.held)):
            yield from self.held[at]

    @property
    def objects(self) -> list[dict[str, Any]] | Relation:
        """The items, but with an empty object in place of each item that is not an object."""
        held = self.held
        if isinstance(held, Relation) or all(type(item) is dict for item in held):
            return held
        return [item if isinstance(item, dict) else {} for item in held]

    def taken(self, indices: Any) -> list[Any] | Relation:
        """Return the items at ``indices``, an array or a sequence."""
        return self.held.take(indices) if isinstance(self.held, Relation) else [self.held[at] for at in indices]


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
    if isinstance(value.held, list | Relation):
        return Rows(name.text, value, value.held)
    if isinstance(value.held, dict):
        return Rows(name.text, value, [value.held])
    raise Refused("schema_mismatch", f"{name.text} is {kind_of(value.held)}; a list or an object is needed")


class _PlainValues(Mapping[str, Any]):
    """Maps the name of each variable to its plain value. A value is read only when its name is looked up."""

    def __init__(self, session: Session) -> None:
        self._context = session.context

    def __getitem__(self, name: str) -> Any:
        return self._context.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._context.names())

    def __len__(self) -> int:
        return len(self._context.names())


def variables(session: Session) -> Mapping[str, Any]:
    """Return a mapping from the name of each variable to its plain value. A value is read only when it is accessed."""
    return _PlainValues(session)


def bound(condition: Condition | None, session: Session) -> Condition | None:
    """Return ``condition`` with variables replaced by their values. Raises ``lang.evaluate.conditions.Unbound``."""
    return None if condition is None else bind(condition, variables(session))


_CommandT = TypeVar("_CommandT", bound=Node)
_NUMBERS = {"limit": "LIMIT", "max_length": "MAXLEN", "depth": "DEPTH", "sample": "SAMPLE", "count": "SHORTEST"}


def bound_command(command: _CommandT, session: Session) -> _CommandT:
    """Return ``command`` with all its variables ``${...}`` replaced by their values. Names without ``${}`` are unchanged.

    Raises ``lang.evaluate.conditions.Unbound``, and ``Refused`` if a variable after LIMIT, MAXLEN, DEPTH, SAMPLE or SHORTEST is
    not an integer of at least 0 (SHORTEST: at least 1).
    """
    if not any(isinstance(node, Variable) for node in walk(command)):
        return command
    values = variables(session)
    changed: dict[str, Any] = {}
    for attribute in attrs.fields(type(command)):
        old = getattr(command, attribute.name)
        if attribute.name in _NUMBERS and isinstance(old, Variable):
            changed[attribute.name] = _whole_number(_NUMBERS[attribute.name], old, values)
        elif attribute.name != "span":
            changed[attribute.name] = _bound_part(old, values)
    return attrs.evolve(command, **changed)


def _bound_part(part: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(part, tuple):
        return tuple(_bound_part(each, values) for each in part)
    if isinstance(part, _CONDITIONS_AND_VALUES):
        return bind(part, values)
    if isinstance(part, Node):
        names = [attribute.name for attribute in attrs.fields(type(part)) if attribute.name != "span" and attribute.eq]
        return attrs.evolve(part, **{name: _bound_part(getattr(part, name), values) for name in names})
    return part


_CONDITIONS_AND_VALUES = (*get_args(Condition), *get_args(ValueNode))


def fixed(number: int | Variable | None) -> int | None:
    """Return ``number``. It is not a variable, because ``bound_command`` has replaced the variables."""
    assert not isinstance(number, Variable)  # noqa: S101  # ``bound_command`` has replaced it
    return number


def _whole_number(word: str, variable: Variable, values: Mapping[str, Any]) -> int:
    bound_value = bind_value(variable, values)
    value = bound_value.value if isinstance(bound_value, Constant) else None
    least = 1 if word == "SHORTEST" else 0
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        name = format_condition(variable)
        what = short(value) if isinstance(value, str) else value if isinstance(value, int | float) else kind_of(value)
        raise Refused("schema_mismatch", f"{word} takes a whole number of at least {least}, but {name} is {what}")
    return value


def node_ids(rows: Rows) -> list[NodeId]:
    """Return the ids of the nodes that the items refer to, in order and without duplicates.

    A string or an integer is a node id. An object with ``id`` refers to the node with this id. An edge or a path refers to its
    ``source`` and ``target``, a subgraph (an object with only ``nodes``) to its nodes. Any other item is a ``schema_mismatch``.
    """
    found: dict[NodeId, None] = {}
    relation, kind = rows.relation, rows.value.graph_items
    columns = [] if relation is None else [relation.values((name,)) for name in _HOLDERS.get(kind, ())]
    if columns and all(each is not None for each in columns):
        return list(dict.fromkeys(node_id for row in zip(*columns, strict=True) for node_id in row))
    for index, item in enumerate(rows.each()):
        ids = _ids(item)
        if ids is None:
            raise Refused(
                "schema_mismatch",
                f"item {index + 1} of {rows.name} does not refer to a node: {_description(item)}",
                "a node needs an id; an edge or a path needs a source and a target",
            )
        found.update(dict.fromkeys(ids))
    return list(found)


_HOLDERS: Mapping[str, tuple[str, ...]] = {"nodes": ("id",), "edges": ("source", "target")}
"""Maps each kind of graph items to the fields that contain ids of nodes."""


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
