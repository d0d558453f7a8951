"""Builds LWT nodes as Lark reduces its rules, so that no parse tree is ever made.

Every method is the callback of the rule of the same name in ``lwt.lark`` and takes the rule's children: tokens, which
know their offsets, and nodes built before.
"""

import re
from typing import Any

from lark import Token

from ...source import Span
from ...trees.lwt import (
    Accessor,
    Call,
    Choice,
    Comment,
    Index,
    Key,
    ListValue,
    ObjectValue,
    Option,
    Reference,
    Scalar,
    Slice,
    Step,
    Template,
    Text,
    Value,
    Word,
)
from ...trees.node import Node

__all__ = ["MAX_DEPTH", "Builder", "Unbuildable", "split_reference"]

MAX_DEPTH = 64
"""How deep values may nest. Trees are compared and printed recursively; no script that means something comes near."""

_CONSTANTS: dict[str, bool | None] = {
    "true": True, "false": False, "null": None, "True": True, "False": False, "None": None
}  # fmt: skip

_ACCESSOR = re.compile(
    r"""\[(?: "((?:[^"\\\n]|\\[^\n])*)" | '((?:[^'\\\n]|\\[^\n])*)' | \\"([^"\\\n]*)\\" | \\'([^'\\\n]*)\\'
          | (-?[0-9]*):(-?[0-9]*) | ([\w.\-]+) )\]""",
    re.VERBOSE,
)
_INTEGER = re.compile(r"-?[0-9]{1,18}\Z")
_KEY_ESCAPE = re.compile(r"""\\(["'\\])""")


class Unbuildable(Exception):
    """Text that the grammar takes but no node can hold: nested too deep, or a number out of range."""

    def __init__(self, code: str, message: str, span: Span) -> None:
        super().__init__(message)
        self.code, self.message, self.span = code, message, span


def split_reference(text: str, start: int) -> Reference:
    """Take a whole reference apart: ``{(id)}["key"][3]``, which begins at offset ``start``."""
    close = text.index(")")
    accessors: list[Accessor] = []
    at = close + 2
    while match := _ACCESSOR.match(text, at):
        accessors.append(_accessor(match, Span(start + at, start + match.end())))
        at = match.end()
    return Reference(text[2:close], tuple(accessors), span=Span(start, start + len(text)))


def _accessor(match: re.Match[str], span: Span) -> Accessor:
    double, single, escaped_double, escaped_single, first, last, bare = match.groups()
    if first is not None:
        return Slice(_bound(first, span), _bound(last, span), span=span)
    if bare is not None:
        return Index(int(bare), span=span) if _INTEGER.match(bare) else Key(bare, span=span)
    for plain in (escaped_double, escaped_single):
        if plain is not None:
            return Key(plain, span=span)
    quoted = double if double is not None else single
    return Key(_KEY_ESCAPE.sub(r"\1", quoted), span=span)


def _bound(digits: str, span: Span) -> int | None:
    if digits in ("", "-"):
        return None
    if not _INTEGER.match(digits):
        raise Unbuildable("LWT011", f"the bound {digits[:12]}… of this slice is too large", span)
    return int(digits)


class Builder:
    """The callbacks. Stateless: one builder serves every parse, in every thread."""

    def script(self, children: list[Any]) -> tuple[Step | Comment, ...]:
        """All steps and comments."""
        return tuple(children)

    def step(self, children: list[Any]) -> Step:
        """``HEAD call``."""
        head, call = children
        if any(not isinstance(value, Template) for value in call.arguments):
            _refuse_depth(call)
        return Step(head[1 : head.index(")")], call, span=Span(head.start_pos, call.span.end))

    def comment(self, children: list[Token]) -> Comment:
        """A line that starts with ``#``."""
        text = children[0].rstrip()
        return Comment(text, span=_span(children[0], length=len(text)))

    def call(self, children: list[Any]) -> Call:
        """``NAME ( arguments )``. Options and arguments are parted; their spans keep the order."""
        name, *rest, close = children
        return Call(
            str(name),
            tuple(child for child in rest if not isinstance(child, Option)),
            tuple(child for child in rest if isinstance(child, Option)),
            span=Span(name.start_pos, close.end_pos),
        )

    def option(self, children: list[Any]) -> Option:
        """``NAME = value``."""
        name, value = children
        return Option(str(name), value, span=Span(name.start_pos, value.span.end))

    def word(self, children: list[Token]) -> Value:
        """A bare word: a constant's name or a word of its own."""
        token = children[0]
        if token in _CONSTANTS:
            return Scalar(_CONSTANTS[token], span=_span(token))
        return Word(str(token), span=_span(token))

    def number(self, children: list[Token]) -> Scalar:
        """An integer of at most 64 bits or a finite float."""
        token = children[0]
        number: int | float
        if token.lstrip("-").isdigit():
            number = int(token) if len(token) <= 20 else 2**64
            if not -(2**63) <= number < 2**63:
                raise Unbuildable("LWT020", "this number does not fit in 64 bits; write it as a string", _span(token))
        else:
            number = float(token)
            if number in (float("inf"), float("-inf")):
                raise Unbuildable("LWT020", "this number is too large for a float", _span(token))
        return Scalar(number, span=_span(token))

    def reference(self, children: list[Token]) -> Reference:
        """A reference that stands as a value of its own."""
        return split_reference(children[0], _start(children[0]))

    def choice(self, children: list[Template]) -> Choice:
        """``"a" | "b"``."""
        return Choice(tuple(children), span=children[0].span | children[-1].span)

    def array(self, children: list[Any]) -> ListValue:
        """``[value, ...]``. The opening bracket is dropped by the grammar, so the span begins at the first value."""
        *items, close = children
        start = items[0].span.start - 1 if items else close.start_pos - 1
        return ListValue(tuple(items), span=Span(start, close.end_pos))

    def record(self, children: list[Any]) -> ObjectValue:
        """``{"key": value, ...}``; the span as for lists."""
        *entries, close = children
        start = entries[0][0].span.start - 1 if entries else close.start_pos - 1
        return ObjectValue(tuple(entries), span=Span(start, close.end_pos))

    def entry(self, children: list[Any]) -> tuple[Template, Value]:
        """``"key": value``."""
        key, value = children
        return key, value

    def template(self, children: list[Any]) -> Template:
        """A string with its quotes. Escapes are resolved here; adjacent texts become one."""
        opening, closing = children[0], children[-1]
        parts: list[Text | Reference] = []
        run: list[str] = []
        run_start = run_end = 0
        for token in children[1:-1]:
            kind = token.type
            if kind == "REFERENCE":
                if run:
                    parts.append(Text("".join(run), span=Span(run_start, run_end)))
                    run = []
                parts.append(split_reference(token, token.start_pos))
                continue
            if not run:
                run_start = token.start_pos
                after_reference = bool(parts)
            run_end = token.end_pos
            if kind in ("DOUBLE_ESCAPE", "SINGLE_ESCAPE"):
                run.append(token[1::2])
            elif kind == "LITERAL_OPEN":
                run.append(token[1:])  # one brace of {{( is the escape; the braces before it are text
            elif not run and after_reference and token.startswith("\\["):
                run.append(token[1:])  # \[ directly after a reference is a literal [
            else:
                run.append(str(token))
        if run:
            parts.append(Text("".join(run), span=Span(run_start, run_end)))
        return Template(tuple(parts), span=Span(opening.start_pos, closing.end_pos))


def _start(token: Token) -> int:
    assert token.start_pos is not None  # noqa: S101  # Lark's lexers set it always; only hand-made tokens lack it
    return token.start_pos


def _span(token: Token, length: int | None = None) -> Span:
    start = _start(token)
    return Span(start, start + (len(token) if length is None else length))


def _refuse_depth(call: Call) -> None:
    """Refuse values nested deeper than ``MAX_DEPTH``, without recursion."""
    level: list[Node] = [call]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in _nested(parent)]
        if not level:
            return
    raise Unbuildable("LWT011", f"values are nested deeper than {MAX_DEPTH} here", level[0].span)


def _nested(value: Node) -> tuple[Node, ...]:
    if isinstance(value, ListValue):
        return value.items
    if isinstance(value, ObjectValue):
        return tuple(item for _, item in value.entries)
    if isinstance(value, Call):
        return (*value.arguments, *(option.value for option in value.options))
    return ()
