"""A JSON document as a tree that knows where everything stands, and the way from a string's text back into the file."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from attrs import field, frozen

from ..diagnostic import Diagnostic, Edit
from ..source import Source, Span

__all__ = ["JsonNode", "JsonPath", "JsonRead", "StringMap", "path_text"]

JsonPath: TypeAlias = Sequence[str | int]
"""The way from the root to a value: keys and indexes."""

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def path_text(path: JsonPath) -> str:
    """Return a path for a message: ``commands[3].why``; an odd key is quoted; the root is ``the document``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif len(part) <= 100 and _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            shown = part if len(part) <= 40 else part[:39] + "…"
            text += f"[{json.dumps(shown, ensure_ascii=False)}]"
    return text or "the document"


@frozen(eq=False)
class JsonNode:
    """A value and where it stands. ``value`` is plain JSON (dict, list, str, int, float, bool, None).

    ``fields`` are an object's values and ``keys`` where their keys stand; ``items`` are a list's. ``faulty``: something in
    the text of a scalar is wrong, and its value is a guess or null.
    """

    value: Any
    start: int
    end: int
    fields: Mapping[str, "JsonNode"] = field(factory=dict, repr=False)
    keys: Mapping[str, Span] = field(factory=dict, repr=False)
    items: Sequence["JsonNode"] = field(default=(), repr=False)
    faulty: bool = False

    @property
    def span(self) -> Span:
        """Where the value stands."""
        return Span(self.start, self.end)

    def at(self, path: JsonPath) -> "JsonNode | None":
        """Return what stands at ``path``, or None."""
        node: JsonNode | None = self
        for part in path:
            if node is None:
                return None
            node = node.fields.get(part) if isinstance(part, str) else _element(node.items, part)
        return node

    def nearest_span(self, path: JsonPath) -> Span:
        """Return where ``path`` stands, or the innermost thing on the way to it that is there."""
        node = self
        for part in path:
            below = node.at((part,))
            if below is None:
                return node.span
            node = below
        return node.span

    def key_span(self, path: JsonPath) -> Span | None:
        """Return where the key of the field at ``path`` stands, or None."""
        parent = self.at(path[:-1])
        last = path[-1] if path else None
        return parent.keys.get(last) if parent is not None and isinstance(last, str) else None


def _element(items: Sequence[JsonNode], index: int) -> JsonNode | None:
    return items[index] if 0 <= index < len(items) else None


@frozen
class JsonRead:
    """What reading gave: the tree, as far as the text could be read (None: not at all), and what was wrong."""

    root: JsonNode | None
    source: Source
    diagnostics: tuple[Diagnostic, ...] = ()


_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SURROGATES = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")


@frozen(slots=False)
class StringMap:
    """The way from offsets in a string's text to offsets in the file where it stands with its escapes.

    ``text`` is the whole file, ``span`` where the string's literal stands, with its quotes.
    """

    text: str = field(repr=False)
    span: Span

    @cached_property
    def _breaks(self) -> tuple[list[int], list[int]]:
        """Return where escapes have ended: offsets in the value, and the offsets in the file that these are."""
        decoded, raw = [0], [self.span.start + 1]
        position, end = self.span.start + 1, self.span.end - 1
        for begin, stop in self._escapes(position, end):
            decoded.append(decoded[-1] + (begin - position) + 1)
            raw.append(stop)
            position = stop
        return decoded, raw

    def _escapes(self, position: int, end: int) -> Iterator[tuple[int, int]]:
        find = self.text.find
        while (at := find("\\", position, end)) >= 0:
            match = _SURROGATES.match(self.text, at, end) or _ESCAPE.match(self.text, at, end)
            position = match.end() if match else at + 1
            yield at, position

    def offset(self, offset: int) -> int:
        """Return where the character at ``offset`` of the string's value stands (its end: the closing quote)."""
        decoded, raw = self._breaks
        at = bisect_right(decoded, offset) - 1
        return min(raw[at] + offset - decoded[at], self.span.end - 1)

    def located(self, span: Span) -> Span:
        """Return where a span of the string's value stands."""
        start = self.offset(span.start)
        return Span(start, max(start, self.offset(span.end)))

    def edit(self, edit: Edit) -> Edit:
        """Return the edit of the file that makes an edit of the string's value: placed there, its text escaped."""
        quote = self.text[self.span.start : self.span.start + 1]
        text = json.dumps(edit.text, ensure_ascii=False)[1:-1]
        return Edit(self.located(edit.span), text.replace("'", "\\'") if quote == "'" else text)
