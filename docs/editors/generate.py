"""Writes the TextMate grammars of the VS Code extension from the terminals of the .lark files: python docs/editors/generate.py.

A terminal's own expression is what is looked for; here stands only what a terminal is called in an editor's themes. A terminal that
stands in none of the lists stops the script (and its test), so that a grammar can't grow without its colours.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from knotwork import grammar
from knotwork.lang.catalogue.commands import COMMANDS
from knotwork.lang.catalogue.value_functions import VALUE_FUNCTIONS
from lark import Lark
from lark.lexer import PatternStr, TerminalDef

HERE = Path(__file__).parent / "vscode" / "syntaxes"

GASL_WORDS = {
    "keyword.operator.word": ("_AND", "_OR", "NOT", "IN", "IS", "TEXTUAL", "ANY", "ALL", "NONE"),
    "constant.language": ("NULL", "TRUE", "FALSE"),
    "support.type": ("KIND", "TYPE", "COLUMN_TYPE", "GRAPH", "WAYS", "_PATTERNS"),
    "storage.modifier": ("MODE", "STATUS", "DIRECTED", "COMPASS"),
}
"""Words that are neither commands nor parts of commands. ``IN`` is a direction, too, ``LIST`` a type twice."""
GASL_FUNCTIONS = ("FUNCTION", "LEN")
GASL_SIGNS = {"comment.line.documentation": "WHY", "comment.line.number-sign": "COMMENT", "variable.other": "VARIABLE",
              "constant.numeric": "NUMBER", "string.quoted": "STRING"}  # fmt: skip
_LABEL = r"(?:(?!(?:true|false|null)\b)[A-Za-z_]\w*|`[^`]+`)"
GASL_OPERATORS = ("RIGHT_ARROW", "LEFT_ARROW", "COMPARISON", "EQUALS", "PLUS", "MINUS", "STAR", "SLASH", "PERCENT")
GASL_PLAIN = {
    "IDENTIFIER", "PATH", "INT", "_COMMA", "COLON", "BAR", "LPAR", "_LPAR", "RPAR", "LSQB", "_LSQB", "RSQB", "LBRACE", "RBRACE",
    "_NEWLINE",
}  # fmt: skip
LWT_QUOTES = ("TRIPLE_DOUBLE", "TRIPLE_SINGLE", "DOUBLE", "SINGLE")
LWT_PLAIN = {
    "_SPACE", "_NEWLINE", "CLOSE", "_COMMA", "_COLON", "_LIST_OPEN", "LIST_CLOSE", "_OBJECT_OPEN", "OBJECT_CLOSE", "DOUBLE_TEXT",
    "SINGLE_TEXT", "BRACES", "BRACE", "BACKSLASH",
}  # fmt: skip


def terminals(name: str, *starts: str) -> dict[str, TerminalDef]:
    """Return the terminals of a grammar by their names."""
    found = Lark(grammar.inlined(name), parser="lalr", lexer="contextual", start=[*starts]).terminals
    return {each.name: each for each in found if not each.name.startswith("__")}


def expression(terminal: TerminalDef) -> str:
    """Return a terminal's expression without flags: what ignores case is said once, in front of a rule."""
    text = re.escape(terminal.pattern.value) if isinstance(terminal.pattern, PatternStr) else terminal.pattern.value
    return text.replace("(?i:", "(?:")


def words(found: Iterable[TerminalDef]) -> list[str]:
    """Return the words that terminals stand for, the longest first."""
    texts = {word for each in found for word in re.findall(r"[A-Za-z_]+", each.pattern.value.replace("?i:", ""))}
    return sorted(texts, key=lambda word: (-len(word), word))


def word_rule(scope: str, texts: Iterable[str], behind: str = "") -> dict[str, Any]:
    """Return the rule for words, however they are written."""
    return {"name": f"{scope}.gasl", "match": rf"(?i)\b(?:{'|'.join(texts)})\b{behind}"}


def gasl() -> dict[str, Any]:
    """Return the grammar of GASL."""
    known = terminals("gasl", "program", "condition_only")
    other = {name for names in GASL_WORDS.values() for name in names} | {
        *GASL_FUNCTIONS,
        *GASL_SIGNS.values(),
        *GASL_OPERATORS,
    }
    rest = known.keys() - other - GASL_PLAIN
    strange = [name for name in rest if not re.fullmatch(r"[A-Za-z_|?i:()]+", known[name].pattern.value)]
    missing = (other | GASL_PLAIN) - known.keys()
    if strange or missing:
        raise SystemExit(
            f"say here what these terminals of gasl.lark look like: {', '.join(sorted({*strange, *missing}))}"
        )
    escape = {"name": "constant.character.escape.gasl", "match": r"\\."}
    signs: list[dict[str, Any]] = [
        {"name": f"{scope}.gasl", "match": expression(known[name])} for scope, name in GASL_SIGNS.items()
    ]
    next(each for each in signs if each["name"] == "string.quoted.gasl")["captures"] = {"0": {"patterns": [escape]}}
    quoted = {"name": "entity.name.gasl", "match": "`(?:[^`]|``)+`"}
    all_words = words(known[name] for name in rest)
    heads = [word for word in all_words if word in (*COMMANDS, "TRY", "CATCH", "FINALLY", "END")]
    rules = [
        *signs, quoted,
        word_rule("support.function", (*words(known[name] for name in GASL_FUNCTIONS), *VALUE_FUNCTIONS), r"(?=[ \t]*(?:\(|\$\{))"),
        {"name": "entity.name.type.gasl", "match": rf"(?<=[(\[\w]):{_LABEL}(?:\|{_LABEL})*"},
        {"name": "entity.name.variable.gasl", "match": r"(?i)(?<=\bAS\s)\s*(?!(?:LIST|DICT|COUNTER)\b)[A-Za-z_][A-Za-z0-9_]*"},
        word_rule("keyword.control", heads),
        *(word_rule(scope, words(known[name] for name in names)) for scope, names in GASL_WORDS.items()),
        word_rule("keyword.other", [word for word in all_words if word not in heads]),
        {"name": "keyword.operator.gasl", "match": "|".join(expression(known[name]) for name in GASL_OPERATORS)},
        {"match": expression(known["PATH"])},  # a name, so that no number begins in the middle of one
    ]  # fmt: skip
    return document("GASL", "source.gasl", rules)


def lwt() -> dict[str, Any]:
    """Return the grammar of LWT."""
    known = terminals("lwt", "start")
    said = {
        *LWT_QUOTES,
        "HEAD",
        "COMMENT",
        "REFERENCE",
        "LITERAL_OPEN",
        "DOUBLE_ESCAPE",
        "SINGLE_ESCAPE",
        "NAME",
        "NUMBER",
    }
    said |= {"_OPEN", "_EQUALS", "_BAR"}
    if strange := known.keys() ^ (said | LWT_PLAIN):
        raise SystemExit(f"say here what these terminals of lwt.lark look like: {', '.join(sorted(strange))}")
    strings = [
        {
            "name": f"string.quoted.{quote.lower().replace('_', '.')}.lwt",
            "begin": expression(known[quote]),
            "end": expression(known[quote]),
            "patterns": [
                {"name": "constant.character.escape.lwt", "match": expression(known["LITERAL_OPEN"])},
                {"name": "variable.other.reference.lwt", "match": expression(known["REFERENCE"])},
                {
                    "name": "constant.character.escape.lwt",
                    "match": expression(known[f"{quote.rpartition('_')[2]}_ESCAPE"]),
                },
            ],
        }
        for quote in LWT_QUOTES
    ]
    name = expression(known["NAME"])
    rules = [
        {"name": "comment.line.number-sign.lwt", "match": r"^[ \t]*" + expression(known["COMMENT"])},
        {"name": "entity.name.function.step.lwt", "match": r"^[ \t]*" + expression(known["HEAD"])},
        *strings,
        {"name": "variable.other.reference.lwt", "match": expression(known["REFERENCE"])},
        {"name": "support.function.lwt", "match": f"{name}(?={expression(known['_OPEN'])})"},
        {"name": "variable.parameter.lwt", "match": f"{name}(?={expression(known['_EQUALS'])})"},
        {"name": "constant.numeric.lwt", "match": expression(known["NUMBER"])},
        {"name": "constant.other.lwt", "match": name},
        {"name": "keyword.operator.lwt", "match": r"\|"},
    ]
    return document("LWT", "source.lwt", rules)


def document(name: str, scope: str, rules: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a whole grammar."""
    told = "Written by docs/editors/generate.py from the terminals of the .lark file; changes belong there."
    return {"information_for_contributors": [told], "name": name, "scopeName": scope, "patterns": rules}


def files() -> Mapping[Path, str]:
    """Return what is to stand in which file."""
    grammars = {"gasl": gasl(), "lwt": lwt()}
    return {
        HERE / f"{name}.tmLanguage.json": json.dumps(made, indent=2, ensure_ascii=False) + "\n"
        for name, made in grammars.items()
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
