"""What there is to say of what stands at a place: the same that completion says when it offers it, and who binds and uses a name."""

import re
from bisect import bisect_right
from collections.abc import Sequence

from attrs import evolve

from ..parse.gasl.lines import FORMS
from ..source import Source, Span
from .completion import completed
from .definitions import named_at, names_in
from .document import Reading
from .language_names import insides_of
from .model import Completion, Hover, Known, Token, Variable, block, code, excerpt, plain
from .semantic_tokens import tokens_in

__all__ = ["hovered"]

_BRACKETS = re.compile(r"\[[^\[\]\n]*\]")
_NAMING = frozenset({"variable", "step", "property", "string"})


def hovered(reading: Reading, offset: int, known: Known) -> Hover | None:
    """See ``service.hover``."""
    token = _token(tokens_in(reading), offset)
    if token is None or token.type == "comment":
        return None
    if reading.language == "lwt" and token.type == "string" and (inner := _inside(reading, offset, known)) is not None:
        return inner
    named = _accessor(reading.text, token, offset) if reading.language == "lwt" and token.type == "property" else None
    found = _offered(reading, token, named or token.span, known)
    parts = [_about(found, reading, token)] if found is not None else []
    parts += _uses(reading, offset) if token.type in _NAMING else []
    said_parts = [part for part in parts if part]
    return Hover("\n\n".join(said_parts), named or token.span) if said_parts else None


def _offered(reading: Reading, token: Token, span: Span, known: Known) -> Completion | None:
    """Return what completion offers at the end of what stands at ``span``, if it is that."""
    said = reading.text[span.start : span.end]
    end = span.end
    is_text = said[:1] in "\"'" and len(said) > 1 and said[-1] == said[0]
    end -= is_text or (said.startswith("${") and said.endswith("}"))
    if said.startswith("["):
        end = span.start + len(said.rstrip("]\"'\\"))
        said = said.strip("[]\\")
    wanted = {said, said.strip("\"'`"), said.removeprefix("${").removesuffix("}").strip().strip("`")}
    if token.type in ("keyword", "command", "function", "type"):
        wanted |= {each.casefold() for each in wanted}
    offered = completed(reading, end, known)
    return next((each for each in offered if each.match in wanted or _plain(each.text) in wanted), None)


def _accessor(text: str, token: Token, offset: int) -> Span | None:
    """Return the brackets at ``offset`` of those behind a reference."""
    parts = _BRACKETS.finditer(text, token.start, token.end)
    return next((Span(*part.span()) for part in parts if part.start() <= offset <= part.end()), None)


def _inside(reading: Reading, offset: int, known: Known) -> Hover | None:
    """Say what there is to say of a word in a string that is a program or an expression."""
    if "GASL" not in reading.text and "EXPR" not in reading.text:
        return None
    for step in reading.script.steps:
        if not step.span.start <= offset <= step.span.end:
            continue
        for inside in insides_of(step, reading.text):
            if not inside.span.start < offset < inside.span.end or (at := inside.inner(offset)) is None:
                continue
            names = {option.name: Variable(excerpt(reading.source.slice(option.value.span))) for option in inside.given}
            beside = evolve(known, variables={}) if inside.language == "gasl" else Known(variables=names)
            found = hovered(Reading(inside.language, Source(inside.text)), at, beside)
            place = inside.outside(found.span) if found is not None else None
            return Hover(found.text, place) if found is not None and place is not None else None
    return None


def _plain(text: str) -> str:
    return text.rstrip("(=: ").strip('"')


def _token(tokens: Sequence[Token], offset: int) -> Token | None:
    """Return the token at ``offset``, or the one that ends there."""
    place = bisect_right(tokens, offset, key=lambda token: token.start) - 1
    if place < 0:
        return None
    token = tokens[place]
    if offset < token.end:
        before = tokens[place - 1] if place else None
        return before if before is not None and token.type == "operator" and before.end == offset else token
    return token if token.end == offset else None


def _about(found: Completion, reading: Reading, token: Token) -> str:
    name = code(found.match or _plain(found.text) or found.text)
    if found.kind == "command":
        return block(found.detail, reading.language)
    if found.kind in ("variable", "step") and found.documentation:
        return f"**{found.kind}** {name}\n\n{found.documentation}"
    if not found.detail and not found.documentation:
        form = _form(reading, token) if reading.language == "gasl" else ""
        return f"**{found.kind}** {name}, in\n\n{form}" if form else ""  # the word alone says nothing that isn't there
    head = f"**{found.kind}** {name}" + (f" · {plain(found.detail)}" if found.detail else "")
    return f"{head}\n\n{found.documentation}" if found.documentation else head


def _form(reading: Reading, token: Token) -> str:
    """Return the form of the command that a word of it belongs to."""
    tokens = tokens_in(reading)
    place = bisect_right(tokens, token.start, key=lambda each: each.start) - 1
    command = next((each for each in reversed(tokens[: place + 1]) if each.type == "command"), None)
    form = FORMS.get(reading.text[command.start : command.end].upper()) if command is not None else None
    return block(form, "gasl") if form else ""


def _uses(reading: Reading, offset: int) -> list[str]:
    """Say who binds the name at ``offset``, where this is the place, and how often it is used."""
    found = names_in(reading)
    at = named_at(found, offset)
    if at is None:
        return []
    same = [each for each in found if each.thing == at.thing]
    uses = sum(not each.defines for each in same)
    if not at.defines:
        return []
    times = "once" if uses == 1 else f"{uses:,} times" if uses else "nowhere in this text"
    kind = "step" if at.kind == "computation" else at.kind
    return [f"**{kind}** {code(at.name)}, defined here, used {times}"]
