"""What tools give, as pydantic models: the output schemas that clients are told, and the parts that several tools share.

Spans are code points from 0, lines and columns count from 1, as in every diagnostic of this house.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .parser_pool import LONGEST
from .tool_errors import Kind

__all__ = ["Arguments", "Asked", "Budget", "Diagnosed", "Diagnostic", "Page", "Result", "Session", "Spent", "Text"]


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
