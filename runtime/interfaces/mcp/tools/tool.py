"""What a tool is, and what it is given with each call."""

from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import Any

from attrs import frozen

from .....lang import diagnostic
from .....lang.source import Source
from ..ground import Ground, SessionKey
from ..paging import LIMIT, part_of
from ..progress import Tell
from ..refusals import Refused
from ..shapes import Arguments, Page, Result

__all__ = ["MOST_DIAGNOSTICS", "Call", "Tool", "source_of"]

MOST_DIAGNOSTICS = 50
"""Diagnostics of one result; most of many have one cause."""
_LARGEST = 1 << 20
"""Characters of a text that a call may bring."""


@frozen
class Call:
    """One call: what it works on, whose it is, and how it tells its progress."""

    ground: Ground
    who: str
    tell: Tell

    def session(self, name: str) -> SessionKey:
        """Return the key of the caller's session ``name``."""
        return (self.who, name)

    def page(self, value: Any, offset: int = 0, limit: int = LIMIT, handle: str = "") -> Page:
        """Return a page of ``value``, which is kept under a handle where it has more than one."""
        part = part_of(value, offset, self.ground.settings.limits.characters, limit)
        page = Page(
            kind=part.kind, value=part.value, offset=part.offset, shown=part.shown, total=part.total, cut=part.cut
        )
        if part.following is not None:
            page.next = {"handle": handle or self.ground.shelf.put(self.who, value), "offset": part.following}
        return page

    def told(self, found: Sequence[diagnostic.Diagnostic], source: Source, brought: Any = "") -> dict[str, Any]:
        """Return the members of ``Diagnosed`` for what was found in ``source``; ``brought`` is what the caller gave for it."""
        errors = [each for each in found if each.severity == "error"][:MOST_DIAGNOSTICS]
        others = [each for each in found if each.severity != "error"][: MOST_DIAGNOSTICS - len(errors)]
        shown = sorted((*errors, *others), key=diagnostic.sort_key)
        told: dict[str, Any] = {
            "diagnostics": [diagnostic.as_json(each, source) for each in shown],
            "found": len(found),
        }
        if shown and not isinstance(brought, str):
            told["text"] = source.text
        return told


@frozen(slots=False)
class Tool:
    """A tool. ``writes``: it may change the state; ``only_writes``: it does nothing else, and a server that only reads does not offer
    it. ``asks``: it may ask a model. ``graph``: it needs one. ``again``: called again with the same it changes nothing more.
    """

    name: str
    title: str
    description: str
    takes: type[Arguments]
    gives: type[Result]
    run: Callable[[Call, Any], Awaitable[Result]]
    writes: bool = False
    only_writes: bool = False
    asks: bool = False
    graph: bool = False
    again: bool = True

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return self.takes.model_json_schema()

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        """The JSON Schema of what it gives."""
        return self.gives.model_json_schema()

    def absent(self, ground: Ground) -> str:
        """Say why this server does not offer the tool; "" where it does."""
        if self.graph and ground.adapter is None:
            return "this server has no graph"
        if self.only_writes and ground.settings.read_only:
            return "this server only reads its state"
        return ""


def source_of(given: Any, name: str) -> Source:
    """Return a text, or an object written as JSON, as a source that diagnostics point into. Raises ``Refused``."""
    if isinstance(given, str):
        text = given
    else:
        import json

        try:
            text = json.dumps(given, ensure_ascii=False, indent=2)
        except (ValueError, RecursionError):
            raise Refused("arguments", f"{name}: it can't be written as JSON", "give its JSON text") from None
    if len(text) > _LARGEST:
        raise Refused("arguments", f"{name}: it is too long: at most {_LARGEST:,} characters are read")
    return Source(text, name)
