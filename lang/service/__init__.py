"""What editors, the REPL, notebooks and agents ask about a text: pure functions over the same parser, printer and checker.

``language`` is "lwt", "gasl", "expr" (one expression) or "seed" (the JSON document); a GASL plan in JSON is none of them.
``source`` is a ``Source`` or a text. Every offset and span counts code points; an offset beside the text is moved into it.
No function raises for what a text says, and none does I/O.
"""

from ..diagnostic import Diagnostic, Edit
from ..source import Source
from .model import (
    LANGUAGES,
    Completion,
    Fold,
    Hover,
    Known,
    Language,
    Place,
    StateKey,
    Symbol,
    Token,
    Variable,
)

__all__ = [
    "LANGUAGES",
    "Completion",
    "Fold",
    "Hover",
    "Known",
    "Language",
    "Place",
    "StateKey",
    "Symbol",
    "Token",
    "Variable",
    "complete",
    "definition",
    "diagnose",
    "folds",
    "hover",
    "references",
    "renamable",
    "rename",
    "symbols",
    "tokens",
]  # fmt: skip

_NOTHING = Known()


def _placed(source: Source | str, offset: int) -> tuple[Source, int]:
    source = Source(source) if isinstance(source, str) else source
    return source, max(0, min(offset, len(source.text)))


def complete(language: Language, source: Source | str, offset: int, known: Known = _NOTHING) -> tuple[Completion, ...]:
    """Return what may stand at ``offset``, the best first, at most 200: what the grammar takes next, and the names that fit.

    Each, put in place of its span, gives a text that the parser takes as far as the cursor.
    """
    source, offset = _placed(source, offset)
    if language == "gasl":
        from .completing.gasl import complete_gasl

        return complete_gasl(source, offset, known)
    if language == "lwt":
        from .completing.lwt import complete_lwt

        return complete_lwt(source, offset, known)
    if language == "expr":
        from .completing.expr import complete_expr

        return complete_expr(source, offset, known)
    from .completing.seed import complete_seed

    return complete_seed(source, offset, known)


def hover(language: Language, source: Source | str, offset: int, known: Known = _NOTHING) -> Hover | None:
    """Return what there is to say of what stands at ``offset``: a command's reference, a variable's producer, a field's values."""
    from .hovering import hovered

    source, offset = _placed(source, offset)
    return hovered(language, source, offset, known)


def definition(language: Language, source: Source | str, offset: int, known: Known = _NOTHING) -> Place | None:
    """Return where the name at ``offset`` is defined: the step, the command that binds the variable, the seed's field."""
    from .naming.asking import defined, occurrences_in

    source, offset = _placed(source, offset)
    return defined(occurrences_in(language, source.text), offset)


def references(language: Language, source: Source | str, offset: int, known: Known = _NOTHING) -> tuple[Place, ...]:
    """Return every place that names what the name at ``offset`` does, its definition too, in the order of the text."""
    from .naming.asking import occurrences_in, places

    source, offset = _placed(source, offset)
    return places(occurrences_in(language, source.text), offset)


def renamable(language: Language, source: Source | str, offset: int, known: Known = _NOTHING) -> Place | Diagnostic:
    """Return the place of the name at ``offset`` if it can be another, else why it can't."""
    from .naming.asking import can_be_renamed

    source, offset = _placed(source, offset)
    return can_be_renamed(language, source.text, offset, known)


def rename(
    language: Language, source: Source | str, offset: int, new: str, known: Known = _NOTHING
) -> tuple[Edit, ...] | Diagnostic:
    """Return the edits that rename what stands at ``offset`` everywhere in the text, or why that can't be done.

    The renamed text names the same things at the same places and has the same diagnostics there; a rename that would change
    them is refused. The diagnostic's code is ``KW005``.
    """
    from .naming.asking import renamed

    source, offset = _placed(source, offset)
    return renamed(language, source.text, offset, new, known)


def symbols(language: Language, source: Source | str) -> tuple[Symbol, ...]:
    """Return what the text defines, in the order of the text."""
    from .looks.outline import symbols_of

    return symbols_of(language, source.text if isinstance(source, Source) else source)


def folds(language: Language, source: Source | str) -> tuple[Fold, ...]:
    """Return what can be folded: blocks, steps over several lines, runs of comments, objects and lists of a document."""
    from .looks.lines import folds_of

    return folds_of(language, Source(source) if isinstance(source, str) else source)


def tokens(language: Language, source: Source | str) -> tuple[Token, ...]:
    """Return the semantic tokens of the text, as far as it can be read; what can't be read has those of its words."""
    from .looks.tokens import tokens_of

    return tuple(tokens_of(language, source.text if isinstance(source, Source) else source))


def diagnose(language: Language, source: Source | str, known: Known = _NOTHING) -> tuple[Diagnostic, ...]:
    """Return what the checker says of the text with what is known, in the order of place."""
    from .checking import diagnosed

    return diagnosed(language, source.text if isinstance(source, Source) else source, known)
