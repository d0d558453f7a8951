"""Explains clauses in the wrong order, clauses of another command, arithmetic of other languages, and foreign pattern elements."""

import re

from ....diagnostic import Edit
from ....source import Span
from ...repairs import Fault, shortened
from .attempt import VALUES, Correction, Explainer, InvalidStatement, condition_of, insert, swap

_ROWS = frozenset(
    {
        "SELECT",
        "UNNEST",
        "COUNT",
        "AGGREGATE",
        "JOIN",
        "LEFT",
        "UNION",
        "INTERSECT",
        "EXCEPT",
        "WALK",
        "CONNECT",
        "MEASURE",
    }
)
_INTO = re.compile(r"(?<![ \t])[ \t]+AS[ \t]+(?:\w+|`[^`]+`)[ \t]*\Z", re.IGNORECASE)


def _order(s: InvalidStatement) -> Fault | None:
    """Explain ``SELECT x WHERE c FIELDS a AS y``, ``AGGREGATE x COMPUTE f() BY a AS y``, ``RANK x LIMIT 5 BY a AS y``."""
    piece, into = s.piece(), _INTO.search(s.text)
    earlier = {"SELECT": ("FIELDS", "WHERE"), "AGGREGATE": ("BY", "COMPUTE"), "RANK": ("LIMIT", "BY")}.get(s.command)
    if earlier is None or into is None:
        return None
    first, second = earlier
    if s.command == "RANK":
        if piece.upper != "LIMIT" or "_BY" not in s.expected:
            return None
        moved = next((one for one in s.pieces[s.here :] if one.upper == "BY"), None)
        first, second = "BY", "LIMIT"
    else:
        moved = piece if piece.upper == first else None
    before = next((one for one in s.pieces if one.upper == second), None)
    if moved is None or before is None or moved.span.start <= before.span.start or moved.span.end > into.start():
        return None
    clause = s.text[moved.span.start : into.start()]
    edits = [insert(before.span.start, f"{clause} "), swap(len(s.text[: moved.span.start].rstrip()), into.start(), "")]
    message = f"{first} must come before {second}"
    return s.fault("GASL016", message, moved.span, f"move {shortened(clause)} before {second}", edits)


def _sampled_first(s: InvalidStatement) -> Fault | None:
    """Explain ``SELECT x SAMPLE 3 WHERE c AS y``. GASL samples the selected items, so no edit keeps the meaning."""
    piece = s.piece()
    if s.command != "SELECT" or piece.upper not in ("WHERE", "FIELDS") or s.piece(-2).upper != "SAMPLE":
        return None
    hint = "write SAMPLE last: the sample is taken from the items that WHERE selects"
    return s.fault("GASL016", f"{piece.upper} must come before SAMPLE", piece.span, hint)


def _ranked(s: InvalidStatement) -> Fault | None:
    """Explain ``SELECT x FIELDS a ORDER BY a LIMIT 5 AS y``: RANK sorts and limits rows."""
    piece = s.piece()
    is_order = piece.upper in ("ORDER", "SORT") and s.piece(1).upper == "BY"
    is_limit = piece.upper == "LIMIT" and s.piece(1).kind in ("number", "variable")
    if s.command not in _ROWS or "LIMIT" in s.expected or not (is_order or is_limit):
        return None
    what = f"{piece.upper} BY" if is_order else "LIMIT"
    hint = "write RANK rows BY field DESC LIMIT 10 AS name after this command"
    return s.fault("GASL008", f"{s.command} does not accept {what}", piece.span, hint)


def _pairs(s: InvalidStatement) -> Fault | None:
    """Explain ``ON id == id``, ``ON id = id AND city = city``."""
    piece = s.piece()
    if s.command not in ("JOIN", "LEFT", "UNION", "INTERSECT", "EXCEPT"):
        return None
    if not any(one.upper == "ON" for one in s.pieces[: s.here]):
        return None
    if piece.text == "==" and "EQUALS" in s.expected:
        return s.fix("GASL014", "ON takes =, not ==", piece.span, "write =", [Edit(piece.span, "=")])
    if piece.upper != "AND" or "_COMMA" not in s.expected:
        return None
    edits = [swap(s.failure.behind, piece.span.end, ",")]
    return s.fix("GASL014", "the pairs of ON must be separated by commas", piece.span, "write a comma", edits)


def _share(s: InvalidStatement) -> Fault | None:
    """Explain ``LIMIT 5%``, ``SAMPLE 10%``."""
    piece, number, word = s.piece(), s.piece(-1), s.piece(-2)
    if piece.text != "%" or number.kind != "number" or s.failure.after != "INT":
        return None
    message, hint = (
        f"{word.upper} needs a whole number, not {number}%",
        f"write a number of items, as in {word.upper} 10",
    )
    return s.fault("GASL012", message, number.span | piece.span, hint)


_NO_POWER = "write a product, as in age * age"


def _arithmetic(s: InvalidStatement) -> Fault | None:
    """Explain ``age ** 2``, ``age ^ 2``, ``age // 2``, ``age mod 2``, ``age div 2``, ``age++``."""
    piece, before, following = s.piece(), s.piece(-1), s.piece(1)
    twice = piece.text == before.text and before.span.end == piece.span.start
    if piece.text in ("*", "/", "+") and twice:
        span = before.span | piece.span
        hint = {"*": _NO_POWER, "/": "write floor(a / b)", "+": "write + 1"}[piece.text]
        return s.fault("GASL014", f"GASL has no operator {piece.text}{piece.text}", span, hint)
    if "PLUS" not in s.expected or (following.kind not in (*VALUES, "word") and following.text != "("):
        return None
    if piece.text == "^":
        return s.fault("GASL014", "GASL has no operator ^", piece.span, _NO_POWER)
    if piece.upper == "DIV":
        return s.fault("GASL014", f"{piece} is SQL, not GASL", piece.span, "write floor(a / b)")
    if piece.upper == "MOD":
        return s.fix("GASL014", f"{piece} is written % in GASL", piece.span, "write %", [Edit(piece.span, "%")])
    return None


def _computed(s: InvalidStatement) -> Fault | None:
    """Explain ``COMPUTE sum(a) / count() AS m``, ``sum(a > 3)``, ``max(*)``, ``count(DISTINCT *)``."""
    piece, before = s.piece(), s.piece(-1)
    if s.command != "AGGREGATE":
        return None
    if piece.text in ("/", "*", "+", "-", "%") and before.text == ")" and s.failure.after == "RPAR":
        hint = "compute each number, then divide them: SELECT rows FIELDS total / n AS share AS shares"
        hint = "write mean(field)" if re.search(r"\bsum\([^()]*\)[ \t]*/[ \t]*count\(", s.text, re.IGNORECASE) else hint
        return s.fault("GASL008", "COMPUTE takes single functions, not arithmetic with their results", piece.span, hint)
    if piece.text == "*" or (before.text == "*" and s.piece(-2).upper == "DISTINCT"):
        star = piece if piece.text == "*" else before
        function = s.before(s.failure.brackets[-1][1]) if s.failure.brackets else s.before(0)
        if function.upper not in _FUNCTIONS:
            return None
        hint = f"write {function}(field)"
        if s.before(star.span.start).upper == "DISTINCT":
            hint = "write SELECT DISTINCT rows FIELDS field AS values, and COUNT values AS n"
        return s.fault("GASL008", f"{function} needs a field, not *", star.span, hint)
    if "RPAR" not in s.expected or not s.failure.brackets:
        return None
    opened = s.failure.brackets[-1][1]
    function, close = s.before(opened), next((one for one in s.pieces[s.here :] if one.text == ")"), None)
    if function.upper not in _FUNCTIONS or close is None:
        return None
    inner = s.text[opened + 1 : close.span.start].strip()
    if condition_of(inner) is None:
        return None
    right = f"sum(if({inner}, 1, 0))"
    message, span = (
        f"{function} needs a value, but {shortened(inner)} is a condition",
        Span(opened + 1, close.span.start),
    )
    edits = [Edit(span, f"if({inner}, 1, 0)")] if function.upper == "SUM" else []
    return s.fault("GASL008", message, span, f"write {right} to count the items for which it is true", edits)


_FUNCTIONS = frozenset({"COUNT", "SUM", "MEAN", "MIN", "MAX", "MEDIAN", "STDEV", "PERCENTILE", "COLLECT"})


def _listed_fields(s: InvalidStatement) -> Fault | None:
    """Explain ``FIELDS (id, age)``, ``FIELDS [id, age]``, ``FIELDS *``, ``BY (a, b)``."""
    found = re.search(r"\b(FIELDS|BY|PER|ON)[ \t]*([(\[])", s.text, re.IGNORECASE)
    star = re.search(r"\bFIELDS[ \t]+\*(?=[ \t]|,|\Z)", s.text, re.IGNORECASE)
    if star and star.start() <= s.at <= star.end():
        hint = "remove it: without FIELDS, all fields are kept"
        edits = [swap(star.start(), star.end() + 1, "")]
        return s.fault("GASL014", "* is SQL, not GASL", Span(star.end() - 1, star.end()), hint, edits)
    if (
        found is None
        or s.at < found.end()
        or s.command not in ("SELECT", "COUNT", "AGGREGATE", "RANK", "FIND", "JOIN", "LEFT")
    ):
        return None
    close = s.text.find({"(": ")", "[": "]"}[found[2]], found.end())
    if close < 0 or s.at > close or "(" in s.text[found.end() : close]:
        return None
    edits = [swap(found.end(1), found.end(), " "), swap(close, close + 1, "")]
    message = f"the fields after {found[1].upper()} cannot be in {'( )' if found[2] == '(' else '[ ]'}"
    return s.fix("GASL008", message, Span(found.end() - 1, close + 1), "remove the brackets", edits)


def _variable_in_list(s: InvalidStatement) -> Fault | None:
    """Explain ``IN (${x})``, ``IN ("a", ${x})``: a list in parentheses can contain only constants."""
    piece = s.piece()
    if piece.kind != "variable" or not s.is_in_list or s.list_head != "IN":
        return None
    opened = s.failure.brackets[-1][1]
    message, close = f"a list can contain only constants, not {piece}", s.piece(1)
    if s.before(piece.span.start).span.start == opened and close.text in (")", "]"):
        hint = f"write IN {piece} if the variable has a list, or = {piece} if it has one value"
        return s.ambiguity("GASL007", message, piece.span, hint, supposed=[[swap(opened, close.span.end, piece.text)]])
    return s.fault("GASL007", message, piece.span, f"compare the variable separately: ... OR field = {piece}")


def _alternatives(s: InvalidStatement) -> Fault | None:
    """Explain ``a = ("x" OR "y")``."""
    piece = s.piece()
    if piece.upper not in ("OR", "|", "||", ",") or s.list_head not in ("=", "==") or s.failure.brackets[-1][0] != "(":
        return None
    opened = s.failure.brackets[-1][1]
    inner = [one for one in s.pieces if one.span.start > opened]
    end = next((at for at, one in enumerate(inner) if one.text == ")"), 0)
    values, signs = inner[:end:2], inner[1:end:2]
    if end % 2 == 0 or any(one.kind not in ("string", "number") for one in values):
        return None
    if any(one.upper not in ("OR", "|", "||", ",") for one in signs):
        return None
    right = f"IN ({', '.join(one.text for one in values)})"
    sign = s.before(opened)
    message, edits = "= takes one value", [swap(sign.span.start, inner[end].span.end, right)]
    return s.fix("GASL014", message, sign.span | inner[end].span, f"write {right}", edits)


def _cycle_option(s: InvalidStatement) -> Fault | None:
    """Explain ``FIND cycles FROM (id = "a") AS x``: FIND cycles does not have all options of FIND paths."""
    if s.command != "FIND" or not any(one.upper == "CYCLES" for one in s.pieces[:3]):
        return None
    word = next((one for one in s.pieces[: s.here + 1] if one.upper in ("FROM", "SHORTEST", "DIRECTION")), None)
    if word is None:
        return None
    hint = "remove it; a cycle begins and ends at the same node and follows the direction of its edges"
    return s.fault("GASL008", f"FIND cycles does not accept {word.upper}", word.span, hint)


# Elements of patterns.


def _pattern_label(s: InvalidStatement) -> Fault | None:
    """Explain ``(a:PERSON:CUSTOMER)``, ``(a:A&B)``, ``-[:T|:U]->``."""
    piece, before = s.piece(), s.piece(-1)
    if not s.failure.brackets or s.command != "FIND":
        return None
    if piece.text == ":" and before.text == "|":
        return s.fix("GASL014", "a colon comes only before the first type", piece.span, "remove it", [s.removal(0)])
    is_label = before.kind == "word" and s.piece(-2).text in (":", "|") and s.failure.after == "IDENTIFIER"
    if piece.text not in (":", "&", "!", "%") or not is_label or s.piece(1).kind != "word":
        return None
    hint = f"write :{before}|{s.piece(1)} for nodes with either label; a node has one label here"
    return s.fault("GASL014", "a pattern cannot require two labels of one node", piece.span, hint)


_LONG_ARROWS = {"->": "-->", "<-": "<--", "-": "--"}
_SHORT_ARROW = re.compile(r"(?<=\))[ \t]*+(->|<-|-)[ \t]*+(?=\()")


def _arrow(s: InvalidStatement) -> Fault | None:
    """Explain ``(a)->(b)``, ``(a)<-(b)``, ``(a)-(b)``."""
    where = re.search(r"\bWHERE\b", s.text, re.IGNORECASE)
    arrows = list(_SHORT_ARROW.finditer(s.text, 0, where.start() if where else len(s.text)))
    found = next((one for one in arrows if one.start() <= s.at <= one.end() + 1), None)
    if found is None or s.command != "FIND":
        return None
    edits = [Edit(Span(*one.span(1)), _LONG_ARROWS[one[1]]) for one in arrows]
    right = _LONG_ARROWS[found[1]]
    return s.fix("GASL014", f"an edge without a name is written {right}", Span(*found.span(1)), f"write {right}", edits)


def _pattern_property(s: InvalidStatement) -> Fault | None:
    """Explain ``{country: UK}``, ``{name: lower("X")}`` in a node, and braces in an edge."""
    piece = s.piece()
    if s.command != "FIND" or not s.failure.brackets or not any(one.upper == "PATTERNS" for one in s.pieces[:3]):
        return None
    around = [bracket for bracket in s.failure.brackets if bracket[1] < piece.span.start]
    mark, opened = around[-1] if around else ("", 0)
    if mark == "[" and piece.text == "{":
        name = next((one.text for one in s.pieces if one.span.start > opened and one.kind == "word"), "r")
        is_named = s.after(opened + 1).kind == "word"
        inner = re.compile(r"\{[ \t]*(\w+)[ \t]*:[ \t]*(\"[^\"]*\"|'[^']*'|-?[\d.]+|\$\{[\w.]+\})[ \t]*\}").match(
            s.text, piece.span.start
        )
        message, test = "only nodes have { } in a pattern", f"{name if is_named else 'r'}.field = value"
        if inner is None or not is_named:
            return s.fault("GASL014", message, piece.span, f"name the edge, and write WHERE {test} after the patterns")
        test = f"{name}.{inner[1]} = {inner[2]}"
        rest = re.compile(r"(?<![ \t])[ \t]+(?:ORDER|LIMIT|AS)\b", re.IGNORECASE).search(s.text, inner.end())
        is_first = rest is not None and not re.search(r"\bWHERE\b", s.text, re.IGNORECASE)
        start = len(s.text[: piece.span.start].rstrip())
        edits = [swap(start, inner.end(), ""), insert(rest.start(), f" WHERE {test}")] if rest and is_first else []
        return s.fault("GASL014", message, Span(*inner.span()), f"write WHERE {test} after the patterns", edits)
    if mark != "{" or piece.kind != "word" or s.piece(-1).text != ":":
        return None
    field = s.piece(-2)
    if s.piece(1).text == "(":
        first = s.after(around[-2][1] + 1) if len(around) > 1 else field
        owner = first.text if first.kind == "word" else "a"
        hint = f"write WHERE {owner}.{field} = {piece}(...) after the patterns"
        return s.fault("GASL014", "the fields in { } take constants and variables", piece.span, hint)
    message, hint = f"{shortened(piece.text)} has no quotes", f'write "{piece}" for a text, ${{{piece}}} for a variable'
    return s.ambiguity("GASL007", message, piece.span, hint, supposed=[[Edit(piece.span, f'"{piece}"')]])


_DECREASING = "exchange FROM and TO, and write DIRECTION in with INCREASING {1}"

CLAUSES: tuple[Explainer, ...] = (
    _order, _sampled_first, _ranked, _pairs, _share, _arithmetic, _computed, _listed_fields, _alternatives, _variable_in_list,
    _cycle_option, _pattern_label, _arrow,
    _pattern_property,
    Correction("GASL009", "DECREASING | word", "GASL has only INCREASING", _DECREASING, blamed=(0, 0)),
    Correction("GASL008", "PER | BY any", "unexpected BY", "remove it: PER is followed by fields", "PER", edited=(0, 1)),
    Correction("GASL008", "PER BY | any", "unexpected BY", "remove it: PER is followed by fields", "PER", edited=(0, 1), blamed=(1, 1)),
    Correction("GASL010", "PER | AS", "PER must be followed by a field", "write LIMIT 3 PER country, for example", must_help=False),
    Correction("GASL010", "PER AS | any", "PER must be followed by a field", "write LIMIT 3 PER country, for example", blamed=(0, 0)),
    Correction("GASL008", ", | AS", "unexpected ,", "remove it", " AS", edited=(0, 1), blamed=(0, 0)),
    Correction("GASL008", ", AS | any", "unexpected ,", "remove it", " AS {2}", edited=(0, 2), blamed=(0, 0)),
    Correction("GASL016", "PARAM | TEXT/INT/FLOAT/BOOL/LIST word =", "the type of a parameter must come after its name",
               "write PARAM {2} {1.upper} = ...", "{2} {1.upper}", edited=(1, 2), blamed=(1, 2), must_help=False),
    Correction("GASL016", "PARAM TEXT/INT/FLOAT/BOOL/LIST | word =/WITH_DESCRIPTION", "the type of a parameter must come after its name",
               "write PARAM {2} {1.upper} ...", "{2} {1.upper}", edited=(1, 2), blamed=(1, 2)),
    Correction("GASL012", "LIST = | [/(", "a list has no default",
               "write PARAM name LIST, and pass the list when the program runs", commands=("PARAM",)),
    Correction("GASL027", "| : word", "a parameter is written ${{{1}}}, not :{1}", "write ${{{1}}}", "${{{1}}}", allowed="VARIABLE"),
    Correction("GASL001", "| LET word = value", "unknown command LET", "write PARAM {1} with a type, as in PARAM {1} INT = {3}",
               allowed="FIND", blamed=(0, 0)),
)  # fmt: skip
"""Explainers that run before the explainers of missing words."""
