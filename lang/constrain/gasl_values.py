"""The rules for values and conditions in the grammar that constrains GASL.

They exclude what the linter refuses without a graph: operands of a type that an operator or a function never accepts,
comparisons of different types, and tests of constants. The type of a field or a variable is unknown, so each may stand
anywhere. ``sum`` is an arithmetic value, ``textual`` a value that is a string, and ``value`` any value that is not a constant.

The rules exist in three forms, because different places in a program allow different values. In the rules without a suffix, a
value contains a field or a variable. With ``_of_field``, it contains a field. With ``_of_state``, it contains variables but no
field. One constant may precede the first field or variable, because a small model might never end a longer run.
"""

from collections.abc import Iterator, Mapping

from ..catalogue.operations import DATE_UNITS
from ..catalogue.value_functions import OF_DATES, VALUE_FUNCTIONS, argument_kind, result_kind

_FORMS: Mapping[str, tuple[str, str]] = {
    "": ("(path | variable)", ""), "_of_field": ("path", ""), "_of_state": ("variable", "_of_state"),
}  # fmt: skip
"""Maps each suffix to its simplest values, and to the suffix of the operands next to the one with the field or variable."""
_RULES: Mapping[str, str] = {
    "value": "sum{s} | textual{s} | split{s} | similarity{s} | either{s}",
    "sum": "_factor{s} | _product{s} | _difference{s}",
    # An arithmetic value that is not only a field, a variable or a length.
    "computed": "_product{s} | _difference{s} | MINUS _factor{s} | numeric{s}",
    "_difference": "sum{s} (PLUS | MINUS) term{f} | _single{s} (PLUS | MINUS) ({near} | _product{s})",
    "_product": "(_factor{s} | _product{s}) (STAR | SLASH | PERCENT) _operand{f} | _single{s} (STAR | SLASH | PERCENT) {near}",
    "_factor": "{atom} | MINUS _factor{s} | LEN measured{s} | numeric{s} | LPAR sum{s} RPAR",
    "measured": "{atom} | text_call{s} | split{s}",
    "textual": "_text_factor{s} | joined{s}",
    "_text_factor": "text_call{s} | text_choice{s}",
    "joined": "(_text_factor{s} (PLUS (STRING | {atom_f} | _text_factor{f})) | {atom} PLUS (STRING | _text_factor{f})"
    " | STRING PLUS ({atom} | _text_factor{s})) (PLUS (STRING | {atom_f} | _text_factor{f}))*",
    # The arguments of functions: numbers, texts and dates.
    "text": "textual{s} | {atom}",
    "dated": "{atom} | date{s}",
    "choice": "IF_OF condition{c} _COMMA {number_results} RPAR | COALESCE_OF (sum{s} (_COMMA number{f})+ | NUMBER _COMMA sum{s}) RPAR",
    "text_choice": "IF_OF condition{c} _COMMA {text_results} RPAR"
    " | COALESCE_OF (text{s} (_COMMA text_or_constant{f})+ | STRING _COMMA text{s}) RPAR",
    "either": "IF_OF condition{c} _COMMA {results} RPAR | COALESCE_OF value{s} (_COMMA expr{f})+ RPAR",
    "extreme": "EXTREME_OF ({atom} | split{s} | sum{s} (_COMMA number{f})+) RPAR | SUM_OF ({atom} | split{s}) RPAR",
    "numeric": "choice{s} | extreme{s} | number_call{s}",
}
"""``{s}`` is the suffix, ``{f}`` is the suffix of the other operands, and ``{c}`` is the suffix of conditions.

``{atom}`` are the simplest values, ``{atom_f}`` are the simplest values of the suffix ``{f}``, ``{results}`` are the results of
``if``, and ``{near}`` are the values after a constant.
"""
_RESULTS: Mapping[str, tuple[str, str]] = {
    "number_results": ("sum", "number"), "text_results": ("text", "text_or_constant"), "results": ("value", "expr"),
}  # fmt: skip
_FREE: Mapping[str, str] = {
    "expr": "value{s} | constant",
    "_test": "(EQUALS | COMPARISON) _compared{s} | CONTAINS (text_or_constant{s} | number{s}) | TEXTUAL text_or_constant{s} | _matching"
    " | NOT? IN (items | variable)",
    "_compared": "sum{s} | textual{s} | similarity{s} | constant",
    "number": "sum{s} | NUMBER",
    "text_or_constant": "text{s} | STRING",
    "date_or_constant": "dated{s} | DATE",
    "term": "_operand{s} | _products{s}",
    "_products": "(_operand{s} | _products{s}) (STAR | SLASH | PERCENT) _operand{s}",
    "_operand": "_factor{s} | NUMBER",
}
"""Rules for values that may be constants."""
_CONDITION: Mapping[str, str] = {
    "condition": "conjunction{c} (_OR conjunction{c})*",
    "conjunction": "negation{c} (_AND negation{c})*",
    "negation": "NOT? primary{c}",
}
_TESTS = (
    "{atom} _test{s} | computed{s} ((EQUALS | COMPARISON) number{s} | NOT? IN (number_items | variable))"
    " | textual{s} ((EQUALS | COMPARISON | CONTAINS | TEXTUAL) text_or_constant{s} | _matching | NOT? IN (text_items | variable))"
    " | LEN measured{s} LENGTH_TEST | similarity{s} COMPARISON SHARE | value{s} IS NOT? NULL"
)
_QUANTIFIED = "(ANY | ALL | NONE) element (_test | IS NOT? NULL) | INCREASING element"
VALUE_TERMINALS: Mapping[str, str] = {
    "IF_OF": r"/if\(/", "COALESCE_OF": r"/coalesce\(/", "EXTREME_OF": r"/(min|max)\(/", "SUM_OF": r"/sum\(/",
    "DATE_TRUNC_OF": r"/date_trunc\(/",
    "UNIT": f'/"({"|".join(DATE_UNITS)})"/', "DATE": '/"[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"/',
    "PATTERN": r'/"[A-Za-z0-9_](( |\.\*|\[A-Z\]|\[a-z\]|\[0-9\]\+|\.)?[A-Za-z0-9_\-])*"/',
    "CONTAINS": "/CONTAINS /", "MATCHES": "/MATCHES /",
    "ELEMENT": r"/(node|edge)(\.[A-Za-z_][A-Za-z0-9_]*)+/", "SHARE": r"/0\.[0-9]{0,3}[1-9] /",
    "LENGTH_TEST": "/(=|!=|<>|[<>]=?) ?[1-9][0-9]{0,3} |> ?0 /",
}  # fmt: skip
"""Terminals of the rules. The patterns use only syntax that every engine of regular expressions supports."""


def value_rules() -> dict[str, str]:
    """Return the rules for values and conditions, and the terminals for the names of functions."""
    rules: dict[str, str] = {}
    calls, terminals = _calls()
    for suffix, (atom, free) in _FORMS.items():
        tests = "_of_state" if suffix == "_of_state" else ""
        # The condition of ``if`` contains a field or a variable, so the results may be constants; but it may contain no field.
        results = {
            name: f"({each}{suffix} _COMMA {other} | {other} _COMMA {each}{suffix})"
            if suffix != free
            else f"{other}{free} _COMMA {other}{free}"
            for name, (each, other) in _RESULTS.items()
        }
        # Without fields, a value is short.
        near = atom if suffix == tests != "" else f"_factor{suffix}"
        given = {**results, "near": near, "s": suffix, "f": free, "c": tests, "atom": atom, "atom_f": _FORMS[free][0]}
        of_form = {**_RULES, **calls} if free != suffix else {**_RULES, **_FREE, **calls}
        if suffix == tests:
            of_form |= {**_CONDITION, "primary": f"LPAR condition{{c}} RPAR | {_TESTS}"}
        rules |= {f"{name}{suffix}": body.format(**given) for name, body in of_form.items()}
        rules[f"_single{suffix}"] = "NUMBER | variable" if suffix == "_of_field" else "NUMBER"
    on_paths = {"s": "", "c": "_of_paths", "atom": _FORMS[""][0]}
    rules |= {f"{name}_of_paths": body.format(**on_paths) for name, body in _CONDITION.items()}
    rules["primary_of_paths"] = f"LPAR condition_of_paths RPAR | {_TESTS.format(**on_paths)} | {_QUANTIFIED}"
    return {**rules, "element": "ELEMENT", "_matching": "MATCHES (PATTERN | variable)", **_items(), **terminals}


def _items() -> dict[str, str]:
    return {
        f"{name}items": f"LPAR {each} (_COMMA {each})* RPAR | LSQB {each} (_COMMA {each})* RSQB"
        for name, each in (("", "constant"), ("number_", "NUMBER"), ("text_", "STRING"))
    }


def _calls() -> tuple[dict[str, str], dict[str, str]]:
    """Return a rule for the calls with each kind of result, and a terminal for each group of functions with equal arguments.

    The rules allow each function only with the number of arguments, and the kinds of arguments, that it accepts.
    """
    alike: dict[tuple[tuple[str, ...], int, str], list[str]] = {}
    for function in VALUE_FUNCTIONS.values():
        if function.name in ("if", "coalesce", "min", "max", "sum", "date_trunc"):
            continue
        most = function.least if function.most is None else function.most
        kinds = tuple(_kind(function.name, place) for place in range(most))
        rule = {"number": "number_call", "text": "text_call", "list": "split"}[result_kind(function.name)]
        rule = {"similarity": "similarity", "date": "date"}.get(function.name, rule)
        alike.setdefault((kinds, function.least, rule), []).append(function.name)
    bodies: dict[str, list[str]] = {"text_call": ["date{s}"], "date": ["DATE_TRUNC_OF UNIT _COMMA dated{s} RPAR"]}
    terminals = {}
    for number, ((kinds, least, rule), names) in enumerate(alike.items()):
        terminals[f"FUNCTION_{number}"] = rf"/({'|'.join(names)})\(/"
        bodies.setdefault(rule, []).extend(f"FUNCTION_{number} {each} RPAR" for each in _arguments(kinds, least))
    return {rule: " | ".join(listed) for rule, listed in bodies.items()}, terminals


def _kind(function: str, place: int) -> str:
    return "date" if place in OF_DATES.get(function, ()) else argument_kind(function, place)


_VARYING = {"number": "sum{s}", "text": "text{s}", "date": "dated{s}", "": "value{s}"}
_ANY = {"number": "number{f}", "text": "text_or_constant{f}", "date": "date_or_constant{f}", "": "expr{f}"}


def _arguments(kinds: tuple[str, ...], least: int) -> Iterator[str]:
    """Yield a rule for the arguments of a call for each required argument, which then contains the field or the variable."""
    more = "".join(f" (_COMMA {_ANY[kind]}" for kind in kinds[least:]) + ")?" * (len(kinds) - least)
    for at in range(least):
        yield (
            " _COMMA ".join((_VARYING if place == at else _ANY)[kind] for place, kind in enumerate(kinds[:least]))
            + more
        )
