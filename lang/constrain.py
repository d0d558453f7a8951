"""A language's grammar in the forms that constrain a model's output, made mechanically from its ``.lark`` file.

llguidance (local models, vLLM) and OpenAI's custom tools take Lark's syntax without aliases, ``?`` and relative imports,
and lex by the longest match without going back. So strings are written in ``"`` only, the empty string is a terminal of
its own, and a single brace in a text is written with what follows it. Of GASL one spelling is left, without comments, and
words take a blank behind them, for nothing else would keep them apart. What a model writes under such a grammar is parsed
again all the same: a server may ignore a grammar silently. Design: State and models, "Grammar-constrained output".
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Literal

from .. import grammar

__all__ = ["DIALECTS", "LANGUAGES", "Dialect", "constrain"]

Dialect = Literal["llguidance", "openai"]
DIALECTS: tuple[Dialect, ...] = ("llguidance", "openai")
LANGUAGES = ("lwt", "gasl")

_COMMENT = re.compile(r"^//[^\n]*\n", re.MULTILINE)
_ALIAS = re.compile(r"[ \t]*-> \w+")
_DEFINITION = re.compile(r"^\??(\w+):(.*(?:\n[ \t]+.*)*)\n", re.MULTILINE)

_ONE_STRING = " EMPTY\n        | DOUBLE (DOUBLE_TEXT | DOUBLE_ESCAPE | REFERENCE | LITERAL_OPEN | BRACES)+ DOUBLE"
_LEFT_OUT = frozenset(
    {"SINGLE", "TRIPLE_DOUBLE", "TRIPLE_SINGLE", "SINGLE_TEXT", "SINGLE_ESCAPE", "BRACE", "BACKSLASH"}
)


def constrain(language: str, dialect: Dialect) -> str:
    """Return the grammar of ``language`` for ``dialect``: Lark text, or for "openai" a custom tool's JSON around it."""
    text = _FORMS[language](_COMMENT.sub("", grammar.inlined(language)))
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
    text = text.replace(r"\w", "A-Za-z0-9_")  # engines disagree about which marks and digits \w takes beyond ASCII
    for name, body in _DEFINITION.findall(_ALIAS.sub("", text)):
        if name in _LEFT_OUT:
            continue
        lines.append(f"{name}:{_ONE_STRING if name == 'template' else body}")
        if name == "DOUBLE":
            lines.append('EMPTY: "\\"\\""')
    return "\n".join(lines) + "\n"


_WORDS = re.compile(r'(?:"[A-Za-z_]+"i(?: \| )?)+')
_LOWER = frozenset({"KIND", "_PATHS", "FUNCTION", "COMPASS", "GRAPH", "TRUE", "FALSE", "NULL"})
_ONCE = {
    "_find_option": "where? order? limit?",
    "_path_option": "between? via? where? max_length? shortest? limit?",
    "_walk_option": "via? depth? direction?",
}
"""Options that the grammar takes in any order and the builder once: in one order they need no builder."""
_SPELT = {
    "INT": "/[0-9]{1,9}[ ]+/",
    "NUMBER": r"/-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?[ ]+/",
    "STRING": r'/"[^"\\ \x00-\x1f]([^"\\\x00-\x1f]|\\["\\nt])*"/',
}
"""Values that no builder refuses: numbers in range, strings that are not empty and have the escapes that are needed."""
_REMARKS = re.compile(r"[ \t]*\|[ \t]*comment\b|[ \t]*\(comment _NEWLINE\)\*|\btrailing\? ?")


def _gasl(text: str) -> str:
    lines = ["start: program"]
    text = _REMARKS.sub("", re.sub(r"^(_item:.*)\n[ ]+\| comment$", r"\1", _ALIAS.sub("", text), flags=re.MULTILINE))
    for name, body in _DEFINITION.findall(re.sub(r"^(\w+)\.\d+:", r"\1:", text, flags=re.MULTILINE)):
        if name in ("comment", "trailing", "COMMENT", "condition_only", *_ONCE):
            continue
        for options, once in _ONCE.items():
            body = body.replace(f"{options}*", once)
        if name[-1].isupper() and (words := _WORDS.fullmatch(body.strip())):
            spelt = re.findall(r'"(\w+)"', words[0])
            chosen = "|".join(word.lower() if name in _LOWER else word for word in spelt)
            body = f" /({chosen})[ ]+/" if name != "FUNCTION" else f" /({chosen})/"
        elif name in _SPELT:
            body = f" {_SPELT[name]}"
        elif name == "_NEWLINE":
            body = " /\\n/"
        lines.append(f"{name}:{body}")
    return "\n".join((*lines, "%ignore /[ ]/", ""))


_FORMS: Mapping[str, Callable[[str], str]] = {"lwt": _lwt, "gasl": _gasl}
_DESCRIPTIONS: Mapping[str, str] = {"lwt": "Write a whole LWT script.", "gasl": "Write a whole GASL program."}
