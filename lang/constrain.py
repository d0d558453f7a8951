"""A language's grammar in the forms that constrain a model's output, made mechanically from its ``.lark`` file.

llguidance (local models, vLLM) and OpenAI's custom tools take Lark's syntax without aliases, ``?`` and relative imports,
and lex by the longest match without going back. So strings are written in ``"`` only, the empty string is a terminal of
its own, and a single brace in a text is written with what follows it. What a model writes under such a grammar is parsed
again all the same: a server may ignore a grammar silently. Design: State and models, "Grammar-constrained output".
"""

import json
import re
from typing import Literal

from .. import grammar

__all__ = ["DIALECTS", "LANGUAGES", "Dialect", "constrain"]

Dialect = Literal["llguidance", "openai"]
DIALECTS: tuple[Dialect, ...] = ("llguidance", "openai")
LANGUAGES = ("lwt",)

_COMMENT = re.compile(r"^//[^\n]*\n", re.MULTILINE)
_ALIAS = re.compile(r"[ \t]*-> \w+")
_DEFINITION = re.compile(r"^\??(\w+):(.*(?:\n[ \t]+.*)*)\n", re.MULTILINE)

_ONE_STRING = " EMPTY\n        | DOUBLE (DOUBLE_TEXT | DOUBLE_ESCAPE | REFERENCE | LITERAL_OPEN | BRACES)+ DOUBLE"
_LEFT_OUT = frozenset(
    {"SINGLE", "TRIPLE_DOUBLE", "TRIPLE_SINGLE", "SINGLE_TEXT", "SINGLE_ESCAPE", "BRACE", "BACKSLASH"}
)


def constrain(language: str, dialect: Dialect) -> str:
    """Return the grammar of ``language`` for ``dialect``: Lark text, or for "openai" a custom tool's JSON around it."""
    text = _constraining(_COMMENT.sub("", grammar.inlined(language)))
    if dialect == "llguidance":
        return text
    tool = {
        "type": "custom",
        "name": language,
        "description": f"Write a whole {language.upper()} script.",
        "format": {"type": "grammar", "syntax": "lark", "definition": text},
    }
    return json.dumps(tool, ensure_ascii=False, indent=2) + "\n"


def _constraining(text: str) -> str:
    lines = []
    text = text.replace(r"\w", "A-Za-z0-9_")  # engines disagree about which marks and digits \w takes beyond ASCII
    for name, body in _DEFINITION.findall(_ALIAS.sub("", text)):
        if name in _LEFT_OUT:
            continue
        lines.append(f"{name}:{_ONE_STRING if name == 'template' else body}")
        if name == "DOUBLE":
            lines.append('EMPTY: "\\"\\""')
    return "\n".join(lines) + "\n"
