"""The grammars that constrain a model's output, generated from each language's ``.lark`` file.

llguidance (local models, vLLM) and OpenAI's custom tools accept Lark's syntax without aliases, ``?`` and relative imports.
Their lexers take the longest match and never backtrack. Therefore strings are written only in ``"``, the empty string is a
separate terminal, and a single brace in a string is matched together with the character after the brace.

The GASL grammar allows one spelling of each construct and no comments. It requires a blank after each word, because nothing
else would separate the words. The grammar of expressions allows only the printer's spelling, and the functions and methods
of the language. Separate rules for each level express the builder's limit on nested comprehensions. The operator ``%`` is
omitted, because the language does not allow a string before it. Output produced under such a grammar is always parsed
again, because a server may silently ignore a grammar. See ``docs/design/models.md#constrained-generation``.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Literal

from .. import grammar

Dialect = Literal["llguidance", "openai"]
DIALECTS: tuple[Dialect, ...] = ("llguidance", "openai")
LANGUAGES = ("lwt", "gasl", "expr")

_COMMENT = re.compile(r"^//[^\n]*\n", re.MULTILINE)
_ALIAS = re.compile(r"[ \t]*-> \w+")
_DEFINITION = re.compile(r"^\??(\w+):(.*(?:\n[ \t]+.*)*)\n", re.MULTILINE)

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
    """Return the grammar of ``language`` for ``dialect``: as Lark text, or for "openai" as the JSON of a custom tool."""
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
    text = text.replace(r"\w", "A-Za-z0-9_")  # engines disagree about which marks and digits beyond ASCII \w matches
    for name, body in _DEFINITION.findall(_ALIAS.sub("", text)):
        if name in _LEFT_OUT:
            continue
        lines.append(f"{name}:{_ONE_STRING if name == 'template' else _PIECES.get(name, body)}")
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
"""Options in a fixed order. The parser's grammar allows any order and repetition, and its builder refuses repeated options."""
_SPELT = {
    "INT": "/[0-9]{1,9} /",
    "NUMBER": r"/-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})? /",
    "STRING": r'/"[^"\\ \x00-\x1f]( {0,8}([^"\\ \x00-\x1f]|\\["\\nt]))* {0,8}"/',
    "WHY": r"/#:( [^ \x00-\x1f]+)+/",
}
"""Terminals for values that no builder refuses: numbers in range, and non-empty strings with the required escapes.

The length of every run of blanks is limited, here and elsewhere, because a small model might never end an unlimited run.
"""
_BLANK = "_BLANK"
_LOOSE = re.compile(r"\b(IDENTIFIER|PATH|VARIABLE|STRING|EQUALS|COMPARISON|_COMMA|_?LPAR|RPAR|_?LSQB|RSQB)\b([?*+]?)")
"""Terminals after which a blank is allowed, but not required."""
_QUOTED, _WORD = r"(?:[^`\r\n]|``)+", r"(?:[^` \x00-\x1f]|``)+"
"""Patterns for the text between backticks, and for one word of that text."""
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
            body = f" /({chosen}) /" if name != "FUNCTION" else f" /({chosen})/"
        elif name in _SPELT:
            body = f" {_SPELT[name]}"
        elif name == "_NEWLINE":
            body = " /\\n/"
        elif name.lower() == name:
            body = _LOOSE.sub(lambda at: f"({at[1]} {_BLANK}?){at[2]}" if at[2] else f"{at[1]} {_BLANK}?", body)
        else:
            body = body.replace("[ \\t]*", "").replace(_QUOTED, f"{_WORD}(?: {_WORD})*")
        lines.append(f"{name}:{body}")
    return "\n".join((*lines, f"{_BLANK}: / /", ""))


_EXPR_RULES: Mapping[str, str] = {
    "_operation": "(OPERATOR | TEST) _operand | NULL_TEST",
    "primary": "NUMBER | atom _trailer*",
    "_trailer": "index | slicing | METHOD (test (COMMA test)*)? RPAR",
    "constant": '"null" | "true" | "false"',
    "arguments": "(argument (COMMA argument)*)? RPAR | keyword RPAR | argument (COMMA argument)* COMMA keyword RPAR | only",
    "argument": "test",
    "clause": "FOR NAME IN chain (IF chain)*",
}
"""Replaced rules of the grammar. They exclude what the builder refuses, and allow one spelling of each construct."""
_EXPR_MORE: Mapping[str, str] = {
    "keyword": "NAME EQUALS test",
    "only": "<test clause clause?> RPAR",
    "generator": "LPAR <test clause clause?> RPAR",
    "comprehension": "LSQB <test clause clause?> RSQB",
}
_EXPR_SPELT: Mapping[str, str] = {
    "BOOL": "/ (and|or) /", "IF": "/ if /", "ELSE": "/ else /", "FOR": "/ for /", "IN": "/ in /", "NOT": "/not /",
    "NULL_TEST": "/ is (not )?null/", "TEST": r"/ ([=!<>]=|[<>]|(not )?in) /", "OPERATOR": r"/ (\*\*|\/\/|[+*\/\-]) /",
    "NUMBER": r"/(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?/", "STRING": r'/"([^"\\\x00-\x1f]|\\["\\nt])*"/', "COMMA": '", "',
    "COLON": '": "',
}  # fmt: skip
_EXPR_LEVELS = 2
"""Maximum nesting depth of comprehensions."""


def _expr(text: str) -> str:
    from .catalogue.operations import FUNCTIONS, METHODS
    from .parse.expr.builder import NAMESPACES, RESERVED

    name = _name_but(RESERVED)
    rules: dict[str, str] = {}
    spelt: dict[str, str] = {}
    for found, body in _DEFINITION.findall(_ALIAS.sub("", text).replace("!constant", "constant")):
        if found.lower() == found:
            rules[found] = _EXPR_RULES.get(
                found, " ".join(body.split()).replace(" COMMA?)? R", ")? R").replace(" COMMA? R", " R")
            )
        else:
            spelt[found] = _EXPR_SPELT.get(found, body.strip())
    rules["atom"] = (
        "NAME | FIELD | constant | STRING | FUNCTION arguments | LPAR test RPAR | LPAR RPAR | LPAR test COMMA_RPAR "
        "| LPAR test (COMMA test)+ RPAR | LSQB (test (COMMA test)*)? RSQB | comprehension | LBRACE (_entry (COMMA _entry)*)? RBRACE"
    )
    rules["argument"] = "test | generator"
    spelt |= {
        "NAME": f"/{name}/", "FIELD": rf"/({'|'.join(sorted(NAMESPACES))})\.{name}/", "COMMA_RPAR": '",)"',
        "FUNCTION": rf"/({'|'.join(FUNCTIONS)})\(/", "METHOD": rf"/\.({'|'.join(METHODS)})\(/",
    }  # fmt: skip
    rules |= _EXPR_MORE
    lines = [f"start: test_{_EXPR_LEVELS}"]
    for level in reversed(range(_EXPR_LEVELS + 1)):
        for rule, body in rules.items():
            if rule != "start" and (level or rule not in ("only", "generator", "comprehension")):
                lines.append(f"{rule}_{level}: {_at_level(body, level, rules)}")
    return "\n".join((*lines, *(f"{terminal}: {body}" for terminal, body in spelt.items()), ""))


def _at_level(body: str, level: int, rules: Mapping[str, str]) -> str:
    """Return a rule's body for ``level``. Names inside ``<>`` get the next lower level; level 0 allows no comprehension."""
    if not level:
        body = re.sub(r" \| (?:only|generator|comprehension)\b", "", body)
    outer = re.split(r"<(.*?)>", body)

    def suffixed(part: str, at: int) -> str:
        return re.sub(r"\b[a-z_]+\b", lambda match: f"{match[0]}_{at}" if match[0] in rules else match[0], part)

    return "".join(suffixed(part, level - at % 2) for at, part in enumerate(outer))


def _name_but(words: Collection[str]) -> str:
    """Return a regular expression for names that differ from all ``words`` in any case, and do not begin with ``__``.

    The regular expression has no look-around: it spells out where a name differs from the words.
    """
    rest = "[A-Za-z0-9_]*"

    def behind(prefix: str) -> str:
        onward = sorted({word[len(prefix)] for word in words if word.startswith(prefix) and len(word) > len(prefix)})
        left = "".join(letter for letter in _LETTERS if letter not in onward)
        others = f"[{left}{left.upper()}0-9_]{rest}"
        inner = [f"[{letter}{letter.upper()}]{behind(prefix + letter)}" for letter in onward]
        return f"({'|'.join((others, *inner))})" + ("" if prefix in words else "?")

    first = sorted({word[0] for word in words})
    left = "".join(letter for letter in _LETTERS if letter not in first)
    inner = [f"[{letter}{letter.upper()}]{behind(letter)}" for letter in first]
    return f"({'|'.join((f'[{left}{left.upper()}]{rest}', '_([A-Za-z0-9][A-Za-z0-9_]*)?', *inner))})"


_LETTERS = "abcdefghijklmnopqrstuvwxyz"

_FORMS: Mapping[str, Callable[[str], str]] = {"lwt": _lwt, "gasl": _gasl, "expr": _expr}
_DESCRIPTIONS: Mapping[str, str] = {
    "lwt": "Write a whole LWT script.",
    "gasl": "Write a whole GASL program.",
    "expr": "Write one expression.",
}
