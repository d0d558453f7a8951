"""Queries of editors, the REPL, notebooks and agents about a text: pure functions over the same parser, printer and checker.

``language`` is "lwt", "gasl", "expr" (one expression) or "seed" (the JSON document); a GASL plan in JSON is not supported.
``source`` is a text, a ``Source``, or a ``Reading`` of one (``read``), which is parsed only once.
Every offset and span counts code points; an offset outside of the text is moved into it.
No function raises for faults in a text, and none does I/O.
"""

from ..diagnostic import Diagnostic, Edit, has_errors
from ..source import Source
from .model import (
    LANGUAGES,
    Completion,
    Fold,
    Hover,
    Known,
    Language,
    Place,
    Reading,
    StateKey,
    Symbol,
    Text,
    Token,
    Variable,
    read,
)

__all__ = [
    "LANGUAGES",
    "Completion",
    "Fold",
    "Hover",
    "Known",
    "Language",
    "Place",
    "Reading",
    "StateKey",
    "Symbol",
    "Text",
    "Token",
    "Variable",
    "complete",
    "definition",
    "diagnose",
    "folds",
    "formatted",
    "has_rule",
    "hover",
    "read",
    "references",
    "renamable",
    "rename",
    "symbols",
    "tokens",
]  # fmt: skip

_NOTHING = Known()


def _read_at(language: Language, source: Text, offset: int) -> tuple[Reading, int]:
    reading = read(language, source)
    return reading, max(0, min(offset, len(reading.text)))


def complete(language: Language, source: Text, offset: int, known: Known = _NOTHING) -> tuple[Completion, ...]:
    """Return the possible texts at ``offset``, the best first, at most 200: what the grammar allows next, and the fitting names.

    Each, put in place of its span, gives a text that the parser accepts up to the cursor. If the cursor is inside of a word
    or a string, the span extends to its end.
    """
    from .completion import completions

    reading, offset = _read_at(language, source, offset)
    return completions(reading, offset, known)


def hover(language: Language, source: Text, offset: int, known: Known = _NOTHING) -> Hover | None:
    """Return the description of the token at ``offset``: a command's reference, a variable's producer, a field's values."""
    from .navigation import hover_at

    reading, offset = _read_at(language, source, offset)
    return hover_at(reading, offset, known)


def definition(language: Language, source: Text, offset: int, known: Known = _NOTHING) -> Place | None:
    """Return the definition of the name at ``offset``: the step, the command that binds the variable, the seed's field."""
    from .navigation import definition_of, names_in

    reading, offset = _read_at(language, source, offset)
    return definition_of(names_in(reading), offset)


def references(language: Language, source: Text, offset: int, known: Known = _NOTHING) -> tuple[Place, ...]:
    """Return every place that names the same thing as the name at ``offset``, including its definition, in source order."""
    from .navigation import names_in, places

    reading, offset = _read_at(language, source, offset)
    return places(names_in(reading), offset)


def renamable(language: Language, source: Text, offset: int, known: Known = _NOTHING) -> Place | Diagnostic:
    """Return the place of the name at ``offset`` if it can be renamed, else a diagnostic with the reason."""
    from .navigation import renamable_at

    reading, offset = _read_at(language, source, offset)
    return renamable_at(reading, offset, known)


def rename(
    language: Language, source: Text, offset: int, new: str, known: Known = _NOTHING
) -> tuple[Edit, ...] | Diagnostic:
    """Return the edits that rename the name at ``offset`` everywhere in the text, or a diagnostic with the reason for refusal.

    The renamed text has the same names at the same places and the same diagnostics there; a rename that would change
    them is refused. The diagnostic's code is ``KW005``.
    """
    from .navigation import rename_edits

    reading, offset = _read_at(language, source, offset)
    return rename_edits(reading, offset, new, known)


def symbols(language: Language, source: Text) -> tuple[Symbol, ...]:
    """Return the definitions of the text, in source order."""
    from .navigation import symbols_of

    return symbols_of(read(language, source))


def folds(language: Language, source: Text) -> tuple[Fold, ...]:
    """Return the foldable parts: blocks, steps over several lines, runs of comments, objects and lists of a document."""
    from .navigation import folds_of

    return folds_of(read(language, source))


def tokens(language: Language, source: Text) -> tuple[Token, ...]:
    """Return the semantic tokens of the text; in invalid parts, each word is classified by itself."""
    from .semantic_tokens import tokens_in

    return tokens_in(read(language, source))


def diagnose(language: Language, source: Text, known: Known = _NOTHING) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of the checker, given ``known``, in source order."""
    from .model import diagnostics_of

    return diagnostics_of(read(language, source), known)


def formatted(reading: Reading) -> str | None:
    """Return a script or a program in its canonical format; None if it has errors, or for JSON, which editors format themselves.

    Raises ``RuntimeError`` if the formatted text has another meaning, which is an internal error.
    """
    if reading.language not in ("lwt", "gasl") or has_errors(reading.faults):
        return None
    from ..printer.gasl_printer import format_gasl
    from ..printer.lwt_printer import format_lwt

    is_script = reading.language == "lwt"
    text = format_lwt(reading.script) if is_script else format_gasl(reading.program)
    again = Reading(reading.language, Source(text, reading.source.name))
    if not (again.script.items == reading.script.items if is_script else again.program.items == reading.program.items):
        raise RuntimeError(f"formatting {reading.source.name} would change its meaning")
    return text


def has_rule(code: str) -> bool:
    """Return whether the reference of rules describes this code."""
    from ..catalogue.rules import RULES

    return code in RULES
