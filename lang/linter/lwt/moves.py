"""Edits that put an argument or an option of a call where it belongs."""

from ...diagnostic import Edit
from ...lwt import Call, ListValue, Option, Template
from ...operations import Signature
from ...source import NOWHERE, Span
from .registry import Context

__all__ = ["as_choice", "as_options", "first_of", "named_argument", "without"]


def without(context: Context, call: Call, span: Span) -> Span:
    """Return ``span``, an argument or option of ``call``, with the comma before it (behind it, where it is the first)."""
    text = context.script.source.text
    begin = max(call.span.start, span.start - 200)
    before = text[begin : span.start].rstrip()
    if before.endswith(","):
        return Span(begin + len(before) - 1, span.end)
    end = span.end
    while end < call.span.end and text[end] in " \t\r\n,":
        end += 1
    return Span(span.start, end)


def first_of(context: Context, call: Call, span: Span) -> list[Edit]:
    """Return the edits that make what stands under ``span`` the first argument of ``call``."""
    text = context.script.source.text
    inside = [*call.arguments, *call.options]
    if any(part.span == NOWHERE for part in inside):
        return []
    begin = min(part.span.start for part in inside)
    return [Edit(Span(begin, begin), text[span.start : span.end] + ", "), Edit(without(context, call, span), "")]


def named_argument(context: Context, call: Call, option: Option) -> list[Edit]:
    """Return the edits that make an option, which has an argument's name, the first argument: ``prompt="..."``."""
    text = context.script.source.text
    if call.arguments or option.value.span == NOWHERE or not text.startswith(option.name, option.span.start):
        return []
    if option is call.options[0]:
        return [Edit(Span(option.span.start, option.value.span.start), "")]
    begin = call.options[0].span.start
    moved = text[option.value.span.start : option.value.span.end] + ", "
    return [Edit(Span(begin, begin), moved), Edit(without(context, call, option.span), "")]


def as_options(context: Context, signature: Signature, value: object) -> str:
    """Return ``{"temperature": 0}`` as options, or nothing where one of the keys is none."""
    text, pieces = context.script.source.text, []
    for key, entry in getattr(value, "entries", ()):
        if signature.option(key.constant or "") is None or entry.span == NOWHERE:
            return ""
        pieces.append(f"{key.constant}={text[entry.span.start : entry.span.end]}")
    return ", ".join(pieces)


def as_choice(context: Context, value: object) -> str:
    """Return ``["a", "b"]`` as a choice, or nothing where it is no list of strings."""
    items = value.items if isinstance(value, ListValue) else ()
    if len(items) < 2 or not all(isinstance(item, Template) and (item.constant or "").strip() for item in items):
        return ""
    text = context.script.source.text
    return " | ".join(text[item.span.start : item.span.end] for item in items)
