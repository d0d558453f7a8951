"""The results of tools as pydantic models, which define the output schemas for clients. Several tools share these models.

Spans are code points from 0; lines and columns count from 1, as in all diagnostics.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Annotated, Any, Literal

import orjson
from attrs import frozen
from pydantic import BaseModel, ConfigDict, Field

from ...excerpts import shortened, storable
from .tool_errors import Kind
from .workspace import LONGEST


class Arguments(BaseModel):
    """The arguments of a tool; unknown arguments are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


Session = Field(
    default="main",
    min_length=1,
    max_length=80,
    description="Name of the session whose variables are used. Each session has its own variables; all share the state.",
)
"""The argument ``session`` of all tools that use variables."""


Parameters: Any = Field(
    default_factory=dict, description="Values of the parameters that the text declares with PARAM, by name"
)

Text = Annotated[str, Field(max_length=LONGEST)]
"""A string of limited length."""


class CallError(BaseModel):
    """Why a call failed."""

    kind: Kind = Field(
        description="arguments: invalid arguments. not-found: unknown name. no-graph: the server has no graph. state: the state can't "
        "be written. busy: call again. internal: an internal error"
    )
    message: str
    hint: str = Field(default="", description="How to fix the call")

    model_config = ConfigDict(extra="allow")


class Result(BaseModel):
    """The result of a tool. A failed call (``isError``) has only ``error``."""

    error: CallError | None = None


class Span(BaseModel):
    """A place in a text."""

    start: int
    end: int
    line: int
    column: int
    end_line: int
    end_column: int


class Edit(BaseModel):
    """Replace the text from ``start`` to ``end`` by ``text``."""

    start: int
    end: int
    text: str


class Diagnostic(BaseModel):
    """An error, warning or remark. All ``edits`` together are one exact fix."""

    code: str
    severity: Literal["error", "warning", "info"]
    message: str
    file: str
    span: Span | None
    hints: list[str]
    edits: list[Edit]


class Page(BaseModel):
    """A part of a value. If ``next`` is not null, call the tool `page` with it to get more."""

    kind: Literal["list", "object", "text", "value"]
    value: Any = None
    offset: int = 0
    shown: int = 0
    total: int = 0
    cut: bool = Field(default=False, description="An item is abridged because it is larger than a page")
    next: dict[str, Any] | None = Field(
        default=None, description="Arguments for `page` to get the rest; null at the end"
    )


class Diagnosed(Result):
    """The diagnostics of a text."""

    diagnostics: list[Diagnostic] = Field(
        default_factory=list, description="In source order. If there are many: only the first errors and the last one"
    )
    found: int = Field(
        default=0,
        description="Number of diagnostics found. The check stops after 1,000 faults; the last diagnostic then says so",
    )
    all_diagnostics: dict[str, Any] | None = Field(
        default=None,
        description="Arguments for `page` to get all diagnostics; null if all are listed",
    )
    text: str | None = Field(
        default=None,
        description="The JSON text to which spans and edits refer, if the argument was an object",
    )
    text_page: Page | None = Field(default=None, description="The pages of `text`, if it is longer than a page")


class Spent(BaseModel):
    """The model cost of a call, without answers from the cache."""

    calls: int = Field(default=0, description="Number of requests sent, including failed ones and repairs")
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = Field(
        default=False, description="Whether a model did not report all tokens, so that they are estimated"
    )
    cost: float | None = Field(default=None, description="US dollars; null if the price is unknown")


class Budget(BaseModel):
    """The model cost of all clients together since the server's start, and the server's limits."""

    calls: int = 0
    tokens: int = 0
    cost: float | None = Field(default=0.0, description="US dollars; null if a price is unknown")
    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None


# Splits results into pages. A page is the part of a value that fits into a number of characters, with the position of the rest.
# The time to make a page depends on the page's content, not on the size of the value.

LIMIT = 1_000
"""Maximum number of items on a page."""
_BRIEF = ((300, 10, 3), (80, 5, 2), (20, 3, 1))
"""Sets of limits to abridge an item that is larger than a page: characters of a string, items of a list, levels.

The first set with which the item fits is used.
"""


@frozen
class Part:
    """A part of a value.

    ``kind`` says how the value is split: "list" (into items), "object" (into members), "text" (into characters) or "value" (not split).
    ``total``, ``offset`` and ``shown`` count items, members or characters. ``cut`` is true if an item is abridged because it is larger
    than a page.
    """

    kind: Literal["list", "object", "text", "value"]
    value: Any
    offset: int
    shown: int
    total: int
    cut: bool = False

    @property
    def following(self) -> int | None:
        """The offset of the next part; None if this is the last part."""
        end = self.offset + self.shown
        return end if end < self.total else None


def part_of(value: Any, offset: int, characters: int, limit: int = LIMIT) -> Part:
    """Return the part of ``value`` that begins at ``offset``, with at most ``limit`` items and about ``characters`` characters.

    The part has at least one item, which is abridged if necessary.
    """
    limit = max(1, min(limit, LIMIT))
    if isinstance(value, str):
        text = value[offset : offset + characters]
        return Part("text", storable(text), offset, len(text), len(value))
    if isinstance(value, list):
        items, cut = _fitting(value[offset : offset + limit], characters, lambda item: item)
        return Part("list", items, offset, len(items), len(value), cut)
    if isinstance(value, dict):
        members = list(islice(value.items(), offset, offset + limit))
        pairs, cut = _fitting(members, characters, lambda member: {member[0]: member[1]})
        shown = {str(storable(str(name))): item for pair in pairs for name, item in pair.items()}
        return Part("object", shown, offset, len(pairs), len(value), cut)
    return Part("value", storable(value), 0, 1, 1)


def chosen(rows: Sequence[Any], first: Callable[[Any], bool], most: int, characters: int) -> list[int]:
    """Return the indexes of the ``rows`` (JSON values) that a result lists, in order.

    Rows for which ``first`` returns True take precedence. At least one and at most ``most`` rows are listed, and the listed
    rows together have at most about ``characters`` characters.
    """
    shown: list[int] = []
    left = characters
    for at in sorted(range(len(rows)), key=lambda at: not first(rows[at]))[:most]:
        left -= size_of(rows[at], characters)
        if left < 0 and shown:
            break
        shown.append(at)
    return sorted(shown)


def _fitting(items: list[Any], characters: int, form: Callable[[Any], Any]) -> tuple[list[Any], bool]:
    shown: list[Any] = []
    left, cut = characters, False
    for item in items:
        fitted = form(item)
        size = size_of(fitted, characters)
        if size > characters:  # the item does not fit on any page
            fitted, cut = _brief(fitted, characters), True
            size = size_of(fitted, characters)
        if size > left and shown:
            break
        shown.append(storable(fitted))
        left -= size
    return shown, cut


def _brief(item: Any, characters: int) -> Any:
    for text, items, depth in _BRIEF:
        fitted = shortened(item, text, items, depth)
        if size_of(fitted, characters) <= characters:
            return fitted
    return "… [too large to be shown]" if not isinstance(item, dict) or len(item) != 1 else {**dict.fromkeys(item, "…")}


def size_of(value: Any, most: int) -> int:
    """Return the approximate number of characters of ``value`` as JSON.

    If this number exceeds ``most``, the result may be any number above ``most``.
    """
    if isinstance(value, str) and len(value) > most:
        return len(value)
    try:
        return len(orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS))
    except (
        TypeError,
        ValueError,
        RecursionError,
    ):  # a lone surrogate, a number with too many digits, or too many levels
        return len(repr(value)[: most + 1]) if not isinstance(value, dict | list) else most + 1
