"""A small model's answer under a grammar: the JSON of a plan whose commands are GASL, or of the end, so short that it is always whole.

The commands' rules are those of ``lang.constrain``, a few of them, and bounded: one blank stands between words, lists have one element,
texts in commands are quoted as JSON wants it. Fields are the graph's own. What can't be bound to a grammar (that a field is compared with
what it has, or that a plan answers the question) is left to the checks. Larger models are asked by schema: see ``reading``.
"""

import re
from collections.abc import Iterable

from ...lang.constrain import constrain

__all__ = ["SMALL_TOKENS", "small_grammar"]

SMALL_TOKENS = 640
"""Tokens that an answer under the grammar does not reach: it has at most some 600 characters, and most tokens have several."""
_TEXT = 80
"""Characters of a hypothesis, of a reason and of an answer."""
_MOST_FIELDS = 40
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,30}")
_RULES = ("find", "where", "order", "limit", "count", "rank", "select_where")
_TERMINALS = ("FIND", "WHERE", "ORDER", "_BY", "DIRECTED", "LIMIT", "COUNT", "RANK", "SELECT", "_AS", "TEXTUAL")
_FORM = r"""
start: "{{\"hypothesis\": \"" TEXT "\", \"why\": \"" TEXT "\", \"commands\": [" commands "]}}"
     | "{{\"complete\": \"" TEXT "\", \"evidence\": [\"found\"]}}"
commands: "\"DECLARE found AS LIST\", \"" find "\", " more "\"UPDATE found WITH some\""
more: ("\"" (rank | select_where | count) "\", ")?
condition: path OPERATOR (STRING | INT) | path TEXTUAL STRING
sorting: path DIRECTED
name: "some "
KIND: "nodes "
path: FIELD
TEXT: /[A-Za-z0-9][A-Za-z0-9 ,.'\-]{{0,{text}}}/
FIELD: /({fields}) /
OPERATOR: /(=|!=|>|<|>=|<=) /
STRING: /\\"[A-Za-z0-9][A-Za-z0-9 .'_\-]{{0,30}}\\" /
INT: /[1-9][0-9]{{0,3}} /
"""
_DEFINITION = re.compile(r"^(\w+):(.*(?:\n[ \t]+.*)*)\n", re.MULTILINE)


def small_grammar(fields: Iterable[str]) -> str:
    """Return the grammar of a small model's answer about a graph whose nodes have these fields, as ``Options.grammar`` takes it."""
    known = [name for name in fields if _FIELD.fullmatch(name)][:_MOST_FIELDS]
    named = "|".join(dict.fromkeys(("id", "degree", "in_degree", "out_degree", *known)))
    given = dict(_DEFINITION.findall(constrain("gasl", "llguidance")))
    lines = [_FORM.format(fields=named, text=_TEXT - 1).strip()]
    lines += [f"{rule}:{_one(given[rule])}" for rule in _RULES]
    lines += [f"{terminal}:{given[terminal]}" for terminal in _TERMINALS]
    return "\n".join((*lines, ""))


def _one(body: str) -> str:
    """Return a rule's body without its repetitions: ``x (_COMMA _BLANK? x)*`` is ``x``."""
    return re.sub(r" \(_COMMA _BLANK\? \w+\)\*", "", body)
