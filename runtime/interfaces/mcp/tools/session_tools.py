"""``session``: the variables that there are, and what was spent."""

from typing import Any

from pydantic import BaseModel, Field

from .....lang.diagnostic import nearest
from ....gasl.variables import ContextStore
from ..client_sessions import MAIN
from ..output_schemas import Arguments, Budget, Page, Result, Session
from ..result_pages import LIMIT
from ..tool_errors import Refused
from .tool import Call, Tool, budget_of

__all__ = ["PAGE", "SESSION"]

_FIELDS = 20
"""Fields that are named of a variable's items."""
_LISTED = 10
"""Sessions that are named where there is none of a name."""


class SessionArguments(Arguments):
    """Which session, and which of its variables."""

    session: str = Session
    variable: str | None = Field(default=None, max_length=500, description="A variable to show; null lists all")
    offset: int = Field(
        default=0, ge=0, le=1 << 40, description="The first item of the variable, or the first variable"
    )
    limit: int = Field(default=100, ge=1, le=LIMIT, description="The most of them")


class Variable(BaseModel):
    """A variable: what it holds, and how much."""

    name: str
    kind: str = Field(description="list, object, text, number, boolean or null")
    size: int | None = Field(default=None, description="Items of a list, members of an object, characters of a text")
    fields: list[str] = Field(default_factory=list, description="The fields of its first item, or of the object")


class SessionShown(Result):
    """The variables of a session, or what one of them holds."""

    variables: list[Variable] = Field(default_factory=list)
    more_variables: int = Field(
        default=0, description="Variables behind those that are listed: ask with a larger offset"
    )
    page: Page | None = Field(default=None, description="The variable's value")
    budget: Budget | None = Field(default=None, description="What the server has spent since its start, and may")


async def _show(call: Call, asked: SessionArguments) -> SessionShown:
    context = _context(call, asked.session)
    names = [] if context is None else list(context.names())
    told = SessionShown(budget=budget_of(call))
    if asked.variable is None:
        listed = names[asked.offset : asked.offset + asked.limit]
        told.variables = [_variable(name, None if context is None else context.get(name)) for name in listed]
        told.more_variables = max(0, len(names) - asked.offset - len(listed))
        return told
    if context is None or asked.variable not in names:
        gone = call.ground.sessions.dropped(call.session(asked.session))
        if gone is not None and asked.variable in gone.variables:
            raise Refused("not-found", gone.message, gone.hint)
        like = nearest(asked.variable, names)
        hint = (
            f"did you mean {like}?" if like else f"there are: {', '.join(names[:20])}" if names else "it has none yet"
        )
        raise Refused("not-found", f"the session has no variable {asked.variable}", hint)
    value = context.get(asked.variable)
    told.variables = [_variable(asked.variable, value)]
    told.page = call.page(value, asked.offset, asked.limit)
    return told


def _context(call: Call, name: str) -> ContextStore | None:
    """Return a session's variables; None for ``main`` before its first use. Raises ``Refused`` where there is no such session."""
    sessions, key = call.ground.sessions, call.session(name)
    context = sessions.variables(key)
    if context is not None or name == MAIN:
        return context
    if (gone := sessions.dropped(key)) is not None:
        raise Refused("not-found", gone.message, gone.hint)
    names = sessions.names(call.who)
    like = nearest(name, names)
    there = f"there are: {', '.join(names[:_LISTED])}" if names else "there is none yet"
    hint = f"did you mean {like}?" if like else f"{there}; run_plan or execute begins one"
    raise Refused("not-found", f"there is no session {name}", hint)


def _variable(name: str, value: Any) -> Variable:
    first = value[0] if isinstance(value, list) and value else value
    fields = [str(field)[:200] for field in list(first)[:_FIELDS]] if isinstance(first, dict) else []
    size = len(value) if isinstance(value, list | dict | str) else None
    return Variable(name=name, kind=_kind(value), size=size, fields=fields)


def _kind(value: Any) -> str:
    kinds = ((bool, "boolean"), (str, "text"), (list, "list"), (dict, "object"))
    return "null" if value is None else next((word for kind, word in kinds if isinstance(value, kind)), "number")


SESSION = Tool(
    "session", "What a session has",
    "Return the variables of a session with their sizes and fields, or the rows of one again; and what the server has spent on models.",
    SessionArguments, SessionShown, _show, graph=True,
)  # fmt: skip


# ``page``: the rest of a result that was too large for one answer.


class PageArguments(Arguments):
    """Which part of which result."""

    handle: str = Field(max_length=80, description="From `next` of an earlier page")
    offset: int = Field(default=0, ge=0, le=1 << 40, description="The first item (of a text: the first character)")
    limit: int = Field(default=LIMIT, ge=1, le=LIMIT, description="The most items")


class Paged(Result):
    """A part of the result."""

    page: Page | None = None


async def _page(call: Call, asked: PageArguments) -> Paged:
    try:
        value = call.ground.shelf.get(call.who, asked.handle)
    except KeyError:
        raise Refused(
            "not-found", "there is no result under this handle", "only the latest results are kept: run it again"
        ) from None
    return Paged(page=call.page(value, asked.offset, asked.limit, asked.handle))


PAGE = Tool(
    "page", "More of a result", "Return the next part of a result that said `next`: its items, members or characters from an offset on.",
    PageArguments, Paged, _page,
)  # fmt: skip
