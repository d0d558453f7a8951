"""The grammar that constrains GASL.

It allows one form of each construct and no comments. It requires a space after each word, each number and each name in backticks, because
nothing else would separate the words. ``gasl_values`` contains the rules for values and conditions.
"""

import re
from collections.abc import Mapping

from ..catalogue.commands import SETTINGS, Setting
from ..catalogue.measures import MEASURES
from ..catalogue.value_functions import AGGREGATE_FUNCTIONS
from .gasl_values import VALUE_TERMINALS, value_rules
from .grammar_text import ALIAS, DEFINITION, name_but

_WORDS = re.compile(r'(?:"[A-Za-z_]+"i(?: \| )?)+')
_LOWER = frozenset({"KIND", "_PATHS", "_CYCLES", "_PATTERNS", "COMPASS", "GRAPH", "TRUE", "FALSE", "NULL"})
_ONCE = {
    "_find_option": "where? order? limit?",
    "_path_option": "between? via? where_of_paths? max_length? shortest? direction? most?",
    "_walk_option": "via? depth? direction? trace?",
}
"""Options in a fixed order. The parser's grammar allows any order and repetition, and its builder refuses repeated options."""
_GASL_RULES: Mapping[str, str] = {
    "program": "_NEWLINE? (param _NEWLINE)* _items?",
    "_body": "_NEWLINE _items?",
    "param": 'PARAM name ("TEXT " (EQUALS (STRING | NULL))? | "INT " (EQUALS (WHOLE | NULL))? | "FLOAT " (EQUALS (NUMBER | NULL))?'
    ' | "BOOL " (EQUALS (TRUE | FALSE | NULL))? | "LIST " (EQUALS NULL)?) (_WITH_DESCRIPTION STRING)?',
    "find_paths": "FIND _PATHS _path_option* _AS name | FIND _CYCLES via? where_of_paths? max_length? most? _AS name",
    "shortest": "SHORTEST _count_of? by_weight?",
    "node": "LPAR (LABEL? labels_of _BLANK? | LABEL?) properties? RPAR",
    "by_weight": "_BY sum",
    "measure": "MEASURE (name | GRAPH) (ON name)? _USING (algorithm | weighted by_weight?) _AS name",
    "select": "SELECT DISTINCT name (_select_rest | into) | SELECT name _select_rest",
    "_select_rest": "_FIELDS named (_COMMA named)* where_of_paths? sample? into | where_of_paths sample? into | sample into",
    "unnest": "UNNEST name _BY (path alias? | split_of_field alias) into",
    "count": "COUNT name (_BY keys)? into",
    "aggregate": "AGGREGATE name (_BY keys)? _COMPUTE computation alias? (_COMMA computation alias?)* into",
    "keys": "key_of_group (_COMMA key_of_group)*",
    "computation": "COUNT_OF (DISTINCT? value)? RPAR | COLLECT_OF DISTINCT? value RPAR | PERCENTILE_OF sum _COMMA SHARE RPAR"
    " | LIMIT_OF value RPAR | COMPUTED_OF sum RPAR",
    "join": "LEFT? JOIN name _WITH name alias? _on _AS name"
    " | JOIN name _WITH name ON text_of_field (EQUALS text_of_field)? SIMILAR SHARE _AS name",
    "on_pair": "value_of_field (EQUALS value_of_field)?",
    "sorting": "ordered DIRECTED?",
    "limit": "LIMIT _count_of (_PER ordered (_COMMA ordered)*)?",
    "assertion": "ASSERT condition_of_state",
    "key": "KEY",
    "_property": "LABEL COLON (constant | variable)",
}
"""Replacements for rules of the grammar. They exclude what the builder and the linter refuse.

These are constants in place of fields, columns without names, path options that cycles do not have, and unsupported weights.
"""
_GASL_MORE: Mapping[str, str] = {
    "most": "LIMIT _count_of",
    "where_of_paths": "WHERE condition_of_paths",
    "named": "path alias? | value alias",
    "key_of_group": "path alias? | value_of_field alias",
    "ordered": "sum_of_field | text_of_field | similarity_of_field",
}
_GASL_TERMINALS: Mapping[str, str] = {
    "WHOLE": "/-?(0|[1-9][0-9]{0,8}) /", "COUNT_OF": r"/count\(/", "COLLECT_OF": r"/collect\(/", "PERCENTILE_OF": r"/percentile\(/",
    "LIMIT_OF": r"/(min|max)\(/", "_PATHS": "/paths /", "_CYCLES": "/cycles /", **VALUE_TERMINALS,
}  # fmt: skip
_PLAIN = name_but(("distinct",))
_FIRST = name_but(("all", "any", "distinct", "false", "increasing", "len", "none", "not", "null", "true"))
"""Names that need no backticks: names of variables and columns, and the first name in the path of a field."""
_KEY = name_but(("items", "value"), underscore=False)
"""One part of a key; names that the format of the state reserves are excluded."""
_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_QUOTED, _WORD = r"(?:[^`\r\n]|``)+", r"(?:[^` \x00-\x1f]|``)+"
"""Patterns for the text between backticks, and for one word of that text."""
_BACKTICKS = f"`{_WORD}(?: {_WORD})*`"
_SPELT = {
    "INT": "/[1-9][0-9]{0,8} /",
    "IDENTIFIER": f"/{_PLAIN}|{_BACKTICKS} /",
    "PATH": rf"/{_FIRST}|{_BACKTICKS} |({_FIRST}|{_BACKTICKS})\.(({_NAME}|{_BACKTICKS})\.)*({_NAME}|{_BACKTICKS} )/",
    "NUMBER": r"/-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})? /",
    "STRING": r'/"[^"\\ \x00-\x1f]( {0,8}([^"\\ \x00-\x1f]|\\["\\nt]))* {0,8}"/',
    "TEXTUAL": "/(STARTS_WITH|ENDS_WITH) /",
    "WHY": r"/#:( [^ \x00-\x1f]+)+/",
}
"""Terminals for values that no builder refuses: numbers in range, non-empty strings with the required escapes, names that are not keywords.

The length of every run of spaces is limited, here and elsewhere, because a small model might never end an unlimited run.
"""
_BLANK = "_BLANK"
_LOOSE = re.compile(
    r"\b(IDENTIFIER|LABEL|KEY|PATH|VARIABLE|ELEMENT|STRING|PATTERN|DATE|UNIT|EQUALS|COMPARISON|_COMMA|_?LPAR|RPAR|_?LSQB|RSQB|LBRACE|RBRACE|COLON|PLUS|MINUS|STAR|SLASH"
    r"|PERCENT)\b([?*+]?)"
)
"""Terminals after which a space is allowed, but not required."""
_TIGHT = frozenset({"edge_out", "edge_in", "edge_either", "_detail", "labels_of"})
"""Rules whose parts have no spaces between them: ``-[knows:KNOWS]->``."""
_REMARKS = re.compile(r"[ \t]*\|[ \t]*comment\b|[ \t]*\(comment _NEWLINE\)\*|\btrailing\? ?")


def gasl_form(text: str) -> str:
    """Return the grammar that constrains programs, derived from the text of the parser's grammar without comments."""
    lines = ["start: program"]
    text = _REMARKS.sub("", re.sub(r"^(_item:.*)\n[ ]+\| comment$", r"\1", ALIAS.sub("", text), flags=re.MULTILINE))
    found = DEFINITION.findall(re.sub(r"^(\w+)\.\d+:", r"\1:", text, flags=re.MULTILINE))
    rules = {name: _GASL_RULES.get(name, body) for name, body in found if name not in _UNUSED}
    for name, body in {**rules, **_GASL_MORE, **value_rules(), **_algorithms(), **_settings()}.items():
        if name == "closed":
            body = body.replace("param\n       | ", "")
        body = body.replace("_IF condition", "_IF condition_of_state")
        if name in _TIGHT:
            body = body.replace("IDENTIFIER", "LABEL")
        for options, once in _ONCE.items():
            body = body.replace(f"{options}*", once)
        if name in _SPELT:
            body = f" {_SPELT[name]}"
        elif name[-1].isupper() and (words := _WORDS.fullmatch(body.strip())):
            spelt = re.findall(r'"(\w+)"', words[0])
            chosen = "|".join(word.lower() if name in _LOWER else word for word in spelt)
            body = f" /({chosen}) /"
        elif name == "_NEWLINE":
            body = " /\\n/"
        elif name.lower() == name and name not in _TIGHT:
            body = _LOOSE.sub(lambda at: f"({at[1]} {_BLANK}?){at[2]}" if at[2] else f"{at[1]} {_BLANK}?", body)
        else:
            body = body.replace("[ \\t]*", "").replace(_QUOTED, f"{_WORD}(?: {_WORD})*")
        lines.append(f"{name}: {body.strip()}")
    functions = "|".join(each for each in AGGREGATE_FUNCTIONS if each not in _OTHER_FUNCTIONS)
    lines += [f"{name}: {body}" for name, body in _GASL_TERMINALS.items()]
    lines += [rf"COMPUTED_OF: /({functions})\(/", f"LABEL: /{_NAME}|{_BACKTICKS}/", rf"KEY: /{_KEY}(\.{_KEY})*/"]
    return "\n".join((*lines, f"{_BLANK}: / /", ""))


_OTHER_FUNCTIONS = ("count", "collect", "percentile", "min", "max")
"""The functions of AGGREGATE that accept values other than numbers, or more than one value."""


def _algorithms() -> dict[str, str]:
    """Return the rules for the MEASURE algorithms with and without a weight, and their settings."""
    rules, terminals = {"algorithm": "PLAIN_ALGORITHM", "weighted": "WEIGHTED_ALGORITHM"}, {}
    for terminal, takes_weight in (("PLAIN_ALGORITHM", False), ("WEIGHTED_ALGORITHM", True)):
        names = [name for name, spec in MEASURES.items() if not spec.settings and bool(spec.weight) == takes_weight]
        terminals[terminal] = f"/({'|'.join(names)}) /"
    for algorithm, spec in MEASURES.items():
        if not spec.settings:
            continue
        rules["weighted" if spec.weight else "algorithm"] += f" | {algorithm}"
        settings = [f"{algorithm}_{name}" for name in spec.settings]
        # Each setting at most once, in the order of the catalogue.
        listed = " | ".join(" ".join((each, *(f"(_COMMA {more})?" for more in settings[place + 1 :])))
                            for place, each in enumerate(settings))  # fmt: skip
        rules[algorithm] = f'"{algorithm} " | "{algorithm}" _LPAR ({listed}) RPAR'
        for name, setting in spec.settings.items():
            value = " | ".join(f'"\\"{word}\\""' for word in setting.words) or "SHARE"
            rules[f"{algorithm}_{name}"] = f'"{name}" _BLANK? EQUALS ({value})'
    return {**rules, **terminals}


def _settings() -> dict[str, str]:
    """Return the rule for SET. It allows each setting with the values in the setting's range."""
    forms = {
        setting.key: "STRING" if setting.kind == "text" else f"/{_number_of(setting)} /"
        for setting in SETTINGS.values()
    }
    written = [f'"{key}" _BLANK? EQUALS {value}' for key, value in forms.items()]
    return {"set_command": f"SET ({' | '.join(written)})"}


def _number_of(setting: Setting) -> str:
    """Return a pattern that matches only numbers that a setting accepts, but not all of these numbers."""
    most = int(setting.maximum or 0)
    digits = len(str(most)) - 1
    whole = f"[1-9][0-9]{{0,{digits - 1}}}" if digits else f"[0-{most - 1}]"
    return whole if setting.kind == "int" else rf"{whole}(\.[0-9]{{1,3}})?"


_UNUSED = frozenset(
    {"comment", "trailing", "COMMENT", "condition_only", "WAYS", "FUNCTION", "_columns", "_columns_end", "_keys_into",
     "_computations", "settings", "factor", "operand", "_argument", *_ONCE}
)  # fmt: skip
"""Rules and terminals that the generated grammar omits."""
