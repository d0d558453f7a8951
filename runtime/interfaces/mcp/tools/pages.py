"""``page``: the rest of a result that was too large for one answer."""

from pydantic import Field

from ..paging import LIMIT
from ..refusals import Refused
from ..shapes import Arguments, Page, Result
from .tool import Call, Tool

__all__ = ["PAGE"]


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
