"""The grammar that constrains expressions.

It allows only the printer's form, and the functions and methods of the language. The builder limits the nesting of comprehensions, so each
level has its own rules. The operator ``%`` is omitted, because the language does not allow a string before it.
"""

import re
from collections.abc import Mapping

from ..catalogue.operations import FUNCTIONS, METHODS
from .grammar_text import ALIAS, DEFINITION, name_but

_EXPR_RULES: Mapping[str, str] = {
    "_operation": "(OPERATOR | TEST) _operand | NULL_TEST",
    "primary": "NUMBER | atom _trailer*",
    "_trailer": "index | slicing | METHOD (test (COMMA test)*)? RPAR",
    "constant": '"null" | "true" | "false"',
    "arguments": "(argument (COMMA argument)*)? RPAR | keyword RPAR | argument (COMMA argument)* COMMA keyword RPAR | only",
    "argument": "test",
    "clause": "FOR NAME (COMMA NAME)* IN chain (IF chain)*",
}
"""Replacements for rules of the grammar. They exclude what the builder refuses, and allow one form of each construct."""
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


def expr_form(text: str) -> str:
    """Return the grammar that constrains expressions, derived from the text of the parser's grammar without comments."""
    from ..parse.expr.builder import NAMESPACES, RESERVED

    name = name_but(RESERVED)
    rules: dict[str, str] = {}
    spelt: dict[str, str] = {}
    for found, body in DEFINITION.findall(ALIAS.sub("", text).replace("!constant", "constant")):
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
    """Return the body of a rule for ``level``.

    Names inside ``<>`` refer to rules of the next lower level. Level 0 allows no comprehension.
    """
    if not level:
        body = re.sub(r" \| (?:only|generator|comprehension)\b", "", body)
    outer = re.split(r"<(.*?)>", body)

    def suffixed(part: str, at: int) -> str:
        return re.sub(r"\b[a-z_]+\b", lambda match: f"{match[0]}_{at}" if match[0] in rules else match[0], part)

    return "".join(suffixed(part, level - at % 2) for at, part in enumerate(outer))
