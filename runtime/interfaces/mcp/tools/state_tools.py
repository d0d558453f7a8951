"""The tools ``schema``, ``state_show``, ``state_diff``, ``rollback``, ``session`` and ``page``."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal

from pydantic import BaseModel, Field

from .....lang.diagnostic import suggestion
from ....api.shared_workspace import MAIN, ContextStore
from ....api.workspace import Attribute, Declaration, Snapshot, StateError, StoreError
from ....excerpts import abridged, cut
from ..long_calls import Timeout, run_long
from ..tool_errors import ToolError
from ..tool_results import LIMIT, Arguments, Budget, Page, Result, Session
from .tool import Call, Tool, budget_of

_VALUES = 20
_KINDS = 50


class SchemaArguments(Arguments):
    """The attributes to return."""

    attribute: str | None = Field(
        default=None, max_length=500, description="One attribute, with all its frequent values"
    )
    offset: int = Field(default=0, ge=0, le=1 << 40)
    limit: int = Field(
        default=50, ge=1, le=LIMIT, description="Maximum number of attributes (nodes and edges together)"
    )


class GraphSchema(Result):
    """A summary of the graph."""

    directed: bool = False
    multi: bool = False
    nodes: int = 0
    edges: int = 0
    label_attribute: str | None = Field(default=None, description="The attribute with the kinds of nodes")
    labels: dict[str, int] = Field(default_factory=dict, description="Its values, most frequent first, with counts")
    relation_attribute: str | None = None
    relations: dict[str, int] = Field(default_factory=dict)
    attributes: Page | None = Field(
        default=None, description="Items: {of: node|edge, name, count, types, distinct, values: [{value, count}]}"
    )


async def _schema(call: Call, arguments: SchemaArguments) -> GraphSchema:
    graph = call.workspace.need_graph()
    schema = await asyncio.to_thread(lambda: graph.schema)
    most = None if arguments.attribute is not None else _VALUES
    rows = [
        _attribute(of, attribute, most)
        for of, attributes in (("node", schema.node_attributes), ("edge", schema.edge_attributes))
        for name, attribute in attributes.items()
        if arguments.attribute in (None, name)
    ]
    if arguments.attribute is not None and not rows:
        names = [*schema.node_attributes, *schema.edge_attributes]
        hint = suggestion(arguments.attribute, names, _VALUES)
        raise ToolError("not-found", f"no node or edge has the attribute {arguments.attribute}", hint)
    return GraphSchema(
        directed=schema.directed, multi=schema.multi, nodes=schema.nodes, edges=schema.edges,
        label_attribute=schema.label_attribute, labels=_first(schema.labels),
        relation_attribute=schema.relation_attribute, relations=_first(schema.relations),
        attributes=call.page(rows, arguments.offset, arguments.limit),
    )  # fmt: skip


def _first(counts: Mapping[str, int]) -> dict[str, int]:
    return {str(abridged(name, 200)): count for name, count in list(counts.items())[:_KINDS]}


def _attribute(of: str, found: Attribute, most: int | None) -> dict[str, Any]:
    values = [{"value": abridged(value, 200), "count": count} for value, count in found.values[:most]]
    return {
        "of": of, "name": found.name, "count": found.count, "types": dict(found.types), "distinct": found.distinct, "values": values,
    }  # fmt: skip


class ShowArguments(Arguments):
    """The key to show, and which part of its value."""

    key: str | None = Field(
        default=None, max_length=500, description="A declared key such as network.authors; null lists the keys"
    )
    history: bool = Field(
        default=False, description="Show the commands that were run, latest first, instead of the keys"
    )
    offset: int = Field(default=0, ge=0, le=1 << 40, description="Position of the first item, key or entry to return")
    limit: int = Field(default=100, ge=1, le=LIMIT, description="Maximum number of items")
    evidence: bool = Field(default=False, description="Show the evidence of each item")


class StateKey(BaseModel):
    """A declared key."""

    key: str
    type: Literal["LIST", "DICT", "COUNTER"]
    size: int
    description: str | None = None
    incomplete: list[str] = Field(default_factory=list, description="Reasons why the value is incomplete")


class Entry(BaseModel):
    """An entry of the history: a command, and the state after it."""

    step: int | None = None
    part: str | None = None
    command: Any = None
    status: str | None = None
    state: str | None = Field(default=None, description="The state's hash after the command, if it changed the state")
    rolled_back: bool = False


class StateResult(Result):
    """The state, or the value of one key."""

    hash: str = Field(default="", description="The state's hash, for state_diff and rollback")
    steps: int = Field(default=0, description="Number of entries of the history")
    keys: list[StateKey] = Field(default_factory=list)
    more_keys: int = Field(default=0, description="Number of keys after the listed ones; use a larger offset")
    page: Page | None = Field(default=None, description="The key's value")
    evidence: list[Any] | dict[str, Any] | None = Field(
        default=None, description="The evidence of the shown items, by position or by field"
    )
    history: list[Entry] = Field(
        default_factory=list,
        description="The latest commits, latest first; with `history`, all commands from the offset on. Use rollback with a hash to "
        "restore that state",
    )
    more_history: int = Field(
        default=0, description="With `history`: number of entries after the listed ones; use a larger offset"
    )


_LATEST = 10
"""Number of latest commits that are listed by default."""


async def _show(call: Call, arguments: ShowArguments) -> StateResult:
    if arguments.history and arguments.key is not None:
        raise ToolError(
            "arguments",
            "history and key can't be combined, because the history covers the entire state",
            "remove key or history",
        )
    store = await call.workspace.current()
    state, history = store.snapshot(), store.history
    result = StateResult(hash=state.hash, steps=len(history))
    if arguments.history:
        places = range(len(history) - 1 - arguments.offset, -1, -1)
        result.history = [_entry(history[at]) for at in places[: arguments.limit]]
        result.more_history = max(0, len(places) - arguments.limit)
        return result
    if arguments.key is None:
        declared = state.declared()[arguments.offset :]
        result.keys = [_key(each) for each in declared[: arguments.limit]]
        result.more_keys = max(0, len(declared) - arguments.limit)
        result.history = [*islice(_commits(history), _LATEST)]
        return result
    found = next((d for d in state.declared() if d.key == arguments.key), None)
    if found is None:
        names = [declared.key for declared in state.declared()]
        hint = suggestion(arguments.key, names, 20, "no keys are declared yet")
        raise ToolError("not-found", f"the state has no key {arguments.key}", hint)
    result.keys = [_key(found)]
    result.page = call.page(state.get(arguments.key), arguments.offset, arguments.limit)
    if arguments.evidence:
        result.evidence = _evidence(state, arguments.key, result.page)
    return result


def _key(found: Declaration) -> StateKey:
    return StateKey(
        key=found.key,
        type=found.type,
        size=found.size,
        description=None if found.description is None else cut(found.description, 500),
        incomplete=[cut(each, 500) for each in found.incomplete],
    )


def _commits(history: Sequence[Mapping[str, Any]]) -> Iterator[Entry]:
    """Yield the history entries that changed the state, latest first. At most ``_LOOKED`` entries are read, on demand."""
    for at in range(len(history) - 1, max(-1, len(history) - 1 - _LOOKED), -1):
        if (entry := history[at]).get("state"):
            yield _entry(entry)


_LOOKED = 10_000
"""Maximum number of history entries that are searched for the latest commits."""


def _entry(entry: Mapping[str, Any]) -> Entry:
    return Entry(
        step=entry.get("step"), part=entry.get("part"), command=abridged(entry.get("command"), 200),
        status=entry.get("status"), state=entry.get("state"), rolled_back=bool(entry.get("rolled_back")),
    )  # fmt: skip


def _evidence(state: Snapshot, key: str, page: Page) -> Any:
    evidence = state.evidence(key)
    if isinstance(evidence, list):
        if state.kind(key) == "COUNTER" and page.kind == "object" and any("key" in piece for piece in evidence):
            return {
                str(name): [abridged(piece, 200) for piece in evidence if piece.get("key", name) == name][:LIMIT]
                for name in page.value
            }
        shown = evidence if state.kind(key) == "COUNTER" else evidence[page.offset : page.offset + page.shown]
        return [abridged(pieces, 200) for pieces in shown[:LIMIT]]
    return {
        str(name): abridged(evidence[name], 200)
        for name in (page.value if page.kind == "object" else ())
        if name in evidence
    }


_HASHES = "state_show lists the latest hashes; with history: true, it lists all"


class DiffArguments(Arguments):
    """The two states to compare."""

    before: str = Field(min_length=4, max_length=64, description="A hash from the history, or its first characters")
    after: str | None = Field(
        default=None, min_length=4, max_length=64, description="Like `before`; null means the current state"
    )
    offset: int = Field(default=0, ge=0, le=1 << 40)
    limit: int = Field(default=100, ge=1, le=LIMIT)


class Differing(Result):
    """The differences between two states."""

    differences: Page | None = Field(
        default=None, description="Items: {key, kind: declared|removed|added|changed|count|provenance, before, after}"
    )


async def _diff(call: Call, arguments: DiffArguments) -> Differing:
    store = await call.workspace.current()
    try:
        found = await asyncio.to_thread(
            store.diff, arguments.before, store.snapshot() if arguments.after is None else arguments.after
        )
    except StateError as error:
        raise ToolError("not-found", error.message, error.hint or _HASHES) from None
    rows = [{"key": d.key, "kind": d.kind, "before": d.before, "after": d.after} for d in found]
    return Differing(differences=call.page(rows, arguments.offset, arguments.limit))


class RollbackArguments(Arguments):
    """The state to restore."""

    to: str = Field(min_length=4, max_length=64, description="A hash from the history, or its first characters")


class RolledBack(Result):
    """The result of a rollback."""

    changed: bool = Field(default=False, description="False if the state already had this hash")
    before: str = Field(default="", description="The hash before the rollback; roll back to it to undo this")
    hash: str = ""


async def _rollback(call: Call, arguments: RollbackArguments) -> RolledBack:
    await call.workspace.current()

    async def work(cancel: asyncio.Event) -> RolledBack:
        changed, before, after = call.workspace.roll_back(arguments.to)
        return RolledBack(before=before, changed=changed, hash=after)

    try:
        return await run_long(call.workspace, call.client, work, Timeout(), turn=True)
    except StoreError as error:
        raise ToolError("state", error.message, error.hint) from None
    except StateError as error:
        raise ToolError("not-found", error.message, error.hint or _HASHES) from None


SCHEMA = Tool(
    "schema", "Summary of the graph",
    "Return the graph's sizes, kinds of nodes and edges, and attributes with types and frequent values. Call it before you write "
    "conditions.",
    SchemaArguments, GraphSchema, _schema, graph=True,
)  # fmt: skip
STATE_SHOW = Tool(
    "state_show", "Show the state",
    "Return the keys of the state, its hash and its latest commits; with `history`, the commands that were run; or a page of one "
    "key's value, optionally with evidence.",
    ShowArguments, StateResult, _show,
)  # fmt: skip
STATE_DIFF = Tool(
    "state_diff", "Compare two states", "Compare two states of the history by their hashes, or one of them with the current state.",
    DiffArguments, Differing, _diff,
)  # fmt: skip
ROLLBACK = Tool(
    "rollback", "Restore an earlier state",
    "Restore the state with an earlier hash. This adds a commit, so nothing is lost; rolling back to `before` undoes it.",
    RollbackArguments, RolledBack, _rollback, writes=True, only_writes=True,
)  # fmt: skip


# ``session`` shows the variables of a session, and the server's model cost.

_FIELDS = 20
"""Maximum number of fields listed for a variable."""
_LISTED = 10
"""Maximum number of sessions listed for an unknown name."""


class SessionArguments(Arguments):
    """The session, and the variable to show."""

    session: str = Session
    variable: str | None = Field(default=None, max_length=500, description="A variable to show; null lists all")
    offset: int = Field(default=0, ge=0, le=1 << 40, description="Position of the first item or variable to return")
    limit: int = Field(default=100, ge=1, le=LIMIT, description="Maximum number of items")


class Variable(BaseModel):
    """A variable: its kind, size and fields."""

    name: str
    kind: str = Field(description="list, object, text, number, boolean or null")
    size: int | None = Field(
        default=None, description="Number of items in a list, members in an object, or characters in text"
    )
    fields: list[str] = Field(default_factory=list, description="The fields of its first item, or of the object")


class SessionResult(Result):
    """The variables of a session, or the value of one variable."""

    variables: list[Variable] = Field(default_factory=list)
    more_variables: int = Field(default=0, description="Number of variables after the listed ones; use a larger offset")
    page: Page | None = Field(default=None, description="The variable's value")
    budget: Budget | None = Field(default=None, description="The server's model cost since its start, and its limits")


async def _show_session(call: Call, arguments: SessionArguments) -> SessionResult:
    context = _context(call, arguments.session)
    names = [] if context is None else list(context.names())
    result = SessionResult(budget=budget_of(call))
    if arguments.variable is None:
        listed = names[arguments.offset : arguments.offset + arguments.limit]
        result.variables = [_variable(name, None if context is None else context.get(name)) for name in listed]
        result.more_variables = max(0, len(names) - arguments.offset - len(listed))
        return result
    if context is None or arguments.variable not in names:
        gone = call.workspace.sessions.dropped(call.session(arguments.session))
        if gone is not None and arguments.variable in gone.variables:
            raise ToolError("not-found", gone.message, gone.hint)
        hint = suggestion(arguments.variable, names, 20, "the session has no variables yet")
        raise ToolError("not-found", f"the session has no variable {arguments.variable}", hint)
    value = context.get(arguments.variable)
    result.variables = [_variable(arguments.variable, value)]
    result.page = call.page(value, arguments.offset, arguments.limit)
    return result


def _context(call: Call, name: str) -> ContextStore | None:
    """Return the variables of session ``name``; None for ``main`` before its first use. Raises ``ToolError`` if it does not exist."""
    sessions, key = call.workspace.sessions, call.session(name)
    context = sessions.variables(key)
    if context is not None or name == MAIN:
        return context
    if (gone := sessions.dropped(key)) is not None:
        raise ToolError("not-found", gone.message, gone.hint)
    names = sessions.names(call.client)
    hint = suggestion(name, names, _LISTED, "no session exists yet")
    if not hint.startswith("did you mean"):
        hint += "; run_plan and execute create sessions"
    raise ToolError("not-found", f"unknown session {name}", hint)


def _variable(name: str, value: Any) -> Variable:
    first = value[0] if isinstance(value, list) and value else value
    fields = [str(field)[:200] for field in list(first)[:_FIELDS]] if isinstance(first, dict) else []
    size = len(value) if isinstance(value, list | dict | str) else None
    return Variable(name=name, kind=_kind(value), size=size, fields=fields)


def _kind(value: Any) -> str:
    kinds = ((bool, "boolean"), (str, "text"), (list, "list"), (dict, "object"))
    return "null" if value is None else next((word for kind, word in kinds if isinstance(value, kind)), "number")


SESSION = Tool(
    "session", "Show a session",
    "Return the variables of a session with their sizes and fields, or the items of one variable; also the server's model cost.",
    SessionArguments, SessionResult, _show_session, graph=True,
)  # fmt: skip


# ``page`` returns further parts of a result that was too large for one answer.


class PageArguments(Arguments):
    """The result, and which part of it."""

    handle: str = Field(max_length=80, description="From `next` of an earlier page")
    offset: int = Field(
        default=0, ge=0, le=1 << 40, description="Position of the first item (in text: the first character)"
    )
    limit: int = Field(default=LIMIT, ge=1, le=LIMIT, description="Maximum number of items")


class Paged(Result):
    """A part of the result."""

    page: Page | None = None


async def _page(call: Call, arguments: PageArguments) -> Paged:
    try:
        value = call.workspace.results.get(call.client, arguments.handle)
    except KeyError:
        raise ToolError("not-found", "unknown handle", "only the latest results are stored; repeat the call") from None
    return Paged(page=call.page(value, arguments.offset, arguments.limit, arguments.handle))


PAGE = Tool(
    "page", "Next page of a result",
    "Return the next part of a result that has `next`: its items, members or characters from an offset on.",
    PageArguments, Paged, _page,
)  # fmt: skip
