"""What there is to say of what stands at a place: the same that completion says when it offers it, and who binds and uses a name."""

from ..source import Source
from .looks.tokens import tokens_of
from .markdown import block, code, plain
from .model import Completion, Hover, Known, Language, Token
from .naming.asking import named_at, occurrences_in

__all__ = ["hovered"]

_NAMING = frozenset({"variable", "step", "property", "string"})


def hovered(language: Language, source: Source, offset: int, known: Known) -> Hover | None:
    """See ``service.hover``."""
    from . import complete

    text = source.text
    token = _token(language, source, offset)
    if token is None or token.type == "comment":
        return None
    said = text[token.span.start : token.span.end]
    end = token.span.end
    is_text = said[:1] in "\"'" and len(said) > 1 and said[-1] == said[0]
    end -= is_text or (said.startswith("${") and said.endswith("}"))
    wanted = {said, said.strip("\"'`"), said.removeprefix("${").removesuffix("}").strip().strip("`")}
    wanted |= (
        {each.casefold() for each in wanted} if token.type in ("keyword", "command", "function", "type") else set()
    )
    offered = complete(language, source, end, known)
    found = next((each for each in offered if each.match in wanted or _plain(each.text) in wanted), None)
    parts = [_about(found, language)] if found is not None else []
    parts += _uses(language, text, offset) if token.type in _NAMING else []
    said_parts = [part for part in parts if part]
    return Hover("\n\n".join(said_parts), token.span) if said_parts else None


def _plain(text: str) -> str:
    return text.rstrip("(=: ").strip('"')


def _token(language: Language, source: Source, offset: int) -> Token | None:
    """Return the token at ``offset``, or the one that ends there."""
    before: Token | None = None
    for token in tokens_of(language, source.text):
        if token.start <= offset < token.end:
            ends_here = before is not None and before.end == offset
            return before if token.type == "operator" and ends_here else token
        if token.start > offset:
            break
        before = token
    return before if before is not None and before.end == offset else None


def _about(found: Completion, language: Language) -> str:
    name = code(found.match or _plain(found.text) or found.text)
    if found.kind == "command":
        return block(found.detail, language)
    if found.kind in ("variable", "step") and found.documentation:
        return f"**{found.kind}** {name}\n\n{found.documentation}"
    head = f"**{found.kind}** {name}" + (f" · {plain(found.detail)}" if found.detail else "")
    return f"{head}\n\n{found.documentation}" if found.documentation else head


def _uses(language: Language, text: str, offset: int) -> list[str]:
    """Say who binds the name at ``offset``, where this is the place, and how often it is used."""
    found = occurrences_in(language, text)
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
