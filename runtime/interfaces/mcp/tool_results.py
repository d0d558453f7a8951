"""What tools give, as pydantic models: the output schemas that clients are told, and the parts that several tools share.

Spans are code points from 0, lines and columns count from 1, as in every diagnostic of this house.
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
    """What a tool takes: nothing that isn't named."""

    model_config = ConfigDict(extra="forbid", strict=True)


Session = Field(
    default="main",
    min_length=1,
    max_length=80,
    description="Whose variables: a name of your own choice. Variables live in a session, the state is one for all.",
)
"""The argument of tools that work with variables."""


Text = Annotated[str, Field(max_length=LONGEST)]
"""A text that is read."""


class Asked(BaseModel):
    """Why a call could not be done."""

    kind: Kind = Field(
        description="arguments: they are wrong. not-found: what they name is not there. no-graph: this server has none. state: it can't "
        "be written. busy: call again. internal: a fault of ours"
    )
    message: str
    hint: str = Field(default="", description="What to do about it")

    model_config = ConfigDict(extra="allow")


class Result(BaseModel):
    """What a tool gives. ``error`` is there where the call could not be done (``isError``), and then nothing else is."""

    error: Asked | None = None


class Span(BaseModel):
    """A place in a text."""

    start: int
    end: int
    line: int
    column: int
    end_line: int
    end_column: int


class Edit(BaseModel):
    """Replace what stands from ``start`` to ``end`` by ``text``."""

    start: int
    end: int
    text: str


class Diagnostic(BaseModel):
    """One fault or remark. ``edits`` together are one fix, exact to the character."""

    code: str
    severity: Literal["error", "warning", "info"]
    message: str
    file: str
    span: Span | None
    hints: list[str]
    edits: list[Edit]


class Page(BaseModel):
    """A part of a value. There is more where ``next`` is not null: call the tool `page` with it."""

    kind: Literal["list", "object", "text", "value"]
    value: Any = None
    offset: int = 0
    shown: int = 0
    total: int = 0
    cut: bool = Field(default=False, description="An item is shown in brief, for it is larger than a page")
    next: dict[str, Any] | None = Field(
        default=None, description="The arguments of `page` that give the rest; null at the end"
    )


class Diagnosed(Result):
    """What was found in a text."""

    diagnostics: list[Diagnostic] = Field(
        default_factory=list, description="By place. Of many the first errors, and the last one"
    )
    found: int = Field(
        default=0,
        description="How many were found; a text of more than 1,000 faults is read no further, and the last one says so",
    )
    all_diagnostics: dict[str, Any] | None = Field(
        default=None,
        description="The arguments of `page` that give all that were found, where more are than are listed",
    )
    text: str | None = Field(
        default=None,
        description="The text that spans and edits point into, where the call brought an object and no text",
    )
    text_page: Page | None = Field(default=None, description="That text in pages, where it is longer than a page")


class Spent(BaseModel):
    """What a call really spent on models: what the cache answered is not in it."""

    calls: int = Field(default=0, description="Requests that were sent, those that failed and repairs, too")
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = Field(default=None, description="US dollars; null where the price is not known")


class Budget(BaseModel):
    """What the server has spent on models since its start, all clients together, and the most that it may."""

    calls: int = 0
    tokens: int = 0
    cost: float | None = Field(default=0.0, description="US dollars; null where a price is not known")
    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None


# Results in pages: as much of a value as fits a bounded number of characters, and where the rest is.
# What a page costs depends on what it shows, not on how large the value is.

LIMIT = 1_000
"""The most items of a page."""
_BRIEF = ((300, 10, 3), (80, 5, 2), (20, 3, 1))
"""How an item is shown that is larger than a page: characters of a text, items of a list, levels. The first that fits."""


@frozen
class Part:
    """A part of a value. ``kind``: "list" (``value`` are items), "object" (its members), "text" (characters) or "value" (whole).

    ``total`` and ``offset`` count items, members or characters; ``cut`` says that an item is shown in brief: it is larger than a page.
    """

    kind: Literal["list", "object", "text", "value"]
    value: Any
    offset: int
    shown: int
    total: int
    cut: bool = False

    @property
    def following(self) -> int | None:
        """Where the next part begins; None at the end."""
        end = self.offset + self.shown
        return end if end < self.total else None


def part_of(value: Any, offset: int, characters: int, limit: int = LIMIT) -> Part:
    """Return the part of ``value`` from ``offset`` on that has at most about ``characters`` characters and ``limit`` items.

    At least one item is shown where there is one, in brief if it must be.
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
    """Return which of ``rows`` (JSON values) a result lists, in order: those for which ``first`` holds before the others.

    At most ``most``, of about ``characters`` characters together; one at least where there is one.
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
        made = form(item)
        size = size_of(made, characters)
        if size > characters:  # it would fit no page
            made, cut = _brief(made, characters), True
            size = size_of(made, characters)
        if size > left and shown:
            break
        shown.append(storable(made))
        left -= size
    return shown, cut


def _brief(item: Any, characters: int) -> Any:
    for text, items, depth in _BRIEF:
        made = shortened(item, text, items, depth)
        if size_of(made, characters) <= characters:
            return made
    return "… [too large to be shown]" if not isinstance(item, dict) or len(item) != 1 else {**dict.fromkeys(item, "…")}


def size_of(value: Any, most: int) -> int:
    """Return about how many characters ``value`` has as JSON; where it is more than ``most``, only a number above that."""
    if isinstance(value, str) and len(value) > most:
        return len(value)
    try:
        return len(orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS))
    except (
        TypeError,
        ValueError,
        RecursionError,
    ):  # half of a surrogate pair, a number of many digits, deeper than JSON is read
        return len(repr(value)[: most + 1]) if not isinstance(value, dict | list) else most + 1
