"""The language service: completion, hover text, navigation, renaming and diagnostics for editors, the REPL, notebooks and agents.

All functions are pure and use the same parsers, printers and checkers as the rest of the project.

``language`` is "lwt", "gasl", "expr" (one expression) or "seed" (the JSON document); a GASL plan in JSON is not supported.
``source`` is a string, a ``Source`` or a ``Reading``. A ``Reading``, which ``read`` returns, is parsed only once.
Offsets and spans count code points. An offset outside the text is moved to the nearest end of the text.
No function raises an exception for faults in a text, and no function does I/O.
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
    """Return at most 200 completions at ``offset``, best first.

    Completions are words that the grammar allows there, and names that fit. If a completion's text replaces its span, the
    parser accepts the text up to the cursor. The span includes the rest of a word or string around the cursor.
    """
    from .completion import completions

    reading, offset = _read_at(language, source, offset)
    return completions(reading, offset, known)


def hover(language: Language, source: Text, offset: int, known: Known = _NOTHING) -> Hover | None:
    """Describe the token at ``offset``.

    The description is, for example, the syntax of a command, the command that binds a variable, or the values of a field.
    """
    from .navigation import hover_at

    reading, offset = _read_at(language, source, offset)
    return hover_at(reading, offset, known)


def definition(language: Language, source: Text, offset: int, known: Known = _NOTHING) -> Place | None:
    """Return where the name at ``offset`` is defined.

    The definition may be a step, the command that binds a variable, or a field of a seed.
    """
    from .navigation import definition_of, names_in

    reading, offset = _read_at(language, source, offset)
    return definition_of(names_in(reading), offset)


def references(language: Language, source: Text, offset: int, known: Known = _NOTHING) -> tuple[Place, ...]:
    """Return all occurrences of the name at ``offset``, including its definition, in source order."""
    from .navigation import names_in, places

    reading, offset = _read_at(language, source, offset)
    return places(names_in(reading), offset)


def renamable(language: Language, source: Text, offset: int, known: Known = _NOTHING) -> Place | Diagnostic:
    """Return the place of the name at ``offset`` if the name can be renamed, else a diagnostic with the reason."""
    from .navigation import renamable_at

    reading, offset = _read_at(language, source, offset)
    return renamable_at(reading, offset, known)


def rename(
    language: Language, source: Text, offset: int, new: str, known: Known = _NOTHING
) -> tuple[Edit, ...] | Diagnostic:
    """Return the edits that rename the name at ``offset`` everywhere in the text.

    If the rename is refused, return a diagnostic with the reason. A rename is refused if it would change a diagnostic, or the
    definition to which another name refers. The code of the returned diagnostic is ``KW005``.
    """
    from .navigation import rename_edits

    reading, offset = _read_at(language, source, offset)
    return rename_edits(reading, offset, new, known)


def symbols(language: Language, source: Text) -> tuple[Symbol, ...]:
    """Return the definitions in the text, in source order."""
    from .navigation import symbols_of

    return symbols_of(read(language, source))


def folds(language: Language, source: Text) -> tuple[Fold, ...]:
    """Return the parts of the text that can be folded.

    Such parts are blocks, steps of several lines, successive comments, and the objects and lists of a document.
    """
    from .navigation import folds_of

    return folds_of(read(language, source))


def tokens(language: Language, source: Text) -> tuple[Token, ...]:
    """Return the semantic tokens of the text. In invalid parts, each word is classified without its context."""
    from .semantic_tokens import tokens_in

    return tokens_in(read(language, source))


def diagnose(language: Language, source: Text, known: Known = _NOTHING) -> tuple[Diagnostic, ...]:
    """Return the checker's diagnostics for the text and ``known``, in source order."""
    from .model import diagnostics_of

    return diagnostics_of(read(language, source), known)


def formatted(reading: Reading) -> str | None:
    """Return a script or a program in its canonical format.

    Return None if the text has errors, or is in another language: editors format JSON themselves. Raises ``RuntimeError`` if the formatted
    text would have another meaning; this is an internal error.
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
    """Return whether the reference of rules has a rule with this code."""
    from ..catalogue.rules import RULES

    return code in RULES
