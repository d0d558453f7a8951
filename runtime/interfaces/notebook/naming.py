"""What a piece takes from outside, and what it binds. The languages' own parsers say so."""

from collections.abc import Sequence

from ....lang.service import Language
from ....lang.service.language_symbols import Occurrence
from ....lang.service.symbols import occurrences_in
from ..repl.reading import Piece, expression_of

__all__ = ["bound_by", "mentioned"]


def mentioned(piece: Piece) -> list[str]:
    """Return the names of values that a piece takes from outside, each once."""
    found = _named(piece)
    own = {each.name for each in found if each.defines and each.kind == "step"}
    return list(dict.fromkeys(each.name for each in found if not each.defines and each.name not in own))


def bound_by(piece: Piece) -> list[str]:
    """Return the names that a piece binds, each once."""
    if piece.language == "expr":
        name = expression_of(piece.text)[0]
        return [] if name is None else [name]
    return list(dict.fromkeys(each.name for each in _named(piece) if each.defines))


def _named(piece: Piece) -> Sequence[Occurrence]:
    language: Language
    match piece.language:
        case "dot" | "remark":
            return ()
        case "gasl" | "lwt" | "expr" as language:
            text = expression_of(piece.text)[1] if language == "expr" else piece.text
    return [each for each in occurrences_in(language, text) if each.kind in ("variable", "step") and not each.scope]
