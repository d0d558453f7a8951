"""The grammars that constrain a model's output, generated from each language's ``.lark`` file.

llguidance (local models, vLLM) and OpenAI's custom tools accept Lark's syntax without aliases, ``?`` and relative imports.
Their lexers take the longest match and never backtrack. Therefore strings are allowed only in double quotes. For the same
reason, the empty string is a separate terminal, and a single brace in a string is matched together with the character after it.

This module contains the grammar of LWT; ``gasl_grammar`` and ``expr`` contain those of GASL and of expressions. Output produced under such
a grammar is always parsed again, because a server may silently ignore a grammar. See ``docs/design/models.md#constrained-generation``.
"""

import json
from collections.abc import Callable, Mapping
from typing import Literal

from ... import grammar
from .expr import expr_form
from .gasl_grammar import gasl_form
from .grammar_text import ALIAS, COMMENT, DEFINITION

Dialect = Literal["llguidance", "openai"]
DIALECTS: tuple[Dialect, ...] = ("llguidance", "openai")
LANGUAGES = ("lwt", "gasl", "expr")

_IN_DOUBLE = "DOUBLE_TEXT | TEXT_BRACE | TEXT_BACKSLASH | DOUBLE_ESCAPE | REFERENCE | LITERAL_OPEN | BRACES"
_ONE_STRING = f" EMPTY\n        | DOUBLE ({_IN_DOUBLE})+ DOUBLE"
_PIECES = {
    "DOUBLE_TEXT": ' /[^"\\\\{]+/\nTEXT_BRACE: /\\{[^"\\\\({]/\nTEXT_BACKSLASH: /[\\\\][^"\\\\{]/',
    "DOUBLE_ESCAPE": r' /[\\]["\\]/',
}
"""Terminals for the pieces of a string. They differ in their first characters, so that no match includes a reference's brace."""
_LEFT_OUT = frozenset(
    {"SINGLE", "TRIPLE_DOUBLE", "TRIPLE_SINGLE", "SINGLE_TEXT", "SINGLE_ESCAPE", "BRACE", "BACKSLASH"}
)


def constrain(language: str, dialect: Dialect) -> str:
    """Return the grammar of ``language`` in the form that ``dialect`` requires.

    The result is Lark text or, for "openai", the JSON of a custom tool.
    """
    text = _FORMS[language](COMMENT.sub("", grammar.inlined(language)))
    if dialect == "llguidance":
        return text
    tool = {
        "type": "custom",
        "name": language,
        "description": _DESCRIPTIONS[language],
        "format": {"type": "grammar", "syntax": "lark", "definition": text},
    }
    return json.dumps(tool, ensure_ascii=False, indent=2) + "\n"


def _lwt(text: str) -> str:
    lines = []
    text = text.replace(r"\w", "A-Za-z0-9_")  # engines disagree on which non-ASCII characters \w matches
    for name, body in DEFINITION.findall(ALIAS.sub("", text)):
        if name in _LEFT_OUT:
            continue
        lines.append(f"{name}:{_ONE_STRING if name == 'template' else _PIECES.get(name, body)}")
        if name == "DOUBLE":
            lines.append('EMPTY: "\\"\\""')
    return "\n".join(lines) + "\n"


_FORMS: Mapping[str, Callable[[str], str]] = {"lwt": _lwt, "gasl": gasl_form, "expr": expr_form}
_DESCRIPTIONS: Mapping[str, str] = {
    "lwt": "Write a whole LWT script.",
    "gasl": "Write a whole GASL program.",
    "expr": "Write one expression.",
}
